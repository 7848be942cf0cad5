"""Count the work and the memory of operations on large values (docs/spec/limits.md).

A kernel of a family is wrapped once, by `count_work`. A call on small values costs a comparison of lengths. A large
call is charged to the meter of the running node. The plain form of a node has no meter: there it raises `LargeCall`,
and the engine runs the metered form instead.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache, wraps
from typing import Any, Final, TypeVar

from vesper.values.generated.operations import IMPLEMENTED
from vesper.values.json_value import Json
from vesper.values.limits import (
    FREE_SIZE,
    SIZE_OF_ITEM,
    WORK_OF_ITEM,
    WORK_OF_JSON,
    WORK_OF_PATTERN,
    WORK_OF_SLOW_ITEM,
    WORK_PER_UNIT,
)
from vesper.values.operation import OpSpec
from vesper.values.prices import KEPT, Price, plan_of_result, price_json, price_of
from vesper.values.types import ArrayOf, MapOf, SetOf, Type, declared_type

FORM: Final = "__vesper_form__"
"""Global of a generated module that an engine runs: the name of its form."""
_FEW: Final = 256
"""No value of a call is longer: the call cannot be large."""
_Result = TypeVar("_Result")
_SLOW_ITEMS: Final = frozenset((
    "array.sort", "array.distinct", "array.zip", "array.enumerate", "array.chunks", "map.entries", "map.from_entries",
    "map.merge", "map.put", "map.remove",
))  # fmt: skip
"""Operations that compare, sort or build for each item."""


class LargeCall(Exception):
    """An operation on large values, in a form that does not count."""


def count_work(family: str, namespace: dict[str, Any]) -> None:
    """Wrap the kernels of a family whose operations have work."""
    for spec in IMPLEMENTED.values():
        name = spec.verb if spec.verb in namespace else f"{spec.verb}_"
        if spec.family == family and spec.work:
            namespace[name] = _wrap_kernel(spec, namespace[name])


def _wrap_kernel(spec: OpSpec, kernel: Callable[..., Any]) -> Callable[..., Any]:
    places = tuple(place for place, (name, _) in enumerate(spec.params) if name in spec.work)
    builds = "result" in spec.work
    name = spec.name
    if places == (0,) and builds:

        def counted(value: Any, *others: Any) -> Any:
            result = kernel(value, *others)
            return result if len(value) < _FEW and len(result) < _FEW else account(name, result, (value, *others))

    elif places == (0, 1) and builds and len(spec.params) == 2:

        def counted(value: Any, *others: Any) -> Any:
            result = kernel(value, *others)
            if len(result) < _FEW and len(value) < _FEW and len(others[0]) < _FEW:
                return result
            return account(name, result, (value, *others))

    else:

        def counted(*arguments: Any) -> Any:  # type: ignore[misc]  # the same function, by other parameters
            result = kernel(*arguments)
            for place in places:
                if len(arguments[place]) >= _FEW:
                    return account(name, result, arguments)
            return account(name, result, arguments) if builds and len(result) >= _FEW else result

    return wraps(kernel)(counted)


def account(operation: str, result: Any, arguments: tuple[Any, ...]) -> Any:
    """Charge a call if it is large, and return its result."""
    measures, of_result, price = _measures(operation)
    size = work = 0
    for place, measure in measures:
        length = len(arguments[place])
        size += measure[0] * length
        work += measure[1] * length
    if of_result is not None:
        size += of_result[0] * len(result)
        work += of_result[1] * len(result)
    if size > FREE_SIZE:
        charge_call(work, 0 if isinstance(price, int) else price(result))
    return result


def account_json(result: _Result, price: int) -> _Result:
    """Charge an operation that converts a json, by the price of its result."""
    if price > FREE_SIZE:
        charge_call(WORK_OF_JSON * price, price)
    return result


def account_content(result: Json) -> Json:
    """Charge an operation that makes a json."""
    return account_json(result, price_json(result.content))


def charge_call(work: int, memory: int) -> None:
    """Charge a large call to the meter of the node that runs, if an engine runs one."""
    frame = sys._getframe(1)
    while frame is not None:
        form = frame.f_globals.get(FORM)
        if form == "plain":
            raise LargeCall
        if form is not None and "meter" in frame.f_locals:
            meter = frame.f_locals["meter"]
            meter.spend_units(work // WORK_PER_UNIT)
            meter.add_memory(memory)
            return
        frame = frame.f_back  # type: ignore[assignment]


@cache
def _measures(operation: str) -> tuple[list[tuple[int, tuple[int, int]]], tuple[int, int] | None, Price]:
    """Return the measured arguments of an operation, its measured result if any, and the result's price.

    Each measure is the size and the work per unit of length.
    """
    spec = IMPLEMENTED[operation]
    returns = declared_type(spec.returns)
    counted = [
        (place, _measure(spec, declared_type(text)))
        for place, (name, text) in enumerate(spec.params)
        if name in spec.work
    ]
    of_result = _measure(spec, returns) if "result" in spec.work else None
    return counted, of_result, price_of(returns, plan_of_result(returns, KEPT))


def _measure(spec: OpSpec, type_: Type) -> tuple[int, int]:
    if isinstance(type_, ArrayOf | SetOf | MapOf):
        return SIZE_OF_ITEM, WORK_OF_SLOW_ITEM if spec.name in _SLOW_ITEMS else WORK_OF_ITEM
    return 1, WORK_OF_PATTERN if spec.family == "regex" else 1
