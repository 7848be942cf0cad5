"""Counts what an execution spends: the one word that the metered form of generated code has over the plain form.

What costs a unit is said in docs/spec/limits.md. Nothing here reads a clock: whether the time is up is asked of whoever
runs the execution.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain, compress, repeat
from typing import Any, Protocol, TypeVar

from vesper.values.limits import UNITS_A_LOOK

_Item = TypeVar("_Item")
_Items = TypeVar("_Items", bound=Collection[Any])
_Result = TypeVar("_Result")


class LimitExceeded(Exception):
    """The next unit is not there. It is no failure: no handler of a node takes it."""

    def __init__(self, limit: str) -> None:
        super().__init__(limit)
        self.limit = limit


class Meter:
    """What one execution has left to spend, over its whole life and in the nodes that it calls."""

    __slots__ = ("_units",)

    def __init__(self, fuel: int, is_overdue: Callable[[], bool] | None = None) -> None:
        self._units = chain.from_iterable(_portions(fuel, is_overdue))

    def __call__(self, items: Iterable[_Item]) -> Iterator[_Item]:
        """The items; each costs one unit when it is taken."""
        # `compress` takes the item before the unit, so the end of the items costs nothing; and it is not written in
        # Python, which would cost three times as much for each item.
        return compress(items, self._units)

    def spend(self) -> None:
        next(self._units)


def _portions(fuel: int, is_overdue: Callable[[], bool] | None) -> Iterator[Iterable[bool]]:
    left = fuel
    while left:
        if is_overdue is not None and is_overdue():
            raise LimitExceeded("time")
        portion = left if is_overdue is None else min(left, UNITS_A_LOOK)
        left -= portion
        yield repeat(True, portion)
    raise LimitExceeded("fuel")


def all_of(meter: Meter, items: _Items) -> _Items:
    """The collection itself, where Python needs no loop for it; all its items are paid for."""
    deque(meter(items), maxlen=0)
    return items


def before_each(meter: Meter, function: Callable[[_Item], _Result]) -> Callable[[_Item], _Result]:
    """The function, where Python's own `sorted` calls it once for each item."""

    def paid(item: _Item) -> _Result:
        meter.spend()
        return function(item)

    return paid


def spend(meter: Meter) -> None:
    """A round of a loop that takes no items."""
    meter.spend()


class MeteredNode(Protocol):
    """Another node, as the metered form calls it: it spends what its caller has."""

    takes_now: bool

    def __call__(self, meter: Meter, /, **inputs: Any) -> Any: ...


def spending(meter: Meter, node: MeteredNode) -> Callable[..., Any]:
    """The node as `called` and `call_node` take it. The call itself costs one unit, after its inputs are there."""

    def paid(**inputs: Any) -> Any:
        meter.spend()
        return node(meter, **inputs)

    paid.takes_now = node.takes_now  # type: ignore[attr-defined]
    return paid
