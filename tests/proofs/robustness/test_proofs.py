"""Small runs of the proofs of the Rust engine, and what they would say if something were wrong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.proofs.robustness import fuzz, memory, threads
from tests.proofs.robustness.calls import KINDS, Kind, shown
from tests.proofs.robustness.fuzz_seeds import write_seeds
from tests.proofs.robustness.proof import PROOFS, ROOT, engine_hash, read_json
from vesper.engines.outcome import EngineFault, Returned

ENDED = """\
INFO: Loaded 1 modules   (51787 inline 8-bit counters): 51787 [0x1, 0x2),
#2\tINITED cov: 90 ft: 91 corp: 1/1b exec/s: 0 rss: 30Mb
#7\tNEW    cov: 13157 ft: 36203 corp: 1532/8196Kb lim: 24000 exec/s: 2087 rss: 48Mb L: 18986/23842 MS: 1 Custom-
Done 93919 runs in 61 second(s)
stat::number_of_executed_units: 93919
stat::average_exec_per_sec:     1539
stat::new_units_added:          1200
stat::slowest_unit_time_sec:    1
stat::peak_rss_mb:              67
"""


def test_the_shares_of_the_kinds_are_a_hundred() -> None:
    assert sum(kind.share for kind in KINDS) == 100
    assert len(threads.PLAN) == 100


def test_every_kind_comes_to_an_outcome() -> None:
    for kind in KINDS:
        assert {shown(kind.make(number)) for number in range(20)}, kind.name


def test_a_fault_of_the_engine_is_no_outcome() -> None:
    for fault in (EngineFault("planted"), b'{"kind":"engine_fault","message":"planted"}', None):
        with pytest.raises(AssertionError):
            shown(fault)
    assert shown(Returned({"a": 1})) == b"{'a': 1}"


def test_memory_that_is_kept_is_noticed() -> None:
    kept: list[bytes] = []

    def keep(number: int) -> bytes:
        kept.append(bytes(100 + number % 7))
        return b""

    found = memory.measured(20_000, (Kind("leak", 100, keep),))
    assert memory.has_grown(found)
    assert found["blocks_more"] >= 20_000
    same = {"calls": memory.CALLS, "start_kib": 9, "end_kib": 9, "blocks_more": 0, "malloc_bytes_more": None}
    assert not memory.has_grown(same)
    assert memory.has_grown({**same, "end_kib": 10 + memory.LIMIT_KIB})
    assert not memory.has_grown({**same, "end_kib": 10 + memory.LIMIT_KIB, "calls": 200_000})


def test_another_order_or_another_result_is_another_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = threads.digest(200)
    assert threads.digest(200) == alone
    monkeypatch.setattr(threads, "PLAN", (*threads.PLAN[1:], threads.PLAN[0]))
    assert threads.digest(200) != alone


def test_a_few_calls_from_everywhere_come_to_the_same() -> None:
    # In a process of its own: it forks while threads are at work.
    script = ROOT / "tests" / "proofs" / "robustness" / "threads.py"
    done = subprocess.run([sys.executable, script, "--calls", "400"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_numbers_of_libfuzzer_are_read() -> None:
    assert fuzz.read_log(ENDED) == {
        "executions": 93919,
        "coverage": 13157,
        "coverage_of": 51787,
        "peak_mib": 67,
        "slowest_seconds": 1,
    }


def test_the_seeds_are_many_and_of_all_targets(tmp_path: Path) -> None:
    counts = write_seeds(tmp_path)
    assert counts["decode_ir"] > 300
    assert counts["values"] > 300
    assert counts["http_answer"] > 10
    seed = next((tmp_path / "decode_ir").iterdir()).read_bytes()
    assert seed.startswith(b'{"ir_version":')
    words = (tmp_path / "words.dict").read_text(encoding="ascii").splitlines()
    assert all(word.startswith('"\\x') and word.endswith('"') for word in words)


@pytest.mark.parametrize("name", ["fuzz", "memory", "threads"])
def test_the_proofs_are_whole_and_say_of_what(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    proof = read_json(PROOFS / f"{name}.json")
    assert proof is not None, f"docs/proofs/{name}.json is missing; see docs/proofs/README.md"
    match name:
        case "fuzz":
            assert proof["seconds_each"] >= fuzz.SECONDS
            assert all(target["crashes"] == 0 < target["executions"] for target in proof["targets"].values())
        case "memory":
            assert proof["calls"] >= memory.CALLS
            assert not memory.has_grown(proof)
        case _:
            assert (proof["threads"], proof["calls_each"]) >= (threads.THREADS, threads.CALLS)
            assert proof["as_expected"] == proof["of"]
    if proof.get("engine_hash", proof["source_hash"]) != engine_hash():
        with capsys.disabled():
            print(f"\ndocs/proofs/{name}.json is of another Rust engine; docs/proofs/README.md says what renews it")
