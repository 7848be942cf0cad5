"""The field `http` as written, and its reader."""

from __future__ import annotations

from dataclasses import dataclass

from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.syntax import ast, shapes
from vesper.language.syntax.fields import Fields, expect_scalar
from vesper.language.syntax.yaml_tree import Mapping

_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
Pairs = tuple[tuple[ast.Word, ast.Word], ...]


@dataclass(frozen=True, slots=True)
class Http:
    """The request of a handler as written."""

    method: ast.Word
    path: ast.Word
    query: tuple[tuple[ast.Word, ast.Word | None], ...]
    """Inputs, each with the name of its parameter where that is written."""
    headers: Pairs
    body: ast.Word | None
    status: ast.Word | None
    errors: Pairs
    response_headers: Pairs
    scopes: tuple[ast.Word, ...]


def read_http(mapping: Mapping, bag: DiagnosticBag) -> Http | None:
    """Return the field as written, or None after reporting why it cannot be read."""
    before = bag.error_count
    fields = Fields(mapping, shapes.HTTP, bag)
    method, path = _text(fields, "method"), _text(fields, "path")
    if method is not None and method.text not in _METHODS:
        expected = ", ".join(f"`{each}`" for each in _METHODS[:-1]) + f" or `{_METHODS[-1]}`"
        bag.error(Code.WRONG_KIND, method.span, key="method", expected=expected, found=f"`{method.text}`")
    query = fields.get("query")
    listed = _pairs(fields, "query", bag) if isinstance(query, Mapping) else _words(fields, "query", bag)
    absent = ast.Word("", fields.span)
    found = Http(
        method or absent,
        path or absent,
        tuple(each if isinstance(each, tuple) else (each, None) for each in listed),
        _pairs(fields, "headers", bag),
        _text(fields, "body"),
        _text(fields, "status"),
        _pairs(fields, "errors", bag),
        _pairs(fields, "response_headers", bag),
        _words(fields, "scopes", bag),
    )
    return found if bag.error_count == before else None


def _text(fields: Fields, key: str) -> ast.Word | None:
    scalar = fields.scalar(key)
    return None if scalar is None else ast.Word(scalar.text, scalar.span)


def _words(fields: Fields, key: str, bag: DiagnosticBag) -> tuple[ast.Word, ...]:
    listed = fields.sequence(key)
    scalars = [expect_scalar(item, key, bag) for item in (listed.items if listed else ())]
    return tuple(ast.Word(each.text, each.span) for each in scalars if each is not None)


def _pairs(fields: Fields, key: str, bag: DiagnosticBag) -> Pairs:
    mapping = fields.mapping(key)
    found = [(name, expect_scalar(value, name.text, bag)) for name, value in (mapping.entries if mapping else ())]
    return tuple(
        (ast.Word(name.text, name.span), ast.Word(value.text, value.span)) for name, value in found if value is not None
    )
