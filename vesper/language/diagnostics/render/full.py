"""Diagnostics with the source line, a caret under the span, and help."""

from __future__ import annotations

from vesper.language.diagnostics.diagnostic import Diagnostic
from vesper.language.diagnostics.excerpt import render_excerpt
from vesper.language.diagnostics.source import SourceFile


def render_full(source: SourceFile, diagnostic: Diagnostic) -> str:
    """Return the diagnostic with its source lines and help."""
    title = f"{diagnostic.severity.value}[{diagnostic.code.number}]: {diagnostic.headline}"
    footer = [] if diagnostic.help is None else [f"help: {diagnostic.help}"]
    return render_excerpt(source, title, diagnostic.primary, diagnostic.secondary, footer)
