"""The audit log: one chain, in which nothing can be changed without being seen."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from tests.unit.journal.helpers import Raw, begun, event, result
from vesper.journal.audit import verify_audit
from vesper.journal.journal import Fenced, Journal, JournalError, KeyRing, open_journal

KEY = b"a key of the audit log"


@pytest.fixture(params=[None, KEY])
def audited(request: pytest.FixtureRequest, dsn: str) -> Iterator[Journal]:
    """A journal with ten lines in its audit log."""
    journal = open_journal(dsn, keys=KeyRing(audit=request.param))
    for number in range(1, 11):
        journal.audit([event("effect", number=number)])
    yield journal
    journal.close()


def test_a_whole_log(audited: Journal) -> None:
    assert verify_audit(audited) == []
    lines = list(audited.audit_events())
    assert [line["seq"] for line in lines] == list(range(1, 11))
    assert lines[0]["previous"] == "00" * 32
    assert [line["previous"] for line in lines[1:]] == [line["hash"] for line in lines[:-1]]
    assert lines[4]["fields"] == {"number": 5}
    assert audited.audit_head() == (10, lines[-1]["hash"])


def test_an_empty_log(journal: Journal) -> None:
    assert verify_audit(journal) == []
    journal.audit([])
    assert list(journal.audit_events()) == []


def _moved(seq: int, to: int) -> str:
    return f"UPDATE vesper_audit SET seq = {to} WHERE seq = {seq}"  # noqa: S608


TAMPERINGS = {
    "changed": (
        ["UPDATE vesper_audit SET line = (SELECT line FROM vesper_audit WHERE seq = 5) WHERE seq = 4"],
        "line 4 was changed",
    ),
    "hash changed": (
        ["UPDATE vesper_audit SET hash = (SELECT hash FROM vesper_audit WHERE seq = 5) WHERE seq = 4"],
        "line 4 was changed",
    ),
    "removed": (["DELETE FROM vesper_audit WHERE seq = 4"], "line 4 is missing"),
    "several removed": (["DELETE FROM vesper_audit WHERE seq IN (4, 5, 6)"], "lines 4 to 6 are missing"),
    "removed and closed up": (
        ["DELETE FROM vesper_audit WHERE seq = 4", *(_moved(n, n - 1) for n in range(5, 11))],
        "line 4 was changed, inserted, or moved",
    ),
    "inserted": (
        [
            *(_moved(n, n + 1) for n in range(10, 3, -1)),
            "INSERT INTO vesper_audit SELECT 4, line, hash FROM vesper_audit WHERE seq = 2",
        ],
        "line 4 was changed, inserted, or moved",
    ),
    "reordered": (
        [
            _moved(4, 99),
            _moved(5, 4),
            _moved(99, 5),
        ],
        "line 4 was changed, inserted, or moved",
    ),
    "first removed": (["DELETE FROM vesper_audit WHERE seq = 1"], "line 1 is missing"),
    "cut": (["DELETE FROM vesper_audit WHERE seq > 8"], "lines 9 to 10 are missing at the end: the log was cut"),
    "all cut": (["DELETE FROM vesper_audit"], "lines 1 to 10 are missing at the end"),
    "added": (
        ["INSERT INTO vesper_audit SELECT 11, line, hash FROM vesper_audit WHERE seq = 10"],
        "line 11 was changed, inserted, or moved",
    ),
    "cut with the head": (
        ["DELETE FROM vesper_audit WHERE seq > 8", "UPDATE vesper_audit_head SET count = 8"],
        "the head of the log is not the hash of line 8",
    ),
    "no head": (["DELETE FROM vesper_audit_head"], "lost its head"),
    "below one": (
        ["INSERT INTO vesper_audit SELECT 0, line, hash FROM vesper_audit WHERE seq = 1"],
        "line 0 was inserted",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TAMPERINGS)
def test_what_was_done_to_the_log_is_seen(audited: Journal, raw: Raw, name: str) -> None:
    statements, problem = TAMPERINGS[name]
    for statement in statements:
        raw.run(statement)
    assert problem in (verify_audit(audited) or ["nothing"])[0]


def test_whoever_lacks_the_key_cannot_write_a_line_that_fits(dsn: str) -> None:
    journal = open_journal(dsn, keys=KeyRing(audit=KEY))
    journal.audit([event()])
    forger = open_journal(dsn)
    forger.audit([event("forged")])
    assert verify_audit(journal) == ["line 2 was changed, inserted, or moved here: its hash does not follow"]
    journal.close()
    forger.close()


def test_problems_are_counted_and_cut_short(audited: Journal, raw: Raw) -> None:
    raw.run("UPDATE vesper_audit SET hash = line")
    problems = verify_audit(audited, most=3)
    assert problems[3:] == ["there may be more"]


def test_a_runs_events_are_written_with_its_commit_or_not_at_all(journal: Journal) -> None:
    run = begun(journal, "run-a")
    run.audit(event("first"))
    assert list(journal.audit_events()) == []
    run.append(result())
    run.audit(event("second"))
    run.commit()
    assert [line["action"] for line in journal.audit_events()] == ["first", "second"]
    journal.take_over("run-a", "python")
    run.audit(event("third"))
    with pytest.raises(Fenced):
        run.commit()
    assert len(list(journal.audit_events())) == 2
    assert verify_audit(journal) == []


def test_only_events_are_a_commit_too(journal: Journal) -> None:
    run = begun(journal, "run-a")
    run.audit(event("alone"))
    run.commit()
    run.commit()
    assert [line["action"] for line in journal.audit_events()] == ["alone"]


def test_the_chain_holds_under_many_writers(dsn: str) -> None:
    journals = [open_journal(dsn) for _ in range(3)]
    problems: list[JournalError] = []

    def write(number: int) -> None:
        try:
            run = begun(journals[number % 3], f"run-{number}")
            for step in range(10):
                run.append(result(f"step[{step}]"))
                run.audit(event("effect", number=number, step=step))
                run.commit()
        except JournalError as error:
            problems.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert verify_audit(journals[0]) == []
    assert journals[0].audit_head()[0] == 60
    for journal in journals:
        journal.close()


def test_an_event_that_cannot_be_written_is_refused_where_it_is_made(dsn: str) -> None:
    journal = open_journal(dsn, max_body=1000)
    run = begun(journal, "run-a", inputs={})
    with pytest.raises(JournalError, match="type `object`"):
        run.audit(event("bad", what=object()))
    with pytest.raises(JournalError, match=r"an audit event `large` has 2,\d+ bytes, and the journal takes 1,000"):
        run.audit(event("large", what="x" * 2000))
    fields: dict[str, object] = {"number": 1}
    run.audit(event("good", fields=fields))
    fields["number"] = object()
    run.commit()
    assert [line["action"] for line in journal.audit_events()] == ["good"]
    journal.close()


def test_an_event_that_cannot_be_written_leaves_the_chain_as_it_is(journal: Journal) -> None:
    with pytest.raises(JournalError, match="type `object`"):
        journal.audit([event("good"), event("bad", what=object())])
    assert verify_audit(journal) == []
    assert journal.audit_head()[0] == 0
