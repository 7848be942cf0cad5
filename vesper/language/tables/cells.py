"""The grammar of cells: `-`, `DE, FR`, `>= 100`, `[0..100)`, `not(…)`, `null`, `{len(value) > 3}`.

Takes the text of one cell and returns its tests with offsets into the text. The column's type decides later what an
operand means, so the grammar needs no types.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

MAX_TESTS = 1_000
"""Maximum number of tests in one cell."""
OPERATORS = ("<=", ">=", "==", "!=", "<", ">")
_QUOTES = "'\""
_STARTS = {"[": True, "(": False}
_ENDS = {"]": True, ")": False}


class CellProblem(Exception):
    """A part of a cell that cannot be read, with the expectation and a repair."""

    def __init__(self, start: int, end: int, expected: str, found: str, help_: str | None = None) -> None:
        super().__init__(f"expected {expected}, found {found}")
        self.start = start
        self.end = end
        self.expected = expected
        self.found = found
        self.help = help_


@dataclass(frozen=True, slots=True)
class Operand:
    """A literal or expression in a cell. Quoted text is a literal without its quotes."""

    text: str
    start: int
    end: int
    is_quoted: bool


@dataclass(frozen=True, slots=True)
class Compare:
    """`>= 100`, or a literal alone, which means equality."""

    operator: str
    operand: Operand
    is_bare: bool = False


@dataclass(frozen=True, slots=True)
class Between:
    """`[a..b]` and its forms with open ends."""

    low: Operand
    high: Operand
    is_low_closed: bool
    is_high_closed: bool


@dataclass(frozen=True, slots=True)
class Not:
    """`not(…)`: every value that none of the tests matches, null included."""

    tests: tuple[Test, ...]


@dataclass(frozen=True, slots=True)
class IsNull:
    """`null`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Condition:
    """`{…}`: a condition over `value`. The offsets are those of the text between the braces."""

    start: int
    end: int


Test: TypeAlias = Compare | Between | Not | IsNull | Condition
ANY: tuple[Test, ...] = ()
"""The tests of `-`: every value matches."""
_WORD = r"[A-Za-z0-9_+:-]+(?:\.[A-Za-z0-9_+:-]+)*"
_COMPARISON = re.compile(rf"(<=|>=|==|!=|<|>|) ?({_WORD})")
_RANGE = re.compile(rf"([\[(])({_WORD})\.\.({_WORD})([\])])")


def parse_cell(text: str) -> tuple[Test, ...]:
    """Return the tests of a cell, empty for `-`. Raises `CellProblem` if the text is not a cell."""
    if text.strip() == "-":
        return ANY
    return _simple_cell(text) or _CellParser(text).cell()


def _simple_cell(text: str) -> tuple[Test, ...] | None:
    """Return the test of a cell with one comparison or range of plain words.

    None for other cells. Almost every cell of a file is simple; the parser takes four times as long for an equal
    result.
    """
    found = _COMPARISON.fullmatch(text)
    if found is not None:
        operator, word = found.groups()
        if word in ("null", "-"):
            return None
        operand = Operand(word, found.start(2), found.end(2), is_quoted=False)
        return (Compare(operator or "==", operand, is_bare=not operator),)
    found = _RANGE.fullmatch(text)
    if found is None:
        return None
    opening, first, last, closing = found.groups()
    low = Operand(first, found.start(2), found.end(2), is_quoted=False)
    high = Operand(last, found.start(3), found.end(3), is_quoted=False)
    return (Between(low, high, _STARTS[opening], _ENDS[closing]),)


