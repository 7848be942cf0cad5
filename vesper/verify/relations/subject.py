"""A node as relations read and edit it: tree, syntax tree, types of expressions."""

from __future__ import annotations

import random
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from typing import TypeAlias

from vesper.compiler import Compiled
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.source import Span
from vesper.language.ir import nodes as ir
from vesper.language.ir.failures import codes_of_expression
from vesper.language.ir.statements import all_statements
from vesper.language.syntax import ast
from vesper.language.syntax.scalar_text import place_text
from vesper.language.syntax.yaml.reader import read_yaml
from vesper.language.syntax.yaml_to_ast import build_ast
from vesper.language.syntax.yaml_tree import Mapping, Scalar, Sequence, Tree
from vesper.values.types import Type

Data: TypeAlias = "str | list[Data] | dict[str, Data] | Tree"
NOWHERE = Span(0, 0)
_LINE_BREAK = re.compile(r"[\r\n]")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def to_tree(data: Data) -> Tree:
    """Return nested Python data as a tree with quoted scalars; trees inside stay."""
    match data:
        case str():
            return Scalar(data, '"', NOWHERE)
        case list():
            return Sequence(tuple(map(to_tree, data)), NOWHERE)
        case dict():
            return Mapping(tuple((Scalar(key, "", NOWHERE), to_tree(value)) for key, value in data.items()), NOWHERE)
        case _:
            return data


def entry(tree: Tree | None, key: str) -> Tree | None:
    """Return the value of a key of a mapping, or None."""
    if not isinstance(tree, Mapping):
        return None
    return next((value for name, value in tree.entries if name.text == key), None)


@dataclass(frozen=True, slots=True)
class Site:
    """An expression that can be rewritten in place."""

    expression: ast.Expression
    section: str
    """`types`, `functions`, `preconditions`, `postconditions`, `invariants` or `flow`."""
    locals: frozenset[str]
    """Names that expressions, loops and parameters around it bind."""
    is_root: bool

    @property
    def span(self) -> Span:
        return self.expression.span


@dataclass(frozen=True, slots=True)
class _Root:
    expression: ast.Expression
    section: str
    locals: frozenset[str]
    is_written: bool
    """False for an entry of a list of names, and for stages of a `data_transform`."""


