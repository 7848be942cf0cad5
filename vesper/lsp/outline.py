"""Symbols of a document and of the workspace, and folding ranges, by the tree of a file."""

from __future__ import annotations

from collections.abc import Iterator

from lsprotocol import types

from vesper.language.diagnostics.source import SourceFile, Span
from vesper.language.syntax.yaml_tree import Mapping, Scalar, Sequence, Tree
from vesper.lsp.positions import to_range
from vesper.lsp.server import VesperServer
from vesper.lsp.view import View

_KINDS = {
    "inputs": types.SymbolKind.Variable,
    "success": types.SymbolKind.Field,
    "error": types.SymbolKind.Field,
    "types": types.SymbolKind.Struct,
    "constants": types.SymbolKind.Constant,
    "parameters": types.SymbolKind.Constant,
    "functions": types.SymbolKind.Function,
    "tables": types.SymbolKind.Array,
    "state_machines": types.SymbolKind.Enum,
    "flow": types.SymbolKind.Event,
    "test_cases": types.SymbolKind.Method,
    "properties": types.SymbolKind.Method,
}
"""Sections whose entries are symbols."""
_MAX_WORKSPACE_SYMBOLS = 500


def register(server: VesperServer) -> None:
    server.on_document(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL, document_symbols)
    server.on_document(types.TEXT_DOCUMENT_FOLDING_RANGE, folding_ranges)

    @server.feature(types.WORKSPACE_SYMBOL)
    def _(params: types.WorkspaceSymbolParams) -> list[types.WorkspaceSymbol]:
        return _workspace_symbols(server, params.query.casefold())


def document_symbols(view: View) -> list[types.DocumentSymbol]:
    """Return the sections of a node, each with its entries."""
    if view.parsed is None or not isinstance(view.parsed.tree, Mapping):
        return []
    return [
        found
        for key, value in view.parsed.tree.entries
        if (found := _section(view.parsed.source, key, value)) is not None
    ]


def _section(source: SourceFile, key: Scalar, value: Tree) -> types.DocumentSymbol | None:
    if key.text in ("node_id", "library_id") and isinstance(value, Scalar):
        return _symbol(source, value.text, types.SymbolKind.Module, value.span, key.span.to(value.span))
    if isinstance(value, Scalar):
        return None
    if key.text in _KINDS:
        children = [
            _symbol(source, name.text, _KINDS[key.text], name.span, span) for name, span in named_entries(value)
        ]
    else:
        nested = value.entries if isinstance(value, Mapping) else ()
        children = [found for each in nested if (found := _section(source, *each)) is not None]
    return _symbol(source, key.text, types.SymbolKind.Namespace, key.span, key.span.to(value.span), children)


def named_entries(tree: Tree) -> Iterator[tuple[Scalar, Span]]:
    """Yield the names in a section, and the span of each entry: keys, or `step` and `name` of items."""
    if isinstance(tree, Mapping):
        yield from ((key, key.span.to(value.span)) for key, value in tree.entries)
    elif isinstance(tree, Sequence):
        for item in tree.items:
            fields = {key.text: value for key, value in item.entries} if isinstance(item, Mapping) else {}
            name = fields.get("step") or fields.get("name") or fields.get("operation")
            if isinstance(name, Scalar):
                yield name, item.span


def _symbol(
    source: SourceFile,
    name: str,
    kind: types.SymbolKind,
    place: Span,
    whole: Span,
    children: list[types.DocumentSymbol] | None = None,
) -> types.DocumentSymbol:
    outer = Span(min(place.start, whole.start), max(place.end, whole.end))
    shown = name or "(unnamed)"
    return types.DocumentSymbol(shown, kind, to_range(source, outer), to_range(source, place), children=children)


def _workspace_symbols(server: VesperServer, query: str) -> list[types.WorkspaceSymbol]:
    """Return ids of nodes and libraries, and names that libraries define."""
    found: list[types.WorkspaceSymbol] = []
    for path, entry in server.collection.entries.items():
        checked = None if entry.settled is None else entry.settled.checked
        if checked is None or checked.node_id is None:
            continue
        uri, (node_id, span) = server.uri_of(path), checked.node_id
        if query in node_id.casefold():
            location = types.Location(uri, to_range(checked.source, span))
            found.append(types.WorkspaceSymbol(location, node_id, types.SymbolKind.Module))
        if entry.is_library and (view := server.collection.view(path)) is not None:
            found += [
                types.WorkspaceSymbol(
                    types.Location(uri, each.selection_range), each.name, each.kind, container_name=node_id
                )
                for section in document_symbols(view)
                for each in section.children or ()
                if query in each.name.casefold()
            ]
    return found[:_MAX_WORKSPACE_SYMBOLS]


def folding_ranges(view: View) -> list[types.FoldingRange]:
    """Return the entries and items over several lines, and blocks of comments."""
    if view.parsed is None:
        return []
    source = view.parsed.source
    spans = {(source.position(span.start)[0], source.position(span.end)[0]) for span in _blocks(view.parsed.tree)}
    found = [types.FoldingRange(first - 1, last - 1) for first, last in sorted(spans) if last > first]
    return found + _comments(source)


def _blocks(tree: Tree) -> Iterator[Span]:
    if isinstance(tree, Mapping):
        for key, value in tree.entries:
            yield key.span.to(value.span)
            yield from _blocks(value)
    elif isinstance(tree, Sequence):
        for item in tree.items:
            yield item.span
            yield from _blocks(item)


def _comments(source: SourceFile) -> list[types.FoldingRange]:
    found: list[types.FoldingRange] = []
    first = None
    for line, text in enumerate([*source.text.split("\n"), ""]):
        if text.lstrip().startswith("#"):
            first = line if first is None else first
        elif first is not None:
            if line - first > 1:
                found.append(types.FoldingRange(first, line - 1, kind=types.FoldingRangeKind.Comment))
            first = None
    return found
