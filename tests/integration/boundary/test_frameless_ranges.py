"""Frameless machine code over ranges gives the same outcomes and never runs long.

The length of a range is not bounded by the inputs read, and a frameless run cannot be interrupted. Long ranges
therefore use the ordinary entry, which releases the lock and handles signals.
"""

from __future__ import annotations

import json
import os
import signal
from decimal import Decimal
from typing import Any

import pytest

from tests.integration.boundary.test_frameless_calls import ENGINE, ended, expressed, is_expressed, ordinary
from tests.integration.boundary.test_frameless_rows import ROUNDS, beside
from tests.support.nodes import ROOT, compiled, small_node
from vesper.compiler import Compiled
from vesper.engines.direct_engine import DirectEngine, DirectProgram
from vesper.engines.engine import Limits
from vesper.engines.outcome import Failed, LimitHit, Returned
from vesper.engines.python_engine import PythonEngine

NUMERIC = compiled(ROOT / "nodes" / "numbers" / "numeric_loop_v1.vsp")
BOUNDS = "start: integer\nend: integer\nstep: integer"
DIGITS: Compiled = small_node(
    BOUNDS,
    """\
- operation: loop
  step: run
  over: i IN range(start, end, step)
  state: {digits: 0, count: 0}
  next: {digits: digits * 10 + i, count: count + 1}
- {operation: return, success: {digits: run.digits, count: run.count}}""",
    outputs="digits: integer\ncount: integer",
)
LONG: Compiled = small_node(
    "n: integer\nm: integer",
    """\
- operation: compute
  compute:
    total: SUM(SUM(mod(i * j, 7) + mod(i + j, 11) FOR j IN range(0, m)) FOR i IN range(0, n))
- {operation: return, success: [total]}""",
    outputs="total: integer",
)

SUMMED: Compiled = small_node(
    "n: integer",
    "- operation: compute\n  compute:\n    result: SUM(bit_and(i, 7) FOR i IN range(0, n))\n"
    "- {operation: return, success: [result]}",
    outputs="result: integer",
)


def alike(node: Compiled, program: DirectProgram, given: dict[str, Any]) -> None:
    """Assert that calls, JSON and batches agree with the other engine."""
    expected = PythonEngine().load(node).call(given)
    assert repr(program.call(given)) == repr(expected), given
    assert repr(ordinary(program, given)) == repr(expected), given
    answer = json.loads(program.run_json(json.dumps(given, default=str).encode()))
    many = program.fast_entry_for_many(ended)
    assert many is not None
    (one,) = many([given])
    if isinstance(expected, Returned):
        assert repr(one) == repr(expected.value), given
        shown = {name: str(value) for name, value in expected.value.items()}
        assert {name: str(value) for name, value in answer["value"].items()} == shown, given
    else:
        assert answer["kind"] != "returned", given
        assert repr(one) == repr({"ended": expected}), given


def test_the_numeric_workload_needs_no_frame() -> None:
    program = ENGINE.load(NUMERIC)
    for rounds in (0, 1, 2, 31, 32, 33, 10_000):
        given = {"seed": 42, "n": rounds}
        assert is_expressed(program, given)
        alike(NUMERIC, program, given)
    alike(NUMERIC, program, {"seed": 42, "n": -1})


@pytest.mark.parametrize("step", [1, -1, 2, -3, 0, 2**63 - 1, -(2**63)])
def test_ranges_of_every_kind(step: int) -> None:
    program = ENGINE.load(DIGITS)
    ends = (-(2**63), -(2**63) + 2, -2, 0, 3, 2**63 - 3, 2**63 - 1)
    for start in ends:
        for end in ends:
            given = {"start": start, "end": end, "step": step}
            if isinstance(ordinary(program, given), Returned):
                while not is_expressed(program, given):  # after many failures it is not tried for a while
                    pass
            alike(DIGITS, program, given)


