"""A node as data that can be changed and written again: a tree of texts, and its expressions with their types.

Expressions are written as literal blocks (`|-`), in which YAML escapes nothing, so that replacing a part of one is
replacing a part of the text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import TypeAlias

from vesper.compiler import Compiled, compile_source
from vesper.language.diagnostics.diagnostic import CheckingStopped, DiagnosticBag
from vesper.language.diagnostics.source import SourceFile, Span
from vesper.language.ir.nodes import Local, Place, Ref
from vesper.language.syntax import ast, yaml_tree
from vesper.language.syntax.yaml.reader import read_yaml
from vesper.language.syntax.yaml_to_ast import build_ast
from vesper.values.types import Type
from vesper.verify.programs.types import quote_yaml

MAX_CASES = 4
"""Cases of a node that its variants keep, for their inputs."""
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(, [a-z0-9_]+)*", re.ASCII)
_EXPRESSIONS: tuple[type, ...] = (
    *(
        ast.Name,
        ast.Number,
        ast.String,
        ast.Boolean,
        ast.Null,
        ast.Prefix,
        ast.Infix,
        ast.IsNull,
        ast.InRange,
        ast.If,
        ast.Let,
    ),
    *(ast.Field, ast.Index, ast.Call, ast.Aggregate, ast.Quantifier, ast.ArrayLiteral, ast.RecordLiteral),
    *(
        ast.MapLiteral,
        ast.With,
        ast.Comprehension,
        ast.Cast,
        ast.Ascription,
        ast.AtDate,
        ast.NodeCall,
        ast.Template,
        ast.JsonTree,
    ),
)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A scalar of the document."""

    text: str
    style: str = ""
    """Quoting style as in YAML: empty for plain."""
    is_expression: bool = False

    @property
    def is_block(self) -> bool:
        """Whether the text is written as a literal block, verbatim."""
        return self.is_expression and self.text.isprintable() and self.text == self.text.strip() != ""


Part: TypeAlias = "Leaf | list[Part] | dict[str, Part]"
Keys: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Site:
    """An expression of the document, or a part of one."""

    path: Keys
    """Path of its scalar."""
    start: int
    end: int
    """Its place in the text of the scalar."""
    node: ast.Expression
    type: Type | None
    """None where the checker has no expression of its own there, as for the name of an enum member."""
    text: str
    names: tuple[tuple[str, str, Type], ...] = ()
    """Names that it refers to, each with its kind and its type; `local` is bound around or inside of it."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A name that expressions after its first use may refer to."""

    kind: str
    name: str
    type: Type
    offset: int


@dataclass(frozen=True)
class Document:
    """A node that compiles, as a tree, with its expressions."""

    tree: dict[str, Part]
    sites: tuple[Site, ...]
    variables: tuple[Variable, ...]
    offsets: Mapping[Keys, int]
    """Place of each expression's scalar in the written text."""

    def variables_at(self, path: Keys) -> list[Variable]:
        """Return names that are probably in scope of the scalar; the checker decides."""
        offset = self.offsets.get(path, 0)
        found = []
        for each in self.variables:
            is_near = each.offset == offset
            is_known = path[0] in ("flow", "contracts") and each.kind in ("input", "constant")
            is_earlier = path[0] == "flow" and each.kind == "step" and each.offset <= offset
            if is_near or is_known or is_earlier:
                found.append(each)
        return list({(each.name, each.type): each for each in found}.values())


def read_document(text: str, node_id: str = "document_v1") -> Document | None:
    """Return a node as data; None for a text that does not compile on its own."""
    parsed = _parse(text)
    if parsed is None:
        return None
    root, document = parsed
    starts = [each.span.start for each in _expressions(document)]
    tree = _to_part(root, sorted(starts))
    assert isinstance(tree, dict)
    tree = _without_expectations({**tree, "node_id": Leaf(node_id)})
    written, offsets = write_document(tree)
    compiled, _ = compile_source(SourceFile(f"{node_id}.vsp", written), judge_contracts=False)
    again = _parse(written)
    if compiled is None or again is None:
        return None
    sites = tuple(_sites(again[1], compiled, tree, offsets))
    return Document(tree, sites, tuple(_variables(compiled, offsets)), offsets)


