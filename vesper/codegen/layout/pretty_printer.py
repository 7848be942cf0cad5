"""A small pretty printer, which turns documents into lines of a given width.

A document marks where a line may be broken. The documents and the rules are those of the formatter `ruff format`, so
that generated code looks like most formatted Python. A group is printed on one line if that fits, else all its line
breaks are taken.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

INDENT: Final = 4


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """A place where a line may be broken. If it is not, `flat` is printed there."""

    flat: str


@dataclass(frozen=True, slots=True, eq=False)
class Indented:
    parts: Sequence[Document]


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    parts: Sequence[Document]
    id: int = 0
    expands: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Wrapped:
    """Parentheses that are written only if their content does not fit without. `id` is their group."""

    parts: Sequence[Document]
    id: int


@dataclass(frozen=True, slots=True, eq=False)
class BestFit:
    """An expression that contains no line breaks.

    It stays on the current line if it fits; else it goes in parentheses on a line of its own if it fits there; else it
    stays and is too long.
    """

    parts: Sequence[Document]
    id: int


@dataclass(frozen=True, slots=True, eq=False)
class FirstThatFits:
    """Alternative layouts: the first is flat; of the others only the first line must fit."""

    ways: Sequence[Sequence[Document]]


@dataclass(frozen=True, slots=True, eq=False)
class IfBroken:
    """A text that is printed only if the group around it is broken."""

    text: str


@dataclass(frozen=True, slots=True, eq=False)
class InParentheses:
    """A group, or without parts a line break, if the parentheses `id` are printed; else only its parts, or a space."""

    parts: Sequence[Document] | None
    id: int


@dataclass(frozen=True, slots=True, eq=False)
class OwnBrackets:
    """Brackets of the expression itself, which may be broken instead of printing the parentheses `id`."""

    parts: Sequence[Document]
    id: int


@dataclass(frozen=True, slots=True, eq=False)
class Edge:
    """The start or the end of an expression whose position is reported."""

    of: Hashable
    is_end: bool


Document: TypeAlias = (
    str | Line | Indented | Group | Wrapped | BestFit | FirstThatFits | IfBroken | InParentheses | OwnBrackets | Edge
)
Position = tuple[int, int, int, int]

SOFT: Final = Line("")
SPACE: Final = Line(" ")

_Measure: TypeAlias = Literal["first line", "all lines", "whatever is inside"]
_FIRST_LINE: Final = "first line"
_ALL_LINES: Final = "all lines"
_WHATEVER_IS_INSIDE: Final = "whatever is inside"
"""For broken brackets, only the text before and after them must fit."""

_Entry = tuple[Document, int, bool]
"""A document, its indentation, and whether it is on one line."""


def measure_width(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(_measure_character(character) for character in text)


def _measure_character(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


class Printer:
    """Print documents as lines of text and record the positions of marked parts."""

    def __init__(self, width: int) -> None:
        self._max = width
        self.lines: list[str] = []
        self._line: list[str] = []
        self._column = 0
        self._characters = 0
        self._starts: dict[Hashable, tuple[int, int]] = {}
        self.positions: dict[Hashable, Position] = {}
        self._broken: dict[int, bool] = {}
        self._is_measured = False

    def print_line(self, line: str) -> None:
        """Print a whole line unchanged."""
        self.lines.append(line)

    def print_statement(self, indent: int, parts: Sequence[Document]) -> None:
        self._begin_line(indent)
        if all(type(part) is str for part in parts):  # nothing to break, however long
            self.lines.append(" " * indent + "".join(parts))  # type: ignore[arg-type]
            return
        self._print(list(parts), indent)
        self.lines.append("".join(self._line))

    def _begin_line(self, indent: int) -> None:
        self._line = [" " * indent]
        self._column = self._characters = indent

    def _write(self, text: str) -> None:
        self._line.append(text)
        self._column += measure_width(text)
        self._characters += len(text)

    def _break_line(self, indent: int) -> None:
        self.lines.append("".join(self._line))
        self._begin_line(indent)
        self._is_measured = False

    def _print(self, parts: list[Document], indent: int) -> None:
        stack: list[_Entry] = [(part, indent, False) for part in reversed(parts)]
        self._is_measured = False
        while stack:
            document, indent, is_flat = stack.pop()
            match document:
                case str():
                    self._write(document)
                case Line(flat):
                    if is_flat:
                        self._write(flat)
                    else:
                        self._break_line(indent)
                case Indented(inner):
                    stack += [(part, indent + INDENT, is_flat) for part in reversed(inner)]
                case Group(inner, group, expands):
                    stack += self._open_group(inner, group, expands, indent, is_flat, stack)
                case Wrapped(inner, group):
                    stack += self._open_wrapped(document, indent, is_flat, stack)
                case BestFit(inner, group):
                    stack += self._open_best_fit(document, indent, stack)
                case FirstThatFits(ways):
                    stack += self._open_first_that_fits(ways, indent, stack)
                case IfBroken(text):
                    if not is_flat:
                        self._write(text)
                case InParentheses(None, group):
                    if is_flat or not self._broken.get(group, True):
                        self._write(" ")
                    else:
                        self._break_line(indent)
                case InParentheses(list() as inner, group):
                    if self._broken.get(group, True):
                        stack += self._open_group(inner, 0, False, indent, is_flat, stack)
                    else:
                        stack += [(part, indent, is_flat) for part in reversed(inner)]
                case OwnBrackets(inner, group):
                    if not self._broken.get(group, True):
                        self._is_measured = False  # they were measured as broken: now see whether they need be
                    stack += [(part, indent, is_flat) for part in reversed(inner)]
                case Edge(of, is_end):
                    self._record_edge(of, is_end)

    def _record_edge(self, of: Hashable, is_end: bool) -> None:
        here = (len(self.lines) + 1, self._characters)
        if is_end:
            self.positions[of] = (*self._starts[of], *here)
        else:
            self._starts[of] = here

    def _open_group(
        self, inner: Sequence[Document], group: int, expands: bool, indent: int, is_flat: bool, rest: list[_Entry]
    ) -> list[_Entry]:
        if not (is_flat and self._is_measured):
            self._is_measured = True
            is_flat = not expands and self._is_within_width([(part, indent, True) for part in reversed(inner)], rest)
        if group:
            self._broken[group] = not is_flat
        return [(part, indent, is_flat) for part in reversed(inner)]

    def _open_wrapped(self, wrapped: Wrapped, indent: int, is_flat: bool, rest: list[_Entry]) -> list[_Entry]:
        if not (is_flat and self._is_measured):
            self._is_measured = True
            self._broken[wrapped.id] = False
            is_flat = self._is_within_width([(part, indent, True) for part in reversed(wrapped.parts)], rest)
        self._broken[wrapped.id] = not is_flat
        if is_flat:
            return [(part, indent, True) for part in reversed(wrapped.parts)]
        return self._add_parentheses(wrapped.parts, indent)

    @staticmethod
    def _add_parentheses(parts: Sequence[Document], indent: int) -> list[_Entry]:
        inner = indent + INDENT
        entries: list[_Entry] = [("(", indent, False), (SOFT, inner, False), *((part, inner, False) for part in parts)]
        return [*entries, (SOFT, indent, False), (")", indent, False)][::-1]

    def _open_best_fit(self, best: BestFit, indent: int, rest: list[_Entry]) -> list[_Entry]:
        self._broken[best.id] = False
        flat: list[_Entry] = [(part, indent, True) for part in reversed(best.parts)]
        self._is_measured = True
        if self._is_within_width(flat, rest):
            return flat
        self._broken[best.id] = True
        wrapped = self._add_parentheses(best.parts, indent)
        if self._is_within_width(wrapped, rest, measure=_ALL_LINES):
            return wrapped
        self._broken[best.id] = False
        self._is_measured = False
        return flat

    def _open_first_that_fits(
        self, ways: Sequence[Sequence[Document]], indent: int, rest: list[_Entry]
    ) -> list[_Entry]:
        entries: list[_Entry] = []
        for position, way in enumerate(ways):
            entries = [(part, indent, position == 0) for part in reversed(way)]
            if self._is_within_width(entries, rest):
                break
        self._is_measured = False
        return entries

    def _is_within_width(self, start: list[_Entry], rest: list[_Entry], measure: _Measure = _FIRST_LINE) -> bool:
        """Return whether the text fits up to its first line break, or over all lines of `start`."""
        column = self._column
        stack: list[tuple[Document, int, bool, _Measure]] = [(*entry, measure) for entry in start]
        below = len(rest)
        while True:
            if not stack:
                if below == 0:
                    return True
                below -= 1
                stack.append((*rest[below], _FIRST_LINE))
            document, indent, is_flat, measure = stack.pop()
            text = ""
            inner: Sequence[Document] = ()
            match document:
                case str():
                    text = document
                case Line(flat):
                    if is_flat:
                        text = flat
                    elif measure != _FIRST_LINE:
                        column = indent
                    else:
                        return True
                case Indented(inner):
                    indent += INDENT
                case Group(inner, group, expands):
                    is_flat = is_flat and not expands
                    if group:
                        self._broken[group] = not is_flat
                case Wrapped(inner, group) | BestFit(inner, group):
                    self._broken[group] = not is_flat
                    if not is_flat:
                        inner = ("(", Indented([SOFT, *inner]), SOFT, ")")
                case FirstThatFits(ways):
                    inner = ways[0]
                case IfBroken(broken):
                    text = "" if is_flat else broken
                case InParentheses(None, group):
                    if is_flat or not self._broken.get(group, True):
                        text = " "
                    elif measure != _FIRST_LINE:
                        column = indent
                    else:
                        return True
                case InParentheses(list() as inner, group):
                    pass
                case OwnBrackets(inner, group):
                    if not self._broken.get(group, True):
                        is_flat, measure = False, _WHATEVER_IS_INSIDE
            if text:
                column += measure_width(text)
                if column > self._max and measure != _WHATEVER_IS_INSIDE:
                    return False
            for part in reversed(inner):
                stack.append((part, indent, is_flat, measure))
