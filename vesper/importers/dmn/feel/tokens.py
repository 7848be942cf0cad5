"""Positions of a FEEL text: white space, comments, words, symbols, and names with spaces.

FEEL has no tokens of its own for names: `a - b` is one name where a name `a - b` is in scope. So the cursor reads at an
offset, and the parser passes the names in scope.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

MAX_TEXT = 200_000
_SKIP = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)+", re.DOTALL)
_START = (
    "A-Z_a-z?\u00b7\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d"
    "\u2070-\u218f\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_PART = rf"{_START}0-9\u0300-\u036f\u203f-\u2040"
WORD = re.compile(rf"[{_START}][{_PART}]*")
_PART_AFTER = re.compile(rf"[{_PART}]")
NUMBER = re.compile(r"(?:\d+(?:\.(?!\.)\d+)?|\.\d+)(?:[eE][+-]?\d+)?")
STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"', re.DOTALL)
SYMBOL = re.compile(r"\*\*|!=|<=|>=|\.\.|->|[-+*/=<>(),.\[\]{}:@]")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{6}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "'": "'", "\\": "\\"}
KEYWORDS = frozenset(
    {"for", "return", "if", "then", "else", "some", "every", "satisfies", "instance", "of", "in", "function", "or"}
    | {"and", "between", "true", "false", "null", "external"}
)


class FeelProblem(Exception):
    """The text is not FEEL; has the offset and the reason."""

    def __init__(self, at: int, reason: str) -> None:
        super().__init__(reason)
        self.at = at
        self.reason = reason


class Cursor:
    """Reads a text at `self.at`; white space and comments are skipped after each read."""

    def __init__(self, text: str) -> None:
        if len(text) > MAX_TEXT:
            raise FeelProblem(0, f"the expression has more than {MAX_TEXT} characters")
        self.text = text
        self.at = 0
        self._patterns: dict[str, re.Pattern[str]] = {}
        self.skip()

    def skip(self) -> None:
        """Move over white space and comments."""
        found = _SKIP.match(self.text, self.at)
        if found is not None:
            self.at = found.end()

    def at_end(self) -> bool:
        """Return whether the cursor is at the end of the text."""
        return self.at >= len(self.text)

    def fail(self, reason: str) -> FeelProblem:
        """Return the problem at the cursor."""
        rest = self.text[self.at : self.at + 20].strip()
        return FeelProblem(self.at, f"{reason}, and here is `{rest}`" if rest else f"{reason}, and the text ends here")

    def symbol(self) -> str:
        """Return the symbol at the cursor, or an empty text."""
        found = SYMBOL.match(self.text, self.at)
        return found[0] if found else ""

    def take(self, symbol: str) -> bool:
        """Move over a symbol if it is at the cursor."""
        if self.symbol() != symbol:
            return False
        self.at += len(symbol)
        self.skip()
        return True

    def expect(self, symbol: str) -> None:
        """Move over a symbol that must be at the cursor."""
        if not self.take(symbol):
            raise self.fail(f"expected `{symbol}`")

    def word(self) -> str:
        """Return the word at the cursor, or an empty text."""
        found = WORD.match(self.text, self.at)
        return found[0] if found else ""

    def take_word(self, word: str) -> bool:
        """Move over a keyword if it is at the cursor."""
        if self.word() != word:
            return False
        self.at += len(word)
        self.skip()
        return True

    def expect_word(self, word: str) -> None:
        """Move over a keyword that must be at the cursor."""
        if not self.take_word(word):
            raise self.fail(f"expected `{word}`")

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Move over a pattern if it is at the cursor."""
        found = pattern.match(self.text, self.at)
        if found is not None:
            self.at = found.end()
            self.skip()
        return found

    def known_name(self, names: Iterable[str]) -> str | None:
        """Move over the longest of these names at the cursor."""
        best, end = None, self.at
        for name in names:
            stop = self._end_of(name)
            if stop is not None and stop > end:
                best, end = name, stop
        if best is not None:
            self.at = end
            self.skip()
        return best

    def _end_of(self, name: str) -> int | None:
        """Return where the name ends that starts at the cursor; white space in it matches any white space."""
        text, at = self.text, self.at
        if not name or not text.startswith(name[0], at):
            return None
        pattern = self._patterns.get(name)
        if pattern is None:
            pattern = self._patterns[name] = re.compile(_spaced_pattern(name))
        found = pattern.match(text, at)
        if found is None:
            return None
        end = found.end()
        ends_in_word = _PART_AFTER.match(name[-1]) is not None
        if ends_in_word and end < len(text) and _PART_AFTER.match(text[end]):
            return None
        return end

    def string(self) -> str | None:
        """Move over a string, and return its value."""
        found = self.match(STRING)
        return None if found is None else unescape(found[1])


def _spaced_pattern(name: str) -> str:
    """Return a pattern for a name: between words white space is required, around symbols it is optional."""
    parts: list[str] = re.findall(rf"[{_PART}]+|[^\s{_PART}]", name)
    pattern = re.escape(parts[0])
    for left, right in pairwise(parts):
        both = _PART_AFTER.match(left[-1]) and _PART_AFTER.match(right[0])
        pattern += (r"\s+" if both else r"\s*") + re.escape(right)
    return pattern


def unescape(text: str) -> str:
    """Resolve the escapes of a string."""

    def one(found: re.Match[str]) -> str:
        escape = found[1]
        if len(escape) > 1:
            return chr(int(escape[1:], 16))
        return _ESCAPED.get(escape, f"\\{escape}")

    value = _ESCAPE.sub(one, text)
    # Two escapes of four digits may be one character beyond the basic plane.
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
