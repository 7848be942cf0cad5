"""What a run is, on both stores."""

from __future__ import annotations

import threading
from datetime import timedelta
from decimal import Decimal

import pytest

from tests.unit.journal.helpers import DEFINITION, INPUTS, NOW, Raw, begin, begun, end, intent, result
from vesper.journal.entry import Definition, Entry, Kind
from vesper.journal.journal import (
    Fenced,
    Journal,
    JournalError,
    NotTaken,
    Status,
    UnknownExecution,
    open_journal,
)

STALE = "elsewhere:1:1:000000000000"


def test_what_was_committed_is_read_back(journal: Journal) -> None:
    run = begun(journal, "run-a")
    run.append(intent("charge[2]", {"amount": Decimal("1.10"), "wait": timedelta(seconds=3)}))
    run.append(result("charge[2]", {"id": "ch_1", 7: b"\x00"}))
    run.commit()
    end(run)
    recorded = journal.read("run-a")
    assert [stored.entry.kind for stored in recorded.entries] == [Kind.START, Kind.INTENT, Kind.RESULT, Kind.END]
    assert [stored.seq for stored in recorded.entries] == [1, 2, 3, 4]
    assert {stored.branch for stored in recorded.entries} == {"main"}
    start = recorded.entries[0].entry
    assert start.body["inputs"] == INPUTS
    assert start.body["now"] == NOW
    asked = recorded.entries[1].entry
    assert asked == intent("charge[2]", {"amount": Decimal("1.10"), "wait": timedelta(seconds=3)})
    assert str(asked.body["amount"]) == "1.10"
    assert recorded.entries[2].entry.body == {"value": {"id": "ch_1", 7: b"\x00"}}
    assert recorded.summary.status is Status.ENDED
    assert recorded.summary.outcome == "returned"
    assert recorded.summary.node_id == "pay"
    assert recorded.summary.started_us <= recorded.summary.updated_us


def test_nothing_is_written_before_the_first_commit(journal: Journal) -> None:
    run = begin(journal, "run-a")
    run.append(intent())
    assert journal.find() == []
    with pytest.raises(UnknownExecution):
        journal.read("run-a")
    run.commit()
    assert len(journal.read("run-a").entries) == 2


def test_what_was_only_appended_is_not_there(journal: Journal) -> None:
    run = begun(journal, "run-a")
    run.append(result())
    assert len(journal.read("run-a").entries) == 1


def test_a_body_is_what_it_was_when_it_was_appended(journal: Journal) -> None:
    run = begun(journal, "run-a")
    body: dict[str, object] = {"items": [1]}
    run.append(intent("charge", body))
    body["items"] = []
    run.commit()
    assert journal.read("run-a").entries[1].entry.body == {"items": [1]}


def test_an_id_is_used_once(journal: Journal) -> None:
    begun(journal, "run-a")
    with pytest.raises(JournalError, match="has an execution run-a already"):
        begun(journal, "run-a")
    assert len(journal.read("run-a").entries) == 1


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 201, "\ud800"])
def test_an_id_is_a_name(journal: Journal, name: str) -> None:
    with pytest.raises(JournalError, match="cannot be the id"):
        begin(journal, name)


def test_nothing_comes_after_the_end(journal: Journal) -> None:
    run = begun(journal)
    end(run)
    with pytest.raises(JournalError, match="has ended"):
        run.append(result())


def test_a_body_that_is_no_value_is_refused_and_forgotten(journal: Journal) -> None:
    run = begun(journal, "run-a")
    with pytest.raises(JournalError, match="type `object`"):
        run.append(intent("charge", {"x": object()}))
    run.append(intent())
    run.commit()
    assert [stored.seq for stored in journal.read("run-a").entries] == [1, 2]


def test_a_prefix_of_an_id_is_enough_where_it_is_the_only_one(journal: Journal) -> None:
    for name in ("abc-1", "abc-2", "abc", "b-1"):
        begun(journal, name)
    assert journal.read("b").summary.execution == "b-1"
    assert journal.read("abc").summary.execution == "abc"
    with pytest.raises(UnknownExecution, match="several executions start with `abc-`, abc-1 and abc-2"):
        journal.read("abc-")
    for unknown in ("zzz", "", "abc-11", "%"):
        with pytest.raises(UnknownExecution):
            journal.read(unknown)


