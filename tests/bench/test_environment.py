"""On which Python the benchmarks run, and what is said where there is none."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.bench import environment, quick
from tests.bench.environment import Refused, chosen
from vesper.cli.bench.interpreter import Interpreter, interpreter_at, is_profiled, this_interpreter

GOOD = Interpreter("/usr/bin/python3.11", "CPython", "3.11.2", True, ".cpython-311.so", True)
PLAIN = replace(GOOD, executable="/opt/a/python", is_optimised=False)
NEWER = replace(GOOD, executable="/usr/bin/python3.13", version="3.13.1", abi=".cpython-313.so")
OLD = replace(GOOD, executable="/usr/bin/python3.9", version="3.9.18")
OTHER = replace(GOOD, executable="/usr/bin/pypy3", implementation="PyPy", is_optimised=False)
BARE = replace(GOOD, executable="/usr/bin/python3.12", version="3.12.0", has_venv=False)


def choose(found: list[Interpreter], asked: str | None = None, abi: str = GOOD.abi) -> Interpreter:
    known = {each.executable: each for each in found}

    def look(path: str) -> Interpreter:
        if path not in known:
            raise ValueError(f"{path} is no Python")
        return known[path]

    return chosen(asked, abi, lambda: [*known, "/usr/bin/broken"], look)


def test_one_that_the_engine_was_built_for_goes_before_a_newer_one() -> None:
    assert choose([PLAIN, NEWER, OLD, OTHER, BARE, GOOD]) == GOOD
    assert choose([GOOD, NEWER], abi=".cpython-312.so") == NEWER


def test_without_one_it_says_what_it_found_and_what_to_do() -> None:
    with pytest.raises(Refused) as refused:
        choose([PLAIN, OTHER])
    said = str(refused.value)
    assert "/opt/a/python: CPython 3.11.2, not a PGO build" in said
    assert "apt-get install python3" in said
    assert "make bench PYTHON=/path/to/python3" in said


@pytest.mark.parametrize("asked", [PLAIN, OLD, OTHER, BARE], ids=["not optimised", "old", "PyPy", "no venv"])
def test_one_that_was_asked_for_is_taken_or_refused(asked: Interpreter) -> None:
    assert choose([GOOD, asked], GOOD.executable) == GOOD
    with pytest.raises(Refused, match=f"PYTHON={asked.executable} is no CPython"):
        choose([GOOD, asked], asked.executable)


def test_one_that_is_none_is_refused() -> None:
    with pytest.raises(Refused, match="PYTHON=/usr/bin/broken: /usr/bin/broken is no Python"):
        choose([GOOD], "/usr/bin/broken")


@pytest.mark.parametrize(
    "arguments, flags, prefix, is_one",
    [
        ("'--enable-optimizations' '--with-lto'", "", "/opt/python", True),
        ("'--enable-shared'", "-O3 -fprofile-use -fprofile-correction", "/opt/python", True),
        ("'--enable-shared'", "-O3", "/opt/a/.pyenv/versions/3.11.7", False),
        ("'--without-ensurepip'", "-O2", "/usr", True),
    ],
    ids=["configured", "flags", "neither", "a distribution's"],
)
def test_what_tells_an_optimised_build(arguments: str, flags: str, prefix: str, is_one: bool) -> None:
    assert is_profiled(arguments, flags, prefix) is is_one


def test_another_interpreter_says_what_this_one_says_of_itself() -> None:
    assert replace(interpreter_at(sys.executable), executable="") == replace(this_interpreter(), executable="")
    with pytest.raises(ValueError, match="is not Python 3"):
        interpreter_at("/bin/false")


def test_nothing_is_done_twice_and_another_python_makes_it_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[list[str]] = []
    monkeypatch.setattr(environment, "FOLDER", tmp_path)
    monkeypatch.setattr(environment, "STAMP", tmp_path / "made.json")
    monkeypatch.setattr(subprocess, "run", lambda command, **_: ran.append(command))
    environment.make(GOOD, [])
    assert [command[2] for command in ran] == ["venv", "pip", "pip"]
    assert ran[-1][-1].endswith("requirements-quick.txt")
    ran.clear()
    environment.make(GOOD, [])
    assert not ran
    environment.make(GOOD, [environment.RIVALS])
    assert [command[-1].rpartition("/")[2] for command in ran] == ["requirements.txt"]
    ran.clear()
    environment.make(GOOD, [])
    environment.make(GOOD, [environment.RIVALS])
    assert not ran
    environment.make(GOOD, [environment.RIVALS, environment.SERVICE])
    assert [command[-1].rpartition("/")[2] for command in ran] == ["requirements-service.txt"]
    ran.clear()
    environment.make(NEWER, [environment.RIVALS])
    assert [command[2] for command in ran] == ["venv", "pip", "pip", "pip"]


def test_every_requirement_is_pinned() -> None:
    for path in environment.BENCH.glob("requirements*.txt"):
        lines = path.read_text(encoding="utf-8").splitlines()
        wanted = [line for line in lines if not line.startswith("#")]
        assert wanted
        assert all(line.count("==") == 1 for line in wanted), path.name


def test_the_quick_one_refuses_a_python_that_is_not_optimised(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(quick, "this_interpreter", lambda: PLAIN)
    monkeypatch.setattr(sys, "argv", ["quick.py"])
    assert quick.main() == 1
    told = capsys.readouterr()
    assert not told.out
    assert "not a PGO build" in told.err
    assert "PYTHON=" in told.err
