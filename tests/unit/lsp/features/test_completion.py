"""Completion: text with a cursor, and the labels that are offered, the best ones first."""

from __future__ import annotations

import pytest
from lsprotocol import types

from tests.unit.lsp.features.workspace import FEE, ORDER, RULES, marked, open_at
from vesper.lsp.features.completion import complete, resolve


def offered(text: str, node_id: str = "fee_v1", **others: str) -> list[types.CompletionItem]:
    items = complete(*open_at(text, node_id, **others)).items
    return sorted(items, key=lambda each: each.sort_text or "")


def labels(text: str, node_id: str = "fee_v1", **others: str) -> list[str]:
    return [each.label for each in offered(text, node_id, **others)]


VALUE = "capped(amount * rate, 5) + pieces"
PIECES = "SUM(line.qty FOR line IN lines)"


@pytest.mark.parametrize(
    "text, cursor, expected",
    [
        (VALUE, "|", ["amount", "rate"]),
        (VALUE, "amount + pi|", ["amount", "rate", "country", "lines", "pieces", "capped"]),
        (VALUE, "IF country == |", ["DE", "FR", "country"]),
        (VALUE, "IF country == | THEN 1 ELSE 2", ["DE", "FR", "country"]),
        (VALUE, "IF country == DE THEN LET half = amount / 2 IN |", ["amount", "half", "rate"]),
        (VALUE, "capped(round(amount, |", ["amount", "rate"]),
        (PIECES, "SUM(line.| FOR line IN lines)", ["qty", "sku"]),
        (PIECES, "SUM(l| FOR line IN lines)", ["amount", "country", "line", "lines", "rate", "capped"]),
        (PIECES, "COUNT(x FOR x IN lines WHERE x.sku == input.|)", ["amount", "country", "lines"]),
        ("    value: SUM", "    |\n    value: SUM", ["operation", "error_handling", "guards"]),
        ("- return: [fee]", "- |", ["cases", "compute", "condition", "node", "over", "raise"]),
        ("- return: [fee]", "- return: [|]", ["fee"]),
        ("testing:\n", "sec|\ntesting:\n", ["contracts", "events", "http"]),
        ("    returns: decimal\n", "    |\n", ["returns", "max_depth", "table"]),
        ("array<Line>", "|", ["Line", "array", "boolean"]),
        ("array<Line>", "array<|>", ["Line", "array", "boolean"]),
        ("type: function", "type: |", ["agent", "data_transform", "event_handler"]),
        ("{min: 0}, {max: 1000}", "|", ["length", "max", "max_length", "min"]),
        ("{amount: 10, country: DE", "{amount: 10, |", ["country"]),
        ("country: DE", "country: |", ["DE", "FR"]),
        ("{fee: 0.20}", "{|}", ["fee", "breaks", "error", "fails"]),
        (
            "testing:\n",
            "security:\n  capabilities_required: [|]\ntesting:\n",
            ["budgets.read", "cache.read", "cache.write"],
        ),
        ("testing:\n", "security: {sensitive_data: [|]}\ntesting:\n", ["amount", "country", "lines"]),
        ("- return: [fee]", "- operation: |", ["ask", "ask_agent", "ask_model"]),
        ("{type: decimal, constraints: [{min: 0}, {max: 1000}]}", "\n    |", ["Line", "type", "absent"]),
        (f"value: {VALUE}", f"value: {VALUE}\n    on_error:\n      |", ["any", "auth"]),
        (f"value: {VALUE}", 'template: "fee of {am|"', ["amount", "country"]),
        (f"value: {VALUE}", "on: country\n    cases:\n      - {is: |, then: 1}", ["DE", "FR"]),
        (f"value: {VALUE}", "over: line IN lines\n    state: {total: 0}\n    next: {|}", ["total"]),
        ("outputs:\n", "contracts:\n  postconditions:\n    - fe|\noutputs:\n", ["false", "true", "amount"]),
        ("intent: Work", "intent: W|", []),
    ],
)
def test_completion_in_a_node(text: str, cursor: str, expected: list[str]) -> None:
    found = labels(marked(text, cursor))
    assert found[: len(expected)] == expected
    assert expected or not found


@pytest.mark.parametrize(
    "text, cursor, expected",
    [
        ("node: fee\n", "node: |\n", ["fee_v1"]),
        ("[rules_v1]", "[|]", ["rules_v1"]),
        ("{amount: total, country: DE", "{|", ["amount", "country"]),
        ("priced.fee", "priced.|", ["fee"]),
        ("doubled(priced.fee)", "|", ["discount", "total"]),
        ("unavailable: {", "|: {", ["any", "auth"]),
    ],
)
def test_completion_of_names_of_other_files(text: str, cursor: str, expected: list[str]) -> None:
    found = labels(marked(text, cursor, ORDER), "order_v1", fee_v1=FEE, rules_v1=RULES)
    assert found[: len(expected)] == expected


def test_functions_of_libraries_and_nodes_are_offered_as_calls() -> None:
    items = offered(marked("doubled(priced.fee)", "|", ORDER), "order_v1", fee_v1=FEE, rules_v1=RULES)
    inserted = {each.label: each.insert_text for each in items}
    assert inserted["doubled"] == "doubled(${1:value})"
    assert inserted["fee"] == "fee($0)"
    assert inserted["round"] == "round(${1:value})"
    assert inserted["IF"] == "IF ${1:condition} THEN ${2:value} ELSE ${3:other}"


def test_documentation_comes_on_demand() -> None:
    view, position = open_at(marked(VALUE, "ro|"))
    item = next(each for each in complete(view, position).items if each.label == "round")
    assert item.documentation is None
    documentation = resolve(view, item).documentation
    assert isinstance(documentation, types.MarkupContent)
    assert "Rounds once to this many places" in documentation.value


def test_cells_and_columns_of_a_table() -> None:
    table = "rows:\n      - {in: {country: DE}, then: 1}\n      - {otherwise: 2}"
    text = FEE.replace(f"value: {VALUE}", table)
    assert labels(marked("{country: DE}, then", "{country: |}, then", text)) == ["DE", "FR"]
    assert labels(marked("{country: DE}, then", "{|}, then", text))[:2] == ["amount", "country"]


def test_a_capability_replaces_what_is_written_of_it() -> None:
    text = marked("testing:\n", "security: {capabilities_required: [data|]}\ntesting:\n")
    item = next(each for each in offered(text) if each.label == "database.read")
    assert isinstance(item.text_edit, types.TextEdit)
    assert item.text_edit.range.end.character - item.text_edit.range.start.character == len("data")


def test_a_key_that_has_its_colon_gets_no_second_one() -> None:
    items = offered(marked("constants:", "const|s:"))
    assert [each.insert_text for each in items if each.label == "contracts"] == ["contracts"]
