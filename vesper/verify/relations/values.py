"""Relations of values: literals, constants and constant expressions for each other."""

from __future__ import annotations

import random
from decimal import Decimal

from vesper.compiler import compile_source
from vesper.engines.engine import Engine
from vesper.engines.outcome import Returned
from vesper.engines.registry import REFERENCE, engine_named
from vesper.language.diagnostics.source import SourceFile
from vesper.language.ir import nodes as ir
from vesper.language.syntax import ast
from vesper.values.model import MAX_INTEGER
from vesper.values.numbers import decimal_text
from vesper.values.types import BOOLEAN, DECIMAL, INTEGER, STRING, Enum, Type, type_text
from vesper.verify.programs.types import quote_yaml, quoted
from vesper.verify.relations.operators import rewrite_sites
from vesper.verify.relations.rewritings import Relation, Rewriting, edited
from vesper.verify.relations.subject import Edits, Site, Subject

_MAX_SITES = 3
_LITERALS = (ast.Number, ast.String, ast.Boolean)


def literal_text(type_: Type, value: object) -> str | None:
    """Return a literal with the value's type and digits in every place, or None."""
    match type_, value:
        case t, bool() if t == BOOLEAN:
            return "true" if value else "false"
        case t, int() if t == INTEGER:
            return str(value) if value >= 0 else f"(-{-value})" if value >= -MAX_INTEGER else None
        case t, Decimal() if t == DECIMAL:
            text = decimal_text(value.copy_abs())
            # Without a point it would be an integer; a minus before zero is lost.
            is_plain = "." in text and (value != 0 or not value.is_signed())
            return None if not is_plain else f"(-{text})" if value.is_signed() else text
        case t, str() if t == STRING:
            return None if ("'" in value and '"' in value) or not value.isprintable() else quoted(value)
    return None


def _inline_constant(subject: Subject, site: Site, chance: random.Random) -> str | None:
    """Return the text of the literal that replaces the name of a constant, or None."""
    del chance
    found = subject.checked_at(site.span)
    if len(found) != 1 or not isinstance(found[0], ir.Ref) or found[0].kind != "constant":
        return None
    name = found[0].name
    constant = next(each for each in subject.compiled.node.constants if each.name == name)
    return literal_text(constant.type, constant.value)


def _name_literals(subject: Subject, chance: random.Random) -> Rewriting | None:
    """Replace literals by new constants of their values."""
    edits = Edits(subject)
    sites = [site for site in subject.of_kind(*_LITERALS) if site.section != "types"]
    chance.shuffle(sites)
    left = min(subject.max_sites, chance.randint(1, _MAX_SITES))
    for site in sites:
        found = subject.checked_at(site.span)
        if left == 0 or len(found) != 1 or not isinstance(found[0], ir.Literal):
            continue
        text = _value_text(found[0])
        if text is None:
            continue
        name = subject.fresh(chance, "constant")
        if edits.replace(site.span, name):
            edits.declare("constants", name, {"type": type_text(found[0].type, has_outside=False), "value": text})
            left -= 1
    return edited(edits) if edits.spans() else None


def _value_text(literal: ir.Literal) -> str | None:
    """Return a literal as the value of a constant."""
    value = literal.value
    match value:
        case bool():
            return "true" if value else "false"
        case Decimal():
            return decimal_text(value)
        case int():
            return str(value)
        case str() if literal.type == STRING or isinstance(literal.type, Enum):
            return value if value.isprintable() else None
    return None


def _compute_literal(subject: Subject, site: Site, chance: random.Random) -> str | None:
    """Replace a literal by a constant expression of its value."""
    found = subject.checked_at(site.span)
    if len(found) != 1 or not isinstance(found[0], ir.Literal) or site.section == "types":
        return None
    type_, value = found[0].type, found[0].value
    if isinstance(value, bool):
        return chance.choice(("(1 < 2)", "(NOT false)") if value else ("(2 < 1)", "(NOT true)"))
    if type_ == INTEGER and isinstance(value, int):
        part = chance.randint(0, min(value, 1000))
        return chance.choice((f"({value - part} + {part})", f"({value} - 0)", f"({value} * 1)", f"(-(-{value}))"))
    text = literal_text(type_, value)
    if type_ == DECIMAL and text is not None:
        zero = "0." + "0" * len(text.partition(".")[2])
        return chance.choice((f"({text} + {zero})", f"({text} - {zero})", f"({text} * 1)", f"(-(-{text}))"))
    if type_ == STRING and isinstance(value, str) and text is not None:
        cut = chance.randint(0, len(value))
        return f"({quoted(value[:cut])} + {quoted(value[cut:])})"
    return None


def _fold(subject: Subject, chance: random.Random) -> Rewriting | None:
    """Replace constant expressions by the literals that the reference engine computes for them."""
    found: list[tuple[Site, Type]] = []
    for site in subject.of_kind(ast.Infix, ast.Prefix, ast.Call, ast.If, ast.IsNull):
        type_ = subject.type_at(site.span)
        parts = [part for each in subject.checked_at(site.span) for part in ir.walk(each)]
        is_constant = parts and not any(isinstance(part, ir.Ref | ir.Local | ir.Now | ir.Let) for part in parts)
        if is_constant and type_ in (INTEGER, DECIMAL, STRING, BOOLEAN) and _is_closed(subject, site):
            found.append((site, type_))
    chance.shuffle(found)
    found = found[: min(subject.max_sites, _MAX_SITES)]
    edits = Edits(subject)
    for site, type_ in found:
        text = literal_text(type_, _evaluate(type_, subject.text_of(site.span)))
        if text is not None:
            edits.replace(site.span, text)
    return edited(edits) if edits.spans() else None


def _is_closed(subject: Subject, site: Site) -> bool:
    """Return whether an expression uses no function of the node."""
    names = {each.name.text for each in subject.document.functions}
    waiting: list[ast.Expression] = [site.expression]
    while waiting:
        expression = waiting.pop()
        if isinstance(expression, ast.Call) and expression.function.text in names:
            return False
        waiting += ast.parts(expression)
    return True


def _evaluate(type_: Type, expression: str) -> object:
    """Return the value of a constant expression on the reference engine; None if it has none."""
    text = (
        "node_id: constant_v1\ntype: function\nintent: Evaluate a constant\n"
        f"outputs: {{success: {{found: {quote_yaml(type_text(type_, has_outside=False))}}}}}\n"
        f"flow: [{{operation: return, success: {{found: {quote_yaml(expression)}}}}}]\n"
    )
    compiled, _ = compile_source(SourceFile("constant_v1.vsp", text), judge_contracts=False)
    if compiled is None:
        return None
    reference: Engine = engine_named(REFERENCE)
    outcome = reference.load(compiled).call({})
    return outcome.value["found"] if isinstance(outcome, Returned) else None


RELATIONS = (
    Relation("inlined_constants", "a constant is its literal", rewrite_sites((ast.Name,), _inline_constant)),
    Relation("named_literals", "a literal is a constant of its value", _name_literals),
    Relation(
        "computed_literals", "a literal is an expression of its value", rewrite_sites(_LITERALS, _compute_literal)
    ),
    Relation("folded_constants", "a constant expression is the literal of its value", _fold),
)
