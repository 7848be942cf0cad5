"""The machines of Rust and the reference on a sample of the proof, and whether the proof sees a difference."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.proofs.machines import driver
from tests.proofs.machines.cases import CASES
from tests.proofs.machines.compare import Difference, Sequence, draw, perform, run
from tests.proofs.machines.draws import THEMES, some_settings
from tests.proofs.machines.driver import Driver
from tests.proofs.machines.records import REFUSED, Side
from tests.proofs.machines.reference import (
    cleanup,
    commands,
    interrupts,
    kernel,
    limits,
    pipelines,
    processes,
    rates,
    registry,
    sessions,
    steps,
)
from tests.proofs.machines.reference.coverage import Seen
from tests.proofs.machines.sequences import next_record

SEED = 7


@pytest.fixture(scope="module")
def program() -> Path:
    return driver.build()


@pytest.fixture
def rust(program: Path) -> Iterator[Driver]:
    with driver.start(program) as found:
        yield found


def test_a_sample_of_sequences_has_no_difference(rust: Driver) -> None:
    seen = Seen()
    for start in range(0, 400, 100):
        run(rust, [draw(SEED, number, seen) for number in range(start, start + 100)])
    assert len(seen.processes) >= 12
    assert len(seen.refused_processes) >= 25
    assert seen.branches["forked to ready"] > 0


@pytest.mark.parametrize("name", CASES)
def test_a_difference_that_was_found_is_none_any_more(name: str, rust: Driver) -> None:
    under, records = CASES[name]
    run(rust, [perform(under, records, name)])


_SEEDS = st.integers(0, (1 << 32) - 1)
_STEPS = st.lists(_SEEDS, min_size=1, max_size=25)
"""A seed for each record, so that a sequence without some of its records draws the others again."""
_THEMES = st.sampled_from(range(len(THEMES)))


def drawn_by_hypothesis(theme: int, seed: int, steps: list[int]) -> Sequence:
    """Return a sequence with a record for each seed, as the reference observes it."""
    opening, about = THEMES[theme]
    side = Side(some_settings(random.Random(seed), about))
    found = Sequence(f"theme {theme}, seed {seed}, steps {steps}", side.kernel.settings, [], [])
    for place, each in enumerate(steps):
        record = next_record(random.Random(each), side.kernel, opening[place : place + 1] or about)
        found.records.append(record)
        found.observations.append(side.perform(record))
    assert side.missed() == []
    return found


def test_sequences_of_hypothesis_have_no_difference(rust: Driver) -> None:
    @settings(max_examples=60, deadline=None)
    @given(_THEMES, _SEEDS, _STEPS)
    def check(theme: int, seed: int, steps: list[int]) -> None:
        run(rust, [drawn_by_hypothesis(theme, seed, steps)])

    check()


def test_hypothesis_finds_and_shrinks_a_planted_difference(rust: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "DEFAULT_LEASE_US", limits.DEFAULT_LEASE_US + 1)
    lengths: list[int] = []

    @settings(
        max_examples=1_000,
        deadline=None,
        database=None,
        derandomize=True,
        phases=(Phase.generate, Phase.shrink),
        report_multiple_bugs=False,
        print_blob=False,
    )
    @given(_THEMES, _SEEDS, _STEPS)
    def check(theme: int, seed: int, steps: list[int]) -> None:
        sequence = drawn_by_hypothesis(theme, seed, steps)
        try:
            run(rust, [sequence])
        except Difference:
            lengths.append(len(sequence.records))
            raise

    with pytest.raises(Difference, match="lease_until_us"):
        check()
    # Two records show the lease: a process is submitted, and taken. Three are left to chance.
    assert min(lengths) <= 5


@pytest.mark.parametrize(
    "module,name,value",
    [
        (limits, "DEFAULT_LEASE_US", 30_000_001),
        (limits, "HOUR_US", 3_600_000_001),
        (limits, "MOST_BYTES", 1_001),
        (limits, "check_json", lambda *_: None),
        (limits, "exceeded_counters", lambda *_: []),
        (commands, "LEGAL", processes.LEGAL - {(processes.RUNNING, processes.BLOCKED)}),
        (processes.Processes, "ready", lambda self: [p for p in self.all.values() if p.state == processes.READY]),
        (processes.Process, "hold", lambda *_: None),
        (interrupts, "is_answer_required", lambda *_: False),
        (kernel.Kernel, "has_to_wait", lambda *_: False),
        (kernel.Kernel, "settle", lambda *_: None),
        (rates, "SECOND_US", 999_999),
        (rates, "MINUTE_US", 3_600_000_000),
        (registry.Registry, "capacity", staticmethod(lambda info: info.max_concurrent)),
        (pipelines, "MOST_BYTES", 3),
        (sessions.Session, "_come_to", sessions.Session._enter),
        (sessions.Session, "release", lambda *_: None),
        (sessions.Session, "_children", lambda *_: []),
        (steps, "_renew_steps", lambda *_: []),
        (cleanup, "_remove", lambda *_: None),
        (cleanup, "is_due", lambda *_: False),
    ],
)
def test_another_reference_makes_a_difference(
    module: object, name: str, value: object, rust: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, name, value)
    # The broken reference may also stumble over itself.
    with pytest.raises((Difference, KeyError)):
        run_all(rust, 20_000)


def run_all(rust: Driver, count: int) -> None:
    for start in range(0, count, 100):
        run(rust, [draw(SEED, number) for number in range(start, start + 100)])


def test_refused_commands_have_changed_nothing() -> None:
    for number in range(300):
        sequence = draw(SEED, number)
        for observation in sequence.observations:
            if observation[0] >= REFUSED:
                # No answer, no event, and no entity that is not as before.
                assert observation[1:9] == bytes(8)
                assert observation[-4:] == bytes(4)
