"""`vesper compare`: verdicts, witnesses that really differ, completions, and the command."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.support.journalled import invoke
from tests.support.nodes import compiled_text
from vesper.changes.compare import solving
from vesper.changes.compare.comparing import CompareLimits, CompareResult, compare_versions
from vesper.changes.compare.search import SearchLimits
from vesper.changes.compare.single import NotOrdered, SingleSearch
from vesper.changes.compare.versions import Given, RunPair, VersionPair
from vesper.engines.compare import Agree, NotComparable
from vesper.engines.outcome import Returned
from vesper.proof.bounds import Bounds

FEE = """node_id: fee_v1
type: function
intent: Fee of a payment
inputs:
  amount: {type: decimal, constraints: [non_negative]}
  kind: enum[card, bank]
outputs:
  success: {fee: decimal}
flow:
  - step: rate
    operation: decision_table
    rows:
      - {when: amount >= 1000, then: "0.01"}
      - {when: kind == 'card', then: "0.03"}
      - {otherwise: "0.02"}
  - step: fee
    operation: compute
    value: round(amount * rate, 2, half_even)
  - {operation: return, success: [fee]}
"""
SMALL = """node_id: small_v1
type: function
intent: A small domain
inputs:
  count: {type: integer, constraints: [{min: 0}, {max: 40}]}
  is_new: boolean
outputs:
  success: {grade: integer}
flow:
  - step: grade
    operation: compute
    value: IF is_new AND count > 39 THEN 2 ELSE 1
  - {operation: return, success: [grade]}
"""


def compare(before: str, after: str, seconds: float = 20, inputs: int = 1_500) -> CompareResult:
    return compare_versions(compiled_text(before), compiled_text(after), CompareLimits(seconds, inputs))


def test_a_moved_boundary_has_the_boundary_as_its_smallest_witness() -> None:
    found = compare(FEE, FEE.replace("amount >= 1000", "amount > 1000"))
    assert found.verdict == "different"
    first = found.witnesses[0]
    assert first.given.inputs["amount"] == Decimal(1000)
    assert first.changed.where == "outputs.fee"
    assert first.before is not None
    assert first.after is not None
    assert (first.before.line, first.after.line) == (13, 13)
    kinds = {each.given.inputs["kind"] for each in found.witnesses}
    assert kinds == {"card", "bank"}, "one witness for each pair of paths"


@pytest.mark.parametrize(
    "old, new",
    [
        ("half_even", "half_up"),
        ('"0.03"', '"0.031"'),
        ("non_negative", "positive"),
    ],
)
def test_every_witness_differs_on_both_engines(old: str, new: str) -> None:
    found = compare(FEE, FEE.replace(old, new))
    assert found.witnesses
    for each in found.witnesses:
        ran, _ = found.pair.confirm(each.given)
        assert not isinstance(ran.found, Agree)
        assert ran.found == each.changed


def test_the_same_semantics_are_equal_without_a_search() -> None:
    found = compare(FEE, FEE.replace("node_id: fee_v1", "node_id: fee_v2").replace("Fee of", "The fee of"))
    assert (found.verdict, found.searched.tried) == ("equal", 0)


def test_few_inputs_are_all_run_which_proves_equality_or_finds_the_one_that_differs() -> None:
    renamed = SMALL.replace("IF is_new AND count > 39", "IF count >= 40 AND is_new")
    found = compare(SMALL, renamed)
    assert found.verdict == "equal"
    assert found.searched.enumerated is not None
    assert found.searched.enumerated > 82
    other = compare(SMALL, SMALL.replace("count > 39", "count > 38"))
    assert other.verdict == "different"
    assert other.witnesses[0].given.inputs == {"count": 39, "is_new": True}


def test_a_solver_proves_a_refactoring_equal_and_finds_what_a_short_search_misses() -> None:
    proven = compare(FEE, FEE.replace("amount * rate", "rate * amount"), inputs=300)
    assert (proven.verdict, proven.reason) == ("equal", "a solver proved that no input has a changed outcome")
    rare = FEE.replace("amount * rate", "IF amount == 48151.62 THEN 7 ELSE amount * rate")
    found = compare(FEE, rare, inputs=1)
    assert found.verdict == "different"
    assert found.witnesses[0].given.inputs["amount"] == Decimal("48151.62")


def test_without_a_solver_nothing_is_proven_and_the_report_states_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solving, "is_solver_installed", lambda: False)
    found = compare(FEE, FEE.replace("amount * rate", "rate * amount"), inputs=300)
    assert (found.verdict, found.solver) == ("none found", "no solver: searched only")
    assert found.searched.tried == 300


def test_inputs_that_cannot_be_compared_prove_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    original = VersionPair.run

    def run(pair: VersionPair, given: Given) -> RunPair:
        ran = original(pair, given)
        is_hidden = given.inputs.get("count") == 7
        return replace(ran, found=NotComparable("the limit on fuel was hit")) if is_hidden else ran

    monkeypatch.setattr(VersionPair, "run", run)
    monkeypatch.setattr(solving, "is_solver_installed", lambda: False)
    renamed = SMALL.replace("IF is_new AND count > 39", "IF count >= 40 AND is_new")
    assert compare(SMALL, renamed, inputs=200).verdict == "none found"


def test_a_wrong_candidate_of_the_solver_is_no_witness(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver that takes every input for a differing one, and no proof for one."""
    encode = solving._encode

    def always_different(pair: VersionPair, bounds: Bounds) -> Any:
        encoded = encode(pair, bounds)
        encoded.differs = True
        return encoded

    monkeypatch.setattr(solving, "_encode", always_different)
    found = compare(FEE, FEE.replace("amount * rate", "rate * amount"), inputs=300)
    assert found.verdict == "none found"
    assert not found.witnesses


