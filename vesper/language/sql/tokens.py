"""Tokens of SQL by the rules of one database, `postgres` or `sqlite`.

Text inside a string, a comment or a quoted name is not code. Checker and performer read statements
with the same rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_COMMON = r"""
    (?P<string>'(?:[^']|'')*+')
  | (?P<name>"(?:[^"]|"")*+")
  | (?P<line>--[^\n\r]*)
  | (?P<block>/\*)
"""
_POSTGRES = re.compile(
    rf"""(?P<escape>[eE]'(?:[^'\\]|\\.|'')*+')
  | (?P<open_escape>[eE]')
  | {_COMMON}
  | (?P<hidden_name>[uU]&")
  | (?P<dollar>\$(?:[A-Za-z_\u0080-\uffff][A-Za-z0-9_\u0080-\uffff]*)?\$)
  | (?P<word>[A-Za-z_\u0080-\U0010ffff][A-Za-z0-9_$\u0080-\U0010ffff]*)
  | (?P<cast>::)
  | :(?P<parameter>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<position>\$[0-9])
  | (?P<end>;)
  | (?P<number>[0-9]+)
  | (?P<space>\s+)
  | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_SQLITE = re.compile(
    rf"""{_COMMON}
  | (?P<bracket>\[[^\]]*\])
  | (?P<tick>`(?:[^`]|``)*+`)
  | (?P<word>[A-Za-z_\u0080-\U0010ffff][A-Za-z0-9_$\u0080-\U0010ffff]*)
  | (?P<no_cast>::)
  | :(?P<parameter>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<position>[?@$])
  | (?P<end>;)
  | (?P<number>[0-9]+)
  | (?P<space>\s+)
  | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_PATTERNS = {"postgres": _POSTGRES, "sqlite": _SQLITE}
_BLOCK_SIGN = re.compile(r"/\*|\*/")


class SqlRefused(Exception):
    """A statement that cannot be used. The text continues a sentence that begins with `its SQL`."""


class Token(NamedTuple):
    """One token: its kind, its text, and its index in the statement."""

    kind: str
    text: str
    start: int


def tokens_of(sql: str, database: str) -> Iterator[Token]:
    """Yield all tokens, with spaces and comments. Raises `SqlRefused` where a comment or string does not end."""
    if "\0" in sql:
        raise SqlRefused("has a NUL character")
    pattern = _PATTERNS[database]
    position = 0
    while position < len(sql):
        found = pattern.match(sql, position)
        assert found is not None, "any character is a token"
        kind, start, position = str(found.lastgroup), found.start(), found.end()
        if kind == "block":
            position = _end_of_comment(sql, position, is_nested=database == "postgres")
        elif kind == "dollar":
            position = _index_after(sql, found[0], position)
        yield Token(kind, sql[start:position], start)


def _end_of_comment(sql: str, position: int, is_nested: bool) -> int:
    depth = 1
    while depth:
        found = _BLOCK_SIGN.search(sql, position)
        if found is None:
            raise SqlRefused("has a comment that does not end")
        position = found.end()
        if found[0] == "*/":
            depth -= 1
        elif is_nested:
            depth += 1
        else:
            position = found.start() + 1  # of `/*/` in a comment the end may be its last two signs
    return position


def _index_after(sql: str, sign: str, position: int) -> int:
    end = sql.find(sign, position)
    if end < 0:
        raise SqlRefused(f"has a {sign} that does not end")
    return end + len(sign)
