"""Clauses, branches and comparisons with one possible result, and many similar ones with two."""

from __future__ import annotations

import pytest

from vesper.compiler import compile_source
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import Diagnostic
from vesper.language.diagnostics.source import SourceFile

HEAD = """node_id: test_v1
type: function
intent: Test
inputs:
  n: integer
  m: integer
  d: decimal
  balance: decimal
  s: string
  ok: boolean
  e: enum[red, green, blue]
  on: optional<integer>
  xs: array<integer>
  small: {{type: integer, constraints: [{{min: 1}}, {{max: 10}}]}}
  code: {{type: string, constraints: [{{length: 2}}]}}
outputs:
  success: {{r: integer}}
constants:
  primary: {{type: 'set<enum[red, green, blue]>', value: [red, green]}}
contracts:
  preconditions: [{preconditions}]
  postconditions: [{postconditions}]
flow:
  - step: r
    operation: compute
    value: "{value}"
  - operation: return
    success: [r]
"""


def found(
    *preconditions: str, value: str = "IF balance > 7 THEN 1 ELSE 2", post: tuple[str, ...] = ()
) -> list[Diagnostic]:
    text = HEAD.format(preconditions=_quoted(preconditions), postconditions=_quoted(post), value=value)
    _, bag = compile_source(SourceFile("test_v1.vsp", text))
    return [each for each in bag.sorted() if each.code is not Code.UNUSED_VALUE]


def _quoted(clauses: tuple[str, ...]) -> str:
    return ", ".join(f'"{clause}"' for clause in clauses)


def titles(*preconditions: str, value: str = "IF balance > 7 THEN 1 ELSE 2", post: tuple[str, ...] = ()) -> list[str]:
    return [each.code.title for each in found(*preconditions, value=value, post=post)]


@pytest.mark.parametrize(
    "clause",
    [
        "n * n >= -9223372036854775808",
        "length(s) >= 0",
        "small > 0",
        "small * 2 <= 20",
        "length(code) == 2",
        "n == n",
        "d > 0 OR d <= 0",
        "abs(d) >= 0",
        "mod(n, 7) < 7",
        "e IN ['red', 'green', 'blue']",
        "ok => ok",
        "on IS NULL OR on IS NOT NULL",
        "COUNT(xs) >= 0",
        "(IF ok THEN 1 ELSE 2) < 3",
        "LET a = small + 1 IN a > 1",
        "round(abs(d), 2) >= 0",
    ],
)
def test_redundant_clause_is_reported(clause: str) -> None:
    assert titles(clause) == ["always-holds"]


@pytest.mark.parametrize(
    "clause",
    [
        "n > 5 AND n < 5",
        "n > 5 AND n < 6",
        "d > 5 AND d < 5",
        "length(s) < 0",
        "e == 'red' AND e == 'green'",
        "s == 'a' AND s == 'b'",
        "s == 'abc' AND length(s) < 3",
        "n < m AND m < n",
        "n + m > 10 AND n + m < 5",
        "n + 5 > 10 AND n < 6",
        "n != n",
        "on IS NULL AND on IS NOT NULL",
        "e IN primary AND e == 'blue'",
        "ok AND NOT ok",
        "n IN [1, 2, 3] AND n > 3",
        "EXISTS x IN xs SATISFIES x != x",
        "d >= 1 AND d * d < 0",
    ],
)
def test_impossible_clause_is_reported(clause: str) -> None:
    assert titles(clause) == ["never-holds"]


@pytest.mark.parametrize(
    "clause",
    [
        "n > 5 AND n < 7",
        "d > 5 AND d < 6",
        "n < m OR m < n",
        "n >= m AND m >= n",
        "d * d > 0",
        "abs(n) > 0",
        "e != 'red' AND e != 'green'",
        "e NOT IN primary",
        "on IS NULL OR on > 0",
        "s == 'a' OR s == 'b'",
        "length(s) > 1 AND s != 'ab'",
        "small == 1 OR small == 10",
        "balance - d >= 0",
        "FORALL x IN xs SATISFIES x > 0",
        "rem(n, 7) == 6",
        "mod(n, -7) == -6",
        "d / 3 > 0.1",
        "round(d, 2) == d",
        "min(n, m) == n",
        "n - m == 0",
        "-n > 5",
    ],
)
def test_satisfiable_clause_is_not_reported(clause: str) -> None:
    assert titles(clause) == []


