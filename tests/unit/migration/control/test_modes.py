"""The promises about modes: names, thresholds, plans, and legal changes."""

from __future__ import annotations

from fractions import Fraction

import pytest

from vesper.migration.control.modes import LADDER, LATCHING, RUNS, THRESHOLDS, TRANSITIONS, Engine, Mode, Reason, plan


def test_the_names_and_thresholds_are_the_promised_ones() -> None:
    assert [mode.value for mode in LADDER] == [
        "python_only",
        "shadow_direct",
        "canary_direct",
        "dual_verify",
        "direct_only",
    ]
    assert {mode.value: threshold for mode, threshold in THRESHOLDS.items()} == {
        "canary_direct": Fraction("0.95"),
        "dual_verify": Fraction("0.999"),
        "direct_only": Fraction("0.9999"),
    }


@pytest.mark.parametrize(
    "mode, is_chosen, is_proven, leader, follower, answer, compares_first",
    [
        ("python_only", False, False, "python", None, "python", False),
        ("python_only", True, True, "python", None, "python", False),
        ("shadow_direct", False, True, "python", "direct", "python", False),
        ("shadow_direct", True, False, "python", "direct", "python", False),
        ("canary_direct", True, True, "direct", "python", "direct", True),
        ("canary_direct", True, False, "direct", "python", "direct", True),
        ("canary_direct", False, True, "python", "direct", "python", False),
        ("dual_verify", False, True, "python", "direct", "python", False),
        ("dual_verify", True, False, "python", "direct", "python", False),
        ("direct_only", False, True, "direct", None, "direct", False),
        ("direct_only", False, False, "direct", "python", "direct", True),
        ("direct_only", True, True, "python", "direct", "python", False),
        ("direct_only", True, False, "python", "direct", "python", False),
    ],
)
def test_the_plan_of_a_request(
    mode: str, is_chosen: bool, is_proven: bool, leader: str, follower: str | None, answer: str, compares_first: bool
) -> None:
    found = plan(Mode(mode), is_chosen, is_proven)
    assert (found.leader.value, found.follower and found.follower.value) == (leader, follower)
    assert (found.answer.value, found.compares_first) == (answer, compares_first)


def test_a_direct_answer_leaves_uncompared_in_one_place_only() -> None:
    uncompared = {
        (mode, is_chosen, is_proven)
        for mode in RUNS
        for is_chosen in (False, True)
        for is_proven in (False, True)
        for found in [plan(mode, is_chosen, is_proven)]
        if found.answer is Engine.DIRECT and not found.compares_first
    }
    assert uncompared == {(Mode.DIRECT_ONLY, False, True)}


def test_a_mode_is_earned_one_at_a_time() -> None:
    for reason, changes in TRANSITIONS.items():
        for before, after in changes:
            assert after.level < before.level or after.level == before.level + 1, reason


def test_only_a_release_leads_out_of_python_only_and_only_to_shadow() -> None:
    out = {(reason, after) for reason in Reason for before, after in TRANSITIONS[reason] if before is Mode.PYTHON_ONLY}
    assert out == {(Reason.UNPINNED, Mode.SHADOW_DIRECT), (Reason.RESUME, Mode.SHADOW_DIRECT)}


def test_a_latch_leads_to_python_only_from_everywhere() -> None:
    for reason in LATCHING:
        assert TRANSITIONS[reason] == {(mode, Mode.PYTHON_ONLY) for mode in LADDER[1:]}


def test_every_reason_has_its_changes() -> None:
    assert set(TRANSITIONS) == set(Reason)
    assert all(TRANSITIONS.values())
