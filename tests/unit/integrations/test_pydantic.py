"""Pydantic models of nodes: exact in JSON and in Python, with the bounds of the node."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from pydantic import BaseModel, ValidationError

import vesper
from tests.unit.api.given import BASKET, NODES, written
from vesper.integrations.node_model import Models, NodeModel
from vesper.integrations.pydantic import models

PAYMENT = '{"amount": %s, "balance": 100, "currency": "USD", "country": "DE", "user_age_days": 400}'
EXACT = "0.1234567890123456789012345"


@pytest.fixture(scope="module")
def payment() -> vesper.Node:
    return vesper.load("payment_decision", nodes=NODES)


def test_numbers_of_json_are_exact_in_and_out(payment: vesper.Node) -> None:
    made = models(payment)
    assert models(payment) is made
    given = made.Input.model_validate_json(PAYMENT % EXACT)
    assert given.amount == Decimal(EXACT)
    assert made.Input.model_validate_json(given.model_dump_json()) == given
    output = made.Output(**payment(given).unwrap())
    assert (
        output.model_dump_json()
        == payment.run_json((PAYMENT % EXACT).encode()).decode()[len('{"kind":"returned","value":') : -1]
    )
    assert f'"fee":"{output.fee}"' in output.model_dump_json(exclude={"risk"}), "the JSON of Pydantic is exact, too"


def test_what_the_node_states_of_one_value_is_checked(payment: vesper.Node) -> None:
    with pytest.raises(ValidationError) as refused:
        models(payment).Input.model_validate_json(
            '{"amount": 0, "balance": 1.5, "currency": "USX", "country": "D", "user_age_days": 1e3, "x": 1}'
        )
    assert [(each["loc"], each["type"]) for each in refused.value.errors()] == [
        (("amount",), "greater_than"),
        (("currency",), "vesper_not_a_member"),
        (("country",), "string_too_short"),
        (("user_age_days",), "vesper_wrong_type"),
        (("x",), "extra_forbidden"),
    ]
    schema = models(payment).Input.model_json_schema()
    assert schema["properties"]["amount"]["anyOf"][0] == {"type": "number", "exclusiveMinimum": 0.0}
    assert schema["properties"]["currency"]["enum"] == ["USD", "EUR", "GBP"]


@pytest.mark.parametrize("text", ["{", '{"amount": 1, "amount": 2}', b"\xff"])
def test_text_that_is_no_json_is_a_validation_error(payment: vesper.Node, text: str | bytes) -> None:
    with pytest.raises(ValidationError, match="Invalid JSON"):
        models(payment).Input.model_validate_json(text)


def test_a_float_is_never_rounded_silently(payment: vesper.Node) -> None:
    class Order(BaseModel):
        payment: models(payment).Input  # type: ignore[valid-type]  # made at run time

    with pytest.raises(ValidationError, match="a float is not exact"):
        Order.model_validate_json('{"payment": ' + PAYMENT % EXACT + "}")
    assert Order.model_validate_json('{"payment": ' + PAYMENT % '"1.10"' + "}").payment.amount == Decimal("1.10")


def test_records_maps_and_sets(tmp_path: Path) -> None:
    node = vesper.load(written(tmp_path, BASKET))
    made: Models[NodeModel, NodeModel] = models(node)
    text = (
        '{"lines": [{"sku": "a", "qty": 2, "price": 1.10, "tags": ["new"]}], "kind": "retail", '
        '"rates": {"new": 0.10}, "days": [["2026-01-02", 3]]}'
    )
    given = made.Input.model_validate_json(text)
    assert node(given) == node(text)
    assert node(given.model_dump_json()) == node(text)
    with pytest.raises(ValidationError, match="something occurs twice"):
        made.Input.model_validate_json(text.replace('["new"]', '["new", "new"]'))


@pytest.mark.parametrize("name", ["contact_update", "contact_notice"])
def test_what_no_model_expresses_is_refused(name: str) -> None:
    with pytest.raises(TypeError, match="use JSON text"):
        models(vesper.load(name, nodes=NODES))


def test_a_keyword_is_an_alias() -> None:
    made = models(vesper.load("rental_period", nodes=NODES)).Input
    text = '{"from": "2026-01-02", "months": 1, "monthly_rate": "1", "daily_rate": "2"}'
    given = made.model_validate_json(text)
    assert str(given.from_) == "2026-01-02"
    assert '"from":"2026-01-02"' in given.model_dump_json()
