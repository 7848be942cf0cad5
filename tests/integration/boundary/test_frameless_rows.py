"""Frameless machine code over many rows gives the same outcomes and releases the lock.

Python's switch interval is set to a thousand seconds, so that a waiting thread gets the lock only where the run
releases it. Results thus do not depend on timing, except that a thread must be awake in time, which is retried.
"""

from __future__ import annotations

import _thread
import gc
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import pytest

from tests.integration.boundary.test_frameless_calls import (
    ENGINE,
    EVERYTHING,
    GIVEN,
    LINE,
    LINE_TYPE,
    apart,
    expressed,
    is_expressed,
    ordinary,
)
from tests.support.nodes import small_node
from vesper.compiler import Compiled
from vesper.engines.direct_engine import DirectEngine, DirectProgram
from vesper.engines.outcome import ContractBroken, Failed, LimitHit, Returned
from vesper.engines.python_engine import PythonEngine

FEW = 4_096
"""Rows up to which a run keeps the lock."""
MANY = 20_000
ROUNDS = 300
ROW_TYPE = "types:\n  Row:\n    fields: {n: integer, tag: string}"
PASSES = 20
SUMS: Compiled = small_node(
    "xs: array<Row>\nlast: string",
    "- operation: compute\n  compute:\n    tagged: SUM(IF x.tag == last THEN 1 ELSE 0 FOR x IN xs)\n"
    + "".join(f"    sum_{place}: SUM(x.n * {place} FOR x IN xs)\n" for place in range(1, PASSES))
    + f"    all: {' + '.join(f'sum_{place}' for place in range(1, PASSES))}\n"
    + "- {operation: return, success: [tagged, all, last]}",
    outputs="tagged: integer\nall: integer\nlast: string",
    rest=ROW_TYPE,
)


def lines(count: int) -> list[dict[str, Any]]:
    """Return distinct lines with strings that are not shared."""
    return [
        {
            "qty": number % 7 - 3, "more": number, "price": Decimal(number).scaleb(-(number % 4)),
            "tag": apart(("ü", "ink", "", "żółw " + str(number))[number % 4]), "kind": ("a", apart("b"))[number % 2],
        }
        for number in range(count)
    ]  # fmt: skip


def rows(count: int) -> dict[str, Any]:
    """Return rows with strings that are not shared."""
    return {
        "xs": [{"n": number, "tag": f"tag {number % 100}"} for number in range(count)],
        "last": apart("tag 7"),
    }


@pytest.mark.parametrize("count", [FEW, FEW + 1, 20_001, 50_000])
def test_a_long_list_comes_to_the_same_on_every_engine(count: int) -> None:
    program = ENGINE.load(EVERYTHING)
    given = {**GIVEN, "xs": lines(count)}
    assert is_expressed(program, given)
    answer = program.call(given)
    assert isinstance(answer, Returned)
    assert repr(ordinary(program, given)) == repr(answer)
    assert repr(DirectEngine().load(EVERYTHING).call(given)) == repr(answer)
    assert repr(PythonEngine().load(EVERYTHING).call(given)) == repr(answer)
    text = json.dumps(given, default=str, ensure_ascii=False).encode()
    before = expressed(program)
    for _ in range(ROUNDS):  # one slow call on a busy machine disables the entry for some calls
        by_text = json.loads(program.run_json(text))
        if expressed(program) > before:
            break
    else:
        pytest.fail("a long text was never run without a frame")
    assert by_text["value"]["quantity"] == answer.value["quantity"]
    assert by_text["value"]["tagged"] == answer.value["tagged"]
    assert Decimal(by_text["value"]["worth"]) == answer.value["worth"]
    (mapped,) = program.fast_entry_for_many(lambda outcome, _: {"ended": outcome})([given])  # type: ignore[misc]
    assert repr(mapped) == repr(answer.value)


def test_a_list_of_a_million_is_run_so_and_a_longer_one_is_refused() -> None:
    program = ENGINE.load(EVERYTHING)
    most = {**GIVEN, "xs": [LINE] * 1_000_000}
    assert is_expressed(program, most)
    more = {**GIVEN, "xs": [LINE] * 1_000_001}
    refused = program.call(more)
    assert isinstance(refused, Failed)
    assert repr(refused) == repr(ordinary(program, more))


