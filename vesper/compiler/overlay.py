"""Compilation of a node with an overlay of parameters. Nothing of it is cached."""

from __future__ import annotations

from pathlib import Path

from vesper.compiler.callees import Collection, Neighbours, collection_folder
from vesper.compiler.compiled import Compiled
from vesper.compiler.pipeline import compile_file, unreadable
from vesper.compiler.reading import MAX_BYTES
from vesper.language.check.overlay import Overlay
from vesper.language.diagnostics.diagnostic import CheckingStopped, DiagnosticBag
from vesper.language.diagnostics.source import SourceFile
from vesper.repository.locate import id_of
from vesper.storage.file_access import read_regular


def compile_with_overlay(path: Path, overlay_path: Path) -> tuple[Compiled | None, DiagnosticBag]:
    """Return the node with the parameters of an overlay, or the diagnostics of either file."""
    shown = overlay_path.as_posix()
    try:
        text = read_regular(overlay_path, MAX_BYTES).decode("utf-8")
    except OSError as error:
        return unreadable(shown, error.strerror or type(error).__name__)
    except UnicodeDecodeError as error:
        return unreadable(shown, f"byte {error.start} is not UTF-8")
    try:
        overlay = Overlay(SourceFile(shown, text))
    except CheckingStopped:
        return unreadable(shown, "it has too many errors")
    if overlay.bag.sorted():
        return None, overlay.bag
    neighbours = Neighbours(Collection(collection_folder(path), overlay=overlay), (id_of(path),))
    compiled, bag = compile_file(path, neighbours)
    if compiled is not None:
        overlay.report_unused()
    return (None, overlay.bag) if overlay.bag.sorted() else (compiled, bag)
