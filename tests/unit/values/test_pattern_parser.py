"""Patterns: valid texts, instruction counts, and spans of problems."""

from __future__ import annotations

import pytest

from vesper.values.pattern import PatternProblem, instructions
from vesper.values.pattern_parser import parse_pattern


@pytest.mark.parametrize(
    "text, count",
    [
        ("", 0),
        ("abc", 3),
        ("a|b", 4),
        ("a|b|c", 7),
        ("|", 2),
        ("(a)", 3),
        ("(?:a)", 1),
        ("a?", 2),
        ("a*", 3),
        ("a+", 2),
        ("a{3}", 3),
        ("a{0}", 0),
        ("a{2,5}", 8),
        ("a{2,}", 5),
        ("a{0,}", 3),
        ("a{1,}", 4),
        ("(?is)^.[^a-z\\d]\\p{Lu}$", 5),
        ("(?:(a|b*)c){3}", 27),
        ("a{1000}", 1000),
        ("(?:a{100}){100}", 10_000),
    ],
)
def test_instructions_are_counted(text: str, count: int) -> None:
    assert instructions(parse_pattern(text).root) == count


@pytest.mark.parametrize(
    "text, wrong, problem",
    [
        ("a(b", "(", "no `)`"),
        ("ab)", ")", "no `(`"),
        ("*a", "*", "nothing for `*` to repeat"),
        ("a|+", "+", "nothing"),
        ("a**", "**", "repeated"),
        ("a*+", "*+", "possessive"),
        ("^*", "^*", "anchor"),
        ("x(a*)*", "(a*)*", "empty string"),
        ("(a|)+", "(a|)+", "empty string"),
        ("(?:^){2,}", "(?:^){2,}", "empty string"),
        ("a{3,2}", "{3,2}", "less"),
        ("a{1001}", "1001", "1,000"),
        ("a{,3}", "{", "count"),
        ("a{b}", "{", "count"),
        ("a{2", "{2", "count"),
        ("a]", "]", "`\\]`"),
        ("a}", "}", "`\\}`"),
        ("[", "[", "no `]`"),
        ("[]", "[]", "at least one"),
        ("[^]", "[^]", "at least one"),
        ("[z-a]", "z-a", "after its last"),
        ("[a-c-e]", "-", "hyphen"),
        ("[\\d-z]", "\\d-", "range"),
        ("[a-\\d]", "a-\\d", "range"),
        ("[a[b]", "[", "`\\[`"),
        ("[[:alpha:]]", "[", "[:…:]"),
        ("[a&&b]", "&&", "intersection"),
        ("[\\b]", "\\b", "anchors"),
        ("x\\1", "\\1", "back-reference"),
        ("\\k", "\\k", "back-reference"),
        ("\\A", "\\A", "`^`"),
        ("\\Z", "\\Z", "`$`"),
        ("\\é", "\\é", "escape"),
        ("\\ ", "\\ ", "escape"),
        ("\\", "\\", "nothing after"),
        ("a(?=b)", "(?=", "look-ahead"),
        ("(?<!b)", "(?<!", "look-behind"),
        ("(?<n>b)", "(?<", "named"),
        ("(?P<n>b)", "(?P", "named"),
        ("(?>b)", "(?>", "atomic"),
        ("a(?i)", "(?i", "very start"),
        ("(?i)(?s)", "(?s", "very start"),
        ("(?ii)", "ii", "twice"),
        ("(?im)", "m", "`i` and `s`"),
        ("(?m)", "(?m", "`:`"),
        ("\\p{Xy}", "\\p{Xy}", "`Xy`"),
        ("\\pL", "\\p", "`\\p{L}`"),
        ("\\x4", "\\x4", "two"),
        ("\\x4g", "\\x4g", "two"),
        ("\\u{}", "\\u{", "`\\u{1F600}`"),
        ("\\u0041", "\\u", "`\\u{1F600}`"),
        ("\\u{D800}", "\\u{D800}", "no code point"),
        ("\\u{110000}", "\\u{110000}", "no code point"),
        ("(?:(?:a{100}){100}){2}", "(?:(?:a{100}){100}){2}", "10,000"),
        ("(" * 51 + "a" + ")" * 51, "(", "levels"),
        ("()" * 101, "(", "groups"),
        ("a" * 1001, "a" * 1001, "1,000 code points"),
    ],
)
def test_invalid_pattern_is_rejected_with_its_span(text: str, wrong: str, problem: str) -> None:
    with pytest.raises(PatternProblem) as caught:
        parse_pattern(text)
    found = caught.value
    assert text[found.start : found.end] == wrong
    assert problem in found.problem


def test_pattern_at_the_limits_is_accepted() -> None:
    parse_pattern("(" * 50 + "a" + ")" * 50)
    assert parse_pattern("()" * 100).group_count == 100
    parse_pattern("a" * 1000)
    parse_pattern("a{1000}")
