"""Texts that match a pattern, or almost match it.

Random texts rarely match, and the rest of a node would not be reached.
"""

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
_EXTRA_ROUNDS = (0, 0, 1, 1, 2, 5)
_ALTERED_SHARE = 0.2


def constraint_patterns(node: Node) -> dict[str, str]:
    """Return the patterns that constraints and preconditions require, by input or field name."""
    found: dict[str, str] = {}
    for clause in (*node.constraints, *node.preconditions):
        for part in walk(clause.holds):
            if isinstance(part, Call) and part.op == "regex.matches" and isinstance(part.args[0], Ref | Field):
                found.setdefault(part.args[0].name, _pattern_of(part))
    return found


def all_patterns(node: Node) -> list[str]:
    """Return every pattern of the node."""
    return [_pattern_of(each) for each in node.expressions() if isinstance(each, Call) and each.op.startswith("regex.")]


def _pattern_of(call: Call) -> str:
    literal = call.args[1]
    assert isinstance(literal, Literal)
    assert isinstance(literal.value, str)
    return literal.value


def draw_text(text: str, source: random.Random) -> str:
    """Return a text that matches the pattern, unless anchors prevent it; one in five is altered."""
    pattern = _parse(text)
    drawn = _draw_part(pattern.root, pattern, source)
    if source.random() < _ALTERED_SHARE:
        at = source.randint(0, len(drawn))
        drawn = drawn[:at] + source.choice(("", "\n", " ", "é")) + drawn[at + source.randrange(2) :]
    return drawn


@lru_cache(maxsize=64)
def _parse(text: str) -> Pattern:
    return parse_pattern(text)


def _draw_part(part: PatternPart, pattern: Pattern, source: random.Random) -> str:
    match part:
        case Class() | AnyPoint():
            return _character(part, pattern, source)
        case Anchor():
            return ""
        case Sequence(items):
            return "".join(_draw_part(item, pattern, source) for item in items)
        case Alternation(options):
            return _draw_part(source.choice(options), pattern, source)
        case Group(_, content):
            return _draw_part(content, pattern, source)
        case Repeat(content, least, most):
            more = source.choice(_EXTRA_ROUNDS) if most is None else source.randint(0, most - least)
            return "".join(_draw_part(content, pattern, source) for _ in range(least + more))


def _character(part: Class | AnyPoint, pattern: Pattern, source: random.Random) -> str:
    wanted = set_of(part, pattern)
    fitting = _usual_characters(wanted)
    if isinstance(part, Class):
        ranges = [item for item in part.items if isinstance(item, Range)]
        drawn = [chr(source.randint(each.first, each.last)) for each in ranges]
        fitting = [*fitting, *(each for each in drawn if wanted.has(each) and not "\ud800" <= each <= "\udfff")]
    # None of these characters is in the set: the text does not match, which is useful too.
    return source.choice(fitting or ["x"])


@lru_cache(maxsize=256)
def _usual_characters(wanted: CodePoints) -> list[str]:
    """Return the characters of `_CHARACTERS` that are in the set."""
    return [each for each in _CHARACTERS if wanted.has(each)]
