"""`make proof-faults`: every planted fault of the Rust engine, one at a time, against the corpus and the verifier.

The faults are woven into a copy of the Rust sources (`tests/proofs/faults`); the extension is built from that copy into
a folder of its own, beside a copy of the package. The working tree stays as it is. What the python engine answers is
computed once; then each fault gets a process of its own, in which it alone is selected. It is noticed by the first
question of the corpus that is answered otherwise; one that no question notices is left to the verifier, for a minute.
Before them both stages run without a fault, and must notice nothing. What is done is kept under `.proofs/`; the same
command goes on where it was stopped, unless the sources have changed since. A whole run writes
`docs/proofs/faults.json`.
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import json
import multiprocessing
import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).parents[3]
if "--inside" not in sys.argv:  # there PYTHONPATH names the copy of the package, and then this folder
    sys.path.insert(0, str(ROOT))

from tests.proofs.faults.weave import weave  # noqa: E402  # after the path is set
from tests.proofs.robustness.proof import (  # noqa: E402  # after the path is set
    LANGUAGE,
    STATE,
    hash_of,
    read_json,
    rust_sources,
    write_json,
    write_proof,
)

if TYPE_CHECKING:
    from tests.proofs.mutants.corpus import Answer, Question

NAME = "faults"
WORK = STATE / NAME
PACKAGE = WORK / "package"
TARGET = WORK / "target"
"""Shared with the campaign of drawn mutants, which has the same dependencies."""
EXPLAINED = Path(__file__).parent / "planted.toml"
SEED = 20_261_115
VERIFY_SECONDS = 60
CORPUS_SECONDS = 180
"""A fault that makes the corpus take so long has been noticed, or so many times as long as it takes without a fault."""
TIMES_AS_LONG = 10
KEEP_EVERY_SECONDS = 20
KILLED_SHARE = 0.97
AROUND = (
    *("api", "batch", "cache", "cli", "config", "debug", "effects", "host", "journal", "migration", "observe"),
    *("policies", "queues", "repository", "sessions", "storage", "trace"),
)
"""What else of `vesper/` a run imports; a test compares."""

Result = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", nargs="*", metavar="NAME", help="these only, or those whose names begin so")
    parser.add_argument("--sample", type=int, metavar="COUNT", help="so many, drawn by the seed")
    parser.add_argument("--questions", default="", metavar="PREFIX", help="only the questions whose names begin so")
    parser.add_argument("--seconds", type=float, default=VERIFY_SECONDS, help="how long the verifier has for each")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument(
        "--quick", action="store_true", help="compare with the Rust engine without a fault, which takes seconds"
    )
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.inside:
        # Like an interrupt from the keyboard: the processes of faults are ended too.
        signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
        sys.exit(campaign(asked))
    build()
    environment = {**os.environ, "PYTHONPATH": f"{PACKAGE}{os.pathsep}{ROOT}", "PYTHONHASHSEED": "0"}
    # In the place of this process: who stops it stops the campaign, and not only what waits for it.
    os.execve(sys.executable, [sys.executable, __file__, "--inside", *sys.argv[1:]], environment)


# -- the build ------------------------------------------------------------------------------------


def build() -> None:
    """Build the extension with the planted faults in it, in a copy of the package."""
    subprocess.run(build_command(weave()), env=build_environment(), check=True)
    copy_package(PACKAGE)


def build_command(manifest: Path) -> list[str]:
    """Return the command that builds the extension of a workspace."""
    command = ["cargo", "build", "--quiet", "--locked", "--profile", "faults", "--package", "vesper-py"]
    return [*command, "--manifest-path", str(manifest), "--target-dir", str(TARGET)]


def copy_package(package: Path) -> None:
    """Copy the package, with the extension that was built last."""
    shutil.rmtree(package, ignore_errors=True)
    shutil.copytree(ROOT / "vesper", package / "vesper", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    shutil.copy(TARGET / "faults" / "lib_direct.so", package / "vesper" / f"_direct{suffix}")


def build_environment() -> dict[str, str]:
    """Return an environment for cargo. The extension is loaded by Python; PyO3 asks the one that runs this."""
    return {**os.environ, "PYO3_BUILD_EXTENSION_MODULE": "1", "PYO3_PYTHON": sys.executable}


def source_hash() -> str:
    """Changes with every change of what is tested and of what it is tested with.

    Kept inputs are compared in every way of `vesper verify`, which imports most of `vesper/`.
    """
    asked = dict.fromkeys(
        ("tests/proofs/mutants", "tests/proofs/faults", "tests/conformance", "tests/unit/engines", "tests/support"), "*"
    )
    of_folders = hashed({**python_packages(), "nodes": "*.vsp", "schemas": "*.toml", **asked})
    return hashlib.sha256(f"{of_folders}\n{hash_of(rust_sources())}".encode()).hexdigest()


def python_packages() -> dict[str, str]:
    return dict.fromkeys((f"vesper/{name}" for name in (*LANGUAGE, *AROUND)), "*.py")


def hashed(folders: Mapping[str, str]) -> str:
    digest = hashlib.sha256()
    for folder, pattern in folders.items():
        for path in sorted((ROOT / folder).rglob(pattern)):
            parts = path.relative_to(ROOT).parts
            # Not the explanations: they change nothing that is measured.
            if path.is_file() and path != EXPLAINED and "target" not in parts and "__pycache__" not in parts:
                digest.update(f"{'/'.join(parts)}\n{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


# -- one fault, in a process of its own -----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Task:
    questions: list[Question]
    reference: list[Answer]
    seconds: float
    seed: int


def examine(fault: str | None, task: Task, answer_to: Connection) -> None:
    """Says what notices the fault, and after how much; two messages where the corpus does not."""
    from vesper import _direct

    die_with_parent()
    if fault is not None:
        _direct.select_fault(fault)  # type: ignore[attr-defined]  # of this build alone
    begun = time.monotonic()
    found = ask_corpus(task)
    answer_to.send({**found, "seconds": round(time.monotonic() - begun, 2)})
    if found["by"] is None and task.seconds > 0:
        begun = time.monotonic()
        found = verify(task, begun + task.seconds)
        answer_to.send({**found, "seconds": round(time.monotonic() - begun, 2)})
    answer_to.close()


def die_with_parent() -> None:
    """So that a campaign that is killed leaves nothing running: the fault may be one that never ends."""
    if sys.platform == "linux":
        set_parent_death_signal = 1  # PR_SET_PDEATHSIG of prctl(2)
        if ctypes.CDLL(None, use_errno=True).prctl(set_parent_death_signal, signal.SIGKILL, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl")


def ask_corpus(task: Task) -> Result:
    """The interpreter is asked, and then machine code: a fault of the compiler shows in that alone."""
    from tests.proofs.mutants.corpus import answer, is_same, kept
    from vesper.engines.direct_engine import DirectEngine
    from vesper.engines.tiering import ALWAYS

    loads = {"": kept(DirectEngine().load), "on jit: ": kept(DirectEngine(ALWAYS).load)}
    for number, (question, expected) in enumerate(zip(task.questions, task.reference, strict=True), start=1):
        for engine, load in loads.items():
            if not is_same(expected, answer(question, load)):
                return {"by": "corpus", "what": engine + question.name, "executions": number}
    return {"by": None, "executions": len(task.questions)}


def verify(task: Task, until: float) -> Result:
    """What `vesper verify` does with nodes and with random programs, by turns, until the time is over."""
    from vesper.verify.differential.forms import COMPARED
    from vesper.verify.differential.verifier import Verifier
    from vesper.verify.programs.campaign import verify_programs

    engines = COMPARED
    nodes = list(
        {id(each.compiled): each.compiled for each in task.questions if each.name.startswith("case ")}.values()
    )
    chance = random.Random(task.seed)
    executions = 0
    while time.monotonic() < until:
        seed = chance.randrange(10**9)
        programs = verify_programs(engines, 3, seed, stop_after=1, max_tries=0)
        executions += programs.executions
        if programs.failures:
            return {"by": "verify", "what": f"random program {programs.failures[0].seed}", "executions": executions}
        if not nodes:
            continue
        node = chance.choice(nodes)
        report = Verifier(node, engines, seed).run(60, stop_after=1)
        executions += report.executions
        if report.differences or report.case_failures:
            return {"by": "verify", "what": f"node {node.node.node_id}, seed {seed}", "executions": executions}
    return {"by": None, "executions": executions}


# -- all of them ----------------------------------------------------------------------------------


@dataclass(slots=True)
class Running:
    fault: str | None
    process: ForkProcess
    answers: Connection
    begun: float
    patience: float
    """How long the corpus may take."""
    results: list[Result]

    def take(self) -> None:
        try:
            while self.answers.poll():
                self.results.append(self.answers.recv())
        except EOFError:
            pass  # its process is gone, which `is_over` sees

    def is_over(self, seconds: float) -> bool:
        """True when it has ended, or takes longer than anything without a fault does."""
        patience = self.patience + (3 * seconds + CORPUS_SECONDS if self.results else 0)
        return not self.process.is_alive() or time.monotonic() - self.begun > patience

    def result(self) -> Result:
        self.process.kill()
        self.process.join()
        self.take()
        last = self.results[-1] if self.results else {"by": None, "executions": 0, "seconds": 0.0}
        if last["by"] is None and self.process.exitcode != 0:
            how = "did not end in time" if self.process.exitcode == -9 else f"ended with {self.process.exitcode}"
            by = "verify" if self.results else "corpus"
            return {**last, "by": by, "what": f"its process {how}"}
        return last


def start(fault: str | None, task: Task, patience: float) -> Running:
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=examine, args=(fault, task, sender))
    process.start()
    sender.close()
    return Running(fault, process, receiver, time.monotonic(), patience, [])


def campaign(asked: argparse.Namespace) -> int:
    from vesper import _direct

    assert Path(_direct.__file__).is_relative_to(PACKAGE), "another build than that with the faults was loaded"
    known: dict[str, str] = dict(_direct.faults())  # type: ignore[attr-defined]  # of this build alone
    chosen = [name for name in known if not asked.faults or name.startswith(tuple(asked.faults))]
    if asked.sample is not None:
        chosen = sorted(random.Random(asked.seed).sample(chosen, min(asked.sample, len(chosen))))
    is_whole = len(chosen) == len(known) and not (asked.questions or asked.quick) and asked.seconds >= VERIFY_SECONDS
    # A look at a part must not throw away what a whole campaign has so far.
    is_part = asked.questions or asked.quick or asked.seed != SEED
    state_file = WORK / ("state-part.json" if is_part else "state.json")
    identity = {"source_hash": source_hash(), "seed": asked.seed, "questions": asked.questions, "quick": asked.quick}
    state = read_json(state_file) or {}
    if state.get("identity") != identity:
        state = {"identity": identity, "elapsed_seconds": 0.0, "results": {}}
    results: dict[str, Result] = state["results"]
    # One that survived a shorter look gets a longer one.
    waiting = [name for name in chosen if name not in results or _may_be_noticed(results[name], asked.seconds)]
    begun, before = time.monotonic(), state["elapsed_seconds"]
    if waiting:
        task = prepared(asked)
        started = time.monotonic()
        control = settled([None], task, 1, float("inf"), lambda _, __: None)[None]
        if control["by"] is not None:
            found = f"{control['what']} ({control['by']})"
            print(f"without a fault the engines differ: {found}; repair that first", file=sys.stderr)
            return 1
        took = time.monotonic() - started - (control["seconds"] if asked.seconds > 0 else 0)
        print(f"without a fault nothing is noticed; {len(task.questions)} questions take {took:.1f} s", flush=True)

        def keep(name: str | None, result: Result) -> None:
            assert name is not None
            results[name] = result if result["by"] is not None else {**result, "looked_for_seconds": asked.seconds}
            state["elapsed_seconds"] = round(before + time.monotonic() - begun, 1)
            write_json(state_file, state)
            print(f"{len(results):4} {name}: {result['by'] or 'SURVIVES'} {result.get('what', '')}", flush=True)

        settled(list(waiting), task, asked.processes, max(CORPUS_SECONDS, TIMES_AS_LONG * took), keep)
    return report(state, {name: known[name] for name in chosen}, is_whole)


def _may_be_noticed(result: Result, seconds: float) -> bool:
    return result["by"] is None and bool(result["looked_for_seconds"] < seconds)


def prepared(asked: argparse.Namespace) -> Task:
    """The questions, and what the python engine answers. Nothing is asked of the Rust engine in this process: what it
    computes once and keeps would be inherited without the fault."""
    from tests.proofs.mutants.corpus import answer, kept, questions
    from vesper.engines.python_engine import PythonEngine

    asking = [each for each in questions() if each.name.startswith(asked.questions)]
    if asked.quick:
        return Task(asking, answers_without_fault(asking), asked.seconds, asked.seed)
    load = kept(PythonEngine().load)
    file = WORK / "reference.pickle"
    made_from = python_hash()  # once: a file that is changed meanwhile is not what answers
    known = read_answers(file, made_from)
    keys = [each.key() for each in asking]
    kept_at = time.monotonic()
    for number, (key, each) in enumerate(zip(keys, asking, strict=True)):
        if key not in known:
            known[key] = answer(each, load)
        if time.monotonic() - kept_at > KEEP_EVERY_SECONDS:
            write_answers(file, made_from, known)
            kept_at = time.monotonic()
        if sys.stderr.isatty():
            print(f"\r{number + 1} of {len(asking)} answered by the python engine", end="", file=sys.stderr, flush=True)
    write_answers(file, made_from, known)
    reference = [known[key] for key in keys]
    return Task(asking, reference, asked.seconds, asked.seed)


def answers_without_fault(asking: list[Question]) -> list[Answer]:
    """What the Rust engine answers while no fault is selected, from a process of its own."""
    from tests.proofs.mutants.corpus import answer, kept
    from vesper.engines.direct_engine import DirectEngine

    def tell(sender: Connection) -> None:
        load = kept(DirectEngine().load)
        sender.send([answer(each, load) for each in asking])
        sender.close()

    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=tell, args=(sender,))
    process.start()
    sender.close()
    answers: list[Answer] = receiver.recv()
    process.join()
    return answers


def read_answers(file: Path, made_from: str) -> dict[str, Answer]:
    """What the python engine of these sources has answered in an earlier run: it takes minutes, and does not change."""
    if not file.exists():
        return {}
    of, known = pickle.loads(file.read_bytes())  # written by this program, in its own folder
    return known if of == made_from else {}


def write_answers(file: Path, made_from: str, known: dict[str, Answer]) -> None:
    """As a whole: who stops the campaign in between leaves the old ones."""
    scratch = file.with_suffix(".new")
    scratch.write_bytes(pickle.dumps((made_from, known)))
    scratch.replace(file)


def python_hash() -> str:
    return hashed(python_packages())


def settled(
    faults: list[str | None], task: Task, processes: int, patience: float, keep: Callable[[str | None, Result], None]
) -> dict[str | None, Result]:
    results: dict[str | None, Result] = {}
    running: list[Running] = []
    try:
        while faults or running:
            while faults and len(running) < processes:
                running.append(start(faults.pop(0), task, patience))
            time.sleep(0.02)
            for each in running:
                each.take()
            for each in [each for each in running if each.is_over(task.seconds)]:
                running.remove(each)
                results[each.fault] = each.result()
                keep(each.fault, results[each.fault])
    finally:
        for each in running:
            each.process.kill()
            each.process.join()
    return results


def digest_of_names(names: Iterable[str]) -> str:
    """Return a hash of the names of faults: the committed summary does not list them."""
    return hashlib.sha256("\n".join(sorted(names)).encode()).hexdigest()


def report(state: Result, known: Mapping[str, str], is_whole: bool) -> int:
    results = {name: state["results"][name] for name in known}
    explained = tomllib.loads(EXPLAINED.read_text(encoding="utf-8"))
    equivalent: dict[str, str] = explained["equivalent"]
    survivors = [name for name, result in results.items() if result["by"] is None]
    real = [name for name in results if name not in equivalent]
    killed = [name for name in real if results[name]["by"] is not None]
    reasons: dict[str, str] = explained["survives"]
    wrong = [
        f"{name} is listed in {EXPLAINED.name} and was noticed: take it out"
        for name in {**equivalent, **reasons}
        if name in results and name not in survivors
    ]
    wrong += [f"{name} survives without an explanation" for name in survivors if name not in {**equivalent, **reasons}]
    share = len(killed) / len(real) if real else 1.0
    if share < KILLED_SHARE:
        wrong.append(f"{share:.1%} are noticed, and {KILLED_SHARE:.0%} should be")
    proof = {
        **state["identity"],
        "faults": len(results),
        "faults_digest": digest_of_names(results),
        "kinds": dict(sorted(Counter(known.values()).items())),
        "places": dict(sorted(Counter(name.partition(".")[0] for name in known).items())),
        "equivalent": {name: equivalent[name] for name in survivors if name in equivalent},
        "not_equivalent": len(real),
        "killed": len(killed),
        "killed_by_corpus": sum(results[name]["by"] == "corpus" for name in killed),
        "killed_by_verify": sum(results[name]["by"] == "verify" for name in killed),
        "share": round(share, 4),
        "survivors": {name: reasons.get(name, "") for name in survivors if name not in equivalent},
        "elapsed_seconds": state["elapsed_seconds"],
    }
    if is_whole and not wrong:
        write_proof(NAME, proof, {**proof, "results": results})
    print(json.dumps(proof, indent=2))
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    main()
