"""The controller: promotions, blocks, demotions, and the records of decisions."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import pytest

from tests.unit.migration.support.memory_store import MemoryStore
from tests.unit.migration.support.stories import FAR, MAIN, at, changes, complete, node, told
from vesper.migration.control import controller
from vesper.migration.control.controller import (
    Missing,
    has_line,
    is_proven,
    missing_conditions,
    runs_until_change,
    step,
)
from vesper.migration.control.modes import LADDER, Mode, Reason
from vesper.migration.control.state import (
    MAX_NOISE,
    MAX_PIN_US,
    Agreed,
    Close,
    Closed,
    Demote,
    Diverged,
    EngineFaulted,
    Enumerated,
    Event,
    Generated,
    Kill,
    Latched,
    NoiseFound,
    Noisy,
    PathDemoted,
    PathProven,
    PinEnded,
    PinTo,
    Promote,
    Refused,
    Released,
    Resume,
    Settings,
    Tick,
    Timed,
    Unknown,
    Unpin,
)
from vesper.migration.statistics import latency
from vesper.migration.stores import ledger
from vesper.migration.stores.store import Batch, NodeKey, SeenOnPath

PYTHON, SHADOW, CANARY, DUAL, DIRECT = LADDER
WHO = ("ann", "because")


def test_clean_distinct_runs_cross_at_exactly_the_promised_numbers() -> None:
    """One run at a time near the threshold."""
    state, crossed = node(), {}
    total = 0
    for until in (200, 10_800, 108_200, 108_240):
        state, decisions = told(state, [Agreed(MAIN, until - total - 6, until - total - 6)])
        assert changes(decisions) == []
        total = until - 6
        for _ in range(40):
            total += 1
            state, decided = step(state, Agreed(MAIN), 0)
            for record in changes(decided):
                crossed[record.after] = total
    assert crossed == {CANARY: 206, DUAL: 10_814, DIRECT: 108_231}


def test_many_copies_of_one_input_never_leave_shadow() -> None:
    store, key = MemoryStore(), NodeKey("copies_v1", "one")
    for number in range(100):
        batch = Batch("p", number + 1, agreed={MAIN: SeenOnPath(frozenset({7}), 10_000)})
        assert changes(ledger.apply(store, key, batch, Settings(), 0).decisions) == []
    state = ledger.load(store, key, Settings())
    assert (state.mode, state.clean, state.compared) == (SHADOW, 1, 1_000_000)


def test_a_small_domain_that_was_run_through_reaches_the_top_one_mode_at_a_time() -> None:
    """Two enums of four and a boolean: 32 inputs."""
    state, decisions = told(node(), [Enumerated(32), Tick(), Tick(), Tick()])
    assert [each.after for each in changes(decisions)] == [CANARY, DUAL, DIRECT]
    assert is_proven(state, "a path that traffic never took")


@pytest.mark.parametrize("inputs", [0, -1, 1_000_001])
def test_a_domain_that_is_too_large_is_not_complete(inputs: int) -> None:
    state, (decision,) = step(node(), Enumerated(inputs), 0)
    assert isinstance(decision, Refused)
    assert not state.is_complete


def test_a_divergence_ends_completeness_and_an_open_one_keeps_it_from_coming_back() -> None:
    state, _ = step(complete(DIRECT), Diverged(MAIN, "f"), 0)
    assert (state.mode, state.is_complete) == (SHADOW, False)
    state, (decision,) = step(state, Enumerated(32), 0)
    assert isinstance(decision, Refused)
    state, _ = told(state, [Close("f", *WHO), Enumerated(32)])
    assert state.mode is CANARY


@pytest.mark.parametrize(
    "blocking, lifting",
    [
        ([Diverged("rare", "f")], [Close("f", *WHO)]),
        ([Noisy("f", "outputs.fee"), Noisy("f", "outputs.fee")], [Close("f", *WHO)]),
        ([Unknown(1)], [Agreed(MAIN, 0, 1_000)]),
        ([PinTo(SHADOW, FAR, *WHO)], [Unpin(*WHO)]),
        ([Timed(100_000, 300_000)] * latency.ROUND_SIZE, [Timed(100_000, 100_000)] * latency.ROUND_SIZE),
    ],
    ids=["open", "noise", "unknown", "pin", "latency"],
)
def test_what_blocks_a_promotion(blocking: Sequence[Event], lifting: Sequence[Event]) -> None:
    state, decisions = told(node(), [*blocking, Agreed(MAIN, 400, 400), Tick()])
    assert state.mode is SHADOW
    assert changes(decisions) == []
    assert len(missing_conditions(state)) == 1
    state, decisions = told(state, lifting)
    assert state.mode is CANARY
    assert [each.reason for each in changes(decisions)] == [Reason.EVIDENCE]


@pytest.mark.parametrize("mode", LADDER, ids=lambda mode: mode.value)
def test_noise_leaves_a_node_where_it_is(mode: Mode) -> None:
    before = at(mode)
    state, decisions = told(before, [Noisy("f", "outputs.fee"), Noisy("f", "outputs.fee"), Noisy("g", "outputs.tax")])
    assert decisions == [NoiseFound("f", "outputs.fee"), NoiseFound("g", "outputs.tax")]
    assert (state.mode, state.clean, state.divergences, state.open) == (mode, before.clean, 0, {})
    state, decisions = told(state, [Close("f", *WHO)])
    assert decisions == [Closed("f", "", *WHO)]
    assert state.noise == {"g": "outputs.tax"}


def test_noise_outlives_evidence_and_is_bounded() -> None:
    state, _ = told(at(DUAL), [Noisy(f"f{number}", "outputs") for number in range(MAX_NOISE + 5)])
    assert len(state.noise) == MAX_NOISE
    state, _ = told(state, [Kill(*WHO), Resume(*WHO), Agreed(MAIN, 400, 400)])
    assert state.mode is SHADOW
    assert Missing("places to be closed in which an engine differs from itself", MAX_NOISE) in missing_conditions(state)
    _, (refused,) = step(state, Promote(*WHO), 0)
    assert isinstance(refused, Refused)
    assert "differs from itself" in refused.why


def test_a_path_needs_its_own_evidence() -> None:
    state, decisions = told(node(), [Agreed(MAIN, 108_231, 108_231), Tick(), Tick(), Agreed("rare", 205, 205)])
    assert state.mode is DIRECT
    assert (is_proven(state, MAIN), is_proven(state, "rare"), is_proven(state, "unseen")) == (True, False, False)
    state, decisions = told(state, [Agreed("rare")])
    assert decisions == [PathProven("rare", 206, 0, 1)]
    assert is_proven(state, "rare")


def test_a_node_that_fell_because_it_is_slow_rises_when_it_is_not() -> None:
    slow, fast = ([Timed(100_000, direct)] * latency.ROUND_SIZE for direct in (300_000, 100_000))
    state, decisions = told(at(CANARY), [*slow * latency.BAD_ROUNDS, Agreed(MAIN, 5_000, 5_000), Tick()])
    assert changes(decisions)[0].why == (
        "the direct engine was slower than Python in 2 rounds of 500 runs; in the last one median 300 µs beside 100 µs "
        "of Python, 95th percentile 300 µs beside 100 µs"
    )
    assert (state.mode, state.attempt) == (SHADOW, 2), "it has the evidence, and is as slow as it was"
    state, _ = told(state, [*slow, Tick()])
    assert state.mode is SHADOW
    state, _ = told(state, [*fast, Tick()])
    assert state.mode is CANARY


def test_repeated_divergences_do_not_fill_the_history() -> None:
    """The second divergence takes no evidence; each one is counted nevertheless."""
    wrong = [Diverged(MAIN, "f")] * 50
    state, decisions = told(node(), wrong)
    assert decisions == [PathDemoted(MAIN, "f", 2)]
    assert (state.divergences, state.compared, state.paths[MAIN].attempt) == (50, 50, 51)
    state, decisions = told(state, [Agreed(MAIN, 1, 1), *wrong])
    assert decisions == [PathDemoted(MAIN, "f", 52)], "it had evidence again"
    state, decisions = told(state, [Diverged("other", "f"), Diverged(MAIN, "g"), *wrong])
    assert decisions == [PathDemoted("other", "f", 2), PathDemoted(MAIN, "g", 102)], "another path, another divergence"
    state, decisions = told(state, [Close("f", *WHO), *wrong])
    assert decisions == [Closed("f", MAIN, *WHO), PathDemoted(MAIN, "f", 153)], "it was closed, and is open again"


def test_an_open_divergence_that_demotes_again_gets_no_line() -> None:
    """The decision is made nevertheless, for listeners: the path restarts each time."""
    assert has_line(node(), PathDemoted(MAIN, "f", 2))
    state, _ = told(node(), [Diverged(MAIN, "f"), Agreed(MAIN, 100_000, 100_000)])
    assert not has_line(state, PathDemoted(MAIN, "f", 3)), "it is compared already"
    assert has_line(state, PathDemoted(MAIN, "g", 3)), "another divergence"
    assert has_line(state, PathDemoted("other", "f", 2)), "another path"
    state, _ = told(state, [Diverged("other", "f"), Agreed("other", 100, 100)])
    assert not has_line(state, PathDemoted("other", "f", 3))
    state, _ = told(state, [Agreed("other", 400, 400)])
    assert is_proven(state, "other")
    assert has_line(state, PathDemoted("other", "f", 3)), "it was trusted"
    state, _ = told(state, [Close("f", *WHO)])
    assert has_line(state, PathDemoted(MAIN, "f", 3)), "it was closed"
    assert not has_line(state, Refused(Tick(), "for a test"))
    assert has_line(state, PathProven(MAIN, 300, 0, 3))


def test_generated_inputs_fill_a_path_and_are_no_traffic() -> None:
    state, decisions = told(node(), [Generated("rare", 200_000)])
    assert decisions == [PathProven("rare", 0, 200_000, 1)]
    assert (state.mode, state.clean, state.compared) == (SHADOW, 0, 0)


def test_a_divergence_demotes_its_path_alone_where_the_evidence_carries_the_node() -> None:
    state, decisions = told(at(DIRECT), [Agreed("other", 300, 300), Diverged(MAIN, "f")])
    assert decisions == [PathProven("other", 300, 0, 1), PathDemoted(MAIN, "f", 2)]
    assert (state.mode, is_proven(state, MAIN), is_proven(state, "other")) == (DIRECT, False, True)
    state, _ = told(state, [Agreed(MAIN, 100_000, 100_000)])
    assert not is_proven(state, MAIN), "not while its divergence is open"
    state, decisions = told(state, [Close("f", *WHO)])
    assert decisions == [Closed("f", MAIN, *WHO), PathProven(MAIN, 100_000, 0, 2)]


def test_the_second_time_a_path_pays_more() -> None:
    state, _ = told(node(), [Diverged("rare", "f"), Close("f", *WHO), Agreed("rare", 224, 224)])
    assert not is_proven(state, "rare")
    assert is_proven(told(state, [Agreed("rare")])[0], "rare")


def test_coming_back_needs_fresh_evidence_one_mode_at_a_time() -> None:
    state, _ = told(at(DIRECT), [EngineFaulted("panicked"), Agreed(MAIN, 500_000, 500_000), Tick()])
    assert (state.mode, state.clean) == (PYTHON, 0)
    state, decisions = told(state, [Resume(*WHO)])
    assert any(isinstance(each, Released) for each in decisions)
    state, decisions = told(state, [Agreed(MAIN, 115_108, 115_108), Tick(), Tick(), Tick()])
    assert [each.after for each in changes(decisions)] == [CANARY, DUAL]
    assert state.attempt == 2
    assert missing_conditions(state) == (Missing("more distinct runs that agree", 1),)
    state, decisions = told(state, [Agreed(MAIN)])
    assert state.mode is DIRECT


def test_only_a_person_releases_a_latch() -> None:
    state, _ = told(at(DUAL), [Kill(*WHO)])
    pinned, _ = told(state, [PinTo(PYTHON, 5, *WHO)])
    later, decisions = step(pinned, Tick(), 6)
    assert later.mode is PYTHON
    assert any(isinstance(each, PinEnded) for each in decisions)
    for event in (Promote(*WHO), Enumerated(3), Agreed(MAIN, 10**6, 10**6)):
        assert step(state, event, 0)[0].mode is PYTHON


def test_every_latch_is_kept_and_recorded_once() -> None:
    state, decisions = told(at(DUAL), [Kill(*WHO), EngineFaulted("x"), Kill(*WHO)])
    assert [each.latch.reason for each in decisions if isinstance(each, Latched)] == [Reason.KILL, Reason.ENGINE_FAULT]
    assert len(changes(decisions)) == 1
    state, (released, _) = step(state, Resume(*WHO), 0)
    assert isinstance(released, Released)
    assert len(released.latches) == 2


def test_a_pin_holds_until_it_runs_out_and_shields_from_nothing() -> None:
    state, _ = told(at(DIRECT), [PinTo(DUAL, 50, *WHO)])
    assert told(state, [Agreed(MAIN, 10**6, 10**6), Tick()], now_us=49)[0].mode is DUAL
    assert told(state, [Tick()], now_us=50)[0].mode is DIRECT
    assert told(state, [EngineFaulted("x")], now_us=10)[0].mode is PYTHON


def test_a_release_under_a_pin_to_python_stays_in_python() -> None:
    state, _ = told(at(PYTHON), [Kill(*WHO), Resume(*WHO)])
    assert (state.mode, state.latches) == (PYTHON, ())
    assert told(state, [Unpin(*WHO)])[0].mode is SHADOW


@pytest.mark.parametrize(
    "mode, event, why",
    [
        (SHADOW, PinTo(CANARY, 5, *WHO), "holds a node down"),
        (DUAL, PinTo(SHADOW, 0, *WHO), "in the future"),
        (DUAL, PinTo(SHADOW, MAX_PIN_US + 1, *WHO), "within 366 days"),
        (DUAL, Unpin(*WHO), "no pin"),
        (DUAL, Resume(*WHO), "no latch"),
        (DUAL, Demote(PYTHON, *WHO), "pin the node to python_only or kill it"),
        (CANARY, Demote(DUAL, *WHO), "is not lower"),
        (DIRECT, Promote(*WHO), "no higher mode"),
        (PYTHON, Promote(*WHO), "resume or unpin"),
        (DUAL, Close("unheard of", *WHO), "no open divergence"),
    ],
)
def test_a_refusal_has_a_reason_and_changes_nothing(mode: Mode, event: Event, why: str) -> None:
    state = at(mode)
    after, (decision,) = step(state, event, 0)
    assert isinstance(decision, Refused)
    assert why in decision.why
    assert after == state


def test_an_approval_does_not_replace_evidence() -> None:
    state, _ = told(node(DUAL), [Agreed(MAIN, 206, 206)])
    _, (decision,) = step(state, Promote(*WHO), 0)
    assert isinstance(decision, Refused)
    assert decision.why == "dual_verify lacks 10,608 more distinct runs that agree"
    assert missing_conditions(state)[-1] == Missing("the approval of a person for dual_verify")


def test_a_slow_engine_does_not_demote_where_python_answers() -> None:
    state, decisions = told(at(DUAL), [Timed(100_000, 300_000)] * (3 * latency.ROUND_SIZE))
    assert state.mode is DUAL
    assert changes(decisions) == []


def test_an_agreement_is_revoked_by_a_divergence() -> None:
    state, _ = told(node(), [Agreed(MAIN, 10, 10), Diverged(MAIN, "f", was_clean=True)])
    assert (state.clean, state.divergences) == (9, 1)


def test_paths_beyond_those_kept_are_never_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller, "MAX_PATHS", 1)
    state, _ = told(node(), [Agreed(MAIN, 1, 1), Agreed("more", 500, 500), Diverged("more", "f")])
    assert set(state.paths) == {MAIN}
    assert (state.clean, state.divergences, set(state.open)) == (1, 1, {"f"})
    assert not is_proven(state, "more")


def test_the_record_of_a_promotion_holds_the_evidence() -> None:
    _, decisions = told(node(), [Agreed(MAIN, 206, 300)])
    (record,) = changes(decisions)
    assert (record.seen.clean, record.seen.compared, record.seen.divergences) == (206, 300, 0)
    assert record.seen.lower_bound == pytest.approx(0.95008, abs=1e-5)
    assert record.seen.log_e == pytest.approx(10.1654, abs=1e-4)
    assert json.loads(json.dumps(record.to_record())) == {
        "before": "shadow_direct",
        "after": "canary_direct",
        "reason": "evidence",
        "who": "controller",
        "why": "the evidence carries canary_direct",
        "at_us": 0,
        "attempt": 1,
        "seen_clean": 206,
        "seen_divergences": 0,
        "seen_compared": 300,
        "seen_unknown": 0,
        "seen_attempt": 1,
        "seen_is_complete": False,
        "seen_lower_bound": record.seen.lower_bound,
        "seen_log_e": record.seen.log_e,
    }


@pytest.mark.parametrize("closes", [False, True])
def test_runs_until_a_change_are_exact(closes: bool) -> None:
    state, _ = told(node(), [Diverged("rare", "f"), *([Close("f", *WHO)] if closes else [])])
    for path in (MAIN, "rare"):
        runs = runs_until_change(state, path, 10**6)
        if runs is None:
            assert path == "rare"
            assert not closes
            continue
        assert runs_until_change(state, path, runs - 1) is None
        assert step(state, Agreed(path, runs - 1, runs - 1), 0)[1] == ()
        assert step(state, Agreed(path, runs, runs), 0)[1] != ()


@pytest.mark.parametrize("make", [lambda: Agreed(MAIN, 2, 1), lambda: Generated(MAIN, -1), lambda: Unknown(-1)])
def test_impossible_counts_are_refused(make: Callable[[], Event]) -> None:
    with pytest.raises(ValueError, match="cannot be"):
        make()
