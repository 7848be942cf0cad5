"""Edits of YAML text by its tree: one value, one entry, one item. All other text stays unchanged.

An edit is a replacement of a span. Items and entries go with their own lines and with the comments directly above.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeAlias

from vesper.language.diagnostics.diagnostic import CheckingStopped, DiagnosticBag
from vesper.language.diagnostics.source import SourceFile, Span
from vesper.language.syntax.expression_slot import quote_scalar
from vesper.language.syntax.yaml.reader import read_yaml
from vesper.language.syntax.yaml_tree import Mapping, Scalar, Sequence, Tree
from vesper.values.vesper_error import VesperError

Edit: TypeAlias = tuple[Span, str]
_ONE_LINE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f\x85\u2028\u2029]*")
_COMMENT_LINE = re.compile(r"[ \t]*#.*")


class EditRejected(VesperError):
    """An edit that is not possible in this text. The message gives the reason; the text is unchanged."""


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Return the text after all edits, which must not overlap."""
    for span, replacement in sorted(edits, key=lambda each: each[0].start, reverse=True):
        text = text[: span.start] + replacement + text[span.end :]
    return text


def entry_of(tree: Tree | None, key: str) -> Tree | None:
    """Return the value of a key, or None."""
    if not isinstance(tree, Mapping):
        return None
    return next((value for name, value in tree.entries if name.text == key), None)


def is_flow(text: str, tree: Tree) -> bool:
    """Return whether a list or a mapping is written in brackets."""
    return text[tree.span.start : tree.span.start + 1] in ("{", "[")


def read_part(text: str) -> Tree | None:
    """Return the tree of a small text. None if it is not YAML."""
    try:
        return read_yaml(DiagnosticBag(SourceFile("", text)))
    except CheckingStopped:
        return None


def write_scalar(text: str, in_flow: bool, style: str = "") -> str:
    """Return a one-line text as a YAML scalar.

    It has the given quotes, or is plain if YAML reads that unchanged, else quoted.
    """
    if not _ONE_LINE.fullmatch(text):
        raise EditRejected("a value on one line is expected")
    if style == "'":
        return "'" + text.replace("'", "''") + "'"
    if style == '"':
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return text if _reads_as_itself(text, in_flow) else quote_scalar(text)


def _reads_as_itself(text: str, in_flow: bool) -> bool:
    document = f"{{k: {text}}}" if in_flow else f"k: {text}"
    tree = read_part(document)
    if not isinstance(tree, Mapping) or len(tree.entries) != 1:
        return False
    value = tree.entries[0][1]
    return isinstance(value, Scalar) and document[value.span.start : value.span.end] == text != ""


# -- entries of a mapping -------------------------------------------------------------------------


def insert_entry(text: str, mapping: Mapping, index: int, key: str, value: str) -> Edit:
    """Return the edit that adds `key: value` before the entry `index`, or at the end."""
    entries, line_end = mapping.entries, newline_of(text)
    written = f"{key}: {value}"
    if is_flow(text, mapping):
        if not entries:
            return Span(mapping.span.start + 1, mapping.span.start + 1), written
        if index < len(entries):
            return _empty_span(entries[index][0].span.start), f"{written}, "
        return _empty_span(entries[-1][1].span.end), f", {written}"
    start = entries[0][0].span.start
    indent = " " * (start - line_start(text, start))
    if index == 0:
        return _empty_span(start), f"{written}{line_end}{indent}"
    end = _line_end(text, entries[index - 1][1].span)
    return _empty_span(end), f"{indent}{written}{line_end}"


def remove_entry(text: str, mapping: Mapping, index: int) -> Edit:
    """Return the edit that removes an entry of a mapping. The last one of a block cannot be removed."""
    entries = mapping.entries
    start, end = entries[index][0].span.start, entries[index][1].span.end
    is_last = index == len(entries) - 1
    if is_flow(text, mapping):
        if is_last:
            return Span(entries[index - 1][1].span.end if index else start, end), ""
        return Span(start, entries[index + 1][0].span.start), ""
    if len(entries) == 1:
        raise EditRejected(f"`{entries[0][0].text}` is the only entry here: edit it in the text")
    if index == 0:
        return Span(start, entries[1][0].span.start), ""
    return Span(line_start(text, start), _line_end(text, entries[index][1].span)), ""


# -- items of a list ------------------------------------------------------------------------------


def item_span(text: str, items: Sequence, index: int, with_comments: bool = True) -> Span:
    """Return the span of an item.

    In block style it has the item's lines with the dash, in flow style only the value.
    """
    item = items.items[index]
    if is_flow(text, items):
        return item.span
    first = line_start(text, items.span.start)
    indent = items.span.start - first
    if text[first : items.span.start].strip():
        raise EditRejected("this list starts on the line of another: edit it in the text")
    start = first
    if index:
        above = items.items[index - 1].span
        dash = re.compile(rf"^ {{{indent}}}-(?=[ \t\r\n]|$)", re.MULTILINE)
        found = dash.search(text, _line_end(text, above), item.span.start + 1)
        if found is None:
            raise EditRejected("the dash of this item was not found: edit it in the text")
        start = found.start()
    while with_comments and start > 0:
        above_start = line_start(text, start - 1)
        if not _COMMENT_LINE.fullmatch(text[above_start:start].rstrip("\r\n")):
            break
        start = above_start
    return Span(start, _line_end(text, item.span))


def insert_item(text: str, items: Sequence, index: int, written: str) -> Edit:
    """Return the edit that adds an item before another, or at the end.

    The other is the item `index`. In block style `written` are whole lines, as `item_span` returns them.
    """
    listed = items.items
    if not is_flow(text, items):
        where = item_span(text, items, min(index, len(listed) - 1))
        return _empty_span(where.start if index < len(listed) else where.end), written
    if not listed:
        return _empty_span(items.span.start + 1), written
    between = text[listed[0].span.end : listed[1].span.start] if len(listed) > 1 else ", "
    between = ", " if "#" in between else between
    if index < len(listed):
        return _empty_span(listed[index].span.start), f"{written}{between}"
    return _empty_span(listed[-1].span.end), f"{between}{written}"


def remove_item(text: str, items: Sequence, index: int) -> Edit:
    """Return the edit that removes an item of a list. The list must have several."""
    listed = items.items
    if not is_flow(text, items):
        return item_span(text, items, index), ""
    if index < len(listed) - 1:
        return Span(listed[index].span.start, listed[index + 1].span.start), ""
    return Span(listed[index - 1].span.end, listed[index].span.end), ""


def move_item(text: str, items: Sequence, index: int, to: int) -> list[Edit]:
    """Return the edits that move the item `index` to the position `to`. Text between the items stays in place."""
    spans = [item_span(text, items, each) for each in range(min(index, to), max(index, to) + 1)]
    texts = [text[each.start : each.end] for each in spans]
    first = min(index, to)
    texts.insert(to - first, texts.pop(index - first))
    return list(zip(spans, texts, strict=True))


# -- lines ----------------------------------------------------------------------------------------


def newline_of(text: str) -> str:
    """Return the line end that a text uses."""
    return "\r\n" if "\r\n" in text else "\n"


def line_start(text: str, offset: int) -> int:
    return text.rfind("\n", 0, offset) + 1


def _line_end(text: str, span: Span) -> int:
    """Return the start of the line below the last character of a span."""
    last = span.start + len(text[span.start : span.end].rstrip())
    end = text.find("\n", last)
    return len(text) if end == -1 else end + 1


def _empty_span(offset: int) -> Span:
    return Span(offset, offset)
