"""Types, names and scopes of one text, as the checker found them, also in a text with errors.

The checker runs with a recorder that keeps every expression with its type and the names that are visible there. A text
that is no YAML is read without its faulty lines; a node without `intent` or `flow` is read as if it had them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from vesper.language.check.ast_to_ir import CheckedNode, check_document
from vesper.language.check.callees import Callees
from vesper.language.check.expressions.checker import ExpressionChecker
from vesper.language.check.library_check import check_library
from vesper.language.check.scope import Declared
from vesper.language.diagnostics.diagnostic import CheckingStopped, DiagnosticBag
from vesper.language.diagnostics.source import SourceFile, Span
from vesper.language.ir import nodes as ir
from vesper.language.syntax import ast, library_ast
from vesper.language.syntax.yaml.reader import read_yaml
from vesper.language.syntax.yaml_to_ast import build_ast, build_library, is_library
from vesper.language.syntax.yaml_tree import Mapping, Scalar, Sequence, Tree
from vesper.lsp.collection import Collection
from vesper.lsp.view import View
from vesper.values.types import Type

_MAX_BLANKED_LINES = 8
_NOWHERE = Span(0, 0)
_Part = TypeVar("_Part")
_CACHE: WeakKeyDictionary[Collection, dict[Path, tuple[str, object, Knowledge | None]]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Fact:
    """One expression as the checker saw it."""

    expression: ast.Expression
    type: Type | None
    """None for a faulty expression."""
    expected: Type | None
    declared: Declared | None
    """The declaration of a name, or of `input.x`."""
    visible: tuple[Declared, ...]
    value: ir.Expression | None


@dataclass(slots=True)
class Recorder:
    """Records what the expression checker of one file finds."""

    is_partial: bool
    """Whether parts of the document are missing or unread, so that the checker may drop others without a report."""
    facts: list[Fact] = field(default_factory=list)
    checker: ExpressionChecker | None = None

    def attach(self, checker: ExpressionChecker) -> None:
        """Record every expression that the checker infers."""
        self.checker = checker
        if self.is_partial:
            # Errors before `use` would end the check there, so the one for the missing parts comes right behind it.
            resolve_all = checker._types.resolve_all

            def resolving() -> None:
                checker.bag.error_count += 1
                resolve_all()

            checker._types.__dict__["resolve_all"] = resolving
        infer = checker.infer

        def recording(expression: ast.Expression, expected: Type | None) -> ir.Expression | None:
            visible = tuple(checker.scope.visible())
            found = infer(expression, expected)
            type_ = None if found is None else found.type
            self.facts.append(Fact(expression, type_, expected, _find_declaration(expression, checker), visible, found))
            return found

        checker.__dict__["infer"] = recording


def _find_declaration(expression: ast.Expression, checker: ExpressionChecker) -> Declared | None:
    match expression:
        case ast.Name(text=text):
            return checker.scope.find(text)
        case ast.Field(base=ast.Name(text="input" | "output" | "error" as base), name=name):
            return checker.scope.member(base, name.text)
        case _:
            return None


@dataclass(frozen=True, eq=False)
class Knowledge:
    """What is known about one text."""

    source: SourceFile
    tree: Tree
    document: ast.Document | library_ast.Library
    facts: tuple[Fact, ...]
    checker: ExpressionChecker | None
    node: ir.Node | None
    """The node in IR form; None with errors, and for a library."""

    @property
    def id(self) -> str:
        """Return the id of the node or library."""
        return self.id_word.text

    @property
    def id_word(self) -> ast.Word:
        document = self.document
        return document.node_id if isinstance(document, ast.Document) else document.library_id

    @cached_property
    def _by_span(self) -> dict[tuple[int, int], Fact]:
        """Facts by span. One with a type wins: a literal may be read twice, for two types."""
        found: dict[tuple[int, int], Fact] = {}
        for fact in self.facts:
            span = fact.expression.span
            known = found.get((span.start, span.end))
            if known is None or known.type is None or fact.type is not None:
                found[span.start, span.end] = fact
        return found

    def fact(self, expression: ast.Expression) -> Fact | None:
        """Return the fact about an expression."""
        return self._by_span.get((expression.span.start, expression.span.end))

    def fact_at(self, offset: int) -> Fact | None:
        """Return the fact about the smallest expression at an offset."""
        around = [each for (start, end), each in self._by_span.items() if start <= offset <= end]
        return min(around, key=lambda each: each.expression.span.end - each.expression.span.start, default=None)

    def all(self, kind: type[_Part]) -> Iterator[_Part]:
        """Yield every part of the document of this kind, in no particular order."""
        return (each for each in self.parts if isinstance(each, kind))

    @cached_property
    def parts(self) -> tuple[Any, ...]:
        """Return every part of the document."""
        return tuple(walk(self.document))


def walk(root: object) -> Iterator[Any]:
    """Yield every part of a syntax tree once; YAML trees inside it are no parts."""
    seen: set[int] = set()
    stack: list[Any] = [root]
    while stack:
        part = stack.pop()
        if isinstance(part, tuple):
            stack.extend(part)
        elif isinstance(part, dict):
            stack.extend(part.values())
        elif type(part).__module__.startswith("vesper.language.syntax.") and id(part) not in seen:
            if not isinstance(part, Scalar | Sequence | Mapping):
                seen.add(id(part))
                yield part
                stack.extend(getattr(part, name) for name in getattr(part, "__dataclass_fields__", ()))


def knowledge(view: View) -> Knowledge | None:
    """Return what is known about the newest text of a view, computed once."""
    cache = _CACHE.setdefault(view.collection, {})
    known = cache.get(view.path)
    if known is None or known[0] != view.source.text or known[1] is not view.checked:
        cache[view.path] = known = (view.source.text, view.checked, analyse_text(view, view.source.text))
    return known[2]


def analyse_text(view: View, text: str) -> Knowledge | None:
    """Return what would be known about another text of a view's file."""
    return analyse(SourceFile(view.source.path, text), view.collection.neighbours(view.path))


