"""What a regular expression of docs/spec/regex.md says, as a tree; `pattern_parser` reads it.

The front end parses a pattern to refuse it where it is written, the kernels to run it. What both must know of a tree
is here: whether a part can match nothing, and how many instructions it counts for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

MAX_CODE_POINTS = 1_000
MAX_GROUPS = 100
MAX_LEVELS = 50
MAX_COUNT = 1_000
MAX_INSTRUCTIONS = 10_000

CATEGORIES = (
    "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po",
    "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co", "Cn",
)  # fmt: skip
"""The general categories of Unicode; the first letter alone stands for all that begin with it."""


class PatternProblem(Exception):
    """What is wrong with a pattern, and which of its code points it is about."""

    def __init__(self, problem: str, start: int, end: int) -> None:
        super().__init__(problem)
        self.problem = problem
        self.start = start
        self.end = end


@dataclass(frozen=True, slots=True)
class Range:
    """Code points from the first to the last, both included; one of a literal is a range of one."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Escape:
    """`\\d`, `\\w`, `\\s` under that letter; a category under its name; `negated` for the capital letter."""

    name: str
    negated: bool


@dataclass(frozen=True, slots=True)
class Class:
    """One code point: a literal, `[…]`, or an escape on its own."""

    items: tuple[Range | Escape, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class AnyPoint:
    """The point `.`; whether it takes a newline is the pattern's flag."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """`^`, `$`, `b`, `B`."""

    kind: str


@dataclass(frozen=True, slots=True)
class Sequence:
    items: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Alternation:
    options: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Group:
    number: int
    content: Part


@dataclass(frozen=True, slots=True)
class Repeat:
    content: Part
    least: int
    most: int | None
    """None for `x*` and `x+`, which have no last round; `x{3,}` is `x{3}` and `x*`."""
    is_greedy: bool


Part: TypeAlias = Class | AnyPoint | Anchor | Sequence | Alternation | Group | Repeat


@dataclass(frozen=True, slots=True)
class Pattern:
    root: Part
    group_count: int
    ignores_case: bool
    takes_newlines: bool


def can_be_empty(part: Part) -> bool:
    """True for a part that can match without taking a code point."""
    match part:
        case Class() | AnyPoint():
            return False
        case Anchor():
            return True
        case Sequence(items):
            return all(map(can_be_empty, items))
        case Alternation(options):
            return any(map(can_be_empty, options))
        case Group(_, content):
            return can_be_empty(content)
        case Repeat(content, least):
            return least == 0 or can_be_empty(content)


def instructions(part: Part) -> int:
    """How many instructions a part counts for. The limit is on this number, whatever program an engine makes."""
    match part:
        case Class() | AnyPoint() | Anchor():
            return 1
        case Sequence(items):
            return sum(map(instructions, items))
        case Alternation(options):
            return sum(map(instructions, options)) + 2 * (len(options) - 1)
        case Group(_, content):
            return instructions(content) + 2
        case Repeat(content, least, most):
            one = instructions(content)
            if most is None:
                return one + 1 if least == 1 else one + 2
            return least * one + (most - least) * (one + 1)
