"""Fuel meter of the metered form of generated code.

The cost of each construct is defined in docs/spec/limits.md. Nothing here reads a clock; the caller's `is_overdue`
decides whether the time is up.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import lru_cache
from itertools import chain, compress, islice, repeat
from typing import Any, Protocol, TypeAlias, TypeVar

from vesper.kernels.runtime.flow import keep
from vesper.values.limits import DEFAULT_MEMORY, UNITS_PER_CLOCK_CHECK
from vesper.values.prices import SLOT_BYTES, Plan, price_of
from vesper.values.types import declared_type

_Item = TypeVar("_Item")
_Items = TypeVar("_Items", bound=Collection[Any])
_Result = TypeVar("_Result")
_Entry = TypeVar("_Entry", bound=tuple[Any, Any])
ItemPrice: TypeAlias = "int | tuple[int, str, Plan]"
"""A fixed price; or a fixed part, the type of a value and the plan of its parts."""
_MAP_BYTES = 64


class LimitExceeded(Exception):
    """The fuel or time of an execution is used up. It is no failure, and no handler of a node catches it."""

    def __init__(self, limit: str) -> None:
        super().__init__(limit)
        self.limit = limit


class Meter:
    """Remaining fuel of one execution, shared with the nodes that it calls."""

    __slots__ = ("_max_memory", "_others", "_units", "memory")

    def __init__(
        self, fuel: int, is_overdue: Callable[[], bool] | None = None, max_memory: int = DEFAULT_MEMORY
    ) -> None:
        self._units = chain.from_iterable(_portions(fuel, is_overdue))
        self._max_memory = max_memory
        self.memory = 0
        """Bytes in use by the strand that runs."""
        self._others = 0
        """Bytes in use by the other strands, which the limit leaves out."""

    def __call__(self, items: Iterable[_Item]) -> Iterator[_Item]:
        """Yield the items; each costs one unit when it is taken."""
        # `compress` takes the item before the unit, so the end of the items costs nothing. It runs in C, at a third of
        # the cost of a Python loop.
        return compress(items, self._units)

    def spend(self) -> None:
        next(self._units)

    def spend_units(self, units: int) -> None:
        """Charge the work of a large call."""
        deque(islice(self._units, units), maxlen=0)

    @property
    def free_memory(self) -> int:
        return self._max_memory - self.memory

    def swap_count(self, memory: int) -> int:
        """Continue with the memory count of another strand, and return the count so far."""
        limit, used = self._max_memory + self._others, self.memory + self._others
        before, self.memory = self.memory, memory
        self._others = used - memory
        self._max_memory = limit - self._others
        return before

    def absorb(self, memory: int) -> None:
        """Move the memory of another strand to the strand that runs."""
        self.memory += memory
        self._max_memory += memory
        self._others -= memory

    def add_memory(self, size: int) -> None:
        """Charge bytes."""
        if self.memory + size > self._max_memory:
            raise LimitExceeded("memory")
        self.memory += size


def _portions(fuel: int, is_overdue: Callable[[], bool] | None) -> Iterator[Iterable[bool]]:
    left = fuel
    while left:
        if is_overdue is not None and is_overdue():
            raise LimitExceeded("time")
        portion = left if is_overdue is None else min(left, UNITS_PER_CLOCK_CHECK)
        left -= portion
        yield repeat(True, portion)
    raise LimitExceeded("fuel")


def all_of(meter: Meter, items: _Items, price: int = 0) -> _Items:
    """Charge all items of a collection and return it. Used where Python needs no loop over it."""
    deque(_each_fixed(meter, price, meter(items)) if price else meter(items), maxlen=0)
    return items


def before_each(meter: Meter, function: Callable[[_Item], _Result], price: ItemPrice = 0) -> Callable[[_Item], _Result]:
    """Return the function with a charge per call. Used with `sorted`, which calls it once per item."""
    keyed = key_of_each(meter, price, function)

    def paid(item: _Item) -> _Result:
        meter.spend()
        return keyed(item)

    return paid


# -- memory ---------------------------------------------------------------------------------------

SKIPPED: Any = object()
"""Value of an item that a condition excludes."""
_RECOUNT_BYTES = 1024 * 1024
_GROUP_BYTES = 200


@lru_cache(maxsize=4096)
def _pricer(price: tuple[int, str, Plan]) -> Callable[[Any], int]:
    fixed, type_, plan = price
    found = price_of(declared_type(type_), plan)
    assert not isinstance(found, int), "a fixed price is written as a number"
    return lambda value: fixed + found(value)


def price_of_item(price: ItemPrice) -> Callable[[Any], int]:
    return (lambda _: price) if isinstance(price, int) else _pricer(price)


def each_value(meter: Meter, price: ItemPrice, values: Iterable[_Item]) -> Iterator[_Item]:
    """Yield the values of a loop, each charged with its price. Other memory of its round is given back."""
    of = price_of_item(price)
    kept = meter.memory
    for value in values:
        if value is SKIPPED:
            meter.memory = kept
            continue
        size = of(value)
        meter.add_memory(size)
        kept += size
        meter.memory = kept
        yield value
    meter.memory = kept


def each_entry(meter: Meter, key: ItemPrice, value: ItemPrice, entries: Iterable[_Entry]) -> Iterator[_Entry]:
    """Yield the keys and values of a map that a loop builds, as `each_value` does."""
    of_key, of_value = price_of_item(key), price_of_item(value)
    kept = meter.memory
    for entry in entries:
        if entry is not SKIPPED:
            size = of_key(entry[0]) + of_value(entry[1])
            meter.add_memory(size)
            kept += size
            meter.memory = kept
            yield entry
        meter.memory = kept
    meter.memory = kept


def _each_fixed(meter: Meter, price: int, items: Iterable[_Item]) -> Iterator[_Item]:
    for item in items:
        meter.add_memory(price)
        yield item


def fitting_items(meter: Meter, price: int, items: Collection[_Item]) -> Iterator[_Item]:
    """Yield the items of a loop that keeps one value of this price per item. The loop takes no other memory."""
    room = meter.free_memory // price
    return meter(items) if len(items) <= room else _yield_until_full(meter(items), room)


def _yield_until_full(items: Iterator[_Item], room: int) -> Iterator[_Item]:
    yield from islice(items, room + 1)
    raise LimitExceeded("memory")


def kept_values(meter: Meter, price: int, values: _Items) -> _Items:
    """Charge `price` for each value that a loop keeps, and return the values."""
    meter.add_memory(price * len(values))
    return values


def key_of_each(meter: Meter, price: ItemPrice, function: Callable[[_Item], _Result]) -> Callable[[_Item], _Result]:
    """Return the function with its memory charged: only the price of each result stays charged."""
    of = price_of_item(price)
    memory = -1

    def paid(item: _Item) -> _Result:
        nonlocal memory
        if memory < 0:
            memory = meter.memory
        result = function(item)
        size = of(result)
        meter.add_memory(size)
        memory += size
        meter.memory = memory
        return result

    return paid


def charge_result(meter: Meter, price: ItemPrice, value: _Item) -> _Item:
    """Charge the value that a call of a recursive function made."""
    meter.add_memory(price_of_item(price)(value))
    return value


def charge_groups(meter: Meter, groups: _Items) -> _Items:
    """Charge the groups of a form."""
    meter.add_memory(_MAP_BYTES + _GROUP_BYTES * len(groups))
    return groups


class LoopMemory:
    """The memory of a loop: its kept values and its state."""

    __slots__ = ("_counted", "_kept", "_meter")

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._kept = meter.memory
        self._counted = 0

    def restore(self) -> None:
        self._meter.memory = self._kept

    def keep(self, size: int) -> None:
        self._meter.add_memory(size)
        self._kept += size

    def recount(self, prices: tuple[ItemPrice, ...], values: tuple[Any, ...]) -> None:
        """Count the state anew, once the rounds have taken a quarter more."""
        taken = self._meter.memory - self._kept
        if taken <= self._counted + max(_RECOUNT_BYTES, self._counted // 4):
            return
        counted = sum(price_of_item(price)(value) for price, value in zip(prices, values, strict=True))
        self._meter.memory = self._kept
        self._meter.add_memory(counted)
        self._counted = counted


def restore_memory(memory: LoopMemory) -> None:
    """Give back the memory of the last round."""
    memory.restore()


def keep_item(memory: LoopMemory, price: ItemPrice, collected: list[_Item], value: _Item) -> None:
    """Add a value to those that a loop collects."""
    keep(collected, value)
    memory.keep(price_of_item(price)(value))


def recount_memory(memory: LoopMemory, prices: tuple[ItemPrice, ...], values: tuple[Any, ...]) -> None:
    memory.recount(prices, values)


def counted_fold(
    meter: Meter,
    price: ItemPrice | None,
    function: Callable[..., _Result],
    items: Iterable[Any],
    initial: _Result,
    is_of_entries: bool = False,
) -> _Result:
    """Fold items, and count the memory of the state."""
    memory = LoopMemory(meter)
    state = initial
    for item in items:
        if price is None:
            memory.restore()
        if item is SKIPPED:
            continue
        state = function(state, *item) if is_of_entries else function(state, item)
        if price is not None:
            memory.recount((price,), (state,))
    if price is None:
        memory.restore()
    return state


def keyed_rounds(
    meter: Meter,
    price: ItemPrice,
    form: Callable[..., _Result],
    function: Callable[[Any], Any],
    items: Iterable[Any],
    *rest: object,
) -> _Result:
    """Run a form with a function charged as by `key_of_each`. The memory of `SKIPPED` items is given back too."""
    memory = LoopMemory(meter)
    of = price_of_item(price)

    def included() -> Iterator[Any]:
        for item in items:
            if item is not SKIPPED:
                yield item
            memory.restore()

    def paid(item: Any) -> Any:
        result = function(item)
        memory.keep(of(result))
        memory.restore()
        return result

    return form(paid, included(), *rest)


def taken_rounds(meter: Meter, condition: Callable[[_Item], bool], items: Iterable[_Item]) -> list[_Item]:
    """Return the items before the first that fails a condition, and charge each.

    A round is charged for its item before its other memory is given back.
    """
    memory, kept = LoopMemory(meter), list[_Item]()
    for item in items:
        if item is not SKIPPED:
            if not condition(item):
                break
            memory.keep(SLOT_BYTES)
            kept.append(item)
        memory.restore()
    memory.restore()
    return kept


def dropped_rounds(meter: Meter, condition: Callable[[_Item], bool], items: Iterable[_Item]) -> list[_Item]:
    """Return the items from the first that fails a condition, charged as in `taken_rounds`."""
    memory, kept = LoopMemory(meter), list[_Item]()
    is_dropping = True
    for item in items:
        if item is not SKIPPED:
            is_dropping = is_dropping and condition(item)
            if not is_dropping:
                memory.keep(SLOT_BYTES)
                kept.append(item)
        memory.restore()
    return kept


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
