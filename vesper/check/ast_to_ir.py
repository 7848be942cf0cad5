"""The whole node: declarations, contracts, flow. In: the AST. Out: numbered, typed IR and the node's cases.

Steps run in written order and see only what stands above them. A decision table becomes a chain of `if`; a step that
has an output's name is held to that output's type, which is also what tells a bare `approve` to be a member of an
enum.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce

from vesper.check.cases import Case, check_cases
from vesper.check.constraints import constraint_clause
from vesper.check.expressions import ExpressionChecker, place_of
from vesper.check.literals import UNREAD, Unread, read_literal
from vesper.check.narrowing import NOTHING, Facts, facts_when
from vesper.check.record_types import TypeResolver
from vesper.check.scope import Scope
from vesper.check.type_clauses import type_clauses
from vesper.diagnostics.codes import Code
from vesper.diagnostics.diagnostic import DiagnosticBag, Label
from vesper.diagnostics.suggest import did_you_mean
from vesper.ir import nodes as ir
from vesper.spec.types import BOOLEAN, DECIMAL, INTEGER, NULL, Type
from vesper.spec.values import Value
from vesper.syntax import ast


@dataclass(frozen=True, slots=True)
class CheckedNode:
    node: ir.Node
    cases: tuple[Case, ...]


def check_document(document: ast.Document, bag: DiagnosticBag) -> CheckedNode | None:
    """The checked node, or None when the bag has errors."""
    found = _NodeChecker(document, bag).node()
    if found is None:
        return None
    node = ir.numbered(found)
    cases = check_cases(document.cases, node, bag)
    return None if bag.has_errors else CheckedNode(node, cases)


class _NodeChecker:
    def __init__(self, document: ast.Document, bag: DiagnosticBag) -> None:
        self._document = document
        self._bag = bag
        self._scope = Scope()
        self._expressions = ExpressionChecker(self._scope, bag)
        self._types = TypeResolver(document.types, bag)

    def node(self) -> ir.Node | None:
        document = self._document
        self._types.resolve_all()
        types = [self._declare_input(each) for each in document.inputs]
        constants = [self._constant(each) for each in document.constants]
        outputs = [self._output(each) for each in document.outputs]
        self._functions()
        constraints = [
            clause
            for each, type_ in zip(document.inputs, types, strict=True)
            for clause in self._constraints(each, type_)
        ]
        inputs = [self._input(each, type_) for each, type_ in zip(document.inputs, types, strict=True)]
        preconditions = [self._clause(each) for each in document.preconditions]
        body = self._flow()
        self._scope.in_postcondition = True
        postconditions = [self._clause(each) for each in document.postconditions]
        if self._bag.has_errors:
            return None
        self._report_unused()
        return ir.Node(
            node_id=document.node_id.text,
            type=document.type.text,
            inputs=tuple(each for each in inputs if each),
            outputs=tuple(output for output in outputs if output),
            constants=tuple(constant for constant in constants if constant),
            constraints=tuple(constraints),
            preconditions=tuple(clause for clause in preconditions if clause),
            body=body,
            postconditions=tuple(clause for clause in postconditions if clause),
            source=ir.Source(document.source.path, document.source.sha256, document.intent.text),
        )

    # -- declarations -----------------------------------------------------------------------------

    def _declare_input(self, declared: ast.Input) -> Type | None:
        type_ = self._types.resolve(declared.type)
        self._scope.declare("input", declared.name, type_, self._bag)
        return type_

    def _constraints(self, declared: ast.Input, type_: Type | None) -> list[ir.Clause]:
        """What every value of an input must meet: what it says itself, then what its types say."""
        if type_ is None:
            return []
        name = declared.name.text
        found: list[ir.Clause | None] = []
        for each in declared.constraints:
            subject = ir.Ref("input", name, type_, place_of(self._bag.source, each.span))
            clause = constraint_clause(each, subject, name, self._bag)
            found.append(None if clause is None else replace(clause, input=name))
        found += type_clauses(declared, type_, self._types, self._expressions)
        return [clause for clause in found if clause]

    def _input(self, declared: ast.Input, type_: Type | None) -> ir.Input | None:
        default: Value | Unread = None
        if type_ is not None and declared.default is not None:
            default = read_literal(type_, declared.default, "default", self._bag)
        if type_ is None or isinstance(default, Unread):
            return None
        return ir.Input(declared.name.text, type_, default)

    def _functions(self) -> None:
        functions = self._document.functions
        self._expressions.functions_below = {each.name.text: each.name for each in functions}
        for each in functions:
            parameters = [(part.name, self._types.resolve(part.type)) for part in each.parameters]
            self._expressions.declare_function(each, parameters, self._types.resolve(each.returns))

    def _constant(self, declared: ast.Constant) -> ir.Constant | None:
        type_ = self._types.resolve(declared.type)
        self._scope.declare("constant", declared.name, type_, self._bag)
        value = UNREAD if type_ is None else read_literal(type_, declared.value, "value", self._bag)
        return None if type_ is None or isinstance(value, Unread) else ir.Constant(declared.name.text, type_, value)

    def _output(self, declared: ast.Output) -> ir.Output | None:
        type_ = self._types.resolve(declared.type)
        self._scope.declare("output", declared.name, type_, self._bag)
        return None if type_ is None else ir.Output(declared.name.text, type_)

    # -- contracts and flow -----------------------------------------------------------------------

    def _clause(self, clause: ast.Clause) -> ir.Clause | None:
        holds = self._expressions.check(clause.holds, BOOLEAN)
        return None if holds is None else ir.Clause(holds, clause.text)

    def _flow(self) -> tuple[ir.Statement, ...]:
        body: list[ir.Statement] = []
        for position, step in enumerate(self._document.flow):
            statement = self._statement(step)
            if statement is not None:
                body.append(statement)
            if isinstance(step, ast.Return):
                for unreachable in self._document.flow[position + 1 :]:
                    also = (Label(step.span, "the flow ends here"),)
                    span = unreachable.span if isinstance(unreachable, ast.Return) else unreachable.name.span
                    self._bag.error(Code.UNREACHABLE_STEP, span, also=also)
                return tuple(body)
        span = self._document.flow_span
        first = self._bag.source.text[span.start :].partition("\n")[0]
        help_ = f"end with `- operation: return` and `success: [{', '.join(self._scope.outputs)}]`"
        self._bag.error(Code.NO_RETURN, type(span)(span.start, span.start + max(1, len(first))), help=help_)
        return tuple(body)

    def _statement(self, step: ast.Step) -> ir.Statement | None:
        if isinstance(step, ast.Return):
            return self._return(step)
        output = self._scope.outputs.get(step.name.text)
        expected = None if output is None else output.type
        if isinstance(step, ast.Compute):
            value = self._value(step.value, expected)
        else:
            value = self._table(step, expected)
        self._scope.declare("step", step.name, None if value is None else value.type, self._bag)
        if value is None:
            return None
        return ir.Step(step.name.text, value, place_of(self._bag.source, step.name.span))

    def _value(self, expression: ast.Expression, expected: Type | None) -> ir.Expression | None:
        if expected is not None:
            return self._expressions.check(expression, expected)
        value = self._expressions.infer(expression, None)
        if value is not None and value.type == NULL:
            self._bag.error(Code.TYPE_MISMATCH, expression.span, expected="a value", found="null")
            return None
        return value

    def _table(self, table: ast.DecisionTable, expected: Type | None) -> ir.Expression | None:
        conditions: list[ir.Expression | None] = []
        values: list[ir.Expression | None] = []
        failed: Facts = NOTHING
        for row in table.rows:
            # A row is reached where all the conditions above it have failed.
            with self._expressions.assuming(failed):
                conditions.append(self._expressions.check(row.when, BOOLEAN))
                with self._expressions.assuming(facts_when(row.when, True, self._scope)):
                    values.append(self._value(row.then, expected))
            failed |= facts_when(row.when, False, self._scope)
        with self._expressions.assuming(failed):
            values.append(self._value(table.otherwise, expected))
        results = [row.then for row in table.rows] + [table.otherwise]
        known = [value for value in values if value is not None]
        if len(known) < len(values) or None in conditions:
            return None
        if expected is None:
            mixed = {value.type for value in known} == {INTEGER, DECIMAL}
            expected = DECIMAL if mixed else known[0].type
        fitted = [
            self._expressions.fit(value, expected, result.span) for value, result in zip(known, results, strict=True)
        ]
        rows = list(zip(conditions, fitted, strict=False))
        if None in fitted:
            return None

        def chain(below: ir.Expression | None, row: tuple[ir.Expression | None, ir.Expression | None]) -> ir.If:
            condition, then = row
            assert condition is not None and then is not None and below is not None
            return ir.If(condition, then, below, then.type, condition.place)

        return reduce(chain, reversed(rows), fitted[-1])

    def _return(self, step: ast.Return) -> ir.Return | None:
        given: dict[str, ir.Expression] = {}
        complete = True
        for word, expression in step.values:
            output = self._scope.outputs.get(word.text)
            if output is None:
                help_ = did_you_mean(word.text, self._scope.outputs)
                problem = f"gives `{word.text}`, which is not an output"
                self._bag.error(Code.RETURN_OUTPUTS, word.span, problem=problem, help=help_)
                continue
            if word.text in given:
                self._bag.error(Code.RETURN_OUTPUTS, word.span, problem=f"gives `{word.text}` twice")
            value = None if output.type is None else self._expressions.check(expression, output.type)
            if value is None:
                complete = False
            else:
                given[word.text] = value
        named = {word.text for word, _ in step.values}
        missing = [name for name in self._scope.outputs if name not in named]
        if missing:
            names = ", ".join(f"`{name}`" for name in missing)
            self._bag.error(Code.RETURN_OUTPUTS, step.span, problem=f"does not give {names}")
        if missing or not complete:
            return None
        return ir.Return(tuple((name, given[name]) for name in self._scope.outputs if name in given))

    def _report_unused(self) -> None:
        self._expressions.report_unused_functions()
        for declared in self._scope.names.values():
            if declared.kind in ("constant", "step") and not declared.used:
                self._bag.warning(Code.UNUSED_VALUE, declared.span, what=f"the {declared.kind}", name=declared.name)
