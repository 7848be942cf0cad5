"""Expressions about executions: parsed as the language does, evaluated by its engines."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tests.support.nodes import PAYMENT_DECISION, ROOT, compiled
from vesper.engines.engine import Engine
from vesper.engines.outcome import Failed, Returned
from vesper.engines.registry import ENGINES
from vesper.trace.expressions import BadExpression, Expressions, names_of_inputs
from vesper.values.types import BOOLEAN, DECIMAL

INPUTS = {"amount": Decimal("20000.50"), "balance": Decimal(100), "currency": "USD", "country": "DE"}


@pytest.mark.parametrize(
    "text, expected",
    [
        ("input.amount > 10000", True),
        ("amount > 10000 AND currency == EUR", False),
        ("currency IN [USD, GBP]", True),
        ("amount / (balance - 100) > 1", False),
        ("flagged", False),
    ],
)
@pytest.mark.parametrize("engine", ENGINES.values(), ids=list(ENGINES))
def test_an_expression_over_inputs(text: str, expected: bool, engine: Engine) -> None:
    node = compiled(PAYMENT_DECISION)
    names = names_of_inputs(node, INPUTS)
    asked = Expressions(node).parse(text, names, BOOLEAN)
    assert asked.holds(engine, names) is expected


@pytest.mark.parametrize("engine", ENGINES.values(), ids=list(ENGINES))
def test_a_value(engine: Engine) -> None:
    node = compiled(PAYMENT_DECISION)
    names = names_of_inputs(node, {**INPUTS, "balance": Decimal(0)})
    asked = Expressions(node).parse("amount * 2", names)
    assert asked.type == DECIMAL
    assert asked.mentions == (("input", "amount"),)
    found = asked.ask(engine, names)
    assert isinstance(found, Returned)
    assert found.value["value"] == Decimal("40001.00")
    failed = Expressions(node).parse("1 / balance", names).ask(engine, names)
    assert isinstance(failed, Failed)
    assert failed.code == "division_by_zero"


def test_the_types_constants_and_functions_of_the_node_are_known() -> None:
    """Trace lists and breakpoints accept the same expressions."""
    pricing = compiled(ROOT / "nodes" / "orders" / "order_pricing_v1.vsp")
    names = names_of_inputs(pricing, dict(pricing.cases[0].inputs))
    asked = Expressions(pricing).parse("tax_rate['toy'] == 0.2 AND count(items) > 0", names, BOOLEAN)
    assert asked.mentions == (("constant", "tax_rate"), ("input", "items"))
    assert asked.holds(ENGINES["interp"], names)
    rate = compiled(ROOT / "nodes" / "finance" / "internal_rate_v1.vsp")
    names = names_of_inputs(rate, {})
    worth = Expressions(rate).parse("present_value(0.5, [-1, 1.5])", names).ask(ENGINES["python"], names)
    assert isinstance(worth, Returned)
    assert worth.value["value"] == 0


@pytest.mark.parametrize(
    "text, caret",
    [
        ('amount > "x"', '1 | amount > "x"\n  |        ^ between decimal and string'),
        ("ammount > 3", "1 | ammount > 3\n  | ^^^^^^^ unknown name\n  |\n  = help: did you mean `amount`?"),
        ("amount >", "1 | amount >\n  |         ^"),
        ("amount + 1", "1 | amount + 1\n  | ^^^^^^^^^^ this is decimal"),
        ("amount > MAX_AMOUNT", "is named `MAX_AMOUNT`"),
        ("", "expected an expression"),
        ("(" * 20_000, "expected an expression"),
    ],
    ids=["types", "name", "end", "no_boolean", "unknown", "nothing", "long"],
)
def test_a_mistake_has_a_caret(text: str, caret: str) -> None:
    node = compiled(PAYMENT_DECISION)
    with pytest.raises(BadExpression) as wrong:
        Expressions(node).parse(text, names_of_inputs(node, {}), BOOLEAN, "--where")
    assert caret in str(wrong.value)
