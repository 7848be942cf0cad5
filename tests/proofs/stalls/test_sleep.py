"""The planted sleep fits the sources; tests/integration/boundary/test_stalls.py has the sample without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.proofs.faults.weave import check, kinds_of, read_places
from tests.proofs.stalls.run import FAULT, is_met


def test_the_sleep_matches_its_place() -> None:
    places = read_places(Path(__file__).parent)
    assert list(kinds_of(places)) == [FAULT]
    assert "std::thread::sleep" in check(places)["crates/vesper-kernels/src/text.rs"]


@pytest.mark.parametrize(
    "situation, changed, expected",
    [
        ("follows a call", {}, True),
        ("follows a call", {"stall_ms": 51.0}, False),
        ("follows a call", {"stall_ms": 51.0, "machine_ms": 60.0}, True),
        ("follows a call", {"caller_s": 30.0}, False),
        ("follows a call", {"latched": False}, False),
        ("runs with effects", {"caller_s": 30.0, "latched": False}, True),
        ("control", {}, False),
        ("control", {"stall_ms": 200.0}, True),
    ],
)
def test_the_bars_can_be_missed(situation: str, changed: dict[str, float], expected: bool) -> None:
    found = {"situation": situation, "stall_ms": 3.0, "machine_ms": 2.0, "caller_s": 0.1, "latched": True, **changed}
    assert is_met(found) == expected
