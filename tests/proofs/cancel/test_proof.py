"""`make proof-cancel` in small: a trial of each cause but the client of a server, and what the judgement notices."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.proofs.cancel import campaign
from tests.proofs.cancel.estate import CAUSES, MOMENTS, Trial, trials

SOME = [
    Trial(0, "close", "between"),
    Trial(1, "budget", "before"),
    Trial(2, "timeout", "tool"),
    Trial(3, "parent", "retry"),
]


def test_trials_of_each_cause_are_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "LIMIT_SECONDS", 10.0)  # tests share their processors
    monkeypatch.setattr(campaign, "LEAD_SECONDS", 3.0)
    monkeypatch.setattr(campaign, "WATCH_SECONDS", 2.0)
    found: dict[int, dict[str, Any]] = {}

    def note(trial: Trial, result: dict[str, Any]) -> None:
        found[trial.number] = result

    reserved = asyncio.run(campaign.run(tmp_path, SOME, 1, note))
    assert reserved == ("0", 0, 0, 0)
    assert [found[each.number]["problems"] for each in SOME] == [[]] * len(SOME)
    summary = campaign.summary({str(number): result for number, result in found.items()})
    assert (summary["trials"], summary["right"]) == (4, 4)


def test_a_run_that_nothing_cancels_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "WATCH_SECONDS", 0.7)

    async def judge() -> dict[str, Any]:
        trial = Trial(0, "close", "before")
        async with campaign.opened(tmp_path, [trial]) as place:
            return await campaign.run_trial(place, trial, 1, campaign.nothing)

    problems = asyncio.run(judge())["problems"]
    assert any("an exchange ended" in each for each in problems)
    assert any("the caller had its outcome" in each for each in problems)


def test_every_cause_meets_every_moment() -> None:
    drawn = trials(campaign.COUNT)
    assert {(each.cause, each.moment) for each in drawn} == {(cause, moment) for cause in CAUSES for moment in MOMENTS}
    assert len({each.name for each in drawn}) == campaign.COUNT
