"""Writer of a node as one Python function: contracts, then steps under their names, in written order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise

import libcst as cst
from libcst.helpers import parse_template_statement

from vesper.codegen import templates
from vesper.codegen.contract_functions import ContractFunction
from vesper.codegen.expressions import ExpressionWriter
from vesper.codegen.layout.python_expression import ATOM, PythonExpression, write_string
from vesper.codegen.metering import Metering
from vesper.codegen.naming import Naming
from vesper.codegen.recursive_functions import RecursiveFunctions
from vesper.codegen.statements import BlockWriter, write_comment
from vesper.codegen.types import TypeWriter
from vesper.language.ir import nodes as ir
from vesper.language.ir.failures import codes_of_expression, declared_failures
from vesper.language.ir.statements import all_statements, handlers_of
from vesper.values.types import Enum, OptionalOf
from vesper.values.unicode import is_printable

_BLANK = cst.EmptyLine(indent=False)


def takes_now(node: ir.Node) -> bool:
    """Return whether the node may read the start of its execution: every type but `function`."""
    return node.type != "function"


class FunctionWriter:
    def __init__(self, node: ir.Node, naming: Naming, types: TypeWriter, traced: bool, metering: Metering) -> None:
        self._node = node
        self._naming = naming
        self.form_parameters = ({"mark": "Mark"} if traced else {}) | metering.list_parameters()
        """Parameters that this form of the module has besides its inputs, with their types."""
        self._types = types
        types.name_records(node)
        self.expressions = ExpressionWriter(naming, types, traced, metering, node.functions)
        self.functions = RecursiveFunctions(node, naming, types, self.expressions, self.form_parameters)
        self._blocks = BlockWriter(node, naming, self.expressions, types, self._write_end)
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
            # Handlers of the flow enclose its ends and must not catch failures of these clauses.
            is_apart = has_handlers and any(codes_of_expression(each.holds) for each in clauses)
            if clauses and (is_shared or is_apart):
                self._shared[phase] = ContractFunction(phase, clauses, self.form_parameters, is_apart)

    def write_contract_functions(self) -> list[cst.FunctionDef]:
        """Write the functions of clauses that several ends share."""
        return [each.write_definition(self._blocks, self._naming, self._types) for each in self._shared.values()]

    def write_function(self) -> cst.FunctionDef:
        node = self._node
        names = {each.name: self._naming.name("input", each.name) for each in node.inputs}
        for constant in node.constants:
            self._naming.name("constant", constant.name)
        numbered = [("constraint", index, each) for index, each in enumerate(node.constraints)]
        numbered += [("precondition", index, each) for index, each in enumerate(node.preconditions)]
        checks = self._blocks.write_clauses(numbered)
        return self._write_definition(names, [*checks, *self._declare_failures(self._blocks.write_block(node.body))])

    def _write_definition(self, names: dict[str, str], body: list[cst.BaseStatement]) -> cst.FunctionDef:
        shell = _parse_shell(templates.FUNCTION if self._node.is_pure() else templates.STEPS)
        prose = cst.SimpleStatementLine([cst.Expr(cst.SimpleString(write_docstring(self._node.source.intent)))])
        return shell.with_changes(
            name=cst.Name(self._node.node_id),
            params=self._write_parameters(names),
            body=cst.IndentedBlock([prose, *body]),
        )

    def _write_parameters(self, names: dict[str, str]) -> cst.Parameters:
        params = [
            cst.Param(
                cst.Name(names[each.name]),
                annotation=cst.Annotation(self._types.write_annotation(each.type)),
                default=self._write_default(each),
            )
            for each in self._node.inputs
        ]
        # After an input with a default come others without: then all are keyword-only, in declared order.
        in_order = all(a.default is None or b.default is not None for a, b in pairwise(params))
        others = ({"now": "datetime"} if takes_now(self._node) else {}) | self.form_parameters
        own = [cst.Param(cst.Name(name), annotation=cst.Annotation(cst.Name(type_))) for name, type_ in others.items()]
        if in_order:
            return cst.Parameters(params=params, kwonly_params=own)
        return cst.Parameters(kwonly_params=[*params, *own])

    def _write_default(self, given: ir.Input) -> cst.BaseExpression | None:
        if given.default is None and not isinstance(given.type, OptionalOf):
            return None
        if isinstance(given.default, list | dict):
            return cst.Name(self._naming.name("default", given.name))
        return self.expressions.write_literal(given.type, given.default).node

    # -- ends -------------------------------------------------------------------------------------

    def _write_clauses(self, phase: str, clauses: Sequence[ir.Clause]) -> list[cst.BaseStatement]:
        return self._blocks.write_clauses([(phase, index, each) for index, each in enumerate(clauses)])

    def _write_checks(self, phase: str, clauses: Sequence[ir.Clause]) -> list[cst.BaseStatement]:
        """Write the clauses of an end, or a call of the function that checks them."""
        if phase in self._shared:
            return [self._shared[phase].write_call(self._naming)]
        return self._write_clauses(phase, clauses)

    def _write_end(self, statement: ir.Return | ir.Raise, is_nested: bool) -> list[cst.BaseStatement]:
        """Write an end of the node: its values, its clauses, and the return or raise."""
        kind = "output" if isinstance(statement, ir.Return) else "error"
        lines, entries = self._write_end_values(kind, statement.values, is_nested)
        if isinstance(statement, ir.Return):
            self._alias_absent("error", self._node.errors)
            lines += self._write_checks("postcondition", self._node.postconditions)
        else:
            self._alias_absent("output", self._node.outputs)
        lines += self._write_checks("invariant", self._node.invariants)
        result = self.expressions.write_dict(entries)
        leading = [_BLANK] if lines or not is_nested else []
        if isinstance(statement, ir.Return):
            return [*lines, cst.SimpleStatementLine([cst.Return(result)], leading_lines=leading)]
        error = cst.Call(cst.Name("DeclaredError"), [cst.Arg(result)])
        self.expressions.ends[error] = statement.values[0][1].place.line
        raised = cst.Raise(error, cause=self._blocks.write_cause())
        return [*lines, cst.SimpleStatementLine([raised], leading_lines=leading)]

    def _write_end_values(
        self, kind: str, values: Sequence[tuple[str, ir.Expression]], is_nested: bool
    ) -> tuple[list[cst.BaseStatement], list[tuple[str, PythonExpression]]]:
        """Write the values of an end, under names where clauses or other values read them."""
        checks = self._node.postconditions if kind == "output" else ()
        is_named = bool(checks or self._node.invariants)
        lines: list[cst.BaseStatement] = []
        entries: list[tuple[str, PythonExpression]] = []
        for name, value in values:
            self._naming.begin_statement()
            if isinstance(value, ir.Ref):
                self._naming.alias(kind, name, self._naming.name(value.kind, value.name))
            elif is_named or not isinstance(value, ir.Literal):
                target, is_new = self._choose_own_name(kind, name)
                heading = [_BLANK, write_comment(f"{kind} {name}, line {value.place.line}")] if not is_nested else []
                annotation = self._blocks.choose_annotation(value.type) if is_new else None
                lines.append(self._blocks.assign(target, value, heading, annotation=annotation))
            else:
                entries.append((name, self.expressions.write_stored(value)))
                continue
            entries.append((name, PythonExpression(cst.Name(self._naming.name(kind, name)), ATOM)))
        return lines, entries

    def _choose_own_name(self, kind: str, name: str) -> tuple[str, bool]:
        """Choose the identifier of a value at an end; True for its first use."""
        is_new = (kind, name) not in self._own_names
        if is_new:
            self._naming.drop_name(kind, name)
            self._own_names[kind, name] = self._naming.name(kind, name)
        self._naming.alias(kind, name, self._own_names[kind, name])
        return self._own_names[kind, name], is_new

    def _alias_absent(self, kind: str, declared: Sequence[ir.Output]) -> None:
        """Bind the outputs or error fields that this end does not set to null in invariants."""
        for each in declared:
            self._naming.alias(kind, each.name, "None")

    def _declare_failures(self, body: list[cst.BaseStatement]) -> list[cst.BaseStatement]:
        """Wrap the body so that failures declared as errors become declared errors."""
        members = declared_failures(self._node)
        if not members:
            return body
        code = cst.Name(self._naming.create_name("code"))
        caught_code = cst.Call(cst.Name("code_of"), [cst.Arg(cst.Name("failure"))])
        literals = cst.Tuple([cst.Element(cst.SimpleString(write_string(member))) for member in members])
        one_of = cst.Call(cst.Name("one_of"), [cst.Arg(caught_code), cst.Arg(literals)])
        annotation = cst.Annotation(self._types.write_annotation(OptionalOf(Enum(tuple(members)))))
        lines: list[cst.BaseStatement] = [
            cst.SimpleStatementLine([cst.AnnAssign(code, annotation, one_of)]),
            cst.If(
                cst.Comparison(code, [cst.ComparisonTarget(cst.Is(), cst.Name("None"))]),
                cst.IndentedBlock([cst.SimpleStatementLine([cst.Raise()])]),
            ),
        ]
        entries: list[tuple[str, PythonExpression]] = []
        self._alias_absent("output", self._node.outputs)
        for each in self._node.errors:
            value = "None" if isinstance(each.type, OptionalOf) else code.value
            self._naming.alias("error", each.name, value)
            entries.append((each.name, PythonExpression(cst.Name(value), ATOM)))
        lines += self._write_checks("invariant", self._node.invariants)
        raised = cst.Raise(
            cst.Call(cst.Name("DeclaredError"), [cst.Arg(self.expressions.write_dict(entries))]),
            cause=cst.From(cst.Name("failure")),
        )
        inside = [*lines, cst.SimpleStatementLine([raised])]
        caught = cst.ExceptHandler(
            body=cst.IndentedBlock(inside), type=cst.Name("FAILURES"), name=cst.AsName(cst.Name("failure"))
        )
        first = body[0].with_changes(leading_lines=[])
        return [cst.Try(body=cst.IndentedBlock([first, *body[1:]]), handlers=[caught], leading_lines=[_BLANK])]


def write_docstring(text: str) -> str:
    """Write a text as a docstring that ends like a sentence."""
    escaped = "".join(
        {"\\": "\\\\", '"': '\\"'}.get(c, c) if is_printable(c) else c.encode("unicode_escape").decode() for c in text
    )
    return f'"""{escaped}{"" if text.endswith((".", "!", "?")) else "."}"""'


@cache
def _parse_shell(template: str) -> cst.FunctionDef:
    """Parse a template of functions, once. Name, docstring and body are filled in for each node."""
    shell = parse_template_statement(template, name=cst.Name("name"), docstring=cst.SimpleString('""'))
    assert isinstance(shell, cst.FunctionDef)
    return shell
