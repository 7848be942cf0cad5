"""`vesper migrate simulate` beside what it finds: numbers that are none, and somebody who has seen enough."""

from __future__ import annotations

import multiprocessing
import signal
import threading
from collections.abc import Iterator

import pytest

from tests.support.journalled import invoke
from vesper.cli.migrate import command as migrate
from vesper.migration.control.simulate import Run, Scenario, simulate_all


@pytest.mark.parametrize(
    "arguments",
    [
        ("migrate", "simulate", "--requests", "5", "--fault-rate", "nan"),
        ("migrate", "simulate", "--requests", "5", "--fault-rate", "0", "--path-share", "NaN"),
        ("divergences", "shrink", "0dd", "--seconds", "nan"),
        ("run", "payment_decision", "--seconds", "nan"),
        ("verify", "payment_decision", "--seconds", "nan"),
        ("bench", "payment_decision", "--seconds", "nan"),
    ],
    ids=lambda each: " ".join((*each[:2], each[-2])),
)
def test_what_is_no_number_is_in_no_range(arguments: tuple[str, ...]) -> None:
    done = invoke(*arguments)
    assert done.exit_code == 2, done.output
    assert "is not a number in the range" in done.stderr


def _first_chunk_only(work: tuple[Scenario, range]) -> list[Run]:
    """What one process does; all but the first never come to an end."""
    scenario, seeds = work
    if seeds[0] > 0:
        threading.Event().wait()
    return list(simulate_all(scenario, seeds))


@pytest.fixture
def _at_most_a_minute() -> Iterator[None]:
    def over(*_: object) -> None:
        raise AssertionError("it waits for processes that never end")

    before = signal.signal(signal.SIGALRM, over)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("_at_most_a_minute")
def test_who_interrupts_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrate, "_simulate_chunk", _first_chunk_only)
    runs = migrate._simulate(Scenario(10, 0.0), range(100), jobs=2)
    next(runs)
    runs.close()  # as an exception in whoever reads them does
    assert multiprocessing.active_children() == []
