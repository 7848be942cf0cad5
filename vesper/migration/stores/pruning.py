"""Old definitions of nodes: what they leave in the store, and when that goes.

Every change of a node begins a new epoch, and the evidence of the old one is of no use but to go back to it, or to run
what was kept of it again. So the two epochs of a node that were written last keep everything, and so does one that was
written within the time that `retention` says. Of any other the evidence goes; history and divergences stay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from vesper.migration.control.state import Forget, Settings, State
from vesper.migration.stores import ledger
from vesper.migration.stores.overview import NodeOverview, read_node
from vesper.migration.stores.store import NodeKey, Store, keys_of
from vesper.migration.stores.traffic import SAMPLES

KEPT = 2
"""Epochs of each node that stay, however old: the one in use, and the one before, whose executions are run again."""
DAY_US = 86_400 * 10**6


@dataclass(frozen=True, slots=True)
class Old:
    """An epoch whose evidence goes."""

    key: NodeKey
    written_us: int
    state: State
    """As it was before."""


def old_epochs(store: Store, settings: Settings, before_us: int, node: str | None = None) -> list[Old]:
    """Epochs, of one node or of all, that were last written before then and still have evidence. One that cannot be
    read, or of which nobody knows when it was written, is left alone."""
    by_node: dict[str, list[NodeOverview]] = {}
    for key in keys_of(store):
        if node in (None, key.node):
            by_node.setdefault(key.node, []).append(read_node(store, key, settings))
    found = []
    for epochs in by_node.values():
        epochs.sort(key=lambda each: (each.written_us, each.key.epoch), reverse=True)
        found += [
            Old(each.key, each.written_us, each.state)
            for each in epochs[KEPT:]
            if each.state is not None and 0 < each.written_us < before_us and _has_any(store, each.key, each.state)
        ]
    return sorted(found, key=lambda each: each.key)


def _has_any(store: Store, key: NodeKey, state: State) -> bool:
    """A node that was ever written has samples, until they go with the rest."""
    return bool(state.compared) or store.document(key, SAMPLES) is not None


def prune(
    store: Store,
    settings: Settings,
    now_us: int,
    retention_us: int,
    event: Forget,
    node: str | None = None,
    is_stopped: Callable[[], bool] = lambda: False,
) -> Sequence[Old]:
    """Takes out what is older. One transaction for each epoch, so that nobody waits for all of them; one that somebody
    began to use meanwhile stays."""
    gone = []
    for each in old_epochs(store, settings, now_us - retention_us, node):
        if is_stopped():
            break
        if ledger.forget(store, each.key, event, settings, now_us, each.written_us) is not None:
            gone.append(each)
    return gone