@pytest.mark.parametrize(
    "first, second",
    [
        ("n > 10", "n < 5"),
        ("small > 5", "small < 3"),
        ("d <= balance", "balance < d"),
        ("e == 'red'", "e IN ['green', 'blue']"),
        ("on IS NULL", "on IS NOT NULL"),
        ("length(s) > 3", "s == 'abc'"),
        ("balance - d >= 0", "balance - d < 0"),
        ("NOT ok", "ok"),
    ],
)
def test_contradiction_shows_both_clauses(first: str, second: str) -> None:
    (diagnostic,) = found(first, second)
    assert diagnostic.code.title == "contradiction"
    assert f"`{second}`" in diagnostic.headline
    assert f"`{first}`" in diagnostic.headline
    assert len(diagnostic.secondary) == 1


def test_contradiction_of_three_is_found_in_any_order() -> None:
    for clauses in (("d <= balance", "d >= 10", "balance < 5"), ("d >= 10", "balance < 5", "d <= balance")):
        (diagnostic,) = found(*clauses)
        assert diagnostic.code.title == "contradiction"
        assert len(diagnostic.secondary) == 2


def test_constraint_and_precondition_contradict() -> None:
    (diagnostic,) = found("small > 10")
    assert diagnostic.headline == "`small > 10` contradicts `small <= 10`"


@pytest.mark.parametrize(
    "value, expected",
    [
        ("IF small > 0 THEN 1 ELSE 2", ["unreachable-branch"]),
        ("IF small > 10 THEN 1 ELSE 2", ["unreachable-branch"]),
        ("IF small > 5 THEN (IF small > 3 THEN 1 ELSE 2) ELSE 3", ["unreachable-branch"]),
        ("IF ok AND small > 0 THEN 1 ELSE 2", ["constant-comparison"]),
        ("IF small > 5 AND small > 3 THEN 1 ELSE 2", []),
        ("IF small > 5 THEN (IF small > 7 THEN 1 ELSE 2) ELSE 3", []),
        ("SUM(IF x > 5 AND x < 3 THEN 1 ELSE 2 FOR x IN xs)", ["unreachable-branch"]),
        ("COUNT(x FOR x IN xs WHERE x == small)", []),
        ("on ?? 0", []),
    ],
)
def test_constant_conditions_of_steps_are_reported(value: str, expected: list[str]) -> None:
    assert titles(value=value) == expected


@pytest.mark.parametrize(
    "clause, expected",
    [
        ("r > 0", []),
        ("r > 2", ["never-holds"]),
        ("r > 2 OR r <= 2", ["always-holds"]),
        ("small > 0", ["always-holds"]),
        ("r < 0 AND r > 0", ["never-holds"]),
        ("r == 1 OR r == 2", []),
    ],
)
def test_postcondition_met_by_the_steps_is_not_redundant(clause: str, expected: list[str]) -> None:
    assert titles(post=(clause,)) == expected


def test_redundant_clause_names_the_clause_that_implies_it() -> None:
    (diagnostic,) = found("n > 5", "n > 3")
    assert diagnostic.code.title == "always-holds"
    assert [label.text for label in diagnostic.secondary] == ["this precondition implies it"]


# -- blocks ---------------------------------------------------------------------------------------

FLOW = """node_id: test_v1
type: function
intent: Test
inputs:
  amount: {type: decimal, constraints: [positive]}
  color: enum[red, green, blue]
  on: optional<integer>
  xs: array<integer>
outputs:
  success: {r: integer}
  error: {error_code: "enum[low]", message: string}
contracts:
  preconditions: [amount < 1000, color != blue]
flow:
  - {operation: raise, when: amount < 10, error: {error_code: low, message: low}}
STEPS
  - {operation: return, success: {r: 1}}
"""
RAISE = "error: {error_code: low, message: low}"


def in_flow(*steps: str) -> list[tuple[str, str]]:
    """Return the diagnostics of these steps, each with its source text."""
    text = FLOW.replace("STEPS", "\n".join(f"  - {step}" for step in steps))
    compiled, bag = compile_source(SourceFile("test_v1.vsp", text))
    assert compiled is not None, [each.headline for each in bag.sorted()]
    found = [each for each in bag.sorted() if each.code is not Code.UNUSED_VALUE]
    return [(each.code.name, bag.source.slice(each.primary.span)) for each in found]


