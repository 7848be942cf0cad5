"""Types of expressions: accepted ones, rejected ones, and narrowing of null."""

from __future__ import annotations

import pytest

from vesper.compiler import compile_source
from vesper.language.diagnostics.source import SourceFile

HEAD = """node_id: test_v1
type: function
intent: Test
types:
  Line:
    fields: {qty: integer, price: decimal, note: optional<string>}
inputs:
  n: integer
  d: decimal
  s: string
  ok: boolean
  e: enum[red, green]
  on: optional<integer>
  od: optional<decimal>
  line: Line
  oline: optional<Line>
  xs: array<integer>
  lines: array<Line>
  names: set<string>
  rates: map<string, decimal>
  f: float
  fs: array<float>
  raw: bytes
  j: json
  t: timestamp
  day: date
  wait: duration
outputs:
  success: {done: boolean}
contracts:
  preconditions:
    - "%s"
flow:
  - operation: return
    success: {done: ok}
"""


def codes(clause: str) -> list[str]:
    _, bag = compile_source(SourceFile("test.vsp", HEAD % clause), judge_contracts=False)
    return [each.code.title for each in bag.sorted() if "the input" not in each.headline]  # most are idle


@pytest.mark.parametrize(
    "clause",
    [
        "on IS NOT NULL AND on > 0",
        "on IS NULL OR on > 0",
        "NOT (on IS NULL) AND on > 0",
        "on IS NOT NULL => on > 0",
        "(on ?? 0) > 0",
        "IF on IS NULL THEN true ELSE on > 0",
        "IF on IS NOT NULL AND od IS NOT NULL THEN od > on ELSE false",
        "oline IS NOT NULL AND oline.qty > 0",
        "oline IS NOT NULL AND oline.note IS NOT NULL AND length(oline.note) > 0",
        "line.note IS NULL OR length(line.note) > 0",
        "FORALL each IN lines SATISFIES each.note IS NULL OR length(each.note) > 0",
        "FORALL each IN lines WHERE each.note IS NOT NULL SATISFIES length(each.note) > 0",
        "COUNT(each FOR each IN lines WHERE each.note IS NOT NULL AND length(each.note) > 1) > 0",
        "SUM(x * 2 FOR x IN xs) == SUM(xs)",
        "MAX(each.price FOR each IN lines) > 1",
        "s IN names AND s NOT IN names",
        "names CONTAINS s",
        "s IN rates AND rates[s] > 0.5",
        "xs[0] == n",
        "LET a = n + 1, b = a * 2 IN b > a",
        "LET known = (s IN names) IN known",
        "EXISTS k, v IN rates SATISFIES v > 0 AND k == s",
        "(line WITH {qty: 3}).qty == 3",
        "length([1, 2, n]) == 3",
        "e IN [red, green]",
        "{x FOR x IN xs} CONTAINS n",
        "d / 2 > n / 3",
        "f > 1 AND f < 2.5 AND -1 <= f AND f != -0.0",
        "f * 2 + 1e0 / 3 == 1.5e-7",
        "f IN [1, 2.5, 1e3] AND f IN fs",
        "max(f, 1) == SUM(fs)",
        "is_nan(sqrt(2e0)) OR is_finite(to_float(n) + to_float(1.5))",
        "to_decimal(f) > d AND floor(f) > n",
        "raw[0] == n AND length(raw + parse_hex('00')) > 1 AND raw != parse_base64('AA==')",
        "kind(j) == object AND kind(j['a'][0]) != number",
        "CAST(j AS integer) > 0 AND CAST(j['x'] AS optional<Line>) IS NULL",
        "(get(j, '/a') ?? j) == to_json(line)",
        "length(CAST(j AS map<string, array<decimal>>)) > n",
        "LET x = CAST(j AS decimal) IN x > d",
        "[t] CONTAINS t AND day IN [day] AND wait IN [wait]",
        "length([1, 0.5, n]) > 0",
        "([on, null, 1][0] ?? 0) == 1",
        "round(d, 2, half_up) == round(n, 0) AND round(d) == 1",
        "get(rates, s) ?? 0 > 1",
        "{'a': 1, 'b': 0.5}['a'] == 1",
        "min(d, n) > max(1, 2)",
        "sort(xs, descending)[0] == n",
        "s + 'x' > s AND s CONTAINS 'x'",
        "length(xs + [1]) > 0",
    ],
)
def test_valid_expression_is_accepted(clause: str) -> None:
    assert codes(clause) == []


