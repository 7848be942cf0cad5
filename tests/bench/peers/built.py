"""Rivals that are compiled: the files beside this one, built on the spot by mypyc, Cython and a C compiler; numba.

What is built lies in a folder of the environment, named after what it was built from: nothing is built twice.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.bench.peers.present import NotHere, needed, version
from tests.bench.workloads import Contestant, Form, as_given, in_cents

HERE = Path(__file__).parent
BUILDS = Path(sys.prefix) / "builds"
FUNCTIONS = {"W1": "payment_decision", "W2": "order_pricing", "W3": "numeric_loop"}


def built(source: str, name: str, maker: str, command: Callable[[Path, Path], list[str]]) -> ModuleType:
    """The module `name` from a file beside this one; `command` makes it, given the copied source and its folder."""
    text = (HERE / source).read_bytes()
    key = hashlib.sha256(text + f"{maker} {sys.version}".encode()).hexdigest()[:12]
    folder = BUILDS / f"{name}-{key}"
    suffix = str(sysconfig.get_config_var("EXT_SUFFIX"))
    made = folder / f"{name}{suffix}"
    if not made.is_file():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        copy = folder / f"{name}{Path(source).suffix}"
        copy.write_bytes(text)
        ran = subprocess.run(command(copy, made), cwd=folder, capture_output=True, text=True, check=False)
        if ran.returncode or not made.is_file():
            said = (ran.stderr.strip() or ran.stdout.strip() or "nothing was said").splitlines()
            raise NotHere(f"{maker} cannot build {source}: {said[-1]}")
    spec = importlib.util.spec_from_file_location(name, made)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(folder))  # what mypyc builds has a second module, which it imports by name
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(folder))
    return module


def _of(
    module: ModuleType, name: str, workloads: str, form: Form = as_given, numbers: str = "decimal"
) -> list[Contestant]:
    found = []
    for each in workloads.split():
        call = getattr(module, FUNCTIONS[each])
        found.append(Contestant(name, each, call, form, "native" if each == "W3" else numbers))
    return found


def mypyc() -> list[Contestant]:
    needed("mypyc", "mypy")
    maker = f"mypyc {version('mypy')}"

    def command(source: Path, _: Path) -> list[str]:
        return [sys.executable, "-m", "mypyc", source.name]

    plain = built("by_hand.py", "mypyc_by_hand", maker, command)
    loop = built("machine_loop.py", "mypyc_machine_loop", maker, command)
    return [*_of(plain, maker, "W1 W2 W3"), *_of(loop, f"{maker}, i64", "W3")]


def cython() -> list[Contestant]:
    needed("Cython", "Cython")
    maker = f"Cython {version('Cython')}"

    def command(source: Path, _: Path) -> list[str]:
        return [sys.executable, "-m", "Cython.Build.Cythonize", "-q", "-i", "-3", source.name]

    plain = built("by_hand.py", "cython_by_hand", maker, command)
    typed = built("typed.pyx", "cython_typed", maker, command)
    return [
        *_of(plain, f"{maker}, source unchanged", "W1 W2 W3"),
        *_of(typed, f"{maker}, cdef", "W1 W2", in_cents, "cents"),
        *_of(typed, f"{maker}, cdef", "W3"),
    ]


def floor() -> list[Contestant]:
    return _of(in_c("floor.c", "floor"), "floor: C, Decimal by struct", "W1 W2 W3")


def in_c(source: str, name: str) -> ModuleType:
    """An extension module of one C file. Raises `NotHere`."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise NotHere(f"{source}: no C compiler (Debian: apt-get install gcc)")
    headers = sysconfig.get_paths()["include"]
    if not (Path(headers) / "Python.h").is_file():
        raise NotHere(f"{source}: no Python.h in {headers} (Debian: apt-get install python3-dev)")

    def command(copy: Path, made: Path) -> list[str]:
        return [compiler, "-O2", "-fPIC", "-shared", f"-I{headers}", str(copy), "-o", str(made)]

    return built(source, name, "the C compiler", command)


def numba() -> list[Contestant]:
    library: Any = needed("numba", "numba")

    @library.njit  # type: ignore[untyped-decorator]  # numba is not where types are checked
    def loop(state: int, rounds: int) -> tuple[float, int, int]:
        score, hits = 0.0, 0
        for _ in range(rounds):
            state = (state * 1103515245 + 12345) & 0x7FFFFFFF
            x = state / 2147483648.0
            y = ((0.5 * x - 1.25) * x + 0.75) * x + 0.1
            if y > 0.2:
                score += y
                hits += 1
            else:
                score -= 0.5 * x
        return score, hits, state

    def call(inputs: dict[str, Any]) -> dict[str, Any]:
        if inputs["n"] < 0:
            raise ValueError("n >= 0")
        score, hits, state = loop(inputs["seed"], inputs["n"])
        return {"score": score, "hits": hits, "state": state}

    return [Contestant(f"numba {version('numba')}", "W3", call, numbers="native")]
