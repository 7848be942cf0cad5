"""Questions about executions: read as the language reads them, and computed by its engines."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tests.support.nodes import PAYMENT_DECISION, compiled
from vesper.engines.registry import ENGINES
from vesper.spec.types import BOOLEAN, DECIMAL
from vesper.trace.expressions import AskedWrongly, input_types, input_values, inputs_question, question

INPUTS = {"amount": Decimal("20000.50"), "balance": Decimal(100), "currency": "USD", "country": "DE"}


@pytest.mark.parametrize(
    "text, expected",
    [
        ("input.amount > 10000", True),
        ("amount > 10000 AND currency == EUR", False),
        ("currency IN [USD, GBP]", True),
        ("amount / (balance - 100) > 1", False),
        ("flagged", False),
        ("amount > MAX_AMOUNT", None),
    ],
)
@pytest.mark.parametrize("engine", list(ENGINES))
def test_an_expression_over_inputs(text: str, expected: bool | None, engine: str) -> None:
    node = compiled(PAYMENT_DECISION)
    if expected is None:
        with pytest.raises(AskedWrongly, match="is named `MAX_AMOUNT`"):
            question(text, input_types(node), BOOLEAN, engine)
        return
    asked = question(text, input_types(node), BOOLEAN, engine)
    assert asked.holds(input_values(node, INPUTS)) is expected


def test_a_value() -> None:
    asked = inputs_question(compiled(PAYMENT_DECISION), "amount * 2")
    assert asked.type == DECIMAL
    assert asked.names == {"amount"}
    assert asked.value({"amount": Decimal("1.50")}) == Decimal("3.00")
    with pytest.raises(AskedWrongly, match="has no value here: division_by_zero"):
        inputs_question(compiled(PAYMENT_DECISION), "1 / balance").value({"balance": Decimal(0)})


@pytest.mark.parametrize(
    "text, caret",
    [
        ('amount > "x"', '1 | amount > "x"\n  |        ^ between decimal and string'),
        ("ammount > 3", "1 | ammount > 3\n  | ^^^^^^^ unknown name\n  |\n  = help: did you mean `amount`?"),
        ("amount >", "1 | amount >\n  |         ^"),
        ("amount + 1", "1 | amount + 1\n  | ^^^^^^^^^^ this is decimal"),
        ("", "an expression is expected"),
    ],
    ids=["types", "name", "end", "no_boolean", "nothing"],
)
def test_a_mistake_has_a_caret(text: str, caret: str) -> None:
    with pytest.raises(AskedWrongly) as wrong:
        inputs_question(compiled(PAYMENT_DECISION), text, BOOLEAN, "--where")
    assert caret in str(wrong.value)
