"""Syntax tree of a regular expression (docs/spec/regex.md); `pattern_parser` builds it.

The front end parses a pattern to validate it, the kernels to run it. Both need two functions of this module: whether a
part can match the empty text, and its number of instructions.
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
"""General categories of Unicode. The first letter alone selects every category that begins with it."""


class PatternProblem(Exception):
    """A fault of a pattern, and the code points that it concerns."""

    def __init__(self, problem: str, start: int, end: int) -> None:
        super().__init__(problem)
        self.problem = problem
        self.start = start
        self.end = end


@dataclass(frozen=True, slots=True)
class Range:
    """Code points from first to last, inclusive; a literal is a range of one."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Escape:
    r"""`\d`, `\w`, `\s` by letter, or a category by name; `negated` for the capital letter."""

    name: str
    negated: bool


@dataclass(frozen=True, slots=True)
class Class:
    """A single code point: a literal, `[…]`, or an escape."""

    items: tuple[Range | Escape, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class AnyPoint:
    """The point `.`; a flag of the pattern decides whether it matches a newline."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """`^`, `$`, `b` or `B`."""

    kind: str


@dataclass(frozen=True, slots=True)
class Sequence:
    """Parts that match one after the other."""

    items: tuple[PatternPart, ...]


@dataclass(frozen=True, slots=True)
class Alternation:
    """Alternatives, the preferred one first."""

    options: tuple[PatternPart, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """A capturing group."""

    number: int
    content: PatternPart


@dataclass(frozen=True, slots=True)
class Repeat:
    """A repetition between `least` and `most` times."""

    content: PatternPart
    least: int
    most: int | None
    """None for `x*` and `x+`, which are unbounded; `x{3,}` is `x{3}` followed by `x*`."""
    is_greedy: bool


PatternPart: TypeAlias = Class | AnyPoint | Anchor | Sequence | Alternation | Group | Repeat


@dataclass(frozen=True, slots=True)
class Pattern:
    """A parsed pattern with its flags."""

    root: PatternPart
    group_count: int
    ignores_case: bool
    takes_newlines: bool


def can_be_empty(part: PatternPart) -> bool:
    """Return whether a part can match the empty text."""
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


def instructions(part: PatternPart) -> int:
    """Return the number of instructions of a part. The limit applies to it in every engine."""
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
