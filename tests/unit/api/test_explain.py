"""`outcome.explain()`: conditions with values, reasons of guards, and the nearest input, on every engine."""

from __future__ import annotations

import pickle
from decimal import Decimal
from pathlib import Path

import pytest

import vesper
from tests.unit.api.given import NODES, PAYMENT
from vesper.api.explanation.derive import explain_trace
from vesper.compiler import compile_file
from vesper.trace.masking import masked_trace
from vesper.trace.programs import program_of
from vesper.trace.recorder import record_trace

ENGINES = ("python", "interp", "jit")

CREDIT = """\
node_id: credit_v1
type: function
intent: Grant a credit

types:
  Person: {fields: {age: integer, income: decimal, tags: array<string>}}

inputs:
  person: Person
  amount: {type: decimal, constraints: [positive]}
  plan: enum[basic, plus]

outputs:
  success: {granted: boolean, rate: optional<decimal>}

contracts:
  preconditions: [person.age >= 0]

flow:
  - step: rate
    operation: compute
    guards:
      - person.age >= 18
      - amount <= person.income * 3
    value: 'LET base = IF plan == plus THEN 0.03 ELSE 0.05 IN IF base > 0.04 THEN base + 0.01 ELSE base'
  - operation: return
    success: {granted: rate IS NOT NULL, rate: rate}
"""
GIVEN = {"person": {"age": 40, "income": "1000", "tags": ["a"]}, "amount": "500.00", "plan": "basic"}


@pytest.fixture
def credit(tmp_path: Path) -> Path:
    file = tmp_path / "credit_v1.vsp"
    file.write_text(CREDIT)
    return file


def test_conditions_have_kind_text_and_values_of_fields_and_locals(credit: Path) -> None:
    why = vesper.load(credit)(**GIVEN).explain(nearest=False)
    found = [
        (each.kind, each.text, each.holds, {name: found.value for name, found in each.values.items()})
        for each in why.conditions
    ]
    assert found == [
        ("constraint", "amount > 0", True, {"amount": Decimal("500.00")}),
        ("precondition", "person.age >= 0", True, {"person.age": 40}),
        (
            "when",
            "person.age >= 18 AND amount <= person.income * 3",
            True,
            {"person.age": 40, "amount": Decimal("500.00"), "person.income": Decimal(1000)},
        ),
        ("if", "plan == plus", False, {"plan": "basic"}),
        ("if", "base > 0.04", True, {"base": Decimal("0.05")}),
    ]
    assert why.nearest is None
    assert why.to_json()["conditions"][-1]["values"] == {"base": "0.05"}


@pytest.mark.parametrize(
    "change, path, after",
    [
        ({}, "person.age", 17),
        ({"person": {"age": 18, "income": "1000", "tags": []}}, "person.age", 17),
        ({"amount": "3000.00"}, "amount", Decimal("3000.01")),
        ({"person": {"age": 17, "income": "1000", "tags": []}}, "person.age", 18),
        ({"amount": "-1"}, "amount", Decimal("0.01")),
        ({"amount": "-1" + "0" * 600}, "amount", Decimal("0.01")),
    ],
)
def test_the_nearest_input_is_at_the_boundary_and_has_another_outcome(
    credit: Path, change: dict[str, object], path: str, after: object
) -> None:
    explained = [vesper.load(credit, engine=engine)(**{**GIVEN, **change}).explain() for engine in ENGINES]
    assert explained[0] == explained[1] == explained[2]
    nearest = explained[0].nearest
    assert nearest is not None
    assert nearest.inputs is not None
    assert [(each.path, each.after) for each in nearest.changes] == [(path, after)]
    assert vesper.load(credit)(**{**GIVEN, **change}) != vesper.load(credit)(**nearest.inputs)


@pytest.mark.parametrize(
    "person, reasons",
    [
        ({"age": 40, "income": "1000", "tags": []}, ()),
        ({"age": 17, "income": "1000", "tags": []}, ("too_young",)),
        ({"age": 40, "income": "1", "tags": []}, ("too_much",)),
        ({"age": 17, "income": "1", "tags": []}, ("too_young",)),
    ],
)
def test_the_first_guard_that_fails_gives_its_reason(
    tmp_path: Path, person: dict[str, object], reasons: tuple[str, ...]
) -> None:
    guarded = CREDIT.replace("- person.age >= 18", "- {holds: person.age >= 18, reason: too_young}").replace(
        "- amount <= person.income * 3", "- {holds: amount <= person.income * 3, reason: too_much}"
    )
    (tmp_path / "credit_v1.vsp").write_text(guarded)
    for engine in ENGINES:
        node = vesper.load(tmp_path / "credit_v1.vsp", engine=engine)
        assert node(**{**GIVEN, "person": person}).explain(nearest=False).reasons == reasons


