"""What is worked out about one node and kept with it: facts by name, plain data that `marshal` can write.

    bound = compiled.kept.fact("python.fuel", lambda: fuel_bound(node))

A node that comes from nowhere keeps nothing: the fact is worked out each time. One that `vesper.load` gave keeps it in
memory and, when that is saved, on disk; whoever starts warm finds it there and loads nothing that could work it out.
INVARIANT: a fact depends on the node, on those that it calls, on Vesper and on Python, and on nothing else.
"""

from __future__ import annotations

from collections.abc import Callable

TYPE_CHECKING = False  # as `vesper/values/typed.py` has it, which stands beside this package
if TYPE_CHECKING:
    from typing import Any, TypeVar

    _T = TypeVar("_T")


class Nothing:
    """Keeps nothing."""

    def fact(self, name: str, make: Callable[[], _T]) -> _T:  # those that keep look at the name
        return make()

    def save(self) -> None:
        """Nothing to save."""

    # What is kept about a node takes no part in what the node is.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Nothing)

    def __hash__(self) -> int:
        return 0


NOTHING = Nothing()


class Facts(Nothing):
    """Keeps facts; `save` tells who keeps them on disk when there are new ones."""

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
