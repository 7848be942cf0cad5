"""Diagnostics as JSON values. Lines and columns start at 1 and count code points; ends are exclusive."""

from __future__ import annotations

from typing import Any

from vesper.language.diagnostics.diagnostic import Diagnostic, Label
from vesper.language.diagnostics.fix import Fix
from vesper.language.diagnostics.source import SourceFile, Span


def render_json(source: SourceFile, diagnostic: Diagnostic) -> dict[str, Any]:
    """Return the diagnostic as a JSON object."""
    rendered = {
        "code": diagnostic.code.number,
        "name": diagnostic.code.title,
        "severity": diagnostic.severity.value,
        "headline": diagnostic.headline,
        "path": source.path,
        **_label(source, diagnostic.primary),
        "secondary": [_label(source, label) for label in diagnostic.secondary],
        "help": diagnostic.help,
    }
    if diagnostic.fix is not None:
        rendered["fix"] = _fix(source, diagnostic.fix)
    return rendered


def place_json(source: SourceFile, span: Span) -> dict[str, int]:
    """Return a span as `line`, `column`, `end_line` and `end_column`."""
    line, column = source.position(span.start)
    end_line, end_column = source.position(span.end)
    return {"line": line, "column": column, "end_line": end_line, "end_column": end_column}


def _label(source: SourceFile, label: Label) -> dict[str, Any]:
    return {**place_json(source, label.span), "label": label.text}


def _fix(source: SourceFile, fix: Fix) -> dict[str, Any]:
    edits = [{**place_json(source, edit.span), "replacement": edit.replacement} for edit in fix.edits]
    return {"description": fix.description, "safety": fix.safety.value, "edits": edits}