class _CellParser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._count = 0

    def cell(self) -> tuple[Test, ...]:
        tests = self._tests(is_inside=False)
        if self._at < len(self._text):
            self._fail("`,` or the end of the cell")
        return tests

    def _tests(self, is_inside: bool) -> tuple[Test, ...]:
        found = [self._test(is_inside)]
        while self._peek() == ",":
            self._at += 1
            found.append(self._test(is_inside))
        return tuple(found)

    def _test(self, is_inside: bool) -> Test:
        self._count += 1
        if self._count > MAX_TESTS:
            self._fail(f"at most {MAX_TESTS:,} tests in one cell")
        character = self._peek()
        if character == "":
            help_ = '`-` matches every value; text that is empty has quotes: `""`'
            raise CellProblem(self._at, self._at, "a test", "nothing", help_)
        for operator in OPERATORS:
            if self._text.startswith(operator, self._at):
                self._at += len(operator)
                return Compare(operator, self._operand(",)" if is_inside else ","))
        if character == "{":
            return self._condition()
        if character in _STARTS:
            return self._between(character)
        if self._text.startswith("not(", self._at) and not is_inside:
            self._at += len("not(")
            tests = self._tests(is_inside=True)
            self._expect(")")
            return Not(tests)
        operand = self._operand(",)" if is_inside else ",")
        if operand.text == "null" and not operand.is_quoted:
            return IsNull(operand.start, operand.end)
        if operand.text == "-" and not operand.is_quoted:
            help_ = '`-` stands alone; the text `-` has quotes: `"-"`'
            raise CellProblem(operand.start, operand.end, "a test", "`-`", help_)
        return Compare("==", operand, is_bare=True)

    def _between(self, opening: str) -> Between:
        self._at += 1
        low = self._operand("..")
        if not self._text.startswith("..", self._at):
            self._fail("`..` of a range", "text that starts with a bracket has quotes")
        self._at += 2
        high = self._operand("])")
        closing = self._peek()
        if closing not in _ENDS:
            self._fail("`]` or `)` that ends the range")
        self._at += 1
        return Between(low, high, _STARTS[opening], _ENDS[closing])

    def _condition(self) -> Condition:
        start = self._at + 1
        depth, quote = 0, ""
        for index in range(self._at, len(self._text)):
            character = self._text[index]
            if quote:
                quote = "" if character == quote else quote
            elif character in _QUOTES:
                quote = character
            elif character in "{}":
                depth += 1 if character == "{" else -1
                if depth == 0:
                    self._at = index + 1
                    if not self._text[start:index].strip():
                        raise CellProblem(start - 1, index + 1, "a condition over `value`", "nothing")
                    return Condition(start, index)
        raise CellProblem(start - 1, start, "`}` that ends this condition", "none")

    def _operand(self, ends: str) -> Operand:
        """Read to one of the ending characters, or to `..`. Brackets and quotes nest."""
        self._peek()
        start = self._at
        if start < len(self._text) and self._text[start] in _QUOTES:
            quoted = self._quoted()
            following = self._peek()
            if following == "" or following in ends:
                return quoted
            self._at = start
        depth, quote = 0, ""
        while self._at < len(self._text):
            character = self._text[self._at]
            if quote:
                quote = "" if character == quote else quote
            elif character in _QUOTES and self._may_open_quote(start):
                quote = character
            elif depth == 0 and (self._text.startswith("..", self._at) if ends == ".." else character in ends):
                break
            elif character in "([{":
                depth += 1
            elif character in ")]}":
                depth -= 1
            self._at += 1
        if quote:
            raise CellProblem(start, self._at, f"a closing {quote}", "none")
        end = start + len(self._text[start : self._at].rstrip())
        if end == start:
            self._fail("a literal or an expression")
        return Operand(self._text[start:end], start, end, is_quoted=False)

    def _may_open_quote(self, start: int) -> bool:
        """Return whether a quote starts quoted text. One inside a word, as in `don't`, does not."""
        return self._at == start or not self._text[self._at - 1].isalnum()

    def _quoted(self) -> Operand:
        start = self._at
        quote = self._text[start]
        pieces: list[str] = []
        at = start + 1
        while True:
            end = self._text.find(quote, at)
            if end < 0:
                raise CellProblem(start, len(self._text), f"a closing {quote}", "none")
            pieces.append(self._text[at:end])
            if not self._text.startswith(quote * 2, end):
                self._at = end + 1
                return Operand(quote.join(pieces), start, end + 1, is_quoted=True)
            at = end + 2

    def _peek(self) -> str:
        """Return the next character after white space; empty at the end."""
        while self._at < len(self._text) and self._text[self._at].isspace():
            self._at += 1
        return self._text[self._at : self._at + 1]

    def _expect(self, character: str) -> None:
        if self._peek() != character:
            self._fail(f"`{character}`")
        self._at += 1

    def _fail(self, expected: str, help_: str | None = None) -> NoReturn:
        found = self._peek()
        raise CellProblem(self._at, self._at + len(found), expected, f"`{found}`" if found else "the end", help_)
