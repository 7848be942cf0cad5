"""`make proof-aarch64`: the engines on aarch64, on a machine of another kind: the corpus and `vesper verify`.

    python tests/proofs/packaging/aarch64.py [--examples 30] [--programs 50] [--rustc PATH] [--jobs 2]

The extension is built for aarch64 and loaded by an aarch64 CPython under QEMU: what is tried is the machine code that
the engine makes there, not how fast it is. Needs root, and on Debian `qemu-user-static gcc-aarch64-linux-gnu
debootstrap`; and a rustc with the standard library of that machine. That is

- the compiler that `--rustc` names; or
- the one in the path, after `rustup target add aarch64-unknown-linux-gnu`; or, where that has no such library,
- Debian's `rustc-web` (the newest Rust of the distribution, with which its browsers are built): the compiler and its
  LLVM for this machine, and `libstd-rust-web-dev` for this one and for arm64, because macros run here and the extension
  runs there. They are downloaded by apt with lists of its own and unpacked beside each other; the system and the
  compiler in the path stay as they are.

Everything it makes is under `.proofs/aarch64`, and is used again. The work is done in parts, `--jobs` at a time; a part
that has passed is not done again by the next run on the same files, so that a run that was stopped goes on. A clean run
writes `docs/proofs/aarch64.json`, and forgets its parts. What `vesper verify` finds is kept under
`.proofs/aarch64/found`.

What QEMU cannot show, and this proof does not say: how memory is ordered between threads (the processor below orders
more strictly than aarch64 does), whether caches of instructions are flushed (QEMU notices writes to code by itself),
pages of other sizes than 4 KiB, and speed. Processes that Vesper starts by itself, as for an engine in a process of its
own, are not tried: the kernel would have to start programs of that machine.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

from tests.proofs.robustness.proof import (  # noqa: E402  # after the path is set
    PROOFS,
    engine_hash,
    read_json,
    source_hash,
    write_json,
)

NAME = "aarch64"
WORK = (ROOT / ".proofs" / NAME).resolve()
"""It may be a link to that of another working folder, whose system, packages and dependencies are then used."""
SYSTEM = WORK / "system"
"""A small Debian for aarch64: its Python and the libraries that it needs. Nothing is installed in it, only unpacked."""
PACKAGES = WORK / "packages"
COMPILER = WORK / "compiler"
TREE = WORK / "tree"
"""What is tried, apart from the repository: an extension for another machine must not lie among its sources."""
PARTS = WORK / "parts"
"""What the parts have found that have passed."""
FOUND = WORK / "found"
TARGET = "aarch64-unknown-linux-gnu"
TOOLS = {
    "qemu-aarch64-static": "qemu-user-static",
    "aarch64-linux-gnu-gcc": "gcc-aarch64-linux-gnu",
    "debootstrap": "debootstrap",
}
COPIED = ("vesper", "nodes", "tests", "schemas", "docs", "codegen_templates", "pyproject.toml")
CORPUS_PARTS = 2
"""Each begins with making all questions, which takes a minute there."""
NODES_AT_A_TIME = 9
LIMIT = 3600.0
"""Seconds for one part: minutes are usual, on a processor that others use too."""

BEGUN = time.monotonic()


class Failed(Exception):
    """A command that ended badly; what it said is its text."""


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    arguments: tuple[str, ...]
    read: Callable[[str], dict[str, Any]]
    """What it found, from what it printed."""


def main() -> int:
    parser = argparse.ArgumentParser(description="the engines on aarch64, under QEMU")
    parser.add_argument("--examples", type=int, default=30, help="inputs for each node (30)")
    parser.add_argument("--programs", type=int, default=50, help="random programs in each of two parts (50)")
    parser.add_argument("--rustc", help="a compiler with the standard library of aarch64")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="parts at a time (2)")
    asked = parser.parse_args()
    missing = sorted(package for tool, package in TOOLS.items() if shutil.which(tool) is None)
    if missing:
        print(f"error: not here: {', '.join(missing)}; on Debian: apt-get install {' '.join(missing)}", file=sys.stderr)
        return 1
    try:
        return prove(asked.rustc, asked.examples, asked.programs, asked.jobs)
    except Failed as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1


def prove(rustc: str | None, examples: int, programs: int, jobs: int) -> int:
    made_from = (source_hash(), engine_hash())  # once: what is changed meanwhile is not what is tried
    make_system()
    make_packages()
    make_tree(build(rustc or usual_compiler()))
    asked = "import platform; print(platform.machine(), platform.python_version())"
    machine = emulated("python", "-c", asked).split()
    tell(f"loaded by Python {machine[1]} on {machine[0]}; {jobs} parts at a time")
    parts = [*corpus_parts(), *verify_parts(examples, programs)]
    key = tree_hash()
    with ThreadPoolExecutor(jobs) as pool:
        results = list(pool.map(lambda part: passed(part, key), parts))
    found = dict(zip((part.name for part in parts), results, strict=True))
    failed = [name for name, result in found.items() if result is None]
    if failed:
        kept = f"; what `vesper verify` found is kept under {FOUND.relative_to(WORK.parent.parent)}"
        raise Failed(f"these parts have failed, see above: {', '.join(failed)}{kept if FOUND.exists() else ''}")
    corpus = total([result for name, result in found.items() if name.startswith("corpus") and result])
    verified = total([result for name, result in found.items() if name.startswith("verify") and result])
    print(f"corpus: {corpus}\nvesper verify: {verified}")
    if corpus["machine_code_refused"] or not corpus["machine_code_made"]:
        raise Failed(
            f"machine code was refused for {corpus['machine_code_refused']} forms of nodes there, and made of "
            f"{corpus['machine_code_made']}: the interpreter answered instead, which proves nothing of machine code. "
            "`DirectProgram.tier()` says why it is refused"
        )
    proof = {
        "source_hash": made_from[0],
        "engine_hash": made_from[1],
        "machine": machine[0],
        "python": machine[1],
        "emulated_by": run("qemu-aarch64-static", "--version").splitlines()[0],
        "corpus": corpus,
        "verify": verified,
        "elapsed_seconds": round(time.monotonic() - BEGUN, 1),
    }
    write_json(PROOFS / f"{NAME}.json", proof)
    shutil.rmtree(PARTS)  # the next run is to be a proof of its own
    tell(f"clean: docs/proofs/{NAME}.json is written")
    return 0


# -- parts ----------------------------------------------------------------------------------------


def corpus_parts() -> list[Part]:
    names = [f"{number}/{CORPUS_PARTS}" for number in range(1, CORPUS_PARTS + 1)]
    return [Part(f"corpus {each}", ("-m", "tests.conformance.run", "--part", each), read_corpus) for each in names]


def read_corpus(printed: str) -> dict[str, Any]:
    counts = re.search(r": ([\d,]+) questions of ([\d,]+) nodes, ([\d,]+) disagreements", printed)
    code = re.search(r"Machine code was made of ([\d,]+) forms of nodes, and refused for ([\d,]+)", printed)
    assert counts is not None, printed
    assert code is not None, printed
    names = ("questions", "nodes", "disagreements", "machine_code_made", "machine_code_refused")
    return {name: int(each.replace(",", "")) for name, each in zip(names, counts.groups() + code.groups(), strict=True)}


def verify_parts(examples: int, programs: int) -> list[Part]:
    """Nodes are much alike; random programs also have what nobody writes."""
    told = ("--format", "json", "--save-to", str(FOUND))
    options = ("--max-examples", str(examples), "--seed", "1", *told)
    files = sorted(path.relative_to(TREE).as_posix() for path in (TREE / "nodes").rglob("*.vsp"))
    parts = []
    for start in range(0, len(files), NODES_AT_A_TIME):
        nodes = files[start : start + NODES_AT_A_TIME]
        name = f"verify nodes {start + 1} to {start + len(nodes)} of {len(files)}"
        parts.append(Part(name, ("-m", "vesper", "verify", *nodes, *options), read_verify))
    for seed in ("1", "2") if programs else ():
        drawn = ("-m", "vesper", "verify", "--programs", str(programs), "--seed", seed, *told)
        parts.append(Part(f"verify {programs} random programs of seed {seed}", drawn, read_verify))
    return parts


def read_verify(printed: str) -> dict[str, Any]:
    said = json.loads(printed)
    totals = {name: said[name] for name in ("programs", "executions", "disagreements", "not_comparable", "engines")}
    return {"nodes": len(said["nodes"]), **totals}


def total(results: list[dict[str, Any]]) -> dict[str, Any]:
    """Numbers are added; what else there is is the same in all of them."""
    together: dict[str, Any] = {}
    for result in results:
        for name, value in result.items():
            together[name] = together.get(name, 0) + value if isinstance(value, int) else value
    return together


def passed(part: Part, key: str) -> dict[str, Any] | None:
    """What a part finds, now or when it passed on the same files; None where it fails, which is printed."""
    kept = PARTS / f"{part.name.replace('/', ' of ')}.json"
    before = read_json(kept)
    if before is not None and before["key"] == [key, *part.arguments]:
        tell(f"{part.name}: passed before, {before['found']}")
        return dict(before["found"])
    begun = time.monotonic()
    tell(f"{part.name}: begun")
    try:
        printed = emulated(part.name, *part.arguments)
    except Failed as problem:
        tell(f"{part.name}: FAILED after {time.monotonic() - begun:.0f} s: {problem}")
        return None
    found = part.read(printed)
    write_json(kept, {"key": [key, *part.arguments], "found": found, "printed": printed})
    tell(f"{part.name}: passed in {time.monotonic() - begun:.0f} s, {found}")
    return found


# -- commands -------------------------------------------------------------------------------------


def tell(text: str) -> None:
    print(f"[{time.monotonic() - BEGUN:6.0f} s] {text}", flush=True)


def run(*command: str | Path, name: str | None = None, cwd: Path = ROOT, **more: str) -> str:
    """What a command prints. What it says on standard error is shown while it runs, where it has a name."""
    errors: list[str] = []

    def show(lines: Iterable[str]) -> None:
        for line in lines:
            errors.append(line)
            if name is not None:
                tell(f"  {name}: {line.rstrip()}")

    with subprocess.Popen(
        command, cwd=cwd, env={**os.environ, **more}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as started:
        assert started.stdout is not None
        assert started.stderr is not None
        reader = threading.Thread(target=show, args=(started.stderr,))
        reader.start()
        alarm = threading.Timer(LIMIT, started.kill)
        alarm.start()
        try:
            printed = started.stdout.read()
            ended = started.wait()
            reader.join()
        finally:
            if not alarm.is_alive():
                errors.append(f"it was ended after {LIMIT:.0f} s, the most that one command is given\n")
            alarm.cancel()
            started.kill()  # where this is interrupted; one that has ended is left alone
    if ended != 0:
        said = (printed + "".join(errors))[-20_000:]
        raise Failed(f"`{' '.join(map(str, command))}` ended with {ended}:\n{said}")
    return printed


def emulated(name: str, *arguments: str) -> str:
    """By the Python of the other machine."""
    path = os.pathsep.join(map(str, (TREE, PACKAGES)))
    interpreter = SYSTEM / "usr" / "bin" / "python3.11"
    return run(
        "qemu-aarch64-static",
        interpreter,
        *arguments,
        name=name,
        cwd=TREE,
        QEMU_LD_PREFIX=str(SYSTEM),
        PYTHONPATH=path,
        # Modules are compiled once, and not again by each part: that is slow there.
        PYTHONDONTWRITEBYTECODE="",
        PYTHONPYCACHEPREFIX=str(WORK / "bytecode"),
    )


# -- what is needed -------------------------------------------------------------------------------


def make_system() -> None:
    if (SYSTEM / "usr" / "bin" / "python3.11").exists():
        return
    tell("a Debian for aarch64 is made, by debootstrap; a minute or two")
    shutil.rmtree(SYSTEM, ignore_errors=True)
    # Only unpacked: its own scripts would need a kernel that runs programs of that machine by itself.
    run("debootstrap", "--foreign", "--arch=arm64", "--variant=minbase", "--include=python3.11", "bookworm", SYSTEM)
    for package in sorted((SYSTEM / "var" / "cache" / "apt" / "archives").glob("*.deb")):
        run("dpkg-deb", "-x", package, SYSTEM)


def make_packages() -> None:
    """What tests need, as wheels for that machine, unpacked."""
    lock = ROOT / "requirements-dev.lock"
    stamp = PACKAGES / "requirements-dev.lock"
    if stamp.exists() and stamp.read_bytes() == lock.read_bytes():
        return
    tell("wheels for aarch64 are downloaded; a minute or two")
    shutil.rmtree(PACKAGES, ignore_errors=True)
    wheels = WORK / "wheels"
    shutil.rmtree(wheels, ignore_errors=True)
    platforms = [f"--platform={each}_aarch64" for each in ("manylinux2014", "manylinux_2_17", "manylinux_2_28")]
    options = ["--quiet", "--no-deps", "--only-binary=:all:", "--python-version=311", *platforms]
    run(sys.executable, "-m", "pip", "download", *options, "--require-hashes", "-d", wheels, "-r", lock)
    for wheel in sorted(wheels.glob("*.whl")):
        shutil.unpack_archive(wheel, PACKAGES, "zip")
    shutil.copy(lock, stamp)


def usual_compiler() -> str:
    """The one in the path, if it has the library; otherwise Debian's."""
    if shutil.which("rustc") is not None:
        library = Path(run("rustc", "--print", "target-libdir", "--target", TARGET).strip())
        if any(library.glob("libstd-*.rlib")):
            return "rustc"
    return str(make_compiler())