def test_find(journal: Journal) -> None:
    other = Definition("ef" * 32, "ship", "ship.vsp", "id: ship", b"{}")
    end(begun(journal, "run-1"))
    begun(journal, "run-2", definition=other)
    begun(journal, "run-3")
    assert [found.execution for found in journal.find()] == ["run-3", "run-2", "run-1"]
    assert [found.execution for found in journal.find(limit=1)] == ["run-3"]
    assert [found.execution for found in journal.find(node="ship")] == ["run-2"]
    assert [found.execution for found in journal.find(status=Status.ENDED)] == ["run-1"]
    since = journal.find()[1].started_us
    assert [found.execution for found in journal.find(since_us=since)] == ["run-3", "run-2"]
    assert journal.find(node="ship", status=Status.ENDED) == []


# -- leases and fences ----------------------------------------------------------------------------


def test_a_run_whose_owner_lives_is_not_taken(dsn: str) -> None:
    mine, other = open_journal(dsn, owner="host-a:1"), open_journal(dsn, owner="host-b:1")
    begun(mine, "run-a")
    with pytest.raises(NotTaken, match=r"belongs to host-a:1, whose lease runs for another [0-9.]+ s"):
        other.take_over("run-a", "python")
    assert other.unfinished() == []
    mine.close()
    other.close()


def test_a_run_whose_lease_ran_out_is_taken_and_its_owner_fenced(dsn: str, raw: Raw) -> None:
    mine, other = open_journal(dsn, owner="host-a:1"), open_journal(dsn, owner="host-b:1")
    run = begun(mine, "run-a")
    run.append(intent())
    run.commit()
    raw.run("UPDATE vesper_executions SET lease_until_us = 1")
    assert [found.execution for found in other.unfinished()] == ["run-a"]
    taken = other.take_over("run-a", "python")
    assert (taken.fence, run.fence) == (2, 1)
    assert [entry.kind for entry in taken.recorded] == [Kind.START, Kind.INTENT]
    assert other.unfinished() == []
    run.append(result())
    with pytest.raises(Fenced, match="no longer this process's"):
        run.commit()
    with pytest.raises(Fenced):
        run.renew()
    with pytest.raises(Fenced):
        run.commit(Status.ENDED, "returned")
    taken.append(result(value="by b"))
    end(taken)
    recorded = mine.read("run-a")
    kinds = [stored.entry.kind for stored in recorded.entries]
    assert kinds == [Kind.START, Kind.INTENT, Kind.HANDOFF, Kind.RESULT, Kind.END]
    assert recorded.entries[2].entry.body == {"from": "host-a:1", "to": "host-b:1", "engine": "python", "fence": 2}
    assert recorded.entries[3].entry.body == {"value": "by b"}
    assert (recorded.summary.owner, recorded.summary.engine) == ("host-b:1", "python")
    mine.close()
    other.close()


def test_of_many_that_take_over_one_does(dsn: str, raw: Raw) -> None:
    mine = open_journal(dsn, owner="host-a:1")
    begun(mine, "run-a")
    raw.run("UPDATE vesper_executions SET lease_until_us = 1")
    journals = [open_journal(dsn, owner=f"host-b:{number}") for number in range(6)]
    taken: list[int] = []
    refused: list[str] = []

    def take(journal: Journal) -> None:
        try:
            taken.append(journal.take_over("run-a", "python").fence)
        except NotTaken as error:
            refused.append(str(error))

    threads = [threading.Thread(target=take, args=(journal,)) for journal in journals]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert taken == [2]
    assert len(refused) == 5
    for journal in (mine, *journals):
        journal.close()


def test_a_run_of_this_very_owner_is_taken_at_once(journal: Journal) -> None:
    run = begun(journal, "run-a")
    taken = journal.take_over("run-a", "python")
    run.append(result())
    with pytest.raises(Fenced):
        run.commit()
    taken.append(result())
    taken.commit()


def test_ended_joined_and_unknown_runs_are_not_taken(journal: Journal) -> None:
    end(begun(journal, "run-a"))
    begun(journal, "run-b", is_joined=True)
    with pytest.raises(NotTaken, match=r"it has ended \(returned\)"):
        journal.take_over("run-a", "python")
    with pytest.raises(NotTaken, match="part of a transaction of its caller"):
        journal.take_over("run-b", "python")
    with pytest.raises(UnknownExecution):
        journal.take_over("run-c", "python")


def test_commits_and_renew_prolong_the_lease(dsn: str, raw: Raw) -> None:
    journal = open_journal(dsn, lease_seconds=0.03)
    run = begun(journal, "run-a")

    def lease() -> int:
        return int(raw.run("SELECT lease_until_us FROM vesper_executions")[0][0])

    first = lease()
    threading.Event().wait(0.02)
    run.append(result())
    run.commit()
    second = lease()
    assert second > first
    threading.Event().wait(0.002)
    run.renew()
    assert lease() > second
    journal.close()


