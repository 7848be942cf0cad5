"""IR to a Python module: header, imports that are used, constants, one function, and the map back to the IR.

In: unoptimised IR. Out: text that a reviewer can read, and where in it each expression that can fail stands. The
traced form is the same tree with `mark(index, …)` around what is observed.
"""

from __future__ import annotations

import keyword
from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst
from libcst.helpers import parse_template_module, parse_template_statement
from libcst.metadata import MetadataWrapper, PositionProvider

from vesper.codegen import templates
from vesper.codegen.deep_stack import on_deep_stack
from vesper.codegen.expressions import string_literal
from vesper.codegen.function import FunctionWriter, docstring, python_type
from vesper.codegen.layout import break_dict, code_of
from vesper.codegen.naming import Naming, kernel_name
from vesper.codegen.vocabulary import check_vocabulary
from vesper.ir import nodes as ir
from vesper.ir.encode import semantic_hash
from vesper.spec.operations import OPERATIONS
from vesper.spec.values import decimal_text

HEADER = "# AUTO-GENERATED - DO NOT EDIT"

_SHALLOW = 12
"""Expressions of this depth are written within a hundred frames or so."""

Position = tuple[int, int, int, int]
"""Line, column, end line, end column; lines from 1, columns from 0, as Python's own code positions."""


@dataclass(frozen=True, slots=True)
class GeneratedModule:
    text: str
    function: str
    parameters: tuple[str, ...]
    """The function's parameter for each input, in declared order."""
    sites: dict[Position, int]
    """Which IR expression a Python expression that can fail stands for."""


def generate_module(node: ir.Node, traced: bool = False) -> GeneratedModule:
    if max((ir.depth(root) for root in node.roots()), default=0) > _SHALLOW:
        return on_deep_stack(lambda: _generate(node, traced))
    return _generate(node, traced)


def _generate(node: ir.Node, traced: bool) -> GeneratedModule:
    naming = Naming()
    writer = FunctionWriter(node, naming, traced)
    function = writer.function()
    constants = [
        _constant(naming.name("constant", c.name), writer.expressions.value(c.value, c).node) for c in node.constants
    ]
    decimals = [
        _constant(name, cst.Call(cst.Name("Decimal"), [cst.Arg(cst.SimpleString(f'"{decimal_text(value)}"'))]))
        for name, value in sorted(writer.expressions.decimals.items(), key=lambda item: item[1])
    ]
    body: list[cst.BaseStatement] = [
        *_separated(decimals, 1),
        *_separated(constants, 1),
        *_separated([_success(node)], 2),
        *_separated([function], 2),
    ]
    module = _module(node, body, sorted(writer.expressions.kernels))
    check_vocabulary(module.code, {kernel_name(op) for op in OPERATIONS})
    positions = MetadataWrapper(module, unsafe_skip_copy=True).resolve(PositionProvider)
    sites = {}
    for expression, index in writer.expressions.sites.items():
        place = positions[expression]
        sites[place.start.line, place.start.column, place.end.line, place.end.column] = index
    parameters = tuple(naming.name("input", each.name) for each in node.inputs)
    return GeneratedModule(module.code, node.node_id, parameters, sites)


def _constant(name: str, value: cst.BaseExpression) -> cst.SimpleStatementLine:
    annotation = cst.Annotation(cst.Name("Final"))
    return cst.SimpleStatementLine([cst.AnnAssign(cst.Name(name), annotation, value)])


def _separated(statements: Sequence[cst.BaseStatement], blank_lines: int) -> list[cst.BaseStatement]:
    """The statements as one block, with blank lines before it."""
    if not statements:
        return []
    lines = [cst.EmptyLine(indent=False)] * blank_lines
    return [statements[0].with_changes(leading_lines=lines), *statements[1:]]


def _success(node: ir.Node) -> cst.BaseStatement:
    if any(keyword.iskeyword(each.name) for each in node.outputs):
        return _success_as_call(node)
    shell = parse_template_statement(templates.SUCCESS)
    assert isinstance(shell, cst.ClassDef)
    fields = [
        cst.SimpleStatementLine([cst.AnnAssign(cst.Name(o.name), cst.Annotation(python_type(o.type)))])
        for o in node.outputs
    ]
    return shell.with_changes(body=cst.IndentedBlock(fields))


def _success_as_call(node: ir.Node) -> cst.BaseStatement:
    """The other spelling of the same type, for outputs that Python could not name in a class."""
    entries = [
        cst.DictElement(cst.SimpleString(string_literal(each.name)), python_type(each.type)) for each in node.outputs
    ]
    call = cst.Call(
        cst.Name("TypedDict"), [cst.Arg(cst.SimpleString('"Success"')), cst.Arg(break_dict(cst.Dict(entries)))]
    )
    return cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(cst.Name("Success"))], call)])


def _module(node: ir.Node, body: list[cst.BaseStatement], kernels: Sequence[str]) -> cst.Module:
    shell = parse_template_module(templates.MODULE, docstring=cst.SimpleString(docstring(node.source.intent)))
    used = _names_in(body)
    imports = [kept for line in shell.body[1:] if (kept := _keep_used(line, used)) is not None]
    imports += [cst.parse_statement(_kernel_import(op)) for op in kernels]
    header = [
        HEADER,
        f"# {node.node_id}, from {_shown(node.source.path)}",
        f"# semantic hash {semantic_hash(node)}",
    ]
    return shell.with_changes(
        header=[cst.EmptyLine(comment=cst.Comment(line)) for line in header],
        body=[shell.body[0], *imports, *body],
    )


def _kernel_import(op: str) -> str:
    family, _, verb = op.partition(".")
    return f"from vesper.kernels.{family} import {verb} as {kernel_name(op)}\n"


def _shown(text: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _names_in(body: Sequence[cst.BaseStatement]) -> set[str]:
    found: set[str] = set()

    class Names(cst.CSTVisitor):
        def visit_Name(self, node: cst.Name) -> None:
            found.add(node.value)

    for statement in body:
        statement.visit(Names())
    return found


def _keep_used(line: cst.BaseStatement, used: set[str]) -> cst.BaseStatement | None:
    """An import line of the template with only the names that the module mentions."""
    assert isinstance(line, cst.SimpleStatementLine)
    statement = line.body[0]
    assert isinstance(statement, cst.ImportFrom)
    assert not isinstance(statement.names, cst.ImportStar)
    names = [
        name.with_changes(comma=cst.MaybeSentinel.DEFAULT) for name in statement.names if code_of(name.name) in used
    ]
    return line.with_changes(body=[statement.with_changes(names=names)]) if names else None
