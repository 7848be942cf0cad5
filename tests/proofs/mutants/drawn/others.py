"""What is asked of mutants that nodes and programs do not notice: the corpus, and the tests of the engine."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tests.proofs.mutants import planted
from tests.proofs.mutants.drawn import trials
from tests.proofs.mutants.drawn.state import PACKAGE, WORK, Campaign
from tests.proofs.robustness.proof import ROOT

PYTHON_TESTS = (
    "tests/conformance tests/optimizer tests/unit/engines tests/unit/api tests/unit/batch tests/unit/verify "
    "tests/unit/migration tests/unit/journal tests/unit/trace tests/integration"
)
"""Parts of the suite that run the direct engine."""
TEST_SECONDS = 1200.0


# -- the corpus -----------------------------------------------------------------------------------


def ask_corpus(one: Campaign) -> None:
    """Put the questions of the corpus to every mutant that is alive."""
    waiting = [name for name in one.alive("verify", "corpus", "tests") if "asked_corpus" not in one.of(name)]
    if not waiting:
        return
    task = planted.prepared(argparse.Namespace(questions="", quick=False, seconds=0.0, seed=0))
    begun = time.monotonic()
    control = planted.settled([None], task, 1, float("inf"), lambda _, __: None)[None]
    taken = time.monotonic() - begun
    if control["by"] is not None:
        one.state["control"].append(f"corpus: {control['what']}")
        return
    print(f"the corpus takes {taken:.1f} s without a fault", flush=True)
    patience = trials.WAIT_SECONDS + 3 * trials.SLOWER * taken

    def begin(name: str) -> trials.Trial:
        return trials.start_trial(name, _ask, (name, task, taken), patience)

    def keep(name: str, found: tuple[int, str] | None) -> None:
        one.of(name)["asked_corpus"] = True
        if found is not None:
            one.of(name)["corpus"] = {"what": found[1]}
        print(f"corpus: {name} {found[1] if found else 'survives'}", flush=True)
        one.keep()

    trials.run_trials(waiting, begin, one.processes, keep)


def _ask(fault: str, task: planted.Task, seconds: float, _: Any, answer_to: Connection) -> None:
    from vesper import _direct

    planted.die_with_parent()
    trials.silence()
    trials.limit_memory()
    _direct.select_fault(fault)  # type: ignore[attr-defined]  # of this build alone
    trials.confine(trials.GRACE_SECONDS + trials.SLOWER * seconds)
    found = planted.ask_corpus(task)
    answer_to.send(None if found["by"] is None else (0, found["what"]))


# -- tests ----------------------------------------------------------------------------------------


def run_tests(one: Campaign) -> None:
    """Run the Rust tests and then the Python tests with every mutant that is alive."""
    waiting = [name for name in one.alive("verify", "corpus", "tests") if "tested" not in one.of(name)]
    if not waiting:
        return
    binaries = rust_tests()
    crates = {each.name: each.crate for each in one.mutants}
    failing = failing_tests()
    print(f"{len(failing)} Python tests fail in the copy without a fault and are left out", flush=True)

    def tried(name: str) -> str | None:
        ordered = sorted(binaries, key=lambda each: each[0] != crates[name])
        for crate, folder, binary in ordered:
            if not _passes([str(binary), "--quiet"], name, folder):
                return f"tests of {crate}: {binary.name.rpartition('-')[0]}"
        if not _passes([sys.executable, "-P", "-m", "tests.proofs.decimal_cases.run"], name):
            return "decimal cases"
        return None if _passes(pytest_command(failing), name) else "Python tests"

    with ThreadPoolExecutor(one.processes) as pool:
        futures = {pool.submit(tried, name): name for name in waiting}
        for future in as_completed(futures):
            name, found = futures[future], future.result()
            one.of(name)["tested"] = True
            if found is not None:
                one.of(name)["tests"] = {"what": found}
            print(f"tests: {name} {found or 'survives'}", flush=True)
            one.keep()


def rust_tests() -> list[tuple[str, Path, Path]]:
    """Build the tests of the woven crates; return crate, folder and binary of those that pass without a fault."""
    manifest = WORK / "direct_runtime" / "Cargo.toml"
    command = ["cargo", "test", "--quiet", "--locked", "--no-run", "--profile", "faults", "--workspace"]
    command += ["--exclude", "vesper-py", "--exclude", "vesper-sandbox", "--message-format", "json"]
    command += ["--manifest-path", str(manifest), "--target-dir", str(planted.TARGET)]
    built = subprocess.run(command, env=planted.build_environment(), capture_output=True, text=True, check=True)
    found = []
    for line in built.stdout.splitlines():
        message = json.loads(line)
        if message.get("executable") and message.get("profile", {}).get("test"):
            folder = Path(message["manifest_path"]).parent
            found.append((folder.name, folder, Path(message["executable"])))
    return [each for each in found if _passes([str(each[2]), "--quiet"], None, each[1])]


def failing_tests() -> list[str]:
    """Return the Python tests that fail in the copy of the package without a fault."""
    command = pytest_command([])
    command.remove("-x")
    done = subprocess.run(
        [*command, "--tb=no"], env=_environment(None), cwd=ROOT, capture_output=True, text=True, check=False
    )
    lines = done.stdout.splitlines()
    return [line.split()[1] for line in lines if line.startswith(("FAILED ", "ERROR "))]


def pytest_command(left_out: list[str]) -> list[str]:
    command = [sys.executable, "-P", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--tb=no"]
    # The option of the project would put the package without faults first.
    command += ["-o", f"pythonpath={shlex.quote(str(PACKAGE))} . schemas", *PYTHON_TESTS.split()]
    return [*command, *(f"--deselect={each}" for each in left_out)]


def _environment(fault: str | None) -> dict[str, str]:
    path = f"{PACKAGE}{os.pathsep}{ROOT}"
    environment = {**os.environ, "PYTHONPATH": path, "RUST_MIN_STACK": "8388608"}
    return environment if fault is None else {**environment, "VESPER_FAULT": fault}


def _passes(command: list[str], fault: str | None, folder: Path = ROOT) -> bool:
    try:
        done = subprocess.run(
            command,
            env=_environment(fault),
            cwd=folder,
            timeout=TEST_SECONDS,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=trials.limit_memory,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0