def make_compiler() -> Path:
    """Debian's compiler, with the standard libraries of both machines."""
    compiler = COMPILER / "rustc"
    if compiler.exists():
        return compiler
    tell("Debian's rustc-web is downloaded, with the library of aarch64; a minute")
    shutil.rmtree(COMPILER, ignore_errors=True)
    downloads = COMPILER / "packages"
    for folder in ("lists/partial", "cache/archives/partial", "packages"):
        (COMPILER / folder).mkdir(parents=True)
    here = run("dpkg", "--print-architecture").strip()
    # Lists of its own, of both machines: the system need not know the other one, and is not changed.
    options = [f"Dir::State::lists={COMPILER / 'lists'}", f"Dir::Cache={COMPILER / 'cache'}"]
    options += [f"APT::Architectures={here},arm64", "APT::Sandbox::User=root"]
    apt = ["apt-get", "--quiet", *(f"--option={each}" for each in options)]
    run(*apt, "update")
    run(*apt, "download", "rustc-web", "libstd-rust-web-dev", "libstd-rust-web-dev:arm64", cwd=downloads)
    run(*apt, "download", needed(downloads, "libstd-rust-web-dev", r"libstd-rust-web-\d[\w.]*"), cwd=downloads)
    run(*apt, "download", needed(downloads, "libstd-rust-web-[0-9]", r"libllvm\d+"), cwd=downloads)
    for package in sorted(downloads.glob("*.deb")):
        run("dpkg-deb", "-x", package, COMPILER)
    (libraries,) = {path.parent for path in COMPILER.glob("usr/lib/*/librustc_driver-*.so")}
    # Its libraries lie where no loader looks for them.
    script = '#!/bin/sh\nhere=$(dirname "$(readlink -f "$0")")\n'
    script += f'LD_LIBRARY_PATH="$here/{libraries.relative_to(COMPILER)}" exec "$here/usr/bin/rustc" "$@"\n'
    compiler.write_text(script, encoding="ascii")
    compiler.chmod(0o755)
    return compiler


