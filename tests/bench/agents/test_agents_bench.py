"""Check the tools of `make bench-agents`: the provider's times, the answers that count, the last line."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bench.agents import bare, vesper_agent
from tests.bench.agents.contestant import Make, Sample, Wrong, sample
from tests.bench.agents.crowds import sleepers
from tests.bench.agents.provider import Pace
from tests.bench.agents.run import CONTESTANTS, MODULES, PACE, Measured, Process, missed, summary

QUICK = Pace(first=0.02, gap=0.002, chunks=4)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with Process("provider") as provider:
        yield f"http://127.0.0.1:{int(provider.line())}"


@pytest.mark.parametrize("protocol", list(CONTESTANTS))
@pytest.mark.parametrize("make", [bare.make, vesper_agent.make], ids=["bare", "vesper"])
def test_a_first_chunk_is_timed_without_the_time_of_the_provider(protocol: str, make: Make, url: str) -> None:
    async def ask() -> list[Sample]:
        async with make(url, protocol, QUICK.model) as asked:
            return [await sample(asked, "What?", QUICK) for _ in range(2)]

    for each in asyncio.run(ask()):
        assert 0 < each.overhead_ms < 2000
        assert each.ended_ns - each.came_ns > QUICK.first * 1e9


@pytest.mark.parametrize("text", ["1 2 and so", "no times at all", ""])
def test_another_answer_is_not_timed(text: str) -> None:
    async def ask(_: str) -> AsyncIterator[str]:
        yield text

    with pytest.raises(Wrong, match="not that of the provider"):
        asyncio.run(sample(ask, "What?", QUICK))


def test_the_times_are_in_the_name_of_the_model() -> None:
    assert Pace.of(PACE.model) == PACE


def measured(p95_ms: float, rss_mib: float) -> Measured:
    return Measured([p95_ms / 2], [p95_ms, p95_ms + 9, p95_ms - 0.5], [1.0], rss_mib)


def figures(**changed: tuple[float, float]) -> dict[str, Any]:
    given: dict[str, tuple[float, float]] = {
        "bare": (0.5, 20),
        "vesper": (2.5, 60),
        "sdk": (4.5, 90),
        "pydantic_ai": (20.5, 85),
        "langgraph": (8.5, 99),
    }
    given = {**given, **changed}
    found = {
        protocol: {name: measured(*each) for name, each in given.items() if name in names}
        for protocol, names in CONTESTANTS.items()
    }
    return summary(found, {"streams": 1000, "open_at_once": 1000, "rss_mib": 120.0}, {"rss_mib": 90.0})


def test_overheads_are_without_that_of_a_bare_socket() -> None:
    last = figures()
    assert last["first_chunk_overhead_ms_p95"]["anthropic"] == {"vesper": 2.0, "sdk": 4.0, "pydantic_ai": 20.0}
    assert (last["vs_sdk"], last["vs_others"]) == (2.0, 4.0)
    assert last["rss_mib"]["openai"]["langgraph"] == 99
    assert missed(last) == []


@pytest.mark.parametrize(
    "changed, problem",
    [
        ({"vesper": (5.6, 60), "sdk": (9.5, 90)}, "overhead of 5.1 ms, the bar is 5"),
        ({"sdk": (2.0, 90)}, "overhead of 2.0 ms, sdk has 1.5"),
        ({"vesper": (2.5, 85)}, "85 MiB, pydantic_ai has 85"),
    ],
)
def test_a_bar_that_is_not_reached_is_named(changed: dict[str, tuple[float, float]], problem: str) -> None:
    assert any(problem in each for each in missed(figures(**changed)))


def test_a_crowd_must_be_small_and_at_once() -> None:
    last = figures()
    assert missed({**last, "streams_1000_rss_mib": 191.0}) == ["1,000 streams: 191.0 MiB, the bar is 190.7"]
    few = {"streams": 1000, "open_at_once": 900}
    assert missed({**last, "streams_1000": few}) == ["only 900 streams were open at once"]


def test_agents_sleep_before_their_memory_is_read(tmp_path: Path) -> None:
    found = sleepers(3, tmp_path)
    assert found["agents"] == 3
    assert found["rss_mib"] > 10


def test_every_contestant_has_its_program() -> None:
    folder = Path(bare.__file__).parent
    assert all((folder / f"{each}.py").is_file() for each in MODULES.values())
