"""What bad input gets: exit code 1, a code, the right line, a caret, and help that says what to do.

Each file has one thing wrong with it and what `vesper check` says of it beside it, in a `.snap`; `make update` rewrites
those. Read them as an author would. What no file of the repository should be (large, or nested without end) is made
here.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.support.goldens import Golden
from tests.support.waiting import processor_seconds
from vesper.cli.main import vesper
from vesper.compiler import compile_file
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import Diagnostic

HERE = Path(__file__).parent
FILES = sorted(HERE.glob("*.vsp"))
LEVELS = 100_000
_SECONDS = 5.0
"""No bad file takes longer; most take milliseconds."""


def _checked(path: Path) -> Result:
    return CliRunner().invoke(vesper, ["check", path.name, "--no-cache"])


def _says_what_to_do(diagnostic: Diagnostic) -> bool:
    """A help line; a second place that shows the other half; or a headline that says it itself."""
    return bool(
        diagnostic.help or diagnostic.secondary or diagnostic.headline.startswith(("expected", "a compute step"))
    )


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_bad_file(path: Path, golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)
    result = _checked(path)
    assert result.exit_code == 1
    assert result.stdout.startswith("1 node checked, 1 with errors")
    golden.check(path.with_suffix(".snap"), result.stderr)
    compiled, bag = compile_file(Path(path.name))
    assert compiled is None
    unkind = [each.headline for each in bag.sorted() if not _says_what_to_do(each)]
    assert not unkind, "an error that does not say what to do"


def _made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> Diagnostic:
    """The one thing that a check says of a file with this text, quickly."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "made_v1.vsp"
    path.write_text(text, encoding="utf-8")
    with processor_seconds(_SECONDS):
        result = _checked(path)
    assert result.exit_code == 1, result.output
    _, bag = compile_file(path)
    *refused, diagnostic = bag.sorted()
    assert all(each.code is Code.YAML_FEATURE for each in refused)
    assert diagnostic.code.number in result.stderr
    assert diagnostic.help is not None
    return diagnostic


def test_ten_megabytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    diagnostic = _made(tmp_path, monkeypatch, "node_id: made_v1\nintent: " + "x" * 10_000_000)
    assert diagnostic.code is Code.UNREADABLE_FILE


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? ", "{? "])
def test_levels_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opening: str) -> None:
    diagnostic = _made(tmp_path, monkeypatch, opening * LEVELS + "\nnode_id: made_v1\n")
    assert diagnostic.code in (Code.TOO_DEEP, Code.YAML_FEATURE)


def test_levels_of_a_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Indentation costs a square: so many levels as fit the largest file."""
    text = "".join(f"{' ' * level}a:\n" for level in range(1_400)) + "node_id: made_v1\n"
    assert _made(tmp_path, monkeypatch, text).code is Code.TOO_DEEP


@pytest.mark.parametrize("opening", ["(", "NOT ", "- ", "IF ", "["])
def test_levels_of_an_expression(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opening: str) -> None:
    text = f"""node_id: made_v1
type: function
intent: Deep
outputs:
  success: {{r: boolean}}
flow:
  - operation: return
    success: {{r: "{opening * 5_000}"}}
"""
    assert _made(tmp_path, monkeypatch, text).code is Code.TOO_DEEP