def _parse(text: str) -> tuple[yaml_tree.Tree, ast.Document] | None:
    bag = DiagnosticBag(SourceFile("document.vsp", text))
    try:
        root = read_yaml(bag)
        document = None if root is None else build_ast(root, bag)
    except CheckingStopped:
        return None
    return None if root is None or document is None or bag.has_errors else (root, document)


def _to_part(tree: yaml_tree.Tree, starts: Sequence[int]) -> Part:
    match tree:
        case yaml_tree.Scalar(text=text, style=style, span=span):
            place = bisect_right(starts, span.start - 1)
            return Leaf(text, style, is_expression=place < len(starts) and starts[place] < span.end)
        case yaml_tree.Sequence(items=items):
            return [_to_part(each, starts) for each in items]
        case yaml_tree.Mapping(entries=entries):
            return {key.text: _to_part(value, starts) for key, value in entries}


def _without_expectations(tree: dict[str, Part]) -> dict[str, Part]:
    """Return the tree with cases that give inputs and completions, and expect nothing."""
    testing = tree.get("testing")
    cases = testing.get("test_cases") if isinstance(testing, dict) else None
    if not isinstance(cases, list):
        return {key: value for key, value in tree.items() if key != "testing"}
    kept: list[Part] = []
    for case in cases[:MAX_CASES]:
        assert isinstance(case, dict)
        entry = {key: value for key, value in case.items() if key in ("name", "inputs", "now", "effects")}
        if isinstance(effects := entry.get("effects"), list):
            entry["effects"] = [
                {key: value for key, value in each.items() if key != "request"}
                for each in effects
                if isinstance(each, dict)
            ]
        kept.append({**entry, "expect": {}})
    return {**tree, "testing": {"test_cases": kept}}


# -- writing --------------------------------------------------------------------------------------


def write_document(tree: dict[str, Part]) -> tuple[str, dict[Keys, int]]:
    """Return the text of a document, and where each expression's scalar starts in it."""
    pieces: list[str] = []
    offsets: dict[Keys, int] = {}
    size = 0

    def emit(text: str) -> None:
        nonlocal size
        pieces.append(text)
        size += len(text)

    def write(part: Part, margin: str, path: Keys) -> None:
        """Write a part after its key or dash, with the line break at its end."""
        if isinstance(part, Leaf):
            if part.is_block:
                emit(f" |-\n{margin}")
                offsets[path] = size
            emit(f"{'' if part.is_block else ' '}{_scalar(part)}\n")
        elif not part:
            emit(" {}\n" if isinstance(part, dict) else " []\n")
        else:
            # The first entry of a mapping in a list stands behind the dash.
            is_listed = isinstance(part, dict) and isinstance(path[-1], int)
            emit(" " if is_listed else "\n")
            entries: list[tuple[str | int, Part]] = [*part.items()] if isinstance(part, dict) else [*enumerate(part)]
            for number, (key, value) in enumerate(entries):
                head = f"{_key(key)}:" if isinstance(key, str) else "-"
                emit(head if is_listed and number == 0 else f"{margin}{head}")
                write(value, margin + "  ", (*path, key))

    for key, value in tree.items():
        emit(f"{_key(key)}:")
        write(value, "  ", (key,))
    return "".join(pieces), offsets


def _key(text: str) -> str:
    return text if _PLAIN_KEY.fullmatch(text) else quote_yaml(text)


def _scalar(leaf: Leaf) -> str:
    return leaf.text if leaf.is_block or leaf.style == "" else quote_yaml(leaf.text)


# -- reading --------------------------------------------------------------------------------------


