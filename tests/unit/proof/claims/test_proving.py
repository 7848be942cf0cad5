"""Verdicts of the prover on small nodes, in its own process, and what the command prints of them."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.proofs.claims.trials import contradicted, is_shown, proven_keys
from tests.support.nodes import compiled_text
from vesper.cli.main import vesper
from vesper.compiler import Compiled
from vesper.engines.proven_checks import PROOFS_NAME
from vesper.proof.claims.model import CLAUSE, CONDITION, OPERATION, ROW, NodeProof, Verdict
from vesper.proof.claims.stored import proven_checks
from vesper.proof.claims.worker import prove_within

_NODE = """\
node_id: capped_fee_v1
type: function
intent: Charge three percent, at least one and at most fifty
inputs:
  amount: {type: integer, constraints: [{min: 0}, {max: 1000000}]}
outputs:
  success: {fee: integer, band: string}
contracts:
  postconditions:
    - fee >= 1 AND fee <= 50
    - fee <= amount
flow:
  - step: share
    value: div_floor(amount * 3, 100)
  - step: band
    operation: decision_table
    rows:
      - {when: amount < 0, then: "'none'"}
      - {when: amount < 500, then: "'low'"}
      - {otherwise: "'high'"}
  - return: {fee: "min(50, max(1, share))", band: band}
"""
_SECONDS = 60.0
"""More than the proof needs on a busy machine."""


@pytest.fixture(scope="module")
def node() -> Compiled:
    return compiled_text(_NODE)


@pytest.fixture(scope="module")
def proof(node: Compiled) -> NodeProof:
    return prove_within(node, _SECONDS)


def _verdicts(proof: NodeProof, kind: str) -> dict[str, str]:
    return {each.claim.text: each.verdict.value for each in proof.of_kind(kind)}


def test_clauses_are_proven_or_refuted(proof: NodeProof) -> None:
    assert _verdicts(proof, CLAUSE) == {"fee >= 1 AND fee <= 50": "proven", "fee <= amount": "refuted"}
    (defect,) = (each for each in proof.defects if each.claim.kind == CLAUSE)
    assert defect.witness is not None
    assert defect.witness.inputs == "amount = 0"
    assert "fee = 1" in defect.witness.outcome


def test_a_refutation_is_shown_by_its_case_on_both_engines(node: Compiled, proof: NodeProof) -> None:
    refuted = [each for each in proof.results if each.witness is not None]
    assert refuted
    assert all(is_shown(node, each) for each in refuted)


def test_arithmetic_within_bounds_cannot_overflow(node: Compiled, proof: NodeProof) -> None:
    assert _verdicts(proof, OPERATION)["integer.multiply"] == "proven"
    hash_, clauses, calls = proven_checks(proof)
    assert (hash_, clauses) == (node.semantic_hash, [node.node.postconditions[0].holds.index])
    assert calls == [each.index for each in node.node.expressions() if getattr(each, "op", "") == "integer.multiply"]


def test_a_row_that_no_legal_input_reaches_is_a_defect(proof: NodeProof) -> None:
    rows = [(each.claim.number, each.verdict) for each in proof.of_kind(ROW)]
    assert rows == [(0, Verdict.REFUTED), (1, Verdict.PROVEN)]
    assert any(each.claim.kind == ROW for each in proof.defects)


def test_many_inputs_contradict_no_proof_and_notice_a_planted_one(node: Compiled, proof: NodeProof) -> None:
    assert contradicted(node, proven_keys(proof), 3_000, 1) == {}
    assert contradicted(node, [(CLAUSE, "postcondition", 1, "")], 200, 1)


def test_a_condition_is_reached_only_by_an_input_that_ran() -> None:
    """The solver knows a decimal's scale apart from its number: 0.001 of scale 2 is a model and no input."""
    flow = (
        _NODE[: _NODE.index("inputs:")]
        + """\
inputs: {a: decimal}
outputs:
  success: {n: integer}
flow:
  - return: {n: "(IF round(a, 2) == 0.001 THEN 1 ELSE 0) + (IF a == 48151.62 THEN 2 ELSE 0)"}
"""
    )
    found = [
        each for each in prove_within(compiled_text(flow), _SECONDS).of_kind(CONDITION) if each.claim.code == "true"
    ]
    assert [each.verdict for each in found] == [Verdict.UNKNOWN, Verdict.PROVEN]


def test_what_is_not_decided_in_time_is_unknown(node: Compiled) -> None:
    late = prove_within(node, 0.001)
    assert {each.verdict for each in late.of_kind(CLAUSE)} == {Verdict.UNKNOWN}
    assert {each.reason for each in late.of_kind(CLAUSE)} == {"time limit of 0.001 s"}


# -- the command ----------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VESPER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("VESPER_CACHE_KEY", str(tmp_path / "cache.key"))
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / "capped_fee_v1.vsp").write_text(_NODE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(vesper, ["prove", "--time-limit", str(_SECONDS), *arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    return result.exit_code, result.output


def test_the_command_from_proof_to_a_lost_one(folder: Path) -> None:
    code, text = _run("--save")
    assert code == 1
    assert "refuted: postcondition `fee <= amount`" in text
    assert "^^^^^^^^^^^^^ can be false" in text
    assert "witness: amount = 0" in text
    saved = json.loads((folder / "nodes" / PROOFS_NAME).read_text(encoding="utf-8"))
    assert [each["result"] for each in saved["nodes"]["capped_fee_v1"]["clauses"]] == ["proven", "refuted"]

    code, text = _run("--format", "json")
    shown = json.loads(text)
    assert shown["nodes"][0]["from_cache"] is True
    assert shown["clauses"] == {"proven": 1, "refuted": 1, "unknown": 0}
    suites = ET.fromstring(_run("--format", "junit")[1])
    assert suites.get("failures") == "2"

    assert _run("--check")[0] == 0
    (folder / "nodes" / "capped_fee_v1.vsp").write_text(_NODE.replace("min(50,", "min(51,"), encoding="utf-8")
    code, text = _run("--check")
    assert code == 1
    assert "lost: capped_fee_v1: postcondition `fee >= 1 AND fee <= 50` was proven" in text
    assert "1 clauses saved as proven, 1 lost" in text


def test_a_check_without_a_committed_file_is_a_usage_error(folder: Path) -> None:
    code, text = _run("--check")
    assert code == 2
    assert "`vesper prove --save` writes it" in text
