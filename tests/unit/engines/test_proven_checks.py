"""Checks that the direct engine leaves out of its plain form, and what a wrong proof can do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.nodes import compiled_text
from vesper import _direct
from vesper.cache.proofs import PROVER_VERSION, put_proof
from vesper.compiler import Compiled
from vesper.engines.compare import Disagree, compare
from vesper.engines.direct_engine import DirectEngine, load_documents
from vesper.engines.engine import Done, EngineUnavailable
from vesper.engines.outcome import ContractBroken, Failed, Returned
from vesper.engines.proven_checks import PROOFS_NAME, proven_checks
from vesper.engines.python_engine import PythonEngine
from vesper.engines.tiering import ALWAYS, INTERPRETED, Tiering

_NODE = """
node_id: doubled_v1
type: function
intent: Double a number
inputs:
  x: integer
outputs:
  success: {y: integer}
contracts:
  postconditions:
    - y < 100
flow:
  - step: twice
    value: x + x
  - return: {y: twice}
"""


@pytest.fixture(scope="module")
def node() -> Compiled:
    return compiled_text(_NODE)


def _clause(node: Compiled, number: int) -> int:
    return node.node.postconditions[number].holds.index


@pytest.mark.parametrize("tiering", [INTERPRETED, ALWAYS], ids=["interp", "jit"])
def test_a_wrong_proof_shows_as_a_divergence(node: Compiled, tiering: Tiering) -> None:
    program = load_documents(node.ir, [], tiering, [(node.semantic_hash, [_clause(node, 0)], [])])
    reference = PythonEngine().load(node)
    assert program.call({"x": 10}) == reference.call({"x": 10}) == Returned({"y": 20})
    wrong, right = program.call({"x": 60}), reference.call({"x": 60})
    assert wrong == Returned({"y": 120})
    assert isinstance(right, ContractBroken)
    assert isinstance(compare(Done(right, (), is_observed=False), Done(wrong, (), is_observed=False)), Disagree)


def test_the_traced_and_the_pathed_form_keep_every_check(node: Compiled) -> None:
    program = load_documents(node.ir, [], INTERPRETED, [(node.semantic_hash, [_clause(node, 0)], [])])
    done = program.start({"x": 60}).advance(())
    assert isinstance(done, Done)
    assert isinstance(done.outcome, ContractBroken)
    assert isinstance(program.call_pathed({"x": 60}, bytes(16)).outcome, ContractBroken)


def test_a_wrong_proof_of_arithmetic_wraps_in_machine_code_and_nothing_else(node: Compiled) -> None:
    add = next(each.index for each in node.node.expressions() if getattr(each, "op", "") == "integer.add")
    proven = [(node.semantic_hash, [_clause(node, 0)], [add])]
    outcome = load_documents(node.ir, [], ALWAYS, proven).call({"x": 2**62})
    assert outcome == Returned({"y": -(2**63)})


def test_proofs_of_another_node_do_not_count(node: Compiled) -> None:
    program = load_documents(node.ir, [], INTERPRETED, [("0" * 64, [_clause(node, 0)], [])])
    assert isinstance(program.call({"x": 60}), ContractBroken)


def test_a_proof_that_names_no_check_is_refused(node: Compiled) -> None:
    with pytest.raises(_direct.IrRejected, match="proofs: expression 0 is no postcondition"):
        load_documents(node.ir, [], INTERPRETED, [(node.semantic_hash, [0], [])])


# -- where proofs come from -----------------------------------------------------------------------


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VESPER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("VESPER_CACHE_KEY", str(tmp_path / "cache.key"))


@pytest.mark.usefixtures("own_cache")
def test_the_cache_of_the_prover_counts_where_the_setting_says_so(node: Compiled) -> None:
    put_proof(node.semantic_hash, {"results": [], "checks": (node.semantic_hash, [_clause(node, 0)], [])})
    assert isinstance(DirectEngine(Tiering("off")).load(node).call({"x": 60}), ContractBroken)
    assert DirectEngine(Tiering("off", proofs="cache")).load(node).call({"x": 60}) == Returned({"y": 120})


def _placed(node: Compiled, folder: Path, hash_: str, prover: int = PROVER_VERSION) -> Compiled:
    (folder / "vesper.lock").write_text("", encoding="utf-8")
    (folder / "doubled_v1.vsp").write_text(_NODE, encoding="utf-8")
    entry = {"hash": hash_, "clauses": [], "checks": {"clauses": [_clause(node, 0)], "calls": []}}
    form = {"version": 1, "prover": prover, "nodes": {"doubled_v1": entry}}
    (folder / PROOFS_NAME).write_text(json.dumps(form), encoding="utf-8")
    return compiled_text(_NODE, str(folder / "doubled_v1.vsp"))


def test_the_committed_file_counts_for_the_hash_that_it_names(node: Compiled, tmp_path: Path) -> None:
    placed = _placed(node, tmp_path, node.semantic_hash)
    assert proven_checks([placed], "file") == [(node.semantic_hash, [_clause(node, 0)], [])]
    assert proven_checks([placed], "cache") == proven_checks([placed], "off") == []
    assert DirectEngine(Tiering("off", proofs="file")).load(placed).call({"x": 60}) == Returned({"y": 120})


@pytest.mark.parametrize("hash_, prover", [("0" * 64, PROVER_VERSION), (None, PROVER_VERSION + 1)])
def test_a_file_of_another_node_or_prover_proves_nothing(
    node: Compiled, tmp_path: Path, hash_: str | None, prover: int
) -> None:
    assert proven_checks([_placed(node, tmp_path, hash_ or node.semantic_hash, prover)], "file") == []


def test_a_damaged_file_is_reported_with_its_remedy(node: Compiled, tmp_path: Path) -> None:
    placed = _placed(node, tmp_path, node.semantic_hash)
    (tmp_path / PROOFS_NAME).write_text('{"prover": 1}', encoding="utf-8")
    with pytest.raises(EngineUnavailable, match="save it again"):
        proven_checks([placed], "file")


@pytest.mark.usefixtures("own_cache")
def test_a_clause_that_may_fail_to_evaluate_stays() -> None:
    """`y + y` of a large number fails, so the clause is never false and still no check to leave out."""
    text = _NODE.replace("- y < 100", "- y + y >= y OR y < 0").replace("value: x + x", "value: x")
    node = compiled_text(text)
    put_proof(node.semantic_hash, {"results": [], "checks": (node.semantic_hash, [_clause(node, 0)], [])})
    assert proven_checks([node], "cache") == [(node.semantic_hash, [], [])]
    outcome = DirectEngine(Tiering("off", proofs="cache")).load(node).call({"x": 2**62})
    assert outcome == PythonEngine().load(node).call({"x": 2**62})
    assert isinstance(outcome, Failed)
