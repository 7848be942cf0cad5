"""What an execution spends, unit by unit, and how it ends where that is not there: the same on every engine."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.nodes import compiled_text, small_node
from vesper import _direct
from vesper.compiler import Compiled
from vesper.engines.compare import Agree, NotComparable, compare
from vesper.engines.engine import Blocked, Completion, Done, Limits, Program, run_observed
from vesper.engines.outcome import Failed, LimitHit, Outcome, Returned
from vesper.engines.python_engine import PythonProgram
from vesper.engines.registry import ENGINES
from vesper.values.limits import DEFAULT_FUEL
from vesper.values.model import Value

RETURN = "- {operation: return, success: [result]}"
XS = {"xs": [3, 1, 2]}
NOW = datetime(2026, 1, 1, tzinfo=UTC)

COSTS: dict[str, tuple[str, str, int]] = {
    # The type of the result, the expression over xs = [3, 1, 2], what it costs.
    "nothing repeats": ("integer", "length(xs) + 1", 0),
    "an array": ("array<integer>", "[x * 2 FOR x IN xs]", 3),
    "what where passes over counts": ("array<integer>", "[x FOR x IN xs WHERE x > 5]", 3),
    "loops in one another": ("array<integer>", "[sum(x * y FOR y IN xs) FOR x IN xs]", 3 + 9),
    "ranges in one another": ("integer", "sum(sum(x * y FOR y IN range(0, x)) FOR x IN range(0, length(xs)))", 3 + 3),
    "one after the other": ("integer", "sum(x FOR x IN xs) + sum(x + 1 FOR x IN xs)", 6),
    "a sum of all": ("integer", "sum(x FOR x IN xs)", 3),
    "a count of all": ("integer", "count(x FOR x IN xs)", 3),
    "a count of some": ("integer", "count(x FOR x IN xs WHERE x > 1)", 3),
    "an average of all": ("decimal", "avg(x FOR x IN xs)", 3),
    "a length is an operation": ("integer", "length(xs)", 0),
    "a sort is an operation": ("array<integer>", "sort(xs)", 0),
    "a smallest": ("integer", "min(x FOR x IN xs)", 3),
    "all, to the end": ("boolean", "FORALL x IN xs SATISFIES x > 0", 3),
    "all, until one is not": ("boolean", "FORALL x IN xs SATISFIES x > 1", 2),
    "any, until one is": ("boolean", "EXISTS x IN xs SATISFIES x > 2", 1),
    "any of a range, and then a loop": (
        "integer",
        "IF (EXISTS x IN range(0, length(xs)) SATISFIES x == 1) THEN sum(x FOR x IN xs) ELSE 0",
        2 + 3,
    ),
    "all of a range, and then a loop": (
        "integer",
        "IF (FORALL x IN range(0, length(xs)) SATISFIES x < 1) THEN 0 ELSE sum(x FOR x IN xs)",
        2 + 3,
    ),
    "taken while": ("array<integer>", "take_while(x > 2 FOR x IN xs)", 2),
    "dropped while": ("array<integer>", "drop_while(x > 2 FOR x IN xs)", 3),
    "sorted by Python itself": ("array<integer>", "sort_by(0 - x FOR x IN xs)", 3),
    "sorted by something in a loop": ("array<integer>", "sort_by(sum(x + y FOR y IN xs) FOR x IN xs)", 3 + 9),
    "grouped": ("map<boolean, array<integer>>", "group_by(x > 1 FOR x IN xs)", 3),
    "folded": ("integer", "fold(total + x FOR x IN xs, total = 0)", 3),
    "a set in order": ("array<integer>", "[x FOR x IN to_set([2, 2, 1])]", 2),
    "a map that is written out": ("map<string, integer>", "{'a': 1, 'b': 2}", 2),
    "one that is not in order": ("map<string, integer>", "{'b': 1, 'a': 2}", 2),
    "one item that is written out": ("array<integer>", "[x FOR x IN [7]]", 1),
    "a name is no loop": ("integer", "LET y = length(xs) * 2 IN y + y", 0),
    "a long text that is built": ("integer", "length(repeat('ab', 4096))", 2),
    "a text just short enough": ("integer", "length(repeat('a', 4095))", 0),
    "a text in a loop": ("integer", "sum(length(repeat('a', 40960)) FOR x IN xs)", 3 + 3 * 10),
    "a long text that is searched": ("boolean", "contains(repeat('a', 8191), 'b')", 2 + 2),
    "a long text that is cut": ("array<string>", "split(repeat('a,', 4096), ',')", 2 + (8193 + 64 * 4097) // 4096),
    "code points of other planes": ("integer", "length(repeat('😀', 8191))", 2),
    "a long array": ("array<integer>", "sort(range(0, 2000))", 2000 * 64 // 4096 + 2 * 2000 * 512 // 4096),
    "an item of a long array": ("boolean", "5 IN range(0, 2000)", 2 * (2000 * 64 // 4096)),
    "a range that a loop goes over": ("integer", "sum(x FOR x IN range(0, 2000))", 2000),
    "part of a long array": ("integer", "length(take(range(0, 2000), 10))", 2000 * 64 // 4096),
    "a long pattern search": ("boolean", "matches(repeat('a', 5000), 'b+')", 1 + 5000 * 8192 // 4096),
    "a json that is read": ("json", "parse_json('[' + repeat('1,', 99) + '1]')", (56 + 128 * 100) * 192 // 4096),
    "the same, twice": ("integer", "length(repeat('ab', 4096)) + length(repeat('ab', 4096))", 4),
    "nothing of nothing": ("array<integer>", "[x FOR x IN xs WHERE false] + [y FOR y IN drop(xs, 3)]", 3),
}


def computed(type_: str, expression: str) -> Compiled:
    quoted = expression.replace('"', '\\"')
    step = f'- {{step: result, operation: compute, type: "{type_}", value: "{quoted}"}}\n{RETURN}'
    return small_node("xs: array<integer>", step, outputs=f"result: '{type_}'")


def outcomes(program: Program, inputs: Mapping[str, object], fuel: int) -> list[Outcome]:
    """Called and observed: both must count."""
    limits = Limits(fuel)
    return [program.call(inputs, None, limits), run_observed(program, inputs, None, limits).outcome]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", COSTS)
def test_what_it_costs(name: str, engine: str) -> None:
    type_, expression, units = COSTS[name]
    program = ENGINES[engine].load(computed(type_, expression))
    assert all(isinstance(outcome, Returned) for outcome in outcomes(program, XS, units))
    for fuel in range(units):
        assert outcomes(program, XS, fuel) == [LimitHit("fuel")] * 2


LOOPS: dict[str, tuple[str, int]] = {
    "over": ("over: x IN xs\n  state: {total: 0}\n  next: {total: total + x}", 3),
    "over, stopped": ("over: x IN xs\n  state: {total: 0}\n  next: {total: total + x}\n  stop_when: total > 3", 2),
    "over, with where": ("over: x IN xs WHERE x > 2\n  state: {total: 0}\n  next: {total: total + x}", 3),
    "over, while": ("over: x IN xs\n  while: total < 3\n  state: {total: 0}\n  next: {total: total + x}", 2),
    "while": ("while: total < 5\n  max: 9\n  state: {total: 0}\n  next: {total: total + 1}", 5),
    "while, none": ("while: total < 0\n  max: 9\n  state: {total: 0}\n  next: {total: total + 1}", 0),
    "while, with a loop in it": (
        "while: total < sum(x FOR x IN xs)\n  max: 9\n  state: {total: 0}\n  next: {total: total + 4}",
        2 + 3 * 3,
    ),
}


def looped(fields: str) -> Compiled:
    return small_node(
        "xs: array<integer>",
        f"- step: found\n  operation: loop\n  {fields}\n"
        f"- {{step: result, operation: compute, value: found.total}}\n{RETURN}",
        outputs="result: integer",
    )


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", LOOPS)
def test_what_a_loop_step_costs(name: str, engine: str) -> None:
    fields, units = LOOPS[name]
    program = ENGINES[engine].load(looped(fields))
    assert all(isinstance(outcome, Returned) for outcome in outcomes(program, XS, units))
    for fuel in range(units):
        assert outcomes(program, XS, fuel) == [LimitHit("fuel")] * 2


@pytest.mark.parametrize("engine", ENGINES)
def test_a_round_that_may_not_be_costs_nothing(engine: str) -> None:
    """`max` is looked at before the unit is spent: with both at their end, it is the failure."""
    program = ENGINES[engine].load(looped("while: true\n  max: 2\n  state: {total: 0}\n  next: {total: total + 1}"))
    assert [outcome.kind for outcome in outcomes(program, XS, 2)] == ["failed", "failed"]
    assert outcomes(program, XS, 1) == [LimitHit("fuel")] * 2


@pytest.mark.parametrize("engine", ENGINES)
def test_what_fails_before_the_unit_is_needed_fails(engine: str) -> None:
    """Items are paid for one by one, also where Python would take them all at once."""
    for expression in ("sort_by(quot(6, x - 3) FOR x IN xs)", "[quot(6, x - 3) FOR x IN xs]"):
        program = ENGINES[engine].load(computed("array<integer>", expression))
        for outcome in outcomes(program, XS, 1):
            assert isinstance(outcome, Failed)
            assert outcome.code == "division_by_zero"
        assert outcomes(program, XS, 0) == [LimitHit("fuel")] * 2


@pytest.mark.parametrize("engine", ENGINES)
def test_no_handler_and_no_invariant_sees_a_limit(engine: str) -> None:
    node = compiled_text("""\
