"""Which operation an operator or a function name means, by the types it is given."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from vesper.ir import nodes as ir
from vesper.spec.operation import OpSpec
from vesper.spec.operations import IMPLEMENTED, OPERATIONS
from vesper.spec.types import Type, declared_type, fits_bound, match_declared, substitute


@cache
def by_operator(operator: str) -> tuple[OpSpec, ...]:
    return tuple(spec for spec in IMPLEMENTED.values() if spec.operator == operator)


@cache
def by_function(name: str) -> tuple[OpSpec, ...]:
    return tuple(spec for spec in IMPLEMENTED.values() if spec.function == name)


@cache
def is_specified(name: str) -> bool:
    """True for a function of the language, whether or not an engine has it yet."""
    return any(spec.function == name for spec in OPERATIONS.values())


@cache
def function_names() -> tuple[str, ...]:
    return tuple(dict.fromkeys(spec.function for spec in IMPLEMENTED.values() if spec.function is not None))


def instance(specs: Iterable[OpSpec], operands: tuple[ir.Expression, ...], place: ir.Place) -> ir.Call | None:
    """The call of the one operation whose declared types fit exactly."""
    for spec in specs:
        bindings: dict[str, Type] = {}
        if len(spec.params) != len(operands):
            continue
        patterns = (declared_type(text) for _, text in spec.params)
        if not all(match_declared(p, o.type, bindings) for p, o in zip(patterns, operands, strict=True)):
            continue
        if not all(fits_bound(bindings[name], bound) for name, bound in spec.type_params):
            continue
        of = tuple(bindings[name] for name, _ in spec.type_params)
        return ir.Call(spec.name, of, operands, substitute(declared_type(spec.returns), bindings), place)
    return None
