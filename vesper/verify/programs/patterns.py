"""Random regular expressions: short, with every part of the dialect."""

from __future__ import annotations

import random

from vesper.values.pattern import PatternProblem
from vesper.values.pattern_parser import parse_pattern

_ATOMS = (
    "a", "a", "b", "A", "é", "0", " ", ".", "\\.", "\\d", "\\w", "\\s", "\\D", "\\W", "\\S", "\\p{L}", "\\P{Lu}",
    "\\p{Nd}", "\\p{M}", "\\x61", "\\u{1F600}", "[a-z]", "[^a-z]", "[A-Z0-9_]", "[\\d-]", "[^\\s,]", "[\\p{Lu}é]",
    "\\t", "[-+]", "USD", "", "\\n", "\\r", "\\f", "\\v", "\\\\", "\\-", "\\u{e9}", "\\x7A", "[\\x30-\\x39]",
    "[\\]\\-a]", "[\\u{1F600}-\\u{1F64F}]",
    "\\p{N}", "\\p{Lt}", "\\P{L}", "[^\\p{L}\\d]", "ß", "😀", "ab", "[a-cA-C]",
)  # fmt: skip
_ANCHORS = ("^", "$", "\\b", "\\B")
_REPEATS = ("*", "+", "?", "{2}", "{0,2}", "{1,3}", "{2,}", "{0}")
_FLAGS = ("", "", "", "(?i)", "(?s)", "(?is)")
_MAX_TRIES = 20


def draw_pattern(source: random.Random) -> str:
    """Draw a pattern that the language accepts; empty unbounded repetitions are redrawn."""
    for _ in range(_MAX_TRIES):
        text = source.choice(_FLAGS) + _part(source, 3)
        try:
            parse_pattern(text)
        except PatternProblem:
            continue
        return text
    return source.choice(_ATOMS)


def _part(source: random.Random, depth: int) -> str:
    if depth == 0:
        return source.choice(_ATOMS)
    match source.randrange(8):
        case 0 | 1:
            return source.choice(_ATOMS)
        case 2:
            return source.choice(_ANCHORS) + _part(source, depth - 1)
        case 3:
            return f"{_part(source, depth - 1)}|{_part(source, depth - 1)}"
        case 4:
            return f"({_part(source, depth - 1)})"
        case 5:
            return _part(source, depth - 1) + _part(source, depth - 1)
        case _:
            bracket = source.choice(("(", "(?:"))
            return f"{bracket}{_part(source, depth - 1)})" + source.choice(_REPEATS) + source.choice(("", "", "?"))
