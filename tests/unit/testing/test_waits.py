"""Waits on test Hosts: a sleep ends at once and moves the clock, other waits need an answer."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

import vesper
from tests.support.nodes import ROOT
from vesper.testing import Replay, Stubs, Unanswered

NODE = ROOT / "tests" / "conformance" / "programs" / "waits_33_v1.vsp"
INPUTS = b'{"event_id": "e1", "days": 1, "due_at": "2026-11-16T00:00:00Z", "grace": "PT1H"}'
RECORDED = """
test_cases:
  - name: confirmed
    now: 2026-11-15T12:00:00Z
    inputs: {event_id: e1, days: 1, due_at: 2026-11-16T00:00:00Z, grace: 1h}
    effects:
      - {step: "nap[1]", returns: 2026-11-20T00:00:00Z}
      - {step: approval, returns: {approved: true}}
      - {step: checked, returns: done}
    expect: {approved: true}
"""


@pytest.mark.parametrize("engine", ["python", "jit"])
def test_a_sleep_moves_the_clock_of_stubs(engine: str) -> None:
    with Stubs() as host:
        host.answer("approval", fails="expired")
        host.answer("checked", None)
        outcome = vesper.load(NODE, engine=engine, host=host).run_json(INPUTS)
        assert '"2026-11-17T00:00:00Z","2026-11-19T00:00:00Z","2026-11-22T00:00:00Z"' in outcome.decode()
        assert host.time.isoformat() == "2026-11-22T01:30:00+00:00"


def test_an_interrupt_needs_an_answer() -> None:
    with Stubs() as host, pytest.raises(Unanswered, match="approval"):
        vesper.load(NODE, engine="python", host=host).run_json(INPUTS)


def test_sleeps_that_a_recording_does_not_list_follow_its_clock(tmp_path: Path) -> None:
    (tmp_path / "case.yaml").write_text(RECORDED, encoding="utf-8")
    with Replay(tmp_path / "case.yaml") as host:
        node = vesper.load(NODE, engine="python", host=host)
        value = node(host.inputs(node)).value
    assert value is not None
    woken = value["woken"]
    assert [each - woken[0] for each in woken] == [timedelta(days=days) for days in (0, 3, 6)]
