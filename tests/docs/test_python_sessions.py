"""Every ```pycon block of the documentation, run as written: the blocks of a page are one session.

A session runs in a folder with the files that the page gives and the example node, as console sessions do. A blank
line ends what is expected, as in any doctest.
"""

from __future__ import annotations

import doctest
import re
import shutil
from pathlib import Path

import pytest

from tests.support.console import ROOT, markdown_files
from vesper.effects.custom.registry import REGISTRY

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_BLOCK = re.compile(r"^```pycon\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SESSIONS = [path for path in PAGES if _BLOCK.search(path.read_text(encoding="utf-8"))]


def session_of(text: str) -> str:
    """The blocks of a page at their lines, and nothing else: so a failure names the line of the page."""
    kept = ["\n"] * (text.count("\n") + 1)
    for block in _BLOCK.finditer(text):
        first = text.count("\n", 0, block.start(1))
        kept[first : first + block[1].count("\n")] = block[1].splitlines(keepends=True)
    return "".join(kept)


def run(text: str, name: str) -> str:
    """What went wrong, or nothing."""
    test = doctest.DocTestParser().get_doctest(session_of(text), {}, name, name, 0)
    assert test.examples
    report: list[str] = []
    before = REGISTRY.all()
    doctest.DocTestRunner(verbose=False).run(test, out=report.append)
    for effect in REGISTRY.all().keys() - before.keys():
        REGISTRY.remove(effect)
    return "".join(report)


@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_session(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, body in markdown_files(path).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(body, encoding="utf-8")
    (tmp_path / "nodes" / "payments").mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "nodes/payments/payment_decision_v1.vsp", tmp_path / "nodes/payments")
    monkeypatch.delenv("VESPER_NODES", raising=False)
    monkeypatch.chdir(tmp_path)
    failures = run(path.read_text(encoding="utf-8"), path.name)
    assert not failures, failures


def test_a_session_that_is_wrong_fails_at_its_line() -> None:
    found = run("# Page\n\n```pycon\n>>> x = 1\n\n```\n\nText\n\n```pycon\n>>> x + 1\n3\n\n```\n", "page.md")
    assert 'File "page.md", line 11' in found
    assert "Expected:\n    3\nGot:\n    2" in found


def test_there_is_a_page_for_users_of_python() -> None:
    assert ROOT / "docs" / "how-to" / "use-from-python.md" in SESSIONS
