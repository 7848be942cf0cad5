"""`make bench-hooks`: what seeing inside costs, in instructions a call, counted by callgrind.

**Off.** A call of a node that nobody traces, in a process whose configuration has traces, beside one in which there is
nothing that could trace: of the python engine the generated module alone, which has no marks in it; of the Rust engine
a build without a place for marks (the feature `blind`). At most 1 % more, or it fails.

**On.** An execution with all its marks kept, beside the same one without, both begun by `start`. At most 2 times, or it
fails. Nobody calls a node so who wants no marks: `node.call` is shorter, and on machine code far shorter.

**Sampled.** What a caller waits for where every call of `node.call` is kept, beside `node.call` where none is: a copy
of the inputs, two looks at the clock, and a place in a queue. That is told and not judged. The trace itself is made in
a thread beside, which is not counted here, and of which `per_second` allows so many.

Both builds are made here, in the same way. Counts hardly change from run to run, however busy the machine is.
"""

from __future__ import annotations

import argparse
import gc
import os
import shutil
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.bench.instructions import TURNS, Unusable, count, counted, here  # noqa: E402  # after the path is set
from tests.proofs.robustness.proof import write_json  # noqa: E402

FILE = ROOT / "docs" / "benchmarks" / "hooks.json"
BUILDS = ROOT / ".proofs" / "hooks"
MOST_OFF, MOST_ON = 1.01, 2.0
TITLES = ("W1", "W2")
SEEING, BLIND = "seeing", "blind"
_CONFIG = '[traces]\nretention = "7d"\n'
_SAMPLED = '[traces]\nsample = "100 %"\nper_second = 1000000\n'

Ways = dict[str, tuple[Any, list[Any], int]]


# -- in the process that is counted ---------------------------------------------------------------


def child(build: str | None) -> None:
    if build is not None:
        _load(build)
    from tests.bench.workloads import WORKLOADS

    Path("vesper.toml").write_text(_CONFIG, encoding="utf-8")
    ways: Ways = {}
    for title in TITLES:
        workload = WORKLOADS[title]
        ways[f"{title} nothing"] = (lambda _: None, workload.inputs, TURNS[title])
        found = _of_rust(workload) if build is not None else _of_python(workload)
        if build is None or build.endswith(f"{SEEING}.so"):
            found |= _on(workload, ["python"] if build is None else ["interp", "jit"])
        ways |= {f"{title} {name}": (call, workload.inputs, TURNS[title]) for name, call in found.items()}
    # When Python looks for rings of objects hangs on what happened long before: nothing that is compared here.
    gc.collect()
    gc.disable()
    count(ways)


def _load(build: str) -> None:
    """Another build of the Rust engine than the one beside its Python."""
    import importlib.machinery
    import importlib.util

    import vesper

    spec = importlib.util.spec_from_file_location("vesper._direct", build)
    assert spec is not None
    assert isinstance(spec.loader, importlib.machinery.ExtensionFileLoader)
    module = importlib.util.module_from_spec(spec)
    sys.modules["vesper._direct"] = module
    spec.loader.exec_module(module)
    vesper._direct = module


def _of_python(workload: Any) -> dict[str, Any]:
    import vesper
    from tests.bench.ours import compiled_of
    from vesper.codegen.module import generate_module

    text = generate_module(compiled_of(workload).node, traced=False).text
    assert "mark(" not in text
    alone: dict[str, Any] = {"__name__": "alone"}
    exec(compile(text, "alone", "exec"), alone)  # as `vesper compile` writes it, for whoever has nothing else
    return {"python off": vesper.load(workload.file, engine="python").call, "python bare": alone["call"]}


def _of_rust(workload: Any) -> dict[str, Any]:
    import vesper

    return {f"{engine} off": vesper.load(workload.file, engine=engine).call for engine in ("interp", "jit")}


