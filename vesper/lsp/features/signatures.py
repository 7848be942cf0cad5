"""Signature help: the parameters of the call around a position."""

from __future__ import annotations

from dataclasses import dataclass

from lsprotocol import types

from vesper.language.syntax.tokens import NAME, SIGN, Token
from vesper.lsp.features.describe import called, describe_file
from vesper.lsp.features.knowledge import Knowledge, knowledge
from vesper.lsp.features.places import place_before
from vesper.lsp.features.reference import functions, operation_text
from vesper.lsp.features.texts import tokens_in
from vesper.lsp.positions import to_offset
from vesper.lsp.server import VesperServer
from vesper.lsp.view import View


@dataclass(slots=True)
class OpenCall:
    """A call whose closing parenthesis comes later."""

    function: str
    argument: int
    """Position of the argument, from 0."""
    keyword: str | None
    """Name before `:` of the argument, in a call of a node."""


def open_call(tokens: list[Token], offset: int) -> OpenCall | None:
    """Return the innermost call around an offset."""
    stack: list[OpenCall | None] = []
    before: Token | None = None
    for token in tokens:
        if token.span.end > offset or (token.span.end == offset and token.text in (")", "]", "}")):
            break
        sign = token.text if token.kind is SIGN else ""
        if sign == "(" and before is not None and before.kind is NAME:
            stack.append(OpenCall(before.text, 0, None))
        elif sign in ("(", "[", "{"):
            stack.append(None)
        elif sign in (")", "]", "}") and stack:
            stack.pop()
        elif stack and (call := stack[-1]) is not None:
            if sign == ",":
                call.argument, call.keyword = call.argument + 1, None
            elif sign == ":" and before is not None and call.keyword is None:
                call.keyword = before.text
        before = token
    return next((each for each in reversed(stack) if each is not None), None)


def signature_help(view: View, position: types.Position) -> types.SignatureHelp | None:
    """Return the signatures of the function that is called around a position."""
    known = knowledge(view)
    offset = to_offset(view.source, position)
    place = None if known is None else place_before(known.tree, view.source.text, offset)
    call = None if known is None or place is None else open_call(tokens_in(known.source, place), offset)
    if known is None or call is None:
        return None
    found = _signatures(view, known, call)
    fitting = [number for number, each in enumerate(found) if call.argument < len(each.parameters or ())]
    if not found:
        return None
    return types.SignatureHelp(found, fitting[0] if fitting else 0, call.argument)


def _signatures(view: View, known: Knowledge, call: OpenCall) -> list[types.SignatureInformation]:
    own = None if known.checker is None else known.checker.functions.get(call.function)
    declared = next((each for each in known.document.functions if each.name.text == call.function), None)
    if own is not None:
        return [_signature(call.function, [(name, str(type_)) for _, name, type_ in own.parameters], str(own.returns))]
    if declared is not None:
        parts = [(each.name.text, known.source.slice(each.type.span)) for each in declared.parameters]
        returns = "?" if declared.returns is None else known.source.slice(declared.returns.span)
        return [_signature(call.function, parts, returns)]
    if call.function in functions():
        return [
            _signature(call.function, list(each.params), each.returns, operation_text(each.name, "doc"))
            for each in functions()[call.function]
        ]
    return _node_signature(view, call)


def _node_signature(view: View, call: OpenCall) -> list[types.SignatureInformation]:
    callee = called(view, call.function)
    if callee is None or callee.node is None:
        return []
    inputs = [(each.name, str(each.type)) for each in callee.node.inputs]
    names = [name for name, _ in inputs]
    if call.keyword in names:
        call.argument = names.index(call.keyword)
    outputs = ", ".join(f"{each.name}: {each.type}" for each in callee.node.outputs)
    return [_signature(call.function, inputs, f"{{{outputs}}}", describe_file(callee))]


def _signature(
    name: str, parts: list[tuple[str, str]], returns: str, doc: str | None = None
) -> types.SignatureInformation:
    shown = [f"{part}: {type_}" for part, type_ in parts]
    documentation = None if doc is None else types.MarkupContent(types.MarkupKind.Markdown, doc)
    parameters = [types.ParameterInformation(each) for each in shown]
    return types.SignatureInformation(f"{name}({', '.join(shown)}) -> {returns}", documentation, parameters)


def register(server: VesperServer) -> None:
    """Answer requests for signatures."""
    options = types.SignatureHelpOptions(trigger_characters=["(", ","], retrigger_characters=[":"])
    server.on_position(types.TEXT_DOCUMENT_SIGNATURE_HELP, signature_help, options)
