"""A sample of `make proof-candidates`, and its control: a candidate that performs is noticed."""

from __future__ import annotations

from pathlib import Path

from tests.proofs.candidates import campaign


def test_killed_processes_perform_nothing_for_the_candidate(tmp_path: Path) -> None:
    found = campaign._round(0, 3, tmp_path)
    assert found["problems"] == []
    assert found["runs"] >= 3
    assert found["effects_of_the_candidate"] == 0


def test_a_candidate_that_performs_is_noticed(tmp_path: Path) -> None:
    assert campaign.control(tmp_path) == 5
