from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import vesper
from tests.support.nodes import PAYMENT_DECISION, ROOT, compiled, small_node, worked_nodes
from tests.unit.migration.support.routed import divergences_of, put_into, routes_in, state_of
from vesper.compiler import Compiled
from vesper.engines.compare import compare, same_outcome
from vesper.engines.direct_engine import DirectEngine
from vesper.engines.engine import Blocked, Completion, Done, Limits, Request
from vesper.engines.outcome import EngineFault, LimitHit, Returned
from vesper.engines.python_engine import PythonEngine
from vesper.migration.compare.comparator import Comparator
from vesper.migration.compare.reports import Agreement, Disagreement
from vesper.migration.compare.transcript import Exchange, Transcript
from vesper.migration.control.modes import Mode, Reason
from vesper.migration.shadow.guarded_direct import Broke, DirectSide
from vesper.migration.shadow.shadow_run import follow_transcript
from vesper.migration.workers.asking import Busy, Unavailable
from vesper.migration.workers.child import Child, _environment
from vesper.migration.workers.isolation import IsolatedProgram, Workers
from vesper.migration.workers.wire_values import request_digest
from vesper.migration.workers.worker_lease import WorkerLease
from vesper.verify.inputs.generator import InputGenerator

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")  # of Python 3.12: servers do
NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
KEY = bytes(range(16))
EFFECTS = ROOT / "nodes" / "payments" / "payment_handler_v1.vsp"
ECHO = small_node("word: string", "- operation: return\n  success: {result: word}", "result: string")


def until(is_so: Callable[[], bool], seconds: float = 60.0) -> bool:
    end = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


def is_there(pid: int) -> bool:
    """Return True for a running process; a zombie does not count."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _order(value: object) -> object:
    """Return the keys of a value in order, at every depth: equal dicts may differ in it."""
    if isinstance(value, dict):
        return [(key, _order(each)) for key, each in value.items()]
    return [_order(each) for each in value] if isinstance(value, list) else None


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    made = Workers(size=1)
    made.start()
    assert made.wait_until_up(60)
    yield made
    pids = made.pids()
    made.close()
    assert pids
    assert not any(map(is_there, pids))


@pytest.fixture
def bad_workers() -> Iterator[Workers]:
    made = Workers(size=1, deadline=1.0, memory_mib=256, module="tests.unit.migration.support.bad_worker")
    made.start()
    assert made.wait_until_up(60)
    yield made
    pids = made.pids()
    made.close()
    assert not any(map(is_there, pids))


def test_a_worker_returns_the_same_outcomes(workers: Workers) -> None:
    compared = 0
    for path in worked_nodes()[::7]:
        node = compiled(path)
        direct, isolated = DirectEngine().load(node), IsolatedProgram(node, workers)
        generator = InputGenerator(node.node, 7, seeks_boundaries=False, examples=[each.inputs for each in node.cases])
        for _ in range(3):
            inputs = generator.draw()
            here = direct.start(inputs, NOON).advance(())
            try:
                there = isolated.start(inputs, NOON).advance(())
            except Unavailable:
                continue  # an input that is none, which no other process can be given as it is
            assert type(here) is type(there)
            if isinstance(here, Blocked) and isinstance(there, Blocked):
                assert here.requests[:1] == there.requests  # a worker hands over a wave request by request
                continue
            assert not isinstance(here, Blocked)
            assert not isinstance(there, Blocked)
            assert same_outcome(here.outcome, there.outcome)
            assert compare(here, there).__class__.__name__ == "Agree"
            if isinstance(here.outcome, Returned) and isinstance(there.outcome, Returned):
                assert _order(here.outcome.value) == _order(there.outcome.value)
            compared += 1
    assert compared > 5


def test_an_execution_with_effects_goes_on_in_its_process(workers: Workers) -> None:
    node = compiled(EFFECTS)
    case = next(each for each in node.cases if each.effects)
    here = DirectEngine().load(node).start_pathed(case.inputs, KEY, NOON)
    there = IsolatedProgram(node, workers).start_pathed(case.inputs, KEY, NOON)
    left, right = here.advance(()), there.advance(())
    for _ in range(50):
        assert left == right
        assert (here.path(), here.fingerprint()) == (there.path(), there.fingerprint())
        if isinstance(left, Done):
            break
        completion = Completion(left.requests[0].id, None, "http_500")
        left, right = here.advance((completion,)), there.advance((completion,))
    assert isinstance(right, Done)


def paid() -> tuple[Compiled, Transcript]:
    """Return Python's outcome of one case, with all its requests."""
    node = compiled(EFFECTS)
    case = max(node.cases, key=lambda each: len(each.effects))
    execution = PythonEngine().load(node).start(case.inputs, NOON)
    answers = {each.path: each for each in case.effects}
    exchanges = []
    step = execution.advance(())
    while isinstance(step, Blocked):
        (request,) = step.requests
        found = answers[request.path]
        exchanges.append(Exchange(request, None if found.fails else found.returns, found.fails))
        step = execution.advance((exchanges[-1].completion(),))
    assert len(exchanges) > 2
    return node, Transcript(case.inputs, NOON, tuple(exchanges), step.outcome)


