"""Selection of the library operation for an operator or function name, by types."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from vesper.language.ir import nodes as ir
from vesper.values.generated.operations import FORMS, IMPLEMENTED, OPERATIONS
from vesper.values.model import from_json
from vesper.values.operation import OpSpec
from vesper.values.types import (
    DECIMAL,
    INTEGER,
    Enum,
    Primitive,
    Type,
    declared_type,
    fits_bound,
    match_declared,
    substitute,
)


@cache
def by_operator(operator: str) -> tuple[OpSpec, ...]:
    """Return the implemented operations of an operator."""
    return tuple(spec for spec in IMPLEMENTED.values() if spec.operator == operator)


@cache
def by_function(name: str) -> tuple[OpSpec, ...]:
    """Return the implemented operations of a function name."""
    return tuple(spec for spec in IMPLEMENTED.values() if spec.function == name)


@cache
def operations_named(name: str) -> tuple[OpSpec, ...]:
    """Return the operations of a name, including those that no engine implements yet."""
    return tuple(spec for spec in OPERATIONS.values() if spec.function == name)


@cache
def form_of(name: str) -> OpSpec | None:
    """Return the operation of this name that is evaluated for each item, or None."""
    return next((spec for spec in FORMS.values() if spec.function == name), None)


@cache
def function_names() -> tuple[str, ...]:
    """Return every function name of the library, for suggestions."""
    specs = (*IMPLEMENTED.values(), *FORMS.values())
    return tuple(dict.fromkeys(spec.function for spec in specs if spec.function is not None))


def argument_hint(specs: Iterable[OpSpec], position: int, before: list[ir.Expression]) -> Type | None:
    """Return the type of the next argument if all matching declarations agree on it.

    It determines the meaning of a bare word or a literal: `round(x, 2, half_up)`, `put(rates, 'EUR', 1)`.
    """
    hints: set[Type] = set()
    for spec in specs:
        if len(spec.params) <= position:
            continue
        bindings: dict[str, Type] = {}
        patterns = [declared_type(text) for _, text in spec.params]
        if not all(
            match_declared(pattern, argument.type, bindings) or (pattern == DECIMAL and argument.type == INTEGER)
            for pattern, argument in zip(patterns, before, strict=False)
        ):
            continue
        try:
            hints.add(substitute(patterns[position], bindings))
        except KeyError:  # a type parameter that this argument itself determines
            return None
    return hints.pop() if len(hints) == 1 else None


def is_declared_member(specs: Iterable[OpSpec], position: int, word: str) -> bool:
    """Return whether a declaration accepts an enum member of this name at this position."""
    patterns = [declared_type(spec.params[position][1]) for spec in specs if len(spec.params) > position]
    return any(isinstance(pattern, Enum) and word in pattern.members for pattern in patterns)


@dataclass(frozen=True, slots=True)
class OverloadChoice:
    """The overload selected for two operands of given types."""

    specs: tuple[OpSpec, ...]
    """Held so that the `id` used as a key stays valid."""
    as_decimals: tuple[int, ...]
    """Positions of integers that become decimals."""
    op: str
    of: tuple[Type, ...]
    returns: Type


_CHOICES: dict[tuple[int, Type, Type], OverloadChoice] = {}
"""Selections for primitive types only. Those are few, so the table is bounded, and they cover nearly every operator."""


def find_choice(specs: tuple[OpSpec, ...], operands: tuple[ir.Expression, ...]) -> OverloadChoice | None:
    """Return the remembered overload for operands of these types, or None."""
    if len(operands) != 2:
        return None
    one, other = operands[0].type, operands[1].type
    return _CHOICES.get((id(specs), one, other)) if type(one) is type(other) is Primitive else None


def remember_choice(
    specs: tuple[OpSpec, ...], operands: tuple[ir.Expression, ...], as_decimals: tuple[int, ...], call: ir.Call
) -> None:
    """Remember the overload that was selected for two primitive operands."""
    if len(operands) == 2 == len(call.args):  # calls with defaults filled in are not stored
        one, other = operands[0].type, operands[1].type
        if type(one) is type(other) is Primitive:
            _CHOICES[id(specs), one, other] = OverloadChoice(specs, as_decimals, call.op, call.of, call.type)


def matching_call(specs: Iterable[OpSpec], operands: tuple[ir.Expression, ...], place: ir.Place) -> ir.Call | None:
    """Return the call of the operation whose declared types match exactly, with defaults filled in."""
    for spec in specs:
        if len(operands) > len(spec.params):
            continue
        bindings: dict[str, Type] = {}
        # A loop and not `all`: this is the hottest path of the checker.
        for (_, text), operand in zip(spec.params, operands, strict=False):
            if not match_declared(declared_type(text), operand.type, bindings):
                break
        else:
            missing = spec.params[len(operands) :]
            defaults = dict(spec.defaults) if missing else {}
            if any(name not in defaults for name, _ in missing):
                continue
            if not all(fits_bound(bindings[name], bound) for name, bound in spec.type_params):
                continue
            return _fill_defaults(spec, operands, missing, defaults, bindings, place)
    return None


def _fill_defaults(
    spec: OpSpec,
    operands: tuple[ir.Expression, ...],
    missing: tuple[tuple[str, str], ...],
    defaults: dict[str, str],
    bindings: dict[str, Type],
    place: ir.Place,
) -> ir.Call:
    of = tuple([bindings[name] for name, _ in spec.type_params])
    filled = tuple(
        ir.Literal(type_, from_json(type_, json.loads(defaults[name])), place)
        for name, type_ in ((name, substitute(declared_type(text), bindings)) for name, text in missing)
    )
    returns = substitute(declared_type(spec.returns), bindings)
    return ir.Call(spec.name, of, (*operands, *filled), returns, place)
