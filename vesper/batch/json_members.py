"""Members of lines of JSON that are kept and are no inputs: cut out of their lines, which stay as they are otherwise.

A line is not parsed and written anew, because that would change numbers (`1.10`) and hide what the engine refuses, such
as a name that stands twice.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from vesper.values.json_value import has_surrogate

_SPACE = " \t\r\n"
_decode = json.JSONDecoder(parse_float=str, parse_int=str).raw_decode


def cut_out(line: str, names: Sequence[str]) -> tuple[str, list[str | None]]:
    """The line without these members, and what each of them is: a text as it is, anything else as its JSON, None where
    it is null or not there. A line that is no object is left as it is: the engine says what is wrong with it."""
    try:
        members = _members(line)
    except (ValueError, IndexError, RecursionError):
        return line, [None] * len(names)
    found = dict.fromkeys(names)
    rest: list[str] = []
    for name, value, text in members:
        if name in found:
            found[name] = _kept(value)
        else:
            rest.append(text)
    return "{" + ",".join(rest) + "}", list(found.values())


def _kept(value: str) -> str | None:
    if value.startswith('"'):
        text = str(_decode(value)[0])
        return value if has_surrogate(text) else text  # half of a pair of escapes is no text that a column could hold
    return None if value == "null" else value


def _members(line: str) -> list[tuple[str, str, str]]:
    """Each member of an object: its name, the text of its value, and its own text."""
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
