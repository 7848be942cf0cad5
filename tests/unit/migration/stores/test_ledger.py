"""Effects of batches and orders on a node, in every store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.migration.support.places import (
    KEY,
    KINDS,
    MAIN,
    NOW,
    OTHER,
    SETTINGS,
    agreed,
    diverged,
    divergence,
    fresh_dsn,
)
from vesper.migration.compare.divergence import MAX_EXEMPLARS, Divergence
from vesper.migration.compare.paths import PathNote
from vesper.migration.control.controller import is_proven, step
from vesper.migration.control.modes import Mode, Reason
from vesper.migration.control.state import (
    Changed,
    Close,
    Demote,
    Event,
    Kill,
    NodeState,
    PathDemoted,
    PathProven,
    Promote,
    Refused,
    Resume,
    Tick,
    Timed,
    Unknown,
)
from vesper.migration.statistics import latency
from vesper.migration.stores import ledger
from vesper.migration.stores.codec import BadState
from vesper.migration.stores.store import WHOLE, Batch, Happened, Line, SeenOnPath, Store, Transaction, open_store


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    opened = open_store(fresh_dsn(request.param, request, tmp_path))
    yield opened
    opened.close()


def apply(store: Store, batch: Batch, now_us: int = NOW) -> ledger.Applied:
    return ledger.apply(store, KEY, batch, SETTINGS, now_us)


def sizes(store: Store, *scopes: str) -> list[int]:
    return store.transact(KEY, lambda transaction: [transaction.size(scope) for scope in scopes])


def kinds(store: Store) -> list[str]:
    return [json.loads(line.text)["kind"] for line in store.history(KEY)]


def test_agreements_of_two_processes_unite(store: Store) -> None:
    assert ledger.load(store, KEY, SETTINGS).clean == 0
    apply(store, agreed("one", 1, MAIN, range(150)))
    after = apply(store, agreed("two", 1, MAIN, range(100, 206)))
    assert (after.state.clean, after.state.compared, after.state.paths[MAIN].clean) == (206, 256, 206)
    assert [type(each) for each in after.decisions] == [PathProven, Changed]
    assert after.state.mode is Mode.CANARY_DIRECT
    assert ledger.load(store, KEY, SETTINGS) == after.state
    assert store.versions() == {KEY: 2}
    assert kinds(store) == ["path_proven", "changed"]


def test_a_batch_that_is_sent_twice_counts_once(store: Store) -> None:
    batch = replace(agreed("one", 1, MAIN, range(10)), happened=diverged("one", 1, "f1", 99).happened)
    first = apply(store, batch)
    before = (store.versions(), list(store.history(KEY)), list(store.divergences(KEY)))
    again = apply(store, batch, NOW + 5)
    assert (first.is_repeat, again.is_repeat) == (False, True)
    assert (again.state, again.decisions) == (first.state, ())
    assert (store.versions(), list(store.history(KEY)), list(store.divergences(KEY))) == before
    assert not apply(store, replace(batch, number=2)).is_repeat
    assert not apply(store, replace(batch, process="two")).is_repeat


def test_copies_count_once(store: Store) -> None:
    apply(store, agreed("one", 1, MAIN, [7], compared=100_000))
    apply(store, agreed("two", 1, MAIN, [7], compared=100_000))
    after = apply(store, agreed("one", 2, MAIN, [7], compared=100_000))
    assert (after.state.clean, after.state.compared, after.state.mode) == (1, 300_000, Mode.SHADOW_DIRECT)
    assert sizes(store, "n1", f"p{MAIN}:1") == [1, 1]
    other = apply(store, agreed("one", 4, OTHER, [7]))
    assert other.state.clean == 2, "two paths that read the same are two pieces of evidence"


def test_a_divergence_takes_its_input_back_for_good(store: Store) -> None:
    apply(store, agreed("one", 1, MAIN, range(10)))
    after = apply(store, diverged("two", 1, "f1", read=3))
    assert (after.state.clean, after.state.divergences, after.state.open) == (9, 1, {"f1": MAIN})
    again = apply(store, agreed("one", 2, MAIN, [3, 10]))
    assert (again.state.clean, again.state.paths[MAIN].clean) == (10, 1), "the path began afresh"


def test_a_divergence_is_kept_with_its_exemplars(store: Store) -> None:
    for number in range(1, 8):
        apply(store, diverged("one", number, "f1", number))
    apply(store, diverged("one", 8, "f2", 50))
    newest, oldest = (Divergence.from_text(text) for text in store.divergences(KEY))
    assert (newest.fingerprint, oldest.fingerprint, oldest.count) == ("f2", "f1", 7)
    assert [each.execution for each in oldest.exemplars] == [f"run-one-{number}" for number in range(1, 6)]
    assert len(oldest.exemplars) == MAX_EXEMPLARS
    assert (oldest.first_us, oldest.last_us, oldest.status) == (NOW + 1, NOW + 7, "open")


def test_lone_surrogates_lose_no_divergence(store: Store) -> None:
    """A lone surrogate, as a broken terminal or a hostile caller sends it, and a NUL."""
    odd = divergence("f1", "run-\ud800\x00")
    event = diverged("one", 1, "f1").happened[0].event
    apply(store, Batch("one", 1, [Happened(event, odd, 5)]))
    ledger.apply_event(store, KEY, Kill("ann\udcff", "why \x00"), SETTINGS, NOW)
    assert Divergence.from_text(store.divergences(KEY)[0]) == odd
    assert ledger.verify_history(store.history(KEY)) is None
    assert ledger.load(store, KEY, SETTINGS).latches[0].who == "ann\udcff"


def test_closing(store: Store) -> None:
    apply(store, diverged("one", 1, "f1", 5))
    refused = ledger.apply_event(store, KEY, Close("f9", "ann", "looked"), SETTINGS, NOW)
    assert isinstance(refused.decisions[0], Refused)
    before = list(store.history(KEY))
    closed = ledger.apply_event(store, KEY, Close("f1", "ann", "mended"), SETTINGS, NOW + 3)
    assert closed.state.open == {}
    kept = Divergence.from_text(store.divergences(KEY)[0])
    assert (kept.status, kept.closed_by, kept.closed_why) == ("closed", "ann", "mended")
    assert kinds(store)[len(before) :] == ["closed"]
    apply(store, diverged("one", 2, "f1", 6))
    kept = Divergence.from_text(store.divergences(KEY)[0])
    assert (kept.status, kept.closed_by, kept.count) == ("open", None, 2)


def test_a_demoted_path_begins_a_new_set(store: Store) -> None:
    """The other path, whose name has the same prefix, and the node keep theirs."""
    apply(store, agreed("one", 1, MAIN, range(5)))
    apply(store, agreed("one", 2, OTHER, range(5)))
    store_batch = Batch("one", 3, generated={MAIN: frozenset(range(50, 53)), OTHER: frozenset({60})})
    apply(store, store_batch)
    scopes = [f"p{MAIN}:1", f"g{MAIN}:1", f"p{OTHER}:1", f"g{OTHER}:1", "n1", "d"]
    assert sizes(store, *scopes) == [5, 3, 5, 1, 10, 0]
    after = apply(store, diverged("one", 4, "f1", read=2))
    assert isinstance(after.decisions[0], PathDemoted)
    assert sizes(store, *scopes) == [0, 0, 5, 1, 9, 1]


def test_a_node_that_falls_drops_every_set(store: Store) -> None:
    apply(store, agreed("one", 1, MAIN, range(300)))
    apply(store, agreed("one", 2, OTHER, range(10)))
    apply(store, diverged("one", 3, "f1", read=1000, path=OTHER))
    fallen = ledger.apply_event(store, KEY, Demote(Mode.SHADOW_DIRECT, "ann", "for a test"), SETTINGS, NOW)
    assert (fallen.state.mode, fallen.state.attempt, fallen.state.clean) == (Mode.SHADOW_DIRECT, 2, 0)
    assert sizes(store, "n1", "n2", f"p{MAIN}:1", f"p{OTHER}:2", "d") == [0, 0, 0, 0, 1]
    again = apply(store, agreed("one", 4, MAIN, range(5)))
    assert again.state.clean == 5, "the same inputs are evidence again"


def test_effects_that_differ_latch_the_node(store: Store) -> None:
    latched = apply(store, diverged("one", 1, "f1", 5, is_effect=True))
    assert latched.state.mode is Mode.PYTHON_ONLY
    ignored = apply(store, agreed("one", 2, MAIN, range(50)))
    assert ignored.state.clean == 0
    assert sizes(store, "n2", "n1") == [0, 0]
    assert ledger.apply_event(store, KEY, Resume("ann", "mended"), SETTINGS, NOW).state.mode is Mode.SHADOW_DIRECT
    assert kinds(store) == ["path_demoted", "latched", "changed", "released", "changed"]


def test_generated_inputs_that_traffic_brought_are_not_counted(store: Store) -> None:
    apply(store, agreed("one", 1, MAIN, range(5)))
    after = apply(store, Batch("one", 2, generated={MAIN: frozenset(range(3, 9))}))
    again = apply(store, Batch("two", 1, generated={MAIN: frozenset(range(3, 9))}))
    assert (after.state.paths[MAIN].generated, again.state.paths[MAIN].generated) == (4, 4)
    assert again.state.clean == 5


def test_events_are_applied_before_agreements(store: Store) -> None:
    batch = replace(agreed("one", 1, MAIN, range(300)), happened=diverged("one", 1, "f1", 7).happened)
    after = apply(store, batch)
    assert after.state.clean == 299
    assert after.state.mode is Mode.SHADOW_DIRECT, "an open divergence is known before anything rises"


@pytest.mark.parametrize("wrong", [1, 100])
def test_agreements_beside_a_divergence_do_not_count_for_its_path(store: Store, wrong: int) -> None:
    """Nine inputs of ten agree in every batch. The node counts them as before."""
    for number in range(1, 6):
        first = 10_000 * number
        happened = [
            each for at in range(wrong) for each in diverged("one", 100 * number + at, "f1", first + at).happened
        ]
        apply(store, replace(agreed("one", number, MAIN, range(first + wrong, first + 1000)), happened=happened))
    found = ledger.load(store, KEY, SETTINGS)
    assert (found.clean, found.divergences) == (5 * (1000 - wrong), 5 * wrong)
    assert found.compared == 5000
    assert (found.paths[MAIN].clean, sizes(store, f"p{MAIN}:{found.paths[MAIN].attempt}")) == (0, [0])
    closed = ledger.apply_event(store, KEY, Close("f1", "ann", "looked"), SETTINGS, NOW).state
    assert not is_proven(closed, MAIN)
    again = apply(store, agreed("one", 6, MAIN, range(60_000, 61_000))).state
    assert (again.paths[MAIN].clean, is_proven(again, MAIN)) == (1000, True), "gathered afterwards, it counts"


def test_agreements_on_other_paths_count_beside_a_divergence(store: Store) -> None:
    seen = {path: SeenOnPath(frozenset(range(300)), 300) for path in (MAIN, OTHER)}
    found = apply(store, Batch("one", 1, diverged("one", 1, "f1", 7).happened, seen)).state
    assert (found.clean, found.paths[MAIN].clean, found.paths[OTHER].clean) == (598, 0, 299)


def test_generated_inputs_beside_a_divergence_are_no_evidence_of_its_path(store: Store) -> None:
    generated = {path: frozenset(range(1000)) for path in (MAIN, OTHER)}
    found = apply(store, Batch("one", 1, diverged("one", 1, "f1").happened, generated=generated)).state
    assert (found.paths[MAIN].generated, found.paths[OTHER].generated) == (0, 1000)
    again = apply(store, Batch("two", 1, generated=generated)).state
    assert (again.paths[MAIN].generated, again.paths[OTHER].generated) == (1000, 1000)


def test_a_fall_in_a_batch_drops_its_agreements_on_every_path(store: Store) -> None:
    apply(store, agreed("one", 1, MAIN, range(300)))
    fall = Happened(Demote(Mode.SHADOW_DIRECT, "ann", "for a test"))
    seen = {path: SeenOnPath(frozenset(range(300)), 300) for path in (MAIN, OTHER)}
    found = apply(store, Batch("one", 2, [fall], seen)).state
    assert (found.paths[MAIN].attempt, found.paths[MAIN].clean) == (2, 0)
    assert found.paths[OTHER].clean == 300, "it was not there to lose anything"


def test_agreements_collected_before_a_divergence_do_not_count(store: Store) -> None:
    """A divergence is sent at once, and earlier agreements a second later, by its own process and by others."""

    def told(process: str, number: int, first: int, attempt: int) -> NodeState:
        seen = SeenOnPath(frozenset(range(first, first + 300)), 300, attempt)
        return apply(store, Batch(process, number, agreed={MAIN: seen})).state

    assert told("one", 1, 0, 1).paths[MAIN].clean == 300
    apply(store, diverged("one", 2, "f1", 5000))
    for process, number in (("one", 3), ("two", 1)):
        found = told(process, number, 1000, 1)
        assert (found.clean, found.paths[MAIN].clean) == (600, 0)
    after = told("two", 2, 1000, 2)
    assert (after.clean, after.paths[MAIN].clean) == (600, 300), "the same inputs, seen again afterwards"
    assert (after.divergences, after.compared) == (1, 1201)
    assert told("three", 1, 2000, 2).paths[MAIN].clean == 600


def test_notes_of_paths(store: Store) -> None:
    """The first note stays, with the prefixes of all processes."""
    first, other = PathNote(b"\x01", ("charge: ok",), "returned", ("x",)), PathNote(b"\x02", (), "returned")
    apply(store, Batch("one", 1, paths={MAIN: first.to_text(), OTHER: other.to_text()}))
    apply(store, Batch("two", 1, paths={MAIN: replace(first, prefixes=("y", "x")).to_text()}))
    assert {name: PathNote.from_text(text) for name, text in store.paths(KEY).items()} == {
        MAIN: replace(first, prefixes=("x", "y")),
        OTHER: other,
    }


def test_a_full_set_counts_no_more(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "MAX_FINGERPRINTS", 8)
    apply(store, agreed("one", 1, MAIN, range(5)))
    after = apply(store, agreed("one", 2, MAIN, range(100, 120)))
    assert (after.state.clean, after.state.compared) == (8, 25)
    assert sizes(store, "n1", f"p{MAIN}:1") == [8, 8]
    assert apply(store, agreed("one", 3, MAIN, [500])).state.clean == 8
    for number in range(4, 14):
        apply(store, diverged("one", number, "f1", 1000 + number))
    assert sizes(store, "d") == [8]


def test_paths_that_are_not_kept_leave_no_sets(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("stores.ledger", "control.controller"):
        monkeypatch.setattr(f"vesper.migration.{module}.MAX_PATHS", 1)
    apply(store, Batch("one", 1, agreed={MAIN: SeenOnPath(frozenset({1}), 1)}, paths={MAIN: "kept"}))
    seen = {OTHER: SeenOnPath(frozenset({2, 3}), 2)}
    after = apply(store, Batch("one", 2, agreed=seen, generated={OTHER: frozenset({9})}, paths={OTHER: "one too many"}))
    assert (after.state.clean, after.state.compared, set(after.state.paths)) == (1, 3, {MAIN})
    assert sizes(store, "n1", f"p{OTHER}:1", f"g{OTHER}:1") == [1, 0, 0]
    assert store.paths(KEY) == {MAIN: "kept"}


# -- history --------------------------------------------------------------------------------------


def with_a_history(store: Store) -> list[Line]:
    apply(store, agreed("one", 1, MAIN, range(300)))
    ledger.apply_event(store, KEY, Demote(Mode.SHADOW_DIRECT, "ann", "why"), SETTINGS, NOW)
    ledger.apply_event(store, KEY, Promote("ann", "refused: there is no evidence"), SETTINGS, NOW)
    ledger.apply_event(store, KEY, Kill("bob", "worried"), SETTINGS, NOW + 1)
    return list(store.history(KEY))


def test_a_history_verifies_and_a_changed_byte_is_named(store: Store) -> None:
    lines = with_a_history(store)
    assert len(lines) >= 5
    assert ledger.verify_history(lines) is None
    assert [json.loads(line.text)["node"] for line in lines] == [KEY.node] * len(lines)
    for at, line in enumerate(lines):
        middle = len(line.text) // 2
        other = line.text[:middle] + chr(ord(line.text[middle]) ^ 1) + line.text[middle + 1 :]
        changed = [*lines[:at], replace(line, text=other), *lines[at + 1 :]]
        assert f"line {at + 1} is not what was written" in str(ledger.verify_history(changed))
        if at < len(lines) - 1:
            assert f"line {at + 1} is missing" in str(ledger.verify_history([*lines[:at], *lines[at + 1 :]]))


def test_a_divergence_that_is_open_has_one_line_however_often_it_comes(store: Store) -> None:
    """This holds with agreements in between, and on every path of the divergence. All occurrences count."""
    apply(store, agreed("one", 1, MAIN, range(300)))
    apply(store, agreed("one", 2, OTHER, range(100)))
    before = len(store.history(KEY))
    for number in range(3, 43, 4):
        apply(store, diverged("one", number, "f1", 1000 + number))
        apply(store, agreed("one", number + 1, MAIN, range(1000 * number, 1000 * number + 50)))
        apply(store, diverged("one", number + 2, "f1", 2000 + number, path=OTHER))
        apply(store, agreed("one", number + 3, OTHER, range(1000 * number, 1000 * number + 50)))
    found = ledger.load(store, KEY, SETTINGS)
    assert (found.divergences, found.paths[MAIN].attempt, found.paths[MAIN].clean) == (20, 11, 50)
    assert Divergence.from_text(store.divergences(KEY)[0]).count == 20
    lines = [json.loads(line.text) for line in store.history(KEY)][before:]
    assert [(each["kind"], each.get("path")) for each in lines] == [("path_demoted", MAIN), ("path_demoted", OTHER)]
    assert sizes(store, f"p{MAIN}:10", f"p{MAIN}:11") == [0, 50], "what was taken from the path is gone all the same"
    apply(store, diverged("one", 100, "f2", 77))
    ledger.apply_event(store, KEY, Close("f1", "ann", "looked"), SETTINGS, NOW)
    apply(store, diverged("one", 101, "f1", 78))
    assert kinds(store)[before + 2 :] == ["path_demoted", "closed", "path_demoted"], "another one, and one come back"
    assert ledger.verify_history(store.history(KEY)) is None


def test_a_path_that_was_trusted_again_has_a_line_when_it_is_not(store: Store) -> None:
    """Its divergence is open on another path, so that it may gain evidence meanwhile."""
    apply(store, diverged("one", 1, "f1", 1))
    apply(store, diverged("one", 2, "f1", 2, path=OTHER))
    apply(store, agreed("one", 3, OTHER, range(100, 500)))
    after = apply(store, diverged("one", 4, "f1", 3, path=OTHER))
    assert [type(each) for each in after.decisions] == [PathDemoted]
    assert kinds(store) == ["path_demoted", "path_demoted", "path_proven", "path_demoted"]


def test_work_that_fails_leaves_nothing(store: Store) -> None:
    before = with_a_history(store)
    state = store.read(KEY)

    def work(transaction: Transaction) -> None:
        transaction.put_state("gone")
        transaction.put_applied("one", 99)
        transaction.put_divergence("f", "gone")
        transaction.add("n9", [1])
        transaction.append(Line(len(before) + 1, "gone", "gone"))
        raise BadState("in the middle")

    with pytest.raises(BadState, match="in the middle"):
        store.transact(KEY, work)
    assert (store.read(KEY), list(store.history(KEY)), list(store.divergences(KEY))) == (state, before, [])
    assert sizes(store, "n9") == [0]
    assert store.transact(KEY, lambda transaction: transaction.applied("one")) == 1


@pytest.mark.parametrize("text", ["", "{}", '{"format": 2}', "no JSON"])
def test_a_changed_state_is_refused_and_kept(store: Store, text: str) -> None:
    store.transact(KEY, lambda transaction: transaction.put_state(text))
    with pytest.raises(BadState):
        ledger.load(store, KEY, SETTINGS)
    with pytest.raises(BadState):
        apply(store, agreed("one", 1, MAIN, [1]))
    assert store.read(KEY) == text


# -- all nodes at once ----------------------------------------------------------------------------


def test_the_kill_switch_for_all(store: Store) -> None:
    assert ledger.read_kill_switch(store) is None
    apply(store, agreed("one", 1, MAIN, [1]))
    ledger.kill_all(store, "ann", "worried", NOW)
    assert store.versions() == {KEY: 1, WHOLE: 1}
    assert ledger.read_kill_switch(store) == ledger.KillSwitch("ann", "worried", NOW)
    assert ledger.load(store, KEY, SETTINGS).mode is Mode.SHADOW_DIRECT, "the node itself is as it was"
    ledger.resume_all(store, "bob", "calm again", NOW + 1)
    assert ledger.read_kill_switch(store) is None
    assert store.versions() == {KEY: 1, WHOLE: 2}
    assert [json.loads(line.text)["kind"] for line in store.history(WHOLE)] == ["killed_all", "resumed_all"]
    assert ledger.verify_history(store.history(WHOLE)) is None


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"killed": 7}', '{"killed": {"who": "ann"}}'])
def test_a_kill_switch_that_cannot_be_read(store: Store, text: str) -> None:
    store.transact(WHOLE, lambda transaction: transaction.put_state(text))
    with pytest.raises(BadState, match="the switch for all nodes"):
        ledger.read_kill_switch(store)


def test_events_and_times_are_applied_in_order(store: Store) -> None:
    """The result equals that of single events, also where a round of times decides something."""
    slow, fast = Timed(100_000, 300_000), Timed(100_000, 100_000)
    events: list[Event] = [
        *[slow] * (latency.ROUND_SIZE + 3), Unknown(1), *[fast] * 20, *[slow] * (2 * latency.ROUND_SIZE),
        Unknown(2), fast, fast,
    ]  # fmt: skip
    state = apply(store, agreed("p1", 1, MAIN, range(206))).state
    assert state.mode is Mode.CANARY_DIRECT
    expected: NodeState = state
    for event in (*events, Tick()):
        expected, _ = step(expected, event, NOW)
    found = apply(store, Batch("p1", 2, tuple(map(Happened, events))))
    assert found.state == expected
    assert found.state.unknown == 2, "what was not known before it fell is of the attempt before"
    assert [each.reason for each in found.decisions if isinstance(each, Changed)] == [Reason.LATENCY]
