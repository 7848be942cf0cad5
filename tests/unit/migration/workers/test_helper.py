from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.nodes import ROOT, compiled, small_node, worked_nodes
from tests.unit.migration.support.bad_helper import AGREED
from vesper.compiler import Compiled
from vesper.engines.direct_engine import DirectEngine
from vesper.engines.engine import Blocked, Completion, Limits
from vesper.engines.outcome import LimitHit, Returned
from vesper.engines.python_engine import PythonEngine, PythonProgram
from vesper.migration.compare.comparator import Comparator
from vesper.migration.compare.reports import Agreement, Disagreement, Fault, Lost, Report
from vesper.migration.compare.transcript import Exchange, Transcript
from vesper.migration.control.state import Enumerated
from vesper.migration.workers.child import ChildDied
from vesper.migration.workers.enumeration import Position, domain_of, enumerate_all
from vesper.migration.workers.helper import Helper, Known
from vesper.migration.workers.rerun import Pair, rerun
from vesper.verify.inputs.generator import InputGenerator
from vesper.verify.inputs.responses import GeneratedResponses

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")  # of Python 3.12: servers do
NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
KEY = bytes(range(16))
ECHO = small_node("word: string", "- operation: return\n  success: {result: word}", "result: string")


def said(word: str) -> Transcript:
    return Transcript({"word": word}, None, (), Returned({"result": word}))


def written_down(
    node: Compiled, inputs: dict[str, object], seed: str, python: PythonProgram | None = None
) -> Transcript | None:
    """Return a recorded execution on Python with drawn completions; None where it makes too many requests."""
    respond = GeneratedResponses(node).responder(seed)
    execution = (python or PythonEngine().load(node)).start(inputs, NOON, is_traced=False)
    exchanges: list[Exchange] = []
    step = execution.advance(())
    while isinstance(step, Blocked):
        if len(exchanges) == 20:
            return None
        completion = respond(step.requests[0])
        exchanges.append(Exchange(step.requests[0], completion.result, completion.failure))
        step = execution.advance((completion,))
    return Transcript(inputs, NOON, tuple(exchanges), step.outcome)


class Wrapped:
    """A direct engine with replaced methods."""

    def __init__(self, node: Compiled, **otherwise: Any) -> None:
        self._program = DirectEngine().load(node)
        self.__dict__.update(otherwise)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._program, name)


@pytest.fixture(scope="module")
def effects() -> tuple[Compiled, Transcript]:
    """Return a node with a request that is not a read, and an execution of it."""
    node = compiled(ROOT / "nodes" / "payments" / "payment_handler_v1.vsp")
    python = PythonEngine().load(node)
    drawn = (written_down(node, dict(case.inputs), seed, python) for case in node.cases for seed in "abc")
    return node, next(
        each for each in drawn if each and any(one.request.effect_class != "read" for one in each.exchanges)
    )


# -- both engines once more ------------------------------------------------------------------------


def test_both_engines_repeat_a_recorded_execution() -> None:
    paths = set()
    for path in worked_nodes()[::10]:
        node = compiled(path)
        pair = Pair(node, Comparator(node))
        generator = InputGenerator(node.node, 3, seeks_boundaries=False, examples=[each.inputs for each in node.cases])
        for number in range(3):
            transcript = written_down(node, generator.draw(), f"{number}", pair.python)
            if transcript is None:
                continue
            report = rerun(pair, transcript, KEY)
            assert isinstance(report, Agreement), (path.stem, report)
            paths.add((path.stem, report.note.name))
    assert len(paths) > 5


def test_it_is_found_wherever_the_direct_engine_lies() -> None:
    node = small_node(
        "n: integer",
        "- step: twice\n  operation: compute\n  value: n + n\n"
        "- operation: return\n  success: {result: 'IF twice > 10 THEN 1 ELSE 0'}",
        "result: integer",
    )
    real = DirectEngine().load(node)
    transcript = Transcript({"n": 7}, None, (), Returned({"result": 1}))

    def instead(other: int) -> Any:
        return lambda _, *rest, **more: real.start({"n": other}, *rest, **more)

    def served(other: int) -> Any:
        return lambda _, *rest, **more: real.start_pathed({"n": other}, *rest, **more)

    def told(**otherwise: Any) -> Report | None:
        return rerun(Pair(node, Comparator(node), Wrapped(node, **otherwise)), transcript, KEY)

    assert isinstance(told(), Agreement)
    wrong = told(start=instead(3))
    assert isinstance(wrong, Disagreement)
    assert (wrong.difference.kind, wrong.difference.where) == ("outcome", "outputs.result")
    assert wrong.fingerprint is not None
    on_the_way = told(start=instead(8))  # the outcome is the same, and what it is made of is not
    assert isinstance(on_the_way, Disagreement)
    assert (on_the_way.difference.kind, on_the_way.difference.where) == ("value", "twice")
    wrong_where_it_serves = told(start_pathed=served(3))
    assert isinstance(wrong_where_it_serves, Disagreement)
    assert wrong_where_it_serves.difference.kind == "outcome"

    class OtherWay:
        def __init__(self, execution: Any) -> None:
            self._execution = execution
            self.advance, self.fingerprint = execution.advance, execution.fingerprint

        def path(self) -> bytes:
            return real.call_pathed({"n": 3}, KEY).path

    other_way = told(start_pathed=lambda *given, **more: OtherWay(real.start_pathed(*given, **more)))
    assert isinstance(other_way, Disagreement)
    assert other_way.difference.kind == "path"
    never_that = rerun(Pair(node, Comparator(node)), replace(transcript, outcome=Returned({"result": 0})), KEY)
    assert isinstance(never_that, Disagreement)  # the leader gave what neither engine gives
    assert isinstance(rerun(Pair(node, Comparator(node)), never_that.transcript, KEY, is_recorded=False), Agreement)


