"""One edit of each kind, and the words for it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from vesper.changes.diff.differences import diff_nodes
from vesper.changes.diff.version import read_version
from vesper.changes.diff.words import diff_json, summary, text_lines

NODE = """\
node_id: fee_v1
type: function
intent: Say what a transfer costs

types:
  Line:
    fields: {sku: string, qty: integer}
    constraints: [qty >= 1]
  Share: {type: decimal, constraints: [{max: 1}]}

inputs:
  amount: {type: decimal, constraints: [{min: 0}]}
  country: {type: string, as: Country}
  kind: {type: "enum[card, cash]", default: card}
  day: date
  lines: array<Line>

outputs:
  success:
    fee: decimal
    level: integer
    rate: Share
  error:
    error_code: enum[too_much]
    message: string

constants:
  risky: {type: set<string>, value: [NG, RU]}
  base: {type: decimal, value: 1.50}

parameters:
  factor:
    type: decimal
    unit: percent
    since:
      2024-01-01: 0.02
      2026-01-01: 0.03

functions:
  doubled: {params: {x: decimal}, returns: decimal, value: x * 2}

contracts:
  preconditions:
    - amount < 100000
  postconditions:
    - fee >= 0
    - level >= 1

flow:
  - operation: raise
    when: amount > 50000
    error: {error_code: too_much, message: "not {amount}"}

  - step: share
    operation: decision_table
    hit: first
    columns: {amount: amount, country: country}
    outputs: {value: Share, step: integer}
    rows:
      - {in: {amount: "< 100", country: "DE, FR"}, then: {value: 0.05, step: 1}}
      - {in: {amount: "< 1000"}, then: {value: 0.04, step: 2}, annotation: middle}
      - {in: {country: US}, then: {value: 0.03, step: 3}}
      - {otherwise: {value: 0.02, step: 4}}

  - step: cost
    operation: compute
    value: round(doubled(amount) * share.value + base + (factor AT day), 2, half_up)

  - step: extra
    operation: compute
    value: IF country IN risky OR kind == cash THEN 5.00 ELSE 0.00

  - operation: return
    success: {fee: cost + extra, level: share.step + length(lines), rate: share.value}

security:
  audit_level: basic

testing:
  test_cases:
    - name: small
      inputs: {amount: 10.00, country: DE, day: 2026-06-01, lines: [], kind: card}
      expect: {level: 1}
