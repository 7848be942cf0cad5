"""Cut members that are kept, and are no inputs, out of JSON lines; the rest of a line is unchanged.

A line is not parsed and written again, because that would change numbers (`1.10`) and hide mistakes that the engine
refuses, such as a repeated name.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from vesper.values.strict_json import has_surrogate

_SPACE = " \t\r\n"
_decode = json.JSONDecoder(parse_float=str, parse_int=str).raw_decode


def cut_out(line: str, names: Sequence[str]) -> tuple[str, list[str | None]]:
    """Return the line without these members, and the value of each: a text, other JSON as text, or None.

    A line that is no object is unchanged: the engine refuses it.
    """
    try:
        members = _members(line)
    except (ValueError, IndexError, RecursionError):
        return line, [None] * len(names)
    found = dict.fromkeys(names)
    rest: list[str] = []
    for name, value, text in members:
        if name in found:
            found[name] = _kept_value(value)
        else:
            rest.append(text)
    return "{" + ",".join(rest) + "}", list(found.values())


def _kept_value(value: str) -> str | None:
    if value.startswith('"'):
        text = str(_decode(value)[0])
        return value if has_surrogate(text) else text  # half of a surrogate pair is no text for a column
    return None if value == "null" else value


def _members(line: str) -> list[tuple[str, str, str]]:
    """Return each member of an object: its name, the text of its value, and its own text."""
    at = _skip(line, 0)
    if line[at] != "{":
        raise ValueError("no object")
    at = _skip(line, at + 1)
    found: list[tuple[str, str, str]] = []
    while line[at] != "}" or found:
        begin = at
        if line[at] != '"':
            raise ValueError("no name")
        name, at = _decode(line, at)
        at = _skip(line, at)
        if line[at] != ":":
            raise ValueError("no colon")
        value = at = _skip(line, at + 1)
        at = _decode(line, at)[1]
        found.append((name, line[value:at], line[begin:at]))
        at = _skip(line, at)
        if line[at] == "}":
            break
        if line[at] != ",":
            raise ValueError("no comma")
        at = _skip(line, at + 1)
    if _skip(line, at + 1) != len(line):
        raise ValueError("more than an object")
    return found


def _skip(line: str, at: int) -> int:
    while at < len(line) and line[at] in _SPACE:
        at += 1
    return at
