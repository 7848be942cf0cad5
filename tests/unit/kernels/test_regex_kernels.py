"""The matcher against a backtracking search, against Python's `re`, and on hostile patterns."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import pytest

from tests.support.waiting import processor_seconds
from vesper.kernels import regex
from vesper.kernels.raised import Raised
from vesper.kernels.regex.machine import Finder, Recognizer
from vesper.kernels.regex.program import WORD, program_of
from vesper.values.pattern import (
    Alternation,
    Anchor,
    AnyPoint,
    Class,
    Escape,
    Group,
    PatternPart,
    PatternProblem,
    Range,
    Repeat,
    Sequence,
)
from vesper.values.pattern_parser import parse_pattern

Groups = dict[int, tuple[int, int]]
Rest = Callable[[int, Groups], tuple[int, Groups] | None]


def backtrack(pattern: str, text: str) -> list[tuple[int, int] | None] | None:
    """Return the first match of a backtracking search, which defines leftmost-first."""
    tree = parse_pattern(pattern)
    for start in range(len(text) + 1):
        found = _try(tree.root, text, start, {}, lambda end, groups: (end, groups))
        if found is not None:
            end, groups = found
            return [(start, end), *(groups.get(number) for number in range(1, tree.group_count + 1))]
    return None


def _try(part: PatternPart, text: str, at: int, groups: Groups, rest: Rest) -> tuple[int, Groups] | None:
    match part:
        case Class() | AnyPoint():
            is_taken = at < len(text) and _takes(part, text[at])
            return rest(at + 1, groups) if is_taken else None
        case Anchor(kind):
            return rest(at, groups) if _holds(kind, text, at) else None
        case Sequence(()):
            return rest(at, groups)
        case Sequence((first, *others)):
            others_ = Sequence(tuple(others))
            return _try(first, text, at, groups, lambda end, found: _try(others_, text, end, found, rest))
        case Alternation(options):
            return next((got for each in options if (got := _try(each, text, at, groups, rest)) is not None), None)
        case Group(number, content):
            return _try(content, text, at, groups, lambda end, found: rest(end, {**found, number: (at, end)}))
        case Repeat(content, least, most, is_greedy):
            fewer = Repeat(content, max(least - 1, 0), None if most is None else most - 1, is_greedy)

            def another() -> tuple[int, Groups] | None:
                if most == 0:
                    return None
                return _try(content, text, at, groups, lambda end, found: _try(fewer, text, end, found, rest))

            if least:
                return another()
            found = another() if is_greedy else rest(at, groups)
            return found if found is not None else (rest(at, groups) if is_greedy else another())
    raise AssertionError(part)


def _takes(part: Class | AnyPoint, character: str) -> bool:
    if isinstance(part, AnyPoint):
        return character != "\n"
    listed = False
    for item in part.items:
        if isinstance(item, Range):
            listed |= item.first <= ord(character) <= item.last
        else:
            assert item == Escape("w", negated=False)
            listed |= character in WORD
    return listed != part.negated


def _holds(kind: str, text: str, at: int) -> bool:
    if kind in "^$":
        return at == (0 if kind == "^" else len(text))
    words = [0 <= each < len(text) and text[each] in WORD for each in (at - 1, at)]
    return (words[0] != words[1]) == (kind == "b")


def drawn_pattern(draw: random.Random, depth: int = 3) -> str:
    choice = draw.randrange(10 if depth else 5)
    if choice < 4:
        return draw.choice(["a", "b", "c", ".", "[ab]", "[^a]", "\\w", ""])
    if choice == 4:
        return draw.choice(["^", "$", "\\b", "\\B"])
    inner = drawn_pattern(draw, depth - 1)
    if choice == 5:
        return f"{inner}|{drawn_pattern(draw, depth - 1)}"
    if choice == 6:
        return f"({inner})"
    if choice in (7, 8):
        return inner + drawn_pattern(draw, depth - 1) + drawn_pattern(draw, depth - 1)
    return f"({inner})" + draw.choice(["*", "+", "?", "{2}", "{0,2}", "{1,3}", "{2,}", "{0}"]) + draw.choice(["", "?"])


def test_finder_equals_a_backtracking_search() -> None:
    draw = random.Random(20261115)
    tried = found = 0
    while tried < 4000:
        pattern = drawn_pattern(draw)
        try:
            program = program_of(pattern)
        except PatternProblem:
            continue
        tried += 1
        text = "".join(draw.choice("abc -") for _ in range(draw.randrange(8)))
        wanted = backtrack(pattern, text)
        found += wanted is not None
        got = Finder(program, text, with_groups=True).find(0)
        pairs = None if got is None else [(s, e) if e >= 0 else None for s, e in zip(got[::2], got[1::2], strict=True)]
        assert pairs == wanted, f"{pattern!r} in {text!r}"
        assert Recognizer(program).matches(text) == (wanted is not None), f"{pattern!r} in {text!r}"
        without_groups = Finder(program, text).find(0)
        assert without_groups == (None if got is None else got[:2])
        if not text:
            continue  # before Python 3.14 `\\B` never matches in an empty text
        hosts = re.compile(pattern.replace("$", "\\Z"), re.ASCII).search(text)
        assert (None if hosts is None else hosts.span()) == (None if wanted is None else wanted[0])
    assert found > 1000


@pytest.mark.parametrize(
    "pattern, text",
    [
        ("(a+)+b", "a" * 30),
        ("(a|aa)+$", "a" * 3000 + "b"),
        ("(?:a?){100}a{100}$", "a" * 100),
        ("(?:x+x+)+y", "x" * 3000),
        ("^(?:[a-z]+\\.)*[a-z]+@$", "a." * 1500),
        ("(?:a|b|ab)*c", "ab" * 1500),
    ],
)
def test_hostile_patterns_take_linear_time(pattern: str, text: str) -> None:
    with processor_seconds(5):
        regex.matches(text, pattern)
        regex.groups(text, pattern)


def test_largest_program_takes_linear_time() -> None:
    pattern = "(?:a?){990}b"  # 1,981 instructions, all active at once
    with processor_seconds(10):
        assert regex.find("a" * 300, pattern) is None


def test_text_of_many_characters_takes_bounded_memory() -> None:
    recognizer = Recognizer(program_of("\\p{Lu}{5}x"))
    text = "".join(chr(each) for each in range(0x21, 0xD800))
    assert not recognizer.matches(text)
    assert not recognizer.matches(text)
    assert len(recognizer._states) < 10_001


@pytest.mark.parametrize(
    "pattern, character, expected",
    [
        ("(?i)k", "\u212a", True),
        ("(?i)\u212a", "K", True),
        ("(?i)[a-z]", "\u212a", True),
        ("(?i)[^a-z]", "\u212a", False),
        ("(?i)\\w", "\u212a", False),
        ("(?i)[\\w]", "\u017f", False),
        ("(?i)s", "\u017f", True),
        ("(?i)ß", "ẞ", True),
        ("(?i)ss", "ß", False),
        ("(?i)\\p{Lu}", "a", False),
        ("(?i)[\\p{Lu}]", "a", False),
        ("(?i)[\\p{Lu}b]", "B", True),
        ("(?i)[\u0000-\U0010ffff]", "x", True),
        ("(?i)[B-C]", "b", True),
        ("(?i)σ", "ς", True),
        ("i", "I", False),
        ("(?i)i", "İ", False),
        (".", "\n", False),
        ("(?s).", "\n", True),
        ("\\s", "\x0b", True),
        ("\\s", "\x1c", False),
        ("\\s", "\u00a0", False),
        ("\\S", "\u00a0", True),
        ("\\d", "٣", False),
        ("\\p{Nd}", "٣", True),
        ("\\p{N}", "²", True),
        ("\\p{Cn}", "\u0378", True),
        ("\\P{L}", "1", True),
        ("[\\P{L}a]", "a", True),
        ("[^\\P{L}]", "b", True),
        ("\\u{1F600}", "😀", True),
        ("\\x41", "A", True),
        ("[+--]", ",", True),
        ("[-a]", "-", True),
        ("[a-]", "-", True),
        ("[\\]]", "]", True),
    ],
)
def test_one_code_point(pattern: str, character: str, expected: bool) -> None:
    assert regex.matches(character, pattern) is expected


def test_dollar_matches_only_at_the_end() -> None:
    assert not regex.matches("a\n", "^a$")
    assert regex.find_all("a\na", "^a") == ["a"]


def test_empty_matches() -> None:
    assert regex.find_all("baac", "a*") == ["", "aa", ""]
    assert regex.find_all("aa", "|a") == ["", "", ""]
    assert regex.replace("abc", "", "-") == "-a-b-c-"
    assert regex.split("abc", "") == ["", "a", "b", "c", ""]
    assert regex.find_all("ab cd", "\\b") == ["", "", "", ""]
    assert regex.find("", "") == ""


def test_groups_hold_their_last_iteration() -> None:
    assert regex.groups("abc", "(?:(a)|(b)|c)+") == ["abc", "a", "b"]
    assert regex.groups("aab", "(a){2}b") == ["aab", "a"]
    assert regex.groups("b", "(a){0}b") == ["b", None]
    assert regex.groups("", "()") == ["", ""]


def test_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Raised, match="too_large"):
        regex.replace("a" * 100, "a", "b" * 100_001)
    assert len(regex.replace("a" * 100, "a", "b" * 100_000)) == 10_000_000
    monkeypatch.setattr(regex, "MAX_ENTRIES", 100)
    assert len(regex.find_all("a" * 100, "a")) == len(regex.split("a" * 99, "a")) == 100
    with pytest.raises(Raised, match="too_large"):
        regex.find_all("a" * 101, "a")
    with pytest.raises(Raised, match="too_large"):
        regex.split("a" * 100, "a")
