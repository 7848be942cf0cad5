"""Diagnostics on one line each, for tools and logs."""

from __future__ import annotations

from vesper.language.diagnostics.diagnostic import Diagnostic
from vesper.language.diagnostics.source import SourceFile


def render_concise(source: SourceFile, diagnostic: Diagnostic) -> str:
    """Return the diagnostic as `path:line:column: severity[code] headline`."""
    line, column = source.position(diagnostic.primary.span.start)
    return f"{source.path}:{line}:{column}: {diagnostic.severity.value}[{diagnostic.code.number}] {diagnostic.headline}"
