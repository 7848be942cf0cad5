"""The result of checking one file, in the form that is cached and passed between processes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import Diagnostic, DiagnosticBag, Label, Severity
from vesper.language.diagnostics.source import SourceFile, Span

if TYPE_CHECKING:
    from vesper.compiler.callees import Collection
    from vesper.compiler.libraries import CompiledLibrary
    from vesper.compiler.pipeline import Compiled


LIBRARY = "library"
"""Type of a library in the list of nodes."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A checked file. A node without errors has a hash and IR; a file without diagnostics needs no text."""

    source: SourceFile
    diagnostics: tuple[Diagnostic, ...]
    """In the order of the file."""
    semantic_hash: str | None
    ir: bytes | None
    """None for a node with errors, and for one from the cache: `NodeCache.ir` has it."""
    node_id: tuple[str, Span] | None
    """The declared id and its place, with errors or without; None where it cannot be read."""
    about: dict[str, Any] | None = None
    """The entry of the list of nodes, as JSON values: the IR has no names of record types."""
    reads_others: bool = False
    """Whether the result depends on other files too; it is not cached then."""
    compiled: Compiled | CompiledLibrary | None = None
    """The node or library, for a caller that brought its collection; never cached."""

    @property
    def is_library(self) -> bool:
        """Whether the file is a library without errors."""
        return self.about is not None and self.about["type"] == LIBRARY

    @property
    def is_wrong(self) -> bool:
        return self.semantic_hash is None

    @property
    def warning_count(self) -> int:
        return sum(diagnostic.severity is Severity.WARNING for diagnostic in self.diagnostics)


def check_bytes(shown: str, data: bytes, collection: Collection | None = None, stack: tuple[str, ...] = ()) -> Checked:
    """Run the whole pipeline on the bytes of a file.

    With a collection its neighbours come from there, and the result has the node; `stack` are the calls that led here.
    """
    from vesper.compiler.callees import Neighbours
    from vesper.compiler.pipeline import compile_bytes

    if b"library_id" in data and (found := _check_library(shown, data, collection, stack)) is not None:
        return found
    if collection is None:
        return _result_of(*compile_bytes(shown, data))
    compiled, bag = compile_bytes(shown, data, Neighbours(collection, stack))
    return replace(_result_of(compiled, bag), compiled=compiled)


def _check_library(shown: str, data: bytes, collection: Collection | None, stack: tuple[str, ...]) -> Checked | None:
    """Return the result of checking a library; None for a file that is none."""
    from pathlib import Path

    from vesper.compiler.callees import Collection, collection_folder
    from vesper.compiler.libraries import compile_library
    from vesper.compiler.reading import NotText, text_of
    from vesper.language.syntax.advice import with_advice
    from vesper.language.syntax.declared_id import declared_id
    from vesper.repository.locate import is_library_text

    if not is_library_text(data):
        return None
    try:
        source = SourceFile(shown, text_of(data))
    except NotText:
        return None
    compiled, bag = compile_library(source, collection or Collection(collection_folder(Path(shown))), stack[:-1])
    if bag.has_errors:
        bag.improve(with_advice)
    library_id, hash_ = declared_id(source.text), None if compiled is None else compiled.hash
    about: dict[str, Any] | None = None
    if compiled is not None:
        about = {"type": LIBRARY, "intent": compiled.intent, "inputs": [], "outputs": []}
        about |= {"semantic_hash": hash_, "cases": 0, "definitions": list(compiled.library.names())}
    found = None if collection is None else compiled
    return Checked(source, tuple(bag.sorted(notes=True)), hash_, None, library_id, about, bag.reads_others, found)


def unreadable_file(shown: str, error: OSError) -> Checked:
    """Return the result of a file that cannot be read."""
    from vesper.compiler.pipeline import unreadable

    return _result_of(*unreadable(shown, error.strerror or type(error).__name__))


def _result_of(compiled: Compiled | None, bag: DiagnosticBag) -> Checked:
    from vesper.language.syntax.declared_id import declared_id

    node_id = declared_id(bag.source.text)
    if compiled is None:
        return Checked(bag.source, tuple(bag.sorted(notes=True)), None, None, node_id, reads_others=bag.reads_others)
    found = tuple(bag.sorted(notes=True))
    about = _about(compiled)
    return Checked(bag.source, found, compiled.semantic_hash, compiled.ir, node_id, about, bag.reads_others)


def _about(compiled: Compiled) -> dict[str, Any]:
    from vesper.language.work_bindings import supervisor_of

    node = compiled.node
    http = {} if compiled.http is None else {"http": {"method": compiled.http.method, "path": compiled.http.path}}
    return http | {
        "type": node.type if supervisor_of(compiled) is None else "supervisor",
        "intent": node.source.intent,
        "inputs": [{"name": each.name, "type": str(each.type)} for each in node.inputs],
        "outputs": [{"name": each.name, "type": str(each.type)} for each in node.outputs],
        "semantic_hash": compiled.semantic_hash,
        "cases": len(compiled.cases),
    }


def node_id_to_data(node_id: tuple[str, Span] | None) -> list[Any] | None:
    """Return a declared id as JSON values."""
    return None if node_id is None else [node_id[0], node_id[1].start, node_id[1].end]


def node_id_from_data(data: list[Any] | None) -> tuple[str, Span] | None:
    """Return the declared id of JSON values."""
    if data is None:
        return None
    text, start, end = data
    return str(text), Span(int(start), int(end))


def diagnostic_to_data(diagnostic: Diagnostic) -> list[Any]:
    """Return a diagnostic as JSON values."""
    labels = [[label.span.start, label.span.end, label.text] for label in (diagnostic.primary, *diagnostic.secondary)]
    return [diagnostic.code.name, diagnostic.severity.value, diagnostic.headline, labels, diagnostic.help]


def diagnostic_from_data(data: list[Any]) -> Diagnostic:
    """Return the diagnostic of JSON values."""
    code, severity, headline, labels, help_ = data
    primary, *secondary = (Label(Span(start, end), text) for start, end, text in labels)
    return Diagnostic(Code[code], Severity(severity), headline, primary, tuple(secondary), help_)
