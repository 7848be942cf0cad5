"""Every legal change of mode is taken, and the list of untested ones is empty."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial

import pytest

from tests.unit.migration.support.stories import FAR, MAIN, at, changes, complete, node, told
from vesper.migration.control.controller import step
from vesper.migration.control.modes import LADDER, LATCHING, TRANSITIONS, Mode, Reason, is_legal
from vesper.migration.control.state import (
    MAX_OPEN,
    Agreed,
    Changed,
    Close,
    Demote,
    Diverged,
    EngineFaulted,
    Enumerated,
    Event,
    Generated,
    Kill,
    NodeState,
    Noisy,
    PinTo,
    Promote,
    Resume,
    RunLost,
    Tick,
    Timed,
    Unknown,
    Unpin,
)
from vesper.migration.statistics import latency

PYTHON, SHADOW, CANARY, DUAL, DIRECT = LADDER
ONCE = Diverged(MAIN, "f1")
WHO = ("ann", "because")
SLOW = [Timed(100_000, 200_000)] * (latency.ROUND_SIZE * latency.BAD_ROUNDS)
MANY = [Diverged(MAIN, f"f{number}") for number in range(MAX_OPEN + 1)]

Story = tuple[Callable[[], NodeState], Sequence[Event]]
Key = tuple[Reason, Mode, Mode]


def latching(mode: Mode) -> dict[Key, Story]:
    stories: dict[Reason, Sequence[Event]] = {
        Reason.EFFECT_MISMATCH: [Diverged(MAIN, "f1", is_effect=True)],
        Reason.ENGINE_FAULT: [EngineFaulted("panicked")],
        Reason.LOST_RUNS: [RunLost("e1"), RunLost("e1"), RunLost("e2")],
        Reason.KILL: [Kill(*WHO)],
    }
    return {(reason, mode, PYTHON): (partial(at, mode), events) for reason, events in stories.items()}


def full_list(mode: Mode) -> Story:
    """Return a node in a mode with a full list of open divergences, and the event of another one.

    The list is set directly, because the divergences that would fill it demote the node first.
    """

    def start() -> NodeState:
        listed = {each.fingerprint: MAIN for each in MANY[:-1]}
        state = at(mode)
        return NodeState(**{name: getattr(state, name) for name in NodeState.__slots__} | {"open": listed})

    return start, MANY[-1:]


STORIES: dict[Key, Story] = {
    (Reason.EVIDENCE, SHADOW, CANARY): (node, [Agreed(MAIN, 205, 205), Agreed(MAIN)]),
    (Reason.EVIDENCE, CANARY, DUAL): (
        lambda: told(node(), [Agreed(MAIN, 206, 206)])[0],
        [Agreed(MAIN, 10_607, 10_607), Agreed(MAIN)],
    ),
    (Reason.EVIDENCE, DUAL, DIRECT): (
        lambda: told(node(), [Agreed(MAIN, 206, 206), Agreed(MAIN, 10_608, 10_608)])[0],
        [Agreed(MAIN, 97_416, 97_416), Agreed(MAIN)],
    ),
    (Reason.DIVERGENCE, CANARY, SHADOW): (lambda: at(CANARY, 206), [ONCE]),
    (Reason.DIVERGENCE, DUAL, CANARY): (lambda: at(DUAL, 10_814), [ONCE]),
    (Reason.DIVERGENCE, DUAL, SHADOW): (lambda: complete(DUAL), [ONCE]),
    (Reason.DIVERGENCE, DIRECT, DUAL): (lambda: at(DIRECT, 108_231), [ONCE]),
    (Reason.DIVERGENCE, DIRECT, CANARY): (lambda: complete(DIRECT, 300), [ONCE]),
    (Reason.DIVERGENCE, DIRECT, SHADOW): (lambda: complete(DIRECT), [ONCE]),
    **{(Reason.RATE, mode, SHADOW): (partial(at, mode), [ONCE] * 3) for mode in (CANARY, DUAL, DIRECT)},
    (Reason.LATENCY, DIRECT, DUAL): (lambda: at(DIRECT), SLOW),
    (Reason.LATENCY, CANARY, SHADOW): (lambda: at(CANARY), SLOW),
    **{
        (Reason.PERSON, before, after): (partial(at, before), [Promote(*WHO)])
        for before, after in ((SHADOW, CANARY), (CANARY, DUAL), (DUAL, DIRECT))
    },
    **{
        (Reason.PERSON, before, after): (partial(at, before), [Demote(after, *WHO)])
        for before, after in TRANSITIONS[Reason.DIVERGENCE]
    },
    **{
        (Reason.PIN, before, after): (partial(at, before), [PinTo(after, FAR, *WHO)])
        for before, after in TRANSITIONS[Reason.PIN]
    },
    (Reason.UNPINNED, PYTHON, SHADOW): (lambda: at(PYTHON), [Unpin(*WHO)]),
    (Reason.RESUME, PYTHON, SHADOW): (lambda: told(at(DUAL), [Kill(*WHO)])[0], [Resume(*WHO)]),
    **{key: story for mode in LADDER[1:] for key, story in latching(mode).items()},
    **{(Reason.TOO_MANY_DIVERGENCES, mode, PYTHON): full_list(mode) for mode in LADDER[1:]},
}


@pytest.mark.parametrize("key", sorted(STORIES, key=str), ids=lambda key: "-".join(each.value for each in key))
def test_the_change_is_made_and_recorded(key: Key) -> None:
    reason, before, after = key
    start, events = STORIES[key]
    state = start()
    assert state.mode is before
    state, early = told(state, events[:-1])
    assert changes(early) == [], "the last event is the one that does it"
    later, decisions = step(state, events[-1], 7)
    (record,) = changes(decisions)
    assert (record.reason, record.before, record.after, record.at_us) == (reason, before, after, 7)
    assert later.mode is after
    assert record.who == ("ann" if hasattr(events[-1], "who") else "controller")
    assert record.why
    assert record.seen.attempt == state.attempt
    assert (later.latches != ()) == (reason in LATCHING)
    is_fall = after.level < before.level
    begins_afresh = is_fall and reason is not Reason.PIN
    assert later.attempt == record.attempt == state.attempt + begins_afresh
    if begins_afresh:
        assert (later.clean, later.divergences, later.is_complete) == (0, 0, False)


def test_no_transition_is_left_without_a_test() -> None:
    exist = {(reason, *change) for reason, legal in TRANSITIONS.items() for change in legal}
    assert exist - set(STORIES) == set(), "transitions that no test takes"
    assert set(STORIES) - exist == set(), "stories of transitions that do not exist"


def random_event(draw: random.Random) -> Event:
    who = ("ann", "because")
    amount = draw.choice([1, 10, 300, 20_000, 200_000])
    path = draw.choice(["main", "rare"])
    choices: list[Callable[[], Event]] = [
        lambda: Agreed(path, amount, amount),
        lambda: Agreed(path, 0, amount),
        lambda: Generated(path, amount),
        lambda: Enumerated(amount),
        lambda: Diverged(path, draw.choice("abc")),
        lambda: Diverged(path, draw.choice("abc"), is_effect=draw.random() < 0.2, was_clean=True),
        lambda: Noisy(draw.choice("de"), "outputs"),
        lambda: Unknown(draw.choice([1, amount])),
        lambda: RunLost(draw.choice("xyz")),
        lambda: EngineFaulted("panicked"),
        lambda: Timed(100, draw.choice([100, 300])),
        lambda: Close(draw.choice("abcde"), *who),
        lambda: Promote(*who),
        lambda: Demote(draw.choice(LADDER), *who),
        lambda: PinTo(draw.choice(LADDER), draw.randint(0, 2_000), *who),
        lambda: Unpin(*who),
        lambda: Kill(*who),
        lambda: Resume(*who),
        Tick,
    ]
    return draw.choices(choices, [12, 2, 2, 1, 2, 1, 1, 1, 1, 1, 2, 6, 3, 1, 1, 2, 1, 4, 2])[0]()


@pytest.mark.parametrize("seed", range(12))
def test_invariants_hold_after_any_events(seed: int) -> None:
    draw = random.Random(seed)
    state = node(*draw.sample([CANARY, DUAL, DIRECT], draw.randint(0, 1)))
    taken: set[Mode] = set()
    for now in range(1_000):
        before = state
        event = random_event(draw)
        state, decisions = step(state, event, now)
        assert step(before, event, now) == (state, decisions), "the same again comes out the same"
        mode = before.mode
        for record in decisions:
            if isinstance(record, Changed):
                assert record.before is mode
                assert is_legal(record.before, record.after, record.reason)
                mode = record.after
        assert mode is state.mode, "a change without a record"
        assert sum(each.after.level > each.before.level for each in changes(decisions)) <= 1
        assert state.mode is PYTHON or not state.latches
        assert state.mode.level <= before.mode.level or not state.open or before.mode is PYTHON
        assert state.mode.level <= before.mode.level or not state.noise or before.mode is PYTHON
        assert state.pin is None or state.mode.level <= state.pin.mode.level
        assert state.mode is not PYTHON or state.latches or state.pin
        assert sum(path.open for path in state.paths.values()) == len(state.open)
        taken.add(state.mode)
    assert PYTHON in taken
    assert SHADOW in taken
