"""Completion: fields, types, words, and in expressions the names and operations that can stand at a position.

The text with a made-up word at the position is read and checked, so that scope and expected type are those of the
checker. An unfinished expression is ended in the shortest way first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from lsprotocol import types

from vesper.language.check.scope import Declared
from vesper.language.diagnostics.diagnostic import CheckingStopped, DiagnosticBag
from vesper.language.diagnostics.source import SourceFile
from vesper.language.syntax import ast
from vesper.language.syntax.expression_parser import parse_expression
from vesper.language.syntax.tokens import SIGN, Token
from vesper.language.syntax.yaml.reader import read_yaml
from vesper.language.syntax.yaml_tree import Tree
from vesper.lsp.features.candidates import Candidate, key_candidates, literals, value_candidates
from vesper.lsp.features.describe import called, describe, function_signature
from vesper.lsp.features.knowledge import Knowledge, analyse_text, knowledge, read_tree
from vesper.lsp.features.places import Place, place_at
from vesper.lsp.features.reference import SNIPPETS, WORDS, functions, shapes
from vesper.lsp.features.signatures import open_call
from vesper.lsp.features.symbols import Symbol, inner_type
from vesper.lsp.features.texts import tokens_in
from vesper.lsp.positions import to_offset, to_range
from vesper.lsp.server import VesperServer
from vesper.lsp.view import View
from vesper.values.types import Record, Type

_MARK = "zqz"
"""Stands for the word that is typed; no name of a node has it."""
_KEY_LINE = re.compile(r"\s*(?:- +)*\w*")
_WORD_END = re.compile(r"\w*$")
_MAX_NODES = 100
"""Maximum number of nodes of which all are offered; of more, those that begin as the word does."""
_CLOSERS = {"(": ")", "[": "]", "{": "}"}
_ITEM = types.CompletionItemKind
_KINDS = {
    "input": _ITEM.Variable, "step": _ITEM.Variable, "local": _ITEM.Variable, "output": _ITEM.Variable,
    "constant": _ITEM.Constant, "parameter": _ITEM.Constant, "member": _ITEM.EnumMember, "field": _ITEM.Field,
    "function": _ITEM.Function, "word": _ITEM.Keyword, "type": _ITEM.Class, "node": _ITEM.Module, "key": _ITEM.Property,
    "value": _ITEM.Value,
}  # fmt: skip


def complete(view: View, position: types.Position) -> types.CompletionList:
    """Return what can stand at a position."""
    offset = to_offset(view.source, position)
    marked, tree = _marked(view.source, offset)
    place = None if tree is None else place_at(tree, offset)
    if place is None:
        return types.CompletionList(False, [])
    is_expression = not place.is_key and place.kind in ("expression", "template")
    text = _finished(view.source.path, marked, place, offset) if is_expression else marked
    known = analyse_text(view, text) or knowledge(view)
    found: list[Candidate] = []
    if is_expression and known is not None:
        found += _in_expression(view, known, marked, place, offset)
    elif not place.is_key and not _is_mapping(place.kind):
        found += value_candidates(view, known, place)
    is_alone = _KEY_LINE.fullmatch(view.source.text[:offset].rpartition("\n")[2]) is not None
    if place.is_key or _is_mapping(place.kind) or (is_alone and _is_mapping(place.whole_kind)):
        found += key_candidates(view, known, place)
    by_label = {each.label: each for each in reversed(found)}
    is_incomplete = is_expression and len(view.collection.entries) > _MAX_NODES
    return types.CompletionList(is_incomplete, [_item(view, place, offset, each) for each in by_label.values()])


def _marked(source: SourceFile, offset: int) -> tuple[str, Tree | None]:
    """Return the text with the mark at an offset, as a value or as a key, and its tree."""
    before, after = source.text[:offset], source.text[offset:]
    line, rest = before.rpartition("\n")[2], after.partition("\n")[0]
    texts = [before + _MARK + after]
    if _KEY_LINE.fullmatch(line) and not rest.strip():
        texts.append(f"{before}{_MARK}:{after}")
    for text in texts:
        try:
            tree = read_yaml(DiagnosticBag(SourceFile(source.path, text)))
        except CheckingStopped:
            continue
        if tree is not None:
            return text, tree
    readable, tree = read_tree(SourceFile(source.path, texts[-1]))
    return readable.text, tree


def _finished(path: str, text: str, place: Place, offset: int) -> str:
    """Return the text with the expression at the mark ended, unless it is whole."""
    source, scalar = SourceFile(path, text), place.scalar
    end = offset + len(_MARK)
    if place.kind == "expression" and parse_expression(scalar, DiagnosticBag(source)) is not None:
        return text
    tokens = [each for each in tokens_in(source, place) if each.span.end <= end]
    last = scalar.span.end - (1 if scalar.style in ("'", '"') else 0)
    closing = _closing(tokens)
    if place.kind == "template":
        return text if "}" in text[end:last] else text[:end] + closing + "}" + text[last:]
    return text[:end] + closing + text[last:]


def _closing(tokens: Iterable[Token]) -> str:
    """Return the shortest text that ends the open forms of an expression."""
    stack: list[str] = []
    for token in tokens:
        text = token.text
        if token.kind is SIGN and text in _CLOSERS:
            stack.append(_CLOSERS[text])
        elif text == "IF":
            stack.append(f" THEN {_MARK} ELSE {_MARK}")
        elif text == "THEN" and stack:
            stack[-1] = f" ELSE {_MARK}"
        elif text == "LET":
            stack.append(f" IN {_MARK}")
        elif text in ("FORALL", "EXISTS"):
            stack.append(" SATISFIES true")
        elif stack and (
            text == stack[-1] or (text in ("ELSE", "IN", "SATISFIES") and stack[-1].startswith(f" {text}"))
        ):
            stack.pop()
    return "".join(reversed(stack))


def _is_mapping(kind: str) -> bool:
    """Return whether a scalar stands where a mapping or a list of mappings belongs."""
    return any(each in shapes() or each in ("step", "map") for each in re.findall(r"\w+", kind))


# -- expressions ----------------------------------------------------------------------------------


def _in_expression(view: View, known: Knowledge, text: str, place: Place, offset: int) -> Iterator[Candidate]:
    for part in known.all(ast.Field):
        if part.name.span.start <= offset <= part.name.span.end:
            yield from _members(known, part)
            return
    fact = known.fact_at(offset)
    visible = () if known.checker is None else tuple(known.checker.scope.visible())
    visible = visible if fact is None else fact.visible
    expected = None if fact is None else inner_type(fact.expected)
    yield from literals(expected)
    call = open_call(tokens_in(SourceFile("", text), place), offset)
    callee = None if call is None else called(view, call.function)
    for each in () if callee is None or callee.node is None else callee.node.inputs:
        yield Candidate(each.name, "input", str(each.type), insert=f"{each.name}: ", rank="0")
    for name in visible:
        yield _name(name, expected)
    yield from _callables(view, known, _WORD_END.findall(text[:offset])[0])


def _members(known: Knowledge, part: ast.Field) -> Iterator[Candidate]:
    """Yield the fields of the record before a point, or the names of `input`, `output` or `error`."""
    scope = None if known.checker is None else known.checker.scope
    if isinstance(part.base, ast.Name) and part.base.text in ("input", "output", "error") and scope is not None:
        table = {"output": scope.outputs, "error": scope.errors}.get(part.base.text, scope.names)
        yield from (_name(each, None) for each in table.values() if each.kind == part.base.text)
        return
    base = known.fact(part.base)
    type_ = None if base is None else inner_type(base.type)
    for name, field_type in type_.fields if isinstance(type_, Record) else ():
        yield Candidate(name, "field", str(field_type))


def _name(declared: Declared, expected: Type | None) -> Candidate:
    fits = declared.type is not None and inner_type(declared.type) == expected
    insert = f"{declared.name} AT " if declared.kind == "parameter" else None
    return Candidate(declared.name, declared.kind, str(declared.type or "?"), insert=insert, rank="0" if fits else "1")


def _callables(view: View, known: Knowledge, prefix: str) -> Iterator[Candidate]:
    """Yield own functions, those of libraries, operations, words, and function nodes."""
    own = {each.name.text: each for each in known.document.functions}
    for name, declared in own.items():
        signature = function_signature(known.source, declared)
        parts = [each.name.text for each in declared.parameters]
        yield Candidate(name, "function", signature, insert=_call(name, parts), is_snippet=True, rank="2")
    for name, function in () if known.checker is None else known.checker.functions.items():
        if function is not None and name not in own:
            parts = [part for _, part, _ in function.parameters]
            yield Candidate(name, "function", function.usage(), insert=_call(name, parts), is_snippet=True, rank="2")
    for name, specs in functions().items():
        required = specs[0].params[: len(specs[0].params) - len(specs[0].defaults)]
        insert = _call(name, [part for part, _ in required])
        detail = f"{name}({', '.join(part for part, _ in specs[0].params)})"
        yield Candidate(name, "function", detail, insert=insert, is_snippet=True, rank="3", symbol=("operation", name))
    for word, doc in WORDS.items():
        yield Candidate(word, "word", "", doc, SNIPPETS.get(word), word in SNIPPETS, rank="4")
    ids = view.collection.ids(view.path)
    for node_id, path in ids.items():
        name = node_id.rpartition("_v")[0] or node_id
        is_typed = len(ids) <= _MAX_NODES or (prefix and name.startswith(prefix))
        if is_typed and path != view.path and not view.collection.is_library(path):
            yield Candidate(
                name, "node", node_id, insert=f"{name}($0)", is_snippet=True, rank="5", symbol=("node", node_id)
            )


def _call(name: str, parts: list[str]) -> str:
    return f"{name}({', '.join(f'${{{number}:{part}}}' for number, part in enumerate(parts, 1))})"


# -- items ----------------------------------------------------------------------------------------


def _item(view: View, place: Place, offset: int, candidate: Candidate) -> types.CompletionItem:
    doc = types.MarkupContent(types.MarkupKind.Markdown, candidate.doc) if candidate.doc else None
    formats = types.InsertTextFormat
    if place.is_key and re.match(r"\w*:", view.source.text[offset:]):
        candidate = replace(candidate, insert=candidate.label, is_snippet=False)  # the colon is there
    item = types.CompletionItem(
        candidate.label,
        kind=_KINDS.get(candidate.kind, _ITEM.Text),
        detail=candidate.detail or None,
        documentation=doc,
        sort_text=f"{candidate.rank}{candidate.label}",
        insert_text=candidate.insert,
        insert_text_format=formats.Snippet if candidate.is_snippet else formats.PlainText,
        data=None if candidate.symbol is None else [view.path.as_uri(), *candidate.symbol],
    )
    if not re.fullmatch(r"\w+", candidate.label):
        # Editors end words at other characters, so the range is given.
        start = place.scalar.span.start + (1 if place.scalar.style in ("'", '"') else 0)
        span = type(place.scalar.span)(start, offset)
        item.text_edit = types.TextEdit(to_range(view.source, span), candidate.insert or candidate.label)
    return item


def resolve(view: View, item: types.CompletionItem) -> types.CompletionItem:
    """Return an item with its documentation, which is long for operations and nodes."""
    assert isinstance(item.data, list)
    _, kind, name = map(str, item.data)
    text = describe(view, Symbol(kind, name))
    item.documentation = None if text is None else types.MarkupContent(types.MarkupKind.Markdown, text)
    return item


def register(server: VesperServer) -> None:
    """Answer requests for completions."""
    options = types.CompletionOptions(trigger_characters=[".", "[", "{", "("], resolve_provider=True)
    server.on_position(types.TEXT_DOCUMENT_COMPLETION, complete, options)

    @server.feature(types.COMPLETION_ITEM_RESOLVE)
    def _(item: types.CompletionItem) -> types.CompletionItem:
        return item if not isinstance(item.data, list) else resolve(server.view(str(item.data[0])), item)