node_id: handled_v1
type: function
intent: Test
inputs:
  xs: array<integer>
outputs:
  success: {result: integer}
  error: {error_code: 'enum[gone]', message: string}
contracts:
  invariants: [length(xs) == 0]
flow:
  - step: result
    operation: compute
    value: sum(quot(x, x) FOR x IN xs)
    on_error:
      any: {return_error: {error_code: gone, message: gone}}
  - {operation: return, success: [result]}
""")
    program = ENGINES[engine].load(node)
    assert outcomes(program, XS, 2) == [LimitHit("fuel")] * 2
    assert [outcome.kind for outcome in outcomes(program, XS, 3)] == ["contract_broken"] * 2


# -- nodes that call others, and nodes that ask ---------------------------------------------------

INNER = """\
node_id: inner_v1
type: function
intent: Test
inputs: {node: array<integer>, meter: {type: integer, default: 1}}
outputs: {success: {total: integer}}
flow:
  - {step: total, operation: compute, value: sum(x * meter FOR x IN node)}
  - {operation: return, success: [total]}
"""
OUTER = """\
node_id: outer_v1
type: function
intent: Test
inputs: {xs: array<integer>}
outputs: {success: {result: integer}}
flow:
  - step: first
    operation: call_node
    node: inner_v1
    inputs: {node: "[x FOR x IN xs]"}
    on_error:
      any: {value: "{total: 0}"}
  - step: second
    operation: call_node
    node: inner_v1
    inputs: {node: xs, meter: 2}
  - {operation: return, success: {result: first.total + second.total}}
