"""Fuel meter of the metered form of generated code.

The cost of each construct is defined in docs/spec/limits.md. Nothing here reads a clock; the caller's `is_overdue`
decides whether the time is up.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain, compress, repeat
from typing import Any, Protocol, TypeVar

from vesper.values.limits import UNITS_PER_CLOCK_CHECK

_Item = TypeVar("_Item")
_Items = TypeVar("_Items", bound=Collection[Any])
_Result = TypeVar("_Result")


class LimitExceeded(Exception):
    """The fuel or time of an execution is used up. It is no failure, and no handler of a node catches it."""

    def __init__(self, limit: str) -> None:
        super().__init__(limit)
        self.limit = limit


class Meter:
    """Remaining fuel of one execution, shared with the nodes that it calls."""

    __slots__ = ("_units",)

    def __init__(self, fuel: int, is_overdue: Callable[[], bool] | None = None) -> None:
        self._units = chain.from_iterable(_portions(fuel, is_overdue))

    def __call__(self, items: Iterable[_Item]) -> Iterator[_Item]:
        """Yield the items; each costs one unit when it is taken."""
        # `compress` takes the item before the unit, so the end of the items costs nothing. It runs in C, at a third of
        # the cost of a Python loop.
        return compress(items, self._units)

    def spend(self) -> None:
        next(self._units)


def _portions(fuel: int, is_overdue: Callable[[], bool] | None) -> Iterator[Iterable[bool]]:
    left = fuel
    while left:
        if is_overdue is not None and is_overdue():
            raise LimitExceeded("time")
        portion = left if is_overdue is None else min(left, UNITS_PER_CLOCK_CHECK)
        left -= portion
        yield repeat(True, portion)
    raise LimitExceeded("fuel")


def all_of(meter: Meter, items: _Items) -> _Items:
    """Charge all items of a collection and return it. Used where Python needs no loop over it."""
    deque(meter(items), maxlen=0)
    return items


def before_each(meter: Meter, function: Callable[[_Item], _Result]) -> Callable[[_Item], _Result]:
    """Return the function with a charge per call. Used with `sorted`, which calls it once per item."""

    def paid(item: _Item) -> _Result:
        meter.spend()
        return function(item)

    return paid


def spend(meter: Meter) -> None:
    """Charge one round of a loop without items."""
    meter.spend()


class MeteredNode(Protocol):
    """Another node in its metered form, which spends the caller's fuel."""

    takes_now: bool

    def __call__(self, meter: Meter, /, **inputs: Any) -> Any: ...


def spending(meter: Meter, node: MeteredNode) -> Callable[..., Any]:
    """Return the node as `called` and `call_node` take it. A call costs one unit, after its inputs are evaluated."""

    def paid(**inputs: Any) -> Any:
        meter.spend()
        return node(meter, **inputs)

    paid.takes_now = node.takes_now  # type: ignore[attr-defined]
    return paid
