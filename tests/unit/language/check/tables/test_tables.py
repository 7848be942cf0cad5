"""Decision tables through the front end and every engine: forms, types, sources, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from tests.support.nodes import compiled_text
from vesper.compiler import compile_source, pipeline
from vesper.engines.engine import run_observed
from vesper.engines.outcome import Failed, Outcome, Returned
from vesper.engines.registry import ENGINES
from vesper.language.diagnostics.source import SourceFile
from vesper.language.ir.decode import decode
from vesper.language.ir.encode import semantic_hash


def node_text(rows: str, inputs: str = "n: integer", output: str = "r: integer", rest: str = "", top: str = "") -> str:
    """Return a node whose only step is a table with these rows (and fields before `rows:`)."""
    lines = "\n".join(f"    {line}" for line in rows.splitlines())
    given = "\n".join(f"  {line}" for line in inputs.splitlines())
    return (
        f"node_id: table_v1\ntype: function\nintent: Test\n{top}inputs:\n{given}\noutputs:\n  success:\n    {output}\n"
        f"{rest}flow:\n  - step: r\n    operation: decision_table\n{lines}\n  - operation: return\n    success: [r]\n"
    )


def outcomes(text: str, *inputs: Mapping[str, object]) -> list[Outcome]:
    """Return the outcomes, which are equal with all marks on every engine."""
    node = compiled_text(text)
    programs = [engine.load(node) for engine in ENGINES.values()]
    found = []
    for each in inputs:
        first, *others = [run_observed(program, each) for program in programs]
        assert all((other.outcome, other.marks) == (first.outcome, first.marks) for other in others)
        assert all(program.call(each) == first.outcome for program in programs)
        found.append(first.outcome)
    return found


def values(text: str, *inputs: Mapping[str, object]) -> list[object]:
    return [outcome.value["r"] if isinstance(outcome, Returned) else outcome for outcome in outcomes(text, *inputs)]


def problems(text: str) -> list[str]:
    _, bag = compile_source(SourceFile("table_v1.vsp", text))
    return [f"{each.code.value[0]}: {each.headline}" for each in bag.sorted()]


ROWS = 'rows:\n  - {in: {n: "< 10"}, then: 1}\n  - {in: {n: "< 20"}, then: 2}\n  - {in: {n: "[5..30]"}, then: 3}'


@pytest.mark.parametrize(
    "hit, output, expected",
    [
        ("first", "r: optional<integer>", [1, 1, 2, 3, None]),
        ("collect", "r: array<integer>", [[1, 2], [1, 2, 3], [2, 3], [3], []]),
        ("rule_order", "r: array<integer>", [[1, 2], [1, 2, 3], [2, 3], [3], []]),
        ("sum", "r: integer", [3, 6, 5, 3, 0]),
        ("min", "r: optional<integer>", [1, 1, 2, 3, None]),
        ("max", "r: optional<integer>", [2, 3, 3, 3, None]),
        ("count", "r: integer", [2, 3, 2, 1, 0]),
    ],
)
def test_hit_policies(hit: str, output: str, expected: list[object]) -> None:
    inputs = [{"n": n} for n in (1, 7, 12, 25, 99)]
    assert values(node_text(f"hit: {hit}\n{ROWS}", output=output), *inputs) == expected


def test_a_default_row_is_the_only_hit_if_none_matches() -> None:
    table = f"hit: HIT\n{ROWS}\n  - {{otherwise: 50}}"
    assert values(node_text(table.replace("HIT", "collect"), output="r: array<integer>"), {"n": 99}) == [[50]]
    assert values(node_text(table.replace("HIT", "sum")), {"n": 99}, {"n": 25}) == [50, 3]
    assert values(node_text(table.replace("HIT", "max")), {"n": 99}, {"n": 25}) == [50, 3]


def test_conflicts_that_the_check_does_not_decide() -> None:
    rows = 'rows:\n  - {when: mod(n, 2) == 0, then: 1}\n  - {in: {n: "{mod(value, 3) == 0}"}, then: n - 5}'
    rows = rows.replace("{when: mod(n, 2) == 0", '{when: "mod(n, 2) == 0"')
    output = "r: optional<integer>"
    given = [{"n": n} for n in (2, 3, 5, 6, 12)]
    *unique, six, twelve = outcomes(node_text(f"hit: unique\n{rows}", output=output), *given)
    assert [each.value["r"] for each in unique if isinstance(each, Returned)] == [1, -2, None]
    assert isinstance(six, Failed)
    assert isinstance(twelve, Failed)
    assert six.code == twelve.code == "table_conflict"
    found = outcomes(node_text(f"hit: any\n{rows}", output=output), *given)
    assert isinstance(found[3], Returned)  # 6 - 5 is 1, as the first row has
    assert isinstance(found[4], Failed)


def test_a_table_that_matches_everything_needs_no_otherwise() -> None:
    rows = 'rows:\n  - {in: {n: "<= 4"}, then: 1}\n  - {in: {n: ">= 5"}, then: 2}'
    for hit in ("first", "unique", "any", "min"):
        assert values(node_text(f"hit: {hit}\n{rows}"), {"n": 4}, {"n": 5}) == [1, 2]
    gap = rows.replace(">= 5", ">= 6")
    mismatch = "VSP2001: expected integer, found optional<integer>"
    assert problems(node_text(f"hit: first\n{gap}")) == ["VSP3120: no row of this table matches n = 5", mismatch]
    assert problems(node_text(f"hit: unique\n{gap}")) == ["VSP3120: no row of this table matches n = 5"]


def test_clauses_and_steps_above_bound_the_columns() -> None:
    rows = 'hit: unique\nrows:\n  - {in: {n: "[0..4]"}, then: 1}\n  - {in: {n: "[5..9]"}, then: 2}'
    assert problems(node_text(rows)) == ["VSP3120: no row of this table matches n = -1"]
    assert not problems(node_text(rows, inputs="n: {type: integer, constraints: [{min: 0}, {max: 9}]}"))
    contracts = "contracts: {preconditions: [n >= 0 AND n < 10]}\n"
    assert not problems(node_text(rows, rest=contracts))
    validation = "flow:\n  - operation: validation\n    require: [n >= 0, n <= 9]\n"
    assert not problems(node_text(rows).replace("flow:\n", validation))
    allowed = rows.replace("rows:", 'columns: {n: {allowed: ["[0..9]"]}}\nrows:')
    found = outcomes(node_text(allowed), {"n": 9}, {"n": 10})
    assert isinstance(found[0], Returned)
    assert isinstance(found[1], Failed)
    assert found[1].code == "invalid_argument"


def test_an_undecided_clause_makes_the_error_a_warning() -> None:
    rows = 'hit: unique\nrows:\n  - {in: {n: "<= 4"}, then: 1}\n  - {in: {n: ">= 4"}, then: 2}'
    assert compile_source(SourceFile("table_v1.vsp", node_text(rows)))[0] is None
    undecided = node_text(rows, rest='contracts: {preconditions: ["mod(n, 2) == 1"]}\n')
    assert problems(undecided) == ["VSP3121: rows 1 and 2 both match n = 4"]
    assert compile_source(SourceFile("table_v1.vsp", undecided))[0] is not None


def test_several_outputs_make_a_record_in_declared_order() -> None:
    rows = (
        "hit: output_order\noutputs:\n  label: {type: string, values: [gold, silver]}\n  rate: decimal\n"
        'rows:\n  - {in: {n: "> 0"}, then: {rate: 1, label: silver}}\n'
        '  - {in: {n: "> 5"}, then: {label: gold, rate: n}}'
    )
    text = node_text(rows, output="r: array<D>", top="types:\n  D: {fields: {label: string, rate: decimal}}\n")
    assert [json.loads(json.dumps(each, default=str)) for each in values(text, {"n": 9})] == [
        [{"label": "gold", "rate": "9"}, {"label": "silver", "rate": "1"}]
    ]


def test_values_of_outputs_are_held_to_their_list() -> None:
    rows = "outputs: {x: {type: integer, values: [1, 2]}}\nrows:\n  - {in: {n: '< 5'}, then: n}\n  - {otherwise: 2}"
    found = outcomes(node_text(rows), {"n": 1}, {"n": 3}, {"n": 7})
    assert [each.value["r"] for each in found if isinstance(each, Returned)] == [1, 2]
    assert isinstance(found[1], Failed)
    (problem,) = problems(node_text(rows.replace("otherwise: 2", "otherwise: 3")))
    assert problem.endswith("one of the `values` of the output `x`")


def test_cells_narrow_null() -> None:
    rows = (
        "rows:\n  - {in: {n: 'null'}, then: 0}\n"
        "  - {in: {n: '> 5'}, when: n < 100, then: n + 1}\n  - {otherwise: n * 2}"
    )
    text = node_text(rows, inputs="n: optional<integer>")
    assert values(text, {"n": None}, {"n": 7}, {"n": 3}) == [0, 8, 6]


def test_cells_of_every_form() -> None:
    rows = (
        "columns: {s: text, size: length(text)}\n"
        "rows:\n  - {in: {s: \"'a, b', \\\"c'd\\\"\"}, then: 1}\n  - {in: {size: '> limit * 2'}, then: 2}\n"
        "  - {in: {s: '{starts_with(value, text(limit))}', size: '[limit..limit + 1]'}, then: 3}\n"
        "  - {in: {s: 'not(x, y), y', size: '1'}, then: 4}\n  - {in: {s: '-'}, then: 5}"
    )
    inputs = "text: string\nlimit: integer"
    given = [("a, b", 1), ("c'd", 1), ("abc", 1), ("2x", 2), ("y", 3), ("z", 3), ("x", 3)]
    found = values(node_text(rows, inputs), *({"text": text, "limit": limit} for text, limit in given))
    assert found == [1, 1, 2, 3, 4, 4, 5]


def test_an_input_may_be_called_value() -> None:
    rows = "rows:\n  - {in: {n: '{value > 3}'}, then: value}\n  - {otherwise: 0}"
    assert values(node_text(rows, "n: integer\nvalue: integer"), {"n": 4, "value": 9}, {"n": 1, "value": 9}) == [9, 0]


TOP = """tables:
  size_of:
    inputs: {n: integer}
    rows: [{in: {n: "< 10"}, then: 1, reason: small}, {otherwise: 2}]
