"""Applies safe fixes to a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vesper.compiler.fixing import RepairedText, repair
from vesper.language.diagnostics.diagnostic import Diagnostic
from vesper.language.diagnostics.source import SourceFile
from vesper.storage.write_file import replace_text


def repair_file(path: Path, source: SourceFile, diagnostics: Sequence[Diagnostic]) -> RepairedText:
    """Apply safe fixes, and write the file if its text changed."""
    repaired = repair(source, diagnostics)
    if repaired.applied:
        replace_text(path, repaired.source.text)
    return repaired
