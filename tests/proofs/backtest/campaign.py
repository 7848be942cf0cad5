"""`make proof-backtest`: 1,000,000 journalled payments and a changed fee row, against a brute-force oracle.

For a node with one recorded HTTP answer, and for an audited decision without requests: the command
`vesper compare … --on journal` runs in a process of its own. Its counts, sums, segments and kinds of change must equal
those that plain Python computes from the same payments, its wall time must be within the bar, and a journal that is
compared before and after must be the same, because nothing is performed. Journals stay under `.proofs/backtest` and are
continued where they were cut.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

from tests.proofs.backtest.journal_writer import execution_name, write_journal  # noqa: E402
from tests.proofs.backtest.payments import KINDS, Oracle, node_text, payment  # noqa: E402
from tests.proofs.robustness.proof import PROOFS, STATE, engine_hash, write_json  # noqa: E402
from vesper.journal.journal import open_journal  # noqa: E402

RUNS = 1_000_000
MAX_SECONDS = 60.0
_SAMPLES = 200


def prove(kind: str, runs: int, folder: Path) -> dict[str, Any]:
    """Write the journal, run the command, and compare its report with the oracle."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{kind}_{runs}.db"
    write_journal(path, kind, runs)
    _check_sample(path, runs)
    for version in (1, 2):
        (folder / f"{kind}_v{version}.vsp").write_text(node_text(kind, version), encoding="utf-8")
    before = _content(path)
    found, seconds, usage = _compare(kind, path, folder)
    oracle = Oracle()
    for number in range(1, runs + 1):
        oracle.add(kind, payment(number))
    problems = _differences(found, oracle)
    if _content(path) != before:
        problems.append("the journal was changed")
    return {
        "kind": kind,
        "runs": found["runs"]["seen"],
        "changed": found["runs"]["changed"],
        "oracle_changed": oracle.changed,
        "kinds": len(found["changes"]),
        "oracle_kinds": len(oracle.kinds),
        "fee_before": found["sums"][0]["before"],
        "fee_after": found["sums"][0]["after"],
        "effects_performed": found["effects_performed"],
        "seconds": round(seconds, 2),
        "processor_seconds": round(usage["processor"], 2),
        "peak_mib": usage["peak_mib"],
        "journal_mib": path.stat().st_size >> 20,
        "problems": problems,
    }


def _check_sample(path: Path, runs: int) -> None:
    """Read runs through the journal, which checks lines and chains."""
    journal = open_journal(f"sqlite:{path}")
    for number in range(1, runs + 1, max(1, runs // _SAMPLES)):
        problems = journal.verify(execution_name(number))
        assert not problems, problems
    journal.close()


def _compare(kind: str, path: Path, folder: Path) -> tuple[dict[str, Any], float, dict[str, Any]]:
    command = [sys.executable, "-m", "vesper", "compare", f"{folder}/{kind}_v1.vsp", f"{folder}/{kind}_v2.vsp"]
    command += ["--on", "journal", "--journal", f"sqlite:{path}", "--by", "country", "--sum", "fee", "--format", "json"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 1, done.stderr  # the change is above 0 %
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return json.loads(done.stdout), seconds, {"processor": processor, "peak_mib": after.ru_maxrss >> 10}


def _differences(found: dict[str, Any], oracle: Oracle) -> list[str]:
    sums = found["sums"][0]
    (segments,) = found["segments"]
    pairs = {
        "runs": (found["runs"]["compared"], oracle.runs),
        "changed": (found["runs"]["changed"], oracle.changed),
        "before": (sums["before"], str(oracle.before)),
        "after": (sums["after"], str(oracle.after)),
        "kinds": ({each["kind"]: each["runs"] for each in found["changes"]}, oracle.kinds),
        "segments": (
            {each["value"]: (each["runs"], each["changed"]) for each in segments["groups"]},
            oracle.by_country,
        ),
        "effects": (found["effects_performed"], 0),
    }
    return [f"{name}: {left} is not {right}" for name, (left, right) in pairs.items() if left != right]


def _content(path: Path) -> str:
    """Return a hash of the file without its header, in which SQLite counts readers of its log."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        file.seek(100)
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--kind", action="append", choices=KINDS, help="only this node; both by default")
    parser.add_argument("--folder", type=Path, default=STATE / "backtest")
    parser.add_argument("--no-write", action="store_true", help="leave docs/proofs alone")
    options = parser.parse_args()
    found = [prove(kind, options.runs, options.folder) for kind in options.kind or KINDS]
    summary = {
        "engine_hash": engine_hash(),
        "processors": len(os.sched_getaffinity(0)),
        "load": round(os.getloadavg()[0], 1),
        "max_seconds": MAX_SECONDS,
        "nodes": found,
    }
    print(json.dumps(summary, indent=2))
    problems = [problem for each in found for problem in each["problems"]]
    if options.runs == RUNS and not problems and not options.no_write:
        write_json(PROOFS / "backtest.json", summary)
    is_slow = options.runs == RUNS and any(each["seconds"] > MAX_SECONDS for each in found)
    return 1 if problems or is_slow else 0


if __name__ == "__main__":
    sys.exit(main())
