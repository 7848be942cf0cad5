"""Semantic tokens: the parts of expressions, types and cells inside YAML scalars, and the names in fields."""

from __future__ import annotations

from collections.abc import Iterator

from lsprotocol import types

from vesper.language.diagnostics.source import Span
from vesper.language.syntax.tokens import NAME, NUMBER, SIGN, STRING, WORD, Token
from vesper.lsp.features.describe import occurrences
from vesper.lsp.features.knowledge import Knowledge, knowledge
from vesper.lsp.features.places import Place, places
from vesper.lsp.features.reference import type_docs
from vesper.lsp.features.symbols import Occurrence
from vesper.lsp.features.texts import tokens_in
from vesper.lsp.positions import to_position, to_span
from vesper.lsp.server import VesperServer
from vesper.lsp.view import View

KINDS = (
    "keyword", "operator", "function", "parameter", "variable", "property", "enumMember", "type", "string", "number",
    "namespace",
)  # fmt: skip
MODIFIERS = ("declaration", "readonly")
_OF_SYMBOLS = {
    "input": "parameter", "column": "parameter", "local": "variable", "step": "variable", "constant": "variable",
    "parameter": "variable", "output": "property", "error": "property", "field": "property", "function": "function",
    "operation": "function", "node": "function", "library": "namespace", "type": "type", "member": "enumMember",
    "state": "enumMember", "machine": "type",
}  # fmt: skip
_PUNCTUATION = ("(", ")", "[", "]", "{", "}", ",", ".", ":")
_Colored = tuple[Span, str, int]


def tokens(view: View, range_: types.Range | None = None) -> types.SemanticTokens:
    """Return the tokens of a file, or of a range of it."""
    known = knowledge(view)
    span = None if range_ is None else to_span(view.source, range_)
    colored = [] if known is None else list(_colored(known))
    if span is not None:
        colored = [each for each in colored if each[0].start <= span.end and each[0].end >= span.start]
    return types.SemanticTokens(_encode(view, colored))


def _colored(known: Knowledge) -> Iterator[_Colored]:
    """Yield the tokens with their kinds and modifiers, in the order of the file."""
    by_start: dict[int, Occurrence] = {}
    for each in occurrences(known).list:
        by_start.setdefault(each.span.start, each)
    found: dict[int, _Colored] = {}
    for place in places(known.tree):
        for token in tokens_in(known.source, place):
            kind = _kind(token, place, by_start.get(token.span.start))
            if kind is not None:
                found[token.span.start] = (token.span, *kind)
    for start, occurrence in by_start.items():
        found.setdefault(start, (occurrence.span, *_of_symbol(occurrence)))
    end = 0
    for _, colored in sorted(found.items()):
        if colored[0].start >= end:
            yield colored
            end = colored[0].end


def _of_symbol(occurrence: Occurrence) -> tuple[str, int]:
    is_fixed = occurrence.symbol.kind in ("constant", "parameter")
    return _OF_SYMBOLS[occurrence.symbol.kind], int(occurrence.is_declaration) | (2 if is_fixed else 0)


def _kind(token: Token, place: Place, occurrence: Occurrence | None) -> tuple[str, int] | None:
    if token.kind is NAME and occurrence is not None:
        return _of_symbol(occurrence)
    if token.kind is NAME and place.kind == "type":
        return ("type" if token.text in type_docs() or token.text[:1].isupper() else "enumMember"), 0
    if token.kind is NAME:
        return ("variable" if place.kind == "expression" else "enumMember"), 0
    if token.kind is SIGN and (token.text in _PUNCTUATION or place.kind == "type"):
        return None
    return {WORD: "keyword", NUMBER: "number", STRING: "string", SIGN: "operator"}[token.kind], 0


def _encode(view: View, colored: list[_Colored]) -> list[int]:
    """Return the tokens as the protocol has them: each relative to the one before."""
    data: list[int] = []
    line = column = 0
    for span, kind, modifiers in colored:
        start, end = to_position(view.source, span.start), to_position(view.source, span.end)
        if start.line != end.line:
            continue
        first = start.character - (column if start.line == line else 0)
        data += [start.line - line, first, end.character - start.character, KINDS.index(kind), modifiers]
        line, column = start.line, start.character
    return data


def register(server: VesperServer) -> None:
    """Answer requests for tokens."""
    legend = types.SemanticTokensLegend(list(KINDS), list(MODIFIERS))
    server.on_document(types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, tokens, legend)

    @server.feature(types.TEXT_DOCUMENT_SEMANTIC_TOKENS_RANGE, legend)
    def _(params: types.SemanticTokensRangeParams) -> types.SemanticTokens:
        return tokens(server.view(params.text_document.uri), params.range)
