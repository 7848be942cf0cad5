"""Outside names: JSON and tables have them, Python has the names of the node, on every engine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import vesper

ENGINES = ("python", "interp", "jit")
NODE = """\
node_id: order_v1
type: function
intent: Price an order of a shop with names of its own
types:
  Country: {type: "enum[germany, france, other]", as: {germany: DE, france: FR}}
  Line:
    fields:
      unit_price: {type: decimal, as: unitPrice}
      qty: integer
      note: {type: optional<string>, as: 'a "note"', absent: no_note}
    open: true
inputs:
  ship_to: {type: Country, as: shipTo}
  lines: {type: array<Line>, as: "order lines"}
  coupon: {type: optional<string>, as: couponCode, absent: no_coupon}
  limits: {type: "map<Country, integer>", as: "max by country", default: {germany: 7}}
outputs:
  success:
    total: {type: decimal, as: totalPrice}
    country: {type: Country, as: shipTo}
    lines: {type: array<Line>, as: Lines}
    sent: json
    cast: {type: Line, as: first}
    used: {type: optional<string>, as: usedCoupon, absent: no_coupon}
    limits: {type: "map<Country, integer>"}
  error:
    error_code: {type: "enum[too_many]", as: errorCode}
    message: {type: string, as: Message}
contracts:
  preconditions: [FORALL line IN lines SATISFIES line.qty > 0]
flow:
  - operation: validation
    require:
      - {condition: length(lines) < 4, error: {error_code: too_many, message: "{length(lines)} lines"}}
  - step: total
    operation: compute
    value: SUM(line.unit_price * line.qty FOR line IN lines)
  - step: sent
    operation: compute
    value: to_json(lines)
  - operation: return
    success:
      total: total
      country: ship_to
      lines: "[line WITH {qty: line.qty + 1} FOR line IN lines]"
      sent: sent
      cast: CAST(sent[0] AS Line)
      used: coupon
      no_coupon: no_coupon
      limits: limits
