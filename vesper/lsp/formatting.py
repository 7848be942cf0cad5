"""Formatting by the formatter of `vesper fmt`: a whole document, or the changes of it within a range."""

from __future__ import annotations

import re

from lsprotocol import types

from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.syntax.format.formatter import format_source
from vesper.language.syntax.format.line_changes import line_changes
from vesper.lsp.server import VesperServer
from vesper.lsp.view import View


def register(server: VesperServer) -> None:
    server.on_document(types.TEXT_DOCUMENT_FORMATTING, format_document)

    @server.feature(types.TEXT_DOCUMENT_RANGE_FORMATTING)
    def _(params: types.DocumentRangeFormattingParams) -> list[types.TextEdit] | None:
        edits = format_document(server.view(params.text_document.uri))
        first, last = params.range.start.line, params.range.end.line
        return edits and [each for each in edits if each.range.start.line <= last and each.range.end.line >= first]


def format_document(view: View) -> list[types.TextEdit] | None:
    """Return the changed lines; None for a text that is no YAML, whose diagnostics show why."""
    formatted = format_source(DiagnosticBag(view.source))
    if formatted is None:
        return None
    old, new = (re.findall(r"[^\n]*\n|[^\n]+", text) for text in (view.source.text, formatted))
    return [
        types.TextEdit(types.Range(types.Position(first, 0), types.Position(last, 0)), "".join(new[start:end]))
        for tag, first, last, start, end in line_changes(old, new)
        if tag == "replace"
    ]
