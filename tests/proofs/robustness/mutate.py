"""`make proof-mutated-documents`: a hundred thousand damaged documents through the front end.

Documents are examined in processes of their own, some hundred in each, so that one that takes the interpreter down is
noticed and named. What is done is kept under `.proofs/`; the same command goes on where it was stopped, unless the
sources have changed since. A clean run writes `docs/proofs/mutated_documents.json`; one of fewer documents only prints.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

from tests.proofs.robustness.examine import MAX_SECONDS, SAMPLE_SECONDS, Tally  # noqa: E402  # after the path is set
from tests.proofs.robustness.mutations import document, node_texts  # noqa: E402
from tests.proofs.robustness.proof import PROOFS, STATE, read_json, source_hash, write_json  # noqa: E402

NAME = "mutated_documents"
DOCUMENTS = 100_000
SEED = 20_240_601
CHUNK = 500
MAX_MIB = 512
STUCK_SECONDS = 60


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=DOCUMENTS)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--show", type=int, metavar="NUMBER", help="write one document to standard output")
    parser.add_argument("--chunk", nargs=2, metavar=("FIRST", "PROGRESS"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.show is not None:
        sys.stdout.buffer.write(document(asked.seed, asked.show, node_texts()))
    elif asked.chunk is not None:
        examine_chunk(asked.seed, int(asked.chunk[0]), asked.documents, Path(asked.chunk[1]))
    else:
        sys.exit(campaign(asked.seed, asked.documents, asked.processes))


# -- one process ----------------------------------------------------------------------------------


def examine_chunk(seed: int, first: int, documents: int, progress: Path) -> None:
    """Examine the documents of a chunk and print what came of them. The parent reads from a file which one is next."""
    nodes = node_texts()
    tally = Tally(MAX_SECONDS if documents >= DOCUMENTS else SAMPLE_SECONDS)
    handle = os.open(progress, os.O_WRONLY)
    for number in range(first, min(first + CHUNK, documents)):
        os.pwrite(handle, struct.pack("<q", number), 0)
        tally.examine(number, document(seed, number, nodes))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    if peak > MAX_MIB:
        tally.failures.append({"number": first, "problem": f"this chunk took {peak} MiB"})
    json.dump(
        {
            "accepted": tally.accepted,
            "rejected": tally.rejected,
            "worst_seconds": round(tally.worst_seconds, 3),
            "worst_number": tally.worst_number,
            "peak_mib": peak,
            "failures": tally.failures,
        },
        sys.stdout,
    )


@dataclass
class Running:
    first: int
    process: subprocess.Popen[bytes]
    output: IO[bytes]
    progress: Path
    last_number: int = -1
    last_change: float = 0.0

    def number(self) -> int:
        return int(struct.unpack("<q", self.progress.read_bytes())[0])

    def is_stuck(self) -> bool:
        number, now = self.number(), time.monotonic()
        if number != self.last_number:
            self.last_number, self.last_change = number, now
        return now - self.last_change > STUCK_SECONDS


def start(seed: int, first: int, documents: int, folder: Path) -> Running:
    progress = folder / f"{first}.progress"
    progress.write_bytes(struct.pack("<q", first))
    output = tempfile.TemporaryFile()  # noqa: SIM115  # `result` closes it
    options = ["--seed", str(seed), "--documents", str(documents), "--chunk", str(first), str(progress)]
    process = subprocess.Popen([sys.executable, __file__, *options], stdout=output)
    return Running(first, process, output, progress, -1, time.monotonic())


def result(running: Running) -> dict[str, Any]:
    """What a finished chunk printed, or a failure that names the document that ended its process."""
    with running.output as output:
        output.seek(0)
        text = output.read()
    number = running.number()
    running.progress.unlink()
    if running.process.returncode == 0:
        found: dict[str, Any] = json.loads(text)
        return found
    problem = f"its process ended with {running.process.returncode}"
    failures = [{"number": number, "problem": problem}]
    empty = {"accepted": 0, "rejected": {}, "worst_seconds": 0.0, "worst_number": -1, "peak_mib": 0}
    return {**empty, "failures": failures}


# -- all of them ----------------------------------------------------------------------------------


def campaign(seed: int, documents: int, processes: int) -> int:
    state_file = STATE / f"{NAME}.json"
    sources = source_hash()
    state = read_json(state_file) or {}
    if (state.get("source_hash"), state.get("seed"), state.get("documents")) != (sources, seed, documents):
        state = {"source_hash": sources, "seed": seed, "documents": documents, "elapsed_seconds": 0.0, "chunks": {}}
    chunks: dict[str, dict[str, Any]] = state["chunks"]
    waiting = [first for first in range(0, documents, CHUNK) if str(first) not in chunks]
    running: list[Running] = []
    begun, before = time.monotonic(), state["elapsed_seconds"]
    with tempfile.TemporaryDirectory() as folder:
        try:
            while waiting or running:
                while waiting and len(running) < processes:
                    running.append(start(seed, waiting.pop(0), documents, Path(folder)))
                time.sleep(0.05)
                for each in [each for each in running if each.process.poll() is not None or each.is_stuck()]:
                    each.process.kill()
                    each.process.wait()
                    running.remove(each)
                    chunks[str(each.first)] = result(each)
                    state["elapsed_seconds"] = round(before + time.monotonic() - begun, 1)
                    write_json(state_file, state)
                    show_progress(chunks, documents)
        finally:
            for each in running:
                each.process.kill()
                each.process.wait()
    if sys.stderr.isatty():
        print(file=sys.stderr)
    return report(state, state_file)


def show_progress(chunks: dict[str, dict[str, Any]], documents: int) -> None:
    if sys.stderr.isatty():
        share = min(1.0, len(chunks) * CHUNK / documents)
        failures = sum(len(chunk["failures"]) for chunk in chunks.values())
        bar = "#" * round(share * 40)
        print(f"\r[{bar:<40}] {share:4.0%}, {failures} failures", end="", file=sys.stderr, flush=True)


def report(state: dict[str, Any], state_file: Path) -> int:
    chunks = list(state["chunks"].values())
    failures = [failure for chunk in chunks for failure in chunk["failures"]]
    if failures:
        for failure in failures[:20]:
            print(f"document {failure['number']}: {failure['problem'].strip()}", file=sys.stderr)
        show = f"{Path(__file__).relative_to(ROOT)} --seed {state['seed']} --show NUMBER"
        print(f"{len(failures)} failures; `python {show}` writes a document", file=sys.stderr)
        state_file.unlink()  # what failed is to be examined again
        return 1
    rejected: Counter[str] = Counter()
    for chunk in chunks:
        rejected.update(chunk["rejected"])
    proof = {
        "source_hash": state["source_hash"],
        "seed": state["seed"],
        "documents": state["documents"],
        "accepted": sum(chunk["accepted"] for chunk in chunks),
        "rejected": dict(sorted(rejected.items())),
        "limit_seconds": MAX_SECONDS,
        "worst_seconds": max(chunk["worst_seconds"] for chunk in chunks),
        "limit_mib": MAX_MIB,
        "peak_mib": max(chunk["peak_mib"] for chunk in chunks),
        "elapsed_seconds": state["elapsed_seconds"],
    }
    if state["documents"] >= DOCUMENTS:
        write_json(PROOFS / f"{NAME}.json", proof)
    print(json.dumps(proof, indent=2))
    return 0


if __name__ == "__main__":
    main()