def test_what_is_broken_in_the_last_row_is_found_by_the_ordinary_way() -> None:
    program = ENGINE.load(EVERYTHING)
    for odd in (True, 2**63, "1", None):
        given = {**GIVEN, "xs": [*lines(FEW + 1), {**LINE, "qty": odd}]}
        assert repr(program.call(given)) == repr(ordinary(program, given))
    node = small_node(
        "xs: array<Line>",
        "- {operation: compute, step: result, value: COUNT(x FOR x IN xs)}\n- {operation: return, success: [result]}",
        outputs="result: integer",
        rest=LINE_TYPE + "\ncontracts:\n  preconditions:\n    - FORALL x IN xs SATISFIES x.qty < 4",
    )
    program = ENGINE.load(node)
    good = [LINE] * (FEW + 1)
    assert program.call({"xs": good}) == Returned({"result": FEW + 1})
    broken = program.call({"xs": [*good, {**LINE, "qty": 4}]})
    assert isinstance(broken, ContractBroken)
    assert repr(broken) == repr(PythonEngine().load(node).call({"xs": [*good, {**LINE, "qty": 4}]}))


def test_fuel_is_that_of_any_run() -> None:
    row = {"n": 1, "tag": "tag"}
    most = 10_000_000 // PASSES
    within = {"xs": [row] * most, "last": "tag"}
    program = ENGINE.load(SUMS)
    assert is_expressed(program, within)
    assert program.call(within) == Returned({"tagged": most, "all": 190 * most, "last": "tag"})
    over = {"xs": [row] * (most + 1), "last": "tag"}
    for engine in (ENGINE, DirectEngine()):
        assert engine.load(SUMS).call(over) == LimitHit("fuel")


# -- others beside --------------------------------------------------------------------------------


@contextmanager
def seldom_switched() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1_000)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def beside(call: Callable[[], object], other: Callable[[], object]) -> tuple[object, bool]:
    """Return the result of a call, and whether a waiting thread ran before the call ended."""
    gate, is_done = _thread.allocate_lock(), []
    gate.acquire()

    def wait() -> None:
        gate.acquire()
        other()
        is_done.append(True)

    thread = threading.Thread(target=wait)
    thread.start()
    with seldom_switched():
        gate.release()
        answer = call()
        was_done = bool(is_done)
    thread.join()
    return answer, was_done


def often(what: Callable[[], object]) -> None:
    for _ in range(ROUNDS):
        what()


def by_call(program: DirectProgram) -> Callable[[dict[str, Any]], object]:
    return program.call


def by_text(program: DirectProgram) -> Callable[[dict[str, Any]], object]:
    def call(given: dict[str, Any]) -> object:
        return json.loads(program.run_json(json.dumps(given).encode()))["value"]["tagged"]

    return call


@pytest.mark.parametrize("way", [by_call, by_text])
def test_what_others_do_to_the_inputs_meanwhile_changes_nothing(
    way: Callable[[DirectProgram], Callable[[dict[str, Any]], object]],
) -> None:
    program = ENGINE.load(SUMS)
    call = way(program)
    expected = repr(call(rows(MANY)))
    for _ in range(ROUNDS):
        given = rows(MANY)

        def spoil(given: dict[str, Any] = given) -> None:
            for row in given["xs"]:
                row["tag"] = "other"
                row.clear()
            given["xs"].clear()
            given.clear()
            # Released memory is reused.
            spoil.kept = [f"gat {number % 100}" for number in range(2 * FEW)]  # type: ignore[attr-defined]

        answer, was_done = beside(lambda given=given: call(given), spoil)  # type: ignore[misc]
        assert repr(answer) == expected
        if was_done:
            return
    pytest.fail("no other thread ran while the lock should have been let go")


def test_a_short_run_keeps_the_lock() -> None:
    program = ENGINE.load(SUMS)
    given = rows(1_000)
    assert is_expressed(program, given)
    done = [beside(lambda: program.call(given), lambda: None)[1] for _ in range(20)]
    assert not any(done)


def test_an_interrupt_is_noticed() -> None:
    program = ENGINE.load(SUMS)
    given = rows(MANY)
    program.call(given)

    def interrupt() -> None:
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            often(lambda: beside(lambda: program.call(given), interrupt))
    finally:
        signal.signal(signal.SIGINT, before)
    assert isinstance(program.call(given), Returned)


def test_many_at_once_and_nothing_of_the_callers_is_held_afterwards() -> None:
    program = ENGINE.load(SUMS)
    given = rows(MANY)
    expected = program.call(given)
    tag = given["xs"][0]["tag"]
    before = sys.getrefcount(tag), sys.getrefcount(given["last"])
    answers: list[object] = []
    threads = [threading.Thread(target=lambda: answers.extend(program.call(given) for _ in range(5))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [expected] * 20
    gc.collect()
    assert (sys.getrefcount(tag), sys.getrefcount(given["last"])) == before
