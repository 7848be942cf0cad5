"""A store of migration state with some nodes, for tests of commands."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from vesper.migration.compare.divergence import Divergence
from vesper.migration.compare.paths import PathNote
from vesper.migration.control.state import Decision, Diverged, Event, Settings
from vesper.migration.stores import ledger
from vesper.migration.stores.store import Batch, Happened, NodeKey, SeenOnPath, Store, open_store

NOON_US = 1_794_744_000 * 10**6
"""2026-11-15 12:00:00Z."""
MINUTE_US = 60 * 10**6
FEE = NodeKey("fee_v1", "f" * 64)
NOTE = PathNote(b"\x05" + bytes(7), ("charge: ok",), "returned")
ODD = "0dd0dd0dd0dd0dd0"


class Told:
    """One process that writes batches, each a minute later."""

    def __init__(self, folder: Path, settings: Settings | None = None) -> None:
        self.store: Store = open_store(f"sqlite:{folder / '.vesper' / 'migration.db'}")
        self.now_us = NOON_US
        self._settings = settings or Settings()
        self._numbers: dict[NodeKey, int] = {}
        self._next_input = 0

    def batch(
        self,
        key: NodeKey = FEE,
        *events: Event,
        runs: int = 0,
        note: PathNote = NOTE,
        happened: Iterable[Happened] = (),
        served: dict[str, int] | None = None,
    ) -> tuple[Decision, ...]:
        """Apply events, and a number of new agreements on a path."""
        number = self._numbers[key] = self._numbers.get(key, 0) + 1
        fingerprints = frozenset(range(self._next_input, self._next_input + runs))
        self._next_input += runs
        batch = Batch(
            "shop-1",
            number,
            (*map(Happened, events), *happened),
            {note.name: SeenOnPath(fingerprints, runs)} if runs else {},
            paths={note.name: note.to_text()} if runs else {},
            served=served or {},
        )
        applied = ledger.apply(self.store, key, batch, self._settings, self.now_us)
        self.now_us += MINUTE_US
        return applied.decisions

    def diverge(self, key: NodeKey = FEE, fingerprint: str = ODD, note: PathNote = NOTE) -> tuple[Decision, ...]:
        seen = Divergence(
            fingerprint, key.node, "value", "outputs.fee", note.name, ("python", "interp"), last_us=self.now_us
        )
        return self.batch(key, happened=[Happened(Diverged(note.name, fingerprint), seen)])