def test_a_commit_without_anything_is_a_renewal(journal: Journal, raw: Raw) -> None:
    run = begun(journal, "run-a")
    raw.run("UPDATE vesper_executions SET lease_until_us = 1")
    run.commit()
    assert raw.run("SELECT lease_until_us > 1 FROM vesper_executions")[0][0] in (1, True)
    assert len(journal.read("run-a").entries) == 1


def test_unfinished_gives_the_oldest_first_and_pages(journal: Journal, raw: Raw) -> None:
    for number in range(5):
        begun(journal, f"run-{number}x")
    end(begun(journal, "run-ended"))
    begun(journal, "run-joined", is_joined=True)
    raw.run("UPDATE vesper_executions SET lease_until_us = 1, owner = ?", STALE)
    assert [found.execution for found in journal.unfinished()] == [f"run-{number}x" for number in range(5)]
    assert len(journal.unfinished(limit=2)) == 2


# -- in doubt -------------------------------------------------------------------------------------


def doubtful(journal: Journal, name: str, *paths: str) -> None:
    run = begun(journal, name)
    for path in paths:
        run.append(Entry(Kind.INTENT, path, "custom", "unsafe", None, "d" * 64, {"n": 1}, 1))
        run.append(Entry(Kind.IN_DOUBT, path, "custom", "unsafe", None, "d" * 64, {"why": "crash"}, 2))
    run.commit(Status.IN_DOUBT)
    with pytest.raises(JournalError, match="has ended"):
        run.append(result())


def test_a_run_in_doubt_waits_for_somebody_to_resolve_it(journal: Journal) -> None:
    doubtful(journal, "run-a", "charge")
    assert journal.read("run-a").summary.status is Status.IN_DOUBT
    assert journal.unfinished() == []
    with pytest.raises(NotTaken, match="in doubt"):
        journal.take_over("run-a", "python")
    with pytest.raises(JournalError, match="no request in doubt at `other`; in doubt: `charge`"):
        journal.resolve("run-a", "other", 1, None, "ada", "looked")
    journal.resolve("run-a", "charge", {"id": Decimal("1.0")}, None, "ada", "looked it up")
    assert [found.execution for found in journal.unfinished()] == ["run-a"]
    taken = journal.take_over("run-a", "python")
    last = taken.recorded[-1]
    assert (last.kind, last.path, last.effect, last.digest) == (Kind.RESOLVED, "charge", "custom", "d" * 64)
    assert last.body == {"value": {"id": Decimal("1.0")}, "by": "ada", "why": "looked it up"}
    with pytest.raises(JournalError, match="is not in doubt: it is running"):
        journal.resolve("run-a", "charge", 1, None, "ada", "again")


def test_all_that_is_in_doubt_must_be_resolved(journal: Journal) -> None:
    doubtful(journal, "run-a", "first", "second")
    journal.resolve("run-a", "second", None, "conflict", "ada", "refused")
    with pytest.raises(NotTaken):
        journal.take_over("run-a", "python")
    journal.resolve("run-a", "first", None, None, "ada", "done")
    bodies = [entry.body for entry in journal.take_over("run-a", "python").recorded[-2:]]
    assert bodies[0]["code"] == "conflict"
    assert bodies[1]["value"] is None
    assert "code" not in bodies[1]


# -- sizes ----------------------------------------------------------------------------------------


def test_large_bodies_stand_beside_their_line_once(dsn: str, raw: Raw) -> None:
    journal = open_journal(dsn, max_inline=100, max_body=100_000)
    large = "x" * 5000
    for name in ("run-a", "run-b"):
        run = begun(journal, name)
        run.append(result(value=large))
        run.append(result(value="ü" * 40))
        run.commit()
        assert journal.read(name).entries[1].entry.body == {"value": large}
        assert journal.read(name).entries[2].entry.body == {"value": "ü" * 40}
    found = raw.run("SELECT size, is_compressed, data FROM vesper_blobs WHERE size > 5000")
    assert len(found) == 1
    assert len(bytes(found[0][2])) < 500
    journal.close()


def test_a_body_over_the_limit_names_its_step(dsn: str) -> None:
    journal = open_journal(dsn, max_inline=100, max_body=1000)
    run = begun(journal, "run-a")
    with pytest.raises(
        JournalError, match=r"the RESULT of step `charge\[2\]` has 2,012 bytes, and the journal takes 1,000"
    ):
        run.append(result("charge[2]", "x" * 2000))
    run.append(result("charge[2]", "short"))
    run.commit()
    assert len(journal.read("run-a").entries) == 2
    journal.close()