def test_what_overflows_in_a_round_fails_in_the_ordinary_way() -> None:
    program = ENGINE.load(DIGITS)
    assert is_expressed(program, {"start": 1, "end": 10, "step": 1})
    given = {"start": 1, "end": 60, "step": 1}
    assert isinstance(program.call(given), Failed)
    alike(DIGITS, program, given)


def test_a_range_beside_rows_and_decimals_in_rounds() -> None:
    node = small_node(
        "xs: array<Row>\nn: integer\nrate: decimal",
        """\
- operation: loop
  step: grown
  over: year IN range(0, n)
  state: {worth: 1.00, all: 0}
  next: {worth: worth * rate + 0.5, all: all + year}
- operation: compute
  compute:
    rows: SUM(x.k * grown.all FOR x IN xs)
    both: SUM(SUM(x.k * i FOR x IN xs) FOR i IN range(n, 0, -1))
- {operation: return, success: {worth: grown.worth, rows: rows, both: both}}""",
        outputs="worth: decimal\nrows: integer\nboth: integer",
        rest="types:\n  Row:\n    fields: {k: integer}",
    )
    program = ENGINE.load(node)
    for rounds in (-1, 0, 1, 7):
        for rows in (0, 1, 5):
            given = {"xs": [{"k": k} for k in range(rows)], "n": rounds, "rate": Decimal("1.05")}
            assert is_expressed(program, given), given
            alike(node, program, given)
    # Coefficients beyond the machine word use the ordinary entry.
    alike(node, program, {"xs": [{"k": 1}], "n": 40, "rate": Decimal("1.05")})


def test_a_text_in_the_rounds_of_a_range_is_for_the_ordinary_way() -> None:
    node = small_node(
        "n: integer\nt: string\nxs: array<Row>",
        "- operation: compute\n  compute:\n"
        "    result: SUM(SUM(IF x.tag == t THEN x.k * i ELSE i FOR x IN xs) FOR i IN range(0, n))\n"
        "- {operation: return, success: [result]}",
        outputs="result: integer",
        rest="types:\n  Row:\n    fields: {k: integer, tag: string}",
    )
    program = ENGINE.load(node)
    given = {"n": 5, "t": "tag", "xs": [{"k": 3, "tag": "tag"}, {"k": 4, "tag": "gat"}]}
    assert is_expressed(program, {**given, "n": 0})
    assert not is_expressed(program, given)
    alike(node, program, given)


def test_rounds_that_take_no_memory_need_no_frame() -> None:
    """Loops in loops, and a branch that makes texts, count no memory in the rounds that run."""
    node = small_node(
        "n: integer\nm: integer\nxs: array<Row>",
        """\
- operation: loop
  step: outer
  over: i IN range(0, n)
  state: {total: 0}
  steps:
    - operation: loop
      step: inner
      over: j IN range(i, m)
      state: {sum: 0}
      next: {sum: sum + i * j}
  next: {total: total + inner.sum}
- operation: compute
  compute:
    tags: SUM(IF x.k > 100 THEN length(upper(x.tag)) ELSE x.k FOR x IN xs)
- {operation: return, success: {total: outer.total, tags: tags}}""",
        outputs="total: integer\ntags: integer",
        rest="types:\n  Row:\n    fields: {k: integer, tag: string}",
    )
    program = ENGINE.load(node)
    given: dict[str, Any] = {"n": 4, "m": 9, "xs": [{"k": 3, "tag": "a"}, {"k": 4, "tag": "b"}]}
    assert is_expressed(program, given)
    alike(node, program, given)
    alike(node, program, {**given, "xs": [{"k": 101, "tag": "a"}]})


# -- fuel -----------------------------------------------------------------------------------------


