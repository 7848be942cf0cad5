"""Deletion of evidence that belongs to old definitions of nodes.

Every change of a node begins a new epoch. The evidence of an old one serves only a return to it, and the repetition of
its kept executions. So the two epochs written last keep everything, and so does every epoch written within `retention`.
All others lose their evidence; history and divergences stay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from vesper.migration.control.state import Forget, NodeState, Settings
from vesper.migration.stores import ledger
from vesper.migration.stores.overview import NodeOverview, read_node
from vesper.migration.stores.store import NodeKey, Store, keys_of
from vesper.migration.stores.traffic import SAMPLES

KEPT_EPOCHS = 2
"""Number of epochs per node that always stay: the one in use, and the one before, whose executions are repeated."""
DAY_US = 86_400 * 10**6


@dataclass(frozen=True, slots=True)
class OldEpoch:
    """An epoch whose evidence is deleted."""

    key: NodeKey
    written_us: int
    state: NodeState
    """State before the deletion."""


def old_epochs(store: Store, settings: Settings, before_us: int, node: str | None = None) -> list[OldEpoch]:
    """Return epochs with evidence that were last written before `before_us`, of one node or of all.

    An unreadable epoch, or one with an unknown time of writing, is left alone.
    """
    by_node: dict[str, list[NodeOverview]] = {}
    for key in keys_of(store):
        if node in (None, key.node):
            by_node.setdefault(key.node, []).append(read_node(store, key, settings))
    found = []
    for epochs in by_node.values():
        epochs.sort(key=lambda each: (each.written_us, each.key.epoch), reverse=True)
        found += [
            OldEpoch(each.key, each.written_us, each.state)
            for each in epochs[KEPT_EPOCHS:]
            if each.state is not None and 0 < each.written_us < before_us and _has_evidence(store, each.key, each.state)
        ]
    return sorted(found, key=lambda each: each.key)


def _has_evidence(store: Store, key: NodeKey, state: NodeState) -> bool:
    """Return True where the epoch has evidence. Every written node has samples until they are deleted."""
    return bool(state.compared) or store.document(key, SAMPLES) is not None


def prune(
    store: Store,
    settings: Settings,
    now_us: int,
    retention_us: int,
    event: Forget,
    node: str | None = None,
    is_stopped: Callable[[], bool] = lambda: False,
) -> Sequence[OldEpoch]:
    """Delete the evidence of old epochs, and return them.

    Each epoch is one transaction, so that no process waits long. An epoch that came into use meanwhile stays.
    """
    gone = []
    for each in old_epochs(store, settings, now_us - retention_us, node):
        if is_stopped():
            break
        if ledger.forget(store, each.key, event, settings, now_us, each.written_us) is not None:
            gone.append(each)
    return gone
