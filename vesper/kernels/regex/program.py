"""Programs of patterns, which `machine` runs.

Built from the tree of a pattern. Each instruction takes a code point, branches, records a position or tests one.
INVARIANT: every loop takes a code point, because the parser rejects patterns that would not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from vesper.values import unicode
from vesper.values.pattern import (
    Alternation,
    Anchor,
    AnyPoint,
    Class,
    Escape,
    Group,
    Pattern,
    PatternPart,
    Range,
    Repeat,
    Sequence,
)
from vesper.values.pattern_parser import parse_pattern

TAKE: Final = 0
"""Take one code point of the set `first`."""
SPLIT: Final = 1
"""Continue at `first`, and if that fails at `second`."""
JUMP: Final = 2
SAVE: Final = 3
"""Record the position in the slot `first`."""
ASSERT: Final = 4
"""Continue if the anchor holds here."""
MATCH: Final = 5

WORD: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")
_DIGITS: Final = frozenset("0123456789")
_SPACES: Final = frozenset("\t\n\v\f\r ")
_ASCII_SETS: Final = {"w": WORD, "d": _DIGITS, "s": _SPACES}
_MAX_ROWS: Final = 4096
"""Maximum number of code points whose sets are cached; beyond it the cache starts again."""


@dataclass(slots=True)
class Instruction:
    """An instruction; the use of its fields depends on `kind`."""

    kind: int
    first: int = 0
    second: int = 0
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class CodePoints:
    """A set of code points, as a class of a pattern describes it."""

    items: tuple[Range | Escape, ...]
    negated: bool
    ignores_case: bool
    folded: frozenset[int] = frozenset()
    """With `ignores_case`, foldings of the ranges' code points that differ from themselves."""

    def has(self, character: str) -> bool:
        code_point = ord(character)
        compared = unicode.fold(code_point) if self.ignores_case else code_point
        is_listed = compared in self.folded or any(
            item.first <= compared <= item.last if isinstance(item, Range) else _is_of(item, character, code_point)
            for item in self.items
        )
        return is_listed != self.negated


def _is_of(escape: Escape, character: str, code_point: int) -> bool:
    if escape.name in _ASCII_SETS:
        return (character in _ASCII_SETS[escape.name]) != escape.negated
    return unicode.category(code_point).startswith(escape.name) != escape.negated


def set_of(part: Class | AnyPoint, pattern: Pattern) -> CodePoints:
    """Return the code points that a class or `.` matches."""
    if isinstance(part, AnyPoint):
        newline = () if pattern.takes_newlines else (Range(0x0A, 0x0A),)
        return CodePoints(newline, negated=True, ignores_case=False)
    if not pattern.ignores_case:
        return CodePoints(part.items, part.negated, ignores_case=False)
    ranges = (item for item in part.items if isinstance(item, Range))
    folded = frozenset(each for item in ranges for each in unicode.foldings_in_range(item.first, item.last))
    return CodePoints(part.items, part.negated, ignores_case=True, folded=folded)


@dataclass(slots=True)
class Program:
    """The program of a pattern."""

    instructions: list[Instruction]
    sets: list[CodePoints]
    group_count: int
    _rows: dict[str, frozenset[int]] = field(default_factory=dict)

    def sets_with(self, character: str) -> frozenset[int]:
        """Return the numbers of the sets that contain this code point."""
        row = self._rows.get(character)
        if row is None:
            if len(self._rows) >= _MAX_ROWS:
                self._rows.clear()
            row = frozenset(number for number, each in enumerate(self.sets) if each.has(character))
            self._rows[character] = row
        return row


@lru_cache(maxsize=256)
def program_of(text: str) -> Program:
    """Return the program of a validated pattern."""
    pattern = parse_pattern(text)
    writer = _Writer(pattern)
    writer.write(pattern.root)
    writer.add(MATCH)
    return Program(writer.instructions, list(writer.sets), pattern.group_count)


class _Writer:
    """Builds the instructions of a pattern."""

    def __init__(self, pattern: Pattern) -> None:
        self._pattern = pattern
        self.instructions: list[Instruction] = []
        self.sets: dict[CodePoints, int] = {}
        self._numbers: dict[int, int] = {}

    def add(self, kind: int, first: int = 0, second: int = 0, anchor: str = "") -> Instruction:
        instruction = Instruction(kind, first, second, anchor)
        self.instructions.append(instruction)
        return instruction

    @property
    def _here(self) -> int:
        return len(self.instructions)

    def write(self, part: PatternPart) -> None:
        match part:
            case Class() | AnyPoint():
                self.add(TAKE, self._set_number(part))
            case Anchor(kind):
                self.add(ASSERT, anchor=kind)
            case Sequence(items):
                for item in items:
                    self.write(item)
            case Alternation(options):
                self._alternation(options)
            case Group(number, content):
                self.add(SAVE, 2 * number)
                self.write(content)
                self.add(SAVE, 2 * number + 1)
            case Repeat():
                self._repeat(part)

    def _set_number(self, part: Class | AnyPoint) -> int:
        # Cached per part: a repeated part is written many times, and case folding of a set is slow.
        if id(part) not in self._numbers:
            found = set_of(part, self._pattern)
            self._numbers[id(part)] = self.sets.setdefault(found, len(self.sets))
        return self._numbers[id(part)]

    def _alternation(self, options: tuple[PatternPart, ...]) -> None:
        ends: list[Instruction] = []
        for option in options[:-1]:
            split = self.add(SPLIT)
            split.first = self._here
            self.write(option)
            ends.append(self.add(JUMP))
            split.second = self._here
        self.write(options[-1])
        for end in ends:
            end.first = self._here

    def _repeat(self, part: Repeat) -> None:
        if part.most is None:
            self._repeat_without_end(part)
            return
        for _ in range(part.least):
            self.write(part.content)
        ways_out: list[Instruction] = []
        for _ in range(part.most - part.least):
            ways_out.append(self.add(SPLIT))
            self._enter(ways_out[-1], self._here, part.is_greedy)
            self.write(part.content)
        for split in ways_out:
            self._leave(split, self._here, part.is_greedy)

    def _repeat_without_end(self, part: Repeat) -> None:
        start = self._here
        if part.least == 1:  # `x+`
            self.write(part.content)
            split = self.add(SPLIT)
            self._enter(split, start, part.is_greedy)
        else:  # `x*`
            split = self.add(SPLIT)
            self._enter(split, self._here, part.is_greedy)
            self.write(part.content)
            self.add(JUMP, start)
        self._leave(split, self._here, part.is_greedy)

    @staticmethod
    def _enter(split: Instruction, target: int, is_greedy: bool) -> None:
        """Set the branch that repeats; it is preferred if the repetition is greedy."""
        if is_greedy:
            split.first = target
        else:
            split.second = target

    @staticmethod
    def _leave(split: Instruction, target: int, is_greedy: bool) -> None:
        if is_greedy:
            split.second = target
        else:
            split.first = target
