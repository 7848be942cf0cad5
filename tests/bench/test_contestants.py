"""Nobody is timed who is wrong: what the check of a contestant notices."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from tests.bench import ours
from tests.bench.peers import by_hand
from tests.bench.peers.everybody import by_people
from tests.bench.workloads import W1, W3, WORKLOADS, Contestant, Wrong, in_cents, judged, with_floats

Outputs = dict[str, Any]


def changed(change: Callable[[Outputs], Outputs]) -> Contestant:
    return Contestant("somebody", "W1", lambda inputs: change(by_hand.payment_decision(inputs)))


@pytest.mark.parametrize("contestant", by_people(), ids=lambda each: f"{each.workload} {each.name}")
def test_people_are_exact(contestant: Contestant) -> None:
    assert judged(contestant) == "exact"


def test_the_engines_are_exact() -> None:
    found = ours.on_engines()
    assert {each.workload for each in found} == set(WORKLOADS)
    assert {judged(each) for each in found} == {"exact"}


def test_a_float_is_approximate_and_a_wrong_one_wrong() -> None:
    assert judged(changed(lambda outputs: {**outputs, "fee": float(outputs["fee"])})) == "approx"
    with pytest.raises(Wrong, match="`fee` is"):
        judged(changed(lambda outputs: {**outputs, "fee": float(outputs["fee"]) + 0.01}))


def test_text_of_a_decimal_is_exact_and_another_text_wrong() -> None:
    assert judged(changed(lambda outputs: {**outputs, "fee": str(outputs["fee"])})) == "exact"
    with pytest.raises(Wrong, match="`decision` is"):
        judged(changed(lambda outputs: {**outputs, "decision": "approve"}))


def test_what_is_left_out_is_wrong() -> None:
    with pytest.raises(Wrong, match="no `risk`"):
        judged(changed(lambda outputs: {name: value for name, value in outputs.items() if name != "risk"}))


def test_one_who_takes_what_breaks_a_contract_is_wrong() -> None:
    def careless(inputs: Outputs) -> Outputs:
        try:
            return by_hand.payment_decision(inputs)
        except ValueError:
            return {}

    with pytest.raises(Wrong, match="breaks a precondition"):
        judged(Contestant("somebody", "W1", careless))
    assert judged(Contestant("somebody", "W1", careless, contracts="none")) == "exact"


def test_forms() -> None:
    payment = W1.inputs[0]
    assert type(with_floats(payment)["amount"]) is float
    assert in_cents(payment)["amount"] == payment["amount"] * 100
    assert in_cents({"items": [{"unit_price": Decimal("1.05")}]}) == {"items": [{"unit_price": 105}]}
    assert with_floats(W3.inputs[0]) == W3.inputs[0]


def test_json_is_answered_and_checked() -> None:
    call = ours.run_json(W1)
    assert b'"decision"' in call(ours.requests_of(W1)[0])
