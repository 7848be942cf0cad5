"""A sample of the attacks on the dashboard, and whether they would notice a page that does not escape."""

from __future__ import annotations

from pathlib import Path

from tests.proofs.web.attacks import read_page, run_attacks
from tests.proofs.web.hostile_project import MARK, payloads


def test_a_sample_of_attacks_is_refused(tmp_path: Path) -> None:
    report = run_attacks(tmp_path, 4, max_crawled=25, is_sample=True)
    assert report.successes == []
    assert report.shown > 5, "the project has no payloads on its pages"
    assert {"cookie", "fixation", "forgery", "framing", "path", "role", "stored script"} <= report.tried.keys()


def test_payloads_are_noticed_where_a_page_does_not_escape_them() -> None:
    found = payloads(200)
    assert len(set(found)) == 200
    assert all(MARK in each for each in found)
    noticed = [each for each in found if read_page(f'<p title="{each}">{each}</p>')[0]]
    assert len(noticed) > 150
    assert read_page('<form action="//evil.example"></form>')[0]
    assert read_page("<script>alert(1)</script>")[0]
    assert not read_page('<a href="/nodes/x?y=%3Cvspr%3E" title="&lt;vspr&gt;">&lt;vspr&gt;</a>')[0]