"""

EDITS = [
    ("constraint.bound.changed", "{min: 0}", "{min: 1}", "input `amount`, constraint `min`: bound: 0 → 1"),
    ("constraint.removed", ", constraints: [{min: 0}]", "",
     "input `amount`, constraint `min`: removed; it was: min: 0"),
    ("input.outside_name.changed", "as: Country", "as: Land", "input `country`: outside name: Country → Land"),
    ("input.default.changed", "default: card", "default: cash", "input `kind`: default: card → cash"),
    ("input.default.removed", ", default: card", "", "input `kind`: default: removed; it was: card"),
    ("input.type.changed", "enum[card, cash]", "enum[card, cash, wire]", None),
    ("input.added", "  day: date\n", "  day: date\n  note: optional<string>\n",
     "input `note`: added: optional<string>"),
    ("field.type.changed", "sku: string", "sku: optional<string>", None),
    ("constraint.bound.changed", "[{max: 1}]", "[{max: 2}]", "type `Share`, constraint `max`: bound: 1 → 2"),
    ("constraint.condition.changed", "[qty >= 1]", "[qty >= 2]", None),
    ("field.added", "qty: integer}", "qty: integer, note: string}", "type `Line`, field `note`: added: string"),
    ("constant.value.changed", "value: 1.50", "value: 1.60", "constant `base`: value: 1.50 → 1.60"),
    ("constant.value.changed", "[NG, RU]", "[NG]", "constant `risky`: value: [NG, RU] → [NG]"),
    ("parameter_value.value.changed", "2026-01-01: 0.03", "2026-01-01: 0.04",
     "parameter `factor`, value since 2026-01-01: value: 0.03 → 0.04"),
    ("parameter_value.added", "      2026-01-01:", "      2025-01-01: 0.01\n      2026-01-01:",
     "parameter `factor`, value since 2025-01-01: added: 0.01"),
    ("function.value.changed", "x * 2", "x * 3", "function `doubled`: value: x * 2 → x * 3"),
    ("precondition.condition.changed", "amount < 100000", "amount <= 100000",
     "precondition: condition: amount < 100000 → amount <= 100000"),
    ("postcondition.removed", "    - level >= 1\n", "", "postcondition: removed; it was: level >= 1"),
    ("condition.condition.changed", "amount > 50000", "amount > 60000", None),
    ("step.error.changed", "not {amount}", "never {amount}", None),
    ("row.cell.changed", '"DE, FR"', '"DE, IT"', None),
    ("row.result.changed", "value: 0.04, step", "value: 0.045, step", None),
    ("row.removed", "      - {in: {country: US}, then: {value: 0.03, step: 3}}\n", "",
     "step `share`, row 3 (country: US): removed; it was: result value 0.03, step 3"),
    ("row.added", "      - {otherwise: {",
     "      - {in: {country: UK}, then: {value: 0.01, step: 5}}\n      - {otherwise: {",
     "step `share`, row 4 (country: UK): added: result value 0.01, step 5"),
    ("step.otherwise.changed", "value: 0.02, step: 4", "value: 0.01, step: 4", None),
    ("column.value.changed", "columns: {amount: amount,", "columns: {amount: amount * 2,", None),
    ("step.value.changed", "half_up", "half_even", None),
    ("step.output.changed", "fee: cost + extra", "fee: cost", None),
    ("security.audit_level.changed", "audit_level: basic", "audit_level: detailed",
     "`security`: audit level: basic → detailed"),
    ("case.expected.changed", "expect: {level: 1}", "expect: {level: 2}", None),
    ("node.intent.changed", "Say what", "Compute what", None),
    ("row.annotation.changed", "annotation: middle", "annotation: the middle", None),
    ("input.renamed", "country", "land", "input `land`: renamed from `country`"),
    ("step.renamed", "extra", "surcharge", "step `surcharge`: renamed from `extra`"),
    ("constant.renamed", "base", "start", "constant `start`: renamed from `base`"),
    ("output.renamed", "level", "stage", "output `stage`: renamed from `level`"),
    ("type.renamed", "Share", "Part", "type `Part`: renamed from `Share`"),
    ("function.renamed", "doubled", "twice", "function `twice`: renamed from `doubled`"),
]  # fmt: skip


def _kinds(tmp_path: Path, after: str, before: str = NODE) -> list[dict[str, object]]:
    return list(diff_json(_diff(tmp_path, after, before))["changes"])


def _diff(tmp_path: Path, after: str, before: str = NODE):  # type: ignore[no-untyped-def]
    paths = tmp_path / "before.vsp", tmp_path / "after.vsp"
    for path, text in zip(paths, (before, after), strict=True):
        path.write_text(text, encoding="utf-8")
    before_version, after_version = map(read_version, paths)
    return diff_nodes(before_version, after_version)


@pytest.mark.parametrize("kind, old, new, words", EDITS, ids=[f"{e[0]}:{e[2].strip()[:20]}" for e in EDITS])
def test_one_edit_is_one_difference(tmp_path: Path, kind: str, old: str, new: str, words: str | None) -> None:
    assert old in NODE
    is_rename = kind.endswith(".renamed")
    after = _renamed(old, new) if is_rename else NODE.replace(old, new, 1)
    found = _kinds(tmp_path, after)
    kinds = [each["kind"] for each in found]
    if kind == "input.renamed":  # the column of the table is named after it
        assert set(kinds) == {"input.renamed", "column.renamed"}
    else:
        assert kinds == [kind], [each["words"] for each in found]
    if words is not None:
        assert words in [each["words"] for each in found]


def _renamed(old: str, new: str) -> str:
    return re.sub(rf"\b{old}\b", new, NODE)


def test_layout_and_comments_are_no_difference(tmp_path: Path) -> None:
    after = NODE.replace("amount < 100000", "(amount  <  100000)   # a limit").replace("x * 2", "(x) * 2")
    found = _diff(tmp_path, after)
    assert found.changes == ()
    assert summary(found, False) == "no difference in meaning: the semantic hashes are equal"


def test_an_equal_expression_is_no_difference(tmp_path: Path) -> None:
    """Where something else changed, an expression with the same checked form is still no difference."""
    after = NODE.replace("- amount < 100000", "- input.amount < 100000").replace("max: 1}", "max: 2}")
    found = _diff(tmp_path, after)
    assert [(each.kind, each.level) for each in found.changes] == [("constraint.bound.changed", "meaning")]


def test_a_table_as_if_is_text_alone(tmp_path: Path) -> None:
    table = """    operation: decision_table
    rows:
      - {when: a > 1, then: 1}
      - {otherwise: 2}
"""
    node = f"""\
