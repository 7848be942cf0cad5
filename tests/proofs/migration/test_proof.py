"""The controller proof: a small sample passes, and a wrong controller fails."""

from __future__ import annotations

import pytest

from tests.proofs.migration import controller as proof
from vesper.migration.control import simulate
from vesper.migration.control.modes import Mode, Plan, plan
from vesper.migration.control.state import NodeState


def test_a_sample_passes() -> None:
    assert proof.crossings().is_right
    line = proof.late_fault(30, 1)
    assert line.is_right, line


def test_it_sees_a_controller_that_trusts_every_path(monkeypatch: pytest.MonkeyPatch) -> None:
    def trusts(state: NodeState, path: str) -> bool:
        return True

    monkeypatch.setattr(simulate, "is_proven", trusts)
    assert not proof.rare_path(20, 1, 0).is_right


def test_it_sees_a_sample_that_is_never_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    def unsampled(mode: Mode, is_chosen: bool, is_proven: bool) -> Plan:
        return plan(mode, False, is_proven)

    monkeypatch.setattr(simulate, "plan", unsampled)
    assert not proof.late_fault(3, 1).is_right