def test_fuel_is_that_of_any_run() -> None:
    nested = {"n": 4, "m": 5}
    for engine in (ENGINE, DirectEngine(), PythonEngine()):
        for fuel in range(40):
            outcome = engine.load(LONG).call(nested, None, Limits(fuel))
            assert isinstance(outcome, Returned if fuel >= 4 + 4 * 5 else LimitHit)
    program = ENGINE.load(LONG)
    within, over = {"n": 10, "m": 999_999}, {"n": 10, "m": 1_000_000}
    assert isinstance(program.call(within), Returned)
    assert program.call(over) == LimitHit("fuel")


def test_what_would_take_long_is_not_begun_and_says_nothing_about_others() -> None:
    program = ENGINE.load(SUMMED)
    short, long = {"n": 1_000}, {"n": 1_000_000}
    assert is_expressed(program, short)
    for _ in range(200):
        assert not is_expressed(program, long)
    assert is_expressed(program, short), "those that were not begun count as if they had given up"
    alike(SUMMED, program, long)


def test_what_is_long_in_a_way_that_is_not_known_before_is_not_tried_for_ever() -> None:
    program = ENGINE.load(LONG)
    long = {"n": 1_000, "m": 1_000}
    for _ in range(40):
        assert not is_expressed(program, long)
    # Now it is not tried, and nothing is spent on it.
    assert not is_expressed(program, {"n": 1, "m": 1})


# -- others beside --------------------------------------------------------------------------------


def test_only_a_long_run_releases_the_lock() -> None:
    program = ENGINE.load(LONG)
    short, long = {"n": 10, "m": 100}, {"n": 10, "m": 900_000}
    assert is_expressed(program, short)
    done = [beside(lambda: program.call(short), lambda: None)[1] for _ in range(20)]
    assert not any(done)
    assert any(beside(lambda: program.call(long), lambda: None)[1] for _ in range(ROUNDS))


def test_an_interrupt_stops_a_long_run() -> None:
    program = ENGINE.load(LONG)
    long = {"n": 10, "m": 900_000}
    expected = program.call(long)
    came_back: list[object] = []

    def interrupt() -> None:
        os.kill(os.getpid(), signal.SIGINT)

    def again_and_again() -> None:
        for _ in range(ROUNDS):
            came_back.clear()
            beside(lambda: came_back.append(program.call(long)), interrupt)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        for _ in range(ROUNDS):
            with pytest.raises(KeyboardInterrupt):
                again_and_again()
            if not came_back:
                break
        else:
            pytest.fail("every run came to its end before it was interrupted")
    finally:
        signal.signal(signal.SIGINT, before)
    assert program.call(long) == expected
    assert expressed(program) == 0


def test_many_calls_in_one_let_others_run_though_they_are_few() -> None:
    """Fewer than a thousand calls of ten thousand rounds each must let other threads run in between."""
    program = ENGINE.load(NUMERIC)
    many = program.fast_entry_for_many(ended)
    assert many is not None
    given: list[dict[str, Any]] = [{"seed": 42, "n": 10_000} for _ in range(1_000)]
    for _ in range(ROUNDS):
        answers, was_done = beside(lambda: many(given), lambda: None)
        assert answers == [answers[0]] * len(given)  # type: ignore[index]
        if was_done:
            return
    pytest.fail("nobody else ran before the end")


def test_a_range_that_is_not_gone_through_leaves_long_arrays_as_they_are() -> None:
    node = small_node(
        "rows: array<Row>\nn: integer",
        """\
- operation: compute
  compute:
    result: SUM(bit_and(r.a, 7) FOR r IN rows) + (IF n > 0 THEN SUM(bit_and(i, 7) FOR i IN range(0, n)) ELSE 0)
- {operation: return, success: [result]}""",
        outputs="result: integer",
        rest="types:\n  Row:\n    fields: {a: integer}",
    )
    program = ENGINE.load(node)
    for rows in (10, 70_000):
        for n in (0, 10):
            given = {"rows": [{"a": each} for each in range(rows)], "n": n}
            assert is_expressed(program, given), (rows, n)
            total = sum(each & 7 for each in range(rows)) + sum(each & 7 for each in range(n))
            assert program.call(given) == Returned({"result": total})
