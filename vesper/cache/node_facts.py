"""Facts about one node, cached with it by name: plain data that `marshal` can write.

    bound = compiled.kept.fact("python.fuel", lambda: fuel_bound(node))

A node without a cache computes the fact each time. A node of `vesper.load` keeps it in memory and, once saved, on disk;
a warm start finds it there and imports nothing that could compute it. INVARIANT: a fact depends on the node, its
callees, Vesper and Python, and on nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

_T = TypeVar("_T")


class Nothing:
    """Caches nothing."""

    def fact(self, name: str, make: Callable[[], _T]) -> _T:  # subclasses use the name
        return make()

    def save(self) -> None:
        """Do nothing."""

    # Facts about a node take no part in its equality.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Nothing)

    def __hash__(self) -> int:
        return 0


NOTHING = Nothing()


class Facts(Nothing):
    """Caches facts in memory; `save` calls `changed` where there are new ones."""

    def __init__(self, facts: dict[str, Any], changed: Callable[[], None]) -> None:
        self.facts = facts
        self._changed = changed
        self._is_new = False

    def fact(self, name: str, make: Callable[[], _T]) -> _T:
        found: _T
        if name in self.facts:
            found = self.facts[name]
            return found
        found = self.facts[name] = make()
        self._is_new = True
        return found

    def save(self) -> None:
        if self._is_new:
            self._is_new = False
            self._changed()
