"""YAML tree of a node, with a span on every key and scalar.

Takes a source file and returns `Scalar`, `Sequence` and `Mapping` values, or diagnostics for features outside the YAML
profile of nodes. The meaning of a scalar is decided later from its source text and its slot; YAML's implicit types
(`NO`, `0x1F`, `1e3`) are not applied.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

import yaml

from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag, Label
from vesper.language.diagnostics.source import Span

MAX_DEPTH = 32
MAX_VALUES = 8_192
MAX_ENTRIES = 4_096
_TURNS_TEXT = re.compile("[\u202a-\u202e\u2066-\u2069]")
"""Direction controls. They display text in another order than it is read, which can hide the behaviour of a node."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """A scalar as text, with its quoting style."""

    text: str
    style: str
    """Quoting style: empty for plain, or one of `'`, `"`, `|`, `>`."""
    span: Span


@dataclass(frozen=True, slots=True)
class Sequence:
    """A list."""

    items: tuple[Tree, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Mapping:
    """A mapping with its entries in source order."""

    entries: tuple[tuple[Scalar, Tree], ...]
    span: Span


Tree: TypeAlias = Scalar | Sequence | Mapping


def describe(tree: Tree) -> str:
    """Return a tree's kind in the words of a message."""
    if isinstance(tree, Scalar):
        return "nothing" if tree.text == "" and tree.style == "" else "text"
    return "a list" if isinstance(tree, Sequence) else "a mapping"


class _ReadingStopped(Exception):
    """Reading cannot continue; the bag holds the reason."""


def read_yaml(bag: DiagnosticBag) -> Tree | None:
    """Return the tree of the bag's source, or None when the bag has errors now."""
    root: Tree | None = None
    for control in _TURNS_TEXT.finditer(bag.source.text):
        feature = f"the character U+{ord(control[0]):04X}, which turns the direction of text,"
        bag.error(Code.YAML_FEATURE, Span(control.start(), control.end()), feature=feature)
    try:
        parser = yaml.CSafeLoader(bag.source.text)
        root = _tree_of(parser, bag)
    except _ReadingStopped:
        return None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        assert mark is not None, "libyaml always gives a position"
        context = f"{error.context}, " if error.context else ""
        bag.error(Code.INVALID_YAML, bag.source.character(mark.index), reason=f"{context}{error.problem}")
        return None
    except yaml.reader.ReaderError as error:
        offset = _offset_of_reader_error(bag.source.text, error)
        bag.error(Code.INVALID_YAML, bag.source.character(offset), reason=str(error.reason))
        return None
    except UnicodeEncodeError as error:  # half of a surrogate pair, possible in texts from programs
        bag.error(Code.INVALID_YAML, Span(error.start, error.end), reason="characters that are not Unicode text")
        return None
    if root is None and not bag.has_errors:
        bag.error(Code.INVALID_YAML, bag.source.character(0), reason="the file is empty")
    return None if bag.has_errors else root


def _offset_of_reader_error(text: str, error: yaml.reader.ReaderError) -> int:
    # libyaml gives only this position in UTF-8 bytes.
    return len(text.encode("utf-8", "surrogatepass")[: error.position].decode("utf-8", "ignore"))


class _Open:
    """A collection that has begun and not ended."""

    __slots__ = ("entries", "is_mapping", "items", "key", "key_spans", "start")

    def __init__(self, start: int, is_mapping: bool) -> None:
        self.start = start
        self.is_mapping = is_mapping
        self.items: list[Tree] = []
        """Items of a sequence, or values of a mapping."""
        self.entries: list[tuple[Scalar, Tree]] = []
        self.key: Scalar | None = None
        self.key_spans: dict[str, Span] = {}

    def close(self, end: Span) -> Tree:
        items = self.items
        # YAML ends a block collection where the next token begins; its span ends with its last part instead.
        whole = Span(self.start, end.end if end.end > end.start or not items else items[-1].span.end)
        return Mapping(tuple(self.entries), whole) if self.is_mapping else Sequence(tuple(items), whole)


def _tree_of(parser: yaml.CSafeLoader, bag: DiagnosticBag) -> Tree | None:
    """Return the tree of all events. The stack is a list, so that depth is checked instead of overflowing."""
    # One function for all events, since a node has hundreds of them.
    root: Tree | None = None
    top: _Open | None = None
    outside: list[_Open | None] = []
    values = 0
    tree: Tree
    while (event := parser.get_event()) is not None:
        assert event.start_mark is not None
        assert event.end_mark is not None
        span = Span(event.start_mark.index, event.end_mark.index)
        if isinstance(event, yaml.ScalarEvent):  # first, as the most frequent event
            if event.anchor is not None or event.tag is not None:
                _check_node(event, span, bag)
            tree = Scalar(event.value, event.style or "", span)
        elif isinstance(event, yaml.CollectionEndEvent):
            assert top is not None
            tree, top = top.close(span), outside.pop()
        elif isinstance(event, yaml.CollectionStartEvent):
            _check_node(event, span, bag)
            if len(outside) >= MAX_DEPTH:
                bag.error(Code.TOO_DEEP, span, limit=MAX_DEPTH, what="nesting in this document")
                raise _ReadingStopped
            if top is not None and top.is_mapping and top.key is None:
                _refuse("a key that is not a single word", span, bag)
                raise _ReadingStopped
            outside.append(top)
            top = _Open(span.start, isinstance(event, yaml.MappingStartEvent))
            continue
        elif isinstance(event, yaml.AliasEvent):
            _refuse("an alias", span, bag)
            tree = Scalar("", "", span)
        else:
            if isinstance(event, yaml.DocumentStartEvent) and root is not None:
                _refuse("a second document", span, bag)
                raise _ReadingStopped
            continue
        values += 1
        if values > MAX_VALUES:
            _too_large(tree.span, MAX_VALUES, "keys and values in this document", bag)
        if top is None:
            root = tree
            continue
        if len(top.items) >= MAX_ENTRIES:
            _too_large(tree.span, MAX_ENTRIES, "entries in this list or mapping", bag)
        if not top.is_mapping:
            top.items.append(tree)
        elif top.key is None:
            assert isinstance(tree, Scalar)
            _check_key(top, tree, bag)
            top.key = tree
        else:
            top.items.append(tree)
            top.entries.append((top.key, tree))
            top.key = None
    return root


def _check_node(event: yaml.ScalarEvent | yaml.CollectionStartEvent, span: Span, bag: DiagnosticBag) -> None:
    if event.anchor is not None:
        _refuse("an anchor", span, bag)
    if event.tag is not None:
        _refuse("a tag", span, bag)


def _refuse(feature: str, span: Span, bag: DiagnosticBag) -> None:
    bag.error(Code.YAML_FEATURE, span, feature=feature)


def _too_large(span: Span, limit: int, what: str, bag: DiagnosticBag) -> NoReturn:
    bag.error(Code.TOO_LARGE, span, limit=f"{limit:,}", what=what)
    raise _ReadingStopped


def _check_key(parent: _Open, key: Scalar, bag: DiagnosticBag) -> None:
    if key.text == "<<" and key.style == "":
        _refuse("a merge key", key.span, bag)
    first = parent.key_spans.setdefault(key.text, key.span)
    if first is not key.span:
        also = (Label(first, "the first one"),)
        bag.error(Code.DUPLICATE_KEY, key.span, "the second one", also=also, key=key.text)
