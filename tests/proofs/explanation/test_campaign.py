"""A sample of `make proof-explain`, and the proof's own eyes."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import pytest

from tests.proofs.explanation import campaign
from tests.proofs.explanation.campaign import ROOT, Report, examine, random_programs
from vesper.api.explanation.derive import explain_trace
from vesper.compiler import Compiled, compile_file
from vesper.trace.model import Trace


def payment() -> Compiled:
    compiled, _ = compile_file(ROOT / "nodes" / "payments" / "payment_decision_v1.vsp")
    assert compiled is not None
    return compiled


def test_explanations_of_a_few_nodes_are_those_of_the_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "INPUTS_EACH", 3)
    monkeypatch.setattr(campaign, "TRIES", 60)
    report = Report()
    for number, compiled in enumerate([payment(), *islice(random_programs(7), 8)]):
        examine(compiled, number, report, 10_000, 4)
    assert report.problems == []
    assert report.executions >= 15
    assert report.nearest >= 4


@pytest.mark.parametrize("change", [{"holds": True}, {"times": 7}, {"index": 0}])
def test_the_proof_sees_a_wrong_condition(monkeypatch: pytest.MonkeyPatch, change: dict[str, int]) -> None:
    def wrong(trace: Trace) -> object:
        found = explain_trace(trace)
        return replace(found, conditions=tuple(replace(each, **change) for each in found.conditions))  # type: ignore[arg-type]

    monkeypatch.setattr(campaign, "explain_trace", wrong)
    monkeypatch.setattr(campaign, "INPUTS_EACH", 6)
    report = Report()
    examine(payment(), 1, report, 10_000, 0)
    assert report.problems
