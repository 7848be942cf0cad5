"""`make proof-mutants`: one-line mutants of the Rust engine, drawn at random, against verifier, corpus and tests.

Mutants are drawn by a seed and woven into a copy of the Rust sources; one build carries all of them. Each is tried by
the verifier alone, on nodes and random programs in the order of `vesper verify --seconds`, and its time is that of the
plain command on two processors. Those that are left get the corpus and the tests of the engine. What is done is kept
under `.proofs/`; the same command goes on where it was stopped, unless the sources have changed since. A whole run that
meets its bars writes `docs/proofs/mutants.json`.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from itertools import accumulate
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[4]
if "--inside" not in sys.argv:  # there PYTHONPATH names the copy of the package, and then this folder
    sys.path.insert(0, str(ROOT))

from tests.proofs.faults.weave import RUNTIME  # noqa: E402  # after the path is set
from tests.proofs.mutants import planted  # noqa: E402  # after the path is set
from tests.proofs.mutants.drawn import report  # noqa: E402  # after the path is set
from tests.proofs.mutants.drawn.draw import draw, shares  # noqa: E402  # after the path is set
from tests.proofs.mutants.drawn.state import NAME, PACKAGE, WORK, Campaign  # noqa: E402  # after the path is set
from tests.proofs.mutants.drawn.weaving import (  # noqa: E402  # after the path is set
    MAX_ROUNDS,
    refused_mutants,
    weave_mutants,
)
from tests.proofs.robustness.proof import (  # noqa: E402  # after the path is set
    hash_of,
    read_json,
    rust_sources,
    write_json,
    write_proof,
)

COUNT = 300
OVERSAMPLING = 2.3
"""Mutants are woven for each one that is wanted: a third to a half of them are no Rust."""
SEED = 20_261_117
FIRST_SECONDS = 60.0
SECONDS = 600.0
PROCESSORS = 2
"""Of the plain command, whose time is counted."""
CHUNKS_AT_ONCE = 74


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=COUNT, help="how many are drawn")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="time of the plain command for each")
    parser.add_argument("--stages", default="verify,corpus,tests", help="which of these")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--report", action="store_true", help="only write the survivors that are known")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.inside:
        signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
        sys.exit(campaign(asked))
    prepare(asked)
    environment = {**os.environ, "PYTHONPATH": f"{PACKAGE}{os.pathsep}{ROOT}", "PYTHONHASHSEED": "0"}
    # In the place of this process: who stops it stops the campaign, and not only what waits for it.
    os.execve(sys.executable, [sys.executable, __file__, "--inside", *sys.argv[1:]], environment)


# -- the build ------------------------------------------------------------------------------------


def drawn_hash() -> str:
    """Changes with the Rust sources and with what draws from them."""
    own = [Path(__file__).with_name(name) for name in ("changes.py", "draw.py", "tokens.py")]
    return hash_of([*rust_sources(), *own])


def prepare(asked: argparse.Namespace) -> None:
    """Draw, weave and build; which mutants compile is kept."""
    file = WORK / "woven.json"
    identity = {"drawn_hash": drawn_hash(), "seed": asked.seed, "count": asked.count}
    known = read_json(file) or {}
    by_crate, lines = draw(RUNTIME / "crates", asked.seed)
    # A smaller count takes the first ones of the same build.
    most = shares(lines, max(asked.count, COUNT))
    woven = [each for crate, found in by_crate.items() for each in found[: int(most[crate] * OVERSAMPLING)]]
    dropped: set[str] = set(known.get("dropped", [])) if known.get("seed") == asked.seed else set()
    for _ in range(MAX_ROUNDS):
        copy = weave_mutants(woven, dropped, WORK / "direct_runtime")
        refused, is_built = refused_mutants(copy, planted.build_command(copy.manifest))
        dropped |= refused
        print(f"{len(woven)} mutants woven, {len(dropped)} dropped by the compiler", flush=True)
        if is_built:
            break
    else:
        raise RuntimeError("the copy does not compile")
    planted.copy_package(PACKAGE)
    chosen = []
    for crate, share in shares(lines, asked.count).items():
        own = [each for each in woven if each.crate == crate and each.name not in dropped]
        if len(own) < share:
            raise RuntimeError(f"only {len(own)} of {share} mutants of {crate} compile: raise OVERSAMPLING")
        chosen += own[:share]
    kept = [asdict(each) for each in chosen]
    write_json(file, {**identity, "dropped": sorted(dropped), "woven": len(woven), "mutants": kept})


def campaign(asked: argparse.Namespace) -> int:
    from vesper import _direct

    assert Path(_direct.__file__).is_relative_to(PACKAGE), "another build than that with the mutants was loaded"
    one = Campaign.opened(asked.processes)
    stages = [] if asked.report else asked.stages.split(",")
    if "verify" in stages:
        verify(one, min(FIRST_SECONDS, asked.seconds), asked.seed)
    if "corpus" in stages:
        from tests.proofs.mutants.drawn.others import ask_corpus

        ask_corpus(one)
    if "tests" in stages:
        from tests.proofs.mutants.drawn.others import run_tests

        run_tests(one)
    if "verify" in stages and asked.seconds > FIRST_SECONDS:
        verify(one, asked.seconds, asked.seed)
    one.keep()
    return conclude(one, len(stages) == 3 and asked.seconds >= SECONDS and asked.count >= COUNT)


def conclude(one: Campaign, is_whole: bool) -> int:
    equivalent = report.equivalent_mutants()
    figures = report.figures(one.mutants, one.results, equivalent)
    wrong = [f"without a fault: {each}" for each in one.state["control"]]
    wrong += report.problems(one.mutants, one.results, equivalent)
    proof = {
        "source_hash": planted.source_hash(),
        **one.state["identity"],
        **figures,
        "elapsed_seconds": one.state["elapsed_seconds"],
    }
    if is_whole and not wrong:
        write_proof(NAME, proof, {**proof, "results": one.results})
    print(json.dumps(proof, indent=2))
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


# -- nodes and programs alone ---------------------------------------------------------------------


def verify(one: Campaign, seconds: float, seed: int) -> None:
    """Try those that are alive on batches of chunks, until the plain command would have taken so long."""
    from tests.proofs.mutants.drawn.recording import Chunk
    from tests.proofs.mutants.drawn.trials import measure_control

    folder = chunk_folder(seed)
    with recorder(folder, seed, PROCESSORS * seconds) as process:
        number = 0
        while number == 0 or one.state["batches"][number - 1] < seconds:
            before = one.state["batches"][number - 1] if number else 0.0
            waiting = [name for name in one.alive("verify") if one.of(name)["verified_batches"] <= number]
            if not waiting and number < len(one.state["batches"]):
                number += 1
                continue
            batch: list[Chunk] = take_batch(folder, number, process)
            one.state["control"] = sorted({*one.state["control"], *measure_control(batch)})
            costs = [(each.reference_seconds + each.engine_seconds) / PROCESSORS for each in batch]
            ends = list(accumulate(costs, initial=before))[1:]
            one.state["batches"][number:] = [ends[-1]]
            try_batch(one, number, batch, ends, waiting)
            print(f"the plain command would have taken {ends[-1]:.1f} s", flush=True)
            number += 1


def try_batch(one: Campaign, number: int, batch: Sequence[Any], ends: list[float], waiting: list[str]) -> None:
    from tests.proofs.mutants.drawn import trials

    reached = frozenset[str]().union(*(each.reached for each in batch))
    patience = trials.WAIT_SECONDS + 3 * trials.SLOWER * sum(each.engine_seconds for each in batch)

    def begin(name: str) -> trials.Trial:
        return trials.start_trial(name, trials.try_chunks, (name, batch), patience)

    def keep(name: str, found: tuple[int, str] | None) -> None:
        result = one.of(name)
        result["is_reached"] = True
        if found is not None:
            place, what = found
            result["verify"] = {"seconds": round(ends[place], 2), "chunk": batch[place].label, "what": what}
        else:
            result |= {"verified_batches": number + 1, "verified_seconds": round(ends[-1], 2)}
        one.keep_sometimes()

    for name in waiting:
        if name not in reached:
            one.of(name).update({"verified_batches": number + 1, "verified_seconds": round(ends[-1], 2)})
    trials.run_trials([name for name in waiting if name in reached], begin, one.processes, keep)
    one.keep()


def chunk_folder(seed: int) -> Path:
    """Return the folder of the chunks of these Python sources; remove those of others."""
    folder = WORK / "chunks" / f"{planted.python_hash()[:12]}-{seed}"
    for path in (WORK / "chunks").glob("*"):
        if path != folder:
            shutil.rmtree(path)
    return folder


@contextmanager
def recorder(folder: Path, seed: int, seconds: float) -> Iterator[ForkProcess]:
    """Run the reference in a process of its own: here the Rust engine must have computed nothing."""
    from tests.proofs.mutants.drawn.recording import write_chunks

    def write() -> None:
        planted.die_with_parent()
        os.nice(5)
        write_chunks(folder, seed, seconds)

    process = multiprocessing.get_context("fork").Process(target=write)
    process.start()
    try:
        yield process
    finally:
        process.kill()
        process.join()


def take_batch(folder: Path, number: int, process: ForkProcess) -> list[Any]:
    """Wait for the chunks of a batch; the last one is shorter."""
    from tests.proofs.mutants.drawn.recording import read_chunk

    batch: list[Any] = []
    for place in range(number * CHUNKS_AT_ONCE, (number + 1) * CHUNKS_AT_ONCE):
        while (chunk := read_chunk(folder, place)) is None:
            if not process.is_alive() and read_chunk(folder, place) is None:
                assert batch, "the recorder has ended too soon"
                return batch
            time.sleep(0.1)
        batch.append(chunk)
    return batch


if __name__ == "__main__":
    main()
