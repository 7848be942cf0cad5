"""`node.Input` and `node.Output`: dataclasses that calls take and outputs fill."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields
from decimal import Decimal
from pathlib import Path

import pytest

import vesper
from tests.support.nodes import compiled
from tests.unit.api.given import BASKET, NODES, written
from vesper.api.forms.records import Records

LINES = """\
node_id: lines_v1
type: function
intent: Repeat lines
types:
  Line:
    fields: {sku: string, price: decimal, note: optional<string>}
inputs:
  lines: {type: array<Line>, default: [{sku: a, price: "1.10", note: null}]}
  from: date
outputs:
  success: {lines: array<Line>, last: optional<Line>, by_sku: "map<string, Line>", from: date}
flow:
  - operation: return
    success:
      lines: lines
      last: "null"
      by_sku: "{'x': lines[0]}"
      from: from
"""


@pytest.fixture
def basket(tmp_path: Path) -> vesper.Node:
    return vesper.load(written(tmp_path, BASKET))


def test_inputs_are_a_frozen_dataclass_with_defaults(basket: vesper.Node) -> None:
    given = basket.Input(
        lines=[basket.Input.Line(sku="a", qty=2, price=Decimal("1.10"), tags=frozenset(["new"]))],
        kind="retail",
        rates={},
        days={},
    )
    assert (given.buyer, given.divisor, given.lines[0].note) == (None, 1, None)
    assert basket(given)["total"] == Decimal("2.20")
    with pytest.raises(FrozenInstanceError):
        given.kind = "trade"
    assert not hasattr(given, "__dict__")
    assert basket.Input is basket.Input
    assert str(basket.Input.__doc__).startswith("Price a basket\n\nlines: array<Line>")
    assert [each.name for each in fields(basket.Input)] == list(basket.inputs)


def test_the_node_decides_what_fits(basket: vesper.Node) -> None:
    outcome = basket(basket.Input(lines=[], kind="gift", rates={}, days={}, divisor="1"))
    assert outcome.error is not None
    assert [(each.path, each.kind) for each in outcome.error.problems] == [
        ("kind", "not_a_member"), ("divisor", "wrong_type"),
    ]  # fmt: skip


def test_outputs_hold_dataclasses_at_every_depth(tmp_path: Path) -> None:
    node = vesper.load(written(tmp_path, LINES))
    given = node.Input(from_="2026-01-02")
    assert given.lines == [node.Input.Line(sku="a", price=Decimal("1.10"), note=None)]
    assert node.Input(from_="2026-01-02").lines is not given.lines, "a default is not shared"
    outcome = node(given)
    output = node.as_output(outcome)
    assert output.lines == given.lines
    assert output.by_sku == {"x": given.lines[0]}
    assert (output.last, output.from_) == (None, outcome.unwrap()["from"])
    assert node.as_output(outcome.unwrap()) == output
    assert node.Output.Line is node.Input.Line


def test_an_outcome_without_outputs_raises_as_unwrap_does() -> None:
    node = vesper.load("payment_decision", nodes=NODES)
    with pytest.raises(vesper.BadInput):
        node.as_output(node(amount=1))


@pytest.mark.parametrize("name", ["data/contact_update_v1", "rules/carrier_choice_v1", "calendar/rental_period_v1"])
def test_flags_open_records_and_keywords_have_fields(name: str) -> None:
    node = compiled(NODES / f"{name}.vsp").node
    records = Records(node)
    assert len(fields(records.input_class())) == len(node.inputs)
    assert len(fields(records.output_class())) == len(node.outputs)
