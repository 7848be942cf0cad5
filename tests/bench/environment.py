"""The environment of the benchmarks: `.venv-bench`, on a CPython that was built with profile-guided optimisation.

A CPython without it runs plain Python a third slower, and flatters everybody else; so nobody is measured on one. The
Python of `.venv` runs this file, which does nothing twice. `--rivals` installs the rivals too, `--service` what a
service of `make proof-service` needs, `--host` that and the rivals of `make bench-host`, `--serve` those of
`make bench-serve`, `--queue` those of `make bench-queue`, `--data` the libraries of `make bench-data`, `--agents` the
rivals of `make bench-agents`, `--kernel` the rival of `make bench-kernel`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from vesper.cli.bench.interpreter import Interpreter, interpreter_at  # noqa: E402  # after the path is set

FOLDER = ROOT / ".venv-bench"
STAMP = FOLDER / "made.json"
BENCH = ROOT / "tests" / "bench"
RIVALS, SERVICE = BENCH / "requirements.txt", BENCH / "requirements-service.txt"
HOST, SERVE = BENCH / "requirements-host.txt", BENCH / "requirements-serve.txt"
QUEUE, DATA = BENCH / "requirements-queue.txt", BENCH / "requirements-data.txt"
AGENTS, KERNEL = BENCH / "requirements-agents.txt", BENCH / "requirements-kernel.txt"
OLDEST = (3, 11)


class Refused(Exception):
    """Nothing is measured; the message says what to do."""


# -- which Python ---------------------------------------------------------------------------------


def candidates() -> list[str]:
    """Where Pythons lie: on the path, where systems put them, and where pyenv and uv do."""
    home = Path.home()
    folders = [Path(each) for each in os.environ.get("PATH", "").split(os.pathsep) if each]
    folders += [Path("/usr/bin"), Path("/usr/local/bin"), Path("/opt/homebrew/bin")]
    folders += sorted(home.glob(".pyenv/versions/*/bin")) + sorted(home.glob(".local/share/uv/python/*/bin"))
    found: dict[Path, str] = {}
    for folder in folders:
        for name in ("python3", *(f"python3.{minor}" for minor in range(11, 20))):
            path = folder / name
            if path.is_file() and os.access(path, os.X_OK):
                found.setdefault(path.resolve(), str(path))
    return list(found.values())


def fitting(found: Iterable[Interpreter], abi: str) -> list[Interpreter]:
    """Those to measure on, the best first: one that the built engine fits, then the newest."""
    usable = [
        each
        for each in found
        if each.implementation == "CPython" and each.numbers >= OLDEST and each.is_optimised and each.has_venv
    ]
    return sorted(usable, key=lambda each: (each.abi == abi, each.numbers), reverse=True)


def chosen(
    asked: str | None,
    abi: str,
    paths: Callable[[], list[str]] = candidates,
    look: Callable[[str], Interpreter] = interpreter_at,
) -> Interpreter:
    """The Python to measure on. Raises `Refused`."""
    if asked is not None:
        path = shutil.which(asked) or asked
        try:
            found = look(path)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            raise Refused(f"PYTHON={asked}: {error}") from None
        if fitting([found], abi):
            return found
        why = "it has no venv (Debian: apt-get install python3-venv)" if not found.has_venv else found.described()
        raise Refused(
            f"PYTHON={asked} is no CPython from 3.11 on that was built with profile-guided optimisation: {why}. "
            "Leave PYTHON= away, and one is looked for"
        )
    seen = []
    for path in paths():
        try:
            seen.append(look(path))
        except (OSError, ValueError, subprocess.SubprocessError):
            continue  # an older one, or none at all
    usable = fitting(seen, abi)
    if usable:
        return usable[0]
    listed = "".join(f"\n  {each.executable}: {each.described()}" for each in seen) or "\n  none at all"
    raise Refused(
        "there is no CPython here that was built with profile-guided optimisation, and on another one every ratio "
        f"would flatter us. Found:{listed}\n"
        "Install the one of your distribution (Debian: apt-get install python3 python3-venv), or one from python.org, "
        "or `uv python install 3.11`; or name one: make bench PYTHON=/path/to/python3"
    )


# -- what is in it --------------------------------------------------------------------------------


def wanted(interpreter: Interpreter, more: Sequence[Path]) -> dict[str, str]:
    """What the environment is made from."""
    files = [ROOT / "requirements.lock", BENCH / "requirements-quick.txt", *more]
    return {
        "python": str(Path(interpreter.executable).resolve()),
        "version": interpreter.version,
        **{each.name: hashlib.sha256(each.read_bytes()).hexdigest() for each in files},
    }


def made() -> dict[str, str]:
    try:
        found: dict[str, str] = json.loads(STAMP.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found


def make(interpreter: Interpreter, more: Sequence[Path]) -> None:
    target, present = wanted(interpreter, more), made()
    if target.items() <= present.items():
        return
    if present.get("python") != target["python"] or present.get("version") != target["version"]:
        print(f"making {FOLDER.name} with {interpreter.executable} ({interpreter.described()})", file=sys.stderr)
        subprocess.run([interpreter.executable, "-m", "venv", "--clear", str(FOLDER)], check=True)
        present = {}
    pip = [str(FOLDER / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    quick = {name: target[name] for name in ("requirements.lock", "requirements-quick.txt")}
    if not quick.items() <= present.items():
        subprocess.run([*pip, "--require-hashes", "--no-deps", "-r", str(ROOT / "requirements.lock")], check=True)
        subprocess.run([*pip, "-r", str(BENCH / "requirements-quick.txt")], check=True)
    for each in more:
        if present.get(each.name) != target[each.name]:
            print(f"installing {each.relative_to(ROOT)}", file=sys.stderr)
            subprocess.run([*pip, "-r", str(each)], check=True)
    STAMP.write_text(json.dumps({**present, **target}, indent=2) + "\n", encoding="utf-8")


def provide_engine(abi: str, ours: str) -> None:
    """The Rust engine for another version of Python than that of `.venv`, which `make build` has made it for."""
    target = ROOT / "vesper" / f"_direct{abi}"
    if abi == ours:
        if not target.is_file():
            raise Refused(f"there is no {target.name}: run `make build`")
        return
    built = ROOT / "vesper" / f"_direct{ours}"
    if target.is_file() and built.is_file() and target.stat().st_mtime >= built.stat().st_mtime:
        return
    print(f"building the engine for {abi}", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        maturin = [str(Path(sys.executable).with_name("maturin")), "build", "--release", "--out", folder]
        subprocess.run([*maturin, "--interpreter", str(FOLDER / "bin" / "python")], check=True, cwd=ROOT)
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            (name,) = [each for each in archive.namelist() if each.startswith("vesper/_direct") and each.endswith(abi)]
            target.write_bytes(archive.read(name))


def provide_wrk() -> None:
    """Install the load generator of `make bench-serve`, which Debian has."""
    if shutil.which("wrk") is not None:
        return
    if shutil.which("apt-get") is None or os.getuid() != 0:
        raise Refused("there is no wrk here, which makes the load: install it (Debian: sudo apt-get install wrk)")
    subprocess.run(["apt-get", "update", "-qq"], check=True)
    quietly = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(["apt-get", "install", "-qq", "--no-install-recommends", "wrk"], check=True, env=quietly)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--python", metavar="PATH", help="measure on this one; one is looked for, unless said")
    parser.add_argument("--rivals", action="store_true", help="install the rivals as well")
    parser.add_argument("--service", action="store_true", help="install what a service needs as well")
    parser.add_argument("--host", action="store_true", help="install a service and the rivals of the Host as well")
    parser.add_argument("--serve", action="store_true", help="install the rivals of `vesper serve` as well")
    parser.add_argument("--queue", action="store_true", help="install the rivals of queues as well")
    parser.add_argument("--data", action="store_true", help="install Ray, polars and DuckDB as well")
    parser.add_argument("--agents", action="store_true", help="install the rivals of agents as well")
    parser.add_argument("--kernel", action="store_true", help="install the rival of the kernel as well")
    asked = parser.parse_args()
    more = [RIVALS] * asked.rivals + [SERVICE] * (asked.service or asked.host) + [HOST] * asked.host
    more += [SERVE] * asked.serve + [QUEUE] * asked.queue + [DATA] * asked.data + [AGENTS] * asked.agents
    more += [KERNEL] * asked.kernel
    abi = str(sysconfig.get_config_var("EXT_SUFFIX"))
    try:
        again = made().get("python")  # what was chosen once is not looked for again
        interpreter = chosen(asked.python or (again if again and Path(again).is_file() else None), abi)
        make(interpreter, more)
        provide_engine(interpreter.abi, abi)
        if asked.serve:
            provide_wrk()
    except Refused as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as problem:
        print(f"error: {' '.join(map(str, problem.cmd))} ended with {problem.returncode}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
