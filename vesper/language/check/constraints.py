"""Input constraints as clauses: `{min: 0}` on `age` means `age >= 0`.

`{length: 2}` on a string means two code points.
"""

from __future__ import annotations

from dataclasses import dataclass

from vesper.language.check.expressions.checker import place_of
from vesper.language.check.expressions.literals import Unread, read_literal
from vesper.language.check.expressions.patterns import is_scalar_pattern
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.language.ir import nodes as ir
from vesper.language.syntax import ast
from vesper.language.syntax.yaml_tree import Scalar
from vesper.values.literal_text import value_from_text
from vesper.values.model import Value, show
from vesper.values.types import BOOLEAN, DECIMAL, FLOAT, INTEGER, STRING, ArrayOf, MapOf, OptionalOf, SetOf, Type


@dataclass(frozen=True, slots=True)
class _Comparison:
    """The comparison that a constraint means."""

    verb: str
    """Verb of the comparison, within the operations of the compared type."""
    of_length: bool = False
    fixed_bound: int | None = None
    """Bound of a constraint without argument, such as `positive`. None where the author writes the bound."""


_NUMERIC = {
    "min": _Comparison("greater_or_equal"),
    "max": _Comparison("less_or_equal"),
    "positive": _Comparison("greater", fixed_bound=0),
    "non_negative": _Comparison("greater_or_equal", fixed_bound=0),
}
_TEXT = {
    "length": _Comparison("equal", of_length=True),
    "min_length": _Comparison("greater_or_equal", of_length=True),
    "max_length": _Comparison("less_or_equal", of_length=True),
    "non_empty": _Comparison("greater", of_length=True, fixed_bound=0),
}
BY_TYPE: dict[Type, dict[str, _Comparison]] = {INTEGER: _NUMERIC, DECIMAL: _NUMERIC, FLOAT: _NUMERIC, STRING: _TEXT}
PATTERN = "pattern"
"""The constraint on strings that is no comparison: the pattern matches somewhere in the string."""
_SIGNS = {"equal": "==", "greater": ">", "greater_or_equal": ">=", "less_or_equal": "<="}


def constraint_clause(
    constraint: ast.Constraint, subject: ir.Expression, shown: str, bag: DiagnosticBag
) -> ir.Clause | None:
    """Return the clause of a constraint, or None after reporting an error."""
    type_ = subject.type
    if constraint.name.text == PATTERN and type_ == STRING and constraint.bound is not None:
        return _pattern_clause(constraint.bound, subject, shown, place_of(bag.source, constraint.span), bag)
    known = BY_TYPE.get(type_, {})
    meaning = known.get(constraint.name.text)
    has_bound = constraint.bound is not None
    if meaning is None or has_bound != (meaning.fixed_bound is None):
        text = f"{constraint.name.text}: …" if has_bound else constraint.name.text
        help_ = _condition_help(constraint, type_, shown) or _help(constraint.name.text, meaning, type_)
        bag.error(Code.BAD_CONSTRAINT, constraint.span, constraint=text, type=type_, help=help_)
        return None
    compared = INTEGER if meaning.of_length else type_
    bound = _bound(constraint, meaning, compared, bag)
    if bound is None:
        return None
    place = place_of(bag.source, constraint.span)
    if meaning.of_length:
        subject = ir.Call("text.length", (), (subject,), INTEGER, place)
        shown = f"length({shown})"
    arguments = (subject, ir.Literal(compared, bound, place))
    holds = ir.Call(f"{compared}.{meaning.verb}", (), arguments, BOOLEAN, place)
    return ir.Clause(holds, f"{shown} {_SIGNS[meaning.verb]} {show(bound)}")


def _pattern_clause(
    pattern: Scalar, subject: ir.Expression, shown: str, place: ir.Place, bag: DiagnosticBag
) -> ir.Clause | None:
    if not is_scalar_pattern(pattern, bag):
        return None
    holds = ir.Call("regex.matches", (), (subject, ir.Literal(STRING, pattern.text, place)), BOOLEAN, place)
    return ir.Clause(holds, f"matches({shown}, {show(pattern.text)})")


def _condition_help(constraint: ast.Constraint, type_: Type, shown: str) -> str | None:
    """Return help with a precondition for a constraint of a collection, of its items, or of an optional value."""
    condition: str | None = None
    match type_:
        case OptionalOf(inner):
            condition = _condition(constraint, inner, shown)
            condition = None if condition is None else f"{shown} IS NULL OR {condition}"
        case ArrayOf(element) | SetOf(element):
            condition = _condition(constraint, STRING, shown)
            if condition is None and (of_item := _condition(constraint, element, "item")) is not None:
                condition = f"FORALL item IN {shown} SATISFIES {of_item}"
        case MapOf():
            condition = _condition(constraint, STRING, shown)
    return None if condition is None else f"write it under `contracts: preconditions`: `{condition}`"


def _condition(constraint: ast.Constraint, type_: Type, shown: str) -> str | None:
    """Return the comparison that a constraint means for a value of a type, as text."""
    meaning = BY_TYPE.get(type_, {}).get(constraint.name.text)
    if meaning is None or (constraint.bound is None) != (meaning.fixed_bound is not None):
        return None
    bound = meaning.fixed_bound if constraint.bound is None else constraint.bound.text
    return f"{f'length({shown})' if meaning.of_length else shown} {_SIGNS[meaning.verb]} {bound}"


def _help(name: str, meaning: _Comparison | None, type_: Type) -> str | None:
    known = [*BY_TYPE.get(type_, {}), *([PATTERN] if type_ == STRING else [])]
    if meaning is None and name not in known:
        return did_you_mean(name, known) or _help_without_constraint(known)
    takes_no_bound = meaning is not None and meaning.fixed_bound is not None
    return f"write `{name}` alone" if takes_no_bound else f"write `{{{name}: …}}`"


def _help_without_constraint(known: list[str]) -> str:
    elsewhere = "write a condition under `contracts: preconditions`"
    return f"the constraints here are {', '.join(f'`{each}`' for each in known)}; {elsewhere}" if known else elsewhere


def _bound(constraint: ast.Constraint, meaning: _Comparison, type_: Type, bag: DiagnosticBag) -> Value | None:
    if constraint.bound is not None:
        bound = read_literal(type_, constraint.bound, constraint.name.text, bag)
        return None if isinstance(bound, Unread) else bound
    fixed = meaning.fixed_bound
    return fixed if fixed is None else value_from_text(type_, str(fixed))
