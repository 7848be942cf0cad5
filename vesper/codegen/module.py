"""IR to a Python module: header, imports that are used, constants, one function, its entry, and the map back.

In: unoptimised IR. Out: text that a reviewer can read, and where in it each expression that can fail stands. The
metered form is the same tree with `meter(…)` around what loops go over, the traced form is that with `mark(index, …)`
around what is observed. The last statement is the table that leads from lines of the module to lines of the node.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

import libcst as cst
from libcst.helpers import parse_template_module

from vesper.codegen import templates
from vesper.codegen.deep_stack import on_deep_stack
from vesper.codegen.entry import EntryWriter
from vesper.codegen.function import FunctionWriter, docstring, takes_now
from vesper.codegen.imports import imports_of
from vesper.codegen.layout.lines import source_of
from vesper.codegen.layout.source_table import source_table
from vesper.codegen.metering import Metering
from vesper.codegen.naming import Naming, kernel_names
from vesper.codegen.record_names import records_in
from vesper.codegen.types import TypeWriter, typed_dict
from vesper.codegen.vocabulary import check_identifiers, check_vocabulary, parsed
from vesper.language.ir import nodes as ir
from vesper.language.ir.encode import semantic_hash
from vesper.values.model import decimal_text
from vesper.values.unicode import is_printable

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
    entry = EntryWriter(node, naming, types, writer.expressions, writer.own)
    entry_text, _ = source_of(cst.parse_module(entry.text(takes_now(node))))
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
    used = {each.id for each in ast.walk(parsed(entry_text)) if isinstance(each, ast.Name)}
    module = _module(node, body, sorted(writer.expressions.kernels), used)
    code, positions = source_of(module, {*writer.expressions.sites, *writer.expressions.ends})
    places = [each.place for each in node.expressions()]
    sites: dict[Position, int] = {}
    lines: dict[int, int] = {}
    for expression, index in writer.expressions.sites.items():
        sites[positions[expression]] = index
        lines.setdefault(positions[expression][0], places[index].line)
    lines |= {positions[end][0]: line for end, line in writer.expressions.ends.items() if end in positions}
    text = "\n\n".join([code, entry_text, source_table(node, lines)])
    check_vocabulary(text, kernel_names() | entry.functions, {each.node for each in node.calls})
    parameters = tuple(naming.name("input", each.name) for each in node.inputs)
    return GeneratedModule(text, node.node_id, parameters, sites)


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


def _module(node: ir.Node, body: list[cst.BaseStatement], kernels: Sequence[str], used: set[str]) -> cst.Module:
    shell = _shell()
    prose = cst.SimpleStatementLine([cst.Expr(cst.SimpleString(docstring(node.source.intent)))])
    used = used | _names_in(body) | {"Source"}  # of the table that comes last
    check_identifiers(used | {each.node for each in node.calls} | _declared(node))
    called = [cst.parse_statement(f"from .{each.node} import {each.node}\n") for each in node.calls]
    imports = imports_of(shell.body[1:], used, kernels)
    imports += [called[0].with_changes(leading_lines=[cst.EmptyLine(indent=False)]), *called[1:]] if called else []
    header = [
        HEADER,
        f"# {node.node_id}, from {_shown(node.source.path)}",
        f"# semantic hash {semantic_hash(node)}",
    ]
    return shell.with_changes(
        header=[cst.EmptyLine(comment=cst.Comment(line)) for line in header],
        body=[prose, *imports, *body],
    )


@cache
def _shell() -> cst.Module:
    """The template of modules, parsed once: its docstring is the one thing in it that differs from node to node."""
    return parse_template_module(templates.MODULE, docstring=cst.SimpleString('""'))


def _declared(node: ir.Node) -> set[str]:
    """The names that a node declares, and those of the fields of its records: some stand only in classes."""
    types = [*(each.type for each in node.inputs), *(each.type for each in node.constants)]
    types += [each.type for each in (*node.outputs, *node.errors)]
    fields = {name for type_ in types for record in records_in(type_) for name, _ in record.fields}
    declared = {each.name for each in (*node.outputs, *node.errors)} | {each.name for each in node.inputs}
    return fields | declared


def _shown(text: str) -> str:
    """A text on one line of a comment. In the first two lines of a file Python would take `coding: utf-7` for the
    encoding of what follows, so that a node could be called what turns its prose into code."""
    shown = "".join(c if is_printable(c) else c.encode("unicode_escape").decode() for c in text)
    return shown.replace("coding:", "codin\\x67:").replace("coding=", "codin\\x67=")


def _names_in(body: Sequence[cst.BaseStatement]) -> set[str]:
    """The names that stand in expressions. libcst's own visitors build every node again to find that nothing changed;
    this walk only looks, and takes a tenth of the time."""
    found: set[str] = set()
    waiting: list[object] = [*body]
    while waiting:
        each: Any = waiting.pop()
        kind: type[object] = type(
            each
        )  # exactly: asking an abstract class takes most of the time that there is to save
        if kind is cst.Name:
            found.add(each.value)
        elif kind is list or kind is tuple:
            waiting += each
        elif kind is cst.Arg:  # and not its keyword
            waiting.append(each.value)
        elif kind is cst.AnnAssign:  # and not the field or name that it is about
            waiting += [each.annotation, each.value]
        else:
            waiting += [getattr(each, part) for part in _parts(each.__class__)]
    return found


@cache
def _parts(kind: type) -> tuple[str, ...]:
    """Where a node of this kind has others; blanks and brackets have no names, and neither has what is no node."""
    if not issubclass(kind, cst.CSTNode):
        return ()
    blank = ("whitespace", "lpar", "rpar", "lbracket", "rbracket", "lbrace", "rbrace", "leading_lines", "comma")
    return tuple(each.name for each in fields(kind) if not each.name.startswith(blank))
