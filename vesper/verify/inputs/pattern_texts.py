"""Texts that a pattern matches, or nearly: at random hardly any does, and the rest of a node would not be tried."""

from __future__ import annotations

import random
from functools import lru_cache

from vesper.kernels.regex.program import CodePoints, set_of
from vesper.language.ir.nodes import Call, Field, Literal, Node, Ref, walk
from vesper.values.pattern import (
    Alternation,
    Anchor,
    AnyPoint,
    Class,
    Group,
    Pattern,
    PatternPart,
    Range,
    Repeat,
    Sequence,
)
from vesper.values.pattern_parser import parse_pattern

_CHARACTERS = "aZ09 _-.,é\u0130ßσς\u212a٣😀\u0301\n\t\x00\U0010ffffABCxyz157/:@"
_MORE_ROUNDS = (0, 0, 1, 1, 2, 5)
_SPOILED_SHARE = 0.2


def constraint_patterns(node: Node) -> dict[str, str]:
    """The pattern that a constraint or a precondition asks of an input or of a field, by its name."""
    found: dict[str, str] = {}
    for clause in (*node.constraints, *node.preconditions):
        for part in walk(clause.holds):
            if isinstance(part, Call) and part.op == "regex.matches" and isinstance(part.args[0], Ref | Field):
                found.setdefault(part.args[0].name, _pattern_of(part))
    return found


def all_patterns(node: Node) -> list[str]:
    """Every pattern of the node."""
    return [_pattern_of(each) for each in node.expressions() if isinstance(each, Call) and each.op.startswith("regex.")]


def _pattern_of(call: Call) -> str:
    literal = call.args[1]
    assert isinstance(literal, Literal)
    assert isinstance(literal.value, str)
    return literal.value


def draw_text(text: str, source: random.Random) -> str:
    """A text in which the pattern matches, unless its anchors are against it; one in five is changed at one place."""
    pattern = _parsed(text)
    drawn = _drawn(pattern.root, pattern, source)
    if source.random() < _SPOILED_SHARE:
        at = source.randint(0, len(drawn))
        drawn = drawn[:at] + source.choice(("", "\n", " ", "é")) + drawn[at + source.randrange(2) :]
    return drawn


@lru_cache(maxsize=64)
def _parsed(text: str) -> Pattern:
    return parse_pattern(text)


def _drawn(part: PatternPart, pattern: Pattern, source: random.Random) -> str:
    match part:
        case Class() | AnyPoint():
            return _character(part, pattern, source)
        case Anchor():
            return ""
        case Sequence(items):
            return "".join(_drawn(item, pattern, source) for item in items)
        case Alternation(options):
            return _drawn(source.choice(options), pattern, source)
        case Group(_, content):
            return _drawn(content, pattern, source)
        case Repeat(content, least, most):
            more = source.choice(_MORE_ROUNDS) if most is None else source.randint(0, most - least)
            return "".join(_drawn(content, pattern, source) for _ in range(least + more))


def _character(part: Class | AnyPoint, pattern: Pattern, source: random.Random) -> str:
    wanted = set_of(part, pattern)
    fitting = _usual(wanted)
    if isinstance(part, Class):
        ranges = [item for item in part.items if isinstance(item, Range)]
        drawn = [chr(source.randint(each.first, each.last)) for each in ranges]
        fitting = [*fitting, *(each for each in drawn if wanted.has(each) and not "\ud800" <= each <= "\udfff")]
    # Nothing of these is in the set: the text will not match, which is worth a try too.
    return source.choice(fitting or ["x"])


@lru_cache(maxsize=256)
def _usual(wanted: CodePoints) -> list[str]:
    """Those of `_CHARACTERS` that are in the set."""
    return [each for each in _CHARACTERS if wanted.has(each)]
