"""What `vesper run` reads and prints of records, lists and maps: nested inputs, every problem, exact numbers."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from vesper.api.problems import describe_problems
from vesper.cli.output.value_lines import value_lines
from vesper.cli.run.command import command
from vesper.compiler import compile_source
from vesper.language.diagnostics.source import SourceFile
from vesper.values.model import Problem, ProblemKind

NODE = """\
node_id: order_echo_v1
type: function
intent: Give back what came, and what it costs

types:
  Line: {fields: {sku: string, price: decimal, qty: integer, note: optional<string>}}
  Order: {fields: {id: string, lines: "array<Line>", kind: "enum[retail, wholesale]"}}

inputs:
  order: Order
  limits: map<string, decimal>
  days: map<integer, string>

outputs:
  success:
    order: Order
    limits: map<string, decimal>
    days: map<integer, string>
    total: decimal

flow:
  - operation: return
    success:
      order: order
      limits: limits
      days: days
      total: SUM(line.price * line.qty FOR line IN order.lines)
"""
LONG = "a name that is long enough for the record to need lines of its own"
GIVEN = f"""{{
  "limits": {{"DE": 1000.00, "FR": 20.5}},
  "days": [[1, "mon"], [2, "tue"]],
  "order": {{"id": "o-1", "kind": "retail", "lines": [
    {{"sku": "{LONG}", "price": 0.1000000000000000000000000000000000000001, "qty": 2}},
    {{"sku": "B", "price": 100.00, "qty": 12, "note": "fragile"}}
  ]}}
}}"""


SECRET = """\
node_id: secret_v1
type: function
intent: Greet
inputs: {name: string, tags: {type: 'map<string, integer>', default: {}}}
outputs: {success: {greeting: string}}
contracts: {preconditions: [length(name) > 3], postconditions: [length(greeting) > 14]}
flow:
  - return: {greeting: "'Dear ' + name"}