def needed(downloads: Path, package: str, pattern: str) -> str:
    """The name of what a package that was downloaded depends on: it has a version in it."""
    file = next(each for each in downloads.glob(f"{package}*.deb") if not each.name.endswith("_arm64.deb"))
    depends = run("dpkg-deb", "--field", file, "Depends")
    found = re.search(pattern, depends)
    if found is None:
        raise Failed(f"{file.name} depends on nothing like {pattern}, but on {depends.strip()}; give --rustc instead")
    return found.group()


def build(rustc: str) -> Path:
    tell(f"the extension is built for aarch64 by {rustc}; minutes where nothing is built yet")
    target = WORK / "target"
    run(
        *("cargo", "build", "--locked", "--profile", "quick", "--package", "vesper-py", "--target", TARGET),
        *("--manifest-path", ROOT / "direct_runtime" / "Cargo.toml", "--target-dir", target),
        name="cargo",
        RUSTC=rustc,
        CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER="aarch64-linux-gnu-gcc",
        PYO3_CROSS="1",
        PYO3_CROSS_PYTHON_VERSION="3.11",
        PYO3_BUILD_EXTENSION_MODULE="1",
    )
    return target / TARGET / "quick" / "lib_direct.so"


def make_tree(extension: Path) -> None:
    shutil.rmtree(TREE, ignore_errors=True)
    TREE.mkdir(parents=True)
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, TREE / name, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
        else:
            shutil.copy(source, TREE / name)
    # No part reads what proofs have written, or this script: what was tried is the same when they change.
    shutil.rmtree(TREE / "docs" / "proofs")
    shutil.rmtree(TREE / "tests" / "proofs" / "packaging")
    shutil.copy(extension, TREE / "vesper" / "_direct.cpython-311-aarch64-linux-gnu.so")


def tree_hash() -> str:
    digest = hashlib.sha256()
    for path in sorted(each for each in TREE.rglob("*") if each.is_file()):
        digest.update(
            f"{path.relative_to(TREE).as_posix()}\n{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode()
        )
    return digest.hexdigest()


if __name__ == "__main__":
    sys.exit(main())