def _expressions(value: object) -> Iterator[ast.Expression]:
    """Yield every expression of the syntax tree, an outer one before its parts."""
    if isinstance(value, _EXPRESSIONS):
        yield value  # type: ignore[misc]  # the tuple lists the members of the union
    if isinstance(value, tuple | list):
        for each in value:
            yield from _expressions(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from _expressions(each)
    elif is_dataclass(value) and not isinstance(value, Span | SourceFile | type):
        for each in fields(value):
            yield from _expressions(getattr(value, each.name))


def _sites(
    document: ast.Document, compiled: Compiled, tree: dict[str, Part], offsets: Mapping[Keys, int]
) -> Iterator[Site]:
    locate = _locator(tree, offsets)
    typed: dict[tuple[int, int], Type] = {}
    names: list[tuple[int, str, str, Type]] = []
    for each in compiled.node.expressions():
        start, end = _span(compiled.source, each.place)
        typed.setdefault((start, end), each.type)
        if isinstance(each, Ref):
            names.append((start, each.kind, each.name, each.type))
        elif isinstance(each, Local):
            names.append((start, "local", compiled.source.text[start:end], each.type))
    for node in _expressions(document):
        found = locate(node.span.start, node.span.end)
        if found is not None:
            path, start, end, text = found
            inside = [each[1:] for each in names if node.span.start <= each[0] < node.span.end]
            type_ = typed.get((node.span.start, node.span.end))
            yield Site(path, start, end, node, type_, text, tuple(dict.fromkeys(inside)))


def _locator(
    tree: dict[str, Part], offsets: Mapping[Keys, int]
) -> Callable[[int, int], tuple[Keys, int, int, str] | None]:
    paths = sorted(offsets, key=lambda path: offsets[path])
    starts = [offsets[path] for path in paths]

    def locate(start: int, end: int) -> tuple[Keys, int, int, str] | None:
        place = bisect_right(starts, start) - 1
        if place < 0:
            return None
        leaf = part_at(tree, paths[place])
        assert isinstance(leaf, Leaf)
        first, last = start - starts[place], end - starts[place]
        return None if last > len(leaf.text) else (paths[place], first, last, leaf.text[first:last])

    return locate


def _variables(compiled: Compiled, offsets: Mapping[Keys, int]) -> Iterator[Variable]:
    for given in compiled.node.inputs:
        yield Variable("input", given.name, given.type, 0)
    starts = sorted(offsets.values())
    for each in compiled.node.expressions():
        if isinstance(each, Ref):
            place = bisect_right(starts, _span(compiled.source, each.place)[0]) - 1
            if place >= 0:
                yield Variable(each.kind, each.name, each.type, starts[place])


def _span(source: SourceFile, place: Place) -> tuple[int, int]:
    return source.offset(place.line, place.column), source.offset(place.end_line, place.end_column)


# -- changing -------------------------------------------------------------------------------------


def part_at(tree: Part, path: Keys) -> Part:
    for key in path:
        tree = tree[key]  # type: ignore[index]  # a path leads through lists and mappings
    return tree


def replace_part(tree: Part, path: Keys, part: Part | None) -> Part:
    """Return the tree with another part at the path, or without the part there."""
    if not path:
        assert part is not None
        return part
    key, rest = path[0], path[1:]
    is_removed = part is None and not rest
    if isinstance(tree, dict):
        assert isinstance(key, str)
        if is_removed:
            return {name: value for name, value in tree.items() if name != key}
        return {**tree, key: part if not rest and part is not None else replace_part(tree[key], rest, part)}
    assert isinstance(tree, list)
    assert isinstance(key, int)
    if is_removed:
        return tree[:key] + tree[key + 1 :]
    return [*tree[:key], replace_part(tree[key], rest, part), *tree[key + 1 :]]


def walk_parts(part: Part, path: Keys = ()) -> Iterator[tuple[Keys, Part]]:
    """Yield every part of the tree with its path, an outer one first."""
    yield path, part
    for key, value in part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ():
        yield from walk_parts(value, (*path, key))
