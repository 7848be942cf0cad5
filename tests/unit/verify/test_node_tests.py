"""Cases and properties of one node: failures, notes, and the case written for a failure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from tests.support.nodes import ROOT, worked_nodes
from vesper.cli.test.failure_text import notes
from vesper.compiler import Compiled, compile_file, compile_source
from vesper.engines.engine import Done, Engine, Execution, Limits, Observer, Program, PureExecution, run_observed
from vesper.engines.outcome import ContractBroken, EngineFault, Outcome, Returned
from vesper.engines.registry import ENGINES, PAIR
from vesper.language.check.cases import Case
from vesper.language.diagnostics.source import SourceFile
from vesper.values.inputs import accept_inputs
from vesper.values.model import Value, plain, same
from vesper.verify.differential.case_text import case_text
from vesper.verify.inputs.generator import InputGenerator
from vesper.verify.node_tests import NodeTester

PYTHON = {"python": ENGINES["python"]}
_REFERENCE = ENGINES["python"]

NODE = """\
node_id: tested_v1
type: function
intent: To be tested
inputs: {n: integer, word: {type: string, default: a}}
outputs: {success: {twice: integer}}
contracts:
  preconditions: [n >= 0, n < 1000]
  postconditions: [twice < 1500]
  invariants: [output.twice != 14]
flow:
  - {operation: return, success: {twice: n * 2}}
testing:
  test_cases:
    - {name: two, inputs: {n: 1}, expect: {twice: 2}}
    - {name: three, inputs: {n: 1}, expect: {twice: 3}}
"""


def _compiled(text: str) -> Compiled:
    compiled, bag = compile_source(SourceFile("tested_v1.vsp", text))
    assert compiled is not None, [each.headline for each in bag.sorted()]
    return compiled


def test_cases_have_their_lines_and_are_met_or_not() -> None:
    compiled = _compiled(NODE)
    assert [case.line for case in compiled.cases] == [14, 15]
    tester = NodeTester(compiled, PAIR)
    two, three = (tester.run_case(case) for case in compiled.cases)
    assert two.passed
    assert not three.passed
    assert not three.is_our_bug
    assert [(answer.engine, answer.is_met) for answer in three.answers] == [("python", False), ("interp", False)]


def test_broken_promises_are_shrunk() -> None:
    report = NodeTester(_compiled(NODE), PYTHON).run_properties(300, seed=1)
    assert not report.passed
    found = {(each.kind, each.index): each for each in report.failures}
    assert set(found) == {("postcondition", 0), ("invariant", 0)}
    assert found["postcondition", 0].inputs == {"n": 750}
    assert found["invariant", 0].inputs == {"n": 7}
    assert not found["postcondition", 0].is_our_bug
    assert report.examples == 300
    assert report.drawn > report.examples, "some inputs do not meet the preconditions, and are no examples"


def test_a_failure_comes_back_as_a_case_that_fails_until_it_is_repaired() -> None:
    (failure, *_) = NodeTester(_compiled(NODE), PYTHON).run_properties(300, seed=1).failures
    assert failure.case is not None
    pasted = NODE + failure.case + "\n"
    compiled = _compiled(pasted)
    case = compiled.cases[-1]
    assert case.inputs == failure.inputs
    answer = NodeTester(compiled, PYTHON).run_case(case).answers[0]
    assert not answer.is_met
    assert isinstance(answer.outcome, ContractBroken)
    repaired = _compiled(pasted.replace("twice < 1500", "twice < 2000").replace("!= 14", "!= 15"))
    assert NodeTester(repaired, PYTHON).run_case(repaired.cases[-1]).passed


def test_a_case_may_say_that_a_promise_breaks() -> None:
    said = "    - {name: big, inputs: {n: 900}, expect: {breaks: twice < 1500}}\n"
    report = NodeTester(_compiled(NODE + said), PYTHON).run_properties(300, seed=1)
    assert [each.kind for each in report.failures] == ["invariant"]


def test_too_few_accepted_inputs_are_reported() -> None:
    unsolved = "[\"starts_with(hex(sha256(utf8(text(n)))), '00000000')\"]"
    text = NODE.replace("[n >= 0, n < 1000]", unsolved).partition("testing:")[0]
    compiled = _compiled(text)
    report = NodeTester(compiled, PYTHON).run_properties(20, seed=1)
    assert (report.drawn, report.examples) == (200, 0)
    assert report.is_starved
    starved, refused = notes(compiled, report)
    assert starved.startswith("only 0 of 200 drawn inputs (0 different ones) meet the constraints and preconditions")
    assert refused.startswith("precondition `starts_with(")
    assert "broke in" in refused


def test_a_failure_of_the_node_is_counted_and_no_more() -> None:
    text = NODE.replace("twice: n * 2}", "twice: 'quot(1500, n)'}").replace("[twice < 1500]", "[twice >= 0]")
    report = NodeTester(_compiled(text), PYTHON).run_properties(300, seed=1)
    assert report.outcomes["failed division_by_zero"] > 0
    assert not any(each.kind == "postcondition" for each in report.failures)


def test_a_note_shows_where_the_first_failure_is() -> None:
    step = "  - {step: half, value: 'quot(1500, n)'}\n  - {operation: return, success: {twice: half}}"
    text = NODE.replace("  - {operation: return, success: {twice: n * 2}}", step)
    text = text.replace("[twice < 1500]", "[twice >= 0]")
    report = NodeTester(_compiled(text), PYTHON).run_properties(300, seed=1)
    (note,) = notes(_compiled(text), report)
    times = report.outcomes["failed division_by_zero"]
    assert note.startswith(f"{times} of 300 examples failed: division_by_zero {times}; the first is division_by_zero")
    assert "division_by_zero in line 11, step `half`, shortest such input: n=0" in note
    assert report.first_failed is not None
    assert report.first_failed.inputs["n"] == 0


@pytest.mark.parametrize("node", ["orders/order_lifecycle_v1", "access/api_key_issue_v1"])
def test_broken_promises_about_responses_are_counted_not_failures(node: str) -> None:
    compiled, _ = compile_file(ROOT / "nodes" / f"{node}.vsp")
    assert compiled is not None
    report = NodeTester(compiled, PYTHON).run_properties(100, seed=0)
    assert report.passed
    assert report.broken_by_answers


def test_engines_ask_for_the_same_in_cases_of_nodes_that_call_others() -> None:
    """Regression: the python engine exposed its internal JSON form in a called node's request."""
    compiled, _ = compile_file(ROOT / "nodes/orders/checkout_v1.vsp")
    assert compiled is not None
    tester = NodeTester(compiled, PAIR)
    assert all(tester.run_case(case).passed for case in compiled.cases)


