"""Text to a YAML tree with a span on every key and scalar, and nothing that the YAML profile leaves out.

In: a source file. Out: `Scalar`, `Sequence` and `Mapping` values, or diagnostics. What a scalar means is decided
later, by the slot it stands in and from its source text; YAML's own guesses (`NO`, `0x1F`, `1e3`) never happen here.
"""

from __future__ import annotations

import re
from typing import NoReturn, TypeAlias

import yaml

from vesper.diagnostics.codes import Code
from vesper.diagnostics.diagnostic import DiagnosticBag, Label
from vesper.diagnostics.source import Span
from vesper.spec.record import record

MAX_DEPTH = 32
MAX_VALUES = 8_192
MAX_ENTRIES = 4_096
_TURNS_TEXT = re.compile("[\u202a-\u202e\u2066-\u2069]")
"""Shown, the text around one is in another order than it is read: a way to hide what a node does."""


@record(frozen=True, slots=True)
class Scalar:
    text: str
    style: str
    """How it is written: empty for plain, or one of `'`, `"`, `|`, `>`."""
    span: Span


@record(frozen=True, slots=True)
class Sequence:
    items: tuple[Tree, ...]
    span: Span


@record(frozen=True, slots=True)
class Mapping:
    entries: tuple[tuple[Scalar, Tree], ...]
    span: Span


Tree: TypeAlias = Scalar | Sequence | Mapping


def describe(tree: Tree) -> str:
    """A tree's kind in the words of a message."""
    if isinstance(tree, Scalar):
        return "nothing" if tree.text == "" and tree.style == "" else "text"
    return "a list" if isinstance(tree, Sequence) else "a mapping"


class _Stop(Exception):
    """Reading cannot go on; the reason is in the bag."""


def read_yaml(bag: DiagnosticBag) -> Tree | None:
    """The tree of the bag's source, or None when the bag has errors now."""
    reader = _Reader(bag)
    for control in _TURNS_TEXT.finditer(bag.source.text):
        feature = f"the character U+{ord(control[0]):04X}, which turns the direction of text,"
        bag.error(Code.YAML_FEATURE, Span(control.start(), control.end()), feature=feature)
    try:
        parser = yaml.CSafeLoader(bag.source.text)
        while (event := parser.get_event()) is not None:
            reader.take(event)
    except _Stop:
        return None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        assert mark is not None, "libyaml always says where"
        context = f"{error.context}, " if error.context else ""
        bag.error(Code.INVALID_YAML, bag.source.character(mark.index), reason=f"{context}{error.problem}")
        return None
    except yaml.reader.ReaderError as error:
        offset = _offset_of_reader_error(bag.source.text, error)
        bag.error(Code.INVALID_YAML, bag.source.character(offset), reason=str(error.reason))
        return None
    except UnicodeEncodeError as error:  # half of a surrogate pair; no file has one, a text that a program gives may
        bag.error(Code.INVALID_YAML, Span(error.start, error.end), reason="characters that are not Unicode text")
        return None
    if reader.root is None and not bag.has_errors:
        bag.error(Code.INVALID_YAML, bag.source.character(0), reason="the file is empty")
    return None if bag.has_errors else reader.root


def _offset_of_reader_error(text: str, error: yaml.reader.ReaderError) -> int:
    # libyaml gives this position in bytes of UTF-8, the only one it does.
    return len(text.encode("utf-8", "surrogatepass")[: error.position].decode("utf-8", "ignore"))


class _Open:
    """A collection that has begun and not ended."""

    def __init__(self, start: int, is_mapping: bool) -> None:
        self.start = start
        self.is_mapping = is_mapping
        self.items: list[Tree] = []
        self.entries: list[tuple[Scalar, Tree]] = []
        self.key: Scalar | None = None
        self.key_spans: dict[str, Span] = {}


class _Reader:
    """Builds the tree from events with a stack of its own, so that depth is a number and not a crash."""

    def __init__(self, bag: DiagnosticBag) -> None:
        self._bag = bag
        self._open: list[_Open] = []
        self._values = 0
        self.root: Tree | None = None

    def take(self, event: yaml.Event) -> None:
        assert event.start_mark is not None
        assert event.end_mark is not None
        span = Span(event.start_mark.index, event.end_mark.index)
        if isinstance(event, yaml.ScalarEvent):  # first, because most are
            if event.anchor is not None or event.tag is not None:
                self._check_node(event, span)
            self._add(Scalar(event.value, event.style or "", span))
        elif isinstance(event, yaml.DocumentStartEvent) and self.root is not None:
            self._refuse("a second document", span)
            raise _Stop
        elif isinstance(event, yaml.AliasEvent):
            self._refuse("an alias", span)
            self._add(Scalar("", "", span))
        elif isinstance(event, yaml.CollectionStartEvent):
            self._check_node(event, span)
            if len(self._open) >= MAX_DEPTH:
                self._bag.error(Code.TOO_DEEP, span, limit=MAX_DEPTH, what="nesting in this document")
                raise _Stop
            if self._open and self._open[-1].is_mapping and self._open[-1].key is None:
                self._refuse("a key that is not a single word", span)
                raise _Stop
            self._open.append(_Open(span.start, isinstance(event, yaml.MappingStartEvent)))
        elif isinstance(event, yaml.CollectionEndEvent):
            done = self._open.pop()
            # A block collection ends, for YAML, where the next thing begins; for a reader it ends with its last part.
            parts = [value for _, value in done.entries] if done.is_mapping else done.items
            whole = Span(done.start, span.end if span.end > span.start or not parts else parts[-1].span.end)
            self._add(Mapping(tuple(done.entries), whole) if done.is_mapping else Sequence(tuple(done.items), whole))

    def _check_node(self, event: yaml.ScalarEvent | yaml.CollectionStartEvent, span: Span) -> None:
        if event.anchor is not None:
            self._refuse("an anchor", span)
        if event.tag is not None:
            self._refuse("a tag", span)

    def _refuse(self, feature: str, span: Span) -> None:
        self._bag.error(Code.YAML_FEATURE, span, feature=feature)

    def _add(self, tree: Tree) -> None:
        self._values += 1
        if self._values > MAX_VALUES:
            self._too_large(tree.span, MAX_VALUES, "keys and values in this document")
        if not self._open:
            self.root = tree
            return
        parent = self._open[-1]
        if len(parent.items) >= MAX_ENTRIES or len(parent.entries) >= MAX_ENTRIES:
            self._too_large(tree.span, MAX_ENTRIES, "entries in this list or mapping")
        if not parent.is_mapping:
            parent.items.append(tree)
        elif parent.key is None:
            assert isinstance(tree, Scalar)
            self._check_key(parent, tree)
            parent.key = tree
        else:
            parent.entries.append((parent.key, tree))
            parent.key = None

    def _too_large(self, span: Span, limit: int, what: str) -> NoReturn:
        self._bag.error(Code.TOO_LARGE, span, limit=f"{limit:,}", what=what)
        raise _Stop

    def _check_key(self, parent: _Open, key: Scalar) -> None:
        if key.text == "<<" and key.style == "":
            self._refuse("a merge key", key.span)
        first = parent.key_spans.setdefault(key.text, key.span)
        if first is not key.span:
            self._bag.error(
                Code.DUPLICATE_KEY, key.span, "the second one", also=(Label(first, "the first one"),), key=key.text
            )
