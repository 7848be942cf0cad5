"""Hover: type, possible values and documentation of the thing at a position."""

from __future__ import annotations

from lsprotocol import types

from vesper.language.diagnostics.explanations import EXPLANATIONS
from vesper.language.diagnostics.source import Span
from vesper.language.ir import nodes as ir
from vesper.language.syntax import ast
from vesper.language.syntax.tokens import WORD
from vesper.lsp.features.describe import describe, occurrences, ranges
from vesper.lsp.features.knowledge import Fact, Knowledge, knowledge
from vesper.lsp.features.places import Place, place_at
from vesper.lsp.features.ranges import show_range
from vesper.lsp.features.reference import WORDS, describe_operation, error_docs, shapes, step_shapes, type_docs
from vesper.lsp.features.symbols import Occurrence
from vesper.lsp.features.tables import describe_cell
from vesper.lsp.features.texts import tokens_in
from vesper.lsp.positions import to_offset, to_range
from vesper.lsp.server import VesperServer
from vesper.lsp.view import View
from vesper.values.generated.capabilities import CAPABILITIES
from vesper.values.generated.operations import OPERATIONS
from vesper.values.operation import OpSpec


def hover(view: View, position: types.Position) -> types.Hover | None:
    """Return what is known about a position."""
    known = knowledge(view)
    offset = to_offset(view.source, position)
    found = None if known is None else _describe(view, known, offset)
    texts = [] if found is None else [found[1]]
    texts += _explanations(view, offset)
    if not texts:
        return None
    range_ = None if found is None else to_range(view.source, found[0])
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, "\n\n---\n\n".join(texts)), range_)


def _describe(view: View, known: Knowledge, offset: int) -> tuple[Span, str] | None:
    """Return the innermost thing at an offset and its description."""
    place = place_at(known.tree, offset)
    if place is None:
        return None
    cell = describe_cell(known, offset)
    here = sorted(occurrences(known).at(offset), key=_preference)
    for occurrence in here:
        text = _describe_name(view, known, occurrence)
        if text is not None:
            return occurrence.span, text if cell is None else f"{text}\n\n{cell}"
    if cell is not None:
        return place.scalar.span, cell
    if (
        not place.is_key
        and place.kind in ("expression", "template")
        and (found := _describe_part(known, place, offset))
    ):
        return found
    text = _describe_word(place)
    return None if text is None else (place.scalar.span, text)


def _preference(occurrence: Occurrence) -> tuple[bool, int]:
    """Order names at one place: a value before the output of the same name."""
    return occurrence.symbol.kind == "output", occurrence.span.end - occurrence.span.start


def _describe_name(view: View, known: Knowledge, occurrence: Occurrence) -> str | None:
    if occurrence.symbol.kind == "operation":
        ops = (_operation(each) for each in _around(known, occurrence.span))
        chosen = next((each for each in ops if each is not None and each.function == occurrence.symbol.name), None)
        if chosen is not None:
            return describe_operation(chosen)
    text = describe(view, occurrence.symbol)
    fact = known.fact_at(occurrence.span.start + 1)
    if text is None or fact is None or occurrence.is_declaration or fact.expression.span.end != occurrence.span.end:
        return text
    values = _values(known, fact)
    if values is None or f"Values: {values}" in text:
        return text
    return text.replace("Values: ", "Values of the input: ") + f" Values here: {values}."


def _operation(fact: Fact) -> OpSpec | None:
    return OPERATIONS.get(fact.value.op) if isinstance(fact.value, ir.Call) else None


def _around(known: Knowledge, span: Span) -> list[Fact]:
    """Return the facts around a span, the innermost first."""
    found = [
        each
        for each in known.facts
        if each.expression.span.start <= span.start and span.end <= each.expression.span.end
    ]
    return sorted(found, key=lambda each: each.expression.span.end - each.expression.span.start)


def _values(known: Knowledge, fact: Fact) -> str | None:
    values = ranges(known)
    if values is None or fact.value is None:
        return None
    return show_range(values.at.get(fact.value.place), fact.type)


def _describe_part(known: Knowledge, place: Place, offset: int) -> tuple[Span, str] | None:
    """Return the type of the expression at an offset; at a word or operator, what that does."""
    tokens = tokens_in(known.source, place)
    token = next((each for each in tokens if each.span.start <= offset < each.span.end), None)
    fact = known.fact_at(offset)
    lines = []
    if token is not None:
        for each in _around(known, token.span):
            expression = each.expression
            is_infix = isinstance(expression, ast.Infix | ast.Prefix) and expression.operator.span == token.span
            if is_infix and (spec := _operation(each)) is not None:
                lines.append(describe_operation(spec))
        if token.kind is WORD and token.text in WORDS and not lines:
            lines.append(f"`{token.text}`: {WORDS[token.text]}")
    if fact is not None and fact.type is not None:
        values = _values(known, fact)
        text = " ".join(known.source.slice(fact.expression.span).split())
        shown = text if len(text) <= 60 else f"{text[:59]}…"
        lines.append(f"```\n{shown}: {fact.type}\n```" + (f"\n\nValues: {values}." if values else ""))
        return fact.expression.span, "\n\n".join(lines)
    return (token.span, "\n\n".join(lines)) if token is not None and lines else None


def _describe_word(place: Place) -> str | None:
    """Return the documentation of a field, or of a fixed word in it."""
    text, field = place.scalar.text, place.field
    if place.is_key and field is not None and place.shape is not None and place.kind in shapes():
        required = ", required" if field.is_required else ""
        values = f"\n\nOne of {', '.join(f'`{each}`' for each in field.values)}." if len(field.values) > 1 else ""
        return f"`{text}` of {place.shape.where} ({field.kind}{required})\n\n{field.doc}{values}"
    if place.is_key and place.path and place.path[-1] in ("on_error", "error_handling"):
        docs = error_docs()
        found = [f"`{code}`: {docs[code]}" for part in text.split(",") if (code := part.strip()) in docs]
        return "\n\n".join(found) or None
    if place.kind == "type":
        head = text.partition("<")[0].partition("[")[0]
        return f"`{head}`: {type_docs()[head]}" if head in type_docs() else None
    if field is not None and field.name == "operation":
        shape = next((each for each in step_shapes() if each.step == text), None)
        return None if shape is None else f"`{text}`: {shape.fields['operation'].doc}"
    head = ".".join(text.split(".")[:2])
    if head in CAPABILITIES and "security" in place.path:
        return f"`{text}`: {CAPABILITIES[head]}"
    if text in error_docs() and (place.path[-1:] == ("on",) or place.path[-1:] == ("fails",)):
        return f"`{text}`: {error_docs()[text]}"
    is_text = place.kind in ("expression", "template", "literal")
    return None if field is None or place.is_key or is_text else field.doc


def _explanations(view: View, offset: int) -> list[str]:
    """Return the explanations of the diagnostics at an offset."""
    checked = view.checked
    if checked is None or checked.source.text != view.source.text:
        return []
    here = [each for each in checked.diagnostics if each.primary.span.start <= offset <= each.primary.span.end]
    return [f"**{each.code.number}** {each.headline}\n\n{EXPLANATIONS[each.code.number].text}" for each in here]


def register(server: VesperServer) -> None:
    """Answer hovers."""
    server.on_position(types.TEXT_DOCUMENT_HOVER, hover)
