"""One node as one Python function: contracts where a person would write them, steps by name, in written order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise

import libcst as cst
from libcst.helpers import parse_template_statement

from vesper.codegen import templates
from vesper.codegen.contract_functions import ContractFunction
from vesper.codegen.expressions import ExpressionWriter
from vesper.codegen.layout.python_expression import ATOM, Written, string_literal
from vesper.codegen.metering import Metering
from vesper.codegen.naming import Naming
from vesper.codegen.statements import BlockWriter, comment
from vesper.codegen.types import TypeWriter
from vesper.language.ir import nodes as ir
from vesper.language.ir.failures import codes_of_expression, declared_failures
from vesper.language.ir.statements import all_statements, handlers_of
from vesper.values.model import Value
from vesper.values.types import Enum, OptionalOf, Type
from vesper.values.unicode import is_printable

_BLANK = cst.EmptyLine(indent=False)


def takes_now(node: ir.Node) -> bool:
    """Every node but a function may ask for the start of its execution, or call one that does."""
    return node.type != "function"


class FunctionWriter:
    def __init__(self, node: ir.Node, naming: Naming, types: TypeWriter, traced: bool, metering: Metering) -> None:
        self._node = node
        self._naming = naming
        self.own = ({"mark": "Mark"} if traced else {}) | metering.parameters()
        """Parameters that are no inputs, with their types: what the form has over the plain one."""
        self._types = types
        types.name_records(node)
        self.expressions = ExpressionWriter(naming, types, traced, metering)
        self._blocks = BlockWriter(node, naming, self.expressions, types, self._end)
        for callee in node.calls:
            naming.reserve(callee.node)
        returns = sum(isinstance(each, ir.Return) for each in all_statements(node.body))
        self._shared: dict[str, ContractFunction] = {}
        self._own_names: dict[tuple[str, str], str] = {}
        """Identifiers of outputs and fields of errors that are computed at an end."""
        has_handlers = bool(declared_failures(node)) or any(map(handlers_of, all_statements(node.body)))
        for phase, clauses, is_shared in (
            ("postcondition", node.postconditions, returns > 1),
            ("invariant", node.invariants, returns > 1 or bool(node.errors)),
        ):
            # What takes failures of the flow stands around its ends, and must not take those of these clauses.
            is_apart = has_handlers and any(codes_of_expression(each.holds) for each in clauses)
            if clauses and (is_shared or is_apart):
                self._shared[phase] = ContractFunction(phase, clauses, self.own, is_apart)

    def contract_functions(self) -> list[cst.FunctionDef]:
        """The functions for clauses that several ends share."""
        return [each.definition(self._blocks, self._naming, self._types) for each in self._shared.values()]

    def function(self) -> cst.FunctionDef:
        node = self._node
        names = {each.name: self._naming.name("input", each.name) for each in node.inputs}
        for constant in node.constants:
            self._naming.name("constant", constant.name)
        checks = [
            *self._clauses("constraint", node.constraints),
            *self._clauses("precondition", node.preconditions),
        ]
        return self._definition(names, [*checks, *self._becoming_declared(self._blocks.block(node.body))])

    def _definition(self, names: dict[str, str], body: list[cst.BaseStatement]) -> cst.FunctionDef:
        shell = _shell(templates.FUNCTION if self._node.is_pure() else templates.STEPS)
        prose = cst.SimpleStatementLine([cst.Expr(cst.SimpleString(docstring(self._node.source.intent)))])
        return shell.with_changes(
            name=cst.Name(self._node.node_id),
            params=self._parameters(names),
            body=cst.IndentedBlock([prose, *body]),
        )

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
        others = ({"now": "datetime"} if takes_now(self._node) else {}) | self.own
        own = [cst.Param(cst.Name(name), annotation=cst.Annotation(cst.Name(type_))) for name, type_ in others.items()]
        if in_order:
            return cst.Parameters(params=params, kwonly_params=own)
        return cst.Parameters(kwonly_params=[*params, *own])

    def _default(self, type_: Type, value: Value) -> cst.BaseExpression | None:
        if value is None and not isinstance(type_, OptionalOf):
            return None
        literal = ir.Literal(type_, value, ir.Place(1, 1, 1, 1))
        return self.expressions.value(value, literal).node

    # -- ends -------------------------------------------------------------------------------------

    def _clauses(self, phase: str, clauses: Sequence[ir.Clause]) -> list[cst.BaseStatement]:
        return [line for index, clause in enumerate(clauses) for line in self._blocks.clause(phase, index, clause)]

    def _checks(self, phase: str, clauses: Sequence[ir.Clause]) -> list[cst.BaseStatement]:
        """What must hold at an end: the clauses themselves, or a call of the function that has them."""
        if phase in self._shared:
            return [self._shared[phase].call(self._naming)]
        return self._clauses(phase, clauses)

    def _end(self, statement: ir.Return | ir.Raise, is_nested: bool) -> list[cst.BaseStatement]:
        """How the node ends here: the values, what must hold of them, and the return or raise itself."""
        kind = "output" if isinstance(statement, ir.Return) else "error"
        lines, entries = self._ending_values(kind, statement.values, is_nested)
        if isinstance(statement, ir.Return):
            self._absent("error", self._node.errors)
            lines += self._checks("postcondition", self._node.postconditions)
        else:
            self._absent("output", self._node.outputs)
        lines += self._checks("invariant", self._node.invariants)
        result = self.expressions.record(entries)
        leading = [_BLANK] if lines or not is_nested else []
        if isinstance(statement, ir.Return):
            return [*lines, cst.SimpleStatementLine([cst.Return(result)], leading_lines=leading)]
        error = cst.Call(cst.Name("DeclaredError"), [cst.Arg(result)])
        self.expressions.ends[error] = statement.values[0][1].place.line
        raised = cst.Raise(error, cause=self._blocks.cause())
        return [*lines, cst.SimpleStatementLine([raised], leading_lines=leading)]

    def _ending_values(
        self, kind: str, values: Sequence[tuple[str, ir.Expression]], is_nested: bool
    ) -> tuple[list[cst.BaseStatement], list[tuple[str, Written]]]:
        """The values under names of their own where clauses or other values may need them, else where they stand."""
        checks = self._node.postconditions if kind == "output" else ()
        is_named = bool(checks or self._node.invariants)
        lines: list[cst.BaseStatement] = []
        entries: list[tuple[str, Written]] = []
        for name, value in values:
            self._naming.begin_statement()
            if isinstance(value, ir.Ref):
                self._naming.alias(kind, name, self._naming.name(value.kind, value.name))
            elif is_named or not isinstance(value, ir.Literal):
                target, is_new = self._own_name(kind, name)
                heading = [_BLANK, comment(f"{kind} {name}, line {value.place.line}")] if not is_nested else []
                annotation = self._blocks.annotation(value.type) if is_new else None
                lines.append(self._blocks.assign(target, value, heading, annotation=annotation))
            else:
                entries.append((name, self.expressions.stored(value)))
                continue
            entries.append((name, Written(cst.Name(self._naming.name(kind, name)), ATOM)))
        return lines, entries

    def _own_name(self, kind: str, name: str) -> tuple[str, bool]:
        """The identifier for a value at an end, and whether this is its first use: ends exclude each other."""
        is_new = (kind, name) not in self._own_names
        if is_new:
            self._naming.forget(kind, name)
            self._own_names[kind, name] = self._naming.name(kind, name)
        self._naming.alias(kind, name, self._own_names[kind, name])
        return self._own_names[kind, name], is_new

    def _absent(self, kind: str, declared: Sequence[ir.Output]) -> None:
        """What there is none of at this end is null in invariants."""
        for each in declared:
            self._naming.alias(kind, each.name, "None")

    def _becoming_declared(self, body: list[cst.BaseStatement]) -> list[cst.BaseStatement]:
        """The body, with failures that the node declares as errors made such."""
        members = declared_failures(self._node)
        if not members:
            return body
        code = cst.Name(self._naming.fresh("code"))
        caught_code = cst.Call(cst.Name("code_of"), [cst.Arg(cst.Name("failure"))])
        literals = cst.Tuple([cst.Element(cst.SimpleString(string_literal(member))) for member in members])
        one_of = cst.Call(cst.Name("one_of"), [cst.Arg(caught_code), cst.Arg(literals)])
        annotation = cst.Annotation(self._types.annotation(OptionalOf(Enum(tuple(members)))))
        lines: list[cst.BaseStatement] = [
            cst.SimpleStatementLine([cst.AnnAssign(code, annotation, one_of)]),
            cst.If(
                cst.Comparison(code, [cst.ComparisonTarget(cst.Is(), cst.Name("None"))]),
                cst.IndentedBlock([cst.SimpleStatementLine([cst.Raise()])]),
            ),
        ]
        entries: list[tuple[str, Written]] = []
        self._absent("output", self._node.outputs)
        for each in self._node.errors:
            value = "None" if isinstance(each.type, OptionalOf) else code.value
            self._naming.alias("error", each.name, value)
            entries.append((each.name, Written(cst.Name(value), ATOM)))
        lines += self._checks("invariant", self._node.invariants)
        raised = cst.Raise(
            cst.Call(cst.Name("DeclaredError"), [cst.Arg(self.expressions.record(entries))]),
            cause=cst.From(cst.Name("failure")),
        )
        inside = [*lines, cst.SimpleStatementLine([raised])]
        caught = cst.ExceptHandler(
            body=cst.IndentedBlock(inside), type=cst.Name("FAILURES"), name=cst.AsName(cst.Name("failure"))
        )
        first = body[0].with_changes(leading_lines=[])
        return [cst.Try(body=cst.IndentedBlock([first, *body[1:]]), handlers=[caught], leading_lines=[_BLANK])]


def docstring(text: str) -> str:
    """A docstring that says this, as a sentence."""
    escaped = "".join(
        {"\\": "\\\\", '"': '\\"'}.get(c, c) if is_printable(c) else c.encode("unicode_escape").decode() for c in text
    )
    return f'"""{escaped}{"" if text.endswith((".", "!", "?")) else "."}"""'


@cache
def _shell(template: str) -> cst.FunctionDef:
    """A template of functions, parsed once: its name, its docstring and its body differ from node to node."""
    shell = parse_template_statement(template, name=cst.Name("name"), docstring=cst.SimpleString('""'))
    assert isinstance(shell, cst.FunctionDef)
    return shell