functions:
  twice:
    params: {k: integer}
    returns: integer
    table: {hit: sum, rows: [{in: {k: "> 0"}, then: size_of(k)}, {in: {k: "> 5"}, then: 10}]}
"""


def test_tables_are_called_as_functions() -> None:
    rows = "rows:\n  - {when: size_of(n) == 1, then: twice(n)}\n  - {otherwise: twice(n) + size_of(n)}"
    text = node_text(rows, rest=TOP)
    assert values(text, {"n": 3}, {"n": 7}, {"n": 50}) == [1, 11, 14]
    tables = compiled_text(text).node.tables
    assert sorted(each.name for each in tables) == ["r", *["size_of"] * 4, "twice", "twice"]
    assert {row.reason for each in tables if each.name == "size_of" for row in each.rows} == {"small", None}


def test_a_table_calls_only_what_is_above_it() -> None:
    below = TOP.replace("then: 1,", 'then: "twice(n)",')
    text = node_text("rows:\n  - {when: n == 1, then: twice(n)}\n  - {otherwise: size_of(n)}", rest=below)
    assert problems(text)[0].startswith("VSP1105")


def test_the_source_has_the_place_of_every_row() -> None:
    rows = (
        "hit: unique\nrows:\n  - {in: {n: '< 5'}, then: 10, annotation: few, reason: too_few}\n"
        "  - {when: n == 7, then: 20}\n  - {otherwise: 30}"
    )
    node = compiled_text(node_text(rows))
    (table,) = node.node.tables
    expressions = node.node.expressions()
    assert (table.name, table.hit, table.columns) == ("r", "unique", ("n",))
    assert [row.cells for row in table.rows] == [(("n", "< 5"),), (), ()]
    assert [(row.annotation, row.reason) for row in table.rows] == [("few", "too_few"), (None, None), (None, None)]
    assert [row.line for row in table.rows] == [14, 15, 16]
    assert table.rows[2].when is None
    assert [getattr(expressions[row.then], "value", None) for row in table.rows] == [10, 20, 30]
    marks = run_observed(ENGINES["python"].load(node), {"n": 7}).marks
    conditions = {row.when for row in table.rows if row.when is not None}
    assert {index for index, value in marks if value is True and index in conditions} == {table.rows[1].when}
    assert decode(node.ir).tables == node.node.tables


def test_the_source_of_tables_is_not_hashed() -> None:
    plain = node_text("rows:\n  - {in: {n: '< 5'}, then: 1}\n  - {otherwise: 2}")
    noted = plain.replace("then: 1}", "then: 1, annotation: small, reason: few}")
    assert semantic_hash(compiled_text(plain).node) == semantic_hash(compiled_text(noted).node)


def test_a_first_hit_table_of_conditions_has_the_ir_of_before() -> None:
    rows = "rows:\n  - {when: n > 3, then: 1}\n  - {otherwise: 2}"
    text = node_text(rows)
    chosen = text.replace("    rows:", "    hit: first\n    rows:")
    assert semantic_hash(compiled_text(text).node) == semantic_hash(compiled_text(chosen).node)
    assert semantic_hash(compiled_text(text).node) == "99cd877a763caebb85ec9a388724e542a6e93f51f113d916c561c03d851bec3e"


@pytest.mark.parametrize("engine, count", [("interp", 999), ("python", 200)])
def test_many_rows(engine: str, count: int) -> None:
    rows = "".join(f"\n  - {{in: {{n: {number}}}, then: {number * 3}}}" for number in range(count))
    program = ENGINES[engine].load(compiled_text(node_text(f"rows:{rows}\n  - {{otherwise: 7}}")))
    found = [program.call({"n": n}) for n in (0, 63, 64, 199, count - 1, count, -1)]
    expected = [0, 189, 192, 597, 3 * count - 3, 7, 7]
    assert [each.value["r"] for each in found if isinstance(each, Returned)] == expected


@pytest.mark.parametrize(
    "rows, expected",
    [
        ("hit: frist\nrows: [{otherwise: 1}]", "VSP0007"),
        ("rows:\n  - {in: {m: 3}, then: 1}\n  - {otherwise: 1}", "VSP1"),
        ("rows:\n  - {in: {n: x}, then: 1}\n  - {otherwise: 1}", "VSP2"),
        ("rows:\n  - {in: {n: '[5..3]'}, then: 1}\n  - {otherwise: 1}", "VSP2"),
        ("rows:\n  - {in: {n: 'null'}, then: 1}\n  - {otherwise: 1}", "VSP01"),
        ("rows:\n  - {in: {n: '[5..'}, then: 1}\n  - {otherwise: 1}", "VSP01"),
        ("rows:\n  - {then: 1}\n  - {otherwise: 1}", "VSP0008"),
        ("rows:\n  - {in: {n: 3}}\n  - {otherwise: 1}", "VSP0008"),
        ("rows:\n  - {otherwise: 1}\n  - {in: {n: 3}, then: 1}", "VSP000"),
        ("hit: priority\nrows:\n  - {in: {n: 3}, then: 1}\n  - {otherwise: 1}", "VSP0007"),
        ("hit: count\nrows:\n  - {in: {n: 3}}\n  - {otherwise: 1}", "VSP0006"),
        ("hit: count\nrows:\n  - {in: {n: 3}}\n  - {in: {n: 4}, then: 1}", "VSP0007"),
        ("hit: sum\nrows:\n  - {in: {n: 3}, then: true}", "VSP2001"),
        ("type: integer\noutputs: {a: integer}\nrows:\n  - {otherwise: 1}", "VSP0006"),
        ("outputs: {a: integer, b: integer}\nrows:\n  - {otherwise: 1}", "VSP0007"),
        ("outputs: {a: integer, b: integer}\nrows:\n  - {otherwise: {a: 1}}", "VSP0008"),
        ("outputs: {a: integer}\nrows:\n  - {otherwise: {b: 1}}", "VSP0006"),
        ("columns: {k: {value: n, allowed: ['-']}}\nrows:\n  - {in: {k: 1}, then: 1}\n  - {otherwise: 1}", "VSP0007"),
        ("columns: {k: n}\nrows:\n  - {otherwise: 1}", "VSP1204"),
    ],
)
def test_what_is_refused(rows: str, expected: str) -> None:
    found = [each for each in problems(node_text(rows)) if "nothing uses the input" not in each]
    assert len(found) == 1, found
    assert found[0].startswith(expected), found


def test_the_cells_of_a_document_have_a_limit() -> None:
    cell = ", ".join(f"[{number}..{number}]" for number in range(520))
    rows = "".join(f"\n  - {{in: {{n: 'not({cell})'}}, then: {number}}}" for number in range(4))
    text = node_text(f"hit: collect\nrows:{rows}", output="r: array<integer>")
    assert problems(text) == ["VSP0020: more than 4,096 tests in the cells of this document"]


def test_a_node_has_no_more_expressions_than_engines_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "MAX_EXPRESSIONS", 5)
    text = node_text("rows:\n  - {in: {n: '[3..4]'}, then: 1}\n  - {otherwise: 2}")
    assert problems(text) == ["VSP0020: more than 5 expressions in the IR of this node"]
