"""Child processes that misbehave, and a system without threads, files or memory left.

Callers notice none of it, and nothing is lost for good.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from queue import SimpleQueue
from typing import Any

import pytest

from tests.support.nodes import ROOT, small_node
from tests.support.striking import strikes
from tests.unit.migration.support.pairs import KEY, Both, Noting, asks, at
from tests.unit.migration.workers.test_isolation import ECHO, is_there, paid, until
from vesper.engines.direct_engine import DirectEngine
from vesper.engines.engine import Blocked, Completion, Done, Request
from vesper.engines.outcome import Returned
from vesper.migration.compare.reports import Fault, Lost, Report
from vesper.migration.shadow.admission import Admission, add_worker_seconds, take_worker_seconds
from vesper.migration.shadow.guarded_direct import Broke, DirectSide
from vesper.migration.shadow.shadow_queue import Followers, Following
from vesper.migration.workers.asking import Busy, Unavailable
from vesper.migration.workers.child import Child, ChildDied, ChildLate
from vesper.migration.workers.isolation import IsolatedProgram, Workers
from vesper.migration.workers.worker_lease import Worker, WorkerLease

HELLO = b'{"do":"hello"}'


def refuse(*_: object) -> None:
    raise RuntimeError("can't start new thread")


def test_a_repeated_reply_reaches_no_caller() -> None:
    child = Child("tests.unit.migration.support.odd_child", "twice")
    assert child.ask(HELLO, 30) == {"hello": True}
    with pytest.raises(ChildDied, match="another question"):
        child.ask(HELLO, 30)
    assert not child.is_alive


def test_an_endless_reply_is_cut_off() -> None:
    child = Child("tests.unit.migration.support.odd_child", "drips")
    with pytest.raises(ChildLate):
        child.ask(HELLO, 0.2)
    assert not child.is_alive


@pytest.mark.parametrize("how, why", [("long", "104,857,600 bytes"), ("garbage", "cannot be read"), ("deep", "deep")])
def test_a_malformed_frame_ends_the_child(how: str, why: str) -> None:
    child = Child("tests.unit.migration.support.odd_child", how)
    with pytest.raises(ChildDied, match=f"malformed.*{why}"):
        child.ask(HELLO, 60)
    assert not child.is_alive


_CLOSED = """
import signal, time
from vesper.migration.workers.child import Child, ChildDied
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
child = Child("tests.unit.migration.support.odd_child", "closes")
try:
    while True:
        child.send(b"{}")
        time.sleep(0.01)
except ChildDied:
    print("told")
