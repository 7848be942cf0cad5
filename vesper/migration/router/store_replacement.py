"""A store that was replaced knows nothing: what stops nodes, and is known to a process that runs, is written into it.

Nothing that gives trust is carried over. Whoever let nodes go on in the new store has the last word: what was stopped
before is not stopped again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from vesper.migration.control.modes import Reason
from vesper.migration.control.state import Kill, Latch, Settings
from vesper.migration.stores import ledger
from vesper.migration.stores.store import WHOLE, NodeKey, Store

BEFORE = "known from before the store was replaced"


def carry_switch(store: Store, switch: ledger.Killed, now_us: int) -> None:
    """All nodes stay stopped. Raises `StoreError`; to try again changes nothing that was done."""
    if store.read(WHOLE) is None:
        ledger.kill_all(store, switch.who, _as_before(switch.why), now_us)


def carry_latches(
    store: Store, key: NodeKey, latches: Sequence[Latch], settings: Settings, now_us: int
) -> ledger.Applied | None:
    """The node stays latched, as if who latched it killed it; None where there is nothing to do. Raises as above.

    Of a latch that no person set, the reason alone goes over: what stands beside it may be what an engine said, and
    what stands in a kill is passed on."""
    if not latches or ledger.load(store, key, settings).latches or _was_released(store, key):
        return None
    people = [each for each in latches if each.reason is Reason.KILL]
    whys = [each.why if each.reason is Reason.KILL else each.reason.value for each in latches]
    kill = Kill((people or latches)[0].who, _as_before("; ".join(whys)))
    return ledger.tell(store, key, kill, settings, now_us)


def _was_released(store: Store, key: NodeKey) -> bool:
    return any(json.loads(line.text)["kind"] == "released" for line in store.history(key))


def _as_before(why: str) -> str:
    return why if BEFORE in why else f"{why} ({BEFORE})"
