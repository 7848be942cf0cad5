"""Executions on two engines without a Host: completions come from a seed."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.nodes import compiled, compiled_text, small_node, worked_nodes
from tests.unit.migration.support.pairs import KEY, KINDS, Both, Noting, Wrong, at_end, gives
from vesper.engines.compare import same_outcome
from vesper.engines.engine import Completion, Done, Execution, Limits, Request
from vesper.engines.outcome import Denied, EngineFault, Failed, LimitHit, Outcome, Returned
from vesper.host.plans import plans_of
from vesper.migration.compare.comparator import Verdict
from vesper.migration.compare.reports import Agreement, Disagreement, Fault, Lost
from vesper.migration.compare.transcript import Exchange, Transcript
from vesper.migration.shadow.guarded_direct import NotAsked
from vesper.migration.shadow.lockstep import Pair
from vesper.migration.shadow.recorded_program import RecordedExecution
from vesper.migration.shadow.routed_programs import GuardedProgram, RecordedProgram, follow_transcript
from vesper.values.inputs import NotInputs
from vesper.verify.inputs.generator import InputGenerator
from vesper.verify.inputs.responses import MAX_REQUESTS, NOON, GeneratedResponses, Responder


@cache
def double() -> Both:
    flow = """\
- {step: twice, operation: compute, value: IF n > 5 THEN n * 2 ELSE n}
- {operation: return, success: {result: twice}}"""
    return Both.of(small_node("n: integer", flow, "result: integer"))


@cache
def long_loop() -> Both:
    flow = """\
