"""What commands ask a journal for: all names, those that start so, the nodes, and how much would be pruned."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from tests.unit.journal.helpers import DEFINITION, begun, end, intent
from vesper.journal import store_journal
from vesper.journal.entry import Entry, Kind
from vesper.journal.journal import Journal, JournalError, Status


@pytest.mark.parametrize("page", [1, 2, 5, 1000])
def test_the_names_come_in_order_and_in_parts(journal: Journal, monkeypatch: pytest.MonkeyPatch, page: int) -> None:
    monkeypatch.setattr(store_journal, "_PAGE", page)
    for name in ("b-2", "a-1", "b-10", "c", "b"):
        begun(journal, name)
    assert list(journal.executions()) == ["a-1", "b", "b-10", "b-2", "c"]
    assert list(journal.executions("b")) == ["b", "b-10", "b-2"]
    assert list(journal.executions("b-")) == ["b-10", "b-2"]
    assert list(journal.executions("d")) == []


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
