"""Backtests on real journals: what changes, what is asked anew, and what cannot be replayed is counted by name.

Every test runs in Python and natively; both count the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.journal_file import run_statement
from tests.support.journalled import Place, a_place, compiled_node, node_text
from vesper.changes.backtest.backtest import Backtest, Comparison
from vesper.changes.backtest.journal_runs import Selection, journal_runs
from vesper.changes.backtest.kinds import Kinds
from vesper.changes.backtest.measures import BadMeasure, MeasureReader
from vesper.changes.backtest.native import NativeBacktest, is_native
from vesper.changes.backtest.tally import Tally
from vesper.journal.journal import Journal

Counting = Callable[[Comparison, Journal, Selection], Tally]


def count_in_python(comparison: Comparison, journal: Journal, selection: Selection) -> Tally:
    backtest = Backtest(comparison)
    for _ in backtest.run(journal_runs(journal, selection)):
        pass
    return backtest.tally


def count_natively(comparison: Comparison, journal: Journal, selection: Selection) -> Tally:
    assert is_native(comparison)
    backtest = NativeBacktest(comparison, journal, selection, threads=2)
    while backtest.step():
        pass
    assert backtest.total == backtest.tally.seen
    return backtest.tally


@pytest.fixture(params=[count_in_python, count_natively])
def count(request: pytest.FixtureRequest) -> Counting:
    found: Counting = request.param
    return found


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.chdir(tmp_path)
    with a_place(tmp_path, "sqlite:journal.db") as found:
        yield found


def compare(before: str, after: str, reveal: bool = False, **measures: object) -> Comparison:
    one, other = compiled_node(before), compiled_node(after)
    read = MeasureReader(one, other, reveal).measures(**measures)  # type: ignore[arg-type]
    return Comparison(one, other, Kinds(one, other, reveal), read)


def tally_of(count: Counting, place: Place, comparison: Comparison, **options: object) -> Tally:
    with place.journal() as journal:
        return count(comparison, journal, Selection(("charge_v1", "charge_v2"), **options))  # type: ignore[arg-type]


BEFORE = node_text()
CHEAPER = node_text("charge_v2").replace("fee: charge.fee", "fee: 'charge.fee / 2'")
ASKS_MORE = node_text("charge_v2").replace(
    "  - operation: return\n",
    "  - step: again\n    operation: custom\n    name: known\n    request: {customer: customer}\n"
    "    returns: integer\n    effect: read\n    when: amount > 15\n  - operation: return\n",
)


def test_changes_sums_and_segments(place: Place, count: Counting) -> None:
    for customer, amount in (("ann", "10.00"), ("bob", "20.00"), ("ann", "30.00"), ("bob", "0")):
        place.run(BEFORE, customer, amount)
    comparison = compare(BEFORE, CHEAPER, by=["customer", "amount >= 20"], sums=["fee", "input.amount"])
    tally = tally_of(count, place, comparison)
    assert (tally.seen, tally.total.runs, tally.total.changed, tally.apart.runs) == (4, 4, 3, 0)
    assert {kind: each.runs for kind, each in tally.kinds.items()} == {"fee falls": 3}
    fees, amounts = tally.total.sums
    assert (str(fees.before), fees.after.minus(fees.before)) == ("0.60", "-0.30")
    assert str(amounts.before) == str(amounts.after) == "60.00"
    customers, large = tally.groups
    assert {label: (each.runs, str(each.sums[0].before)) for label, each in customers.items()} == {
        '"ann"': (2, "0.40"),
        '"bob"': (2, "0.20"),
    }
    assert {label: each.runs for label, each in large.items()} == {"true": 2, "false": 2}
    assert place.charged == ["ann", "bob", "ann", "bob"]  # by the runs themselves, and by nothing since


def test_the_same_node_changes_nothing(place: Place, count: Counting) -> None:
    place.run(BEFORE)
    place.failures = ["effect_failed"]
    place.run(BEFORE)
    tally = tally_of(count, place, compare(BEFORE, node_text("charge_v2")))
    assert (tally.total.runs, tally.changed, tally.kinds) == (2, 0, {})


def test_a_declared_error_that_becomes_another(place: Place, count: Counting) -> None:
    place.failures = ["effect_failed"]
    place.run(BEFORE)
    other = node_text("charge_v2").replace("declined", "refused")
    assert set(tally_of(count, place, compare(BEFORE, other)).kinds) == {
        "declared error: declined → declared error: refused"
    }
    worded = node_text("charge_v2").replace('message: "no"', 'message: "not today"')
    found = tally_of(count, place, compare(BEFORE, worded), limit=1)
    assert set(found.kinds) == {"declared error: declined, another error.message"}


def test_a_new_request_is_no_answer_and_is_not_performed(place: Place, count: Counting) -> None:
    for amount in ("10.00", "20.00"):
        place.run(BEFORE, "ann", amount)
    tally = tally_of(count, place, compare(BEFORE, ASKS_MORE))
    assert (tally.total.runs, tally.total.changed, dict(tally.unanswered_after)) == (2, 1, {"again": 1})
    assert set(tally.kinds) == {"returned → asks something new at again"}
    assert place.charged == ["ann", "ann"]


def test_a_changed_request_has_no_answer(place: Place, count: Counting) -> None:
    place.run(BEFORE)
    other = node_text("charge_v2").replace(
        "request: {customer: customer, amount: amount}", "request: {customer: customer, amount: amount * 2}"
    )
    assert dict(tally_of(count, place, compare(BEFORE, other)).unanswered_after) == {"charge": 1}


def test_an_answer_of_another_type_is_a_bad_response(place: Place, count: Counting) -> None:
    place.run(BEFORE)
    other = node_text("charge_v2").replace("note: optional<string>", "note: integer")
    assert set(tally_of(count, place, compare(BEFORE, other)).kinds) == {"returned → failed: bad_response"}
    fewer = node_text("charge_v2").replace(", note: optional<string>", "")
    assert set(tally_of(count, place, compare(BEFORE, fewer)).kinds) == {"returned → failed: bad_response"}


def test_runs_of_another_definition_stand_apart(place: Place, count: Counting) -> None:
    place.run(BEFORE)
    place.run(CHEAPER)
    tally = tally_of(count, place, compare(BEFORE, CHEAPER))
    assert (tally.total.runs, tally.total.changed) == (1, 1)
    assert (tally.apart.runs, tally.apart.changed, tally.apart_other_definition) == (1, 1, 1)
    swapped = tally_of(count, place, compare(ASKS_MORE, BEFORE), limit=1)
    assert swapped.seen == 1


def test_a_version_that_asks_more_than_its_record(place: Place, count: Counting) -> None:
    place.run(BEFORE, "ann", "20.00")
    tally = tally_of(count, place, compare(ASKS_MORE, BEFORE))
    assert (tally.compared, dict(tally.unanswered_before)) == (0, {"again": 1})


def test_what_cannot_be_replayed_is_counted_and_named(place: Place, count: Counting) -> None:
    good = place.run(BEFORE)
    left = place.left(BEFORE)
    broken = place.run(BEFORE)
    secret = node_text(sensitive=True)
    erased = place.run(secret)
    sealed = place.run(secret)
    with place.journal() as journal:
        assert journal.erase(erased)
    run_statement(
        place.folder / "journal.db",
        "UPDATE vesper_commits SET hashes = zeroblob(length(hashes)) WHERE place / 2147483648 = "  # noqa: S608
        f"(SELECT id FROM vesper_executions WHERE execution = '{broken}')",
    )
    tally = tally_of(count, place, compare(BEFORE, CHEAPER))
    found = {reason.partition(":")[0]: (each.runs, each.names) for reason, each in tally.excluded.items()}
    assert found == {"not ended": (1, [left]), "unreadable": (1, [broken]), "erased": (1, [erased])}
    assert (tally.seen, tally.compared) == (5, 2)
    example = tally.kinds["fee falls"].example
    assert example is not None
    assert example.name in {good, sealed}


def test_selection(place: Place, count: Counting) -> None:
    for amount in ("1.00", "2.00", "3.00", "4.00"):
        place.run(BEFORE, "ann", amount)
    kept = tally_of(count, place, compare(BEFORE, CHEAPER, where="amount > 1"), limit=3)
    assert (kept.seen, kept.compared, kept.not_selected) == (3, 3, 0)
    few = tally_of(count, place, compare(BEFORE, CHEAPER, where="input.amount > 2.5"))
    assert (few.seen, few.compared, few.not_selected) == (4, 2, 2)
    undecided = tally_of(count, place, compare(BEFORE, CHEAPER, where="1 / (amount - 2) > 0"))
    assert (undecided.compared, undecided.not_selected, undecided.not_decided) == (2, 1, 1)
    now_us = int(datetime.now(UTC).timestamp() * 1_000_000)
    assert tally_of(count, place, compare(BEFORE, CHEAPER), since_us=now_us).seen == 0
    assert tally_of(count, place, compare(BEFORE, CHEAPER), until_us=now_us).seen == 4


def test_sensitive_values_do_not_show(place: Place, count: Counting) -> None:
    secret = node_text(sensitive=True)
    later = node_text("charge_v2", sensitive=True).replace("receipt: charge.id", "receipt: '\"x\"'")
    place.run(secret)
    assert set(tally_of(count, place, compare(secret, later)).kinds) == {"receipt changes"}
    with pytest.raises(BadMeasure, match="reads the sensitive input `customer`; --reveal"):
        compare(secret, later, by=["customer"])
    shown = tally_of(count, place, compare(secret, later, reveal=True, by=["customer"]))
    assert set(shown.kinds) == {'receipt: "ch_ann" → "x"'}
    assert set(shown.groups[0]) == {'"ann"'}