def _on(workload: Any, engines: list[str]) -> dict[str, Any]:
    """With every mark kept, and where every call is sampled. Nobody makes the traces: what waits is dropped."""
    import vesper
    from vesper.api.observed import trace_sampling as sampled
    from vesper.trace import sampling

    sampling.deque = partial(deque, maxlen=64)  # type: ignore[attr-defined, assignment]  # as full as where somebody takes them
    found: dict[str, Any] = {}
    Path("vesper.toml").write_text(_SAMPLED, encoding="utf-8")
    for engine in engines:
        node = vesper.load(workload.file, engine=engine)
        found[f"{engine} sampled"] = node.call
        start = node._program.start
        found[f"{engine} traced"] = lambda inputs, start=start: start(inputs, is_traced=True).advance(())
        found[f"{engine} untraced"] = lambda inputs, start=start: start(inputs, is_traced=False).advance(())
    for sampler, _ in sampled._samplers.values():
        sampler.worker = threading.current_thread()  # none is begun
        sampler.left = 1 << 29
    Path("vesper.toml").write_text(_CONFIG, encoding="utf-8")
    return found


# -- around it ------------------------------------------------------------------------------------


def built(profile: str) -> dict[str, Path]:
    """The two builds of the Rust engine."""
    target = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "direct_runtime" / "target")
    environment = {"PYO3_PYTHON": sys.executable, **os.environ, "PYO3_BUILD_EXTENSION_MODULE": "1"}
    BUILDS.mkdir(parents=True, exist_ok=True)
    found = {}
    for name in (SEEING, BLIND):
        command = ["cargo", "build", "--quiet", "--locked", "--profile", profile, "--package", "vesper-py"]
        command += ["--manifest-path", str(ROOT / "direct_runtime" / "Cargo.toml")]
        command += ["--features", "blind"] if name == BLIND else []
        print(f"building {name} …", file=sys.stderr, flush=True)
        subprocess.run(command, check=True, env=environment)
        found[name] = BUILDS / f"{name}.so"
        shutil.copy(target / profile / "lib_direct.so", found[name])
    return found


def ratios(of: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """What each costs of its control, by workload, engine and kind; `of` are counts by build."""
    seeing, blind, python = of[SEEING], of[BLIND], of["python"]
    found = {}
    for title in TITLES:
        found[f"{title} python off"] = python[f"{title} python off"] / python[f"{title} python bare"]
        for engine in ("interp", "jit"):
            found[f"{title} {engine} off"] = seeing[f"{title} {engine} off"] / blind[f"{title} {engine} off"]
        for engine, counts in (("python", python), ("interp", seeing), ("jit", seeing)):
            name = f"{title} {engine}"
            found[f"{name} traced"] = counts[f"{name} traced"] / counts[f"{name} untraced"]
            found[f"{name} sampled"] = counts[f"{name} sampled"] / counts[f"{name} off"]
    return {name: round(value, 4) for name, value in found.items()}


def too_much(found: Mapping[str, float]) -> list[str]:
    """What costs more than it may."""
    most = {"off": MOST_OFF, "traced": MOST_ON}
    return [
        f"{name}: {value:.3f} of its control, and at most {most[kind]:g} is allowed"
        for name, value in sorted(found.items())
        if value > most.get(kind := name.split()[-1], float("inf"))
    ]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--update", action="store_true", help="write what was found into docs/benchmarks")
    parser.add_argument("--profile", default="release", help="of cargo; another one is made sooner")
    parser.add_argument("--build", help=argparse.SUPPRESS)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        os.chdir(os.environ["HOME"])  # a folder of its own
        child(asked.build)
        return 0
    try:
        builds = built(asked.profile)
        counts = {name: counted(__file__, "--build", str(path)) for name, path in builds.items()}
        counts["python"] = counted(__file__)
    except Unusable as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    found = ratios(counts)
    print(f"instructions a call, of its control; {here()['architecture']}, Python {here()['python']}")
    for name, value in sorted(found.items(), key=lambda each: (each[0].split()[2], each[0])):
        print(f"{name:<20} {value:8.4f}")
    if asked.update:
        document = {"where": here(), "profile": asked.profile, "of_control": found, "instructions": counts}
        write_json(FILE, document)
    told = too_much(found)
    for each in told:
        print(f"error: {each}", file=sys.stderr)
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main())
