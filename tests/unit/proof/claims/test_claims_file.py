"""The committed results of proofs: what a check proves again, and which proofs count as lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.nodes import compiled_text
from vesper.cache.proofs import PROVER_VERSION
from vesper.compiler import Compiled
from vesper.proof.claims import claims_file
from vesper.proof.claims.claims_file import (
    ProofsFileProblem,
    SavedNode,
    SavedProofs,
    lost_proofs,
    proofs_text,
    read_proofs,
    saved_entries,
)
from vesper.proof.claims.model import CLAUSE, NodeProof, Result, Verdict, Witness, result_from_data, result_to_data
from vesper.proof.claims.obligations import claims_of

_NODE = """
node_id: halved_v1
type: function
intent: Halve a number
inputs: {x: {type: integer, constraints: [{min: 0}]}}
outputs: {success: {y: integer}}
contracts:
  postconditions:
    - y <= x
    - y >= 0
flow:
  - return: {y: "div_floor(x, 2)"}
"""


@pytest.fixture(scope="module")
def node() -> Compiled:
    return compiled_text(_NODE)


def _proof(node: Compiled, *verdicts: Verdict, reason: str | None = None) -> NodeProof:
    clauses = [each for each in claims_of(node) if each.kind == CLAUSE]
    witness = Witness("x = 1", None, "postcondition broken")
    results = [
        Result(claim, verdict, reason, witness if verdict is Verdict.REFUTED else None)
        for claim, verdict in zip(clauses, verdicts, strict=True)
    ]
    return NodeProof(node.node.node_id, node.semantic_hash, results)


def _saved(node: Compiled, semantic_hash: str | None = None, prover: int = PROVER_VERSION) -> SavedProofs:
    clauses = (("postcondition", "y <= x", "proven"), ("postcondition", "y >= 0", "unknown"))
    return SavedProofs(prover, {node.node.node_id: SavedNode(semantic_hash or node.semantic_hash, clauses)})


def _never(_: Compiled) -> NodeProof:
    raise AssertionError("an unchanged node is not proven again")


def test_a_file_reads_back(node: Compiled, tmp_path: Path) -> None:
    path = tmp_path / "vesper.proofs.json"
    path.write_text(proofs_text([_proof(node, Verdict.PROVEN, Verdict.UNKNOWN)]), encoding="utf-8")
    assert read_proofs(path) == _saved(node)
    assert saved_entries(path)["halved_v1"]["checks"]["clauses"] == [node.node.postconditions[0].holds.index]


@pytest.mark.parametrize("text", ["", "[]", '{"version": 9}', '{"version": 1, "nodes": {"a": {}}}'])
def test_what_is_no_such_file_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "vesper.proofs.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ProofsFileProblem, match=r"save it again|reads version 1"):
        read_proofs(path)
    with pytest.raises(ProofsFileProblem, match="vesper prove --save"):
        read_proofs(tmp_path / "absent.json")


def test_an_unchanged_node_is_not_proven_again_but_for_the_sample(node: Compiled) -> None:
    assert int(node.semantic_hash[:8], 16) % 10, "this node is in the sample: change its text"
    assert lost_proofs(_saved(node), [node], _never, is_complete=True) == []


@pytest.mark.parametrize("hash_, prover", [("0" * 64, PROVER_VERSION), (None, PROVER_VERSION + 1)])
def test_a_changed_node_or_prover_is_proven_again(node: Compiled, hash_: str | None, prover: int) -> None:
    saved = _saved(node, hash_, prover)
    kept = lost_proofs(saved, [node], lambda each: _proof(each, Verdict.PROVEN, Verdict.REFUTED), is_complete=True)
    assert kept == []
    (lost,) = lost_proofs(saved, [node], lambda each: _proof(each, Verdict.REFUTED, Verdict.PROVEN), is_complete=True)
    assert (lost.node_id, lost.phase, lost.text, lost.why) == ("halved_v1", "postcondition", "y <= x", "refuted: x = 1")


def test_a_changed_node_that_is_not_proven_in_time_is_lost(node: Compiled) -> None:
    late = _proof(node, Verdict.UNKNOWN, Verdict.UNKNOWN, reason="time limit of 10 s")
    (lost,) = lost_proofs(_saved(node, "0" * 64), [node], lambda _: late, is_complete=True)
    assert lost.why == "unknown: time limit of 10 s"


def test_an_unchanged_node_that_is_not_proven_in_time_is_not_lost(
    node: Compiled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims_file, "SAMPLE_EVERY", 1)
    late = _proof(node, Verdict.UNKNOWN, Verdict.UNKNOWN, reason="time limit of 10 s")
    assert lost_proofs(_saved(node), [node], lambda _: late, is_complete=True) == []
    refuted = _proof(node, Verdict.REFUTED, Verdict.UNKNOWN)
    assert len(lost_proofs(_saved(node), [node], lambda _: refuted, is_complete=True)) == 1


def test_a_clause_or_a_node_that_is_gone_is_lost(node: Compiled) -> None:
    saved = SavedProofs(PROVER_VERSION, {"halved_v1": SavedNode("0" * 64, (("invariant", "old", "proven"),))})
    prove = lambda each: _proof(each, Verdict.PROVEN, Verdict.PROVEN)  # noqa: E731
    (lost,) = lost_proofs(saved, [node], prove, is_complete=True)
    assert lost.why == "the node has no such clause any more"
    (lost,) = lost_proofs(saved, [], prove, is_complete=True)
    assert lost.why == "the node is gone"
    assert lost_proofs(saved, [], prove, is_complete=False) == []


def test_results_survive_the_link_and_the_cache(node: Compiled) -> None:
    for each in _proof(node, Verdict.REFUTED, Verdict.UNKNOWN, reason="time limit of 1 s").results:
        assert result_from_data(result_to_data(each)) == each