# -- engines that are wrong -----------------------------------------------------------------------


class _Odd:
    """An engine with another outcome for `n` of 5 or more."""

    name = "odd"

    def __init__(self, other: Outcome) -> None:
        self._other = other

    def load(self, compiled: Compiled) -> Program:
        return _OddProgram(_REFERENCE.load(compiled), self._other)


class _OddProgram:
    def __init__(self, program: Program, other: Outcome) -> None:
        self._program = program
        self._other = other
        self.semantic_hash = program.semantic_hash

    def call(self, inputs: Mapping[str, object], now: datetime | None = None, limits: Limits | None = None) -> Outcome:
        raise NotImplementedError

    def start(
        self,
        inputs: Mapping[str, object],
        now: datetime | None = None,
        limits: Limits | None = None,
        observe: Observer | None = None,
        is_traced: bool = True,
    ) -> Execution:
        assert limits is None
        assert observe is None
        n = inputs.get("n")
        done: Done = run_observed(self._program, inputs, now)
        is_odd = isinstance(n, int) and not isinstance(n, bool) and n >= 5 and isinstance(done.outcome, Returned)
        return PureExecution(lambda: replace(done, outcome=self._other) if is_odd else done)


@pytest.mark.parametrize(
    "other, engines, kind",
    [
        (EngineFault("oops"), ["odd"], "engine_fault"),
        (EngineFault("oops"), ["python", "odd"], "engine_fault"),
        (Returned({"twice": 1}), ["python", "odd"], "disagreement"),
    ],
)
def test_defects_of_vesper_are_distinguished(other: Outcome, engines: list[str], kind: str) -> None:
    known: dict[str, Engine] = {"python": ENGINES["python"], "odd": _Odd(other)}
    text = NODE.replace("twice < 1500", "twice >= 0").replace("!= 14", "!= 15")
    tester = NodeTester(_compiled(text), {name: known[name] for name in engines})
    (failure,) = tester.run_properties(200, seed=1).failures
    assert (failure.kind, failure.is_our_bug, failure.inputs) == (kind, True, {"n": 5})
    result = tester.run_case(Case("five", {"n": 5}, {"twice": 10}, None))
    assert not result.passed
    assert result.is_our_bug


# -- the text of cases ----------------------------------------------------------------------------

WITH_CASES = [path for path in worked_nodes() if "\n  test_cases:\n" in path.read_text(encoding="utf-8")]


def test_nearly_all_worked_nodes_are_tried() -> None:
    assert len(WITH_CASES) > 50


@pytest.mark.parametrize("path", WITH_CASES, ids=lambda path: path.stem)
def test_a_case_reads_back_as_the_very_same_values(path: Path) -> None:
    """Generated inputs of every type, including wild ones, written as cases and read again."""
    compiled, _ = compile_file(path)
    assert compiled is not None
    node = compiled.node
    declared = [(each.name, each.type, each.default) for each in node.inputs]
    generator = InputGenerator(node, 3)
    drawn: list[tuple[dict[str, object], dict[str, Value]]] = []
    while len(drawn) < 8:
        inputs = generator.draw()
        values, problems = accept_inputs(declared, inputs)
        if not problems:
            drawn.append((inputs, values))
    now = None if node.type == "function" else datetime.fromisoformat("2026-11-15T12:00:00.000001+00:00")
    written = [case_text(node, f"case {index}: a, b", inputs, "{}", now) for index, (inputs, _) in enumerate(drawn)]
    text = path.read_text(encoding="utf-8").partition("\ntesting:\n")[0]
    text += "\ntesting:\n  test_cases:\n" + "\n".join(written) + "\n"
    again, bag = compile_source(SourceFile(path.as_posix(), text))
    assert again is not None, [each.headline for each in bag.sorted()]
    assert len(again.cases) == len(drawn)
    for case, (inputs, values) in zip(again.cases, drawn, strict=True):
        assert same(case.inputs, {name: plain(values[name]) for name, _, _ in declared if name in inputs})
        assert case.now == now
