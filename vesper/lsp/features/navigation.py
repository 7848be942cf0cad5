"""Definition, references, highlights and rename of names, in the file and in all that call or use it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import Diagnostic, Severity
from vesper.lsp.collection import Collection
from vesper.lsp.features.describe import declaration, occurrences, owner_view
from vesper.lsp.features.knowledge import knowledge
from vesper.lsp.features.symbols import Occurrence, Symbol
from vesper.lsp.positions import to_offset, to_range, uri_of
from vesper.lsp.server import VesperServer
from vesper.lsp.view import View
from vesper.values.node_id import NODE_ID_HELP, split_node_id

_REQUEST_FAILED = -32803
_OF_OTHERS = (Code.WRONG_CALLEE, Code.WRONG_LIBRARY)
_SHARED = ("input", "output", "constant", "parameter", "function", "type", "field", "node", "library")
"""Kinds that other files can refer to."""
_FIXED = {
    "operation": "an operation of the language",
    "member": "a member of an enum, and values in cases and of callers have it",
    "field": "a field of a record, and values in cases and of callers have it",
    "state": "a state, and entities are stored with it",
}
_NAME, _TYPE_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}"), re.compile(r"[A-Z][A-Za-z0-9]{0,63}")


def occurrences_at(view: View, position: types.Position) -> list[Occurrence]:
    """Return the names at a position."""
    known = knowledge(view)
    return [] if known is None else occurrences(known).at(to_offset(view.source, position))


def definition(view: View, position: types.Position) -> list[types.Location]:
    """Return where the name at a position is declared."""
    found = [declaration(view, each.symbol) for each in occurrences_at(view, position)]
    return [
        types.Location(uri_of(each[0].path), to_range(each[0].source, each[2].span))
        for each in found
        if each is not None
    ]


def occurrences_of(view: View, symbols: set[Symbol]) -> Iterator[tuple[View, Occurrence]]:
    """Yield every occurrence of some symbols, in the file that declares them and in those that refer to it."""
    paths: dict[Path, None] = {view.path: None}
    for symbol in symbols:
        owner = owner_view(view, symbol) if symbol.kind in _SHARED else None
        if owner is not None:
            paths |= dict.fromkeys((owner.path, *view.collection.callers(owner.path)))
    # A call may name a node without its version.
    words = {(split_node_id(each.name) or (each.name,))[0] for each in symbols}
    for path in paths:
        there = view.collection.view(path)
        if there is None or not any(word in there.source.text for word in words):
            continue
        known = knowledge(there)
        if known is not None:
            yield from ((there, each) for each in occurrences(known).of(symbols))


def references(view: View, position: types.Position, has_declaration: bool = True) -> list[types.Location]:
    """Return every use of the name at a position, in all files."""
    symbols = {each.symbol for each in occurrences_at(view, position)}
    found = {
        (there.path, each.span.start, each.span.end): types.Location(
            uri_of(there.path), to_range(there.source, each.span)
        )
        for there, each in occurrences_of(view, symbols)
        if has_declaration or not each.is_declaration
    }
    return list(found.values())


def highlights(view: View, position: types.Position) -> list[types.DocumentHighlight]:
    """Return every use of the name at a position in its own file."""
    known = knowledge(view)
    symbols = {each.symbol for each in occurrences_at(view, position)}
    found = [] if known is None else occurrences(known).of(symbols)
    kinds = types.DocumentHighlightKind
    return [
        types.DocumentHighlight(to_range(view.source, each.span), kinds.Write if each.is_declaration else kinds.Read)
        for each in found
    ]


# -- rename ---------------------------------------------------------------------------------------


class CannotRename(JsonRpcException):
    """The name cannot be renamed; editors show the message."""

    def __init__(self, message: str) -> None:
        super().__init__(message, _REQUEST_FAILED)


def prepare_rename(view: View, position: types.Position) -> types.PrepareRenamePlaceholder:
    """Return the name that a rename at a position changes."""
    occurrence, _ = _renamed(view, position)
    text = view.source.slice(occurrence.span)
    return types.PrepareRenamePlaceholder(to_range(view.source, occurrence.span), text)


def _renamed(view: View, position: types.Position) -> tuple[Occurrence, set[Symbol]]:
    """Return the name at a position, and the symbols to rename."""
    known = knowledge(view)
    here = occurrences_at(view, position)
    if known is None or not here:
        raise CannotRename("there is no name here: place the cursor on an input, a step, a function or a node id")
    symbols = {each.symbol for each in here}
    for symbol in symbols:
        if symbol.kind in _FIXED:
            raise CannotRename(f"`{symbol.name}` cannot be renamed: it is {_FIXED[symbol.kind]}")
        if declaration(view, symbol) is None:
            raise CannotRename(f"`{symbol.name}` cannot be renamed: no file of this workspace declares it")
    if len({each.owner for each in symbols}) > 1:
        name = here[0].symbol.name
        raise CannotRename(f"`{name}` is a value of this node and an input of the called one: write `{name}: {name}`")
    return here[0], occurrences(known).linked(symbols)


def rename(view: View, position: types.Position, new_name: str) -> types.WorkspaceEdit:
    """Return the edits that rename a name everywhere; refuse those after which a file has more errors."""
    occurrence, symbols = _renamed(view, position)
    symbol = occurrence.symbol
    is_id = symbol.kind in ("node", "library")
    _check_name(view, symbol, new_name)
    edits: dict[Path, dict[tuple[int, int], types.TextEdit]] = {}
    texts: dict[Path, str] = {}
    for there, each in sorted(occurrences_of(view, symbols), key=lambda pair: -pair[1].span.start):
        new = _word_for(there.source.slice(each.span), symbol.name, new_name) if is_id else new_name
        key = (each.span.start, each.span.end)
        if key in edits.setdefault(there.path, {}):
            continue
        edits[there.path][key] = types.TextEdit(to_range(there.source, each.span), new)
        text = texts.get(there.path, there.source.text)
        texts[there.path] = text[: each.span.start] + new + text[each.span.end :]
    owner = owner_view(view, symbol)
    moved = owner.path if is_id and owner is not None and owner.path.stem == symbol.name else None
    _check_texts(view.collection, texts, None if moved is None else (moved, moved.with_stem(new_name)))
    if moved is None:
        return types.WorkspaceEdit({uri_of(path): list(each.values()) for path, each in edits.items()})
    changes: list[types.TextDocumentEdit | types.CreateFile | types.RenameFile | types.DeleteFile] = [
        types.TextDocumentEdit(
            types.OptionalVersionedTextDocumentIdentifier(uri=uri_of(path), version=None), list(each.values())
        )
        for path, each in edits.items()
    ]
    changes.append(types.RenameFile(old_uri=uri_of(moved), new_uri=uri_of(moved.with_stem(new_name))))
    return types.WorkspaceEdit(document_changes=changes)


def _check_name(view: View, symbol: Symbol, new: str) -> None:
    if symbol.kind in ("node", "library"):
        if split_node_id(new) is None:
            raise CannotRename(f"`{new}` is no id: {NODE_ID_HELP}")
        if new in view.collection.ids(view.path):
            raise CannotRename(f"there is a node or library `{new}` already")
    elif not (_TYPE_NAME if symbol.kind == "type" else _NAME).fullmatch(new):
        form = "starts with a capital letter" if symbol.kind == "type" else "has small letters, digits and `_`"
        raise CannotRename(f"`{new}` is no name of {_article(symbol.kind)}: it {form}")


def _article(kind: str) -> str:
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def _word_for(word: str, old_id: str, new_id: str) -> str:
    """Return the new word of a call, which names the version only where it did before."""
    parts = split_node_id(new_id)
    return new_id if word == old_id or parts is None else parts[0]


def _check_texts(collection: Collection, texts: dict[Path, str], moved: tuple[Path, Path] | None) -> None:
    """Refuse changed texts that have more errors than before; the texts are checked together."""
    scratch = Collection()
    for path, entry in collection.entries.items():
        place = moved[1] if moved is not None and path == moved[0] else path
        scratch.put(place, texts[path].encode() if path in texts else entry.data)
    affected = (*texts, *(other for path in texts for other in collection.callers(path)))
    found: list[str] = []
    for path in dict.fromkeys(affected):
        place = moved[1] if moved is not None and path == moved[0] else path
        before, after = collection.check_now(path), scratch.check_now(place)
        errors = [] if after is None else _errors(after.diagnostics)
        if before is not None and after is not None and len(errors) > len(_errors(before.diagnostics)):
            line = after.source.position(errors[0].primary.span.start)[0]
            reason = f"line {line} of {place.name} would be wrong: {errors[0].headline}"
            # An error of a called node shows in its callers, too.
            found.insert(len(found) if errors[0].code in _OF_OTHERS else 0, reason)
    if found:
        raise CannotRename(f"cannot rename: {found[0]}")


def _errors(diagnostics: tuple[Diagnostic, ...]) -> list[Diagnostic]:
    return [each for each in diagnostics if each.severity is Severity.ERROR]


def register(server: VesperServer) -> None:
    """Answer questions about the places of a name."""
    server.on_position(types.TEXT_DOCUMENT_DEFINITION, definition)
    server.on_position(types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT, highlights)
    server.on_position(types.TEXT_DOCUMENT_PREPARE_RENAME, prepare_rename)

    @server.feature(types.TEXT_DOCUMENT_REFERENCES)
    def _(params: types.ReferenceParams) -> list[types.Location]:
        view = server.view(params.text_document.uri)
        return references(view, params.position, params.context.include_declaration)

    @server.feature(types.TEXT_DOCUMENT_RENAME, types.RenameOptions(prepare_provider=True))
    def _(params: types.RenameParams) -> types.WorkspaceEdit:
        return rename(server.view(params.text_document.uri), params.position, params.new_name)
