"""IR to a Python module: header, imports that are used, constants, one function, and the map back to the IR.

In: unoptimised IR. Out: text that a reviewer can read, and where in it each expression that can fail stands. The
metered form is the same tree with `meter(…)` around what loops go over, the traced form is that with `mark(index, …)`
around what is observed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst
from libcst.helpers import parse_template_module
from libcst.metadata import MetadataWrapper, PositionProvider

from vesper.codegen import templates
from vesper.codegen.deep_stack import on_deep_stack
from vesper.codegen.function import FunctionWriter, docstring
from vesper.codegen.layout import break_import, code_of, fits
from vesper.codegen.metering import Metering
from vesper.codegen.naming import Naming, kernel_name
from vesper.codegen.types import TypeWriter, typed_dict
from vesper.codegen.vocabulary import check_vocabulary
from vesper.ir import nodes as ir
from vesper.ir.encode import semantic_hash
from vesper.spec.operations import IMPLEMENTED
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


def generate_module(node: ir.Node, traced: bool = False, metered: bool = False) -> GeneratedModule:
    """One of three forms; the traced one is metered too."""
    if max((ir.depth(root) for root in node.roots()), default=0) > _SHALLOW:
        return on_deep_stack(lambda: _generate(node, traced, metered or traced))
    return _generate(node, traced, metered or traced)


def _generate(node: ir.Node, traced: bool, metered: bool) -> GeneratedModule:
    naming = Naming()
    types = TypeWriter(naming)
    writer = FunctionWriter(node, naming, types, traced, Metering(metered))
    success = typed_dict("Success", [(each.name, types.annotation(each.type)) for each in node.outputs])
    function = writer.function()
    checks = writer.contract_functions()
    constants = [
        _constant(naming.name("constant", c.name), writer.expressions.value(c.value, c).node, types.annotation(c.type))
        for c in node.constants
    ]
    decimals = [
        _constant(name, cst.Call(cst.Name("Decimal"), [cst.Arg(cst.SimpleString(f'"{decimal_text(value)}"'))]))
        for name, value in sorted(writer.expressions.decimals.items(), key=lambda item: item[1])
    ]
    body: list[cst.BaseStatement] = [
        *_separated(decimals, 1),
        *(statement for each in (*types.classes, success) for statement in _separated([each], 2)),
        *_separated(constants, 2 if node.constants else 0),
        *(statement for each in checks for statement in _separated([each], 2)),
        *_separated([function], 2),
    ]
    module = _module(node, body, sorted(writer.expressions.kernels))
    check_vocabulary(module.code, {kernel_name(op) for op in IMPLEMENTED}, {each.node for each in node.calls})
    positions = MetadataWrapper(module, unsafe_skip_copy=True).resolve(PositionProvider)
    sites = {}
    for expression, index in writer.expressions.sites.items():
        place = positions[expression]
        sites[place.start.line, place.start.column, place.end.line, place.end.column] = index
    parameters = tuple(naming.name("input", each.name) for each in node.inputs)
    return GeneratedModule(module.code, node.node_id, parameters, sites)


def _constant(name: str, value: cst.BaseExpression, type_: cst.BaseExpression | None = None) -> cst.SimpleStatementLine:
    final: cst.BaseExpression = cst.Name("Final")
    if type_ is not None:
        final = cst.Subscript(final, [cst.SubscriptElement(cst.Index(type_))])
    return cst.SimpleStatementLine([cst.AnnAssign(cst.Name(name), cst.Annotation(final), value)])


def _separated(statements: Sequence[cst.BaseStatement], blank_lines: int) -> list[cst.BaseStatement]:
    """The statements as one block, with blank lines before it."""
    if not statements:
        return []
    lines = [cst.EmptyLine(indent=False)] * blank_lines
    return [statements[0].with_changes(leading_lines=lines), *statements[1:]]


def _module(node: ir.Node, body: list[cst.BaseStatement], kernels: Sequence[str]) -> cst.Module:
    shell = parse_template_module(templates.MODULE, docstring=cst.SimpleString(docstring(node.source.intent)))
    used = _names_in(body)
    imports = [kept for line in shell.body[1:] if (kept := _keep_used(line, used)) is not None]
    called = [cst.parse_statement(f"from .{each.node} import {each.node}\n") for each in node.calls]
    imports = _grouped([*imports, *(cst.parse_statement(_kernel_import(op)) for op in kernels)])
    imports += [called[0].with_changes(leading_lines=[cst.EmptyLine(indent=False)]), *called[1:]] if called else []
    header = [
        HEADER,
        f"# {node.node_id}, from {_shown(node.source.path)}",
        f"# semantic hash {semantic_hash(node)}",
    ]
    return shell.with_changes(
        header=[cst.EmptyLine(comment=cst.Comment(line)) for line in header],
        body=[shell.body[0], *imports, *body],
    )


def _grouped(imports: list[cst.BaseStatement]) -> list[cst.BaseStatement]:
    """Imports in the order that linters want: Python's own, a blank line, ours, by module."""
    ordered = sorted(imports, key=lambda line: (code_of(line).strip().startswith("from vesper"), code_of(line)))
    own = next((line for line in ordered if code_of(line).strip().startswith("from vesper")), None)
    blank = [cst.EmptyLine(indent=False)]
    return [line.with_changes(leading_lines=blank if line in (ordered[0], own) else []) for line in ordered]


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
    if not names:
        return None
    kept = statement.with_changes(names=names, lpar=None, rpar=None)
    return line.with_changes(body=[kept if fits(kept, 0) else break_import(kept)])
