"""Location of an expression on a line, found from the text alone.

Text that YAML rejects or misreads has no tree. This module inspects one line and its neighbours and recognises the
places where block style has an expression on its own line: clauses of `preconditions` and `postconditions`, the `value`
of a compute step, and `when`, `then` and `otherwise` of a row. In doubt it returns None.
"""

from __future__ import annotations

import re

from vesper.language.diagnostics.source import SourceFile, Span

_LINE = re.compile(r"(?P<margin> *(?P<dash>- +)?)(?:(?P<key>value|when|then|otherwise): +)?(?P<rest>[^ #|>].*)")
_CLAUSES = re.compile(r" *(?:preconditions|postconditions): *(?:#.*)?")
_COMPUTE = re.compile(r"operation: +compute *(?:#.*)?")
_BLANK = re.compile(r"\s*(?:#.*)?")
_ITEM = re.compile(r" *- ")
_MAX_LINES = 500
"""Maximum number of neighbouring lines read, so that a hostile file costs no more."""


def expression_slot(source: SourceFile, offset: int) -> Span | None:
    """Return the span of the expression on its line, without a comment."""
    number, _ = source.position(offset)
    text = source.line_text(number)
    match = _LINE.fullmatch(text)
    if match is None:
        return None
    margin, key = len(match["margin"]), match["key"]
    if key is None and not (match["dash"] and _is_clause(source, number, margin - len(match["dash"]))):
        return None
    if key == "value" and not _is_in_compute_step(source, number, margin):
        return None
    end = _end_of_expression(text, match.start("rest"))
    if end is None:
        return None
    start = source.offset(number, 1)
    return Span(start + match.start("rest"), start + end)


def quote_scalar(text: str) -> str:
    """Return a one-line text as a quoted YAML scalar. Double quotes are used where no escape is needed."""
    if '"' not in text and "\\" not in text:
        return f'"{text}"'
    return "'" + text.replace("'", "''") + "'"


def _end_of_expression(line: str, start: int) -> int | None:
    """Return the index at which the expression ends. None if a string in it is not closed there."""
    quote = ""
    for index in range(start, len(line)):
        character = line[index]
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character == "#" and line[index - 1] in " \t":
            return len(line[:index].rstrip())
    return None if quote else len(line.rstrip())


def _is_clause(source: SourceFile, number: int, dash_column: int) -> bool:
    """Return whether an item with this dash column belongs to a list of clauses."""
    for above in range(number - 1, max(0, number - 1 - _MAX_LINES), -1):
        text = source.line_text(above)
        column = len(text) - len(text.lstrip(" "))
        if _BLANK.fullmatch(text) or column > dash_column or (column == dash_column and _ITEM.match(text)):
            continue
        return _CLAUSES.fullmatch(text) is not None
    return False


def _is_in_compute_step(source: SourceFile, number: int, column: int) -> bool:
    """Return whether a key at this column has a sibling `operation: compute`."""
    last = source.position(len(source.text))[0]
    above = range(number - 1, max(0, number - 1 - _MAX_LINES), -1)
    below = range(number + 1, min(last, number + _MAX_LINES) + 1)
    for lines in (below,) if _ITEM.match(source.line_text(number)) else (above, below):
        for other in lines:
            text = source.line_text(other)
            if _BLANK.fullmatch(text):
                continue
            starts_item = _ITEM.match(text) is not None
            at = len(text) - len(text.lstrip(" -"))
            if at < column or (starts_item and other > number):
                break
            if at == column and _COMPUTE.fullmatch(text[at:]):
                return True
            if starts_item and at == column:
                break
    return False