security: {sensitive_data: [name, tags]}
"""


@pytest.mark.parametrize("style", ["text", "json"])
@pytest.mark.parametrize(
    "given, shown",
    [
        (["-i", "name=Zeb"], "<sensitive>"),
        (["-i", "name=Zeb", "--engine", "both"], "<sensitive>"),
        (["-i", "name=Zebra", "--explain"], "<sensitive>"),
        (["-i", "name=Zebra", "-i", "tags=Zeb"], "tags"),
        (["-i", "name=Zebra", "-i", 'tags={"Zeb": "x"}'], "tags"),
    ],
)
def test_errors_show_sensitive_values_when_asked_only(given: list[str], shown: str, style: str, tmp_path: Path) -> None:
    path = tmp_path / "secret_v1.vsp"
    path.write_text(SECRET, encoding="utf-8")
    masked = CliRunner().invoke(command, [str(path), *given, "--format", style])
    assert masked.exit_code == 1
    assert "Zeb" not in masked.output
    assert shown in masked.output
    revealed = CliRunner().invoke(command, [str(path), *given, "--format", style, "--reveal"])
    # Of a problem with inputs the JSON form has the path alone, which may hold a key.
    assert "Zeb" in revealed.output or (style == "json" and "tags=Zeb" in given)


@pytest.fixture
def node(tmp_path: Path) -> str:
    path = tmp_path / "order_echo_v1.vsp"
    path.write_text(NODE, encoding="utf-8")
    return str(path)


def _run(node: str, given: str, *arguments: str) -> Result:
    return CliRunner().invoke(command, [node, "--json", "-", *arguments], input=given)


def test_a_result_is_laid_out(node: str) -> None:
    done = _run(node, GIVEN)
    assert done.exit_code == 0, done.output
    price = "0.1000000000000000000000000000000000000001"
    assert done.stdout.split("\n") == [
        "  order",
        "    id     o-1",
        "    lines",
        f"      - sku    {LONG}",
        f"        price  {price}",
        "        qty    2",
        "        note   null",
        '      - {sku: "B", price: 100.00, qty: 12, note: "fragile"}',
        "    kind   retail",
        "  limits  {DE: 1000.00, FR: 20.5}",
        '  days    {1: "mon", 2: "tue"}',
        "  total   1200.2000000000000000000000000000000000000002",
        "",
    ]


@pytest.mark.parametrize("engine", ["python", "interp"])
def test_outputs_as_json_are_inputs_of_the_next_run(node: str, engine: str) -> None:
    first = _run(node, GIVEN, "--format", "json", "--engine", engine)
    value = json.loads(first.stdout)["outcomes"][engine]["value"]
    assert value["order"]["lines"][0]["price"] == "0.1000000000000000000000000000000000000001"
    again = _run(node, json.dumps({name: value[name] for name in ("order", "limits", "days")}), "--format", "json")
    assert json.loads(again.stdout)["outcomes"]["python"]["value"] == value


@pytest.mark.parametrize("engine", ["python", "interp", "both"])
def test_every_problem_is_listed_with_its_path(node: str, engine: str) -> None:
    given = """{
      "limit": {}, "days": [[1, "mon"], [2, 5]],
      "order": {"id": 5, "kind": "retial", "lines": [
        {"sku": "A", "price": "9,99", "qty": 2.5}, {"sku": "B", "pric": 100.00, "qty": 12, "odd": 1}
      ]}
    }"""
    done = _run(node, given, "--engine", engine)
    assert done.exit_code == 1
    lines = [
        "error: bad_input: the inputs do not fit order_echo_v1",
        "  order.id: expected string, got int 5",
        '  order.lines[0].price: expected decimal, got str "9,99", which is malformed',
        "  order.lines[0].qty: expected integer, got Decimal 2.5",
        "  order.lines[1].price: missing; expected decimal",
        "  order.lines[1].odd: no such field; the fields are sku, price, qty, note",
        "  order.lines[1].pric: no such field; did you mean `price`?",
        '  order.kind: expected one of retail, wholesale, got str "retial"; did you mean `retail`?',
        "  limits: missing; expected map<string, decimal>",
        "  days[2]: expected string, got int 5",
        "  limit: no such input; did you mean `limits`?",
    ]
    assert "\n".join(lines) in done.output


def test_problems_of_texts_and_of_json_are_one_list(node: str) -> None:
    done = _run(node, '{"order": null, "lmits": 1}', "-i", "days=[[1]", "-i", "limits={}")
    assert done.exit_code == 1
    assert done.stderr.split("\n")[1:-1] == [
        "  order: expected record<…>, got null".replace("record<…>", _order_type()),
        '  days: expected map<integer, string>, got str "[[1]", which is malformed',
        "  lmits: no such input; did you mean `limits`?",
    ]
    done = _run(node, '{"order": null}', "-i", "days=[[1]", "--format", "json", "--engine", "both")
    assert done.exit_code == 1
    found = json.loads(done.stdout)["outcomes"]
    assert found["python"] == found["interp"]
    assert [each["path"] for each in found["python"]["problems"]] == ["order", "limits", "days"]


def _order_type() -> str:
    compiled, _ = compile_source(SourceFile("order_echo_v1.vsp", NODE))
    assert compiled is not None
    return str(compiled.node.inputs[0].type)


@pytest.mark.parametrize(
    "given, why",
    [
        ("{", "<stdin>:1:2: expected a name in double quotes, but the text ends here"),
        ("[]", "the inputs must be a JSON object"),
        ('{"days":\n NaN}', "<stdin>:2:2: `NaN` is no JSON number"),
        ('{"days": [], "days": []}', '<stdin>:1:14: the name `"days"` occurs twice'),
        ('{"days": []} {}', "<stdin>:1:14: expected the end of the text, found `{`"),
        ('{"days": "\\ud800"}', "<stdin>:1:10: a string with one half of a surrogate pair"),
        ('{"days": [[1, "a"], [1, "b"]]}', "occurs twice"),
    ],
)
def test_what_is_no_json(node: str, given: str, why: str) -> None:
    done = _run(node, given)
    assert (done.exit_code, why in done.stderr) == (2, True), done.output


def test_a_float_is_told_to_be_text() -> None:
    compiled, _ = compile_source(SourceFile("order_echo_v1.vsp", NODE))
    assert compiled is not None
    given = {"limits": {"DE": 0.1}}
    (found,) = describe_problems(compiled.node, [Problem('limits["DE"]', ProblemKind.WRONG_TYPE)], given)
    wanted = 'limits["DE"]: expected decimal, got float 0.1; '
    wanted += 'give it as text, "0.1", or as a Decimal: a float is not exact'
    assert str(found) == wanted


def test_many_items_are_all_shown_and_tables_are_aligned() -> None:
    numbers = [Decimal(each) for each in range(60)]
    lines = value_lines({"few": [1, 2], "many": numbers, "empty": []})
    assert lines[0] == "  few    [1, 2]"
    assert lines[1:3] == ["  many", "    - 0"]
    assert len(lines) == 63
    assert lines[-1] == "  empty  []"
    rows = [{"name": "x" * 40, "price": Decimal("1.5"), "ok": True}, {"name": "y", "price": Decimal(100), "ok": False}]
    assert value_lines({"rows": [*rows, *rows]})[:3] == [
        "  rows",
        f"    {'name':<40}  price  ok",
        f"    {'x' * 40}    1.5  true",
    ]
    assert all(len(line) <= 100 for line in value_lines({"rows": rows}))


def test_a_failure_says_what_where_and_why(tmp_path: Path) -> None:
    path = tmp_path / "shares_v1.vsp"
    path.write_text(
        "node_id: shares_v1\ntype: function\nintent: Divide\ninputs: {n: integer}\n"
        "outputs: {success: {share: integer}}\nflow:\n"
        "  - {operation: return, success: {share: 'quot(100, n)'}}\n",
        encoding="utf-8",
    )
    done = CliRunner().invoke(command, [str(path), "-i", "n=0"])
    assert done.exit_code == 1
    assert done.stderr.startswith("error: division_by_zero\n")
    assert f"--> {path}:7:43" in done.stderr
    assert "= The right operand of a division or remainder is zero." in done.stderr


def test_a_declared_error_is_called_one(tmp_path: Path) -> None:
    path = tmp_path / "refuse_v1.vsp"
    path.write_text(
        "node_id: refuse_v1\ntype: function\nintent: Refuse\ninputs: {n: integer}\n"
        "outputs:\n  success: {n: integer}\n  error: {error_code: 'enum[too_big]', message: string}\nflow:\n"
        "  - {operation: raise, when: n > 5, error: {error_code: too_big, message: '{n} is more than 5'}}\n"
        "  - {operation: return, success: [n]}\n",
        encoding="utf-8",
    )
    done = CliRunner().invoke(command, [str(path), "-i", "n=6"])
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == (
        "error: refuse_v1 ended with a declared error\n  error_code  too_big\n  message     6 is more than 5\n"
    )