def test_an_input_of_one_version_takes_part_only_there() -> None:
    wider = FEE.replace("  kind: enum", "  area: {type: integer, default: 1}\n  kind: enum")
    wider = wider.replace("amount * rate", "amount * rate + IF area == 7 THEN 1.00 ELSE 0.00")
    found = compare(FEE, wider)
    assert found.verdict == "different"
    assert found.witnesses[0].given.inputs["area"] == 7
    assert found.interface == ("input `area` added (integer)",)
    assert isinstance(found.witnesses[0].run.before.outcome, Returned)


def test_a_broken_clause_is_the_place_that_decides() -> None:
    found = compare(FEE, FEE.replace("non_negative", "positive"))
    first = found.witnesses[0]
    assert first.given.inputs["amount"] == 0
    assert first.before is None
    assert first.after is not None
    assert first.after.line == 5


def test_acceptance_is_one_way() -> None:
    strict = FEE.replace("non_negative", "positive")
    limits = CompareLimits(20, 1_500)
    before, after = compiled_text(FEE), compiled_text(strict)
    refused = compare_versions(before, after, limits, compares_acceptance=True)
    assert refused.witnesses[0].given.inputs["amount"] == 0
    assert not compare_versions(after, before, limits, compares_acceptance=True).witnesses


EFFECT = """node_id: notice_v1
type: event_handler
intent: Send a notice
inputs: {event_id: string, amount: integer}
outputs:
  success: {sent: boolean}
security:
  capabilities_required: [events.publish.notices]
flow:
  - {step: shown, operation: compute, value: amount}
  - step: notice
    operation: event_publish
    topic: notices
    payload: {amount: "{shown}"}
  - operation: return
    success: {sent: amount > 10}
"""


def test_a_request_is_part_of_the_outcome_and_the_name_of_its_step_is_not() -> None:
    doubled = EFFECT.replace("value: amount", "value: IF amount > 7 THEN 7 ELSE amount")
    found = compare(EFFECT, doubled)
    first = found.witnesses[0]
    assert first.given.inputs["amount"] == 8
    assert first.changed.where.startswith("requests[0].payload")
    renamed = compare(EFFECT, EFFECT.replace("step: notice", "step: message"))
    assert not renamed.witnesses


def search_of(text: str, inputs: int = 1_500) -> SingleSearch:
    return SingleSearch(compiled_text(text), 0, SearchLimits(inputs, time.monotonic() + 20))


def test_an_output_that_falls_although_an_input_grows_is_shown_as_a_pair() -> None:
    found = search_of(FEE).monotone("amount", ())
    assert found.fall is not None
    assert found.fall.before > found.fall.after  # type: ignore[operator]
    assert found.fall.larger > found.fall.given.inputs["amount"]  # type: ignore[operator]
    ends = search_of(SMALL).monotone("count", ())
    assert (ends.fall, ends.is_proven) == (None, True)


def test_the_range_of_an_output_is_proven_only_where_all_inputs_ran() -> None:
    all_of_them = search_of(SMALL).range("grade")
    assert all_of_them.is_proven
    assert all_of_them.low is not None
    assert all_of_them.high is not None
    assert (all_of_them.low.value, all_of_them.high.value) == (1, 2)
    assert all_of_them.high.given.inputs == {"count": 40, "is_new": True}
    some = search_of(FEE, 300).range("fee")
    assert not some.is_proven
    with pytest.raises(NotOrdered, match="no output `nothing`"):
        search_of(FEE, 300).range("nothing")


def nodes_of(folder: Path, **texts: str) -> str:
    for name, text in texts.items():
        (folder / f"{name}.vsp").write_text(text.replace("node_id: fee_v1", f"node_id: {name}"))
    return str(folder)


def test_the_command_ends_with_one_where_versions_differ_and_keeps_witnesses_as_cases(tmp_path: Path) -> None:
    folder = nodes_of(tmp_path, fee_v1=FEE, fee_v2=FEE.replace(">= 1000", "> 1000"))
    arguments = ("compare", "fee_v1", "fee_v2", "--nodes", folder, "--max-inputs", "1500")
    shown = invoke(*arguments, "--format", "json", "--keep", str(tmp_path / "fee_v2.vsp"))
    assert shown.exit_code == 1, shown.output
    report = json.loads(shown.stdout)
    assert report["verdict"] == "different"
    assert report["witnesses"][0]["where"] == "outputs.fee"
    assert report["witnesses"][0]["after"]["decides"]["line"] == 13
    passed = invoke("test", str(tmp_path / "fee_v2.vsp"))
    assert passed.exit_code == 0, passed.output
    assert "amount: 1000" in (tmp_path / "fee_v2.vsp").read_text()
    same = invoke("compare", "fee_v1", "fee_v1", "--nodes", folder)
    assert (same.exit_code, same.stdout.startswith("equal")) == (0, True)
    assert invoke("compare", "fee_v1", "--nodes", folder).exit_code == 2
