"""Decision tables: cells in words, and aligned rows."""

from __future__ import annotations

import pytest
from lsprotocol import types

from tests.unit.lsp.features.workspace import marked, open_at
from vesper.lsp.features.hover import hover
from vesper.lsp.features.tables import align_actions

RISK = """\
node_id: risk_v1
type: function
intent: Judge a payment.
inputs:
  amount: decimal
  country: string
outputs:
  success: {risk: "enum[low, high, mid]"}
flow:
  - step: risk
    rows:
      - {in: {amount: "> 5000"}, then: high}
      - {in: {amount: "[500..5000)", country: "NG, RU"}, then: mid, annotation: watch}
      - {in: {amount: "-", country: "not(DE, FR)"}, when: amount < 200, then: mid}
      - {otherwise: low}
  - return: [risk]
"""


@pytest.mark.parametrize(
    "text, cursor, cell, rule",
    [
        ("> 5000", "> 5|000", "`amount` is more than `5000`.", "Row 1: if `amount` is more than `5000`, then"),
        ("[500", "[5|00", "`amount` is at least `500` and less than `5000`.", "Row 2: if "),
        ("NG, RU", "NG, |RU", "`country` is one of `NG`, `RU`.", "(watch)"),
        ("not(DE", "not|(DE", "not (`country` is `DE` or `country` is `FR`).", "then the result is `mid`"),
        ('"-"', '"|-"', "`amount` has any value.", "Row 3: if not ("),
    ],
)  # fmt: skip
def test_a_cell_in_words(text: str, cursor: str, cell: str, rule: str) -> None:
    found = hover(*open_at(marked(text, cursor, RISK), "risk_v1"))
    assert found is not None
    shown = getattr(found.contents, "value", "")
    assert cell in shown
    assert rule in shown


def test_alignment_is_the_one_that_the_formatter_keeps() -> None:
    view, position = open_at(marked("> 5000", "> 5|000", RISK), "risk_v1")
    (action,) = align_actions(view, "file:///risk", types.Range(position, position))
    assert action.edit is not None
    assert action.edit.changes is not None
    assert [each.new_text for each in action.edit.changes["file:///risk"]] == [
        '{in: {amount: "> 5000"},                         then: high}',
        '{in: {amount: "-",           country: "not(DE, FR)"}, when: amount < 200, then: mid}',
    ]


@pytest.mark.parametrize(
    "row",
    [
        '{then: high, in: {amount: "> 5000"}}',
        '{in: {amount: "> 5000"},                         then: high}',
    ],
)
def test_no_action_where_nothing_can_be_aligned(row: str) -> None:
    text = RISK.replace('{in: {amount: "> 5000"}, then: high}', row)
    text = text.replace('{in: {amount: "-", country', '{in: {amount: "-",           country')
    view, position = open_at(marked("NG, RU", "NG, |RU", text), "risk_v1")
    assert align_actions(view, "file:///risk", types.Range(position, position)) == []
