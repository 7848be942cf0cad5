"""Scope of kills: every epoch of a node, also later ones, or one epoch.

A kill latches every epoch that the store knows. An epoch that begins later is latched too while a kill of every epoch
holds in all others; a resume of any of them ends that. A kill of one epoch is marked as such.
"""

from __future__ import annotations

from vesper.migration.control.modes import Reason
from vesper.migration.control.state import CONTROLLER, Kill, Latch, Settings
from vesper.migration.stores import ledger
from vesper.migration.stores.codec import BadState
from vesper.migration.stores.store import NodeKey, Store, keys_of

_SCOPE = "kill_scope"
"""Name of the document that marks the kill of one epoch. Without it a kill is one of every epoch."""
_ONE_EPOCH, _EVERY_EPOCH = "epoch", "every"
INHERITED = "killed before this epoch began"
"""Addition to the reason of a kill that an epoch begins with."""


def limit_kill_to_epoch(store: Store, key: NodeKey, settings: Settings) -> None:
    """Mark the next kill as one of this epoch alone. A kill that already holds keeps its scope."""
    if _find_kill(store, key, settings) is None:
        store.transact(key, lambda transaction: transaction.put_document(_SCOPE, _ONE_EPOCH))


def widen_kill(store: Store, key: NodeKey) -> None:
    """Mark the kill of an epoch, now or later, as one of every epoch."""
    if store.document(key, _SCOPE) == _ONE_EPOCH:
        store.transact(key, lambda transaction: transaction.put_document(_SCOPE, _EVERY_EPOCH))


def inherited_kill(store: Store, key: NodeKey, settings: Settings) -> Kill | None:
    """Return the kill that a new epoch inherits, if any.

    Raises `StoreError`. A latch that no person set is not inherited: a new definition may have mended its cause.
    """
    if store.read(key) is not None:
        return None
    kills = []
    for other in keys_of(store):
        if other.node != key.node or other == key:
            continue
        try:
            kill = _find_kill(store, other, settings)
        except BadState:
            continue
        if kill is None or store.document(other, _SCOPE) == _ONE_EPOCH:
            return None
        kills.append(kill)
    latest = max(kills, key=lambda each: each.at_us, default=None)
    if latest is None:
        return None
    return Kill(latest.who, latest.why if INHERITED in latest.why else f"{latest.why} ({INHERITED})")


def _find_kill(store: Store, key: NodeKey, settings: Settings) -> Latch | None:
    """Return the latch of a person's kill. Raises `BadState` where the state cannot be read."""
    latches = ledger.load(store, key, settings).latches
    return next((each for each in latches if each.reason is Reason.KILL and each.who != CONTROLLER), None)
