"""`make proof-machines`: a million random sequences of commands on the kernel's machines and on a reference in Python.

The reference (`tests/proofs/machines/reference`) is written after docs/spec/kernel.md and schemas/proto. A driver in
Rust (`examples/drive.rs` of the crate `vesper-kernel`) performs the same commands at the same times. After each, both
have the same answer or code of a refusal, events and counts, and the same processes, queue, interrupts, services,
sessions and envelopes. Every legal transition of processes, interrupts and branches has to be reached, and every
illegal one refused. What is done is kept under `.proofs/`; the same command continues where it was stopped.
`--show NUMBER` prints a sequence. A whole run writes `docs/proofs/machines.json`; one of fewer sequences only prints.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from tests.proofs.machines import driver
from tests.proofs.machines.compare import NAMES, Difference, Sequence, draw, receive, show
from tests.proofs.machines.messages import CRATE, ROOT
from tests.proofs.machines.reference.coverage import Seen
from tests.proofs.robustness.proof import STATE, hash_of, read_json, write_json, write_proof

NAME = "machines"
SEQUENCES = 1_000_000
SEED = 20_261_119
BATCH = 200
SAVED_EVERY = 5_000


def source_hash() -> str:
    """Changes with every change of the machines, of the reference and of the draws."""
    folders = [(CRATE / "src" / "machines", "*.rs"), (CRATE / "src" / "kernel", "*.rs")]
    parts = [path for folder, pattern in folders for path in folder.rglob(pattern)]
    parts += [path for path in (ROOT / "tests" / "proofs" / "machines").rglob("*.py") if "test_" not in path.name]
    return hash_of([*parts, CRATE / "src" / "kernel.rs", CRATE / "examples" / "drive.rs"])


def begin(path: Path, seed: int) -> dict[str, Any]:
    """Return what an earlier run with these sources has done."""
    fresh: dict[str, Any] = {"source_hash": source_hash(), "seed": seed, "done": 0, "records": 0, "seconds": 0.0}
    known = read_json(path) or {}
    is_same = all(known.get(name) == fresh[name] for name in ("source_hash", "seed"))
    return known if is_same else fresh | {"seen": {}}


def run(path: Path, given: argparse.Namespace) -> tuple[dict[str, Any], Seen]:
    """Compare all sequences that are left, and keep what is done."""
    known, seen = begin(path, given.seed), Seen()
    seen.add(known["seen"])
    waiting: list[Sequence] = []
    began, first = time.monotonic(), known["done"]
    with driver.start(driver.build()) as rust:
        for start in range(first, given.sequences, BATCH):
            drawn = [draw(given.seed, number, seen) for number in range(start, min(start + BATCH, given.sequences))]
            # The driver performs a batch while the next one is drawn.
            receive(rust, waiting) if waiting else None
            rust.send(b"".join(each.encode() for each in drawn))
            waiting = drawn
            known["records"] += sum(len(each.records) for each in drawn)
            if start % SAVED_EVERY == 0 and start > first:
                seconds = time.monotonic() - began
                sys.stderr.write(f"\r{start:,} of {given.sequences:,}, {(start - first) / seconds:.0f}/s   ")
                sys.stderr.flush()
                # The batch under way is not compared yet.
                receive(rust, waiting)
                waiting = []
                done = start + len(drawn)
                write_json(path, {**known, "done": done, "seconds": known["seconds"] + seconds, "seen": seen.to_json()})
        receive(rust, waiting) if waiting else None
    known |= {"done": given.sequences, "seconds": round(known["seconds"] + time.monotonic() - began, 1)}
    return known, seen


def summary(known: dict[str, Any], seen: Seen) -> dict[str, Any]:
    answers = seen.answers
    kinds = {
        "changed": sum(count for name, count in answers.items() if name.endswith(" changed")),
        "unchanged": sum(count for name, count in answers.items() if name.endswith(" unchanged")),
    }
    counts = {name: value for name, value in seen.to_json().items() if name != "answers"}
    return {
        "sequences": known["done"],
        "records": known["records"],
        "differences": 0,
        "seed": known["seed"],
        "seconds": known["seconds"],
        "sequences_per_second": round(known["done"] / max(known["seconds"], 0.1)),
        "answers": kinds | {"refused": answers.total() - sum(kinds.values())},
        **counts,
        "source_hash": known["source_hash"],
    }


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sequences", type=int, default=SEQUENCES)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--folder", type=Path, default=STATE / NAME)
    parser.add_argument("--show", type=int, metavar="NUMBER", help="print a sequence")
    given = parser.parse_args(arguments)
    if given.show is not None:
        print("\n".join(show(record) for record in draw(given.seed, given.show).records))
        return 0
    path = given.folder / "state.json"
    try:
        known, seen = run(path, given)
    except Difference as difference:
        print(f"\nerror: {difference}", file=sys.stderr)
        return 1
    missing = seen.missing(NAMES)
    for each in missing:
        print(f"error: never reached: {each}", file=sys.stderr)
    found = summary(known, seen)
    shown = ("sequences", "records", "differences", "seconds", "sequences_per_second", "answers")
    print("\n" + ", ".join(f"{name} {found[name]}" for name in shown))
    if not missing and given.sequences == SEQUENCES:
        write_proof(NAME, found, seen.to_json())
    path.unlink(missing_ok=True)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
