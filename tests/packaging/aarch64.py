"""`make proof-aarch64`: the engines on aarch64, on a machine of another kind: the corpus and `vesper verify`.

    python tests/packaging/aarch64.py [--examples 30] [--rustc PATH]

The extension is built for aarch64 and loaded by an aarch64 CPython under QEMU: what is tried is the machine code that
the engine makes there, not how fast it is. Needs root, and on Debian `qemu-user-static gcc-aarch64-linux-gnu
debootstrap`; and a rustc with the standard library of that machine (`rustup target add aarch64-unknown-linux-gnu`), or
`--rustc` names one. Everything it makes is under `.proofs/aarch64`, and is used again; a clean run writes
`docs/proofs/aarch64.json`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.robustness.proof import PROOFS, engine_hash, source_hash, write_json  # noqa: E402  # after the path is set

NAME = "aarch64"
WORK = ROOT / ".proofs" / NAME
SYSTEM = WORK / "system"
"""A small Debian for aarch64: its Python and the libraries that it needs. Nothing is installed in it, only unpacked."""
PACKAGES = WORK / "packages"
TREE = WORK / "tree"
"""What is tried, apart from the repository: an extension for another machine must not lie among its sources."""
TARGET = "aarch64-unknown-linux-gnu"
TOOLS = {
    "qemu-aarch64-static": "qemu-user-static",
    "aarch64-linux-gnu-gcc": "gcc-aarch64-linux-gnu",
    "debootstrap": "debootstrap",
}
COPIED = ("vesper", "nodes", "tests", "schemas", "docs", "codegen_templates", "pyproject.toml")


def main() -> int:
    parser = argparse.ArgumentParser(description="the engines on aarch64, under QEMU")
    parser.add_argument("--examples", type=int, default=30, help="inputs for each node (30)")
    parser.add_argument("--rustc", default="rustc", help="a compiler with the standard library of aarch64")
    asked = parser.parse_args()
    missing = sorted(package for tool, package in TOOLS.items() if shutil.which(tool) is None)
    if missing:
        print(f"error: not here: {', '.join(missing)}; on Debian: apt-get install {' '.join(missing)}", file=sys.stderr)
        return 1
    begun = time.monotonic()
    made_from = (source_hash(), engine_hash())  # once: what is changed meanwhile is not what is tried
    make_system()
    make_packages()
    make_tree(build(asked.rustc))
    machine = python("-c", "import platform; print(platform.machine(), platform.python_version())").split()
    corpus = python("-m", "tests.conformance.run")
    print(corpus)
    counts = re.search(r": ([\d,]+) questions of ([\d,]+) nodes, ([\d,]+) disagreements", corpus)
    assert counts is not None, corpus
    questions, nodes, disagreements = (int(each.replace(",", "")) for each in counts.groups())
    options = ("--max-examples", str(asked.examples), "--seed", "1", "--format", "json")
    verified = json.loads(python("-m", "vesper", "verify", "nodes", *options))
    totals = {name: verified[name] for name in ("executions", "disagreements", "not_comparable", "engines")}
    print(f"vesper verify: {totals}")
    found = {
        "source_hash": made_from[0],
        "engine_hash": made_from[1],
        "machine": machine[0],
        "python": machine[1],
        "emulated_by": run("qemu-aarch64-static", "--version").splitlines()[0],
        "corpus": {"questions": questions, "nodes": nodes, "disagreements": disagreements},
        "verify": totals,
        "elapsed_seconds": round(time.monotonic() - begun, 1),
    }
    write_json(PROOFS / f"{NAME}.json", found)
    return 0


def run(*command: str | Path, cwd: Path = ROOT, **more: str) -> str:
    """What a command prints; it ends everything where it fails."""
    environment = {**os.environ, **more}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = done.stdout + done.stderr
        sys.exit(f"error: `{' '.join(map(str, command))}` ended with {done.returncode}:\n{said[-4_000:]}")
    return done.stdout


def python(*arguments: str) -> str:
    """By the Python of the other machine."""
    path = os.pathsep.join(map(str, (TREE, PACKAGES)))
    interpreter = SYSTEM / "usr" / "bin" / "python3.11"
    return run(
        "qemu-aarch64-static",
        interpreter,
        *arguments,
        cwd=TREE,
        QEMU_LD_PREFIX=str(SYSTEM),
        PYTHONPATH=path,
        PYTHONDONTWRITEBYTECODE="1",
    )


def make_system() -> None:
    if (SYSTEM / "usr" / "bin" / "python3.11").exists():
        return
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
    shutil.rmtree(PACKAGES, ignore_errors=True)
    wheels = WORK / "wheels"
    shutil.rmtree(wheels, ignore_errors=True)
    platforms = [f"--platform={each}_aarch64" for each in ("manylinux2014", "manylinux_2_17", "manylinux_2_28")]
    options = ["--quiet", "--no-deps", "--only-binary=:all:", "--python-version=311", *platforms]
    run(sys.executable, "-m", "pip", "download", *options, "--require-hashes", "-d", wheels, "-r", lock)
    for wheel in sorted(wheels.glob("*.whl")):
        shutil.unpack_archive(wheel, PACKAGES, "zip")
    shutil.copy(lock, stamp)


def build(rustc: str) -> Path:
    target = WORK / "target"
    run(
        *("cargo", "build", "--locked", "--profile", "quick", "--package", "vesper-py", "--target", TARGET),
        *("--manifest-path", ROOT / "direct_runtime" / "Cargo.toml", "--target-dir", target),
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
    shutil.copy(extension, TREE / "vesper" / "_direct.cpython-311-aarch64-linux-gnu.so")


if __name__ == "__main__":
    sys.exit(main())