def test_undecided_records_are_no_evidence(effects: tuple[Compiled, Transcript]) -> None:
    node, transcript = effects
    pair = Pair(node, Comparator(node))
    first, *others = transcript.exchanges
    assert isinstance(rerun(pair, transcript, KEY), Agreement)
    without = replace(transcript, exchanges=tuple(others))
    assert rerun(pair, without, KEY) is None
    other = replace(first, request=replace(first.request, effect="something_else"))
    assert rerun(pair, replace(transcript, exchanges=(other, *others)), KEY) is None
    extra = replace(first, request=replace(first.request, path="never"))
    assert rerun(pair, replace(transcript, exchanges=(*transcript.exchanges, extra)), KEY) is None
    assert rerun(pair, replace(transcript, outcome=LimitHit("time")), KEY) is None
    assert rerun(pair, replace(transcript, outcome=LimitHit("fuel")), KEY) is None


def test_a_leader_that_had_more_fuel_is_no_divergence() -> None:
    flow = "- operation: return\n  success: {result: 'SUM(SUM(i - j FOR j IN range(0, 4000)) FOR i IN range(0, n))'}"
    node = small_node("n: integer", flow, "result: integer")
    transcript = Transcript({"n": 4000}, None, (), Returned({"result": 0}))
    direct: Any = Wrapped(node)
    pair = Pair(node, Comparator(node), direct)
    few = Limits(fuel=1000)  # instead of as much as both have, which takes seconds
    pair.python.start = partial(pair.python.start, limits=few)  # type: ignore[method-assign]
    direct.start = partial(direct._program.start, limits=few)
    assert rerun(pair, transcript, KEY) is None


def test_a_request_that_differs_is_about_effects(effects: tuple[Compiled, Transcript]) -> None:
    node, transcript = effects
    real = DirectEngine().load(node)

    class AsksOtherwise:
        def __init__(self, execution: Any) -> None:
            self._execution = execution

        def advance(self, completions: Any) -> Any:
            step = self._execution.advance(completions)
            if isinstance(step, Blocked) and step.requests[0].effect_class != "read":
                return Blocked((replace(step.requests[0], key="another"),))
            return step

    wrapped = Wrapped(node, start=lambda *given, **more: AsksOtherwise(real.start(*given, **more)))
    report = rerun(Pair(node, Comparator(node), wrapped), transcript, KEY)
    assert isinstance(report, Disagreement)
    assert report.difference.kind == "request"
    assert report.difference.is_effect


def test_an_engine_that_skips_a_recorded_request_does_not_agree(effects: tuple[Compiled, Transcript]) -> None:
    node, transcript = effects
    real, last = DirectEngine().load(node), transcript.exchanges[-1]

    class Skips:
        """A direct engine that completes its last request itself."""

        def __init__(self, execution: Any) -> None:
            self._execution = execution
            self.path, self.fingerprint = execution.path, execution.fingerprint

        def advance(self, completions: Any) -> Any:
            step = self._execution.advance(completions)
            if isinstance(step, Blocked) and step.requests[0].path == last.request.path:
                return self._execution.advance((Completion(step.requests[0].id, last.value, last.failure),))
            return step

    assert isinstance(rerun(Pair(node, Comparator(node)), transcript, KEY), Agreement)
    skips = Wrapped(node, start_pathed=lambda *given: Skips(real.start_pathed(*given)))
    found = rerun(Pair(node, Comparator(node), skips), transcript, KEY)
    assert isinstance(found, Disagreement)
    assert found.difference.kind == "request"


# -- in another process ----------------------------------------------------------------------------


