"""Every `.console` file beside this one, and every ```console block of the documentation, run as written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.console import ROOT, Command, markdown_sessions, parse_session, run_session

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SESSIONS = [
    *(
        (path.stem, parse_session(path.read_text(encoding="utf-8")))
        for path in sorted(Path(__file__).parent.glob("*.console"))
    ),
    *(
        (f"{path.relative_to(ROOT)}:{session[0].line}", session)
        for path in PAGES
        for session in markdown_sessions(path)
        if session
    ),
]


@pytest.mark.parametrize("name, session", SESSIONS, ids=[name for name, _ in SESSIONS])
def test_session(name: str, session: list[Command], tmp_path: Path) -> None:
    del name
    run_session(session, tmp_path)


def test_a_session_that_is_wrong_fails(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="instead of"):
        run_session(parse_session("$ vesper --version\nvesper 99"), tmp_path)