def analyse(source: SourceFile, callees: Callees) -> Knowledge | None:
    """Return what is known about a text; None where hardly anything of it is YAML."""
    readable, tree = read_tree(source)
    if not isinstance(tree, Mapping):
        return None
    checked: CheckedNode | None = None
    shape_bag, bag = DiagnosticBag(readable), DiagnosticBag(readable)
    document: ast.Document | library_ast.Library | None
    try:
        if is_library(tree):
            document = build_library(_with_defaults(tree, ("intent",)), shape_bag, is_partial=True)
        else:
            document = build_ast(_with_defaults(tree, ("node_id", "type", "intent", "flow")), shape_bag, True)
    except CheckingStopped:
        return None
    if document is None:
        return None
    recorder = Recorder(shape_bag.has_errors)
    bag.observe_checker = recorder.attach
    try:
        if isinstance(document, ast.Document):
            checked = check_document(document, bag, callees)
        else:
            check_library(document, bag, callees)
    except CheckingStopped:
        checked = None
    node = None if checked is None or bag.has_errors else checked.node
    return Knowledge(source, tree, document, tuple(recorder.facts), recorder.checker, node)


def read_tree(source: SourceFile) -> tuple[SourceFile, Tree | None]:
    """Return the tree of a text, without the lines that make it no YAML, and that text. Offsets are kept."""
    text, last = source.text, None
    for _ in range(_MAX_BLANKED_LINES + 1):
        readable = SourceFile(source.path, text)
        bag = DiagnosticBag(readable)
        try:
            tree = read_yaml(bag)
        except CheckingStopped:
            return readable, None
        if tree is not None:
            return readable, tree
        line = readable.position(bag.sorted()[0].primary.span.start)[0]
        while line > 1 and (line == last or not readable.line_text(line).strip()):
            line -= 1
        last = line
        start, old = readable.offset(line, 1), readable.line_text(line)
        if not old.strip():
            break  # nothing is left to leave out
        text = text[:start] + " " * len(old) + text[start + len(old) :]
    return source, None


def _with_defaults(tree: Mapping, keys: tuple[str, ...]) -> Mapping:
    """Return the mapping with values for the keys that it lacks or leaves empty."""
    defaults: dict[str, Tree] = {
        "node_id": Scalar("draft_v1", "", _NOWHERE),
        "type": Scalar("function", "", _NOWHERE),
        "intent": Scalar("A draft.", "", _NOWHERE),
        "flow": Sequence((), _NOWHERE),
    }
    kinds = {name: type(value) for name, value in defaults.items()}
    entries = {key.text: (key, value) for key, value in tree.entries}
    for name in keys:
        key, value = entries.get(name, (Scalar(name, "", _NOWHERE), None))
        if not isinstance(value, kinds[name]) or (isinstance(value, Scalar) and not value.text):
            entries[name] = (key, defaults[name])
    return replace(tree, entries=tuple(entries.values()))