"""


def test_a_child_that_closes_its_pipe_raises_no_sigpipe() -> None:
    """Some servers reset SIGPIPE to its default, which ends the process."""
    command = [sys.executable, "-c", _CLOSED]
    found = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (found.returncode, found.stdout) == (0, "told\n"), found.stderr


def test_grandchildren_end_with_the_child() -> None:
    child = Child("tests.unit.migration.support.odd_child", "family")
    started = child.ask(HELLO, 60)
    assert is_there(started)
    child.close()
    assert until(lambda: not is_there(started))


def test_a_death_is_noticed_though_a_grandchild_holds_the_pipe() -> None:
    child = Child("tests.unit.migration.support.odd_child", "family")
    started = child.ask(HELLO, 60)
    with pytest.raises(ChildDied, match="status 3"):
        child.ask(HELLO, 600)
    assert until(lambda: not is_there(started))


_STARTER = """
import sys
from vesper.migration.workers.child import Child
child = Child("tests.unit.migration.support.odd_child", "family")
print(child.ask(b"{}", 60), child.pid, flush=True)
sys.stdin.readline()
"""


def test_grandchildren_do_not_outlive_the_parent() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _STARTER], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        pids = [int(each) for each in process.stdout.readline().split()]
        assert all(map(is_there, pids))
        process.kill()
        process.wait()
        assert until(lambda: not any(map(is_there, pids)))


# -- large answers --------------------------------------------------------------------------------


def test_an_oversized_reply_is_no_fault() -> None:
    node = small_node("word: string", "- {operation: return, success: {a: word, b: word}}", "a: string\nb: string")
    workers = Workers(size=1, memory_mib=2048)
    workers.start()
    assert workers.wait_until_up(60)
    program = IsolatedProgram(node, workers)
    (pid,) = workers.pids()
    with pytest.raises(Unavailable, match="too large"):
        program.call({"word": "\x01" * 6_000_000})  # of which each takes six bytes in a message
    assert program.call({"word": "fine"}) == Returned({"a": "fine", "b": "fine"})
    assert workers.pids() == [pid]
    workers.close()


# -- requests on the word of the direct engine alone ----------------------------------------------


def performed(bend: Any) -> tuple[list[Request], Any, list[Any]]:
    """Return the requests to the Host, their completions and the reports, where everything is trusted."""
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
def test_undeclared_requests_are_not_performed(place: int, changed: dict[str, Any]) -> None:
    path = paid()[1].exchanges[place].request.path
    asked, transcript, reports = performed(at(path, lambda request: asks(request, **changed)))
    assert [each.path for each in asked] == [each.request.path for each in transcript.exchanges]
    assert [each.effect_class for each in asked] == [each.request.effect_class for each in transcript.exchanges]
    (report,) = reports
    assert isinstance(report, Fault)
    assert "asked for a step" in report.what


def test_performed_requests_are_not_repeated() -> None:
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


# -- how long it computed -------------------------------------------------------------------------


def test_a_worker_reports_its_processor_time() -> None:
    workers = Workers(size=1)
    workers.start()
    assert workers.wait_until_up(60)
    node, transcript = paid()
    program = IsolatedProgram(node, workers)
    take_worker_seconds()
    began = time.monotonic()
    for script in (transcript.exchanges, ()):
        side = DirectSide(program, KEY, transcript.inputs, transcript.now, None, script=script)
        assert isinstance(side.advance(None), Blocked)
        for exchange in transcript.exchanges:
            assert not isinstance(side.advance(exchange), Broke)
    assert IsolatedProgram(ECHO, workers).call({"word": "x" * 1_000_000}) == Returned({"result": "x" * 1_000_000})
    assert 0 < take_worker_seconds() <= time.monotonic() - began
    assert take_worker_seconds() == 0
    workers.close()


def test_worker_time_is_counted_by_thread() -> None:
    take_worker_seconds()
    found: list[float] = []

    def another() -> None:
        add_worker_seconds(1.0)
        add_worker_seconds(0.5)
        found.extend((take_worker_seconds(), take_worker_seconds()))

    thread = threading.Thread(target=another)
    thread.start()
    thread.join()
    assert found == [1.5, 0]
    assert take_worker_seconds() == 0


# -- workers that nobody has any more -------------------------------------------------------------


def test_repeated_abandoning_ends_restarts() -> None:
    workers = Workers(size=1, max_deaths=1)
    said: list[str] = []

    def is_given_up() -> bool:
        taken: list[Worker] = []
        try:
            workers.take(taken)
            workers.abandon(*taken)
        except Busy as error:
            said.append(str(error))
        return "no more are started" in (said or [""])[-1]

    assert until(is_given_up)
    assert workers.pids() == []
    workers.close()


def test_a_worker_taken_during_closing_is_ended() -> None:
    class Taken(SimpleQueue[Any]):
        """A queue whose last worker goes to another thread after it was seen."""

        def empty(self) -> bool:
            return False

    workers = Workers(size=1)
    workers._idle = Taken()
    workers.close()


def test_a_worker_returned_after_closing_is_ended() -> None:
    workers = Workers(size=1)
    workers.start()
    assert workers.wait_until_up(60)
    held = WorkerLease(workers)
    (worker,) = held._taken
    workers.close()
    held.release()
    assert worker.child._is_closed


def test_a_collected_lease_returns_its_worker() -> None:
    workers = Workers(size=1)
    workers.start()
    assert workers.wait_until_up(60)
    held = WorkerLease(workers)
    with pytest.raises(Busy):
        WorkerLease(workers)
    del held
    WorkerLease(workers).release()
    workers.close()


@pytest.mark.filterwarnings(
    "ignore:Exception ignored in.*WorkerLease.__del__"
)  # where it struck, with nothing to give back
def test_interrupts_lose_no_worker() -> None:
    workers = Workers(size=1)
    workers.start()
    assert workers.wait_until_up(60)

    def work() -> None:
        WorkerLease(workers).release()

    for _ in strikes(work):
        WorkerLease(workers).release()  # raises `Busy` where nobody has it
    workers.close()


# -- a system that has no more --------------------------------------------------------------------


def test_a_worker_is_started_later_where_no_thread_could_be(monkeypatch: pytest.MonkeyPatch) -> None:
    workers = Workers(size=1)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        for _ in range(3):
            assert not workers.is_ready()
            with pytest.raises(Busy, match="can't start new thread"):
                WorkerLease(workers)
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


def test_without_a_thread_one_execution_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
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


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


def test_json_values_of_a_worker_are_unchanged() -> None:
    """A json is a plain object there, with larger numbers and deeper nesting than other values."""
    node = small_node("doc: json", "- {operation: return, success: {result: doc}}", "result: json")
    workers = Workers(size=1)
    workers.start()
    assert workers.wait_until_up(60)
    program, here = IsolatedProgram(node, workers), DirectEngine().load(node)
    for doc in ({"id": 2**64 - 1}, [10**30, -(10**999)], nested(100), {"a": [1.5, None, True, "x"]}):
        assert program.call({"doc": doc}) == here.call({"doc": doc})
        assert isinstance(program.call({"doc": doc}), Returned)
    workers.close()


def test_a_reaped_child_is_not_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    child = Child("tests.unit.migration.support.odd_child", "16")
    os.kill(child.pid, signal.SIGKILL)
    os.waitpid(child.pid, 0)
    killed: list[int] = []
    monkeypatch.setattr(os, "kill", lambda pid, _: killed.append(pid))
    monkeypatch.setattr(os, "killpg", lambda pid, _: killed.append(pid))
    child.close()
    assert killed == []
