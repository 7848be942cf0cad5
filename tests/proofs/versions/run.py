"""The reference path on every Python that is here, and under odd settings of the host: `make test-pythons`.

    python3 tests/proofs/versions/run.py [--only 3.12] [--part tests|decimals|settings]

For each Python from 3.11 on it makes `.venv-3.X` from requirements-dev.lock (with hashes) and runs, without the Rust
extension: the tests of the reference path, the General Decimal Arithmetic cases, and fingerprints of all nodes, which
must be the same on all of them and under every setting. Uses nothing but the standard library.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[3]
OLDEST, NEWEST = 11, 15
SUPPORTED = ("3.11", "3.12", "3.13")
PARTS = ("tests", "decimals", "settings")
TESTS = (
    "tests/conformance",
    "tests/unit/codegen/test_generated_python.py",
    "tests/unit/kernels",
    "tests/unit/values",
    "tests/unit/engines/test_inputs.py",
    "tests/unit/engines/test_inputs_of_other_types.py",
    "tests/proofs/versions/test_reference_path.py",
)
DESELECTED = (
    # They start processes or look for the second engine: nothing of the reference path alone.
    "tests/unit/codegen/test_generated_python.py::test_an_engine_without_code_positions_says_so",
)
LOCALE = "tr_TR.UTF-8"


@dataclass(frozen=True)
class Setting:
    """How a process is started, and what it does to itself (`ambient.py`)."""

    name: str
    environment: tuple[tuple[str, str], ...] = ()
    flags: tuple[str, ...] = ()
    ambient: str = ""


PLAIN = Setting("plain")
SETTINGS = (
    Setting("decimal context of 3 digits", ambient="decimal-context"),
    Setting("Turkish locale", (("LC_ALL", LOCALE),), ambient="locale"),
    Setting(
        "C locale, no UTF-8", (("LC_ALL", "C"), ("PYTHONUTF8", "0"), ("PYTHONCOERCECLOCALE", "0")), ambient="locale"
    ),
    Setting("TZ Pacific/Kiritimati", (("TZ", "Pacific/Kiritimati"),)),
    Setting("random hash seed", (("PYTHONHASHSEED", "random"),)),
    Setting("-O", flags=("-O",)),
    Setting("-X dev", flags=("-X", "dev")),
)
ALL_ODD = Setting(
    "all of them",
    (("LC_ALL", LOCALE), ("TZ", "Pacific/Kiritimati"), ("PYTHONHASHSEED", "random")),
    flags=("-X", "dev"),
    ambient="decimal-context locale",
)


def pythons() -> dict[str, Path]:
    """The interpreters that are here, by version; of several of one version the first on PATH."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found: dict[str, Path] = {}
    for minor in range(OLDEST, NEWEST + 1):
        version = f"3.{minor}"
        on_path = shutil.which(f"python{version}")
        candidates = [Path(sys.executable), *([Path(on_path)] if on_path else [])]
        candidates += sorted(root.glob(f"versions/{version}.*/bin/python{version}"))
        for candidate in candidates:
            # A shim of pyenv may be there without an interpreter behind it.
            asked = subprocess.run(
                [candidate, "-c", "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"],
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            if asked.returncode == 0 and asked.stdout.strip() == version:
                found[version] = candidate
                break
    return found


def environment(setting: Setting, locales: Path | None) -> dict[str, str]:
    odd = {"LC_ALL", "LC_CTYPE", "LANG", "TZ", "PYTHONHASHSEED", "PYTHONUTF8", "PYTHONPATH", "PYTHONOPTIMIZE"}
    kept = {name: value for name, value in os.environ.items() if name not in odd}
    if locales is not None:
        kept["LOCPATH"] = str(locales)
    return kept | {"PYTHONPATH": str(ROOT), "VESPER_TEST_AMBIENT": setting.ambient} | dict(setting.environment)


def turkish_locale(folder: Path) -> Path | None:
    """A folder with the locale, made there if the system has none; None where it has it."""
    listed = subprocess.run(["locale", "-a"], capture_output=True, text=True, check=False).stdout.lower()
    if "tr_tr.utf8" in listed or "tr_tr.utf-8" in listed:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / LOCALE).exists():
        made = subprocess.run(
            ["localedef", "-i", "tr_TR", "-f", "UTF-8", str(folder / LOCALE)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        # It warns with 1 and still writes; what counts is what is there.
        if not (folder / LOCALE).exists():
            raise SystemExit(f"error: no locale {LOCALE}, and localedef cannot make it: {made.stderr.strip()}")
    return folder


def venv(version: str, python: Path) -> Path:
    folder = ROOT / f".venv-{version}"
    stamp = folder / ".dependencies"
    lock = ROOT / "requirements-dev.lock"
    if not stamp.exists() or stamp.stat().st_mtime < lock.stat().st_mtime:
        subprocess.run([python, "-m", "venv", "--clear", folder], check=True)
        pip: list[str | Path] = [
            folder / "bin/python",
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ]
        subprocess.run([*pip, "--require-hashes", "--no-deps", "-r", lock], check=True)
        stamp.touch()
    return folder / "bin" / "python"


@dataclass
class Run:
    """Everything on one Python; `problems` is empty where all went well."""

    version: str
    python: Path
    locales: Path | None
    problems: list[str] = field(default_factory=list)

    def process(self, setting: Setting, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.python, *setting.flags, "-m", *arguments],
            cwd=ROOT, env=environment(setting, self.locales), capture_output=True, text=True, encoding="utf-8",
            errors="backslashreplace", check=False,
        )  # fmt: skip

    def say(self, what: str, result: str, is_fine: bool) -> None:
        if not is_fine:
            self.problems.append(f"{self.version} {what}")
        print(f"  {self.version}  {what:<46}{'' if is_fine else 'FAILED '}{result}", flush=True)

    def tests(self) -> None:
        for setting in (PLAIN, ALL_ODD):
            skipped = [f"--deselect={each}" for each in DESELECTED]
            options = ["-p", "tests.proofs.versions.reference_only", "-p", "no:cacheprovider", "-q", "--no-header"]
            done = self.process(setting, "pytest", *options, *skipped, *TESTS)
            last = done.stdout.strip().splitlines()[-1] if done.stdout.strip() else done.stderr.strip()
            self.say(f"tests, {setting.name}", last, done.returncode == 0)
            if done.returncode != 0:
                print(done.stdout[-6000:], done.stderr[-2000:])

    def decimals(self) -> None:
        done = self.process(PLAIN, "tests.proofs.decimal_cases.run", "--reference-only")
        counts = re.search(r"\d+ files.*agreed", done.stdout)
        self.say("decimal cases", counts[0] if counts else done.stderr.strip()[-300:], done.returncode == 0)

    def fingerprint(self, setting: Setting, *options: str) -> str | None:
        """The lines of all nodes; None where it failed."""
        done = self.process(setting, "tests.proofs.versions.fingerprint", *options)
        if done.returncode != 0:
            self.say(f"fingerprint, {setting.name}", done.stderr.strip()[-1500:], False)
            return None
        return done.stdout


def difference(expected: str, found: str) -> str | None:
    """What differs, without the lines that begin with `#`."""
    left, right = ([line for line in text.splitlines() if not line.startswith("#")] for text in (expected, found))
    if left == right:
        return None
    names = [a.split()[1] for a, b in zip(left, right, strict=False) if a != b]
    return f"differs: {', '.join(names[:8])}{' …' if len(names) > 8 else ''}" if names else "other nodes"


def summary(printed: str) -> str:
    return next(line[2:] for line in printed.splitlines() if line.startswith("# cases="))


def main() -> int:
    parser = argparse.ArgumentParser(description="the reference path on every Python here")
    parser.add_argument("--only", help="one version, such as 3.12")
    parser.add_argument("--part", choices=PARTS, help="only this part")
    arguments = parser.parse_args()
    here = {v: p for v, p in pythons().items() if arguments.only in (None, v)}
    parts = PARTS if arguments.part is None else (arguments.part,)
    absent = [version for version in SUPPORTED if version not in here]
    print(f"Pythons here: {', '.join(here) or 'none'}; not here: {', '.join(absent) or 'none'}")
    if not here:
        print("error: no Python from 3.11 on with venv was found", file=sys.stderr)
        return 1
    start = time.monotonic()
    locales = turkish_locale(ROOT / ".vesper" / "locales")
    runs = [Run(version, venv(version, python), locales) for version, python in here.items()]
    everything: str | None = None
    sample: str | None = None
    for run in runs:
        if "decimals" in parts:
            run.decimals()
        if "tests" in parts:
            run.tests()
        if "settings" not in parts:
            continue
        printed = run.fingerprint(PLAIN)
        if printed is not None:
            everything = everything or printed
            problem = difference(everything, printed)
            run.say("fingerprint of all nodes, plain", problem or summary(printed), problem is None)
        for setting in (PLAIN, *SETTINGS):
            printed = run.fingerprint(setting, *SAMPLE)
            if printed is not None:
                sample = sample or printed
                problem = difference(sample, printed)
                run.say(f"fingerprint of a sample, {setting.name}", problem or summary(printed), problem is None)
    problems = [problem for run in runs for problem in run.problems]
    print(f"{len(runs)} Pythons, {time.monotonic() - start:.0f} s: {'; '.join(problems) or 'all the same'}")
    return 1 if problems else 0


SAMPLE = ("--every", "9", "--programs", "6", "--inputs", "20")
"""For the settings: a few seconds each."""


if __name__ == "__main__":
    sys.exit(main())
