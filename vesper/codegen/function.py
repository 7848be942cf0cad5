"""One node as one Python function: contracts where a person would write them, steps by name, in written order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import libcst as cst
from libcst.helpers import parse_template_statement

from vesper.codegen import templates
from vesper.codegen.expressions import ExpressionWriter
from vesper.codegen.layout import break_arguments, break_dict, break_long, break_parameters, code_of, fits
from vesper.codegen.loops import loop_target
from vesper.codegen.naming import Naming
from vesper.codegen.types import TypeWriter, needs_annotation
from vesper.codegen.written import ATOM, Written, string_literal
from vesper.ir import nodes as ir
from vesper.spec.types import OptionalOf, Primitive, Type
from vesper.spec.values import Value

_BODY_INDENT = 4
_BLANK = cst.EmptyLine(indent=False)


def comment(text: str) -> cst.EmptyLine:
    """A comment line; what cannot be seen is shown, so that nothing in a node can end the line."""
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return cst.EmptyLine(comment=cst.Comment(f"# {shown}"))


class FunctionWriter:
    def __init__(self, node: ir.Node, naming: Naming, types: TypeWriter, traced: bool) -> None:
        self._node = node
        self._naming = naming
        self._traced = traced
        self.expressions = ExpressionWriter(naming, traced)
        self._types = types

    def function(self) -> cst.FunctionDef:
        node = self._node
        names = {each.name: self._naming.name("input", each.name) for each in node.inputs}
        for constant in node.constants:
            self._naming.name("constant", constant.name)
        body: list[cst.BaseStatement] = [
            *self._clauses("constraint", node.constraints),
            *self._clauses("precondition", node.preconditions),
        ]
        for statement in node.body:
            body += self._step(statement) if isinstance(statement, ir.Step) else self._return(statement)
        return self._definition(names, body)

    def _definition(self, names: dict[str, str], body: list[cst.BaseStatement]) -> cst.FunctionDef:
        shell = parse_template_statement(
            templates.FUNCTION,
            name=cst.Name(self._node.node_id),
            docstring=cst.SimpleString(docstring(self._node.source.intent)),
        )
        assert isinstance(shell, cst.FunctionDef)
        assert isinstance(shell.body, cst.IndentedBlock)
        parameters = self._parameters(names)
        head = shell.with_changes(params=parameters, body=cst.SimpleStatementSuite([cst.Pass()]), decorators=[])
        if not fits(head, 0):
            parameters, before = break_parameters(parameters)
            shell = shell.with_changes(whitespace_before_params=before)
        lines = [*shell.body.body[:1], *body]  # of the template's body the docstring stays
        return shell.with_changes(params=parameters, body=cst.IndentedBlock(lines))

    def _parameters(self, names: dict[str, str]) -> cst.Parameters:
        params = [
            cst.Param(
                cst.Name(names[each.name]),
                annotation=cst.Annotation(self._types.annotation(each.type)),
                default=self._default(each.type, each.default),
            )
            for each in self._node.inputs
        ]
        # After an input with a default come others without: then all are keyword-only, in declared order.
        in_order = all(a.default is None or b.default is not None for a, b in pairwise(params))
        mark = [cst.Param(cst.Name("mark"), annotation=cst.Annotation(cst.Name("Mark")))] if self._traced else []
        if in_order:
            return cst.Parameters(params=params, kwonly_params=mark)
        return cst.Parameters(kwonly_params=[*params, *mark])

    def _default(self, type_: Type, value: Value) -> cst.BaseExpression | None:
        if value is None and not isinstance(type_, OptionalOf):
            return None
        literal = ir.Literal(type_, value, ir.Place(1, 1, 1, 1))
        return self.expressions.value(value, literal).node

    # -- contracts --------------------------------------------------------------------------------

    def _clauses(self, phase: str, clauses: Sequence[ir.Clause]) -> list[cst.BaseStatement]:
        return [self._clause(phase, index, clause) for index, clause in enumerate(clauses)]

    def _clause(self, phase: str, index: int, clause: ir.Clause) -> cst.BaseStatement:
        self._naming.begin_statement()
        statement = parse_template_statement(
            templates.CONTRACT_CHECK,
            condition=cst.Name("condition"),
            phase=cst.SimpleString(string_literal(phase)),
            index=cst.Integer(str(index)),
            values=self._mentioned(clause),
        )
        assert isinstance(statement, cst.If)
        assert isinstance(statement.test, cst.UnaryOperation)
        written = self.expressions.condition(clause.holds)
        condition = written.node
        if isinstance(condition, cst.BooleanOperation | cst.IfExp):
            wrapped = condition.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
            self.expressions.moved(condition, wrapped)
            condition = wrapped
        line = f"{phase}, line {clause.holds.place.line}: {clause.text}"
        return self._fit_raise(statement).with_changes(
            test=statement.test.with_changes(expression=condition), leading_lines=[_BLANK, comment(line)]
        )

    def _fit_raise(self, statement: cst.If) -> cst.If:
        """The `raise` of a clause, its arguments one a line where they are too long for one."""
        assert isinstance(statement.body, cst.IndentedBlock)
        line = statement.body.body[0]
        assert isinstance(line, cst.SimpleStatementLine)
        raising = line.body[0]
        assert isinstance(raising, cst.Raise)
        assert isinstance(raising.exc, cst.Call)
        if fits(raising, 2 * _BODY_INDENT):
            return statement
        broken = line.with_changes(body=[raising.with_changes(exc=break_arguments(raising.exc))])
        return statement.with_changes(body=cst.IndentedBlock([broken]))

    def _mentioned(self, clause: ir.Clause) -> cst.Dict:
        return self.expressions.record([(ref.name, self.expressions.write(ref)) for ref in ir.mentioned(clause)])

    # -- flow -------------------------------------------------------------------------------------

    def _step(self, step: ir.Step) -> list[cst.BaseStatement]:
        self._naming.begin_statement()
        heading = [_BLANK, comment(f"step {step.name}, line {step.place.line}")]
        before: list[cst.BaseStatement] = []
        value = step.value
        while isinstance(value, ir.Let):
            # What a step binds outermost is a statement of its own; nothing is evaluated before it.
            if not self.expressions.is_atom(value):
                local = self._naming.local(value.local, value.name)
                before.append(self._assign(local, value.value, 1, heading))
                heading = []
            value = value.body
        if isinstance(value, ir.For) and value.kind == "fold" and _starts_at_once(value):
            return [*before, *self._fold(step, value, heading)]
        target = self._naming.name("step", step.name)
        is_chain = isinstance(value, ir.If) and isinstance(value.otherwise, ir.If)
        # Without it a type checker takes members of an enum for any string, and a record for any dict.
        annotation = self._types.annotation(value.type) if needs_annotation(value.type) else None
        if is_chain and annotation is not None:
            declared = cst.AnnAssign(cst.Name(target), cst.Annotation(annotation))
            before.append(cst.SimpleStatementLine([declared], leading_lines=heading))
            heading = []
        if isinstance(value, ir.If) and isinstance(value.otherwise, ir.If):
            # Two conditions or more: a person would write statements, not nested conditional expressions.
            return [*before, self._chain(target, value, step.value).with_changes(leading_lines=heading)]
        return [*before, self._assign(target, value, 1, heading, mark_as=step.value, annotation=annotation)]

    def _fold(self, step: ir.Step, fold: ir.For, heading: Sequence[cst.EmptyLine]) -> list[cst.BaseStatement]:
        """A fold that is a whole step is a loop: the value so far has a name, and each item changes it."""
        assert fold.with_ is not None
        names = [self._naming.kept_local(*each) for each in zip(fold.locals, fold.names, strict=True)]
        state = names.pop()
        annotation = None if isinstance(fold.type, Primitive) else self._types.annotation(fold.type)
        start = self._assign(state, fold.with_, 1, heading, annotation=annotation)
        over = self.expressions.over(fold, len(names))
        change: cst.BaseStatement = self._assign(state, fold.value, 2 if fold.where is None else 3)
        if fold.where is not None:
            test = self.expressions.condition(fold.where).node
            change = cst.If(test=test, body=cst.IndentedBlock([change]))
        targets = loop_target([cst.Name(name) for name in names], parentheses=False)
        loop = cst.For(target=targets, iter=over, body=cst.IndentedBlock([change]))
        result = ir.Local(fold.locals[-1], fold.names[-1], fold.type, fold.place)
        declared = self._types.annotation(fold.type) if needs_annotation(fold.type) else None
        target = self._naming.name("step", step.name)
        return [start, loop, self._assign(target, result, 1, mark_as=step.value, annotation=declared)]

    def _chain(self, target: str, chain: ir.If, whole: ir.Expression) -> cst.If:
        """A chain of conditions as `if`, `elif`, `else`, each branch giving the value of the whole."""
        test = self.expressions.condition(chain.condition).node
        body = cst.IndentedBlock([self._assign(target, chain.then, 2, mark_as=whole)])
        orelse: cst.If | cst.Else
        if isinstance(chain.otherwise, ir.If):
            orelse = self._chain(target, chain.otherwise, whole)
        else:
            orelse = cst.Else(cst.IndentedBlock([self._assign(target, chain.otherwise, 2, mark_as=whole)]))
        return cst.If(test=test, body=body, orelse=orelse)

    def _assign(
        self, target: str, value: ir.Expression, depth: int, heading: Sequence[cst.EmptyLine] = (),
        mark_as: ir.Expression | None = None, annotation: cst.BaseExpression | None = None,
    ) -> cst.SimpleStatementLine:  # fmt: skip
        written = self.expressions.stored(value)
        if mark_as is not None:
            written = self.expressions.marked(mark_as, written)
        node = written.node
        shown = "" if annotation is None else f": {code_of(annotation)}"
        if not fits(node, depth * _BODY_INDENT + len(f"{target}{shown} = ")):
            node = break_long(node, self.expressions.moved)
        assignment: cst.Assign | cst.AnnAssign = cst.Assign([cst.AssignTarget(cst.Name(target))], node)
        if annotation is not None:
            assignment = cst.AnnAssign(cst.Name(target), cst.Annotation(annotation), node)
        return cst.SimpleStatementLine([assignment], leading_lines=heading)

    def _return(self, statement: ir.Return) -> list[cst.BaseStatement]:
        before: list[cst.BaseStatement] = []
        entries: list[tuple[str, Written]] = []
        for name, value in statement.values:
            if isinstance(value, ir.Ref):
                self._naming.alias("output", name, self._naming.name(value.kind, value.name))
            else:
                target = self._naming.name("output", name)
                heading = [_BLANK, comment(f"output {name}, line {value.place.line}")]
                annotation = self._types.annotation(value.type) if needs_annotation(value.type) else None
                before.append(self._assign(target, value, 1, heading, annotation=annotation))
            entries.append((name, Written(cst.Name(self._naming.name("output", name)), ATOM)))
        result = self.expressions.record(entries)
        if not fits(result, _BODY_INDENT + len("return ")):
            result = break_dict(result)
        returning = cst.SimpleStatementLine([cst.Return(result)], leading_lines=[_BLANK])
        return [*before, *self._clauses("postcondition", self._node.postconditions), returning]


def _starts_at_once(fold: ir.For) -> bool:
    """True where what a fold starts with cannot fail, so that it may be evaluated before the collection."""
    initial = fold.with_
    return isinstance(initial, ir.Literal | ir.Ref) or (isinstance(initial, ir.Array) and not initial.items)


def docstring(text: str) -> str:
    """A docstring that says this, as a sentence."""
    escaped = "".join(
        {"\\": "\\\\", '"': '\\"'}.get(c, c) if c.isprintable() else c.encode("unicode_escape").decode() for c in text
    )
    return f'"""{escaped}{"" if text.endswith((".", "!", "?")) else "."}"""'
