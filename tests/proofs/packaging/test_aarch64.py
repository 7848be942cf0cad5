"""The proof on aarch64 reads what the commands print that it runs, and says of what it is."""

from __future__ import annotations

import sys

import pytest

from tests.conformance.run import GROUPS, Tally, code_line, report
from tests.proofs.packaging.aarch64 import Failed, read_corpus, run, total
from tests.proofs.robustness.proof import PROOFS, engine_hash, read_json


def test_what_the_corpus_prints_is_read_and_added() -> None:
    tally = Tally()
    tally.asked[next(iter(GROUPS.values()))] = 1_234
    tally.nodes = {"a", "b"}
    found = read_corpus(f"{report(tally, ['interp', 'jit'], 1.0)}\n\n{code_line(2_345, 0)}\n")
    assert found == {
        "questions": 1_234,
        "nodes": 2,
        "disagreements": 0,
        "machine_code_made": 2_345,
        "machine_code_refused": 0,
    }
    assert total([{"executions": 30, "engines": ["python"]}, {"executions": 12, "engines": ["python"]}]) == {
        "executions": 42,
        "engines": ["python"],
    }


def test_a_command_that_fails_says_what_it_printed(capsys: pytest.CaptureFixture[str]) -> None:
    script = "import sys; print('out'); print('half way', file=sys.stderr); sys.exit(int(sys.argv[1]))"
    assert run(sys.executable, "-c", script, "0", name="part") == "out\n"
    assert "part: half way" in capsys.readouterr().out  # shown while it runs
    with pytest.raises(Failed, match=r"(?s)ended with 3:\nout\nhalf way"):
        run(sys.executable, "-c", script, "3")


def test_the_proof_is_whole_and_says_of_what(capsys: pytest.CaptureFixture[str]) -> None:
    proof = read_json(PROOFS / "aarch64.json")
    assert proof is not None, "docs/proofs/aarch64.json is missing; see docs/proofs/README.md"
    assert proof["machine"] == "aarch64"
    assert proof["corpus"]["disagreements"] == proof["verify"]["disagreements"] == 0
    assert proof["corpus"]["machine_code_refused"] == 0 < proof["corpus"]["machine_code_made"]
    if proof["engine_hash"] != engine_hash():
        with capsys.disabled():
            print("\ndocs/proofs/aarch64.json is of another Rust engine; `make proof-aarch64` renews it")
