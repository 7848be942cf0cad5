"""Idempotency keys of a journal: one run for each, on both stores."""

from __future__ import annotations

import pytest

from tests.unit.journal.helpers import Raw, begin, begun, end
from vesper.journal.errors import KeyTaken
from vesper.journal.journal import Journal, JournalError, Status

ADA = {"actor": "ada", "key": "17"}
CONTEXTS = (
    ADA,
    {"actor": "bob", "key": "17"},
    {"actor": "ada", "via": "issuer", "key": "17"},
    {"actor": "ada", "tenant": "acme", "key": "17"},
    {"tenant": "ada", "key": "17"},
    {"key": "17"},
    {"actor": "ada", "key": "18"},
)


def test_a_key_has_one_run(journal: Journal) -> None:
    runs = [begin(journal, f"run {number}", context=ADA) for number in range(2)]
    assert journal.keyed("pay", ADA) is None
    runs[0].commit()
    with pytest.raises(KeyTaken, match=r"^run 0$") as taken:
        runs[1].commit()
    assert not isinstance(taken.value, JournalError)
    found = journal.keyed("pay", ADA)
    assert found is not None
    assert (found[0].execution, found[0].status, found[1]) == ("run 0", Status.RUNNING, True)
    end(runs[0])
    found = journal.keyed("pay", ADA)
    assert found is not None
    assert (found[0].status, found[1]) == (Status.ENDED, False)
    assert list(journal.executions()) == ["run 0"]


def test_a_lost_race_writes_nothing_and_can_be_lost_again(journal: Journal) -> None:
    begun(journal, "first", context=ADA, is_sensitive=True)
    late = begin(journal, "late", context=ADA)
    for _ in range(2):
        with pytest.raises(KeyTaken, match=r"^first$"):
            late.commit()
    assert journal.verify("first") == []
    assert not [each for each in journal.verify_shared() if "vesper_executions" in each]


def test_keys_belong_to_a_node_and_a_tenant_or_a_caller(journal: Journal) -> None:
    for number, context in enumerate(CONTEXTS):
        begun(journal, f"run {number}", context=context)
    for number, context in enumerate(CONTEXTS):
        found = journal.keyed("pay", context)
        assert found is not None
        assert found[0].execution == f"run {number}"
        assert journal.keyed("refund", context) is None
    with pytest.raises(KeyTaken):
        begun(journal, "of the same tenant", context={"actor": "bob", "tenant": "acme", "key": "17"})


def test_an_execution_that_exists_is_no_taken_key(journal: Journal) -> None:
    begun(journal, "same", context=ADA)
    with pytest.raises(JournalError, match="its id must be new"):
        begun(journal, "same", context={"key": "another"})


def test_a_pruned_run_gives_its_key_back(journal: Journal) -> None:
    end(begun(journal, "old", context=ADA))
    assert journal.prune(1 << 60) == 1
    begun(journal, "new", context=ADA)


def test_start_has_the_context(journal: Journal) -> None:
    begun(journal, "with", context=ADA)
    begun(journal, "without")
    assert journal.read("with").entries[0].entry.body["context"] == ADA
    assert "context" not in journal.read("without").entries[0].entry.body


@pytest.mark.parametrize("key", [None, "0" * 64])
def test_a_changed_key_is_found(journal: Journal, raw: Raw, key: str | None) -> None:
    begun(journal, "run", context=ADA)
    assert journal.verify("run") == []
    raw.run("UPDATE vesper_executions SET run_key = ?", key)
    assert "says run_key" in journal.verify("run")[0]
