"""Every one-line change of a function that a mutant may make, by kind.

Changes are made to tokens, not to a syntax tree: one that does not compile is dropped after it was woven. The sources
are formatted, so that a binary operator has a space on both sides, and a bracket of type parameters has not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from tests.proofs.mutants.drawn.tokens import KEYWORDS, Function, Source

_OPERATORS: dict[str, dict[str, tuple[str, ...]]] = {
    "comparison": {
        "<": ("<=", ">"), "<=": ("<", ">="), ">": (">=", "<"), ">=": (">", "<="), "==": ("!=",), "!=": ("==",),
    },
    "arithmetic": {
        "+": ("-",), "-": ("+",), "*": ("+", "/"), "/": ("*",), "%": ("/",), "<<": (">>",), ">>": ("<<",),
        "&": ("|",), "|": ("&",), "^": ("|",), "+=": ("-=",), "-=": ("+=",), "*=": ("+=",), "|=": ("&=",),
        "&=": ("|=",),
    },
    "logic": {"&&": ("||",), "||": ("&&",)},
}  # fmt: skip
_PAIRS = """min max, checked_add checked_sub, wrapping_add wrapping_sub, saturating_add saturating_sub, is_some is_none,
is_ok is_err, first last, any all, starts_with ends_with, trim_start trim_end, take skip, find rfind, floor ceil,
is_positive is_negative, leading_zeros trailing_zeros, and_then or_else, MIN MAX, Less Greater, next next_back,
split_first split_last, position rposition, push push_front, is_lt is_gt, is_le is_ge, is_eq is_ne, lt le, gt ge,
checked_mul checked_div, wrapping_mul wrapping_div, or and, to_le_bytes to_be_bytes, from_le_bytes from_be_bytes,
partition_point len"""
_SWAPPED = {one: other for pair in _PAIRS.split(",") for one, other in (pair.split(), pair.split()[::-1])}
_ADDED = {"iter": ".rev()", "chars": ".rev()", "keys": ".rev()", "into_iter": ".skip(1)", "enumerate": ".skip(1)"}
_REMOVED = frozenset(["rev", "abs", "unsigned_abs", "trim", "skip_while"])
_LITERAL = re.compile(r"(0x[0-9a-fA-F_]+|0b[01_]+|[0-9_]+?)(_?(?:[iu](?:8|16|32|64|128|size)))?")
_NO_STATEMENT = KEYWORDS | {"macro_rules", "debug_assert", "debug_assert_eq", "#", "}"}
_WITHOUT_EFFECT = frozenset(["debug_assert", "debug_assert_eq", "debug_assert_ne", "with_capacity", "reserve"])
"""Their arguments decide nothing in the build for users."""

Edit: TypeAlias = tuple[int, int, str]
"""Start and end of the replaced text, and the text in its place."""


@dataclass(frozen=True, slots=True)
class Change:
    kind: str
    edits: tuple[Edit, ...]

    @property
    def span(self) -> tuple[int, int]:
        return self.edits[0][0], self.edits[-1][1]


def changes(source: Source, function: Function) -> list[Change]:
    """Return every change of a function, in the order of their places."""
    skipped = _spans_without_effect(source, function)
    found = [each for kind in _KINDS for each in kind(source, function)]
    kept = [each for each in found if not any(start <= each.span[0] < end for start, end in skipped)]
    return sorted(kept, key=lambda each: (each.edits, each.kind))


def _spans_without_effect(source: Source, function: Function) -> list[tuple[int, int]]:
    spans = []
    for index in range(function.opening, function.closing):
        if source.at(index) in _WITHOUT_EFFECT:
            opening = index + 2 if source.at(index + 1) == "!" else index + 1
            if source.at(opening) == "(":
                spans.append((source.tokens[index].start, source.tokens[source.partners[opening]].end))
        elif source.at(index) == "#" and source.at(index + 1) == "[":
            spans.append((source.tokens[index].start, source.tokens[source.partners[index + 1]].end))
    return spans


def _inside(function: Function) -> range:
    return range(function.opening + 1, function.closing)


def _operators(source: Source, function: Function) -> Iterator[Change]:
    for index in _inside(function):
        token = source.tokens[index]
        is_spaced = source.text[token.start - 1].isspace() and source.text[token.end].isspace()
        if token.kind != "mark" or not is_spaced or not source.ends_operand(index - 1):
            continue
        for kind, table in _OPERATORS.items():
            for other in table.get(token.text, ()):
                yield Change(kind, ((token.start, token.end, other),))


def _negations(source: Source, function: Function) -> Iterator[Change]:
    for index in _inside(function):
        token = source.tokens[index]
        is_prefix = source.tokens[index - 1].kind == "mark" or source.at(index - 1) in KEYWORDS
        if token.text == "!" and is_prefix and source.at(index - 1) not in {")", "]", "#"}:
            yield Change("logic", ((token.start, token.end, ""),))


def _constants(source: Source, function: Function) -> Iterator[Change]:
    for index in _inside(function):
        token = source.tokens[index]
        found = _LITERAL.fullmatch(token.text)
        if token.kind == "number" and found and source.at(index - 1) != ".":
            digits, suffix = found.group(1).replace("_", ""), found.group(2) or ""
            value = int(digits, 0 if digits[1:2].isalpha() else 10)
            for other in (value + 1, value - 1):
                if other >= 0:
                    yield Change("constant", ((token.start, token.end, f"{other}{suffix}"),))
        elif re.fullmatch(r"[A-Z][A-Z0-9_]+", token.text) and source.at(index + 1) not in {"::", "!", "(", "{", ":"}:
            first = index
            while source.at(first - 1) == "::" and source.tokens[first - 2].kind == "word":
                first -= 2
            start = source.tokens[first].start
            for sign in "+-":
                changed = f"({source.text[start : token.end]} {sign} 1)"
                yield Change("constant", ((start, token.end, changed),))


def _booleans(source: Source, function: Function) -> Iterator[Change]:
    for index in _inside(function):
        token = source.tokens[index]
        if token.text in {"true", "false"}:
            yield Change("boolean", ((token.start, token.end, "false" if token.text == "true" else "true"),))


def _guards(source: Source, function: Function) -> Iterator[Change]:
    """Yield conditions that are never true, and guards of match arms that always are."""
    for index in _inside(function):
        if source.at(index) != "if":
            continue
        end = source.skip(index + 1, frozenset(["{", "=>", ";", ","]), function.closing)
        start, stop = source.tokens[index].end + 1, source.tokens[end - 1].end
        if source.at(end) == "=>":
            yield Change("guard", ((source.tokens[index].start, source.tokens[end].start, ""),))
        elif source.at(end) == "{" and _leaves(source, end):
            is_let = "let" in (source.at(each) for each in range(index, end))
            if is_let:
                yield Change("guard", ((stop, stop, " && false"),))
            else:
                yield Change("guard", ((start, start, "false && ("), (stop, stop, ")")))


def _leaves(source: Source, opening: int) -> bool:
    """Return whether a block without `else` ends by leaving its surroundings."""
    closing = source.partners[opening]
    if source.at(closing + 1) == "else":
        return False
    inside = [source.at(each) for each in range(opening + 1, closing)]
    return any(text in {"return", "continue", "break"} for text in inside)


def _statements(source: Source, function: Function) -> Iterator[Change]:
    """Yield deleted statements: calls, assignments, and returns that are not all of a block."""
    for index in _inside(function):
        if source.at(index - 1) not in {";", "{", "}"} or source.at(index) in _NO_STATEMENT - {"return"}:
            continue
        end = source.skip(index, frozenset([";", "}", ",", "=>"]), function.closing)
        if source.at(end) != ";" or end == index:
            continue
        start, stop = source.tokens[index].start, source.tokens[end].end
        if source.at(index) == "return":
            if not (source.at(index - 1) == "{" and source.at(end + 1) == "}"):
                yield Change("early return", ((start, stop, ""),))
            continue
        inside = [source.at(each) for each in range(index, end)]
        if "(" in inside or any(text.endswith("=") for text in inside):
            yield Change("statement", ((start, stop, ""),))
        if inside[-1] == "?" and "=" not in inside:
            ignored = f"let _ = {source.text[start : source.tokens[end - 1].start]};"
            yield Change("early return", ((start, stop, ignored),))


def _arguments(source: Source, function: Function) -> Iterator[Change]:
    for index in _inside(function):
        if source.at(index) != "(" or source.tokens[index - 1].kind != "word" or source.at(index - 1) in KEYWORDS:
            continue
        parts = list(_parts(source, index))
        for (start, end), (other, last) in pairwise(parts):
            one, two = source.text[start:end], source.text[other:last]
            if one != two and "\n" not in one + two:
                yield Change("swapped arguments", ((start, end, two), (other, last, one)))


def _parts(source: Source, opening: int) -> Iterator[tuple[int, int]]:
    index, closing = opening + 1, source.partners[opening]
    while index < closing:
        end = source.skip(index, frozenset([",", "|"]), closing)
        if source.at(end) == "|":
            return  # a closure, or a pattern
        if end > index:
            yield source.tokens[index].start, source.tokens[end - 1].end
        index = end + 1


def _arms(source: Source, function: Function) -> Iterator[Change]:
    for index in _inside(function):
        if source.at(index) != "match":
            continue
        opening = source.skip(index, frozenset("{"), function.closing)
        if source.at(opening) != "{":
            continue
        bodies = list(_arm_bodies(source, opening))
        for (start, end), (other, last) in pairwise(bodies):
            one, two = source.text[start:end], source.text[other:last]
            if one != two:
                yield Change("swapped arms", ((start, end, two), (other, last, one)))


def _arm_bodies(source: Source, opening: int) -> Iterator[tuple[int, int]]:
    index, closing = opening + 1, source.partners[opening]
    while index < closing:
        arrow = source.skip(index, frozenset(["=>"]), closing)
        if arrow >= closing:
            return
        if source.at(arrow + 1) == "{":
            end = source.partners[arrow + 1] + 1
        else:
            end = source.skip(arrow + 1, frozenset(","), closing)
        yield source.tokens[arrow + 1].start, source.tokens[end - 1].end
        index = end + 1 if source.at(end) == "," else end


def _results(source: Source, function: Function) -> Iterator[Change]:
    for index in _inside(function):
        token = source.tokens[index]
        before, after = source.at(index - 1), source.at(index + 1)
        is_method = before in {".", "::"} and token.kind == "word"
        if is_method and token.text in _SWAPPED:
            yield Change("result", ((token.start, token.end, _SWAPPED[token.text]),))
        if token.text == "Some" and after == "(" and before != "::":
            yield Change("result", ((token.start, source.tokens[source.partners[index + 1]].end, "None"),))
        if token.kind == "mark" and token.text in {"..", "..="} and source.tokens[index + 1].kind in {"word", "number"}:
            other = "..=" if token.text == ".." else ".."
            yield Change("result", ((token.start, token.end, other),))
        if before == "." and after == "(" and source.at(index + 2) == ")":
            end = source.tokens[index + 2].end
            if token.text in _ADDED:
                yield Change("result", ((end, end, _ADDED[token.text]),))
            if token.text in _REMOVED:
                yield Change("result", ((source.tokens[index - 1].start, end, ""),))


_KINDS: tuple[Callable[[Source, Function], Iterator[Change]], ...] = (
    _operators, _negations, _constants, _booleans, _guards, _statements, _arguments, _arms, _results,
)  # fmt: skip
