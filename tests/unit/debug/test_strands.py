"""Parallel steps and loops in flight in a session: strands are shown one after the other, in written order."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest

from tests.support.nodes import compiled_text
from tests.unit.debug.subjects import compiled_node, session
from tests.unit.debug.test_session import paths
from tests.unit.engines.test_waves import _NESTED, _answer
from vesper.debug.responses import AnswerBook
from vesper.debug.session import Session
from vesper.engines.engine import Completion, Limits, Request
from vesper.engines.registry import PAIR

REVIEW = "nodes/agents/contract_review_v1.vsp"
EXPLORE = "nodes/agents/explore_v1.vsp"


class _Drawn:
    """Answers by the path of a request."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def answer(self, request: Request) -> Completion:
        return _answer(request, self._seed)


def drawn_session(seed: int, names: list[str], limits: Limits | None = None) -> Session:
    compiled = compiled_text(_NESTED)
    now = datetime(2026, 1, 1, tzinfo=UTC)
    return Session(compiled, list(PAIR.values()), {"names": names}, now, AnswerBook(_Drawn(seed)), limits)


@pytest.mark.parametrize("path", [REVIEW, EXPLORE])
def test_worked_agents_with_strands_are_followed_to_their_end(path: str) -> None:
    for case in compiled_node(path).cases:
        found = session(path, case.name)
        found.resume()
        assert "lost" not in paths(found), case.name
        assert found.divergence() is None
        for side in found.sides:
            assert all(side.owner(mark) is not None for mark in range(len(side.marks)))


def test_strands_are_shown_in_written_order_whatever_the_order_of_their_requests() -> None:
    found = drawn_session(10, ["abc", "d"])
    found.resume()
    assert [request.path for request in found.leader.requests][3:] == ["a[1]", "c[1][0]", "c[0][2]"]
    shown = [stop for stop in found.leader.stops if stop.request is not None]
    assert [stop.path for stop in shown] == ["a[0]", "c[0][0]", "c[0][1]", "c[0][2]", "a[1]", "c[1][0]"]
    assert [stop.path for stop in shown] == [stop.request.path for stop in shown if stop.request is not None]


def test_random_nests_of_strands_are_followed_with_failures_and_broken_clauses() -> None:
    kinds = set()
    for seed in range(25):
        chance = random.Random(seed)
        names = ["x" * chance.randrange(10) for _ in range(chance.randrange(7))]
        found = drawn_session(seed, names)
        found.resume()
        assert found.leader.outcome is not None
        kinds.add(found.leader.outcome.kind)
        assert "lost" not in paths(found), seed
        assert paths(found) == [stop.path for stop in found.sides[1].stops]
        for side in found.sides:
            assert all(side.owner(mark) is not None for mark in range(len(side.marks))), seed
    assert {"returned", "contract_broken"} <= kinds


@pytest.mark.parametrize("fuel", [4, 14])
def test_a_limit_amid_a_wave_leaves_each_strand_where_it_was(fuel: int) -> None:
    found = drawn_session(10, ["xx", "xxx", "x"], Limits(fuel=fuel))
    found.resume()
    assert "lost" not in paths(found)
    assert found.leader.outcome is not None
    assert found.leader.outcome.kind == "limit_hit"
