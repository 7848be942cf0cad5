"""The Python of every node is what a reviewer's tools accept: formatted, linted without configuration, typed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.nodes import ROOT, compiled, worked_nodes, written_for_tests
from vesper.codegen.layout.lines import WIDTH
from vesper.codegen.module import generate_module

NODES = [*worked_nodes(), *written_for_tests()]
LAYOUT = ("--isolated", "--line-length", str(WIDTH), "--target-version", "py311")
MORE_RULES = "B,C4,E,F,I,PERF,PIE,PLE,PLW,RET,SIM,UP,W"
IGNORED = {
    "B023": "a strand ends within the round whose number it reads",
    "RUF034": "two broken clauses may have one message",
    "E501": "a string or a comment of one word cannot be broken; the test of the width has the rest",
    "PLW0108": "the operation stands in the lambda, so that its failure has a place",
    "SIM108": "rows of a decision table stay branches",
}

# `"text",` or `"key": "text",` or a comment of one word: nothing in it is a place to break it.
ONE_STRING = re.compile(r""" *#   \S+| *("\w+": |\w+(: Final\[str\])? = |else )?("([^"\\]|\\.)*"|'([^'\\]|\\.)*'),?""")


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *map(str, command)], cwd=ROOT, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package with the module of every node."""
    folder = tmp_path_factory.mktemp("clean") / "generated"
    folder.mkdir()
    (folder / "__init__.py").touch()
    for path in NODES:
        text = generate_module(compiled(path.relative_to(ROOT)).node).text
        (folder / f"{path.stem}.py").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(autouse=True)
def at_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def test_modules_are_formatted(generated: Path) -> None:
    done = run("ruff", "format", "--diff", "--no-cache", *LAYOUT, generated)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(NODES) + 1} files already formatted" in done.stderr


def test_modules_are_within_the_width(generated: Path) -> None:
    """Only a string that stands alone on its line may be longer, and a long word of a comment."""
    too_long = [
        f"{path.name}:{number}: {line}"
        for path in sorted(generated.glob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > WIDTH and not ONE_STRING.fullmatch(line)
    ]
    assert not too_long, "\n".join(too_long)


def test_modules_are_clean_under_the_default_rules(generated: Path) -> None:
    done = run("ruff", "check", "--isolated", "--no-cache", "--ignore", "B023,RUF034", generated)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "noqa" not in "".join(path.read_text(encoding="utf-8") for path in generated.glob("*.py"))


def test_modules_are_clean_under_more_rules(generated: Path) -> None:
    rules = ("--select", MORE_RULES, "--ignore", ",".join(IGNORED))
    done = run("ruff", "check", "--isolated", "--no-cache", *rules, generated)
    assert done.returncode == 0, done.stdout + done.stderr


def test_modules_are_typed(generated: Path) -> None:
    done = run("mypy", "--config-file", ROOT / "pyproject.toml", generated)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"no issues found in {len(NODES) + 1} source files" in done.stdout


def test_modules_can_be_imported_without_an_engine(generated: Path) -> None:
    names = [path.stem for path in NODES]
    code = (
        "import importlib, sys; sys.path.insert(0, sys.argv[1])\n"
        "for name in sys.argv[2:]:\n"
        "    module = importlib.import_module(f'generated.{name}')\n"
        "    assert callable(module.call) and callable(getattr(module, name)), name\n"
        "assert not [name for name in sys.modules if name.startswith('vesper.engines')]\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(generated.parent), *names],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
