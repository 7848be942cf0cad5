"""Descriptions of nodes in `vesper nodes`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.nodes import PAYMENT_DECISION, compiled, compiled_text, worked_nodes, written_for_tests
from vesper.cli.nodes.command import command
from vesper.repository.describe import capabilities, dependencies, operations, record_types, signature
from vesper.repository.starter import starter

NODES = [*worked_nodes(), *written_for_tests()]


def test_signature_lists_inputs_and_outputs() -> None:
    inputs = [("amount", "decimal"), ("rate", "decimal")]
    assert signature(inputs, [("fee", "decimal")]) == "(amount: decimal, rate: decimal) → (fee: decimal)"


def test_operations_are_counted() -> None:
    node = compiled_text(starter("fee_v1", "function")).node
    assert operations(node) == {"decimal.greater": 1, "decimal.greater_or_equal": 2, "decimal.multiply": 1}


def test_records_inside_other_types_are_found() -> None:
    (basket,) = (path for path in written_for_tests() if path.stem == "basket_v1")
    assert {name: len(record.fields) for name, record in record_types(compiled(basket).node).items()} == {
        "Tag": 2,
        "Line": 5,
    }


@pytest.mark.parametrize("path", NODES, ids=lambda path: path.stem)
def test_every_node_can_be_shown(path: Path) -> None:
    done = CliRunner().invoke(command, ["show", str(path)])
    assert done.exit_code == 0
    found = compiled(path)
    assert found.semantic_hash in done.stdout
    names = [each.name for each in found.node.inputs] + [each.name for each in found.node.outputs]
    names += [each.name for each in found.cases]
    assert [name for name in names if name not in done.stdout] == []
    assert [each for each in (*dependencies(found.node), *capabilities(found.node)) if each not in done.stdout] == []


@pytest.fixture
def root(tmp_path: Path) -> Path:
    text = PAYMENT_DECISION.read_text(encoding="utf-8")
    (tmp_path / "payment_decision_v1.vsp").write_text(text, encoding="utf-8")
    wrong = text.replace("payment_decision_v1", "wrong_v1").replace("- amount > 0", "- ammount > 0 AND ammount < 9")
    (tmp_path / "wrong_v1.vsp").write_text(wrong, encoding="utf-8")
    (tmp_path / "a_v1.vsp").write_bytes(b"\xff")
    return tmp_path


def run(root: Path, *words: str) -> str:
    done = CliRunner().invoke(command, [*words, "--nodes", str(root)])
    assert (done.exit_code, done.stderr) == (0, "")
    return done.stdout


def test_nodes_with_errors_are_listed(root: Path) -> None:
    lines = run(root, "list").splitlines()
    assert lines[0] == f"a_v1  1 error  {(root / 'a_v1.vsp').as_posix()}"
    assert f"wrong_v1  2 errors  {(root / 'wrong_v1.vsp').as_posix()}" in lines
    assert lines[-1] == "3 nodes, 2 with errors; `vesper check` shows them"
    listed = json.loads(run(root, "list", "--format", "json"))
    assert [(each["id"], each["errors"], "semantic_hash" in each) for each in listed] == [
        ("a_v1", 1, False),
        ("payment_decision_v1", 0, True),
        ("wrong_v1", 2, False),
    ]
    assert listed[1]["cases"] == 2
    assert listed[1]["inputs"][2] == {"name": "currency", "type": "enum[USD, EUR, GBP]"}


def test_graph_and_capabilities_report_an_empty_folder(root: Path) -> None:
    assert run(root, "graph").splitlines() == [
        "a_v1  has errors",
        "payment_decision_v1  calls no other node",
        "wrong_v1  has errors",
        "",
        "no node calls another",
    ]
    ids = ["a_v1", "payment_decision_v1", "wrong_v1"]
    assert json.loads(run(root, "graph", "--format", "json")) == {"nodes": ids, "edges": []}
    assert run(root, "graph", "--format", "dot") == (
        'digraph nodes {\n  "a_v1";\n  "payment_decision_v1";\n  "wrong_v1";\n}\n'
    )
    assert run(root, "capabilities").splitlines() == [
        "a_v1  has errors",
        "payment_decision_v1  none",
        "wrong_v1  has errors",
        "there is no vesper.toml from here upwards: nothing is granted",
    ]