"""
GIVEN: dict[str, object] = {
    "shipTo": "DE",
    "order lines": [{"unitPrice": "1.50", "qty": 2, 'a "note"': None, "z": {"b": [1, 1.50]}, "no_note": 1}],
}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("nodes") / "order_v1.vsp"
    path.write_text(NODE, encoding="utf-8")
    return path


@pytest.fixture(scope="module", params=ENGINES)
def node(request: pytest.FixtureRequest, path: Path) -> vesper.Node:
    return vesper.load(path, engine=request.param)


def ask(node: vesper.Node, given: Mapping[str, object]) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(node.run_json(json.dumps(given).encode()))
    return answer


def test_json_has_outside_names_on_both_sides(node: vesper.Node) -> None:
    line = {"unitPrice": "1.50", "qty": 2, 'a "note"': None, "z": {"b": [1, 1.5]}, "no_note": 1}
    assert ask(node, GIVEN)["value"] == {
        "totalPrice": "3.00",
        "shipTo": "DE",
        "Lines": [line | {"qty": 3}],
        "sent": [line],
        "first": line,
        "limits": {"DE": 7},
    }


def test_json_is_canonical_by_outside_names(node: vesper.Node) -> None:
    text = node.run_json(json.dumps(GIVEN).encode()).decode()
    keys = ["Lines", "first", "limits", "sent", "shipTo", "totalPrice"]
    assert [text.index(f'"{key}":') for key in keys] == sorted(text.index(f'"{key}":') for key in keys)


@pytest.mark.parametrize("value", [None, "x"])
def test_a_null_differs_from_an_absent_key(node: vesper.Node, value: str | None) -> None:
    assert "usedCoupon" not in ask(node, GIVEN)["value"]
    assert ask(node, GIVEN | {"couponCode": value})["value"]["usedCoupon"] == value


def test_an_absent_field_is_left_out_again(node: vesper.Node) -> None:
    (line,) = ask(node, GIVEN | {"order lines": [{"unitPrice": 1, "qty": 1}]})["value"]["Lines"]
    assert line == {"unitPrice": "1", "qty": 2}


def test_inside_names_are_unknown_in_json(node: vesper.Node) -> None:
    given = {"ship_to": "DE", "shipTo": "germany", "order lines": [{"unit_price": 1, "qty": "x"}], "no_coupon": True}
    problems = [(each["path"], each["kind"]) for each in ask(node, given)["problems"]]
    assert problems == [
        ("shipTo", "not_a_member"),
        ("order lines[0].unitPrice", "missing"),
        ("order lines[0].qty", "wrong_type"),
        ("no_coupon", "unknown"),
        ("ship_to", "unknown"),
    ]


def test_problems_of_keys_and_of_undeclared_values_have_outside_paths(node: vesper.Node) -> None:
    lines = '[{"unitPrice": 1, "qty": 1, "deep": ' + "[" * 129 + "]" * 129 + ', "big": 1e1001}]'
    text = '{"shipTo": "other", "order lines": ' + lines + ', "max by country": {"FR": "x", "germany": 1}}'
    problems = [(each["path"], each["kind"]) for each in json.loads(node.run_json(text.encode()))["problems"]]
    assert problems == [
        ("order lines[0].big", "out_of_range"),
        ("order lines[0].deep", "too_deep"),
        ("max by country[?]", "not_a_member"),
        ('max by country["FR"]', "wrong_type"),
    ]


def test_messages_show_what_the_caller_wrote(node: vesper.Node) -> None:
    outcome = node('{"shipTo": "XX", "order lines": []}')
    assert outcome.error is not None
    assert outcome.error.message.splitlines()[1] == (
        '  shipTo: expected one of DE, FR, other, got string "XX" (line 1, column 12)'
    )


def test_python_keeps_the_names_of_the_node(node: vesper.Node) -> None:
    line = {"unit_price": "1.50", "qty": 2, "rest": {"z": 1}}
    value = node.call({"ship_to": "france", "lines": [line], "coupon": None})
    assert value["country"] == "france"
    assert value["lines"] == [
        {"unit_price": Decimal("1.50"), "qty": 3, "note": None, "no_note": True, "rest": {"z": 1}}
    ]
    assert (value["used"], value["no_coupon"]) == (None, False)
    assert value["sent"] == [{"unitPrice": "1.50", "qty": 2, "z": 1}]
    assert node(ship_to="france", lines=[line])["no_coupon"] is True


def test_a_dict_may_not_have_outside_names(node: vesper.Node) -> None:
    with pytest.raises(vesper.BadInput) as raised:
        node.call({"shipTo": "DE", "ship_to": "DE", "lines": []})
    assert "shipTo" in str(raised.value)
    assert "ship_to" in str(raised.value)


def test_an_error_has_outside_names(node: vesper.Node) -> None:
    lines = [{"unitPrice": 1, "qty": 1}] * 4
    answer = ask(node, GIVEN | {"order lines": lines})
    assert answer["value"] == {"errorCode": "too_many", "Message": "4 lines"}
    assert answer["code"] == "too_many"


def test_values_of_a_clause_have_the_names_of_the_clause(node: vesper.Node) -> None:
    answer = ask(node, GIVEN | {"order lines": [{"unitPrice": 1, "qty": 0}]})
    assert answer["values"] == {
        "lines": [{"unit_price": "1", "qty": 0, "note": None, "no_note": True, "rest": {}}],
    }


def test_an_undeclared_key_does_not_replace_a_field(node: vesper.Node) -> None:
    line = {"unit_price": 1, "qty": 1, "rest": {"unitPrice": 9, 'a "note"': 8, "free": 7}}
    assert node.call({"ship_to": "other", "lines": [line]})["sent"] == [{"unitPrice": "1", "qty": 1, "free": 7}]


def test_tables_have_columns_with_outside_names(path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    node = vesper.load(path, engine="interp")
    lines = [[{"unitPrice": "1.50", "qty": 2, 'a "note"': "n"}], [{"unitPrice": "2", "qty": 1, 'a "note"': None}]]
    table = pa.table({"shipTo": ["DE", "germany"], "order lines": lines, "couponCode": ["a", None]})
    rows = node.run_batch(table).to_pylist()
    assert rows[0] | {"sent": None} == {
        "totalPrice": "3.00",
        "shipTo": "DE",
        "Lines": [{"unitPrice": "1.50", "qty": 3, 'a "note"': "n", "no_note": False, "rest": []}],
        "sent": None,
        "first": {"unitPrice": "1.50", "qty": 2, 'a "note"': "n", "no_note": False, "rest": []},
        "usedCoupon": "a",
        "no_coupon": False,
        "limits": [("DE", 7)],
        "error": None,
    }
    assert rows[1]["error"]["message"].endswith('shipTo: expected one of DE, FR, other, got str "germany"')
    with pytest.raises(vesper.BatchError, match="did you mean `shipTo`"):
        node.run_batch(pa.table({"ship_to": ["DE"], "order lines": [[]]}))


def test_flags_of_a_table_are_columns(path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    node = vesper.load(path, engine="interp")
    given = {"shipTo": ["DE"], "order lines": [[{"unitPrice": "1", "qty": 1}]]}
    (row,) = node.run_batch(pa.table(given)).to_pylist()
    assert (row["no_coupon"], row["first"]["no_note"]) == (True, True)
    (row,) = node.run_batch(pa.table(given | {"no_coupon": [False]})).to_pylist()
    assert row["no_coupon"] is False


def test_sensitive_inputs_stay_masked_under_their_outside_names(tmp_path: Path) -> None:
    text = NODE + "security: {sensitive_data: [ship_to]}\n"
    path = tmp_path / "order_v1.vsp"
    path.write_text(text, encoding="utf-8")
    for engine in ENGINES:
        answer = vesper.load(path, engine=engine).run_json(b'{"shipTo": "SECRET", "order lines": []}')
        assert b"SECRET" not in answer
        assert b'"path":"shipTo"' in answer
