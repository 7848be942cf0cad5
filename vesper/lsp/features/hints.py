"""Inlay hints: the inferred types of values that the text does not declare."""

from __future__ import annotations

from lsprotocol import types

from vesper.language.syntax import ast
from vesper.lsp.features.describe import declared_name
from vesper.lsp.features.knowledge import knowledge
from vesper.lsp.positions import to_position, to_span
from vesper.lsp.server import VesperServer
from vesper.lsp.view import View

_MAX_TYPE_LENGTH = 60


def inlay_hints(view: View, range_: types.Range) -> list[types.InlayHint]:
    """Return the types of steps in a range that declare none."""
    known = knowledge(view)
    span = to_span(view.source, range_)
    hints = []
    for step in () if known is None else known.all(ast.Step):
        name = step.name
        if known is None or name is None or not span.start <= name.span.start <= span.end or _is_typed(step):
            continue
        declared = declared_name(known, name.span.start)
        if declared is None or declared.type is None:
            continue
        text = str(declared.type)
        shown = text if len(text) <= _MAX_TYPE_LENGTH else f"{text[: _MAX_TYPE_LENGTH - 1]}…"
        position = to_position(view.source, name.span.end)
        tooltip = None if shown == text else text
        hints.append(types.InlayHint(position, f": {shown}", types.InlayHintKind.Type, tooltip=tooltip))
    return sorted(hints, key=lambda each: (each.position.line, each.position.character))


def _is_typed(step: ast.Step) -> bool:
    """Return whether a step states the type of its value."""
    action = step.action
    return getattr(action, "type", None) is not None or getattr(action, "returns", None) is not None


def register(server: VesperServer) -> None:
    """Answer requests for hints."""

    @server.feature(types.TEXT_DOCUMENT_INLAY_HINT)
    def _(params: types.InlayHintParams) -> list[types.InlayHint]:
        return inlay_hints(server.view(params.text_document.uri), params.range)
