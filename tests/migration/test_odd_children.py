"""Processes of the direct engine that go wrong in ways of their own, and a system that has no more of what they need:
callers notice none of it, and nothing is lost for good."""

from __future__ import annotations

import tempfile
import threading
from dataclasses import replace
from typing import Any

import pytest

from tests.migration.pairs import KEY, Both, Noting, asks, at
from tests.migration.test_isolation import paid
from vesper.engines.engine import Blocked, Completion, Done, Request
from vesper.migration.apart.child import Child, ChildDied, ChildLate
from vesper.migration.apart.isolation import Busy, IsolatedProgram, Workers, _Held
from vesper.migration.apart.packed import asked_for, pack_outcome
from vesper.migration.compare.comparator import Comparator
from vesper.migration.compare.reports import Fault, Lost, Report
from vesper.migration.follow.admission import Admission
from vesper.migration.follow.direct_side import Broke, DirectSide
from vesper.migration.follow.follower import follow_transcript
from vesper.migration.follow.followers import Followers, Following

HELLO = b'{"do":"hello"}'


def test_nobody_is_given_an_answer_that_was_sent_twice() -> None:
    child = Child("tests.migration.odd_child", "twice")
    assert child.ask(HELLO, 30) == {"hello": True}
    with pytest.raises(ChildDied, match="not to the question"):
        child.ask(HELLO, 30)
    assert not child.is_alive


def test_an_answer_that_never_ends_is_not_waited_for() -> None:
    child = Child("tests.migration.odd_child", "drips")
    with pytest.raises(ChildLate):
        child.ask(HELLO, 0.2)
    assert not child.is_alive


# -- requests on the word of the direct engine alone ----------------------------------------------


def performed(bend: Any) -> tuple[list[Request], Any, list[Any]]:
    """What the Host is asked for, what comes of it and what is reported, where all is trusted."""
    node, transcript = paid()
    answers = {each.request.path: each for each in transcript.exchanges}
    watch = Noting()
    execution = Both.of(node).program("all", watch, bend).start(transcript.inputs, transcript.now, is_traced=False)
    step, asked = execution.advance(()), []
    while isinstance(step, Blocked):
        (request,) = step.requests
        asked.append(request)
        answer = answers[request.path]
        step = execution.advance((Completion(request.id, answer.value, answer.failure),))
    assert step.outcome == transcript.outcome
    return asked, transcript, watch.reports


WRONG: dict[str, dict[str, Any]] = {
    "a step that there is not": {"path": "nonsense"},
    "of no step at all": {"path": "nonsense", "effect_class": "read"},
    "a change as if it only read": {"effect_class": "read"},
    "another effect": {"effect": "cache_get"},
    "nothing fixed": {"fixed": {}},
    "something else fixed": {"fixed": {"machine": "other"}},
}


@pytest.mark.parametrize("place", range(1, 5))  # the first one reads
@pytest.mark.parametrize("changed", WRONG.values(), ids=list(WRONG))
def test_what_the_node_cannot_ask_for_is_not_performed(place: int, changed: dict[str, Any]) -> None:
    path = paid()[1].exchanges[place].request.path
    asked, transcript, reports = performed(at(path, lambda request: asks(request, **changed)))
    assert [each.path for each in asked] == [each.request.path for each in transcript.exchanges]
    assert [each.effect_class for each in asked] == [each.request.effect_class for each in transcript.exchanges]
    (report,) = reports
    assert isinstance(report, Fault)
    assert "asked for a step" in report.what


def test_what_was_performed_is_not_performed_again() -> None:
    seen: list[Blocked] = []

    def again(step: Any) -> Any:
        if isinstance(step, Done):
            return step
        seen.append(step)
        return seen[1] if len(seen) == 3 else step

    asked, transcript, reports = performed(again)
    assert [each.path for each in asked] == [each.request.path for each in transcript.exchanges]
    (report,) = reports
    assert isinstance(report, Fault)
    assert "again" in report.what


def test_who_has_not_asked_cannot_say_that_it_did(monkeypatch: pytest.MonkeyPatch) -> None:
    node, transcript = paid()
    answer: dict[str, Any] = {"marks": [], "path": "", "fingerprint": 1, "outcome": pack_outcome(transcript.outcome)}
    workers = Workers(size=1)
    workers.start()
    assert workers.wait_until_up(60)
    program = IsolatedProgram(node, workers)
    for letters in ("", "0" * 64, asked_for(replace(transcript.exchanges[0].request, key="another"))):
        told = {**answer, "paths": [[letters, ""] for _ in transcript.exchanges]}
        with monkeypatch.context() as patch:
            patch.setattr(_Held, "ask", lambda *_, told=told: told)
            assert isinstance(follow_transcript(program, transcript, Comparator(node), KEY), Fault)
    workers.close()


@pytest.mark.parametrize(
    "answer",
    [7, None, [], "x", {"raised": []}, {"raised": "ValueError"}, {"path": 7}, {"path": "zz"}, {"path": "00" * 999},
     {"paths": 7}, {"paths": [7]}],
    ids=repr,
)  # fmt: skip
def test_a_worker_that_said_nonsense_is_free_at_once(monkeypatch: pytest.MonkeyPatch, answer: Any) -> None:
    node, transcript = paid()
    workers = Workers(size=1)
    workers.start()
    assert workers.wait_until_up(60)
    program = IsolatedProgram(node, workers)
    program.points()
    with monkeypatch.context() as patch:
        patch.setattr(Child, "ask", lambda *_: answer)
        side = DirectSide(program, KEY, transcript.inputs, transcript.now, None, script=transcript.exchanges)
        found = side.advance(None)
    assert isinstance(found, Broke)
    workers.give_back(workers.take())
    workers.close()


# -- a system that has no more --------------------------------------------------------------------


def refuse(*_: object) -> None:
    raise RuntimeError("can't start new thread")


def test_a_worker_is_started_later_where_no_thread_could_be(monkeypatch: pytest.MonkeyPatch) -> None:
    workers = Workers(size=1)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        for _ in range(3):
            assert not workers.is_ready()
            with pytest.raises(Busy, match="can't start new thread"):
                workers.take()
    assert not workers.is_ready()
    assert workers.wait_until_up(60)
    workers.close()


def test_a_worker_is_started_later_where_no_file_could_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> Any:
        raise OSError("no space left")

    workers = Workers(size=1)
    with monkeypatch.context() as patch:
        patch.setattr(tempfile, "TemporaryFile", full)
        workers._starting = 1
        workers._bring_up()
    assert workers._starting == 0
    assert "the next one is started" in workers._start_another()
    workers.close()


def test_what_cannot_be_followed_without_a_thread_is_lost_and_the_next_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    followers, told = Followers(Admission(1.0, 1_000)), list[Report]()
    following = Following(lambda: Lost("followed"), told.append, 10)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        followers.put(following)
    assert told == [Lost("no thread can be started that follows")]
    followers.put(following)
    assert followers.drain(60)
    assert told[1:] == [Lost("followed")]
    followers.close()
