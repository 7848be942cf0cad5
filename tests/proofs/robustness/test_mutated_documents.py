"""A sample of the damaged documents; `make proof-mutated-documents` examines a hundred thousand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.proofs.robustness import mutations
from tests.proofs.robustness.examine import Tally
from tests.proofs.robustness.mutate import NAME, result, start
from tests.proofs.robustness.mutations import document, node_texts
from tests.proofs.robustness.proof import PROOFS, read_json, source_hash

SEED = 1
SAMPLE = 200


def test_a_sample_ends_in_an_answer_each() -> None:
    nodes = node_texts()
    tally = Tally()
    for number in range(SAMPLE):
        tally.examine(number, document(SEED, number, nodes))
    assert tally.failures == []
    assert tally.accepted + sum(tally.rejected.values()) == SAMPLE
    assert tally.accepted > SAMPLE // 50, "documents that are all refused at once test only the first phase"
    assert len(tally.rejected) > 12, "nor do documents that are refused for few reasons"


def test_large_documents_end_in_an_answer_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutations, "LARGE", 1.0)
    nodes = node_texts()
    tally = Tally()
    for number in range(60):
        tally.examine(number, document(SEED, number, nodes))
    assert tally.failures == []


def test_a_document_depends_on_its_numbers_only() -> None:
    nodes = node_texts()
    assert [document(SEED, number, nodes) for number in range(50)] == [
        document(SEED, number, nodes) for number in range(50)
    ]
    assert document(SEED, 1, nodes) != document(SEED + 1, 1, nodes)


def test_what_should_not_happen_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_: object) -> None:
        raise RecursionError("too deep")

    monkeypatch.setattr("tests.proofs.robustness.examine.compile_bytes", crash)
    tally = Tally()
    tally.examine(7, b"node_id: x_v1\n")
    (failure,) = tally.failures
    assert failure["number"] == 7
    assert "too deep" in failure["problem"]


def test_a_process_that_dies_names_its_document(tmp_path: Path) -> None:
    running = start(SEED, 0, 500, tmp_path)
    while running.number() < 5:
        assert running.process.poll() is None
    running.process.kill()
    running.process.wait()
    (failure,) = result(running)["failures"]
    assert 5 <= failure["number"] < 500
    assert "ended with -9" in failure["problem"]


def test_a_huge_file_is_read_no_further_than_it_may_be(tmp_path: Path) -> None:
    huge = tmp_path / "huge.vsp"
    with huge.open("wb") as file:
        file.truncate(1 << 40)  # without blocks on the disk
    script = (
        "import sys; from pathlib import Path; from vesper.compiler import compile_file\n"
        "_, bag = compile_file(Path(sys.argv[1]))\n"
        "print(bag.sorted()[0].headline); peak = open('/proc/self/status').read()\n"
        "sys.exit(int(peak.split('VmHWM:')[1].split()[0]) > 200 * 1024)"
    )
    reader = subprocess.Popen([sys.executable, "-c", script, huge], stdout=subprocess.PIPE, text=True)
    printed, _ = reader.communicate(timeout=60)
    assert printed == "cannot read this file: it is larger than 1 MiB\n"
    assert reader.returncode == 0


def test_the_proof_says_whether_it_is_of_these_sources(capsys: pytest.CaptureFixture[str]) -> None:
    proof = read_json(PROOFS / f"{NAME}.json")
    assert proof is not None, "make proof-mutated-documents writes it"
    assert proof["documents"] >= 100_000
    assert proof["worst_seconds"] <= proof["limit_seconds"]
    if proof["source_hash"] != source_hash():
        with capsys.disabled():
            print(f"\ndocs/proofs/{NAME}.json is of other sources; `make proof-mutated-documents` renews it")
