"""Call hierarchy: nodes that call nodes, and functions that call functions."""

from __future__ import annotations

from lsprotocol import types

from vesper.language.syntax import ast
from vesper.lsp.features.describe import declaration, occurrences
from vesper.lsp.features.knowledge import Knowledge, knowledge
from vesper.lsp.features.navigation import occurrences_at, occurrences_of
from vesper.lsp.features.symbols import Occurrence, Symbol
from vesper.lsp.positions import to_range, uri_of
from vesper.lsp.server import VesperServer
from vesper.lsp.view import View

_CALLED = ("node", "function")


def prepare(view: View, position: types.Position) -> list[types.CallHierarchyItem]:
    """Return the node or function at a position; elsewhere the node of the file."""
    known = knowledge(view)
    symbols = [each.symbol for each in occurrences_at(view, position) if each.symbol.kind in _CALLED]
    if not symbols and known is not None and isinstance(known.document, ast.Document):
        symbols = [Symbol("node", known.id)]
    return [item for each in symbols if (item := _item(view, each)) is not None]


def _item(view: View, symbol: Symbol) -> types.CallHierarchyItem | None:
    found = declaration(view, symbol)
    if found is None:
        return None
    there, known, occurrence = found
    range_ = to_range(there.source, occurrence.span)
    is_node = symbol.kind == "node"
    detail = known.document.intent.text if is_node else known.id
    kind = types.SymbolKind.Module if is_node else types.SymbolKind.Function
    data = [symbol.kind, symbol.name, symbol.owner]
    return types.CallHierarchyItem(
        name=symbol.name,
        kind=kind,
        uri=uri_of(there.path),
        range=range_,
        selection_range=range_,
        detail=detail,
        data=data,
    )


def _symbol(item: types.CallHierarchyItem) -> Symbol:
    assert isinstance(item.data, list)
    return Symbol(*map(str, item.data))


def _caller(known: Knowledge, occurrence: Occurrence) -> Symbol | None:
    """Return the function, or else the node, whose text has an occurrence."""
    for function in known.document.functions:
        if function.value.span.start <= occurrence.span.start < function.value.span.end:
            return Symbol("function", function.name.text, known.id)
    return Symbol("node", known.id) if isinstance(known.document, ast.Document) else None


def incoming(view: View, item: types.CallHierarchyItem) -> list[types.CallHierarchyIncomingCall]:
    """Return the nodes and functions that call an item."""
    calls: dict[Symbol, tuple[View, list[types.Range]]] = {}
    for there, each in occurrences_of(view, {_symbol(item)}):
        known = knowledge(there)
        caller = None if known is None or each.is_declaration else _caller(known, each)
        if caller is not None and not _is_listed(known, each):
            calls.setdefault(caller, (there, []))[1].append(to_range(there.source, each.span))
    found = [(_item(there, caller), ranges) for caller, (there, ranges) in calls.items()]
    return [types.CallHierarchyIncomingCall(each, ranges) for each, ranges in found if each is not None]


def _is_listed(known: Knowledge | None, occurrence: Occurrence) -> bool:
    """Return whether a word is one of `metadata.dependencies` or `use`, which are no calls."""
    if known is None:
        return False
    listed = known.document.dependencies or () if isinstance(known.document, ast.Document) else ()
    words = (*listed, *(word for use in known.document.uses for word in use.names or ()))
    return any(word.span == occurrence.span for word in words)


def outgoing(view: View, item: types.CallHierarchyItem) -> list[types.CallHierarchyOutgoingCall]:
    """Return the nodes and functions that an item calls."""
    known, own = knowledge(view), _symbol(item)
    calls: dict[Symbol, list[types.Range]] = {}
    for each in () if known is None else occurrences(known).list:
        is_call = each.symbol.kind in _CALLED and not each.is_declaration and not _is_listed(known, each)
        if known is not None and is_call and _caller(known, each) == own:
            calls.setdefault(each.symbol, []).append(to_range(view.source, each.span))
    found = [(_item(view, called), ranges) for called, ranges in calls.items()]
    return [types.CallHierarchyOutgoingCall(each, ranges) for each, ranges in found if each is not None]


def register(server: VesperServer) -> None:
    """Answer questions about calls."""
    server.on_position(types.TEXT_DOCUMENT_PREPARE_CALL_HIERARCHY, prepare)

    @server.feature(types.CALL_HIERARCHY_INCOMING_CALLS)
    def _(params: types.CallHierarchyIncomingCallsParams) -> list[types.CallHierarchyIncomingCall]:
        return incoming(server.view(params.item.uri), params.item)

    @server.feature(types.CALL_HIERARCHY_OUTGOING_CALLS)
    def _(params: types.CallHierarchyOutgoingCallsParams) -> list[types.CallHierarchyOutgoingCall]:
        return outgoing(server.view(params.item.uri), params.item)
