"""What every store holds of a name: pairs, counts in batches, bounded groups and examples, decisions."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.migration.support.places import KINDS, NOW, fresh_dsn
from vesper.migration.candidates.counts import MAX_EXAMPLES, MAX_GROUPS, Counts, Example, Group, PathText
from vesper.migration.candidates.record import (
    MAX_PAIRS,
    Decision,
    NameRecord,
    Pair,
    apply_counts,
    decide,
    read_counts,
    read_record,
    start_pair,
)
from vesper.migration.stores.ledger import verify_history
from vesper.migration.stores.store import Store, StoreError, keys_of, name_key, names_of, open_store

PAIR = Pair("pay_v1", "pay_v2", "a" * 64, "b" * 64)
WHO = "ann"


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    opened = open_store(fresh_dsn(request.param, request, tmp_path))
    yield opened
    opened.close()


def group(number: int = 0, inputs: str = "a = 1", field: str = "outputs.fee") -> Group:
    example = Example(None, NOW, inputs, "fee = 1", "fee = 2")
    return Group(PathText("p", ("x: yes",)), PathText(f"q{number}", ("x: no",)), field, 1, NOW, NOW, (example,))


def counts_of(*groups: Group, agreed: int = 0) -> Counts:
    found = Counts()
    for _ in range(agreed):
        found.add("agreed", NOW)
    for each in groups:
        found.add("changed", NOW, each)
    return found


def stored(store: Store, pair: Pair = PAIR) -> Counts:
    place = read_record(store, "pay").started(pair.id)
    assert place is not None
    return read_counts(store, "pay", place, MAX_GROUPS)


def test_a_batch_counts_once_and_a_name_is_no_node(store: Store) -> None:
    start_pair(store, "pay", PAIR, WHO, NOW)
    for _ in range(2):
        apply_counts(store, "pay", (PAIR, WHO), "process", 1, counts_of(group(), agreed=3), NOW)
    assert apply_counts(store, "pay", (PAIR, WHO), "process", 2, counts_of(agreed=1), NOW)
    found = stored(store)
    assert (found.results["agreed"], found.results["changed"]) == (4, 1)
    assert found.top_groups()[0].examples[0].candidate == "fee = 2"
    assert (names_of(store), keys_of(store)) == (["pay"], [])


def test_processes_add_up(store: Store) -> None:
    def send(name: str) -> None:
        for number in range(1, 6):
            apply_counts(store, "pay", (PAIR, WHO), name, number, counts_of(group(), agreed=2), NOW)

    threads = [threading.Thread(target=send, args=(f"process {number}",)) for number in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    found = stored(store)
    assert (found.results["agreed"], found.results["changed"]) == (30, 15)
    assert found.top_groups()[0].count == 15


def test_decisions_belong_to_their_pair(store: Store) -> None:
    other = Pair("pay_v1", "pay_v2", "a" * 64, "c" * 64)
    start_pair(store, "pay", PAIR, WHO, NOW)
    decide(store, "pay", Decision("promoted", PAIR.id, "bob", "agreed", NOW), {"compared": 1})
    record = start_pair(store, "pay", other, WHO, NOW)
    assert record.decision_on(PAIR.id) is not None
    assert record.decision_on(other.id) is None
    lines = store.history(name_key("pay"))
    assert (len(lines), verify_history(lines)) == (3, None)
    with pytest.raises(StoreError, match="no such pair"):
        decide(store, "pay", Decision("promoted", "none", "bob", "agreed", NOW), {})


def test_pairs_take_the_place_of_the_oldest(store: Store) -> None:
    pairs = [Pair("pay_v1", "pay_v2", "a" * 64, f"{number:064x}") for number in range(MAX_PAIRS + 2)]
    for each in pairs:
        start_pair(store, "pay", each, WHO, NOW)
        apply_counts(store, "pay", (each, WHO), f"process {each.id}", 1, counts_of(group()), NOW)
    record = read_record(store, "pay")
    assert [each.pair for each in record.pairs] == pairs[-MAX_PAIRS:]
    assert [stored(store, each).results["changed"] for each in pairs[-MAX_PAIRS:]] == [1] * MAX_PAIRS
    assert len({each.slot for each in record.pairs}) == MAX_PAIRS


def test_groups_and_examples_are_bounded() -> None:
    found = counts_of(*(group(number) for number in range(MAX_GROUPS + 7)))
    assert (len(found.groups), found.others, found.results["changed"]) == (MAX_GROUPS, 7, MAX_GROUPS + 7)
    same = counts_of(*(group(inputs=f"a = {number}") for number in range(MAX_EXAMPLES + 3)))
    (one,) = same.top_groups()
    assert (one.count, len(one.examples)) == (MAX_EXAMPLES + 3, MAX_EXAMPLES)
    again = Counts.from_text(found.to_text("p"), "p")
    assert again.results == found.results
    assert again.groups.keys() == found.groups.keys()
    assert Counts.from_text(found.to_text("p"), "another").is_empty


def test_damaged_texts_are_reported() -> None:
    for text in ("{}", "[]", '{"format":2}', "no"):
        with pytest.raises(ValueError, match=r"."):
            Counts.from_text(text, "p")
        with pytest.raises(StoreError):
            NameRecord.from_text(text)
