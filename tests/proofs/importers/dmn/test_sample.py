"""A sample of `make proof-dmn`, and the proof's own eyes."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tests.proofs.importers.dmn import run
from tests.proofs.importers.dmn.run import TCK, is_same, report, run_folder
from vesper.importers.dmn.cases import Temporal


def test_a_sample_of_models_has_no_wrong_results() -> None:
    results = list(run_folder(TCK, every=9))
    assert len(results) > 50
    assert report(results)


def test_the_proof_sees_another_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "is_same", lambda *_: False)
    results = list(run_folder(TCK, only="0004-simpletable-U"))
    assert {each.verdict for each in results} == {"wrong"}
    assert not report(results)


def test_values_compare_as_the_tck_compares_them() -> None:
    assert is_same(Decimal("1.000000001"), Decimal(1))
    assert not is_same(Decimal("1.1"), Decimal(1))
    assert not is_same(True, Decimal(1))
    assert is_same(Temporal("period", "P1Y"), Temporal("duration", "P1Y0M"))
    assert is_same(Temporal("time", "10:00:00Z"), Temporal("time", "10:00:00+00:00"))
    assert not is_same(Temporal("time", "10:00:00"), Temporal("time", "10:00:00Z"))
    assert not is_same({"a": None}, {})
