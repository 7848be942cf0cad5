"""Canonical bytes: round trip, and what the semantic hash covers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.nodes import PAYMENT_DECISION, ROOT, compiled, compiled_text, worked_nodes
from vesper.engines.registry import ENGINES
from vesper.language.ir.decode import IrError, decode
from vesper.language.ir.encode import canonical_json, encode, semantic_hash

TEXT = PAYMENT_DECISION.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", worked_nodes(), ids=lambda path: path.stem)
def test_round_trip(path: Path) -> None:
    node = compiled(path)
    assert decode(node.ir) == node.node
    assert encode(decode(node.ir)) == node.ir
    assert semantic_hash(decode(node.ir)) == node.semantic_hash


@pytest.mark.parametrize("path", worked_nodes(), ids=lambda path: path.stem)
def test_text_writer_produces_canonical_json(path: Path) -> None:
    ir = compiled(path).ir
    assert canonical_json(json.loads(ir)) == ir


@pytest.mark.parametrize("path", worked_nodes(), ids=lambda path: path.stem)
@pytest.mark.parametrize("engine", ENGINES)
def test_engines_compute_the_same_hash(path: Path, engine: str) -> None:
    node = compiled(path)
    assert ENGINES[engine].load(node).semantic_hash == node.semantic_hash


@pytest.mark.parametrize(
    "old, new",
    [
        ("intent: Decide", "intent: Somebody should decide"),
        ("\nflow:", "\n# a comment\n\nflow:"),
        ("amount <= 100, ", "(amount <= 100), "),
        ("balance - amount - fee", "'balance   - amount - fee'"),
        ("[NG, RU, KP, IR]", "[IR, KP, NG, RU]"),
        ("- fee >= 0", "- output.fee >= 0"),
        ("then: decline", "then: \"'decline'\""),
    ],
)
def test_hash_ignores_prose_and_layout(old: str, new: str) -> None:
    assert old in TEXT
    assert compiled_text(TEXT.replace(old, new)).semantic_hash == compiled(PAYMENT_DECISION).semantic_hash


@pytest.mark.parametrize(
    "old, new",
    [
        ("amount <= 100, ", "amount < 100, "),
        ("0.029", "0.0290"),
        ("balance - amount - fee", "balance - (amount + fee)"),
        ("[NG, RU, KP, IR]", "[NG, RU, KP]"),
        ("default: false", "default: true"),
        ("{min: 0}", "{min: 1}"),
        ("approve, review, decline", "review, approve, decline"),
    ],
)
def test_hash_changes_with_the_meaning(old: str, new: str) -> None:
    assert old in TEXT
    assert compiled_text(TEXT.replace(old, new)).semantic_hash != compiled(PAYMENT_DECISION).semantic_hash


def test_hash_is_equal_in_another_process() -> None:
    code = (
        "from pathlib import Path; from vesper.compiler import compile_file; import sys; "
        "print(compile_file(Path(sys.argv[1]))[0].semantic_hash)"
    )
    run = [sys.executable, "-c", code, str(PAYMENT_DECISION)]
    for seed in ("1", "2"):
        done = subprocess.run(run, cwd=ROOT, env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == compiled(PAYMENT_DECISION).semantic_hash


def test_decode_rejects_non_canonical_json() -> None:
    node = compiled(PAYMENT_DECISION)
    with pytest.raises(IrError, match="canonical"):
        decode(json.dumps(json.loads(node.ir)).encode())
    newer = json.loads(node.ir) | {"ir_version": 3}
    with pytest.raises(IrError, match="version"):
        decode(canonical_json(newer))
    with pytest.raises(IrError):
        decode(b"{}")
    with pytest.raises(IrError):
        decode(b"\xff")
