"""PyPy, where it is installed: the plain functions in a process of its own, timed in turns with the same on CPython."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.bench.peers.built import FUNCTIONS
from tests.bench.peers.present import NotHere
from tests.bench.workloads import WORKLOADS, Wrong

WARM_SECONDS = 1.5


def _marked(value: Any) -> Any:
    match value:
        case Decimal():
            return f"={value}"
        case dict():
            return {name: _marked(each) for name, each in value.items()}
        case list():
            return [_marked(each) for each in value]
        case _:
            return value


def measured(rounds: int, seconds: float = 0.05) -> tuple[str, dict[str, tuple[float, float]]]:
    """Its name, and seconds a call by workload: on PyPy, and of the same function here. Raises `NotHere`, `Wrong`."""
    executable = os.environ.get("PYPY") or shutil.which("pypy3") or shutil.which("pypy")
    if executable is None:
        raise NotHere("PyPy is not installed (Debian: apt-get install pypy3; or PYPY=/path/to/pypy3)")
    worker = Path(__file__).with_name("pypy_worker.py")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with subprocess.Popen(
        [executable, str(worker)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def asked(line: str) -> Any:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(line + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
            if not answer:
                raise NotHere(f"{executable} ended: what it said stands above")
            return json.loads(answer)

        inputs = {FUNCTIONS[title]: workload.inputs for title, workload in WORKLOADS.items()}
        told = asked(json.dumps(_marked(inputs)))
        for title, workload in WORKLOADS.items():
            expected = [repr(workload.reference(each)) for each in workload.inputs]
            if told["answers"][FUNCTIONS[title]] != expected:
                raise Wrong(f"PyPy comes to something else on {title}")
        found = {}
        for title, workload in WORKLOADS.items():
            name = FUNCTIONS[title]
            asked(f"{name} {WARM_SECONDS}")
            there, here = [], []
            for _ in range(rounds):
                there.append(float(asked(f"{name} {seconds}")))
                here.append(_here(workload.reference, workload.inputs, seconds))
            found[title] = (min(there), min(here))
        process.stdin.close()
    return f"plain Python on PyPy ({told['version']})", found


def _here(function: Any, inputs: list[dict[str, Any]], seconds: float) -> float:
    calls, begun = 0, time.perf_counter()
    while True:
        for each in inputs:
            function(each)
        calls += len(inputs)
        taken = time.perf_counter() - begun
        if taken >= seconds:
            return taken / calls
