"""A store of migration state in memory, for tests of components above the store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import RLock
from typing import TypeVar

from tests.unit.migration.support.plain_store import PlainStore
from vesper.migration.stores.store import NodeKey, Transaction

T = TypeVar("T")


class MemoryStore(PlainStore):
    """Plain values that threads may share, but not processes."""

    name = "memory"

    def __init__(self) -> None:
        super().__init__()
        self._lock = RLock()

    def transact(self, key: NodeKey, work: Callable[[Transaction], T]) -> T:
        with self._lock:
            return super().transact(key, work)

    def versions(self) -> Mapping[NodeKey, int]:
        with self._lock:
            return super().versions()