@pytest.mark.parametrize(
    "clause, code",
    [
        ("on > 0", "operator-types"),
        ("on IS NULL AND on > 0", "operator-types"),
        ("on IS NOT NULL OR on > 0", "operator-types"),
        ("IF on IS NULL THEN on > 0 ELSE true", "operator-types"),
        ("n IS NULL", "type-mismatch"),
        ("(n ?? 0) > 0", "type-mismatch"),
        ("oline.qty > 0", "type-mismatch"),
        ("line.qyt > 0", "unknown-name"),
        ("line.qty.x > 0", "type-mismatch"),
        ("xs > 0", "operator-types"),
        ("xs[s] > 0", "operator-types"),
        ("rates[n] > 0", "operator-types"),
        ("n IN names", "operator-types"),
        ("SUM(each.note FOR each IN lines) > 0", "type-mismatch"),
        ("SUM(n) > 0", "type-mismatch"),
        ("FORALL n IN xs SATISFIES n > 0", "name-taken"),
        ("FORALL x IN xs SATISFIES x", "type-mismatch"),
        ("FORALL k, v IN xs SATISFIES v > 0", "type-mismatch"),
        ("LET n = 1 IN n > 0", "name-taken"),
        ("LET a = b IN a > 0", "unknown-name"),
        ("(line WITH {colour: 3}).qty == 3", "unknown-key"),
        ("length(n) > 0", "operator-types"),
        ("lenght(s) > 0", "unknown-name"),
        ("AVG([s]) > 0", "type-mismatch"),
        ("sort_by(xs) == xs", "operator-types"),
        ("fold(x FOR x IN xs) > 0", "operator-types"),
        ("fold(s FOR x IN xs, acc = 0) > 0", "type-mismatch"),
        ("length(group_by(y FOR y IN [d])) > 0", "type-mismatch"),
        ("take_while(x FOR x IN xs) == xs", "type-mismatch"),
        ("length({'a': 1, 'a': 2}) > 0", "duplicate-key"),
        ("length({}) == 0", "type-mismatch"),
        ("length([]) == 0", "type-mismatch"),
        ("null == n", "type-mismatch"),
        ("round(d, 2, sideways) > 0", "unknown-name"),
        ("round(s) > 0", "operator-types"),
        ("length([null]) > 0", "type-mismatch"),
        ("length([1, 's']) > 0", "type-mismatch"),
        ("round() > 0", "operator-types"),
        ("round(d, 2, half_up, 1) > 0", "operator-types"),
        ("s + n == s", "operator-types"),
        ("f > n", "operator-types"),
        ("f + d == f", "operator-types"),
        ("d > 1e3", "operator-types"),
        ("f < 1e400", "bad-number"),
        ("j > j", "operator-types"),
        ("to_json(null) == j", "operator-types"),
        ("CAST(s AS integer) > 0", "type-mismatch"),
        ("CAST(j AS Nothing) == n", "unknown-type"),
        ("CAST(j, integer) > 0", "expression-syntax"),
        ("CAST(j AS set<decimal>) CONTAINS d", "type-mismatch"),
        ("length({'a': 1, 'b': s}) > 0", "type-mismatch"),
    ],
)
def test_invalid_expression_is_rejected(clause: str, code: str) -> None:
    assert codes(clause) == [code]


def test_right_side_of_in_is_a_name_even_if_a_member_has_it() -> None:
    text = """node_id: test_v1
type: function
intent: Test
inputs:
  x: enum[allowed, denied]
constants:
  allowed: {type: "set<enum[allowed, denied]>", value: [allowed]}
outputs:
  success: {r: boolean}
flow:
  - operation: return
    success: {r: %s}
"""
    for value, expected in (("x IN allowed", []), ("x NOT IN allowed", []), ("x == allowed", ["ambiguous-word"])):
        _, bag = compile_source(SourceFile("test_v1.vsp", text % value))
        assert [each.code.title for each in bag.sorted()] == expected