def test_records_are_followed_with_one_message(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    node, transcript = paid()
    asked: list[bytes] = []
    ask = Child.ask

    def noted(child: Child, question: bytes, seconds: float) -> Any:
        asked.append(question)
        return ask(child, question, seconds)

    monkeypatch.setattr(Child, "ask", noted)
    isolated, here = IsolatedProgram(node, workers), DirectEngine().load(node)
    isolated.points()
    asked.clear()
    reports = [follow_transcript(each, transcript, Comparator(node), KEY) for each in (isolated, here)]
    left, right = reports
    assert isinstance(left, Agreement)
    assert isinstance(right, Agreement)
    assert (left.note, left.fingerprint) == (right.note, right.fingerprint)
    assert len(asked) == 1


def test_foreign_records_differ_at_the_first_other_request(workers: Workers) -> None:
    node, transcript = paid()
    isolated, here = IsolatedProgram(node, workers), DirectEngine().load(node)
    for place, exchange in enumerate(transcript.exchanges):
        other = replace(exchange.request, arguments={**exchange.request.arguments, "extra": 1})
        exchanges = list(transcript.exchanges)
        exchanges[place] = replace(exchange, request=other)
        changed = replace(transcript, exchanges=tuple(exchanges))
        left, right = (follow_transcript(each, changed, Comparator(node), KEY) for each in (isolated, here))
        assert isinstance(left, Disagreement)
        assert isinstance(right, Disagreement)
        assert left.difference == right.difference
        assert left.difference.where.startswith(exchange.request.path)
    assert isinstance(follow_transcript(isolated, transcript, Comparator(node), KEY), Agreement)


def test_the_digest_of_a_request() -> None:
    """Its id and the order of its fields are left out; everything else counts, to the kind of a number."""
    given: Any = {"amount": 1, "to": {"a": 1, "b": 2}}
    request = Request(3, "charge[2]", "http", "keyed", {"method": "POST"}, given, "k")
    turned: Any = {"to": {"b": 2, "a": 1}, "amount": 1}
    same = [replace(request, id=4), replace(request, arguments=turned)]
    arguments: list[Any] = [{**given, "amount": each} for each in (2, True, 1.0, "1", Decimal(1), None)]
    arguments += [{"amount": 1}, {"amount": 1, "to": {"a": 1}}, {**given, "c": None}]
    other = [replace(request, arguments=each) for each in arguments]
    for name, value in (("path", "charge[3]"), ("effect", "sql"), ("effect_class", "read"), ("key", None)):
        other.append(replace(request, **{name: value}))  # type: ignore[arg-type]  # mypy takes all fields for one type
    other.append(replace(request, fixed={"method": "GET"}))
    assert {request_digest(each) for each in same} == {request_digest(request)}
    assert len({request_digest(each) for each in (request, *other)}) == len(other) + 1


@pytest.mark.parametrize(
    "answer",
    [7, None, [], "x", {}, {"cpu": 0}, {"raised": "ValueError"}, {"cpu": 0, "path": 7}, {"cpu": 0, "paths": [7]},
     {"cpu": 0, "outcome": ["returned"]}, {"cpu": 0, "request": [1, "charge"]}],
    ids=repr,
)  # fmt: skip
def test_a_malformed_answer_is_a_fault_and_kills_the_worker(monkeypatch: pytest.MonkeyPatch, answer: Any) -> None:
    node, transcript = paid()
    workers = Workers(size=1)
    workers.start()
    assert workers.wait_until_up(60)
    program = IsolatedProgram(node, workers)
    program.points()
    (pid,) = workers.pids()
    with monkeypatch.context() as patch:
        patch.setattr(Child, "ask", lambda *_: answer)
        side = DirectSide(program, KEY, transcript.inputs, transcript.now, None, script=transcript.exchanges)
        found = side.advance(None)
    assert isinstance(found, Broke)
    assert found.is_fault
    assert not is_there(pid)
    assert until(workers.is_ready)  # another one was started in its place
    assert isinstance(follow_transcript(program, transcript, Comparator(node), KEY), Agreement)
    workers.close()


def test_limits_and_misuse_reach_the_worker(workers: Workers) -> None:
    node = compiled(PAYMENT_DECISION)
    program = IsolatedProgram(node, workers)
    inputs = dict(node.cases[0].inputs)
    assert program.call(inputs, None, Limits(fuel=0)) == DirectEngine().load(node).call(inputs, None, Limits(fuel=0))
    assert isinstance(program.call(inputs, None, Limits(fuel=0)), LimitHit | Returned)
    assert program.call_pathed(inputs, KEY) == DirectEngine().load(node).call_pathed(inputs, KEY)
    assert program.points() == DirectEngine().load(node).points()
    with pytest.raises(Unavailable, match="inputs are a dict"):
        program.call([1])  # type: ignore[arg-type]
    with pytest.raises(Unavailable, match="cannot be sent"):
        program.call({**inputs, "country": object()})
    with pytest.raises(ValueError, match="start"):
        IsolatedProgram(compiled(EFFECTS), workers).call({}, NOON)
    assert isinstance(program.call(inputs), Returned)


def test_without_an_idle_worker_the_caller_gets_busy(workers: Workers) -> None:
    program = IsolatedProgram(ECHO, workers)
    execution = program.start({"word": "a"})
    with pytest.raises(Busy, match="all 1 processes"):
        program.call({"word": "b"})
    del execution  # whoever lets go of an execution lets go of its process
    assert program.call({"word": "b"}) == Returned({"result": "b"})


@pytest.mark.parametrize(
    "word, said",
    [
        ("abort", "SIGABRT"),
        ("segv", "SIGSEGV"),
        ("killed", "SIGKILL"),
        ("exit", "status 3"),
        ("memory", "ran out of the memory"),
        ("hang", "1.5 s of computing"),
    ],
)
def test_the_caller_survives_any_engine_fault(bad_workers: Workers, word: str, said: str) -> None:
    program = IsolatedProgram(ECHO, bad_workers)
    assert program.call({"word": "fine"}) == Returned({"result": "fine"})
    (pid,) = bad_workers.pids()
    outcome = program.call({"word": word})
    assert isinstance(outcome, EngineFault)
    assert said in outcome.message
    assert not is_there(pid)
    with pytest.raises(Busy, match="started in"):
        program.call({"word": "fine"})
    assert until(lambda: _is_answered(program))
    assert bad_workers.pids() != [pid]


def _is_answered(program: IsolatedProgram) -> bool:
    try:
        return program.call({"word": "fine"}) == Returned({"result": "fine"})
    except Busy:
        return False


@pytest.mark.parametrize("word", ["abort", "memory"])
def test_a_routed_node_whose_worker_dies_answers_from_python_and_is_latched(
    bad_workers: Workers, tmp_path: Path, word: str
) -> None:
    routes = routes_in(tmp_path, isolation="process", sample="0.01%")
    routes._workers = bad_workers
    try:
        program = routes.program(ECHO)
        put_into(routes, program, Mode.DIRECT_ONLY)
        assert program.call({"word": "fine"}) == Returned({"result": "fine"})
        (pid,) = bad_workers.pids()
        assert program.call({"word": word}) == Returned({"result": word})
        assert not is_there(pid)
        assert program.live.local.mode is Mode.PYTHON_ONLY
        routes.migration.tend(is_all=True)
        state = state_of(routes, program)
        assert state.mode is Mode.PYTHON_ONLY
        assert [each.reason for each in state.latches] == [Reason.ENGINE_FAULT]
        (divergence,) = divergences_of(routes, program)
        assert divergence.kind == "fault"
        assert program.call({"word": word}) == Returned({"result": word})
    finally:
        routes.close()


def test_a_routed_node_whose_workers_are_all_busy_answers_from_python(bad_workers: Workers, tmp_path: Path) -> None:
    routes = routes_in(tmp_path, isolation="process", sample="0.01%")
    routes._workers = bad_workers
    try:
        program = routes.program(ECHO)
        put_into(routes, program, Mode.DIRECT_ONLY)
        held = WorkerLease(bad_workers)
        assert program.call({"word": "fine"}) == Returned({"result": "fine"})
        held.release()
        routes.migration.tend(is_all=True)
        assert state_of(routes, program).mode is Mode.DIRECT_ONLY, "it says nothing about the engine"
        assert divergences_of(routes, program) == []
    finally:
        routes.close()


def test_no_comparison_is_lost_before_a_worker_is_up_nor_with_more_threads_than_workers(tmp_path: Path) -> None:
    """Neither a burst right after the start nor more threads than workers may block the node's promotion."""
    routes = routes_in(tmp_path, isolation="process")
    program = routes.program(ECHO)
    workers = routes._workers
    assert workers is not None
    try:
        for number in range(30):
            assert program.call({"word": f"early {number}"}) == Returned({"result": f"early {number}"})
        assert workers.wait_until_up(30)

        def some(thread: int) -> None:
            for number in range(20):
                program.call({"word": f"late {thread} {number}"})

        threads = [threading.Thread(target=some, args=(each,)) for each in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        workers.at_exit()  # what waits is followed first, when the routes are closed
        routes.followers.drain(10)
        routes.migration.tend(is_all=True)
        state = state_of(routes, program)
        assert (state.unknown, state.clean >= 80) == (0, True), state
    finally:
        routes.close()


def test_exceptions_and_prints_in_a_worker(bad_workers: Workers) -> None:
    program = IsolatedProgram(ECHO, bad_workers)
    pids = bad_workers.pids()
    assert program.call({"word": "raise"}) == EngineFault("RuntimeError: the engine raised")
    assert program.call({"word": "print"}) == Returned({"result": "print"})
    step = program.start({"word": "raise"}).advance(())
    assert isinstance(step, Done)
    assert step.outcome == EngineFault("RuntimeError: the engine raised")
    assert bad_workers.pids() == pids


def test_an_abandoned_reply_reaches_no_other_caller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A server that ends a request with a signal raises in the middle of it."""
    workers = Workers(size=1)
    workers.start()
    assert workers.wait_until_up(60)
    program = IsolatedProgram(ECHO, workers)
    assert until(lambda: _is_answered(program))

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as signalled:
        signalled.setattr(Child, "receive", interrupted)
        with pytest.raises(KeyboardInterrupt):
            program.call({"word": "mine"})
    found: list[object] = []

    def is_answered() -> bool:
        try:
            found.append(program.call({"word": "yours"}))
        except Busy:
            return False
        return True

    assert until(is_answered)
    assert found == [Returned({"result": "yours"})]
    workers.close()


def test_an_oversized_message_is_no_fault(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    program = IsolatedProgram(ECHO, workers)
    monkeypatch.setattr("vesper.migration.workers.asking.MAX_MESSAGE_BYTES", 1000)
    with pytest.raises(Unavailable, match="at most 1,000 bytes"):
        program.call({"word": "x" * 1000})


def test_workers_are_not_restarted_for_ever() -> None:
    workers = Workers(size=1, max_deaths=1, memory_mib=64, module="tests.unit.migration.no_such_module")
    workers.start()
    reasons: list[str] = []

    def is_given_up() -> bool:
        with pytest.raises(Busy) as raised:
            WorkerLease(workers)
        reasons.append(str(raised.value))
        return "no more are started" in reasons[-1]

    assert until(is_given_up)
    assert any("started in" in each for each in reasons)
    assert workers.pids() == []


def test_closing_ends_running_executions() -> None:
    workers = Workers(size=1, deadline=600, module="tests.unit.migration.support.bad_worker")
    workers.start()
    assert workers.wait_until_up(60)
    program = IsolatedProgram(ECHO, workers)
    assert program.call({"word": "fine"}) == Returned({"result": "fine"})
    (pid,) = workers.pids()
    before, raised = computed(pid), []

    def hangs() -> None:
        with pytest.raises(Unavailable, match="closed") as found:
            program.call({"word": "hang"})
        raised.append(found.value)

    hanging = threading.Thread(target=hangs)
    hanging.start()
    assert until(lambda: computed(pid) > before + 0.05)
    workers.close()
    hanging.join(20)
    assert not is_there(pid)
    assert raised, "that somebody closed it is no fault of the engine"
    with pytest.raises(Busy, match="closed"):
        program.call({"word": "fine"})


def test_threads_share_workers(workers: Workers) -> None:
    program = IsolatedProgram(ECHO, workers)
    wrong: list[object] = []

    def many(name: str) -> None:
        for number in range(40):
            word = f"{name}{number}"
            try:
                if program.call({"word": word}) != Returned({"result": word}):
                    wrong.append(word)
            except Busy:
                continue

    threads = [threading.Thread(target=many, args=(name,)) for name in "abcd"]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert wrong == []


def test_a_forked_process_has_its_own(workers: Workers) -> None:
    program = IsolatedProgram(ECHO, workers)
    held = program.start({"word": "held"})
    pids = workers.pids()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            with pytest.raises(Unavailable, match="forked"):
                held.advance(())
            if workers.pids() == [] and until(lambda: _is_answered(program)) and workers.pids() != pids:
                workers.close()
                status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert workers.pids() == pids
    step = held.advance(())
    assert isinstance(step, Done)
    assert step.outcome == Returned({"result": "held"})


_DIES = """
import os, sys, threading, time
from tests.unit.migration.workers.test_isolation import ECHO
from vesper.migration.control.modes import Mode, Reason
from vesper.migration.workers.isolation import IsolatedProgram, Workers
workers = Workers(size=2, deadline=600, module="tests.unit.migration.support.bad_worker")
workers.start()
while len(workers.pids()) < 2:
    time.sleep(0.005)
program = IsolatedProgram(ECHO, workers)
program.call({"word": "fine"})
threading.Thread(target=lambda: program.call({"word": "hang"}), daemon=True).start()
forked = os.fork()
if forked == 0:
    time.sleep(60)
    os._exit(0)
print(forked, *workers.pids(), flush=True)
sys.stdin.readline()
"""


def computed(pid: int) -> float:
    """Return the processor seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return int(fields[11]) / os.sysconf("SC_CLK_TCK")


def test_a_process_imports_the_vesper_that_its_starter_runs() -> None:
    """Nothing else is imported from there: a folder before Python's own could hide modules of it."""
    first = Path(_environment()["PYTHONPATH"].split(os.pathsep)[0])
    assert (first / "vesper" / "__init__.py").samefile(vesper.__file__)


def test_none_outlives_the_process_that_started_it_not_even_one_that_hangs() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _DIES], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        forked, *pids = (int(each) for each in process.stdout.readline().split())
        assert len(pids) == 2
        before = {pid: computed(pid) for pid in pids}
        assert until(lambda: any(computed(pid) > before[pid] + 0.1 for pid in pids)), "one of them hangs"
        process.kill()
        process.wait()
        try:
            # One that was forked from the dead one lives on; it is not what the workers live for.
            assert is_there(forked)
            assert until(lambda: not any(map(is_there, pids)))
        finally:
            os.kill(forked, 9)
