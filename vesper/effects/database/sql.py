"""SQL of a node in the form that a driver takes: one statement, with its `:name` parameters found for certain.

The SQL was parsed when the node was checked (vesper/language/check/flow/sql.py). Here it is only read into tokens, by
the rules of
the database that gets it: what looks like a parameter inside a string, a comment, a quoted name or a cast is none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

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
_BLOCK_SIGN = re.compile(r"/\*|\*/")


class SqlRefused(Exception):
    """What is wrong, as the end of a sentence that begins with `its SQL`."""


@dataclass(frozen=True, slots=True)
class Statement:
    text: str
    """For the driver: in SQLite as it was, in PostgreSQL with `%(name)s` for each parameter."""
    parameters: frozenset[str]
    verb: str
    """The first word, in capitals."""


@lru_cache(maxsize=4096)
def statement_of(sql: str, kind: str) -> Statement:
    """The one statement that a text is, for a database of this kind (`sqlite`, `postgres`), or a `SqlRefused`."""
    if "\0" in sql:
        raise SqlRefused("has a NUL character")
    is_postgres = kind == "postgres"
    pattern = _POSTGRES if is_postgres else _SQLITE
    parts: list[str] = []
    parameters: set[str] = set()
    verb = ""
    position, has_ended = 0, False
    while position < len(sql):
        found = pattern.match(sql, position)
        assert found is not None, "any character is a token"
        token, text, position = str(found.lastgroup), found[0], found.end()
        if token == "block":
            position = _end_of_comment(sql, position, is_nested=is_postgres)
            text = sql[found.start() : position]
        elif token == "dollar":
            position = _after(sql, text, position)
            text = sql[found.start() : position]
        if token == "line" and position == len(sql):
            # Nobody can tell any more whether it ended here, or whether what was on the next line is now part of it.
            raise SqlRefused("ends in a comment with `--`; write it as /* … */")
        if token in ("space", "line", "block"):
            if not has_ended:
                parts.append(text.replace("%", "%%") if is_postgres else text)
            continue
        if has_ended and token != "end":
            raise SqlRefused("is more than one statement")
        _check(token, text)
        if token == "end":
            has_ended = True
        elif token == "parameter":
            name = found["parameter"]
            parameters.add(name)
            parts.append(f"%({name})s" if is_postgres else text)
        else:
            if not verb and token == "word":
                verb = text.upper()
            parts.append(text.replace("%", "%%") if is_postgres else text)
    if not verb:
        raise SqlRefused("is empty")
    return Statement("".join(parts), frozenset(parameters), verb)


def _check(token: str, text: str) -> None:
    if token == "open_escape" or (token == "other" and text in "'\"`"):
        raise SqlRefused(f"has a {text} that does not end")
    if token == "no_cast":
        raise SqlRefused("has the cast `::`, which SQLite does not know; write CAST(x AS type)")
    if token == "hidden_name":
        raise SqlRefused('has a name with U&"…"; write its letters')
    if text.strip('"').lower() == "set_config" and token in ("word", "name"):
        raise SqlRefused("calls set_config, which would change the connection for those who use it next")
    if token == "position":
        raise SqlRefused(f"has the parameter `{text}`, which nothing gives; parameters are `:name`")


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


def _after(sql: str, sign: str, position: int) -> int:
    end = sql.find(sign, position)
    if end < 0:
        raise SqlRefused(f"has a {sign} that does not end")
    return end + len(sign)
