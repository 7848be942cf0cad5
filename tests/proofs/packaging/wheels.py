"""`make wheels`: a source distribution, a wheel for each Python that is here, and a smoke test of each installed.

    python tests/proofs/packaging/wheels.py [--only 3.12] [--machine aarch64]

zig links the wheels of Linux against glibc 2.28 (`manylinux_2_28`), whatever glibc is here. A wheel for another machine
is built for every supported Python without its interpreter; its files are checked and it is not run. That needs the
standard library of Rust for the machine: `rustup target add`, else Debian's compiler as in `aarch64.py`.

The wheels are built from the unpacked source distribution, so that what it lacks is noticed and nothing of the working
folder slips in. Each is installed into a fresh environment: the dependencies from `requirements.lock` with hashes,
Vesper from the file and from nowhere else. `smoke.py` then runs outside the repository, with a PATH on which there is
no Rust. Files go to `dist/`; a clean run on every supported version writes `docs/proofs/wheels.json`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

from tests.proofs.packaging.aarch64 import usual_compiler  # noqa: E402  # after the path is set
from tests.proofs.packaging.contents import extension_problems, sdist_problems, wheel_problems  # noqa: E402
from tests.proofs.robustness.proof import PROOFS, engine_hash, whole_hash, write_json  # noqa: E402
from tests.proofs.versions.run import NEWEST, OLDEST, SUPPORTED  # noqa: E402

NAME = "wheels"
DIST = ROOT / "dist"
TOOLS = ("cargo", "rustc", "maturin")
ZIG = ROOT / ".proofs" / NAME / "tools"
PLATFORM = "manylinux_2_28"
HERE = platform.machine()
MACHINES = ("x86_64", "aarch64")


class Failed(Exception):
    """A step that did not work; what it printed is the message."""


def run(command: list[str | Path], **options: Any) -> str:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options)
    if done.returncode != 0:
        raise Failed(f"`{' '.join(str(each) for each in command)}` ended with {done.returncode}:\n{done.stdout}")
    return str(done.stdout)


def interpreters(only: str | None) -> list[tuple[str, str, Path]]:
    """Minor version, whole version and path of every CPython that is here, two of one minor version too."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found: dict[Path, tuple[str, str, Path]] = {}
    for minor in range(OLDEST, NEWEST + 1):
        name = f"python3.{minor}"
        folders = [Path(each) for each in os.get_exec_path()] + sorted(root.glob(f"versions/3.{minor}.*/bin"))
        for candidate in [folder / name for folder in folders if (folder / name).is_file()]:
            script = (
                "import sys, venv, ensurepip, platform as p\n"
                "print(p.python_implementation(), p.python_version(), sys.prefix == sys.base_prefix, sys.executable)"
            )
            asked = subprocess.run([candidate, "-c", script], capture_output=True, text=True, check=False)
            if asked.returncode != 0:
                continue  # a shim without an interpreter behind it, or one that cannot make environments
            kind, version, is_base, path = asked.stdout.split(maxsplit=3)
            if (kind, is_base) == ("CPython", "True"):
                real = Path(path.strip()).resolve()
                found.setdefault(real, (f"3.{minor}", version, Path(path.strip())))
    return [each for each in found.values() if only is None or each[0] == only]


def make_sdist(maturin: Path) -> Path:
    run([maturin, "sdist", "--out", DIST], cwd=ROOT)
    (path,) = DIST.glob("vesper-*.tar.gz")
    with tarfile.open(path) as archive:
        names = [member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()]
    refuse(path, sdist_problems(names))
    return path


def make_zig() -> Path:
    """Return the folder of programs of an environment with zig."""
    if not any(ZIG.glob("lib/python3*/site-packages/ziglang/zig")):
        run([sys.executable, "-m", "venv", "--clear", ZIG])
        pip: list[str | Path] = [ZIG / "bin" / "python", "-m", "pip", "install", "--quiet", "--require-hashes", "-r"]
        run([*pip, Path(__file__).with_name("requirements-wheels.txt")])
    return ZIG / "bin"


def build_options(machine: str, python: Path | str) -> list[str | Path]:
    """Return the options of maturin for a wheel of Linux."""
    target = f"{machine}-unknown-linux-gnu"
    options: list[str | Path] = ["--release", "--locked", "--interpreter", python, "--out", DIST]
    return [*options, "--zig", "--target", target, "--compatibility", PLATFORM]


def make_wheel(maturin: Path, source: Path, python: Path | str, tag: str, machine: str) -> Path:
    environment = {key: value for key, value in os.environ.items() if key != "PYO3_PYTHON"}
    environment |= {
        "CARGO_TARGET_DIR": str(ROOT / "direct_runtime" / "target" / NAME),
        "PATH": f"{make_zig()}{os.pathsep}{environment['PATH']}",
    }
    if machine != HERE:
        environment["RUSTC"] = usual_compiler()
    run([maturin, "build", *build_options(machine, python)], cwd=source, env=environment)
    (path,) = DIST.glob(f"vesper-*-{tag}-{tag}-{PLATFORM}_{machine}.whl")
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/")]
        refuse(path, wheel_problems(names, tag))
        (extension,) = (name for name in names if name.endswith(".so"))
        refuse(path, extension_problems(archive.read(extension), machine, PLATFORM))
    return path


