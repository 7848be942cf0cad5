"""Routed nodes for tests: routes over a store in memory, nodes in a mode, and faulty direct engines."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.unit.migration.support.memory_store import MemoryStore
from vesper.compiler import Compiled, compile_file
from vesper.config.settings import Config, config_from
from vesper.engines.direct_engine import DirectEngine, DirectExecution
from vesper.engines.engine import Blocked, Completion, Done, Limits
from vesper.engines.outcome import EngineFault, Outcome, Returned
from vesper.engines.path import Pathed
from vesper.migration.compare.divergence import Divergence
from vesper.migration.compare.paths import PathNote
from vesper.migration.control.modes import Mode, Reason
from vesper.migration.control.state import Latch, NodeState, PathState, Settings
from vesper.migration.router.adoption import AdoptedProgram
from vesper.migration.router.router import RoutedProgram
from vesper.migration.router.routes import Routes
from vesper.migration.stores import ledger
from vesper.migration.stores.codec import state_text
from vesper.migration.stores.store import Store, Transaction

DECISION = Path("nodes/payments/payment_decision_v1.vsp")


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
    # However slow the machine is, everything is followed: what is not is another test's business (test_admission.py).
    config: Config = config_from({"migration": {"refresh": "50ms", "follow_cpu": "6400 %", **settings}}, folder)
    return Routes(config, MemoryStore() if store is None else store)


def put_into(routes: Routes, program: RoutedProgram | AdoptedProgram, mode: Mode, *notes: PathNote) -> None:
    """Put a node into a mode, with the evidence of traffic on these paths."""
    key = program.live.key
    clean = _CLEAN[mode]
    paths = {note.name: PathState(clean=clean) for note in notes}
    latches = (Latch(Reason.KILL, "ann", "for a test", 1),) if mode is Mode.PYTHON_ONLY else ()
    state = NodeState(key.node, key.epoch, mode=mode, clean=clean, compared=clean, paths=paths, latches=latches)

    def write(transaction: Transaction) -> None:
        transaction.put_state(state_text(state))
        for note in notes:
            transaction.put_path(note.name, note.to_text())

    routes.migration.store.transact(key, write)
    routes.migration.tend(is_all=True)
    assert program.live.local.mode is mode, program.live.local


_CLEAN = {
    Mode.PYTHON_ONLY: 0,
    Mode.SHADOW_DIRECT: 0,
    Mode.CANARY_DIRECT: 300,
    Mode.DUAL_VERIFY: 11_000,
    Mode.DIRECT_ONLY: 120_000,
}
"""Clean runs that suffice for the mode, and not for the next one."""


def state_of(routes: Routes, program: RoutedProgram | AdoptedProgram) -> NodeState:
    return ledger.load(routes.migration.store, program.live.key, Settings())


def divergences_of(routes: Routes, program: RoutedProgram | AdoptedProgram) -> list[Divergence]:
    return [Divergence.from_text(text) for text in routes.migration.store.divergences(program.live.key)]


class Misbehaving:
    """A direct engine with a configurable fault."""

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
        self.calls += 1
        return _Begun(self._program.start_pathed(*arguments, **named), self.does)

    def points(self) -> Any:
        return self._program.points()


class _Begun:
    def __init__(self, execution: DirectExecution, does: Callable[[Pathed], Pathed] | None) -> None:
        self._execution = execution
        self._does = does
        self.path = execution.path
        self.fingerprint = execution.fingerprint

    def advance(self, completions: Sequence[Completion]) -> Blocked | Done:
        step = self._execution.advance(completions)
        if isinstance(step, Blocked) or self._does is None:
            return step
        return Done(self._does(Pathed(step.outcome, self.path(), self.fingerprint())).outcome, step.marks)


def lying(ran: Pathed) -> Pathed:
    """Change the first output."""
    return ran._replace(outcome=_changed(ran.outcome))


def _changed(outcome: Outcome) -> Outcome:
    if not isinstance(outcome, Returned):
        return Returned({})
    name, value = next(iter(outcome.value.items()))
    return Returned({**outcome.value, name: (not value) if isinstance(value, bool) else f"{value!s}!"})


def raising(ran: Pathed) -> Pathed:
    raise RuntimeError("it broke")


def at_fault(ran: Pathed) -> Pathed:
    return ran._replace(outcome=EngineFault("it says so itself"))


def slow(ran: Pathed) -> Pathed:
    time.sleep(0.001)
    return ran
