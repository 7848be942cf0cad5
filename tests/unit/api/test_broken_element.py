"""A broken quantifier names the element at which it fails, with its index and value."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import vesper
from vesper.cli.run.command import command

MANY = 2_000


def node_of(folder: Path, engine: str, inputs: str, clause: str, *, phase: str = "preconditions") -> vesper.Node:
    path = folder / "checked_v1.vsp"
    path.write_text(
        f"""node_id: checked_v1
type: function
intent: Accept what keeps its contract
types:
  Part: {{fields: {{size: integer}}}}
  Line: {{fields: {{qty: integer, parts: array<Part>}}}}
  Small: {{type: integer, constraints: [value < 1000]}}
constants:
  known: {{type: set<string>, value: [a, b]}}
inputs:
  {inputs}
outputs: {{success: {{ok: boolean}}}}
contracts: {{{phase}: ["{clause}"]}}
flow: [{{operation: return, success: {{ok: "true"}}}}]
""",
        encoding="utf-8",
    )
    return vesper.load(path, engine=engine)


def numbers(bad: int) -> list[int]:
    return [-5 if place == bad else place for place in range(MANY)]


def lines(bad: int, parts: Any = ()) -> list[dict[str, Any]]:
    return [{"qty": 0 if place == bad else 1, "parts": list(parts)} for place in range(MANY)]


CASES: list[tuple[str, str, dict[str, Any], str]] = [
    ("xs: array<integer>", "FORALL x IN xs: x >= 0", {"xs": numbers(1234)}, "xs[1234] is -5"),
    (
        "xs: array<integer>\n  low: integer",
        "FORALL x IN xs: x >= low",
        {"xs": numbers(7), "low": 0},
        "xs[7] is -5, low is 0",
    ),
    (
        "lines: array<Line>",
        "FORALL l IN lines: l.qty > 0",
        {"lines": lines(1999)},
        "lines[1999] is {qty: 0, parts: []}",
    ),
    (
        "lines: array<Line>",
        "FORALL l IN lines: FORALL p IN l.parts: p.size > 0",
        {"lines": [{"qty": 1, "parts": [{"size": 1}]}, {"qty": 1, "parts": [{"size": 1}, {"size": -2}]}]},
        "lines[1].parts[1] is {size: -2}",
    ),
    (
        "on: boolean\n  xs: array<integer>",
        "on => FORALL x IN xs: x >= 0",
        {"on": True, "xs": numbers(3)},
        "xs[3] is -5, on is true",
    ),
    (
        "on: boolean\n  xs: array<integer>",
        "on AND (FORALL x IN xs: x >= 0)",
        {"on": True, "xs": numbers(3)},
        "xs[3] is -5, on is true",
    ),
    ("xs: array<integer>", "NOT (EXISTS x IN xs: x < 0)", {"xs": numbers(42)}, "xs[42] is -5"),
    ("xs: array<integer>", "FORALL x IN xs: quot(10, x) > 0", {"xs": [1, 2, -5, 0, 3]}, "xs[2] is -5"),
    ("names: array<string>", "FORALL n IN names: n IN known", {"names": ["a", "x"]}, 'names[1] is "x"'),
    ("rates: 'map<string, integer>'", "FORALL k, v IN rates: v > 0", {"rates": {"a": 1, "b": -1}}, "rates['b'] is -1"),
    ("xs: set<integer>", "FORALL x IN xs: x >= 0", {"xs": {3, -5}}, "a member of xs is -5"),
    (
        "j: json\n  xs: array<integer>",
        "text(j) == '1' AND (FORALL x IN xs: x > 0)",
        {"j": 1, "xs": [1, -5]},
        "xs[1] is -5",
    ),
]


@pytest.mark.parametrize("engine", ["python", "interp"])
@pytest.mark.parametrize("inputs, clause, given, expected", CASES, ids=[case[1][:40] for case in CASES])
def test_the_message_names_the_element(
    tmp_path: Path, engine: str, inputs: str, clause: str, given: dict[str, Any], expected: str
) -> None:
    node = node_of(tmp_path, engine, inputs, clause)
    error = node(given).error
    assert error is not None
    assert expected in error.message
    assert len(error.message) < 400
    with pytest.raises(vesper.VesperError) as raised:
        node(given).unwrap()
    assert expected in str(raised.value)


@pytest.mark.parametrize("engine", ["python", "interp"])
def test_a_constraint_of_an_element_names_it(tmp_path: Path, engine: str) -> None:
    node = node_of(tmp_path, engine, "xs: array<Small>", "length(xs) > 0")
    error = node(xs=[1] * 999 + [5_000]).error
    assert error is not None
    assert error.code == "constraint"
    assert "xs[999] is 5000" in error.message


def test_rows_and_the_command_name_it(tmp_path: Path) -> None:
    import pyarrow as pa

    node = node_of(tmp_path, "interp", "xs: array<integer>", "FORALL x IN xs: x >= 0")
    table = node.run_batch(pa.table({"xs": [numbers(place) for place in (5, 6)]}))
    messages = [each["message"] for each in table.column("error").to_pylist()]
    assert [f"xs[{place}] is -5" in each for place, each in zip((5, 6), messages, strict=True)] == [True, True]
    given = tmp_path / "given.json"
    given.write_text(json.dumps({"xs": numbers(77)}), encoding="utf-8")
    shown = CliRunner().invoke(command, [str(tmp_path / "checked_v1.vsp"), "--json", str(given), "--engine", "python"])
    assert "xs[77] is -5" in shown.output


def test_a_sensitive_collection_is_not_searched(tmp_path: Path) -> None:
    node_of(tmp_path, "python", "xs: array<integer>", "FORALL x IN xs: x >= 0")
    path = tmp_path / "checked_v1.vsp"
    path.write_text(path.read_text(encoding="utf-8") + "security: {sensitive_data: [xs]}\n", encoding="utf-8")
    error = vesper.load(path)(xs=[1, -98765]).error
    assert error is not None
    assert "98765" not in error.message
    assert "xs is <sensitive>" in error.message
    assert "98765" not in repr(error)  # fields and outcome are for the caller, not for logs
    assert error.fields["xs"] == [1, -98765]
