"""Tokens of expressions, types, cells and templates inside YAML scalars, also of unfinished ones."""

from __future__ import annotations

from collections.abc import Iterator

from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.source import SourceFile
from vesper.language.syntax.scalar_text import PlacedText, place_text
from vesper.language.syntax.tokens import END, Token, tokenize
from vesper.language.syntax.yaml_tree import Scalar
from vesper.lsp.features.places import Place

_MAX_BAD_CHARACTERS = 20


def is_cell(place: Place) -> bool:
    """Return whether a place is a cell of a decision table, or one of its allowed values."""
    name = None if place.shape is None or place.field is None else (place.shape.name, place.field.name)
    return not place.is_key and name in (("row", "in"), ("table_column", "allowed"))


def tokens_in(source: SourceFile, place: Place) -> list[Token]:
    """Return the tokens of a scalar that has expressions, types or cells; of any other scalar none."""
    scalar = place.scalar
    if place.is_key or not scalar.text:
        return []
    if place.kind == "template":
        return [token for hole in holes(source, scalar) for token in _tokens(source, hole)]
    if place.kind in ("expression", "type") or is_cell(place):
        return _tokens(source, place_text(source, scalar))
    return []


def _tokens(source: SourceFile, text: PlacedText) -> list[Token]:
    """Return the tokens of a text without the characters that no token can have."""
    for _ in range(_MAX_BAD_CHARACTERS):
        bag = DiagnosticBag(source)
        found = tokenize(text, bag)
        if found is not None:
            return [each for each in found if each.kind is not END]
        bad = {position for each in bag.sorted() for position in range(each.primary.span.start, each.primary.span.end)}
        # `=` is a token, and wrong only in the whole; without it the rest is the same.
        characters = [" " if at in bad else one for one, at in zip(text.text, text.offsets, strict=True)]
        text = PlacedText("".join(characters), text.offsets, text.end)
    return []


def holes(source: SourceFile, scalar: Scalar) -> Iterator[PlacedText]:
    """Yield the texts between the braces of a template; the last one may be open."""
    placed = place_text(source, scalar)
    text, index = placed.text, 0
    while (start := text.find("{", index)) >= 0:
        if text[start : start + 2] == "{{":
            index = start + 2
            continue
        end, depth = start + 1, 1
        while end < len(text) and depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        last = end if depth else end - 1
        yield PlacedText(text[start + 1 : last], placed.offsets[start + 1 : last], placed.span(start + 1, last).end)
        index = end
