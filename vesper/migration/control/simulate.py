"""Simulations of the controller: the rate of false promotions, and the wrong outcomes they cost.

Traffic has one path, or two: the one with the fault, and all the rest. A request on the path with the fault is wrong
with the given rate, on the direct engine only. All randomness is drawn ahead as positions of requests (of the path, of
the fault, of the verification sample), so that the requests between two of them reach the controller at once, up to the
next change. `step_by_step` does the same one request at a time; a test asserts that both are equal for each seed.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from statistics import fmean

from vesper.migration.control.controller import is_proven, runs_until_change, step
from vesper.migration.control.modes import DEFAULT, Engine, Mode, plan
from vesper.migration.control.routing import DEFAULT_SHARES
from vesper.migration.control.state import Agreed, Changed, Close, Decision, Diverged, Event, NodeState

_REST, _FAULTY = "rest", "faulty"
_FINGERPRINT = "the planted fault"
_NEVER = 2**63


@dataclass(frozen=True, slots=True)
class Scenario:
    requests: int
    fault_rate: float
    """Share of wrong requests on the path with the fault."""
    path_share: float = 1.0
    """Share of the traffic on the path with the fault."""
    appears_in: Mode | None = None
    """Mode whose first entry makes the fault appear; by default it exists from the start."""
    close_after: int | None = None
    """Requests between a divergence and its closing without a fix; by default it stays open."""
    distinct: int | None = None
    """Maximum number of distinct inputs in the traffic."""
    sample: int = DEFAULT_SHARES.sample
    """Verification sample in direct_only, in parts of ten thousand requests."""

    def __post_init__(self) -> None:
        if self.requests < 0:
            raise ValueError(f"{self.requests} requests cannot be")
        for name, value in (("fault rate", self.fault_rate), ("share of the path", self.path_share)):
            if not 0 <= value <= 1:
                raise ValueError(f"the {name} lies between 0 and 1, and {value} does not")

    @property
    def special_share(self) -> float:
        """The share of requests that are simulated one by one, which determines the duration."""
        return self.fault_rate if self.path_share == 1 else self.path_share


@dataclass(frozen=True, slots=True)
class Run:
    """The result of one seed."""

    seed: int
    state: NodeState
    changes: tuple[Changed, ...]
    """Changes of mode; their times are numbers of requests, from 1."""
    wrong_answers: int
    appeared_after: int | None
    """Number of requests before the fault appeared."""
    detected_at: int | None
    """Number of the request that showed the first divergence."""

    @property
    def is_promoted(self) -> bool:
        return any(each.after is Mode.DIRECT_ONLY for each in self.changes)

    @property
    def detection_requests(self) -> int | None:
        if self.detected_at is None or self.appeared_after is None:
            return None
        return self.detected_at - self.appeared_after


@dataclass(frozen=True, slots=True)
class Result:
    scenario: Scenario
    seeds: int
    promoted: int
    """Seeds that ever entered direct_only."""
    detected: int
    wrong_answers_mean: float
    wrong_answers_max: int
    detection_requests_mean: float | None
    """Mean number of requests from the appearance of the fault to the first divergence, over the seeds with one."""
    final_modes: dict[str, int]


class Positions:
    """Numbers of the requests, from 1, that a fixed chance selects; drawn lazily."""

    def __init__(self, chance: float, seed: int, name: str) -> None:
        self._gaps = _gaps(chance, random.Random(f"vesper migrate simulate {name} {seed}"))
        self.next = next(self._gaps)

    def take(self, request: int) -> bool:
        """Return True where a request is selected. Calls must be in ascending order."""
        self.skip(request - 1)
        return self.next == request

    def skip(self, until: int) -> int:
        """Pass all positions up to and including a request; return how many were passed."""
        passed = 0
        while self.next <= until:
            self.next += next(self._gaps)
            passed += 1
        return passed


def _gaps(chance: float, coin: random.Random) -> Iterator[int]:
    if chance <= 0:
        while True:
            yield _NEVER
    if chance >= 1:
        while True:
            yield 1
    scale = math.log1p(-chance)
    while True:
        yield min(_NEVER, 1 + int(math.log(1.0 - coin.random()) / scale))


class Simulation:
    """One seed of a scenario, on a new node or on one with a given state."""

    def __init__(self, scenario: Scenario, seed: int, state: NodeState | None = None) -> None:
        self.scenario = scenario
        self.seed = seed
        self.state = NodeState(node="simulated", epoch="1") if state is None else state
        self.changes: list[Changed] = []
        self.wrong_answers = 0
        self.request = 0
        self.appeared_after: int | None = 0 if scenario.appears_in is None else None
        self.detected_at: int | None = None
        self.close_at = _NEVER
        self.on_path = Positions(scenario.path_share, seed, "path") if scenario.path_share < 1 else None
        self.faults = Positions(scenario.fault_rate, seed, "fault")
        self.fault_turns = 0
        """Requests on the path with the fault since it appeared: the unit of `faults`."""
        self.samples = Positions(scenario.sample / 10_000, seed, "sample")
        self.sample_turns = 0
        """Requests in direct_only: the unit of `samples`."""

    def run(self, jumps: bool = True, stops: bool = True) -> Run:
        while self.request < self.scenario.requests and not (stops and self._is_settled()):
            if not (jumps and self._jump()):
                self._next_request()
        return Run(
            self.seed, self.state, tuple(self.changes), self.wrong_answers, self.appeared_after, self.detected_at
        )

    def _is_settled(self) -> bool:
        """Return True where nothing can change any more.

        That is so in shadow_direct with a divergence that is never closed.
        """
        return self.state.mode is DEFAULT and bool(self.state.open) and self.scenario.close_after is None

    def _next_request(self) -> None:
        self.request += 1
        if self.request >= self.close_at:
            self._step(Close(_FINGERPRINT, "simulated operator", "closed without looking"))
            self.close_at = _NEVER
        path, is_wrong = self._draw()
        # In the canary both engines always run and are compared, so that no sample is drawn.
        is_sampled = False
        if self.state.mode is Mode.DIRECT_ONLY:
            self.sample_turns += 1
            is_sampled = self.samples.take(self.sample_turns)
        runs = plan(self.state.mode, is_sampled, is_proven(self.state, path))
        if runs.follower is None:
            self.wrong_answers += is_wrong and runs.answer is Engine.DIRECT
        elif is_wrong:
            self._diverge(path)
        else:
            self._step(Agreed(path, self._count_new(1)))

    def _draw(self) -> tuple[str, bool]:
        """Return the path of this request, and whether the direct engine is wrong on it."""
        if self.on_path is not None and not self.on_path.take(self.request):
            return _REST, False
        if self.appeared_after is None:
            return _FAULTY, False
        self.fault_turns += 1
        return _FAULTY, self.faults.take(self.fault_turns)

    def _diverge(self, path: str) -> None:
        if self.detected_at is None:
            self.detected_at = self.request
        self._step(Diverged(path, _FINGERPRINT))
        if self.scenario.close_after is not None and self.close_at == _NEVER:
            self.close_at = self.request + 1 + self.scenario.close_after

    def _jump(self) -> bool:
        """Apply a stretch of ordinary requests, up to the next change. Returns False where there are none."""
        path, plain = self._plain_requests()
        runs = min(plain, self.close_at - 1 - self.request, self.scenario.requests - self.request)
        if runs <= 0:
            return False
        is_compared = plan(self.state.mode, False, is_proven(self.state, path)).follower is not None
        if is_compared:
            runs = runs_until_change(self.state, path, self._count_new(runs)) or runs
        self.request += runs
        if path is _FAULTY and self.appeared_after is not None:
            self.fault_turns += runs
        sampled = 0
        if self.state.mode is Mode.DIRECT_ONLY:
            self.sample_turns += runs
            sampled = self.samples.skip(self.sample_turns)
        compared = runs if is_compared else sampled
        if compared:
            self._step(Agreed(path, self._count_new(compared), compared))
        return True

    def _plain_requests(self) -> tuple[str, int]:
        """Return the path of the next requests, and how many follow on it.

        After those the direct engine may be wrong or the path may change. A change of mode is not considered.
        """
        if self.on_path is not None:
            self.on_path.skip(self.request)
            return _REST, self.on_path.next - 1 - self.request
        if self.appeared_after is None:
            return _FAULTY, _NEVER
        self.faults.skip(self.fault_turns)
        return _FAULTY, self.faults.next - 1 - self.fault_turns

    def _count_new(self, runs: int) -> int:
        """Return how many of these clean runs bring an input that is new in this attempt."""
        return runs if self.scenario.distinct is None else max(0, min(runs, self.scenario.distinct - self.state.clean))

    def _step(self, event: Event) -> None:
        decisions: tuple[Decision, ...]
        self.state, decisions = step(self.state, event, self.request)
        for each in decisions:
            if isinstance(each, Changed):
                self.changes.append(each)
                if self.appeared_after is None and each.after is self.scenario.appears_in:
                    self.appeared_after = self.request


def simulate(scenario: Scenario, seed: int) -> Run:
    return Simulation(scenario, seed).run()


def step_by_step(scenario: Scenario, seed: int) -> Run:
    """Return the result of `simulate`, computed one request at a time. A reference for tests."""
    return Simulation(scenario, seed).run(jumps=False)


def simulate_all(scenario: Scenario, seeds: range) -> Iterator[Run]:
    for seed in seeds:
        yield simulate(scenario, seed)


class Tally:
    """Sums over runs, which are not kept."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._wrong: list[int] = []
        self._detections: list[int] = []
        self._promoted = 0
        self._modes = dict.fromkeys((mode.value for mode in Mode), 0)

    def add(self, run: Run) -> None:
        self._wrong.append(run.wrong_answers)
        self._promoted += run.is_promoted
        self._modes[run.state.mode.value] += 1
        if run.detection_requests is not None:
            self._detections.append(run.detection_requests)

    def result(self) -> Result:
        return Result(
            scenario=replace(self._scenario),
            seeds=len(self._wrong),
            promoted=self._promoted,
            detected=len(self._detections),
            wrong_answers_mean=fmean(self._wrong) if self._wrong else 0.0,
            wrong_answers_max=max(self._wrong, default=0),
            detection_requests_mean=fmean(self._detections) if self._detections else None,
            final_modes=self._modes,
        )
