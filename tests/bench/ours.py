"""Vesper among the contestants: its engines by `node.call`, the direct engine as live traffic reaches it, JSON, traces.

`direct_only` is `node.call` of a node that was moved over (`engine="auto"`), with every path proven and no call taken
as a sample: what a call costs that nobody looks at. The sample of 1 % runs in another thread (`make bench-routing`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import vesper
from tests.bench.workloads import ROOT, WORKLOADS, Contestant, Function, Workload
from vesper.cli.bench.rounds import Timing, Way, timing_of
from vesper.compiler import Compiled, compile_file
from vesper.config.settings import config_from
from vesper.engines.direct_engine import DirectEngine
from vesper.engines.registry import ENGINES
from vesper.migration.control.modes import Mode
from vesper.migration.router.routes import Routes

DIRECT_ONLY = "Vesper, direct_only"
KEY = b"k" * 16
WARM_SECONDS = 0.3
_PROBED = 600
"""The first calls of a path are looked at closely, whatever the mode."""


def compiled_of(workload: Workload) -> Compiled:
    compiled, bag = compile_file(workload.file)
    assert compiled is not None, bag.sorted()
    return compiled


def name_of(engine: str) -> str:
    return f"Vesper, engine {engine}"


def fastest_engine() -> str:
    return "jit" if "jit" in ENGINES else DirectEngine.name


def on_engines() -> list[Contestant]:
    found = []
    for title, workload in WORKLOADS.items():
        numbers = "native" if title == "W3" else "decimal"
        for engine in ENGINES:
            call = vesper.load(workload.file, engine=engine).call
            found.append(Contestant(name_of(engine), title, call, numbers=numbers, is_ours=True))
    return found


@contextmanager
def moved_over() -> Iterator[dict[str, Contestant]]:
    """Every workload in the mode direct_only, by its title."""
    state = ROOT / ".vesper"
    state.mkdir(exist_ok=True)
    os.environ["PYTHONPATH"] = str(ROOT)  # for the process that follows calls
    with tempfile.TemporaryDirectory(dir=state) as folder:
        routes = Routes(config_from({"migration": {"refresh": "10s"}}, Path(folder)))
        try:
            yield {
                title: Contestant(
                    DIRECT_ONLY, title, _routed(workload, routes), is_ours=True,
                    numbers="native" if title == "W3" else "decimal",
                )
                for title, workload in WORKLOADS.items()
            }  # fmt: skip
        finally:
            routes.close()


def _routed(workload: Workload, routes: Routes) -> Function:
    compiled = compiled_of(workload)
    direct = DirectEngine().load(compiled)
    program = routes.program(compiled)
    call: Function = vesper.load(workload.file, engine="auto", routes=routes).call
    way_in = program._way_in
    assert way_in is not None
    program.live.listeners.clear()  # the mode is what is set here, whatever comes of the traffic
    paths = sorted({direct.call_pathed(each, KEY).path for each in workload.inputs})
    way_in._route.set(Mode.DIRECT_ONLY.level, paths, KEY, 0.0)
    way_in._route.admit(1.0)
    for turn in range(_PROBED):
        call(workload.inputs[turn % len(workload.inputs)])
    way_in.wait(5)
    way_in.drain()
    return call


def warm(way: Way, seconds: float = WARM_SECONDS) -> None:
    """Calls for a while: what compiles itself while it runs has done so then."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        for each in way.inputs:
            way.call(each)


# -- JSON -----------------------------------------------------------------------------------------


def requests_of(workload: Workload) -> list[bytes]:
    """The inputs as a client sends them: decimals as text, the form that loses nothing."""
    return [json.dumps(each, default=str, separators=(",", ":")).encode() for each in workload.inputs]


def run_json(workload: Workload) -> Callable[[bytes], bytes]:
    """Request in, response out, by the best engine. Raises `AssertionError` where a response is not right."""
    call = getattr(ENGINES[fastest_engine()].load(compiled_of(workload)), "run_json", None)
    assert call is not None
    for each, request in zip(workload.inputs, requests_of(workload), strict=True):
        answer = json.loads(call(request))
        expected = {
            name: str(value) if not isinstance(value, int | float | str) else value
            for name, value in workload.reference(each).items()
        }
        assert answer["value"].keys() == expected.keys(), answer
        for name, value in expected.items():
            found = answer["value"][name]
            assert found == value or _same_decimal(found, value), (name, found, value)
    return call  # type: ignore[no-any-return]  # engines without it are not asked


def _same_decimal(found: Any, expected: Any) -> bool:
    from decimal import Decimal

    return Decimal(str(found)) == Decimal(str(expected))


# -- traces ---------------------------------------------------------------------------------------


def traced_ways(workload: Workload) -> dict[str, Way]:
    """The same execution on the direct engine, begun in the same way: with its marks kept, and without."""
    program = DirectEngine().load(compiled_of(workload))

    def run(is_traced: bool) -> Function:
        return lambda inputs: program.start(inputs, is_traced=is_traced).advance(())

    return {"tracing on": Way(run(True), workload.inputs), "tracing off": Way(run(False), workload.inputs)}


# -- a new process --------------------------------------------------------------------------------

_IMPORT = "import vesper"
_FIRST_CALL = """
import sys
from decimal import Decimal
import vesper
vesper.load(sys.argv[1], engine=sys.argv[2]).call(
    {"amount": Decimal("50.00"), "balance": Decimal("100.00"), "currency": "USD", "country": "DE", "user_age_days": 400}
)
"""


def starts(rounds: int, seconds: float = 60.0) -> dict[str, Timing]:
    """Seconds of whole processes, in turns: Python alone, with the import, with the first call of W1 on each engine.

    One round at least, after one that fills the caches; and no more after so many seconds.
    """
    scripts = {"bare Python": ["-c", "pass"], "import vesper": ["-c", _IMPORT]}
    for engine in ENGINES:
        scripts[f"first call, engine {engine}"] = ["-c", _FIRST_CALL, str(WORKLOADS["W1"].file), engine]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode: one of the caches
    samples: dict[str, list[float]] = {name: [] for name in scripts}
    until = time.perf_counter() + seconds
    for turn in range(rounds + 1):
        if turn > 1 and time.perf_counter() > until:
            break
        for name, arguments in scripts.items():
            begun = time.perf_counter()
            subprocess.run([sys.executable, *arguments], check=True, cwd=ROOT, env=environment)
            if turn:  # the first one fills the caches
                samples[name].append(time.perf_counter() - begun)
    return {name: timing_of(found) for name, found in samples.items()}
