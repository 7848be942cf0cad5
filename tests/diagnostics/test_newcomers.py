"""Mistakes of newcomers, each as a small node: what a check reports, and what `--fix` makes of it.

The first line of a file says what a perfect message has. The `.snap` beside it holds the diagnostics and the lines that
`--fix` changes. A file whose errors all have safe fixes must check clean after them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.goldens import Golden
from vesper.cli.check.fixing import repair_file
from vesper.compiler import compile_source
from vesper.compiler.fixing import safe_fixes, with_proved_fixes
from vesper.language.diagnostics.diagnostic import Severity
from vesper.language.diagnostics.render.full import render_full
from vesper.language.diagnostics.source import SourceFile

FILES = sorted((Path(__file__).parent / "newcomers").glob("*.vsp"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_mistake(path: Path, golden: Golden, tmp_path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# wants: ")
    _, bag = compile_source(SourceFile(path.name, text))
    found = with_proved_fixes(bag.source, bag.sorted())
    assert found, "a mistake that is not reported"
    assert all(each.help for each in found), "a message without a remedy"
    shown = [render_full(bag.source, each) for each in found]
    copy = tmp_path / path.name
    copy.write_text(text, encoding="utf-8")
    repaired = repair_file(copy, SourceFile(copy.as_posix(), text), bag.sorted())
    before, after = text.splitlines(), repaired.source.text.splitlines()
    assert len(before) == len(after)
    changed = [f"{number}: {new}" for number, (old, new) in enumerate(zip(before, after, strict=True), 1) if old != new]
    golden.check(path.with_suffix(".snap"), "\n\n".join([*shown, "\n".join(["fixed:", *changed])]) + "\n")
    errors = [each for each in found if each.severity is Severity.ERROR]
    if errors and len(safe_fixes(found)) >= len(errors):
        assert not repaired.is_wrong, "fixes that do not repair the node"


def test_there_are_sixty() -> None:
    assert len(FILES) >= 60
