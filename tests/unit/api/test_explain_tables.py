"""Explanations of decision tables and dated parameters: matched rows, default rows, entries in force."""

from __future__ import annotations

from pathlib import Path

import pytest

import vesper
from tests.unit.api.given import NODES

ENGINES = ("python", "interp", "jit")
RULES = NODES / "rules"

LINES = """\
node_id: lines_v1
type: function
intent: Rate lines
inputs: {amounts: array<decimal>}
outputs: {success: {rates: array<decimal>, label: string}}
tables:
  rate:
    inputs: {amount: decimal}
    outputs: {rate: decimal}
    rows:
      - {in: {amount: "< 10"}, then: 0.1, annotation: small, reason: small_line}
      - {in: {amount: "[10..100)"}, then: 0.2}
      - {otherwise: 0.3, annotation: large, reason: large_line}
flow:
  - step: rates
    value: "[rate(amount) FOR amount IN amounts]"
  - step: label
    rows:
      - {when: length(rates) == 0, then: "'none'", reason: no_lines}
      - {otherwise: "'some'"}
  - return: [rates, label]
"""


def rows_of(path: Path, inputs: dict[str, object]) -> tuple[list[tuple[object, ...]], tuple[str, ...]]:
    """Return the matched rows and reasons, which must be the same on every engine."""
    found = [vesper.load(path, engine=engine)(**inputs).explain(nearest=False) for engine in ENGINES]
    assert found[0] == found[1] == found[2]
    rows = [(each.table, each.row, each.times, each.annotation) for each in found[0].rows]
    return rows, found[0].reasons  # type: ignore[return-value]


@pytest.mark.parametrize(
    "amounts, rows, reasons",
    [
        ([], [("label", 1, 1, None)], ("no_lines",)),
        (
            ["5", "50", "7", "500"],
            [("rate", 1, 2, "small"), ("rate", 2, 1, None), ("rate", 3, 1, "large"), ("label", 2, 1, None)],
            ("small_line", "large_line"),
        ),
        (["100", "10"], [("rate", 3, 1, "large"), ("rate", 2, 1, None), ("label", 2, 1, None)], ("large_line",)),
    ],
)
def test_rows_of_a_table_that_is_evaluated_often(
    tmp_path: Path, amounts: list[str], rows: list[tuple[object, ...]], reasons: tuple[str, ...]
) -> None:
    (tmp_path / "lines_v1.vsp").write_text(LINES)
    assert rows_of(tmp_path / "lines_v1.vsp", {"amounts": amounts}) == (rows, reasons)


def test_a_collecting_table_has_every_matched_row_and_its_cells() -> None:
    inputs = {"total": "600", "pieces": 1, "is_member": True, "country": "DE", "coupon": None}
    why = vesper.load(RULES / "collect_discounts_v1.vsp")(**inputs).explain(nearest=False)
    assert [(each.row, dict(each.cells)) for each in why.rows] == [
        (1, {"total": ">= 100"}),
        (3, {"is_member": "true"}),
        (4, {"is_member": "true", "total": ">= 500"}),
        (5, {"country": "DE, FR"}),
    ]
    assert "row `total >= 500, is_member true` is true" in why.text


def test_a_priority_table_has_the_row_that_decides() -> None:
    inputs = {"amount": "6000", "country": "DE", "account_days": 3, "attempts": 9}
    rows, reasons = rows_of(RULES / "risk_priority_v1.vsp", inputs)
    assert rows == [("risk", 6, 1, None)]
    assert reasons == ("too_many_attempts",)


def test_parameters_have_date_entry_value_and_reference() -> None:
    for engine in ENGINES:
        node = vesper.load(RULES / "social_security_v1.vsp", engine=engine)
        why = node(income="20000", day="2024-06-01").explain(nearest=False)
        assert [(each.name, each.date, each.since, each.reference) for each in why.parameters] == [
            ("pension_scale", "2024-06-01", "2024-01-01", "Social Code, section 160"),
            ("care_rate", "2024-06-01", "2023-01-01", None),
        ]
        assert why.to_json()["parameters"][1]["value"] == "0.034"
        early = node(income="20000", day="2022-06-01").explain(nearest=False)
        assert [(each.name, each.since) for each in early.parameters] == [("pension_scale", None)]
        assert "pension_scale at 2022-06-01: null, not in force" in early.text
