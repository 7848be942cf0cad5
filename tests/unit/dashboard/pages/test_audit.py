"""The page of the audit log: search, verification, export."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.dashboard import TestClient, client_of, context_for
from tests.support.journal_file import run_statement
from tests.support.journalled import Place, a_place, invoke, node_text
from vesper.dashboard.access.caller import Role
from vesper.dashboard.app import whole_site
from vesper.dashboard.page import BadRequest
from vesper.dashboard.pages.audit import log as log_page
from vesper.dashboard.pages.audit import verification
from vesper.dashboard.pages.audit.log import AuditLogView, read_log
from vesper.dashboard.pages.audit.verification import verify
from vesper.dashboard.stores import Stores
from vesper.journal.entry import AuditEvent
from vesper.journal.journal import Journal, JournalError, open_journal

SITE = whole_site(["vesper.dashboard.pages.audit"])


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.chdir(tmp_path)
    with a_place(tmp_path, "sqlite:journal.db") as found:
        yield found


def write(place: Place, count: int, **fields: object) -> None:
    with place.journal() as journal:
        journal.audit(
            [
                AuditEvent(1_000_000 * number, f"e{number}", f"charge_v{number % 2 + 1}", "basic", "charge", fields)
                for number in range(1, count + 1)
            ]
        )


def read(place: Place, **query: str) -> AuditLogView:
    stores = Stores(place.config)
    try:
        return read_log(context_for(stores, query))
    finally:
        stores.close()


def test_lines_are_searched_newest_first(place: Place) -> None:
    write(place, 6)
    write(place, 1, by="zoe", said='<b>"bold"</b>', result="done")
    model = read(place)
    assert [each.seq for each in model.found] == [7, 6, 5, 4, 3, 2, 1]
    assert (model.lines, model.is_keyed, model.next, model.verification) == (7, False, None, None)
    assert (model.found[0].person, model.found[0].result) == ("zoe", "done")
    assert [each.seq for each in read(place, node="charge_v1").found] == [6, 4, 2]
    assert len(read(place, node="charge").found) == 7
    assert [each.seq for each in read(place, person="zoe").found] == [7]
    assert [each.seq for each in read(place, text='<b>"bold"').found] == [7]
    assert [each.seq for each in read(place, since="1970-01-01T00:00:03Z", until="1970-01-01T00:00:05Z").found] == [
        4,
        3,
    ]
    assert read(place, action="refund").found == ()
    for bad in ({"since": "yesterday"}, {"before": "0"}, {"before": "x"}, {"text": "x" * 500}):
        with pytest.raises(BadRequest):
            read(place, **bad)


def test_a_page_looks_at_a_bounded_part_of_the_log(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    write(place, 2_500)
    monkeypatch.setattr(log_page, "_MAX_SEARCHED", 2_000)
    first = read(place, text="e123456")
    assert (first.found, first.searched, first.searched_to) == ((), 2_000, 501)
    assert first.next == "?text=e123456&before=501"
    assert read(place, text="e123456", before="501").next is None
    assert read(place, text="e77", before="501").found[-1].seq == 77
    pages = read(place), read(place, before="2451")
    assert [each.found[0].seq for each in pages] == [2500, 2450]
    assert [len(each.found) for each in pages] == [50, 50]


def test_lines_that_are_gone_are_named(place: Place) -> None:
    write(place, 2_500)
    run_statement(place.folder / "journal.db", "DELETE FROM vesper_audit WHERE seq BETWEEN 400 AND 1600 RETURNING 1")
    with pytest.raises(JournalError, match="lines 501 to 1500 of the audit log are missing"):
        read(place, text="e9999")


def verified(client: TestClient) -> dict[str, object]:
    assert client.post("/audit/verify", data={}, follow_redirects=False).status_code == 303
    while (found := client.get("/api/audit").json()["verification"])["ended_us"] is None:
        time.sleep(0.01)
    return dict(found)


def test_a_verification_reports_when_and_what(place: Place) -> None:
    place.run(node_text(audit="basic"))
    with client_of(place.config, SITE, roles={Role.VIEWER}) as client:
        found = verified(client)
        assert (found["problems"], found["person"], found["lines"]) == ([], "ann", found["verified"])
        assert "intact" in client.get("/audit").text
    changed = "UPDATE vesper_audit SET line = CAST(replace(line, 'charge', 'refund') AS BLOB) WHERE seq = 1 RETURNING 1"
    run_statement(place.folder / "journal.db", changed)
    with client_of(place.config, SITE) as client:
        found = verified(client)
        assert found["problems"] == ["line 1 was changed, inserted, or moved here: its hash does not follow"]
        assert "was changed after it was written" in client.get("/audit").text


def test_a_verification_counts_its_own_lines_and_always_ends(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    write(place, 2)

    def grow_and_part(journal: Journal, report: Callable[[int, int], None]) -> list[str]:
        report(2, 2)
        journal.audit([AuditEvent(1, "e3", "charge_v1", "basic", "charge", {})])
        monkeypatch.setattr(Journal, "audit_head", away)
        return []

    def away(_journal: Journal) -> tuple[int, str]:
        raise JournalError("the journal is away")

    monkeypatch.setattr(verification, "verify_audit", grow_and_part)
    stores = Stores(place.config)
    try:
        verify(context_for(stores), {})
        for thread in threading.enumerate():
            if thread.name == "vesper-audit-verify":
                thread.join()
        found = verification.last_verification(stores.audit)
    finally:
        stores.close()
    assert found is not None
    assert found.ended_us is not None
    assert (found.verified, found.problems) == (2, ())


@pytest.mark.parametrize("style", ["jsonl", "csv"])
def test_an_export_has_the_bytes_of_the_command(place: Place, style: str) -> None:
    place.run(node_text(audit="basic"))
    out = place.folder / f"out.{style}"
    assert invoke("audit", "export", "-o", str(out)).exit_code == 0
    with client_of(place.config, SITE) as client:
        got = client.get(f"/audit/export?format={style}")
        assert client.get("/audit/export?format=xml").status_code == 400
    assert f'filename="vesper-audit.{style}"' in got.headers["content-disposition"]
    expected = out.read_bytes()
    (head, *rest), (expected_head, *expected_rest) = got.content.splitlines(), expected.splitlines()
    if style == "jsonl":
        head, expected_head = (each.partition(b'"at_us"')[0] for each in (head, expected_head))
    else:
        rest, expected_rest = rest[1:], expected_rest[1:]  # line 0 has the time of the export
    assert (head, rest) == (expected_head, expected_rest)
    out.write_bytes(got.content)
    assert invoke("audit", "verify", "--file", str(out)).exit_code == 0


def test_an_export_needs_a_role(place: Place) -> None:
    place.run(node_text(audit="basic"))
    with client_of(place.config, SITE, roles={Role.VIEWER}) as client:
        assert client.get("/audit/export").status_code == 403
        assert "/audit/export" not in client.get("/audit").text


def test_texts_of_a_line_are_escaped_and_masked(place: Place) -> None:
    place.run(node_text(sensitive=True, audit="detailed"), customer="carol <script>")
    write(place, 1, note="<script>alert(1)</script>")
    with client_of(place.config, SITE) as client:
        page = client.get("/audit").text
    assert "carol" not in page
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    listed = invoke("audit", "list").stdout
    assert "<sensitive>" in listed
    assert "&lt;sensitive&gt;" in page


def test_an_empty_log_says_how_lines_come(place: Place) -> None:
    open_journal(replace(place.config).dsn("sqlite:journal.db")).find()
    with client_of(place.config, SITE) as client:
        assert "audit_level: basic" in client.get("/audit").text
