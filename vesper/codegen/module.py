"""IR to a Python module: header, used imports, constants, one function, its entry, and the table of source lines.

The input is unoptimised IR; the output is text that a reviewer can read, with the position of each expression that can
fail. The metered form is the same tree with `meter(…)` around the items of loops, the traced form is the metered one
with `mark(index, …)` around observed expressions. The last statement maps lines of the module to lines of the node.
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
from vesper.codegen.deep_stack import run_on_deep_stack
from vesper.codegen.entry import EntryWriter
from vesper.codegen.function import FunctionWriter, takes_now, write_docstring
from vesper.codegen.imports import write_imports
from vesper.codegen.layout.lines import write_source
from vesper.codegen.layout.source_table import write_source_table
from vesper.codegen.metering import Metering
from vesper.codegen.naming import Naming, kernel_names
from vesper.codegen.record_names import find_records
from vesper.codegen.types import TypeWriter, write_typed_dict
from vesper.codegen.vocabulary import check_identifiers, check_vocabulary, parse
from vesper.language.ir import nodes as ir
from vesper.language.ir.encode import semantic_hash
from vesper.values.model import decimal_text
from vesper.values.unicode import is_printable

HEADER = "# AUTO-GENERATED - DO NOT EDIT"

_SHALLOW = 12
"""Expressions of this depth are written within a hundred frames or so."""

_MAX_INTEGER_DIGITS = 1000
"""CPython refuses longer integers in source code."""

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
    """Generate the plain, the metered or the traced form of a node. The traced one is metered too."""
    if max((ir.depth(root) for root in node.roots()), default=0) > _SHALLOW:
        return run_on_deep_stack(lambda: _generate(node, traced, metered or traced))
    return _generate(node, traced, metered or traced)


def _generate(node: ir.Node, traced: bool, metered: bool) -> GeneratedModule:
    naming = Naming()
    types = TypeWriter(naming)
    writer = FunctionWriter(node, naming, types, traced, Metering(metered))
    success = write_typed_dict("Success", [(each.name, types.write_annotation(each.type)) for each in node.outputs])
    function = writer.write_function()
    functions = writer.functions.write_definitions()
    checks = writer.write_contract_functions()
    entry = EntryWriter(node, naming, types, writer.expressions, writer.form_parameters)
    entry_text, _ = write_source(cst.parse_module(entry.write(takes_now(node))))
    constants = [
        _write_constant(
            naming.name("constant", c.name),
            writer.expressions.write_literal(c.type, c.value).node,
            types.write_annotation(c.type),
        )
        for c in node.constants
    ]
    # A default that could be changed is no default of a parameter, where linters expect none.
    constants += [
        _write_constant(
            naming.name("default", each.name),
            writer.expressions.write_literal(each.type, each.default).node,
            types.write_annotation(each.type),
        )
        for each in node.inputs
        if isinstance(each.default, list | dict)
    ]
    decimals = [
        _write_constant(name, cst.Call(cst.Name("Decimal"), [cst.Arg(_write_decimal_argument(decimal_text(value)))]))
        for name, value in sorted(writer.expressions.decimals.items(), key=lambda item: item[1])
    ]
    body: list[cst.BaseStatement] = [
        *_separate(decimals, 1),
        *(statement for each in (*types.classes, success) for statement in _separate([each], 2)),
        *_separate(constants, 2),
        *(statement for each in (*functions, *checks) for statement in _separate([each], 2)),
        *_separate([function], 2),
    ]
    used = {each.id for each in ast.walk(parse(entry_text)) if isinstance(each, ast.Name)}
    module = _write_module(node, body, sorted(writer.expressions.kernels), used)
    code, positions = write_source(module, {*writer.expressions.sites, *writer.expressions.ends})
    places = [each.place for each in node.expressions()]
    sites: dict[Position, int] = {}
    lines: dict[int, int] = {}
    for expression, index in writer.expressions.sites.items():
        sites[positions[expression]] = index
        lines.setdefault(positions[expression][0], places[index].line)
    lines |= {positions[end][0]: line for end, line in writer.expressions.ends.items() if end in positions}
    text = "\n\n".join([code, entry_text, write_source_table(node, lines)])
    check_vocabulary(
        text, kernel_names() | entry.functions | writer.functions.names, {each.node for each in node.calls}
    )
    parameters = tuple(naming.name("input", each.name) for each in node.inputs)
    return GeneratedModule(text, node.node_id, parameters, sites)


def _write_constant(
    name: str, value: cst.BaseExpression, type_: cst.BaseExpression | None = None
) -> cst.SimpleStatementLine:
    final: cst.BaseExpression = cst.Name("Final")
    if type_ is not None:
        final = cst.Subscript(final, [cst.SubscriptElement(cst.Index(type_))])
    return cst.SimpleStatementLine([cst.AnnAssign(cst.Name(name), cst.Annotation(final), value)])


def _write_decimal_argument(text: str) -> cst.BaseExpression:
    """Write a short whole number as an integer, and everything else as a string."""
    digits = text.removeprefix("-")
    if not digits.isdecimal() or len(digits) > _MAX_INTEGER_DIGITS:
        return cst.SimpleString(f'"{text}"')
    number = cst.Integer(digits)
    return number if digits == text else cst.UnaryOperation(cst.Minus(), number)


def _separate(statements: Sequence[cst.BaseStatement], blank_lines: int) -> list[cst.BaseStatement]:
    """Return the statements as one block, with blank lines before it."""
    if not statements:
        return []
    lines = [cst.EmptyLine(indent=False)] * blank_lines
    return [statements[0].with_changes(leading_lines=lines), *statements[1:]]


def _write_module(node: ir.Node, body: list[cst.BaseStatement], kernels: Sequence[str], used: set[str]) -> cst.Module:
    shell = _parse_shell()
    prose = cst.SimpleStatementLine([cst.Expr(cst.SimpleString(write_docstring(node.source.intent)))])
    used = used | _find_names(body) | {"Source"}  # of the table that comes last
    check_identifiers(used | {each.node for each in node.calls} | _find_declared_names(node))
    called = [cst.parse_statement(f"from .{each.node} import {each.node}\n") for each in node.calls]
    imports = write_imports(shell.body[1:], used, kernels)
    imports += [called[0].with_changes(leading_lines=[cst.EmptyLine(indent=False)]), *called[1:]] if called else []
    header = [
        HEADER,
        f"# {node.node_id}, from {_escape(node.source.path)}",
        f"# semantic hash {semantic_hash(node)}",
    ]
    return shell.with_changes(
        header=[cst.EmptyLine(comment=cst.Comment(line)) for line in header],
        body=[prose, *imports, *body],
    )


@cache
def _parse_shell() -> cst.Module:
    """Parse the template of modules, once. Only its docstring differs from node to node."""
    return parse_template_module(templates.MODULE, docstring=cst.SimpleString('""'))


def _find_declared_names(node: ir.Node) -> set[str]:
    """Return the names that a node declares, and the names of the fields of its records.

    Some of them occur only in classes.
    """
    types = [*(each.type for each in node.inputs), *(each.type for each in node.constants)]
    types += [each.type for each in (*node.outputs, *node.errors)]
    fields = {name for type_ in types for record in find_records(type_) for name, _ in record.fields}
    declared = {each.name for each in (*node.outputs, *node.errors)} | {each.name for each in node.inputs}
    return fields | declared


def _escape(text: str) -> str:
    """Return a text as one line of a comment.

    In the first two lines of a file Python would read `coding: utf-7` as the encoding of the file, so that a path could
    turn prose into code.
    """
    shown = "".join(c if is_printable(c) else c.encode("unicode_escape").decode() for c in text)
    return shown.replace("coding:", "codin\\x67:").replace("coding=", "codin\\x67=")


def _find_names(body: Sequence[cst.BaseStatement]) -> set[str]:
    """Return the names in expressions.

    libcst's own visitors construct every node again even if nothing changes; this walk only reads, in a tenth of the
    time.
    """
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
            waiting += [getattr(each, part) for part in _find_parts(each.__class__)]
    return found


@cache
def _find_parts(kind: type) -> tuple[str, ...]:
    """Find the attributes with inner nodes; blanks, brackets and other objects have no names."""
    if not issubclass(kind, cst.CSTNode):
        return ()
    blank = ("whitespace", "lpar", "rpar", "lbracket", "rbracket", "lbrace", "rbrace", "leading_lines", "comma")
    return tuple(each.name for each in fields(kind) if not each.name.startswith(blank))