class Subject:
    """A compiled node with its tree and syntax tree."""

    def __init__(self, compiled: Compiled) -> None:
        self.compiled = compiled
        self.source = compiled.source
        bag = DiagnosticBag(self.source)
        tree = read_yaml(bag)
        assert isinstance(tree, Mapping), "a compiled node has a tree"
        document = build_ast(tree, bag)
        assert document is not None, "a compiled node has a syntax tree"
        self.tree = tree
        self.document = document
        self._written_words = frozenset(_WORD.findall(self.source.text))
        self._placed: dict[int, tuple[str, list[int]]] = {}
        self.prepare(max_sites=1)

    def prepare(self, max_sites: int) -> None:
        """Discard the names of the previous rewriting. The next one rewrites at most `max_sites` expressions."""
        self.words = set(self._written_words)
        """Every word of the document; a new name is none of them."""
        self.max_sites = max_sites

    def fresh(self, chance: random.Random, stem: str) -> str:
        """Return a name that the document does not use yet."""
        number = chance.randrange(10)
        while (name := f"{stem}_{number}") in self.words:
            number += 1
        self.words.add(name)
        return name

    def text_of(self, span: Span) -> str:
        """Return the text of an expression, on one line and without quotes of YAML."""
        found = self.locate(span)
        assert found is not None, "sites are located"
        _, text, start, end = found
        return _LINE_BREAK.sub(" ", text[start:end])

    def offset_in(self, span: Span, part: Span) -> tuple[int, int]:
        """Return the place of a part in the text of a span."""
        outer, inner = self.locate(span), self.locate(part)
        assert outer is not None and inner is not None, "sites are located"
        return inner[2] - outer[2], inner[3] - outer[2]

    # -- expressions ------------------------------------------------------------------------------

    @cached_property
    def roots(self) -> list[_Root]:
        document, none = self.document, frozenset[str]()
        found = [root for each in document.types for root in self._roots(each.constraints, "types", none)]
        for function in document.functions:
            bound = frozenset(each.name.text for each in function.parameters)
            found += self._roots(function.value, "functions", bound)
        for section in ("preconditions", "postconditions", "invariants", "flow"):
            found += self._roots(getattr(document, section), section, none)
        return found

    def _roots(self, part: object, section: str, bound: frozenset[str], is_written: bool = True) -> Iterator[_Root]:
        """Yield the outermost expressions of any part of the syntax tree."""
        if isinstance(part, ast.Expression):
            yield _Root(part, section, bound, is_written)
        elif isinstance(part, ast.Binding):
            inside = bound | {word.text for word in part.names}
            yield from self._roots(part.over, section, bound, is_written)
            yield from self._roots(part.where, section, inside, is_written)
        elif isinstance(part, ast.Loop):
            yield from self._loop_roots(part, section, bound)
        elif isinstance(part, ast.Step):
            is_written = part.operation.text != "data_transform"
            for each in (part.conditions, part.action, part.handlers):
                yield from self._roots(each, section, bound, is_written)
        elif isinstance(part, ast.Return | ast.ErrorValue):
            for word, value in part.values:
                yield from self._roots(value, section, bound, word.span != value.span)
        elif isinstance(part, tuple):
            for each in part:
                yield from self._roots(each, section, bound, is_written)
        elif isinstance(part, dict):
            yield from self._roots(tuple(part.values()), section, bound, is_written)
        elif is_dataclass(part):
            for field in fields(part):
                yield from self._roots(getattr(part, field.name), section, bound, is_written)

    def _loop_roots(self, loop: ast.Loop, section: str, bound: frozenset[str]) -> Iterator[_Root]:
        names = () if loop.binding is None else loop.binding.names
        inside = bound | {word.text for word in names} | {each.name.text for each in loop.state}
        yield from self._roots((loop.binding, loop.state), section, bound)
        parts = (loop.condition, loop.steps, loop.collect, loop.next, loop.stop_when)
        yield from self._roots(parts, section, inside)

    @cached_property
    def sites(self) -> list[Site]:
        """Every expression that can be rewritten, outer ones first."""
        found = [site for root in self.roots if root.is_written for site in self._sites(root)]
        return [site for site in found if self.locate(site.span) is not None]

    def _sites(self, root: _Root) -> Iterator[Site]:
        waiting = [(root.expression, root.locals)]
        is_root = True
        while waiting:
            expression, bound = waiting.pop()
            if not isinstance(expression, ast.Template | ast.JsonTree | ast.JsonLiteral):
                yield Site(expression, root.section, bound, is_root)
            is_root = False
            inner = bound | bound_names(expression)
            waiting += [(part, inner) for part in reversed(ast.parts(expression))]

    def of_kind(self, *kinds: type) -> list[Site]:
        return [site for site in self.sites if isinstance(site.expression, kinds)]

    @cached_property
    def _templates(self) -> set[int]:
        """Return the starts of scalars that are templates."""
        waiting = [root.expression for root in self.roots]
        found = set()
        while waiting:
            expression = waiting.pop()
            if isinstance(expression, ast.Template):
                found.add(expression.span.start)
            waiting += ast.parts(expression)
        return found

    # -- facts of the checked node ----------------------------------------------------------------

    @cached_property
    def _checked(self) -> dict[ir.Place, list[ir.Expression]]:
        found: dict[ir.Place, list[ir.Expression]] = {}
        for expression in self.compiled.node.expressions():
            found.setdefault(expression.place, []).append(expression)
        return found

    def checked_at(self, span: Span) -> list[ir.Expression]:
        """Return the checked expressions of a span; several where a conversion was added or a function inlined."""
        return self._checked.get(ir.Place(*self.source.positions(span)), [])

    def type_at(self, span: Span) -> Type | None:
        """Return the type of an expression if the place around it does not convert it."""
        found = self.checked_at(span)
        first = found[0].type if found else None
        return first if all(each.type == first for each in found) else None

    def can_fail(self, span: Span) -> bool:
        """Return whether an expression may fail. True for an expression that the checked node does not have."""
        found = self.checked_at(span)
        return not found or any(codes_of_expression(each) for each in found)

    @cached_property
    def has_numbered_requests(self) -> bool:
        """Return whether a request is identified by its position, which a new step changes."""
        requests = (ir.Request, ir.CallNode, ir.Loop)
        return any(each.name.startswith("_") for each in all_statements(self.compiled.node.body)
                   if isinstance(each, requests)) and not self.compiled.node.is_pure()  # fmt: skip

    # -- places in the tree -----------------------------------------------------------------------

    @cached_property
    def scalars(self) -> list[Scalar]:
        return sorted(_scalars(self.tree), key=lambda scalar: scalar.span.start)

    @cached_property
    def _starts(self) -> list[int]:
        return [scalar.span.start for scalar in self.scalars]

    def scalar_at(self, span: Span) -> Scalar | None:
        """Return the scalar around a span."""
        index = bisect_right(self._starts, span.start) - 1
        if index < 0 or self.scalars[index].span.end < span.end:
            return None
        return self.scalars[index]

    def is_all_of(self, span: Span, scalar: Scalar) -> bool:
        """Return whether a span is the whole text of a scalar."""
        found = self.locate(span)
        return found is not None and found[1].strip() == found[1][found[2] : found[3]] and found[0] is scalar

    def locate(self, span: Span) -> tuple[Scalar, str, int, int] | None:
        """Return the scalar around a span, its text, and the span's place there."""
        scalar = self.scalar_at(span)
        if scalar is None:
            return None
        if scalar.span.start not in self._placed:
            placed = place_text(self.source, scalar)
            self._placed[scalar.span.start] = placed.text, list(placed.offsets)
        text, offsets = self._placed[scalar.span.start]
        start = bisect_right(offsets, span.start) - 1
        end = bisect_right(offsets, span.end - 1)
        if start < 0 or start >= end or offsets[start] != span.start:
            return None
        # The literal text of a template is folded by YAML, which an edit of the raw text would not be.
        if scalar.span.start in self._templates and text != scalar.text:
            return None
        return scalar, text, start, end


