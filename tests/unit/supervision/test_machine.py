"""The supervision machine against a table of expected restarts, and against a naive reference."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.supervision.restart_table import FAILED, STOPPED_SIBLING, STRATEGY_BY_PLACE, WINDOWS
from vesper.language.work_bindings import REACTIONS, STRATEGIES, Backoff, ChildField, SupervisorField
from vesper.supervision.machine import (
    Down,
    Exited,
    Failed,
    Link,
    Monitor,
    Signal,
    Start,
    Stop,
    Tree,
    UnknownAgent,
    transition,
)

SECOND = 1_000_000


def tree_of(strategy: str = "one_for_one", names: str = "abc", reactions: str = "", **settings_: Any) -> Tree:
    by_letter = {"r": "restart", "s": "stop", "e": "escalate"}
    children = tuple(
        ChildField(name, "n_v1", by_letter[letter])
        for name, letter in zip(names, reactions or "r" * len(names), strict=True)
    )
    return Tree.start("t", SupervisorField(children, strategy, **settings_))


def crash(tree: Tree, path: str, seconds: float = 0, cause: str = "") -> Tree:
    return transition(tree, Failed(path, "boom", cause or f"{path}@{seconds}"), round(seconds * SECOND))[0]


def statuses(tree: Tree) -> dict[str, str]:
    return {path: each.status for path, each in tree.agents.items()}


def numbers(tree: Tree) -> dict[str, int]:
    return {path: each.incarnation for path, each in tree.agents.items()}


@pytest.mark.parametrize("strategy, place", STRATEGY_BY_PLACE)
@pytest.mark.parametrize("window", range(len(WINDOWS)))
def test_every_strategy_place_and_window_restarts_as_the_table_says(strategy: str, place: str, window: int) -> None:
    times, failing = WINDOWS[window]
    tree = tree_of(strategy, max_restarts=2, window_us=10 * SECOND)
    expected = dict.fromkeys("abc", 1)
    for number, seconds in enumerate(times):
        tree = crash(tree, place, seconds, str(number))
        if number == failing:
            assert set(statuses(tree).values()) == {FAILED}
            assert "more than 2 restarts in 10 s" in tree.agents[place].reason
            break
        for each in STRATEGY_BY_PLACE[strategy, place]:
            expected[each] += 1
        assert numbers(tree) == expected
        assert set(statuses(tree).values()) == {"running"}
    else:
        assert failing is None


@pytest.mark.parametrize("strategy, how", STOPPED_SIBLING)
def test_a_child_that_ended_before(strategy: str, how: str) -> None:
    tree = tree_of(strategy)
    tree, _ = transition(tree, Exited("c") if how == "normal" else Stop("c"), 0)
    tree = crash(tree, "a")
    is_anew = STOPPED_SIBLING[strategy, how]
    assert statuses(tree)["c"] == ("running" if is_anew else "stopped")
    assert numbers(tree)["c"] == (2 if is_anew else 1)


@pytest.mark.parametrize("strategy, reaction", list(product(STRATEGIES, REACTIONS)))
def test_reactions_of_a_child(strategy: str, reaction: str) -> None:
    tree = crash(tree_of(strategy, reactions="r" + reaction[0] + "r"), "b")
    if reaction == "restart":
        assert set(statuses(tree).values()) == {"running"}
        assert numbers(tree)["b"] == 2
    elif reaction == "stop":
        assert statuses(tree) == {"a": "running", "b": "failed", "c": "running"}
        assert tree.restarts == {}
    else:
        assert set(statuses(tree).values()) == {"failed"}  # the root has no supervisor that could react


def test_a_failed_supervisor_is_a_failed_child_of_the_one_above() -> None:
    inner = SupervisorField((ChildField("x", "n_v1"), ChildField("y", "n_v1")), "one_for_one", max_restarts=1)
    outer = SupervisorField(
        (ChildField("a", "n_v1"), ChildField("group", None, "restart", inner), ChildField("z", "n_v1")), "rest_for_one"
    )
    tree = crash(Tree.start("t", outer), "group/x", 0)
    assert numbers(tree) == {"a": 1, "group/x": 2, "group/y": 1, "z": 1}
    tree = crash(tree, "group/x", 1)  # its second restart: the group fails, and is restarted with those after it
    assert numbers(tree) == {"a": 1, "group/x": 3, "group/y": 2, "z": 2}
    assert set(statuses(tree).values()) == {"running"}
    assert list(tree.restarts) == [""]
    tree = crash(tree, "group/y", 2)  # the window of the group is new
    assert numbers(tree) == {"a": 1, "group/x": 3, "group/y": 3, "z": 2}


def test_the_wait_before_a_restart_grows_within_the_window() -> None:
    tree = tree_of(max_restarts=3, backoff=Backoff(100, 2, 300))
    waits = []
    for number in range(3):
        tree = crash(tree, "a", number)
        waits.append(tree.agents["a"].ready_us - number * SECOND)
    assert waits == [100, 200, 300]
    tree = crash(tree, "a", 100)
    assert tree.agents["a"].ready_us - 100 * SECOND == 100


def test_one_failure_counts_once_and_that_of_an_older_incarnation_never() -> None:
    tree = crash(tree_of(), "a", 0, "run-1")
    again = crash(tree, "a", 1, "run-1")
    older, _ = transition(tree, Failed("a", "boom", "run-2", incarnation=1), SECOND)
    assert numbers(again) == numbers(older) == {"a": 2, "b": 1, "c": 1}


def test_links_fail_both_and_end_in_circles() -> None:
    tree = tree_of(names="abc")
    for here, other in (("a", "t/b"), ("b", "t/a"), ("b", "t/c"), ("c", "t/b"), ("c", "u/x"), ("c", "t/a")):
        tree, _ = transition(tree, Link(here, other), 0)
    found, effects = transition(tree, Failed("a", "boom", "1"), 0)
    assert numbers(found) == {"a": 2, "b": 2, "c": 2}
    assert [(type(each), each.address) for each in effects if isinstance(each, Signal)] == [(Signal, "u/x")]
    normal, effects = transition(tree, Exited("a"), 0)
    assert statuses(normal) == {"a": "stopped", "b": "running", "c": "running"}
    assert effects == ()
    without, _ = transition(tree, Link("a", "t/b", is_removed=True), 0)
    assert numbers(crash(without, "a")) == {"a": 2, "b": 1, "c": 1}


def test_monitors_are_told_each_end_of_an_incarnation() -> None:
    tree, _ = transition(tree_of("one_for_all"), Monitor("b", "u/watch"), 0)
    tree, effects = transition(tree, Failed("a", "boom", "1"), 0)
    assert effects == (Down("u/watch", "t/b", 1, "restarted with a: boom"),)
    tree, effects = transition(tree, Exited("b"), 0)
    assert effects == (Down("u/watch", "t/b", 2, "normal"),)
    tree, effects = transition(tree, Stop(""), 0)
    assert effects == ()  # it had ended


def test_a_stopped_agent_runs_again_only_when_it_is_started() -> None:
    tree, _ = transition(tree_of("one_for_all"), Stop("b", "maintenance"), 0)
    assert tree.agents["b"].reason == "maintenance"
    tree = crash(tree, "a")
    tree, _ = transition(tree, Start(""), 0)
    assert statuses(tree) == dict.fromkeys("abc", "running")
    assert numbers(tree) == {"a": 2, "b": 2, "c": 2}
    assert tree.restarts == {}
    with pytest.raises(UnknownAgent):
        transition(tree, Stop("d"), 0)


# -- a naive reference ----------------------------------------------------------------------------


@dataclass
class Naive:
    """A supervisor as one would write it for living objects; children are agents or supervisors."""

    field: SupervisorField
    above: Naive | None = None
    number: int = 0
    children: list[Naive | dict[str, object]] = dataclasses.field(default_factory=list)
    crashes: list[int] = dataclasses.field(default_factory=list)

    def __post_init__(self) -> None:
        for number, each in enumerate(self.field.children):
            if each.supervisor is None:
                self.children.append({"number": 1, "status": "running"})
            else:
                self.children.append(Naive(each.supervisor, self, number))

    def leaves(self) -> list[dict[str, object]]:
        found: list[dict[str, object]] = []
        for each in self.children:
            found += each.leaves() if isinstance(each, Naive) else [each]
        return found

    def fail(self, number: int, now: int) -> None:
        own = self.field.children[number].reaction
        child = self.children[number]
        below = child.leaves() if isinstance(child, Naive) else [child]
        if own == "stop":
            for each in below:
                each["status"] = "failed" if each["status"] == "running" else each["status"]
            if isinstance(child, Naive):
                child.forget()
        elif own == "escalate":
            self.give_up(now)
        else:
            self.crashes = [each for each in self.crashes if now - each < self.field.window_us] + [now]
            if len(self.crashes) > self.field.max_restarts:
                self.give_up(now)
                return
            first, last = {
                "one_for_one": (number, number),
                "rest_for_one": (number, len(self.children) - 1),
            }.get(self.field.strategy, (0, len(self.children) - 1))
            for place in range(first, last + 1):
                sibling = self.children[place]
                if isinstance(sibling, Naive):
                    sibling.forget()
                for each in sibling.leaves() if isinstance(sibling, Naive) else [sibling]:
                    if each["status"] == "running" or place == number or self.field.strategy == "restart_all":
                        each["number"] = int(str(each["number"])) + 1
                        each["status"] = "running"

    def give_up(self, now: int) -> None:
        if self.above is None:
            self.forget()
            for each in self.leaves():
                each["status"] = "failed" if each["status"] == "running" else each["status"]
        else:
            self.above.fail(self.number, now)

    def forget(self) -> None:
        self.crashes = []
        for each in self.children:
            if isinstance(each, Naive):
                each.forget()

    def place(self, path: list[int]) -> tuple[Naive, int]:
        child = self.children[path[0]]
        return child.place(path[1:]) if isinstance(child, Naive) else (self, path[0])


@st.composite
def supervisors(draw: st.DrawFn, depth: int = 2) -> SupervisorField:
    children = []
    for number in range(draw(st.integers(1, 3))):
        nested = draw(supervisors(depth - 1)) if depth and draw(st.booleans()) else None
        reaction = draw(st.sampled_from(REACTIONS))
        children.append(ChildField(f"c{number}", None if nested else "n_v1", reaction, nested))
    strategy, most = draw(st.sampled_from(STRATEGIES)), draw(st.integers(0, 2))
    return SupervisorField(tuple(children), strategy, most, draw(st.sampled_from([1, 5, 20])))


@settings(max_examples=150, deadline=None)
@given(supervisors(), st.lists(st.tuples(st.integers(0, 100), st.integers(0, 6), st.booleans()), max_size=12))
def test_random_trees_behave_as_the_naive_reference(
    supervisor: SupervisorField, events: list[tuple[int, int, bool]]
) -> None:
    tree, naive, now = Tree.start("t", supervisor), Naive(supervisor), 1_000
    for number, (which, wait, is_exit) in enumerate(events):
        now += wait
        path = list(tree.agents)[which % len(tree.agents)]
        owner, place = naive.place([int(each[1:]) for each in path.split("/")])
        agent = owner.children[place]
        assert isinstance(agent, dict)
        if is_exit:
            tree, _ = transition(tree, Exited(path), now)
            agent["status"] = "stopped" if agent["status"] == "running" else agent["status"]
        else:
            tree, _ = transition(tree, Failed(path, "boom", str(number)), now)
            if agent["status"] == "running":
                owner.fail(place, now)
        expected = [(each["status"], each["number"]) for each in naive.leaves()]
        assert [(each.status, each.incarnation) for each in tree.agents.values()] == expected