def test_reasons_take_no_part_in_the_semantic_hash(credit: Path, tmp_path: Path) -> None:
    plain = vesper.load(credit).semantic_hash
    credit.write_text(CREDIT.replace("- person.age >= 18", "- {holds: person.age >= 18, reason: too_young}"))
    assert vesper.load(credit).semantic_hash == plain


def test_two_inputs_are_changed_where_one_does_not_help(tmp_path: Path) -> None:
    (tmp_path / "both_v1.vsp").write_text(
        """\
node_id: both_v1
type: function
intent: Need two
inputs: {first: boolean, second: boolean, amount: decimal}
outputs: {success: {is_done: boolean}}
flow:
  - operation: return
    success: {is_done: first AND second AND amount > 10}
"""
    )
    node = vesper.load(tmp_path / "both_v1.vsp")
    nearest = node(first=False, second=False, amount="20").explain().nearest
    assert nearest is not None
    assert {(each.path, each.after) for each in nearest.changes} == {("first", True), ("second", True)}
    alone = node(first=False, second=True, amount="20").explain(tries=0).nearest
    assert alone is not None
    assert not alone.is_found
    assert "within 0 tries" in node(first=False, second=True, amount="20").explain(tries=0).text


def test_an_outcome_of_another_process_and_changed_inputs_are_not_explained(credit: Path) -> None:
    outcome = vesper.load(credit)(**GIVEN)
    again = pickle.loads(pickle.dumps(outcome))
    assert again == outcome
    with pytest.raises(vesper.NotExplained, match="this process"):
        again.explain()
    person = {"age": 40, "income": "1000", "tags": []}
    outcome = vesper.load(credit)(person=person, amount="500", plan="basic")
    person["age"] = 10
    with pytest.raises(vesper.NotExplained, match="changed after the call"):
        outcome.explain()


def test_text_and_markdown_have_every_part() -> None:
    why = vesper.load(NODES / "payments" / "payment_decision_v1.vsp")(**PAYMENT).explain()
    assert "line 41 if `flagged` is false (flagged false)" in str(why)
    assert "  balance 51.749 instead of 100.00" in why.text
    assert "| 41 | if | flagged | false | flagged false |  | 1 |" in why.markdown


def test_a_masked_trace_gives_a_masked_explanation(tmp_path: Path) -> None:
    secret = "4111111111111111"
    (tmp_path / "card_v1.vsp").write_text(
        """\
node_id: card_v1
type: function
intent: Check a card
inputs: {card: {type: string, constraints: [{length: 16}]}, amount: decimal}
outputs: {success: {is_visa: boolean, fee: optional<decimal>}}
flow:
  - step: brand
    value: slice(card, 0, 4)
  - step: fee
    guards:
      - {holds: amount > 0, reason: nothing_to_pay}
      - {holds: brand == '5555', reason: no_master_card}
    value: amount * 0.01
  - return: {is_visa: brand == '4111', fee: fee}
security: {sensitive_data: [card]}
"""
    )
    node = vesper.load(tmp_path / "card_v1.vsp")
    assert node(card=secret, amount="5").explain(nearest=False).reasons == ("no_master_card",)
    compiled, _ = compile_file(tmp_path / "card_v1.vsp")
    assert compiled is not None
    inputs = {"card": secret, "amount": Decimal(5)}
    trace = record_trace(compiled, program_of(compiled, "python"), "python", "t", inputs, None)
    shown = explain_trace(masked_trace(trace))
    assert secret not in shown.text + shown.markdown + str(shown.to_json())
    assert secret in explain_trace(trace).text
    assert 'brand "4111"' in explain_trace(trace).text
    assert 'brand "4111"' not in shown.text
    assert [each.holds for each in shown.conditions] == [each.holds for each in explain_trace(trace).conditions]
