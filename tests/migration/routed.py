"""Routed nodes for tests: routes over a store in memory, a node put into a mode, and direct engines that misbehave."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.migration.memory_store import MemoryStore
from vesper.compiler import Compiled, compile_file
from vesper.engines.direct_engine import DirectEngine
from vesper.engines.engine import Limits
from vesper.engines.outcome import EngineFault, Outcome, Returned
from vesper.engines.path import Pathed
from vesper.host.config import Config, config_from
from vesper.migration import ledger
from vesper.migration.divergence import Divergence
from vesper.migration.modes import LADDER, Mode
from vesper.migration.paths import PathNote
from vesper.migration.router import RoutedProgram
from vesper.migration.routes import Routes
from vesper.migration.state import Settings, State
from vesper.migration.store import Batch, SeenOnPath, Store

DECISION = Path("nodes/payments/payment_decision_v1.vsp")
ENOUGH = 120_000
"""Distinct runs that carry every mode."""


def compiled(path: Path = DECISION) -> Compiled:
    found, bag = compile_file(path)
    assert found is not None, bag.sorted()
    return found


def payment(amount: str = "50.00", **other: object) -> dict[str, Any]:
    return {
        "amount": Decimal(amount),
        "balance": Decimal("100.00"),
        "currency": "USD",
        "country": "DE",
        "user_age_days": 400,
        **other,
    }


def routes_in(folder: Path, store: Store | None = None, **settings: object) -> Routes:
    config: Config = config_from({"migration": {"refresh": "50ms", **settings}}, folder)
    return Routes(config, MemoryStore() if store is None else store)


def put_into(routes: Routes, program: RoutedProgram, mode: Mode, *notes: PathNote) -> None:
    """As if other processes had gathered the evidence, on these paths, and people had approved of no more."""
    if mode is Mode.PYTHON_ONLY:
        from vesper.migration.state import Kill

        ledger.tell(routes.migration.store, program.live.key, Kill("ann", "for a test"), Settings(), 1)
        routes.migration.tend(is_all=True)
        return
    above = frozenset(LADDER[mode.level + 1 :][:1])
    settings = Settings(above)
    needed = {Mode.SHADOW_DIRECT: 0, Mode.CANARY_DIRECT: 300, Mode.DUAL_VERIFY: 11_000, Mode.DIRECT_ONLY: ENOUGH}[mode]
    others = notes or (PathNote(b"", (), "some other"),)
    for number in range(4):
        each = frozenset(range(needed))
        agreed = {note.name: SeenOnPath(each, max(1, needed)) for note in others} if needed else {}
        texts = {note.name: note.to_text() for note in others}
        batch = Batch("history", number + 1, (), agreed if number == 0 else {}, paths=texts)
        ledger.apply(routes.migration.store, program.live.key, batch, settings, 1)
    routes.migration.tend(is_all=True)
    assert program.live.local.mode is mode, program.live.local


def state_of(routes: Routes, program: RoutedProgram) -> State:
    return ledger.load(routes.migration.store, program.live.key, Settings())


def divergences_of(routes: Routes, program: RoutedProgram) -> list[Divergence]:
    return [Divergence.from_text(text) for text in routes.migration.store.divergences(program.live.key)]


class Misbehaving:
    """A direct engine that does what it is told to, in the place of what it should."""

    def __init__(self, node: Compiled) -> None:
        self._program = DirectEngine().load(node)
        self.does: Callable[[Pathed], Pathed] | None = None
        self.calls = 0

    def call_pathed(
        self, inputs: Mapping[str, object], key: bytes, now: datetime | None = None, limits: Limits | None = None
    ) -> Pathed:
        self.calls += 1
        ran = self._program.call_pathed(inputs, key, now, limits)
        return ran if self.does is None else self.does(ran)

    def start_pathed(self, *arguments: Any, **named: Any) -> Any:
        return self._program.start_pathed(*arguments, **named)

    def points(self) -> Any:
        return self._program.points()


def lying(ran: Pathed) -> Pathed:
    """Another value in the first output."""
    return replace(ran, outcome=_changed(ran.outcome))


def _changed(outcome: Outcome) -> Outcome:
    if not isinstance(outcome, Returned):
        return Returned({})
    name, value = next(iter(outcome.value.items()))
    return Returned({**outcome.value, name: (not value) if isinstance(value, bool) else f"{value}!"})


def raising(ran: Pathed) -> Pathed:
    raise RuntimeError("it broke")


def at_fault(ran: Pathed) -> Pathed:
    return replace(ran, outcome=EngineFault("it says so itself"))


def slow(ran: Pathed) -> Pathed:
    time.sleep(0.001)
    return ran
