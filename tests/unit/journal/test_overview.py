"""What commands ask a journal for: all names, those that start so, the nodes, and how much would be pruned."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from tests.unit.journal.helpers import DEFINITION, Raw, begun, end, event, intent
from vesper.journal.audit import verify_audit
from vesper.journal.entry import Entry, Kind
from vesper.journal.journal import Journal, JournalError, Status


def test_the_names_come_in_order(journal: Journal) -> None:
    for name in ("b-2", "a-1", "b-10", "c", "b"):
        begun(journal, name)
    assert list(journal.executions()) == ["a-1", "b", "b-10", "b-2", "c"]
    assert list(journal.executions("b")) == ["b", "b-10", "b-2"]
    assert list(journal.executions("b-")) == ["b-10", "b-2"]
    assert list(journal.executions("d")) == []


def test_more_names_and_lines_than_one_query_returns(journal: Journal, raw: Raw) -> None:
    """1000 rows come at a time."""
    begun(journal, "run-0000")
    columns = (
        "execution, node_id, semantic_hash, status, outcome, owner, fence, lease_until_us, started_us, updated_us, "
        "engine, is_joined, is_sensitive, is_synced, head_seq, head_hash"
    )
    copied = columns.partition(", ")[2]
    for first in range(1, 2001, 500):
        names = ", ".join(f"('run-{number:04}')" for number in range(first, first + 500))
        raw.run(
            f"WITH given (name) AS (VALUES {names}) INSERT INTO vesper_executions ({columns}) "  # noqa: S608
            f"SELECT given.name, {copied} FROM vesper_executions, given WHERE execution = 'run-0000'"
        )
    assert list(journal.executions()) == [f"run-{number:04}" for number in range(2001)]
    assert len(list(journal.executions("run-1"))) == 1000
    raw.run("UPDATE vesper_executions SET lease_until_us = 0")
    assert [found.execution for found in journal.unfinished(limit=1500)][-1] == "run-1499"
    journal.audit([event(number=number) for number in range(2001)])
    assert [line["seq"] for line in journal.audit_events()] == list(range(1, 2002))
    assert verify_audit(journal) == []


def test_a_sign_that_means_something_in_sql_is_only_a_sign(journal: Journal) -> None:
    begun(journal, "100%")
    begun(journal, "a_b")
    begun(journal, "it's")
    for prefix, expected in (("%", []), ("a%", []), ("1", ["100%"]), ("_", []), ("it'", ["it's"])):
        assert list(journal.executions(prefix)) == expected


def test_the_nodes_are_those_that_a_run_is_pinned_to(journal: Journal) -> None:
    assert journal.node_ids() == []
    begun(journal, definition=replace(DEFINITION, node_id="zip", semantic_hash="ef" * 32, callees=()))
    begun(journal)
    assert journal.node_ids() == ["called", "pay", "zip"]


def test_as_many_are_pruned_as_were_announced(journal: Journal) -> None:
    for _ in range(3):
        end(begun(journal))
    end(begun(journal, definition=replace(DEFINITION, node_id="zip", semantic_hash="ef" * 32, callees=())))
    begun(journal)
    assert journal.prunable(0) == 0
    later = time.time_ns() // 1000 + 60_000_000
    assert journal.prunable(later) == 4
    assert journal.prunable(later, "pay") == 3
    assert journal.prunable(later, "nobody") == 0
    assert journal.prune(later, "pay") == 3
    assert journal.prunable(later) == 1


def test_what_did_not_happen_is_written_so(journal: Journal) -> None:
    run = begun(journal, "doubtful")
    run.append(intent())
    run.append(Entry(Kind.IN_DOUBT, "charge", "external_api_call", "keyed", body={"why": "?"}, at_us=8))
    run.commit(Status.IN_DOUBT)
    journal.resolve("doubtful", "charge", None, None, "zoe", "looked", not_done=True)
    recorded = journal.read("doubtful")
    assert recorded.summary.status is Status.RUNNING
    assert dict(recorded.entries[-1].entry.body) == {"not_done": True, "by": "zoe", "why": "looked"}
    with pytest.raises(JournalError, match="is not in doubt"):
        journal.resolve("doubtful", "charge", None, None, "zoe", "looked", not_done=True)
