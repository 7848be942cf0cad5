"""Diagnostics of Vesper in the form of the protocol."""

from __future__ import annotations

from lsprotocol import types

from vesper.language.diagnostics.diagnostic import Diagnostic, Label, Severity
from vesper.language.diagnostics.source import SourceFile
from vesper.lsp.positions import to_range

SOURCE = "vesper"
_SEVERITIES = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.NOTE: types.DiagnosticSeverity.Information,
}


def to_lsp(source: SourceFile, uri: str, diagnostic: Diagnostic) -> types.Diagnostic:
    """Return a diagnostic of a text; its other places are related information."""
    lines = [diagnostic.headline, diagnostic.primary.text, f"help: {diagnostic.help}" if diagnostic.help else ""]
    return types.Diagnostic(
        range=to_range(source, diagnostic.primary.span),
        message="\n".join(filter(None, lines)),
        severity=_SEVERITIES[diagnostic.severity],
        code=diagnostic.code.number,
        source=SOURCE,
        tags=[types.DiagnosticTag.Unnecessary] if diagnostic.code.title.startswith("unused-") else None,
        related_information=[_related(source, uri, label) for label in diagnostic.secondary] or None,
    )


def _related(source: SourceFile, uri: str, label: Label) -> types.DiagnosticRelatedInformation:
    return types.DiagnosticRelatedInformation(types.Location(uri, to_range(source, label.span)), label.text or "see")
