"""The statistics of the service proof (`tests/proofs/service/measured.py`)."""

from __future__ import annotations

import pytest

from tests.proofs.service.measured import Measured, Turn, compared, is_decided

ALONE = [1_000] * 90 + [2_000] * 10


def round_of(ratio: float, wrong: int = 0) -> Turn:
    slower = [int(each * ratio) for each in ALONE]
    return Measured(ALONE), Measured(slower, wrong=["no"] * wrong)


def test_ratios_over_all_requests_and_by_round() -> None:
    found = compared([round_of(1.05)] * 9 + [round_of(40.0, wrong=1)])
    assert (found["rounds"], found["requests"], found["wrong"]) == (10, 1_000, 1)
    assert found["by_python_p99_ratio"] == 1.05
    assert found["by_python_p99_ratio_from_to"] == [1.05, 1.05]
    assert found["by_python_p99_of_all"] == 40.0
    assert "by_direct_p99_ratio" not in found


@pytest.mark.parametrize(
    "ratios, decided",
    [
        ([1.02, 1.04, 1.06] * 10, True),
        ([1.2, 1.3, 1.4] * 10, True),
        ([1.0] * 18 + [1.5], False),
        ([1.0] * 17 + [1.5] * 2, False),
        ([1.0] * 60 + [1.5], True),
    ],
    ids=["under", "over", "it seems under", "it seems over", "one of many rounds was slow"],
)
def test_rounds_decide_the_bar_or_are_too_few(ratios: list[float], decided: bool) -> None:
    assert is_decided([round_of(each) for each in ratios], 1.10) is decided


def test_a_rate_follows_what_it_took_of_a_core() -> None:
    assert Measured(core=0.5).rate_for(0.5, 100.0) == 100.0
    assert Measured(core=0.25).rate_for(0.5, 100.0) == pytest.approx(141.4, abs=0.1)
    assert Measured(core=1.0).rate_for(0.5, 100.0) == pytest.approx(70.7, abs=0.1)
    found = compared([(Measured(ALONE, core=0.5), Measured(ALONE, core=0.7))] * 2)
    assert (found["alone_core"], found["mode_core"]) == (0.5, 0.7)
