"""SQL as lines: a statement that is too long for one line is broken here."""

from __future__ import annotations

import re

MAX_LINE_CHARACTERS = 72
_CLAUSES = (
    "(?:(?:LEFT|RIGHT|FULL|INNER|CROSS) (?:OUTER )?)?JOIN",
    "EXCEPT",
    "FROM",
    "GROUP BY",
    "HAVING",
    "INTERSECT",
    "LIMIT",
    "ON CONFLICT",
    "ORDER BY",
    "RETURNING",
    "SET",
    "UNION",
    "VALUES",
    "WHERE",
)
_TOKEN = re.compile(rf"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|[()]|\n|\b(?P<clause>{'|'.join(_CLAUSES)})\b|.", re.DOTALL)


def sql_lines(sql: str) -> list[str]:
    """Split a statement before its clauses and after its line breaks. The parts joined are the statement.

    Text in parentheses or quotes is not split by clauses. A part that is still too long is broken between words.
    """
    parts = [""]
    depth = 0
    for token in _TOKEN.finditer(sql):
        text = token.group()
        depth += (text == "(") - (text == ")")
        is_clause = token.group("clause") is not None and depth == 0
        if parts[-1].endswith("\n") or (is_clause and parts[-1].strip()):
            parts.append("")
        parts[-1] += text
    return [line for part in parts if part for line in _break_at_spaces(part)]


def _break_at_spaces(part: str) -> list[str]:
    """Break a part after spaces, none of them in quotes, so that each line is short."""
    lines = [""]
    for word in re.findall(r"(?:'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|[^ '\"]|['\"])*(?: +|$)", part):
        if lines[-1] and len(lines[-1]) + len(word.rstrip()) > MAX_LINE_CHARACTERS:
            lines.append("")
        lines[-1] += word
    return [line for line in lines if line]
