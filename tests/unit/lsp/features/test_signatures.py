"""Signature help: text with a cursor, the signature and the active parameter."""

from __future__ import annotations

import pytest

from tests.unit.lsp.features.workspace import FEE, ORDER, RULES, marked, open_at
from vesper.lsp.features.signatures import signature_help

VALUE = "capped(amount * rate, 5) + pieces"


@pytest.mark.parametrize(
    "cursor, signature, active",
    [
        ("capped(|", "capped(value: decimal, top: decimal) -> decimal", 0),
        ("capped(amount * rate, |", "capped(value: decimal, top: decimal) -> decimal", 1),
        ("capped(min(amount, 2), |5)", "capped(value: decimal, top: decimal) -> decimal", 1),
        ("capped(min(amount, |2), 5)", "min(left: T, right: T) -> T", 1),
        ("capped(amount, 5) |", None, 0),
    ],
)
def test_signatures_in_an_expression(cursor: str, signature: str | None, active: int) -> None:
    found = signature_help(*open_at(marked(VALUE, cursor)))
    if signature is None:
        assert found is None
    else:
        assert found is not None
        assert found.signatures[found.active_signature or 0].label == signature
        assert found.active_parameter == active


def test_signature_of_a_called_node() -> None:
    whole = "doubled(priced.fee) + total * discount"
    text = marked(whole, '"fee(country: DE, amount: |total, lines: []).fee"', ORDER)
    found = signature_help(*open_at(text, "order_v1", fee_v1=FEE, rules_v1=RULES))
    assert found is not None
    assert found.signatures[0].label.startswith("fee(amount: decimal, country: enum[DE, FR], lines: ")
    assert found.active_parameter == 0