node_id: two_v1
type: function
intent: Choose
inputs: {{a: integer}}
outputs: {{success: {{b: integer}}}}
flow:
  - step: b
{table}  - operation: return
    success: [b]
"""
    found = _diff(tmp_path, node.replace(table, "    operation: compute\n    value: IF a > 1 THEN 1 ELSE 2\n"), node)
    assert not found.is_different
    assert {each.level for each in found.changes} == {"text"}
    assert "no difference in meaning: the semantic hashes are equal; " in summary(found, False)


@pytest.mark.parametrize("hit, level", [("first", "meaning"), ("unique", "text"), ("collect", "meaning")])
def test_order_of_rows_counts_where_the_hit_policy_reads_it(tmp_path: Path, hit: str, level: str) -> None:
    node = """\
node_id: rate_v1
type: function
intent: Rate
inputs: {a: integer}
outputs: {success: {rate: TYPE}}
flow:
  - step: rate
    operation: decision_table
    hit: HIT
    columns: {a: a}
    rows:
      - {in: {a: "1"}, then: 10}
      - {in: {a: "2"}, then: 20}
      - {in: {a: "3"}, then: 30}
OTHERWISE  - operation: return
    success: [rate]
"""
    node = node.replace("TYPE", "array<integer>" if hit == "collect" else "optional<integer>").replace("HIT", hit)
    node = node.replace("OTHERWISE", "" if hit == "collect" else "      - {otherwise: null}\n")
    one, two = '      - {in: {a: "1"}, then: 10}\n', '      - {in: {a: "2"}, then: 20}\n'
    (found,) = _kinds(tmp_path, node.replace(one + two, two + one), node)
    assert (found["kind"], found["level"]) == ("row.moved", level)
    assert f"hit: {hit}" in str(found["note"])


def test_a_moved_and_changed_row_is_both(tmp_path: Path) -> None:
    lines = NODE.splitlines(keepends=True)
    first = next(place for place, line in enumerate(lines) if '"DE, FR"' in line)
    changed = lines[first + 1].replace("0.04", "0.041")
    after = "".join([*lines[:first], changed, lines[first], *lines[first + 2 :]])
    assert {each["kind"] for each in _kinds(tmp_path, after)} == {"row.moved", "row.result.changed"}


def test_text_marks_the_part_that_differs(tmp_path: Path) -> None:
    found = _diff(tmp_path, NODE.replace("half_up", "half_even").replace("fee_v1", "fee_v2"))
    assert list(text_lines(found, False))[1:] == [
        "",
        "step `cost`",
        "  value:  (line 67)",
        "    - round(doubled(amount) * share.value + base + (factor AT day), 2, half_up)",
        "                                                                       ^^^^^^^",
        "    + round(doubled(amount) * share.value + base + (factor AT day), 2, half_even)",
        "                                                                       ^^^^^^^^^",
    ]
    assert summary(found, False) == "1 difference that may change outcomes"


def test_sides_swap(tmp_path: Path) -> None:
    after = NODE.replace("half_up", "half_even").replace("  day: date\n", "  day: date\n  note: optional<string>\n")
    forwards, backwards = _diff(tmp_path, after), _diff(tmp_path, NODE, after)
    assert [each.mirrored() for each in forwards.changes] == list(backwards.changes)
    assert [each.action for each in backwards.changes if each.kind.startswith("input")] == ["removed"]


def test_rows_of_a_file(tmp_path: Path) -> None:
    node = """\
node_id: rates_v1
type: function
intent: Rate
inputs: {country: string}
outputs: {success: {rate: optional<decimal>}}
flow:
  - step: found
    operation: decision_table
    columns: {country: country}
    outputs: {rate: decimal}
    rows: {file: rates.csv}
  - operation: return
    success: {rate: found}
"""
    versions = []
    for name, rows in (("before", "DE,1.5\nFR,2.0\nUS,3.0\n"), ("after", "DE,1.5\nFR,2.5\nUK,4.0\nUS,3.0\n")):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "rates.csv").write_text(f"country,rate\n{rows}", encoding="utf-8")
        (folder / "rates_v1.vsp").write_text(node, encoding="utf-8")
        versions.append(read_version(folder / "rates_v1.vsp"))
    words = [each["words"] for each in diff_json(diff_nodes(versions[0], versions[1]))["changes"]]
    assert words == [
        "step `found`, row 2 (country: FR): result rate: 2.0 → 2.5",
        "step `found`, row 3 (country: UK): added: result rate 4.0",
    ]
