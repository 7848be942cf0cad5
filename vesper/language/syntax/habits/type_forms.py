"""Translation of a type in a foreign spelling: `list[str]`, `decimal?`, `string | null`, `int[]`."""

from __future__ import annotations

import re
from collections.abc import Callable

from vesper.language.syntax.habits.table import TYPES

_TOKEN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|'[^']*'|\"[^\"]*\"|[0-9]+|\S")
_NULL = frozenset(["null", "None", "NULL", "undefined", "nil"])
_OPEN = {"[": "]", "<": ">", "(": ")", "{": "}"}
_ARITY = {"array": 1, "set": 1, "optional": 1, "map": 2}
_SIZED = frozenset(TYPES.values())
"""Types that SQL gives a size in brackets."""
_MAX_TEXT = 300


def respell_type(text: str) -> str | None:
    """Return the intended type, or None if it is not clear."""
    tokens = _TOKEN.findall(text.rstrip(" ;,"))
    if len(text) > _MAX_TEXT or not tokens:
        return None
    reader = _Reader(tokens)
    try:
        found = reader.type()
    except ValueError:
        return None
    return found if reader.position == len(tokens) and found != text else None


class _Reader:
    """Reads types of several languages. Raises ValueError for other texts."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = [*tokens, ""]
        self.position = 0

    def type(self) -> str:
        found = self._suffixed_type()
        while self._next in ("|", "or"):
            self._take()
            other = self._suffixed_type()
            if "null" not in (found, other):
                raise ValueError
            found = _optional(other if found == "null" else found)
        return found

    def _suffixed_type(self) -> str:
        found = self._list_type() if self._next == "[" else self._named_type()
        while self._next in ("?", "["):
            if self._take() == "?":
                found = _optional(found)
                continue
            self._expect("]")
            found = f"array<{found}>"
        return found

    def _list_type(self) -> str:
        self._take()
        element = self.type()
        self._expect("]")
        return f"array<{element}>"

    def _named_type(self) -> str:
        word = self._take()
        if word in _NULL:
            return "null"
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", word):
            raise ValueError
        name = TYPES.get(word, word)
        if name == "enum" and self._next in _OPEN:
            members = self._arguments(self._member)
            return f"enum[{', '.join(members)}]"
        if name not in _ARITY:
            if self._next == "(" and name in _SIZED:  # `varchar(20)`, `decimal(10, 2)`
                self._arguments(self._take)
            return name
        if self._next not in _OPEN or self._tokens[self.position + 1] == "]":
            raise ValueError
        arguments = self._arguments(self.type)
        if len(arguments) != _ARITY[name]:
            raise ValueError
        return f"{name}<{', '.join(arguments)}>"

    def _member(self) -> str:
        word = self._take()
        if not re.fullmatch(r"['\"]?[A-Za-z_][A-Za-z0-9_]*['\"]?", word):
            raise ValueError
        return word.strip("'\"")

    def _arguments(self, read: Callable[[], str]) -> list[str]:
        close = _OPEN[self._take()]
        found = [read()]
        while self._next == ",":
            self._take()
            found.append(read())
        self._expect(close)
        return found

    @property
    def _next(self) -> str:
        return self._tokens[self.position]

    def _take(self) -> str:
        if not self._next:
            raise ValueError
        self.position += 1
        return self._tokens[self.position - 1]

    def _expect(self, text: str) -> None:
        if self._take() != text:
            raise ValueError


def _optional(inner: str) -> str:
    return inner if inner.startswith("optional<") else f"optional<{inner}>"
