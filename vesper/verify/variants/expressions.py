"""Changes of single expressions: operators, literals, order, names, and parts of other nodes.

Each function takes a `Drawing` and returns the change of one scalar, or None where the document has no place for it.
Changes need not be valid: the checker refuses those that are not.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from vesper.language.syntax import ast
from vesper.values.generated.operations import IMPLEMENTED
from vesper.values.operation import OpSpec
from vesper.values.types import (
    BOOLEAN,
    BYTES,
    DATE,
    DECIMAL,
    DURATION,
    FLOAT,
    INTEGER,
    JSON,
    PERIOD,
    STRING,
    TIME_OF_DAY,
    TIMESTAMP,
    Enum,
    OptionalOf,
    Type,
)
from vesper.verify.programs.types import quoted
from vesper.verify.variants.document import Document, Keys, Leaf, Site, part_at

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_OPERATORS = (tuple(_MIRRORED), ("+", "-", "*", "/"), ("AND", "OR", "=>"), ("IN", "CONTAINS"))
NUMBERS = (INTEGER, DECIMAL, FLOAT)
_LIMITS = ("0", "1", "2147483647", "2147483648", "9007199254740993", "9223372036854775807")
_LITERALS: Mapping[Type, tuple[str, ...]] = {
    BOOLEAN: ("true", "false"),
    INTEGER: (*_LIMITS, "2", "7", "10", "-1", "-2147483648"),
    DECIMAL: (
        "0.0",
        "0.00",
        "1.0",
        "-0.5",
        "99.99",
        "0.000001",
        "9223372036854775808.0",
        "12345678901234567890.123456789",
    ),
    FLOAT: ("0e0", "1e0", "-1.5e0", "1e16", "5e-324"),
    STRING: ("''", "'a'", "'A'", "' x '", "'é'", "'0'", "'1.5'"),
    BYTES: ("parse_hex('')", "parse_hex('00ff')"),
    DATE: ("date('0001-01-01')", "date('1970-01-01')", "date('2024-02-29')"),
    TIMESTAMP: ("timestamp('1969-12-31T23:59:59.999999Z')", "timestamp('2024-02-29T12:30:00Z')"),
    DURATION: ("duration('PT0S')", "duration('90s')", "duration('-P1DT0.5S')"),
    TIME_OF_DAY: ("time_of_day('00:00:00')", "time_of_day('23:59:59.999999')"),
    PERIOD: ("period('P0M')", "period('P1Y1M')", "period('-P1M')"),
    JSON: ("parse_json('null')", "parse_json('[1, 1.0]')", "parse_json('{\"a\": 1}')"),
}
_WHOLE_TYPES = (ast.Name, ast.Field)


@dataclass(frozen=True, slots=True)
class Change:
    """Another text for a part of one scalar."""

    path: Keys
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """The sources of a change: a document, other documents and random numbers."""

    document: Document
    donors: Sequence[Document]
    """Other nodes, whose expressions are spliced in."""
    random: random.Random

    def site(self, fits: Callable[[Site], bool]) -> Site | None:
        found = [each for each in self.document.sites if fits(each)]
        return self.random.choice(found) if found else None

    def literal(self, type_: Type) -> str | None:
        """Return a literal of the type; None for a type without literals in expressions."""
        if isinstance(type_, OptionalOf):
            return "null" if self.random.random() < 0.4 else self.literal(type_.inner)
        if isinstance(type_, Enum):
            return quoted(self.random.choice(type_.members))
        texts = _LITERALS.get(type_)
        return None if texts is None else self.random.choice(texts)


ExpressionEdit: TypeAlias = Callable[[Drawing], Change | None]


def _replace(site: Site, text: str) -> Change:
    return Change(site.path, site.start, site.end, text)


def _operand(document: Document, site: Site, node: ast.Expression) -> str:
    """Return the text of a direct part of an expression."""
    leaf = part_at(document.tree, site.path)
    assert isinstance(leaf, Leaf)
    shift = site.start - site.node.span.start
    return leaf.text[node.span.start + shift : node.span.end + shift]


def change_operator(drawing: Drawing) -> Change | None:
    site = drawing.site(lambda each: isinstance(each.node, ast.Infix))
    if site is None:
        return None
    assert isinstance(site.node, ast.Infix)
    operator = site.node.operator
    others = [word for group in _OPERATORS if operator.text in group for word in group if word != operator.text]
    if not others:
        return None
    shift = site.start - site.node.span.start
    return Change(site.path, operator.span.start + shift, operator.span.end + shift, drawing.random.choice(others))


def change_number(drawing: Drawing) -> Change | None:
    """Change a number by one unit of its last place, or to a limit of a machine number."""
    site = drawing.site(lambda each: isinstance(each.node, ast.Number))
    if site is None:
        return None
    return _replace(site, other_number(site.text, drawing.random))


def other_number(text: str, source: random.Random) -> str:
    """Return a number near a written one, or a limit. It differs in the last place or in the sign."""
    digits, exponent, power = text.partition("e")
    if source.random() < 0.2:
        return source.choice(_LIMITS) + exponent + power
    if source.random() < 0.15:
        return digits + source.choice(("0", "00")) + exponent + power
    whole, point, places = digits.partition(".")
    changed = int(whole + places) + source.choice((-1, 1))
    unsigned = str(abs(changed)).rjust(len(places) + 1, "0")
    cut = len(unsigned) - len(places)
    return f"{'-' if changed < 0 else ''}{unsigned[:cut]}{point}{unsigned[cut:]}{exponent}{power}"


def change_text(drawing: Drawing) -> Change | None:
    """Change a string or a boolean literal."""
    site = drawing.site(lambda each: isinstance(each.node, ast.String | ast.Boolean))
    if site is None:
        return None
    if isinstance(site.node, ast.Boolean):
        return _replace(site, "false" if site.node.value else "true")
    others = [each.text for each in drawing.document.sites if isinstance(each.node, ast.String)]
    quote = site.text[0]
    inner = site.text[1:-1]
    choices = [f"{quote}{quote}", f"{quote}{inner}x{quote}", f"{quote}{inner[:-1]}{quote}", *others]
    return _replace(site, drawing.random.choice(choices))


def swap_operands(drawing: Drawing) -> Change | None:
    """Exchange the operands: a comparison is mirrored as well, or reversed."""
    site = drawing.site(lambda each: isinstance(each.node, ast.Infix))
    if site is None:
        return None
    assert isinstance(site.node, ast.Infix)
    left, right = (_operand(drawing.document, site, each) for each in (site.node.left, site.node.right))
    operator = site.node.operator.text
    if drawing.random.random() < 0.6:
        operator = _MIRRORED.get(operator, operator)
    return _replace(site, f"(({right}) {operator} ({left}))")


def negate(drawing: Drawing) -> Change | None:
    site = drawing.site(lambda each: each.type == BOOLEAN)
    return None if site is None else _replace(site, f"(NOT ({site.text}))")


def keep_part(drawing: Drawing) -> Change | None:
    """Replace an expression by a part of it of the same type."""
    site = drawing.site(lambda each: each.type is not None and bool(ast.parts(each.node)))
    if site is None:
        return None
    inside = [
        each
        for each in drawing.document.sites
        if each.path == site.path
        and site.start <= each.start
        and each.end <= site.end
        and each.end - each.start < site.end - site.start
        and each.type == site.type
    ]
    return _replace(site, f"({drawing.random.choice(inside).text})") if inside else None


def put_literal(drawing: Drawing) -> Change | None:
    site = drawing.site(lambda each: each.type is not None and not isinstance(each.node, ast.Number | ast.String))
    if site is None or site.type is None:
        return None
    literal = drawing.literal(site.type)
    return None if literal is None else _replace(site, f"({literal})")


def put_name(drawing: Drawing) -> Change | None:
    """Replace an expression by a name of its type, which may be in scope."""
    site = drawing.site(lambda each: each.type is not None)
    if site is None:
        return None
    known = drawing.document.variables_at(site.path)
    names = sorted({each.name for each in known if each.type == site.type and each.name != site.text})
    return _replace(site, drawing.random.choice(names)) if names else None


def change_function(drawing: Drawing) -> Change | None:
    """Call another function that takes and returns the same types."""
    site = drawing.site(lambda each: isinstance(each.node, ast.Call) and bool(_like(each.node.function.text)))
    if site is None:
        return None
    assert isinstance(site.node, ast.Call)
    word = site.node.function
    shift = site.start - site.node.span.start
    other = drawing.random.choice(_like(word.text))
    return Change(site.path, word.span.start + shift, word.span.end + shift, other)


def _like(function: str) -> list[str]:
    shapes = {_shape(each) for each in IMPLEMENTED.values() if each.function == function}
    found = {each.function for each in IMPLEMENTED.values() if _shape(each) in shapes}
    return sorted(each for each in found if each is not None and each != function)


def _shape(spec: OpSpec) -> tuple[str, ...]:
    return (*(type_ for _, type_ in spec.params), spec.returns)


def repeat_part(drawing: Drawing) -> Change | None:
    """Combine an expression with itself, or with another of its type, so that one text occurs twice."""
    site = drawing.site(lambda each: each.type == BOOLEAN or each.type in NUMBERS)
    if site is None:
        return None
    others = [each for each in drawing.document.sites if each.path == site.path and each.type == site.type]
    other = drawing.random.choice([site, *others])
    words = ("AND", "OR") if site.type == BOOLEAN else ("+", "-", "*")
    return _replace(site, f"(({site.text}) {drawing.random.choice(words)} ({other.text}))")


def make_conditional(drawing: Drawing) -> Change | None:
    """Wrap an expression in a condition of the document."""
    site = drawing.site(lambda each: each.type is not None)
    if site is None:
        return None
    conditions = [each for each in drawing.document.sites if each.type == BOOLEAN and each.path[0] == site.path[0]]
    near = [each for each in conditions if each.path == site.path]
    others = [each for each in drawing.document.sites if each.type == site.type and each.path == site.path]
    if not conditions:
        return None
    condition = drawing.random.choice(near or conditions).text
    first, other = site.text, drawing.random.choice(others).text
    if drawing.random.random() < 0.5:
        first, other = other, first
    return _replace(site, f"(IF {condition} THEN ({first}) ELSE ({other}))")


def splice(drawing: Drawing) -> Change | None:
    """Replace an expression by one of the same type of any document, with names of this one."""
    site = drawing.site(lambda each: each.type is not None)
    if site is None or site.type is None:
        return None
    text = spliced_text(drawing, site.type, site.path)
    return None if text is None else _replace(site, f"({text})")


def spliced_text(drawing: Drawing, type_: Type, path: Keys) -> str | None:
    """Return an expression of the type from any document, with names that are in scope at a path."""
    donor = drawing.random.choice((*drawing.donors, drawing.document))
    donated = [each for each in donor.sites if each.type == type_ and not isinstance(each.node, _WHOLE_TYPES)]
    if not donated:
        return None
    part = drawing.random.choice(donated)
    known = drawing.document.variables_at(path)
    return adapt(part, donor, drawing, {(each.name, each.type) for each in known})


def adapt(part: Site, donor: Document, drawing: Drawing, known: set[tuple[str, Type]]) -> str | None:
    """Return the text of a part with known names or literals in place of unknown names.

    None if a name has no replacement of its type.
    """
    by_type: dict[Type, list[str]] = {}
    for name, type_ in sorted(known, key=lambda each: each[0]):
        by_type.setdefault(type_, []).append(name)
    pieces, end = [], part.start
    bound = _bound_names(part.node)
    inside = [each for each in donor.sites if each.path == part.path and part.start <= each.start < part.end]
    for each in sorted(inside, key=lambda each: (each.start, -each.end)):
        is_name = isinstance(each.node, _WHOLE_TYPES) and bool(each.names)
        is_bound = any(name in bound for _, name, _ in each.names)
        if each.start < end or not is_name or is_bound or each.type is None:
            continue
        if (each.text, each.type) in known:
            continue
        names = by_type.get(each.type)
        put = drawing.random.choice(names) if names else drawing.literal(each.type)
        if put is None and isinstance(each.node, ast.Name):
            return None
        if put is None:
            continue
        pieces += [_text_between(donor, part.path, end, each.start), f"({put})" if put.startswith("-") else put]
        end = each.end
    return "".join([*pieces, _text_between(donor, part.path, end, part.end)])


def _text_between(document: Document, path: Keys, start: int, end: int) -> str:
    leaf = part_at(document.tree, path)
    assert isinstance(leaf, Leaf)
    return leaf.text[start:end]


def _bound_names(node: ast.Expression) -> frozenset[str]:
    """Return the names that an expression binds itself."""
    found: set[str] = set()
    match node:
        case ast.Let(name=name):
            found.add(name.text)
        case ast.Call(binding=binding, named=named):
            found.update(word.text for word, _ in named)
            found.update(word.text for word in (binding.names if binding else ()))
        case ast.Aggregate(binding=binding) if binding is not None:
            found.update(word.text for word in binding.names)
        case ast.Quantifier(binding=binding) | ast.Comprehension(binding=binding):
            found.update(word.text for word in binding.names)
        case _:
            pass
    return frozenset(found).union(*(_bound_names(each) for each in ast.parts(node)))


EXPRESSION_EDITS: Mapping[ExpressionEdit, int] = {
    change_operator: 4,
    change_number: 4,
    change_text: 2,
    swap_operands: 4,
    negate: 2,
    keep_part: 2,
    put_literal: 3,
    put_name: 3,
    change_function: 2,
    repeat_part: 3,
    make_conditional: 3,
    splice: 5,
}
"""Each with its weight."""
