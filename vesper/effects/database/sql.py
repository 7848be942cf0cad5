"""SQL of a node in the form that a driver takes: one statement, with its `:name` parameters found for certain.

The SQL was parsed when the node was checked (vesper/language/check/flow/sql.py). Here it is only read into tokens, by
the rules of the database that gets it (vesper/language/sql/tokens.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from vesper.language.sql.tokens import SqlRefused, tokens_of

__all__ = ["SqlRefused", "Statement", "statement_of"]


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
    is_postgres = kind == "postgres"
    parts: list[str] = []
    parameters: set[str] = set()
    verb = ""
    has_ended = False
    for token, text, start in tokens_of(sql, kind):
        if token == "line" and start + len(text) == len(sql):
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
            name = text[1:]
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