@pytest.mark.parametrize(
    "step, expected",
    [
        (f"{{operation: raise, when: amount > 1000, {RAISE}}}", [("UNREACHABLE_BRANCH", "amount > 1000")]),
        # The return above under `amount < 10` was not taken.
        (f"{{operation: raise, when: amount < 5, {RAISE}}}", [("UNREACHABLE_BRANCH", "amount < 5")]),
        ("{operation: return, when: amount < 5, success: {r: 2}}", [("UNREACHABLE_BRANCH", "amount < 5")]),
        ("{operation: validation, require: [amount >= 10]}", [("ALWAYS_HOLDS", "amount >= 10")]),
        ("{operation: validation, require: [amount < 3]}", [("UNREACHABLE_BRANCH", "amount < 3")]),
        (
            f"{{operation: validation, require: [{{condition: amount < 2000, {RAISE}}}]}}",
            [("ALWAYS_HOLDS", "amount < 2000")],
        ),
        ("{step: a, operation: compute, when: amount > 3, value: 1}", [("UNREACHABLE_BRANCH", "amount > 3")]),
        (
            "{step: a, operation: conditional, condition: amount < 3, then: 1, else: 2}",
            [("UNREACHABLE_BRANCH", "amount < 3")],
        ),
        (
            "{step: a, operation: match, on: color, cases: [{is: red, then: 1}, {is: blue, then: 2}], otherwise: 3}",
            [("UNREACHABLE_BRANCH", "blue")],
        ),
        (
            "{step: a, operation: conditional, condition: amount > 50, then: IF amount > 20 THEN 1 ELSE 2, else: 3}",
            [("UNREACHABLE_BRANCH", "amount > 20")],
        ),
        (
            "{step: a, operation: loop, over: x IN xs WHERE amount < 1, collect: x}",
            [("UNREACHABLE_BRANCH", "amount < 1")],
        ),
        (
            "{step: a, operation: loop, over: x IN xs, state: {n: 0}, next: {n: IF amount < 0 THEN 1 ELSE n + x}}",
            [("UNREACHABLE_BRANCH", "amount < 0")],
        ),
        (
            "{step: a, operation: compute, value: 'xs[0]', on_error: {any: {value: IF amount < 0 THEN 1 ELSE 2}}}",
            [("UNREACHABLE_BRANCH", "amount < 0")],
        ),
    ],
)
def test_constant_flow_conditions_are_reported(step: str, expected: list[tuple[str, str]]) -> None:
    assert in_flow(step) == expected


@pytest.mark.parametrize(
    "steps",
    [
        # An arm that leaves, but under a second condition.
        (
            f"{{operation: raise, when: amount > 500, guards: [color == red], {RAISE}}}",
            f"{{operation: raise, when: amount > 600, {RAISE}}}",
        ),
        # Facts of an arm end with it, unless all other arms leave.
        (
            "{step: a, operation: conditional, condition: amount > 50, then: 1, else: 2}",
            f"{{operation: raise, when: amount < 40, {RAISE}}}",
        ),
        # State has another value in each iteration; `stop_when` sees the next one.
        (
            (
                "{step: a, operation: loop, over: x IN xs, state: {n: 0}, next: {n: n + q + 1}, stop_when: q == n * 2, "
                "steps: [{step: q, operation: compute, value: n * 2}]}"
            ),
        ),
        ("{step: a, operation: loop, while: n < 3, max: 5, state: {n: 0}, next: {n: n + 1}, stop_when: n >= 3}",),
        # The value may come from the handler.
        (
            "{step: a, operation: compute, value: 'quot(6, 3)', on_error: {division_by_zero: {value: 7}}}",
            f"{{operation: raise, when: a == 7, {RAISE}}}",
        ),
        # A failure in the first arm skips its facts.
        (
            (
                "{step: a, operation: conditional, condition: amount > 50, then: 'xs[0]', else: 2, "
                "on_error: {any: {value: 3}}}"
            ),
            f"{{operation: raise, when: amount < 40, {RAISE}}}",
        ),
        ("{step: a, operation: match, on: color, cases: [{is: red, then: 1}], otherwise: 3}",),
        ("{step: a, operation: compute, when: on IS NOT NULL, value: on + 1}",),
    ],
)
def test_open_flow_conditions_are_not_reported(steps: tuple[str, ...]) -> None:
    assert in_flow(*steps) == []
