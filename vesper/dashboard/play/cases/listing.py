"""The cases of a text: their inputs, and whether both engines meet their expectations."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vesper.api.input_conversion import Plain
from vesper.api.json_calls import outcome_json
from vesper.compiler import Compiled
from vesper.dashboard.play.run import ENGINE_LABELS, MAX_SECONDS, run_slot
from vesper.engines.engine import Limits
from vesper.engines.registry import PAIR
from vesper.language.check.cases import Case
from vesper.serve.openapi.document import of_caller
from vesper.verify.node_tests import CaseAnswer, NodeTester

MAX_CASES = 200
LIST_SECONDS = 10.0
"""Time after which no further case is run."""
_MAX_TEXT = 400


@dataclass(frozen=True, slots=True)
class EngineAnswer:
    engine: str
    is_met: bool
    outcome: str
    """The outcome as JSON, or why there is none; empty where it is the expected one."""


@dataclass(frozen=True, slots=True)
class CaseRow:
    name: str
    line: int
    inputs: Mapping[str, Any]
    expect: str
    passed: bool
    disagree: bool
    answers: tuple[EngineAnswer, ...]


@dataclass(frozen=True, slots=True)
class CaseList:
    cases: tuple[CaseRow, ...]
    omitted: int
    """Cases beyond the maximum number or time, which were not run."""


def list_cases(compiled: Compiled) -> CaseList:
    """Run the cases on both engines, as `vesper test --engine both` does."""
    limits, rows = Limits(seconds=MAX_SECONDS), []
    tester = NodeTester(compiled, PAIR)
    with run_slot():
        deadline = time.monotonic() + LIST_SECONDS
        for case in compiled.cases[:MAX_CASES]:
            if time.monotonic() >= deadline:
                break
            result = tester.run_case(case, limits)
            answers = tuple(_answer(compiled, case, each) for each in result.answers)
            inputs, expect = of_caller(compiled.node.inputs, case.inputs), _expect(compiled, case)
            rows.append(CaseRow(case.name, case.line, inputs, expect, result.passed, result.disagree, answers))
    return CaseList(tuple(rows), len(compiled.cases) - len(rows))


def _answer(compiled: Compiled, case: Case, answer: CaseAnswer) -> EngineAnswer:
    label = ENGINE_LABELS[answer.engine]
    if answer.is_met:
        return EngineAnswer(label, True, "")
    if answer.outcome is None:
        return EngineAnswer(label, False, answer.problem or "")
    text = outcome_json(compiled, answer.outcome, Plain(dict(case.inputs)))
    return EngineAnswer(label, False, _short(text))


def _expect(compiled: Compiled, case: Case) -> str:
    node = compiled.node
    if case.breaks is not None:
        phase, index = case.breaks
        return _short(f"breaks {dict(node.phases())[phase][index].text}")
    if case.fails is not None:
        return f"fails {case.fails}"
    if case.error is not None:
        return _short(f"error {json.dumps(of_caller(node.errors, case.error), ensure_ascii=False)}")
    return _short(json.dumps(of_caller(node.outputs, case.expect or {}), ensure_ascii=False))


def _short(text: str) -> str:
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}…"
