"""Insertion of a case into the text of a node; all other text stays unchanged."""

from __future__ import annotations

from collections.abc import Sequence

from vesper.language.diagnostics.source import Span
from vesper.language.syntax.yaml.edits import (
    EditRejected,
    apply_edits,
    entry_of,
    insert_item,
    is_flow,
    line_start,
    newline_of,
    read_part,
)
from vesper.language.syntax.yaml_tree import Mapping
from vesper.language.syntax.yaml_tree import Sequence as Items

_INDENT = 4
"""Indentation of the lines that `recorder.case_lines` returns."""


def add_case(text: str, lines: Sequence[str]) -> str:
    """Return the text with a case behind the last one of `testing: test_cases:`. Raises `EditRejected`.

    `lines` are indented as `recorder.case_lines` returns them.
    """
    tree = read_part(text)
    if not isinstance(tree, Mapping):
        raise EditRejected("the file is no node: it has no keys")
    testing = entry_of(tree, "testing")
    if testing is None:
        return _join(text, ["", "testing:", "  test_cases:", *lines])
    if not isinstance(testing, Mapping) or is_flow(text, testing):
        raise EditRejected("`testing` is written in brackets: paste the case by hand")
    cases = entry_of(testing, "test_cases")
    first = testing.entries[0][0].span.start
    column = first - line_start(text, first)
    if cases is None:
        head = f"{' ' * column}test_cases:"
        written = _join("", [head, *_indented(lines, column + 2)], newline_of(text))
        return apply_edits(text, [(Span(first - column, first - column), written)])
    if not isinstance(cases, Items):
        raise EditRejected("`testing: test_cases:` is no list: paste the case by hand")
    if not cases.items:
        start = len(text[: cases.span.start].rstrip(" "))
        line_end = newline_of(text)
        written = line_end + _join("", _indented(lines, column + 2), line_end).removesuffix(line_end)
        return apply_edits(text, [(Span(start, cases.span.end), written)])
    if is_flow(text, cases):
        raise EditRejected("`testing: test_cases:` is written in brackets: paste the case by hand")
    at = cases.span.start - line_start(text, cases.span.start)
    text = text if text.endswith("\n") else text + newline_of(text)
    written = _join("", _indented(lines, at), newline_of(text))
    return apply_edits(text, [insert_item(text, cases, len(cases.items), written)])


def _indented(lines: Sequence[str], column: int) -> list[str]:
    return [" " * column + line[_INDENT:] for line in lines]


def _join(before: str, lines: Sequence[str], line_end: str | None = None) -> str:
    line_end = line_end or newline_of(before)
    before = before if not before or before.endswith("\n") else before + line_end
    return before + "".join(line + line_end for line in lines)