def bound_names(expression: ast.Expression) -> frozenset[str]:
    """Return the names that an expression binds for its parts."""
    match expression:
        case ast.Let(name=name):
            return frozenset((name.text,))
        case ast.Call(binding=ast.Binding(names=names), named=named):
            return frozenset(word.text for word in (*names, *(word for word, _ in named)))
        case (
            ast.Aggregate(binding=ast.Binding(names=names))
            | ast.Quantifier(binding=ast.Binding(names=names))
            | ast.Comprehension(binding=ast.Binding(names=names))
        ):
            return frozenset(word.text for word in names)
        case _:
            return frozenset()


def _scalars(tree: Tree) -> Iterator[Scalar]:
    match tree:
        case Scalar():
            yield tree
        case Sequence(items=items):
            for item in items:
                yield from _scalars(item)
        case Mapping(entries=entries):
            for key, value in entries:
                yield key
                yield from _scalars(value)


class Edits:
    """Replacements in a document; those of texts do not overlap."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._texts: dict[int, list[tuple[int, int, str]]] = {}
        self._trees: dict[int, Tree] = {}
        self._declared: dict[str, list[tuple[str, Data]]] = {}
        self._taken: list[Span] = []

    def is_free(self, span: Span) -> bool:
        """Return whether no replacement overlaps a span."""
        return all(span.end <= each.start or each.end <= span.start for each in self._taken)

    def replace(self, span: Span, text: str) -> bool:
        """Replace the text of a span; False if it overlaps another or is not the text of one scalar."""
        found = self._subject.locate(span)
        if found is None or not self.is_free(span):
            return False
        scalar, _, start, end = found
        self._taken.append(span)
        self._texts.setdefault(id(scalar), []).append((start, end, text))
        return True

    def spans(self) -> list[Span]:
        """Return the spans of replaced texts."""
        return self._taken

    def put(self, old: Tree, new: Data) -> None:
        """Replace a part of the tree; the new one may contain the old one."""
        self._trees[id(old)] = to_tree(new)

    def declare(self, section: str, name: str, value: Data) -> None:
        """Add an entry at the end of a top-level section."""
        self._declared.setdefault(section, []).append((name, value))

    def tree(self) -> Tree:
        """Return the edited document. Cases are left out: they quote clauses and name steps."""
        root = self._subject.tree
        entries = [(key, value) for key, value in root.entries if key.text != "testing"]
        rebuilt = [(self._scalar(key), self.rebuild(value)) for key, value in entries]
        for section, added in self._declared.items():
            new = tuple((Scalar(name, "", NOWHERE), to_tree(value)) for name, value in added)
            for index, (key, value) in enumerate(rebuilt):
                if key.text == section and isinstance(value, Mapping):
                    rebuilt[index] = (key, Mapping((*value.entries, *new), NOWHERE))
                    break
            else:
                rebuilt.insert(3, (Scalar(section, "", NOWHERE), Mapping(new, NOWHERE)))
        return Mapping(tuple(rebuilt), NOWHERE)

    def rebuild(self, tree: Tree, outer: Tree | None = None) -> Tree:
        """Return a part of the document with its edits; `outer` is the part that it replaces."""
        if tree is not outer and id(tree) in self._trees:
            return self.rebuild(self._trees[id(tree)], tree)
        match tree:
            case Scalar():
                return self._scalar(tree)
            case Sequence(items=items):
                return Sequence(tuple(self.rebuild(item, outer) for item in items), NOWHERE)
            case Mapping(entries=entries):
                pairs = ((self._scalar(key), self.rebuild(value, outer)) for key, value in entries)
                return Mapping(tuple(pairs), NOWHERE)

    def _scalar(self, scalar: Scalar) -> Scalar:
        edits = self._texts.get(id(scalar))
        if edits is None:
            return scalar
        text = place_text(self._subject.source, scalar).text
        for start, end, new in sorted(edits, reverse=True):
            text = text[:start] + new + text[end:]
        return Scalar(_LINE_BREAK.sub(" ", text), '"', NOWHERE)