def test_the_helper_process_returns_the_report(effects: tuple[Compiled, Transcript], tmp_path: Path) -> None:
    helper = Helper()
    try:
        for node, transcript in ((ECHO, said("hello")), effects):
            agreed = result(helper, Known.of(node), transcript)
            assert agreed == rerun(Pair(node, Comparator(node)), transcript, KEY)
            assert isinstance(agreed, Agreement)
        assert helper.pid is not None
        assert os.getpriority(os.PRIO_PROCESS, helper.pid) == 19
        lied = replace(said("hello"), outcome=Returned({"result": "a lie"}))
        wrong = result(helper, Known.of(ECHO), lied)
        assert isinstance(wrong, Disagreement)
        assert (wrong.transcript, wrong.follower) == (lied, Returned({"result": "hello"}))
        assert isinstance(result(helper, Known.of(ECHO), lied, is_recorded=False), Agreement)
        # And it enumerates.
        node = small_node("b: boolean", "- operation: return\n  success: {result: b}", "result: boolean")
        known = Known.of(node)

        def run(start: int, count: int) -> Report | None:
            answer = helper.enumerate_part(known, start, count, KEY)
            assert answer is not None
            return answer.result(600)

        assert enumerate_all(domain_of(node), "e", run, Position(tmp_path / "position")) == Enumerated(2)
    finally:
        helper.close()


@pytest.fixture(scope="module")
def helper() -> Iterator[Helper]:
    """Return a helper without an engine, for tests of the process."""
    made = Helper(
        seconds=0.3, max_tasks=8, max_bytes=200_000, max_deaths=100, module="tests.unit.migration.support.bad_helper"
    )
    yield made
    pid = made.pid
    made.close()
    assert pid is None or not Path(f"/proc/{pid}").exists()


def result(helper: Helper, known: Known, transcript: Transcript, **more: Any) -> Report | None:
    answer = helper.rerun(known, transcript, KEY, **more)
    assert answer is not None
    return answer.result(600)


@pytest.mark.parametrize(
    "word, why",
    [
        ("die before", "the helper process is gone: it was ended by SIGABRT"),
        ("hang", "0.3 s of computing"),
        ("raise", "could not do it: RuntimeError"),
        ("nonsense", "malformed answer"),
    ],
)
def test_tasks_without_a_verdict_are_lost(helper: Helper, word: str, why: str) -> None:
    lost = result(helper, Known.of(ECHO), said(word))
    assert isinstance(lost, Lost)
    assert why in lost.why
    assert result(helper, Known.of(ECHO), said("again")) == AGREED


def test_a_death_during_the_direct_engine_is_a_fault(helper: Helper) -> None:
    fault = result(helper, Known.of(ECHO), said("abort"))
    assert isinstance(fault, Fault)
    assert "SIGABRT" in fault.what
    assert fault.transcript == said("abort")
    assert result(helper, Known.of(ECHO), said("again")) == AGREED


def test_a_malformed_reply_resolves_the_future(helper: Helper, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(packed: object) -> Report:
        raise AttributeError("no such thing")

    monkeypatch.setattr("vesper.migration.workers.wire_values.unpack_report", breaks)
    answer = helper.rerun(Known.of(ECHO), said("fine"), KEY)
    assert answer is not None
    assert isinstance(answer.result(600), Lost)


def test_standard_error_of_a_child_is_not_logged() -> None:
    died = ChildDied("it was ended by SIGABRT; it said: panicked at 'ann@example.com'")
    assert died.how == "it was ended by SIGABRT"


def test_tasks_beyond_the_bounds_are_refused(helper: Helper) -> None:
    known = Known.of(ECHO)
    assert helper.rerun(known, said("x" * 200_000), KEY) is None
    assert helper.rerun(known, Transcript({"word": object()}, None, (), Returned({})), KEY) is None
    answers = [helper.rerun(known, said(f"{number}"), KEY) for number in range(500)]
    admitted = [each for each in answers if each is not None]
    assert 8 <= len(admitted) < 500
    assert all(each.result(600) == AGREED for each in admitted)
    assert helper.waiting == 0


def test_restarts_end_and_queued_tasks_are_lost() -> None:
    helper = Helper(max_deaths=1, module="tests.unit.migration.no_such_module")
    answers = [helper.rerun(Known.of(ECHO), said("hello"), KEY) for _ in range(5)]
    assert all(each is not None and isinstance(each.result(600), Lost) for each in answers)
    assert helper.rerun(Known.of(ECHO), said("hello"), KEY) is None
    helper.close()


def test_closing_loses_queued_tasks_and_refuses_new_ones() -> None:
    helper = Helper(seconds=600, module="tests.unit.migration.support.bad_helper")
    answers = [helper.rerun(Known.of(ECHO), said(word), KEY) for word in ("sleep", "a", "b")]
    first = answers[0]
    assert first is not None
    while not (first.running() and helper.pid is not None):
        time.sleep(0.005)
    helper.close()
    assert all(each is not None and isinstance(each.result(0), Lost) for each in answers)
    assert helper.rerun(Known.of(ECHO), said("a"), KEY) is None


def test_a_forked_process_has_a_helper_of_its_own(helper: Helper) -> None:
    assert result(helper, Known.of(ECHO), said("before")) == AGREED
    pid = helper.pid
    if (child := os.fork()) == 0:
        status = 1
        try:
            if helper.pid is None and result(helper, Known.of(ECHO), said("child")) == AGREED:
                helper.close()
                status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert helper.pid == pid
    assert result(helper, Known.of(ECHO), said("after")) == AGREED