def refuse(path: Path, problems: list[str]) -> None:
    if problems:
        raise Failed(f"{path.name} does not hold what it should:\n  " + "\n  ".join(problems))


def path_without_rust(environment: Path) -> str:
    """A PATH of folders without a tool that could build anything."""
    folders = [environment / "bin", *(Path(each) for each in os.get_exec_path())]
    return os.pathsep.join(str(each) for each in folders if not any((each / tool).exists() for tool in TOOLS))


def smoke(wheel: Path, python: Path, folder: Path) -> dict[str, Any]:
    """Install into a fresh environment and run the smoke test; what it printed."""
    run([python, "-m", "venv", folder / "venv"])
    own = folder / "venv" / "bin" / "python"
    pip: list[str | Path] = [own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    bare = {
        "PATH": path_without_rust(folder / "venv"),
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        **{name: value for name, value in os.environ.items() if name.startswith("PIP_") or name.endswith("_proxy")},
    }
    # Where packages come from may be said in pip's own files, which are found through the home folder.
    with_home = bare | {"HOME": str(Path.home())}
    run([*pip, "--only-binary", ":all:", "--require-hashes", "-r", ROOT / "requirements.lock"], env=with_home)
    run([*pip, "--no-index", wheel], env=bare, cwd=folder)
    # The lock was installed without asking any package what it needs: whether all of it is there, is asked now.
    checked = run([own, "-m", "pip", "check"], env=bare, cwd=folder)
    script = shutil.copy(Path(__file__).with_name("smoke.py"), folder)
    printed = run([own, "-I", script], env=bare, cwd=folder)
    told: dict[str, Any] = json.loads(printed.splitlines()[-1])
    return told | {"pip_check": checked.strip()}


def tag_of(minor: str) -> str:
    return f"cp{minor.replace('.', '')}"


def make_foreign(machine: str, versions: list[str]) -> int:
    """Build wheels for another machine beside those of `dist/`, and check their files."""
    maturin = Path(sys.executable).with_name("maturin")
    try:
        with tempfile.TemporaryDirectory() as scratch:
            for each in DIST.glob("vesper-*.tar.gz"):
                each.unlink()
            with tarfile.open(make_sdist(maturin)) as archive:
                archive.extractall(scratch, filter="data")
            (source,) = Path(scratch).iterdir()
            for minor in versions:
                wheel = make_wheel(maturin, source, f"python{minor}", tag_of(minor), machine)
                print(f"{minor:<8} {wheel.stat().st_size // 1024:>6} KiB  {wheel.name}  not run: {machine}", flush=True)
    except Failed as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 1
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="3.X", help="this minor version alone")
    parser.add_argument("--machine", choices=MACHINES, default=HERE, help="machine of the wheels; this one by default")
    asked = parser.parse_args()
    if asked.machine != HERE:
        return make_foreign(asked.machine, [each for each in SUPPORTED if asked.only in (None, each)])
    found = interpreters(asked.only)
    if not found:
        print("error: no CPython with venv was found on PATH or among pyenv's versions", file=sys.stderr)
        return 1
    shutil.rmtree(DIST, ignore_errors=True)
    maturin = Path(sys.executable).with_name("maturin")
    begun = time.monotonic()
    rows: list[dict[str, Any]] = []
    sources = {"source_hash": whole_hash(), "engine_hash": engine_hash()}
    try:
        with tempfile.TemporaryDirectory() as scratch:
            sdist = make_sdist(maturin)
            with tarfile.open(sdist) as archive:
                archive.extractall(scratch, filter="data")
            (source,) = Path(scratch).iterdir()
            wheels: dict[str, Path] = {}
            for minor, version, python in found:
                if minor not in wheels:
                    wheels[minor] = make_wheel(maturin, source, python, tag_of(minor), HERE)
                with tempfile.TemporaryDirectory() as folder:
                    told = smoke(wheels[minor], python, Path(folder))
                wheel = wheels[minor]
                row = {"python": version, "wheel": wheel.name, "kib": wheel.stat().st_size // 1024}
                rows.append(row | {"decimals": told["decimals"], "pip_check": told["pip_check"]})
                shown = f"decimals by {told['decimals']}; pip check: {told['pip_check']}"
                print(f"{version:<8} {row['kib']:>6} KiB  {wheel.name}  {shown}", flush=True)
    except Failed as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 1
    proof = {
        **sources,
        "machine": platform.machine(),
        "sdist": {"name": sdist.name, "kib": sdist.stat().st_size // 1024},
        "installed_and_smoke_tested": rows,
        "elapsed_seconds": round(time.monotonic() - begun, 1),
    }
    missing = [version for version in SUPPORTED if version not in wheels]
    if missing:
        why = "there is no such Python here" if asked.only is None else f"{asked.only} alone was asked for"
        print(f"not tested, because {why}: {', '.join(missing)}")
    else:
        write_json(PROOFS / f"{NAME}.json", proof)
    print(f"{sdist.name}: {proof['sdist']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
