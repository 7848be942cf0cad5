"""A sample of the proof of taint, what it reports if masks fail, and whether its file is of these sources."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.proofs.robustness.proof import PROOFS, read_json, whole_hash
from tests.proofs.taint.taint import NAME, NODES, run_campaign
from vesper.host.masking import Masks
from vesper.language.check.taint import TaintAnalysis
from vesper.language.ir.taint import NO_FLOW, Flow


def test_a_sample_shows_no_sensitive_value(tmp_path: Path) -> None:
    found = run_campaign(tmp_path, 10, seed=2)
    assert found["differing"] == []
    assert found["nodes"] == 10
    assert int(str(found["masks shown"])) > 50


def test_views_without_masks_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def reveal(_: Masks, __: Flow, value: object) -> object:
        return value

    monkeypatch.setattr(Masks, "apply", reveal)
    differing = run_campaign(tmp_path, 6, seed=2)["differing"]
    assert isinstance(differing, list)
    assert any("trace as text" in each for each in differing)


def test_an_analysis_that_forgets_operations_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TaintAnalysis, "_operation", lambda *_: NO_FLOW)
    assert run_campaign(tmp_path, 10, seed=2)["differing"]


def test_the_proof_that_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    proof = read_json(PROOFS / f"{NAME}.json")
    assert proof is not None
    assert proof["nodes"] == NODES
    assert proof["is_right"] is True
    if proof["source_hash"] != whole_hash():
        with capsys.disabled():
            print(f"\ndocs/proofs/{NAME}.json is of other sources; `make proof-taint` renews it")