def test_a_commit_of_very_many_entries(journal: Journal, raw: Raw) -> None:
    run = begin(journal, "run-a")
    for number in range(2500):
        run.append(result(f"look[{number}]", number))
    run.commit()
    run.append(result("last"))
    run.commit()
    entries = journal.read("run-a").entries
    assert [stored.entry.path for stored in entries[1:]] == [*(f"look[{n}]" for n in range(2500)), "last"]
    assert len(raw.run("SELECT 1 FROM vesper_commits")) == 4


# -- definitions and pruning ----------------------------------------------------------------------


def test_a_definition_is_stored_once_with_what_it_calls(journal: Journal, raw: Raw) -> None:
    begun(journal)
    begun(journal)
    assert journal.definition(DEFINITION.semantic_hash) == DEFINITION
    assert len(raw.run("SELECT 1 FROM vesper_definitions")) == 2
    with pytest.raises(JournalError, match="no definition"):
        journal.definition("99" * 32)


def test_prune_deletes_what_ended_and_what_nobody_needs_any_more(dsn: str, raw: Raw) -> None:
    journal = open_journal(dsn, max_inline=50)
    other = Definition("ef" * 32, "ship", "ship.vsp", "id: ship", b"{}")
    for name, definition, value in (
        ("run-a", DEFINITION, "x" * 99),
        ("run-b", other, "x" * 99),
        ("run-c", other, "y" * 99),
    ):
        run = begun(journal, name, definition=definition, inputs={})
        run.append(result(value=value))
        end(run)
    begun(journal, "run-d", definition=other, inputs={})
    before = journal.find(status=Status.ENDED)[0].updated_us + 1
    assert journal.prune(1) == 0
    assert journal.prune(before, node="pay") == 1
    assert len(raw.run("SELECT 1 FROM vesper_definitions")) == 1
    values = raw.run("SELECT 1 FROM vesper_blobs WHERE size = 111")
    assert len(values) == 2
    assert journal.read("run-b").entries[1].entry.body == {"value": "x" * 99}
    assert journal.prune(before) == 2
    assert [found.execution for found in journal.find()] == ["run-d"]
    assert raw.run("SELECT 1 FROM vesper_blobs WHERE size = 111") == []
    assert len(raw.run("SELECT DISTINCT place FROM vesper_commits")) == 1
    # The definition of `pay` is gone; whoever begins a run of it stores it again.
    begun(journal, "run-e")
    assert journal.definition(DEFINITION.semantic_hash) == DEFINITION
    journal.close()


def test_the_place_of_a_pruned_run_is_never_used_again(journal: Journal) -> None:
    stale = begun(journal, "run-a")
    taken = journal.take_over("run-a", "python")
    end(taken)
    assert journal.prune(journal.find()[0].updated_us + 1) == 1
    begun(journal, "run-b")
    stale.append(result())
    with pytest.raises(Fenced):
        stale.commit()
    assert len(journal.read("run-b").entries) == 1


# -- threads --------------------------------------------------------------------------------------


def test_threads_commit_side_by_side_and_only_the_fenced_one_fails(journal: Journal) -> None:
    stale = begun(journal, "run-stale")
    journal.take_over("run-stale", "python")
    problems: list[BaseException] = []
    barrier = threading.Barrier(9)

    def work(number: int) -> None:
        try:
            run = begun(journal, f"thread-{number}", writes=number % 2 == 0)
            barrier.wait(30)
            for step in range(15):
                run.append(intent(f"step[{step}]"))
                run.append(result(f"step[{step}]"))
                run.commit()
            end(run)
        except (JournalError, threading.BrokenBarrierError) as error:
            problems.append(error)

    def work_stale() -> None:
        barrier.wait(30)
        for _ in range(15):
            try:
                stale.append(result())
                stale.commit()
            except Fenced:
                continue
            problems.append(AssertionError("it was not fenced"))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    threads.append(threading.Thread(target=work_stale))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    for number in range(8):
        assert len(journal.read(f"thread-{number}").entries) == 32
    assert len(journal.read("run-stale").entries) == 2


def test_another_thread_renews_while_one_commits(journal: Journal) -> None:
    run = begun(journal, "run-a")
    stop = threading.Event()
    problems: list[JournalError] = []

    def renew() -> None:
        try:
            while not stop.is_set():
                run.renew()
        except JournalError as error:
            problems.append(error)

    thread = threading.Thread(target=renew)
    thread.start()
    for number in range(50):
        run.append(result(f"step[{number}]"))
        run.commit()
    end(run)
    stop.set()
    thread.join()
    assert problems == []
    assert len(journal.read("run-a").entries) == 52
