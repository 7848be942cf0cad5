"""Every `.console` file beside this one, and every ```console block of the documentation, run as written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.console import ROOT, Command, markdown_files, markdown_sessions, parse_session, run_session
from vesper.compiler import compile_file
from vesper.language.diagnostics.diagnostic import Severity
from vesper.verify.differential.forms import COMPARED
from vesper.verify.differential.verifier import Verifier

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SESSIONS = [
    *(
        (path.stem, parse_session(path.read_text(encoding="utf-8")), {})
        for path in sorted(Path(__file__).parent.glob("*.console"))
    ),
    *(
        (f"{path.relative_to(ROOT)}:{session[0].line}", session, markdown_files(path))
        for path in PAGES
        for session in markdown_sessions(path)
        if session
    ),
]


@pytest.mark.parametrize("session, files", [each[1:] for each in SESSIONS], ids=[each[0] for each in SESSIONS])
def test_session(session: list[Command], files: dict[str, str], tmp_path: Path) -> None:
    run_session(session, tmp_path, files)


GIVEN = [
    (path.stem, name, body)
    for path in PAGES
    for name, body in markdown_files(path).items()
    if name.endswith(".vsp") and not body.startswith("library_id:")
]


@pytest.mark.parametrize("page, name", [each[:2] for each in GIVEN], ids=[each[1] for each in GIVEN])
def test_a_node_of_a_page_passes_its_cases(page: str, name: str, tmp_path: Path) -> None:
    for path in PAGES:
        if path.stem == page:
            for file, body in markdown_files(path).items():
                (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
                (tmp_path / file).write_text(body, encoding="utf-8")
    compiled, bag = compile_file(tmp_path / name)
    assert compiled is not None, [each.headline for each in bag.sorted()]
    # The form that an agent is lowered to has values that nothing uses.
    assert not [each.headline for each in bag.sorted() if each.severity is Severity.ERROR or "_steps_" not in name]
    report = Verifier(compiled, COMPARED, seed=1).run(50)
    assert report.passed
    assert bool(report.cases) == any("test_cases:" in body for on, file, body in GIVEN if (on, file) == (page, name))


def test_a_session_that_is_wrong_fails(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="instead of"):
        run_session(parse_session("$ vesper --version\nvesper 99"), tmp_path)