- {step: total, operation: compute, value: "SUM(x * x FOR x IN range(0, n))"}
- {operation: return, success: {result: total}}"""
    return Both.of(small_node("n: integer", flow, "result: integer"))


def to_the_end(execution: Execution, respond: Responder) -> Outcome | None:
    """Run to the end; None where it makes too many requests."""
    step = execution.advance(())
    for _ in range(MAX_REQUESTS):
        if isinstance(step, Done):
            return step.outcome
        step = execution.advance((respond(step.requests[0]),))
    return None


def _note(written: list[Any], *told: Any) -> None:
    written.append(told)


# -- all nodes ------------------------------------------------------------------------------------


WITH_EFFECTS = [path for path in worked_nodes() if "capabilities_required:" in path.read_text(encoding="utf-8")]
PURE = [path for path in worked_nodes() if path not in WITH_EFFECTS]
ANSWERED = [path for path in WITH_EFFECTS if path.stem in ("payment_handler_v1", "expire_reservations_v1")]
"""Nodes with completions from a seed. All nodes run with real effects in test_nodes_on_two_engines."""


def test_no_node_is_left_out() -> None:
    assert len(ANSWERED) == 2


@pytest.mark.parametrize("path", [*PURE, *ANSWERED], ids=lambda path: path.stem)
def test_the_engines_agree_in_every_plan(path: Path) -> None:
    both = Both.of(compiled(path))
    assert both.python.is_plain is (path in PURE)
    generator = InputGenerator(both.compiled.node, 7, seeks_boundaries=False)
    responses = GeneratedResponses(both.compiled)
    for number in range(4):
        inputs = generator.draw()
        notes = set()
        for kind in KINDS:
            watch = Noting()
            program = both.program(kind, watch)
            execution = program.start(inputs, NOON, is_traced=False)
            outcome = to_the_end(execution, responses.responder(f"{number}"))
            assert outcome is not None
            # What is trusted to its end is not compared, so nothing is said of it; where fuel ran out it always is.
            is_compared = kind != "all" or isinstance(outcome, LimitHit)
            assert [type(each) for each in watch.reports] == [Agreement] * is_compared, watch.reports
            notes |= {(each.note, each.fingerprint) for each in watch.reports if isinstance(each, Agreement)}
            if both.python.is_plain:
                assert same_outcome(program.call(inputs, NOON), outcome)
        written: list[Any] = []
        recorded = RecordedProgram(both.python, partial(_note, written))
        to_the_end(recorded.start(inputs, NOON, is_traced=False), responses.responder(f"{number}"))
        ((transcript, _, _),) = written
        assert isinstance(transcript, Transcript)
        followed = follow_transcript(both.direct, transcript, both.comparator, KEY)
        assert isinstance(followed, Agreement), followed
        notes.add((followed.note, followed.fingerprint))
        assert len(notes) == 1, "one path, whoever finds it"


# -- a node without effects -----------------------------------------------------------------------


def test_only_trusted_outcomes_leave_uncompared() -> None:
    both, lie = double(), at_end(lambda done: gives(done, result=99))
    for kind in ("paired", "guarded", "prefixes"):
        watch = Noting()
        assert both.program(kind, watch, lie).call({"n": 3}) == Returned({"result": 3}), "Python's stands"
        (found,) = watch.reports
        assert isinstance(found, Disagreement)
        assert (found.difference.kind, found.difference.where) == ("outcome", "outputs.result")
        assert not found.difference.is_effect
        assert found.transcript == Transcript({"n": 3}, None, (), Returned({"result": 3}))
        assert found.follower == Returned({"result": 99})
        assert found.note is not None
        assert found.fingerprint is not None
    watch = Noting()
    assert both.program("all", watch, lie).call({"n": 3}) == Returned({"result": 99})
    assert watch.reports == []


def test_an_agreement_in_lockstep_has_no_times() -> None:
    watch = Noting()
    assert double().program("paired", watch).call({"n": 3}) == Returned({"result": 3})
    (found,) = watch.reports
    assert isinstance(found, Agreement)
    assert found.python_ns is None
    assert found.direct_ns is None


def test_another_path_to_the_same_answer_is_a_difference() -> None:
    both = double()

    class Detour(Wrong):
        def start_pathed(self, inputs: Any, *rest: Any, **more: Any) -> Any:
            return super().start_pathed({"n": 50 + inputs["n"]}, *rest, **more)

    program = both.program("paired", watch := Noting())
    program._pair = replace(program._pair, direct=Detour(both.direct, at_end(lambda done: gives(done, result=3))))
    assert program.call({"n": 3}) == Returned({"result": 3})
    (found,) = watch.reports
    assert isinstance(found, Disagreement)
    assert found.difference.kind == "path"
    assert found.difference.where.startswith("condition ")
    assert {found.difference.leader, found.difference.follower} == {"false", "not false"}


def raising(error: BaseException) -> Callable[[Done], Done]:
    def bend(done: Done) -> Done:
        raise error

    return bend


class Panic(BaseException):
    """A panic of the Rust engine as Python sees it: no `Exception`."""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "error, what",
    [
        (ValueError("n is 3"), "it raised ValueError: n is 3"),
        (Panic("index out of bounds"), "it raised Panic: index out of bounds"),
        (MemoryError(), "it raised MemoryError: "),
    ],
    ids=["raises", "panics", "memory"],
)
def test_any_exception_of_the_direct_engine_is_a_fault(kind: str, error: BaseException, what: str) -> None:
    watch = Noting()
    program = double().program(kind, watch, at_end(raising(error)))
    assert program.call({"n": 3}) == Returned({"result": 3})
    assert watch.reports == [Fault(what, Transcript({"n": 3}, None, (), EngineFault(what)), None)]
    sensitive = double().program(kind, watch := Noting(), at_end(raising(error)), is_sensitive=True)
    assert sensitive.call({"n": 3}) == Returned({"result": 3})
    (found,) = watch.reports
    assert isinstance(found, Fault)
    assert "3" not in found.what


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit()], ids=["interrupt", "exit"])
def test_foreign_exceptions_pass_through(error: BaseException) -> None:
    watch = Noting()
    with pytest.raises(type(error)):
        double().program("all", watch, at_end(raising(error))).call({"n": 3})
    assert watch.reports == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_reported_engine_fault(kind: str) -> None:
    watch = Noting()
    bend = at_end(lambda _: Done(EngineFault("a register is empty"), ()))
    assert double().program(kind, watch, bend).call({"n": 3}) == Returned({"result": 3})
    (found,) = watch.reports
    assert isinstance(found, Fault)
    assert found.what == "it is at fault: a register is empty"


@pytest.mark.parametrize("kind", KINDS)
def test_a_direct_engine_that_does_not_run_is_no_fault(kind: str) -> None:
    watch = Noting()
    program = double().program(kind, watch, at_end(raising(NotAsked("all workers are busy"))))
    assert program.call({"n": 3}) == Returned({"result": 3})
    assert watch.reports == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_direct_engine_that_computes_too_long_is_left(kind: str) -> None:
    """The real engine gives up at the deadline, and Python gets all the time that its caller allowed."""
    watch = Noting()
    program = long_loop().program(kind, watch, deadline=0.0)
    assert program.call({"n": 2000}) == Returned({"result": sum(x * x for x in range(2000))})
    (found,) = watch.reports
    assert isinstance(found, Fault)
    assert found.what == "it computed for more than 0 s"


def test_a_direct_engine_that_comes_back_late_is_left() -> None:
    def late(done: Done) -> Done:
        time.sleep(0.06)
        return done

    watch = Noting()
    program = double().program("all", watch, at_end(late), deadline=0.05)
    assert program.call({"n": 3}) == Returned({"result": 3})
    (found,) = watch.reports
    assert found == Fault(
        "it computed for more than 0.05 s",
        Transcript({"n": 3}, None, (), EngineFault("it computed for more than 0.05 s")),
    )


@pytest.mark.parametrize("kind", KINDS)
def test_fuel_is_compared_and_time_is_not(kind: str) -> None:
    watch = Noting()
    program = long_loop().program(kind, watch)
    assert program.call({"n": 2000}, limits=Limits(fuel=100)) == LimitHit("fuel")
    (found,) = watch.reports
    assert isinstance(found, Agreement)
    assert found.note.ending == "limit fuel"
    watch = Noting()
    bend = at_end(lambda _: Done(LimitHit("time"), ()))
    assert isinstance(long_loop().program(kind, watch, bend).call({"n": 2}, limits=Limits(seconds=60)), Returned)
    assert watch.reports == [Lost("the limit on time was hit")]


@pytest.mark.parametrize("kind", KINDS)
def test_refused_inputs_agree_and_malformed_ones_are_no_fault(kind: str) -> None:
    watch = Noting()
    program = double().program(kind, watch)
    outcome = program.call({"n": "many"})
    assert isinstance(outcome, Failed)
    assert [type(each) for each in watch.reports] == [Agreement] * (kind != "all")
    watch.reports.clear()
    with pytest.raises(NotInputs):
        program.call([1])  # type: ignore[arg-type]
    assert watch.reports == []


class Broken:
    """A comparator that raises."""

    def compare_outcomes(self, leader: Outcome, follower: Outcome) -> Verdict:
        raise ZeroDivisionError("3")

    def compare_requests(self, leader: Request | None, follower: Request | None) -> Verdict:
        raise ZeroDivisionError("3")


def test_a_failing_comparator_is_no_agreement(caplog: pytest.LogCaptureFixture) -> None:
    watch = Noting()
    program = double().program("paired", watch, comparator=Broken())
    assert program.call({"n": 3}) == Returned({"result": 3})
    assert watch.reports == [Lost("comparing broke: ZeroDivisionError")]
    assert follow_transcript(
        double().direct, Transcript({"n": 3}, None, (), Returned({"result": 3})), Broken(), KEY
    ) == Lost("comparing broke: ZeroDivisionError")
    assert "ZeroDivisionError" in caplog.text


def test_a_failing_watch_trusts_nothing(caplog: pytest.LogCaptureFixture) -> None:
    class Deaf:
        def trusts_prefix(self, name: str) -> bool:
            raise OSError("no store")

        def trusts(self, path: str) -> bool:
            raise OSError("no store")

        def report(self, report: object) -> None:
            raise OSError("no store")

    both = double()
    direct = Wrong(both.direct, at_end(lambda done: gives(done, result=99)))
    pair = Pair(both.python, direct, both.comparator, KEY, Deaf(), None, False, plans_of(both.compiled))
    program = GuardedProgram(pair)
    with caplog.at_level(logging.ERROR):
        assert program.call({"n": 3}) == Returned({"result": 3})
    assert "could not be found out: OSError" in caplog.text
    assert "a report of Disagreement could not be made: OSError" in caplog.text


def test_a_traced_run_has_the_marks_of_python() -> None:
    step = double().program("paired", watch := Noting()).start({"n": 3}).advance(())
    assert isinstance(step, Done)
    assert step.marks
    assert watch.reports == []


# -- written down ---------------------------------------------------------------------------------


def test_later_changes_of_the_caller_are_not_in_the_transcript() -> None:
    flow = "- {operation: return, success: {result: 'append(items, 3)'}}"
    both = Both.of(small_node("items: array<integer>", flow, "result: array<integer>"))
    written: list[Any] = []
    inputs: dict[str, Any] = {"items": [1, 2]}
    program = RecordedProgram(both.python, partial(_note, written))
    outcome = program.call(inputs)
    assert isinstance(outcome, Returned)
    inputs["items"].append(9)
    outcome.value["result"].append(9)  # type: ignore[union-attr]
    ((transcript, took, name),) = written
    assert transcript == Transcript({"items": [1, 2]}, None, (), Returned({"result": [1, 2, 3]}))
    assert (took >= 0, name) == (True, None)
    assert isinstance(follow_transcript(both.direct, transcript, both.comparator, KEY), Agreement)


def test_inputs_without_an_end_are_not_kept() -> None:
    endless: list[object] = []
    endless += [endless, endless]
    written: list[Any] = []
    program = RecordedProgram(double().python, partial(_note, written))
    assert isinstance(program.call({"n": endless}), Failed)
    ((found, _, _),) = written
    assert found == Lost("the inputs or the outputs are too large, or hold themselves: they are not kept")


def test_an_abandoned_run_is_lost_and_listener_errors_stay_inside() -> None:
    written: list[Any] = []

    def listener(*told: Any) -> None:
        written.append(told)
        raise OSError("full")

    execution = RecordedProgram(double().python, listener).start({"n": 3}, is_traced=False)
    assert isinstance(execution, RecordedExecution)
    execution.begin("an id")
    execution.stop(None)
    execution.stop(None)
    assert [told[::2] for told in written] == [(Lost("the run was left before it ended"), "an id")]


# -- following ------------------------------------------------------------------------------------


@cache
def acting() -> Both:
    text = """\
