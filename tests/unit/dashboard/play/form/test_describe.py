"""The form follows the types; its problems and its command are those of `vesper run`."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from vesper.cli.main import vesper
from vesper.compiler import Compiled, compile_source
from vesper.dashboard.play.form.describe import check_inputs, describe_form, draw_inputs
from vesper.language.diagnostics.source import SourceFile

NODE = """\
node_id: order_v1
type: function
intent: Count what was ordered
types:
  Line:
    fields: {qty: integer, price: decimal, note: "optional<string>"}
    constraints: [qty > 0]
inputs:
  lines: {type: array<Line>, as: orderLines}
  code: {type: string, constraints: [{pattern: "[A-Z]{3}"}, {max_length: 3}]}
  level: {type: "enum[low, high]", default: low}
  day: date
  tags: optional<set<string>>
  rates: map<string, decimal>
  extra: json
outputs:
  success: {count: integer}
contracts:
  preconditions: [length(lines) >= 1]
flow:
  - operation: return
    success: {count: SUM(line.qty FOR line IN lines)}
"""


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    found, bag = compile_source(SourceFile("order_v1.vsp", NODE))
    assert found is not None, bag.sorted()
    return found


def test_each_type_has_its_field(compiled: Compiled) -> None:
    form = describe_form(compiled)
    found = {each.name: each for each in form.fields}
    assert {name: each.kind for name, each in found.items()} == {
        "orderLines": "array",
        "code": "string",
        "level": "enum",
        "day": "date",
        "tags": "set",
        "rates": "map",
        "extra": "json",
    }
    (line,) = found["orderLines"].fields
    assert [(each.name, each.kind, each.is_optional) for each in line.fields] == [
        ("qty", "integer", False),
        ("price", "decimal", False),
        ("note", "string", True),
    ]
    assert line.fields[0].hint == "more than 0"
    assert found["orderLines"].hint == "at least 1 item"
    assert found["code"].hint == "at most 3 characters and matches [A-Z]{3}"
    assert (found["level"].choices, found["level"].default) == (("low", "high"), "low")
    assert found["tags"].is_optional


def test_an_example_is_valid_and_other_seeds_give_others(compiled: Compiled) -> None:
    drawn = [draw_inputs(compiled, seed) for seed in range(3)]
    assert all(not check_inputs(compiled, each).problems for each in drawn)
    assert all(each["orderLines"] for each in drawn)
    assert drawn[0] != drawn[1] or drawn[1] != drawn[2]
    assert describe_form(compiled).inputs == drawn[0]


def test_problems_have_the_place_of_their_field(compiled: Compiled) -> None:
    inputs = draw_inputs(compiled, 1) | {"orderLines": [{"qty": "x", "price": "1"}], "day": "2026-02-30", "levle": 1}
    found = {each.path: each.message for each in check_inputs(compiled, inputs).problems}
    assert found["orderLines[0].qty"] == 'expected integer, got string "x"'
    assert "expected date" in found["day"]
    assert "no such input" in found["levle"]
    assert check_inputs(compiled, [1]).problems[0].path == ""


def test_the_command_runs_the_node_with_these_inputs(compiled: Compiled, tmp_path: Path) -> None:
    (tmp_path / "order_v1.vsp").write_text(NODE)
    inputs = {
        "orderLines": [{"qty": 2, "price": "1.50"}, {"qty": 3, "price": "0.10", "note": "it's"}],
        "code": "ABC", "day": "2026-11-15", "rates": {"a b": "1"}, "extra": {"x": [1]}, "tags": None,
    }  # fmt: skip
    checked = check_inputs(compiled, inputs)
    assert checked.problems == ()
    program, run, node, *options = shlex.split(checked.command)
    assert (program, run, node) == ("vesper", "run", "order_v1")
    result = CliRunner().invoke(vesper, ["run", node, *options, "--nodes", str(tmp_path), "--format", "json"])
    assert result.exit_code == 0, result.output
    assert '"count": 5' in result.output or '"count":5' in result.output
