"""The machinery of `make proof-differential`, on a few units."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.proofs.differential import campaign
from tests.proofs.differential.campaign import EXECUTIONS, NAME, PROGRAMS, Campaign, Unit, node_paths, sources, units
from tests.proofs.robustness.proof import PROOFS, read_json
from tests.support.nodes import PAYMENT_DECISION


@pytest.fixture
def one_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "node_paths", lambda: {PAYMENT_DECISION.stem: PAYMENT_DECISION})


def _campaign(tmp_path: Path, executions: int = 40, programs: int = 2) -> Campaign:
    return Campaign(1, executions, programs, tmp_path / "kept", tmp_path / "state.json")


def test_units_are_the_whole_campaign() -> None:
    cut = units(EXECUTIONS, PROGRAMS)
    assert len({unit.name for unit in cut}) == len(cut)
    assert sum(unit.count for unit in cut if unit.node is not None) >= EXECUTIONS
    assert sum(unit.count for unit in cut if unit.node is None) == PROGRAMS
    assert {unit.node for unit in cut} == {None, *node_paths()}
    assert {unit.node is None for unit in cut[:10]} == {True, False}, "a stopped campaign has seen some of both"


def test_a_campaign_runs_counts_and_goes_on(tmp_path: Path, one_node: None) -> None:
    first = _campaign(tmp_path)
    first.run(processes=1, seconds=None)
    assert first.is_complete
    proof = first.proof()
    assert (proof["executions"], proof["programs"], proof["program_executions"]) == (40, 2, 20)
    assert proof["disagreements"] == proof["failures"] == 0
    again = _campaign(tmp_path)
    assert again.is_complete, "what is done is kept"
    assert again.proof() == proof
    assert not _campaign(tmp_path, executions=41).is_complete, "another campaign begins anew"


def test_a_process_that_dies_names_its_unit(
    tmp_path: Path, one_node: None, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    bad = Unit("no_such_node 0", "no_such_node", 0, 5)
    good = Unit("payment_decision_v1 0", PAYMENT_DECISION.stem, 0, 5)
    monkeypatch.setattr(campaign, "units", lambda *_: [bad, good])
    under_way = _campaign(tmp_path)
    under_way.run(processes=1, seconds=None)
    (problem,) = under_way.done[bad.name]["failures"]
    assert "no_such_node" in problem
    assert under_way.done[good.name]["executions"] == 5, "another process took the rest"
    assert campaign.report(under_way, is_full=False) == 1
    assert bad.name not in _campaign(tmp_path).done, "what failed is examined again"
    assert "KeyError" in capfd.readouterr().err


def test_the_proof_says_whether_it_is_of_these_sources(capsys: pytest.CaptureFixture[str]) -> None:
    proof = read_json(PROOFS / f"{NAME}.json")
    if proof is None:
        pytest.skip("`make proof-differential` has not come to its end yet; it writes the file that this test reads")
    assert proof["executions"] >= EXECUTIONS
    assert proof["programs"] >= PROGRAMS
    assert proof["disagreements"] == proof["failures"] == 0
    if proof["source_hash"] != sources():
        with capsys.disabled():
            print(f"\ndocs/proofs/{NAME}.json is of other sources; `make proof-differential` renews it")