"""


def calling(folder: Path) -> Compiled:
    (folder / "inner_v1.vsp").write_text(INNER, encoding="utf-8")
    (folder / "outer_v1.vsp").write_text(OUTER, encoding="utf-8")
    return compiled_text(OUTER, str(folder / "outer_v1.vsp"))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_called_node_spends_what_its_caller_has(engine: str, tmp_path: Path) -> None:
    program = ENGINES[engine].load(calling(tmp_path))
    units = 3 + (1 + 3) + (1 + 3)
    assert outcomes(program, XS, units) == [Returned({"result": 18})] * 2
    for fuel in range(units):
        assert outcomes(program, XS, fuel) == [LimitHit("fuel")] * 2


ASKING = """\
node_id: asking_v1
type: scheduled_job
intent: Test
inputs: {xs: {type: array<integer>, default: [1]}}
outputs: {success: {result: integer}}
security:
  capabilities_required: [random.read.system]
flow:
  - step: found
    operation: loop
    over: x IN xs
    state: {total: 0}
    steps:
      - {step: made, operation: uuid}
    next: {total: total + x + length(made)}
  - {operation: return, success: {result: found.total}}
"""


def answered(program: Program, limits: Limits, wait: float = 0.0) -> tuple[Done, list[tuple[int, Value]], list[int]]:
    """To the end, with what an observer was told, and how much of that each time it waited."""
    told: list[tuple[int, Value]] = []
    waited: list[int] = []
    execution = program.start(XS, NOW, limits, lambda index, value: told.append((index, value)))
    step = execution.advance(())
    while isinstance(step, Blocked):
        waited.append(len(told))
        time.sleep(wait)
        step = execution.advance((Completion(step.requests[0].id, "00000000-0000-4000-8000-000000000000"),))
    return step, told, waited


def asking(engine: str) -> Program:
    return ENGINES[engine].load(compiled_text(ASKING))


@pytest.mark.parametrize("engine", ENGINES)
def test_one_budget_over_a_life_of_waiting(engine: str) -> None:
    done, _, waited = answered(asking(engine), Limits(3))
    assert done.outcome.kind == "returned"
    assert len(waited) == 3
    done, _, waited = answered(asking(engine), Limits(2))
    assert done.outcome == LimitHit("fuel")
    assert len(waited) == 2


def test_an_observer_is_told_of_every_mark_in_order() -> None:
    told_of = {}
    for engine in ENGINES:
        done, told, waited = answered(asking(engine), Limits())
        assert tuple(told) == done.marks
        assert waited == sorted(waited)
        assert waited[-1] > 0, "also while it waits"
        told_of[engine] = told, waited
    assert told_of["python"] == told_of["interp"]


@pytest.mark.parametrize("engine", ENGINES)
def test_what_an_observer_raises_is_no_outcome(engine: str) -> None:
    def refuse(index: int, value: Value) -> None:
        raise LookupError("seen enough")

    program = ENGINES[engine].load(computed("integer", "sum(x FOR x IN xs)"))
    with pytest.raises(LookupError, match="seen enough"):
        program.start(XS, None, None, refuse).advance(())


# -- time -----------------------------------------------------------------------------------------

SLOW = "sum(sum(sum(a * b * c FOR a IN xs) FOR b IN xs) FOR c IN xs)"


@pytest.mark.parametrize("engine", ENGINES)
def test_time_runs_out(engine: str) -> None:
    program = ENGINES[engine].load(computed("integer", SLOW))
    start = time.monotonic()
    assert program.call({"xs": [1] * 1000}, None, Limits(10**12, 0.05)) == LimitHit("time")
    assert run_observed(program, {"xs": [1] * 1000}, None, Limits(10**12, 0.05)).outcome == LimitHit("time")
    assert time.monotonic() - start < 20, "a thousand million items take longer"


@pytest.mark.parametrize("engine", ENGINES)
def test_time_in_which_it_waits_is_not_counted(engine: str) -> None:
    done, _, _ = answered(asking(engine), Limits(seconds=1.0), wait=0.5)
    assert done.outcome.kind == "returned"


def test_out_of_time_is_never_compared() -> None:
    late, fine, empty = Done(LimitHit("time"), ()), Done(Returned({}), ()), Done(LimitHit("fuel"), ())
    assert isinstance(compare(late, fine), NotComparable)
    assert isinstance(compare(fine, late), NotComparable)
    assert isinstance(compare(empty, empty), Agree)
    assert not isinstance(compare(empty, fine), Agree | NotComparable)


@pytest.mark.parametrize(
    "wrong", [{"fuel": -1}, {"fuel": 2**63}, {"fuel": True}, {"seconds": -1.0}, {"seconds": float("nan")}]
)
def test_limits_that_are_none(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Limits(**wrong)  # type: ignore[arg-type]


# -- when nothing is counted ----------------------------------------------------------------------

BOUNDS: dict[str, tuple[str, int]] = {
    "[x FOR x IN xs]": ("array<integer>", 1_000_000),
    "[x FOR x IN range(0, 10)]": ("array<integer>", 10),
    "[x FOR x IN range(10, 0, -2)]": ("array<integer>", 10),
    "[x FOR x IN take(xs, 5)]": ("array<integer>", 5),
    "[sum(x * y FOR y IN [1, 2, 3]) FOR x IN take(xs, 5)]": ("array<integer>", 5 * 4),
    "IF length(xs) > 3 THEN [x FOR x IN [1, 2]] ELSE [x FOR x IN [1, 2, 3]]": ("array<integer>", 3),
    "LET ys = take(xs, 2) IN [y FOR y IN ys]": ("array<integer>", 2),
    "[sum(x + y FOR y IN xs) FOR x IN xs]": ("array<integer>", 1_000_000 * 1_000_001),
    "count(b FOR b IN to_set([x > 1 FOR x IN [1, 2, 3]]))": ("integer", 3 + 2),
}


@pytest.mark.parametrize("expression", BOUNDS)
def test_the_most_that_it_can_cost(expression: str) -> None:
    type_, most = BOUNDS[expression]
    program = ENGINES["python"].load(computed(type_, expression))
    assert isinstance(program, PythonProgram)
    assert program.fuel_bound == most


def test_a_constraint_bounds_what_a_loop_costs() -> None:
    node = small_node(
        "xs: array<integer>",
        f"- {{step: result, operation: compute, value: 'sum(sum(x * y FOR y IN xs) FOR x IN xs)'}}\n{RETURN}",
        outputs="result: integer",
        rest="contracts: {preconditions: ['length(xs) > 0 AND length(xs) <= 100']}",
    )
    program = ENGINES["python"].load(node)
    assert isinstance(program, PythonProgram)
    assert program.fuel_bound == 100 * 101


def test_nothing_is_counted_where_the_limit_cannot_be_hit() -> None:
    program = ENGINES["python"].load(computed("integer", "sum(x FOR x IN take(xs, 5))"))
    assert isinstance(program, PythonProgram)
    program.call(XS)
    program.call(XS, None, Limits(5))
    assert program.has_form("plain")
    assert not program.has_form("metered")
    program.call(XS, None, Limits(4))
    assert program.has_form("metered")


def test_the_engines_have_the_same_fuel() -> None:
    assert _direct.DEFAULT_FUEL == DEFAULT_FUEL
