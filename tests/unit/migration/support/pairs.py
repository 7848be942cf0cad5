"""Both engines of a node, a recording watch, and a direct engine with planted faults."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeAlias

from vesper.compiler import Compiled
from vesper.engines.direct_engine import DirectEngine, DirectExecution, DirectProgram
from vesper.engines.engine import Blocked, Completion, Done, Limits, Request
from vesper.engines.outcome import Returned
from vesper.engines.path import Pathed, Point
from vesper.engines.python_engine import PythonEngine, PythonProgram
from vesper.host.plans import plans_of
from vesper.migration.compare.comparator import Comparator
from vesper.migration.compare.reports import Report
from vesper.migration.shadow.guarded_direct import PathedProgram
from vesper.migration.shadow.lockstep import Compares, Pair
from vesper.migration.shadow.routed_programs import GuardedProgram, PairedProgram

KEY = b"sixteen bytes!!!"
Step: TypeAlias = Blocked | Done
Bend: TypeAlias = Callable[[Step], Step]
"""Function that changes the steps of a right engine."""


@dataclass
class Noting:
    """A watch with configurable trust that records reports."""

    trusts_prefixes: bool = False
    trusts_paths: bool = False
    reports: list[Report] = field(default_factory=list)
    prefixes: list[str] = field(default_factory=list)

    def trusts_prefix(self, name: str) -> bool:
        self.prefixes.append(name)
        return self.trusts_prefixes

    def trusts(self, path: str) -> bool:
        return self.trusts_paths

    def report(self, report: Report) -> None:
        self.reports.append(report)


class Wrong:
    """A direct engine whose steps pass through `bend`."""

    def __init__(self, program: DirectProgram, bend: Bend) -> None:
        self._program = program
        self._bend = bend

    def points(self) -> tuple[Point, ...]:
        return self._program.points()

    def call_pathed(
        self, inputs: Mapping[str, object], key: bytes, now: datetime | None = None, limits: Limits | None = None
    ) -> Pathed:
        found = self._program.call_pathed(inputs, key, now, limits)
        step = self._bend(Done(found.outcome, ()))
        assert isinstance(step, Done)
        return found._replace(outcome=step.outcome)

    def start_pathed(
        self, inputs: Mapping[str, object], key: bytes, now: datetime | None = None, limits: Limits | None = None
    ) -> WrongExecution:
        return WrongExecution(self._program.start_pathed(inputs, key, now, limits), self._bend)


class WrongExecution:
    def __init__(self, execution: DirectExecution, bend: Bend) -> None:
        self._execution = execution
        self._bend = bend
        self.path = execution.path
        self.fingerprint = execution.fingerprint

    def advance(self, completions: Sequence[Completion]) -> Step:
        return self._bend(self._execution.advance(completions))


@dataclass
class Both:
    """A node on both engines."""

    compiled: Compiled
    python: PythonProgram
    direct: DirectProgram
    comparator: Comparator

    @staticmethod
    def of(compiled: Compiled) -> Both:
        return Both(compiled, PythonEngine().load(compiled), DirectEngine().load(compiled), Comparator(compiled))

    def program(
        self,
        kind: str,
        watch: Noting,
        bend: Bend | None = None,
        *,
        comparator: Compares | None = None,
        deadline: float | None = None,
        is_sensitive: bool = False,
    ) -> PairedProgram:
        """Return the program: `paired`, or `guarded` with trust in `prefixes` or `all`."""
        direct: PathedProgram = self.direct if bend is None else Wrong(self.direct, bend)
        watch.trusts_prefixes = kind in ("prefixes", "all")
        watch.trusts_paths = kind == "all"
        made = PairedProgram if kind == "paired" else GuardedProgram
        plans = plans_of(self.compiled)
        return made(Pair(self.python, direct, comparator or self.comparator, KEY, watch, deadline, is_sensitive, plans))


KINDS = ("paired", "guarded", "prefixes", "all")


def at(path: str, change: Callable[[Request], Step]) -> Bend:
    """Return a bend of the request at this path."""

    def bend(step: Step) -> Step:
        return change(step.requests[0]) if isinstance(step, Blocked) and step.requests[0].path == path else step

    return bend


def at_end(change: Callable[[Done], Step]) -> Bend:
    return lambda step: change(step) if isinstance(step, Done) else step


def asks(request: Request, **changed: Any) -> Blocked:
    return Blocked((replace(request, **changed),))


def gives(done: Done, **changed: Any) -> Done:
    assert isinstance(done.outcome, Returned)
    return replace(done, outcome=Returned({**done.outcome.value, **changed}))