node_id: acting_v1
type: event_handler
intent: Look, then act
inputs: {event_id: string, n: integer}
outputs: {success: {result: integer}}
flow:
  - {step: look, operation: custom, name: look, effect: read, returns: integer}
  - {step: act, operation: custom, name: act, effect: unsafe, request: {n: n + look}, returns: integer}
  - {operation: return, success: {result: act}}
security: {capabilities_required: [effect.call.look, effect.call.act]}
"""
    return Both.of(compiled_text(text))


def _transcript(outcome: Outcome | None = None, **changed: Any) -> Transcript:
    """Return the transcript of a leader with a read and a write."""
    written: list[Any] = []
    program = RecordedProgram(acting().python, partial(_note, written))
    to_the_end(
        program.start({"event_id": "e", "n": 3}, NOON, is_traced=False), lambda request: Completion(request.id, 7)
    )
    found = written[0][0]
    assert isinstance(found, Transcript)
    assert found.outcome == Returned({"result": 7})
    exchanges = changed.get("exchanges", lambda them: them)(found.exchanges)
    return Transcript(found.inputs, found.now, exchanges, outcome or found.outcome)


def _follow(transcript: Transcript, **more: Any) -> Any:
    both = acting()
    return follow_transcript(more.pop("direct", both.direct), transcript, both.comparator, KEY, **more)


def test_a_follower_performs_nothing_and_gives_evidence() -> None:
    found = _follow(_transcript())
    assert isinstance(found, Agreement)
    assert found.note.settled == ("act: ok", "look: ok")
    assert len(found.note.prefixes) == 1, "one request changes something"
    watch = Noting()
    execution = acting().program("all", watch).start({"event_id": "e", "n": 3}, NOON, is_traced=False)
    to_the_end(execution, lambda request: Completion(request.id, 7))
    assert tuple(watch.prefixes) == found.note.prefixes, "the name that is asked for is the name that is noted"


def _other(exchange: Exchange, **changed: Any) -> Exchange:
    return replace(exchange, request=replace(exchange.request, **changed))


@pytest.mark.parametrize(
    "exchanges, is_effect",
    [
        (lambda them: (_other(them[0], arguments={"x": 1}), them[1]), False),
        (lambda them: (them[0], _other(them[1], arguments={"n": 4})), True),
        (lambda them: (them[0], _other(them[1], key="another")), True),
        (lambda them: them[:1], True),
        (lambda _: (), False),
        (lambda them: (*them, _other(them[1], path="act_again")), True),
        (lambda them: (*them, _other(them[0], path="look_again")), False),
    ],
    ids=["another read", "another argument", "another key", "one more", "a read more", "one less", "a read less"],
)
def test_a_request_unlike_the_record_is_a_disagreement(
    exchanges: Callable[[Any], tuple[Exchange, ...]], is_effect: bool
) -> None:
    found = _follow(_transcript(exchanges=exchanges), execution="an id")
    assert isinstance(found, Disagreement)
    assert (found.difference.kind, found.difference.is_effect, found.execution) == ("request", is_effect, "an id")


@pytest.mark.parametrize("outcome", [Denied("effect.call.act"), LimitHit("cancelled"), LimitHit("time")])
def test_a_leader_that_was_stopped_is_compared_up_to_there_and_no_further(outcome: Outcome) -> None:
    stopped = _transcript(outcome, exchanges=lambda them: them[:1])
    assert _follow(stopped) is None
    different = _transcript(outcome, exchanges=lambda them: (_other(them[0], arguments={"x": 1}),))
    assert isinstance(_follow(different), Disagreement)
    assert isinstance(_follow(_transcript(outcome, exchanges=lambda _: ())), Lost)


def test_a_follower_that_breaks() -> None:
    lies = Wrong(acting().direct, at_end(lambda done: gives(done, result=8)))
    found = _follow(_transcript(), direct=lies)
    assert isinstance(found, Disagreement)
    assert found.follower == Returned({"result": 8})
    raises = Wrong(acting().direct, at_end(raising(ValueError("no"))))
    assert _follow(_transcript(), direct=raises) == Fault("it raised ValueError: no", _transcript())
    too_little = follow_transcript(
        long_loop().direct,
        Transcript({"n": 1000}, None, (), LimitHit("fuel")),
        long_loop().comparator,
        KEY,
        Limits(fuel=100),
    )
    assert isinstance(too_little, Agreement), "fuel is counted alike"
    starved = Wrong(long_loop().direct, at_end(lambda _: Done(LimitHit("fuel"), ())))
    for direct, outcome in ((long_loop().direct, LimitHit("fuel")), (starved, Returned({"result": 5}))):
        transcript = Transcript({"n": 3}, None, (), outcome)
        unknown = follow_transcript(direct, transcript, long_loop().comparator, KEY)
        assert isinstance(unknown, Lost), "the leader may have had more fuel, or less"
        known = follow_transcript(direct, transcript, long_loop().comparator, KEY, Limits())
        assert isinstance(known, Disagreement)
    assert _follow(_transcript(), direct=Wrong(acting().direct, at_end(lambda _: Done(LimitHit("time"), ())))) == Lost(
        "the limit on time was hit"
    )
