"""Relations of operators: the same value by other operators."""

from __future__ import annotations

import random
from collections.abc import Callable

from vesper.language.diagnostics.source import Span
from vesper.language.syntax import ast
from vesper.values.types import BOOLEAN, DATE, DECIMAL, INTEGER, STRING, TIMESTAMP
from vesper.verify.relations.rewritings import Relation, Rewriting, edited
from vesper.verify.relations.subject import Edits, Site, Subject

_SHARE = 0.7
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
_ORDERED = (INTEGER, DECIMAL, STRING, DATE, TIMESTAMP)
"""Types of which two values are always in one order; two floats may be in none."""
Rewrite = Callable[[Subject, Site, random.Random], str | None]


def rewrite_sites(kinds: tuple[type, ...], rewrite: Rewrite) -> Callable[[Subject, random.Random], Rewriting | None]:
    """Return a rewriting of most expressions of some kinds, inner or outer ones by chance."""

    def apply(subject: Subject, chance: random.Random) -> Rewriting | None:
        edits = Edits(subject)
        sites = subject.of_kind(*kinds)
        chance.shuffle(sites)
        for site in sites:
            if len(edits.spans()) >= subject.max_sites:
                break
            if (edits.spans() and chance.random() >= _SHARE) or not edits.is_free(site.span):
                continue
            text = rewrite(subject, site, chance)
            if text is not None:
                edits.replace(site.span, text)
        return edited(edits) if edits.spans() else None

    return apply


def _is_condition(subject: Subject, span: Span) -> bool:
    return subject.type_at(span) == BOOLEAN


def _mirror(subject: Subject, site: Site, chance: random.Random) -> str | None:
    """Swap the operands of a comparison; at most one may fail, or the other failure would come first."""
    del chance
    match site.expression:
        case ast.Infix(left, operator, right) if operator.text in _MIRRORED:
            if subject.can_fail(left.span) and subject.can_fail(right.span):
                return None
            texts = subject.text_of(right.span), subject.text_of(left.span)
            return f"(({texts[0]}) {_MIRRORED[operator.text]} ({texts[1]}))"
    return None


def _negate_comparison(subject: Subject, site: Site, chance: random.Random) -> str | None:
    del chance
    match site.expression:
        case ast.Infix(left, operator, right) if operator.text in _OPPOSITE:
            types = subject.type_at(left.span), subject.type_at(right.span)
            if operator.text in ("==", "!=") or (types[0] in _ORDERED and types[1] in _ORDERED):
                opposite = _OPPOSITE[operator.text]
                return f"(NOT (({subject.text_of(left.span)}) {opposite} ({subject.text_of(right.span)})))"
    return None


def _negate_twice(subject: Subject, site: Site, chance: random.Random) -> str | None:
    del chance
    if not _is_condition(subject, site.span) or isinstance(site.expression, ast.Boolean):
        return None
    return f"(NOT (NOT ({subject.text_of(site.span)})))"


def _apply_de_morgan(subject: Subject, site: Site, chance: random.Random) -> str | None:
    """Apply De Morgan's laws. Both forms evaluate the right operand only where the left one does not decide."""
    del chance
    match site.expression:
        case ast.Infix(left, operator, right) if operator.text in ("AND", "OR", "=>"):
            a, b = subject.text_of(left.span), subject.text_of(right.span)
            if operator.text == "=>":
                return f"((NOT ({a})) OR ({b}))"
            other = "OR" if operator.text == "AND" else "AND"
            return f"(NOT ((NOT ({a})) {other} (NOT ({b}))))"
        case ast.Prefix(operator, ast.Infix(left, inner, right)) if operator.text == "NOT":
            if inner.text in ("AND", "OR"):
                other = "OR" if inner.text == "AND" else "AND"
                return f"((NOT ({subject.text_of(left.span)})) {other} (NOT ({subject.text_of(right.span)})))"
    return None


def _write_as_if(subject: Subject, site: Site, chance: random.Random) -> str | None:
    del chance
    match site.expression:
        case ast.Infix(left, operator, right) if operator.text in ("AND", "OR"):
            a, b = subject.text_of(left.span), subject.text_of(right.span)
            return f"(IF {a} THEN ({b}) ELSE false)" if operator.text == "AND" else f"(IF {a} THEN true ELSE ({b}))"
    return None


def _swap_branches(subject: Subject, site: Site, chance: random.Random) -> str | None:
    del chance
    match site.expression:
        case ast.If(condition, then, otherwise):
            a, b = subject.text_of(then.span), subject.text_of(otherwise.span)
            return f"(IF NOT ({subject.text_of(condition.span)}) THEN {b} ELSE {a})"
    return None


def _wrap(subject: Subject, site: Site, chance: random.Random) -> str | None:
    """Choose between a value and itself by a condition that always holds."""
    if not subject.checked_at(site.span):
        return None
    text = subject.text_of(site.span)
    always = _always_true(subject, site, chance)
    return f"(IF {always} THEN ({text}) ELSE ({text}))"


def _always_true(subject: Subject, site: Site, chance: random.Random) -> str:
    inputs = [each for each in subject.compiled.node.inputs if each.type in (INTEGER, STRING, DECIMAL)]
    if not inputs or site.section in ("types", "functions") or chance.random() < 0.3:
        return chance.choice(("true", "1 < 2", "NOT false", "2 - 1 == 1", "'a' < 'b'"))
    name = f"input.{chance.choice(inputs).name}"
    return chance.choice((f"{name} == {name}", f"{name} <= {name}", f"NOT ({name} < {name})"))


def _use_dual_quantifier(subject: Subject, site: Site, chance: random.Random) -> str | None:
    del chance
    match site.expression:
        case ast.Quantifier(word, binding, holds):
            names = ", ".join(name.text for name in binding.names)
            where = "" if binding.where is None else f" WHERE {subject.text_of(binding.where.span)}"
            other = "EXISTS" if word.text == "FORALL" else "FORALL"
            over = f"{names} IN ({subject.text_of(binding.over.span)}){where}"
            return f"(NOT ({other} {over} SATISFIES NOT ({subject.text_of(holds.span)})))"
    return None


_VALUES = (ast.Infix, ast.Call, ast.Field, ast.Index, ast.If, ast.Aggregate, ast.Quantifier, ast.Prefix)

RELATIONS = (
    Relation("mirrored", "`a < b` is `b > a`", rewrite_sites((ast.Infix,), _mirror)),
    Relation("negated_comparison", "`a < b` is `NOT (a >= b)`", rewrite_sites((ast.Infix,), _negate_comparison)),
    Relation(
        "double_negation",
        "a condition is its double negation",
        rewrite_sites((ast.Infix, ast.Name, ast.Call, ast.IsNull, ast.Quantifier, ast.Field), _negate_twice),
    ),
    Relation(
        "de_morgan", "`a AND b` is `NOT (NOT a OR NOT b)`", rewrite_sites((ast.Infix, ast.Prefix), _apply_de_morgan)
    ),
    Relation("short_circuit", "`a AND b` is `IF a THEN b ELSE false`", rewrite_sites((ast.Infix,), _write_as_if)),
    Relation("swapped_branches", "an IF has swapped branches under NOT", rewrite_sites((ast.If,), _swap_branches)),
    Relation("always_true", "a value is chosen by a condition that holds", rewrite_sites(_VALUES, _wrap)),
    Relation("dual_quantifier", "FORALL is NOT EXISTS NOT", rewrite_sites((ast.Quantifier,), _use_dual_quantifier)),
)
