"""Hover: text with a cursor, and what the answer says."""

from __future__ import annotations

import pytest

from tests.unit.lsp.features.workspace import FEE, ORDER, RULES, marked, open_at
from vesper.lsp.features.hover import hover


def shown(text: str, node_id: str = "fee_v1", **others: str) -> str | None:
    found = hover(*open_at(text, node_id, **others))
    return None if found is None else getattr(found.contents, "value", None)


@pytest.mark.parametrize(
    "text, cursor, expected",
    [
        ("amount * rate", "amo|unt * rate", ["amount: decimal", "An input", "Values: `0` to `1000`"]),
        ("amount: {type", "amo|unt: {type", ["Constraints: `min: 0`, `max: 1000`"]),
        ("amount * rate", "amount |* rate", ["decimal.multiply(", "Example: ", "Values: `0` to `20`"]),
        ("amount * rate", "amount * r|ate", ["rate: decimal = 0.02", "A constant", "always `0.02`"]),
        ("line.qty", "line.q|ty", ["qty: integer", "A field"]),
        ("FOR line", "FOR li|ne", ["line: Line", "bound here"]),
        ("SUM(line", "S|UM(line", ["`SUM`: The sum", "SUM(line.qty FOR line IN lines): integer"]),
        ("min(value, top)", "m|in(value, top)", ["value.min<T>(left: T, right: T) -> T", "Returns the smaller"]),
        ("capped(amount", "cap|ped(amount", ["capped(value: decimal, top: decimal) -> decimal"]),
        ("constants:", "const|ants:", ["`constants` of a node", "Named values."]),
        ("value: SUM", "val|ue: SUM", ["a compute step (expression, required)"]),
        ("array<Line>", "array<Li|ne>", ["Line:\n  fields: {sku: string, qty: integer}"]),
        ("array<Line>", "arr|ay<Line>", ["`array`: ordered values"]),
        ("country: DE", "country: D|E", None),
        ("inputs: {amount", "inputs: {am|ount", ["amount: decimal", "An input"]),
        ("[fee]", "[f|ee]", ["fee: decimal", "A value of a step"]),
        ("+ pieces", "+ pie|cez", ["**VSP1102** no input, constant or earlier step is named `piecez`"]),
    ],
)
def test_hover_in_a_node(text: str, cursor: str, expected: list[str] | None) -> None:
    found = shown(marked(text, cursor))
    if expected is None:
        assert found is None
    else:
        assert found is not None
        assert [each for each in expected if each not in found] == []


def test_a_name_is_known_while_another_step_is_unfinished() -> None:
    text = FEE.replace("value: SUM(line.qty FOR line IN lines)", "value: SUM(line.qty FOR")
    assert "amount: decimal" in (shown(marked("amount * rate", "amo|unt * rate", text)) or "")


def test_a_name_is_known_while_the_file_is_no_yaml() -> None:
    text = FEE.replace("constants:\n", "const\nconstants:\n")
    assert "amount: decimal" in (shown(marked("amount * rate", "amo|unt * rate", text)) or "")


@pytest.mark.parametrize(
    "text, cursor, expected",
    [
        ("node: fee", "node: f|ee", "Work out the fee of a payment."),
        ("{amount: total", "{am|ount: total", "An input of `fee_v1`"),
        ("priced.fee", "priced.f|ee", "An output of `fee_v1`"),
        ("[rules_v1]", "[rul|es_v1]", "library rules_v1"),
        ("* discount", "* dis|count", "discount: decimal = 0.9"),
        ("doubled(", "dou|bled(", "doubled(value: decimal) -> decimal"),
        ("unavailable:", "unav|ailable:", "`unavailable`: "),
    ],
)
def test_hover_over_names_of_other_files(text: str, cursor: str, expected: str) -> None:
    found = shown(marked(text, cursor, ORDER), "order_v1", fee_v1=FEE, rules_v1=RULES)
    assert found is not None
    assert expected in found
