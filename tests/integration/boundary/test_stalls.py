"""Native code that runs long does not stall the other threads of the process.

The native code is a regular expression whose search takes a third of a second in one kernel, without a poll. The leader
in Python is replaced, so that only the direct engine takes time. `make proof-stalls` plants a sleep of 30 seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.nodes import small_node
from tests.support.ticker import best_hold, best_stall
from tests.support.waiting import eventually
from tests.unit.migration.support.routed import divergences_of, routes_in, state_of
from vesper.compiler import Compiled
from vesper.engines.direct_engine import DirectEngine, DirectProgram
from vesper.engines.outcome import Returned
from vesper.engines.tiering import ALWAYS
from vesper.migration.control.modes import Mode
from vesper.migration.workers.inflight_counters import Slot

KEY = b"k" * 16
FOLLOWER_SECONDS = 0.05
LEADER_SECONDS = 0.005
SLOW: Compiled = small_node(
    "text: string",
    '- operation: compute\n  compute:\n    found: length(find_all(text, "[ab]{1,60}[cd]"))\n'
    "- {operation: return, success: [found]}",
    outputs="found: integer",
)
INPUTS = {"text": "ab" * 180_000 + "c"}
LOOP: Compiled = small_node(
    "n: integer",
    "- operation: compute\n  compute:\n    total: SUM(round(x * 1.25 + 0.5, 2) * 2 FOR x IN range(0, n))\n"
    "- {operation: return, success: [total]}",
    outputs="total: decimal",
)


@pytest.fixture(scope="module")
def slow() -> DirectProgram:
    found = DirectEngine().load(SLOW)
    assert kernel_seconds(found) > 4 * FOLLOWER_SECONDS, "the kernel is too fast to show a stall"
    return found


def kernel_seconds(program: DirectProgram) -> float:
    begun = time.thread_time()
    program.call(INPUTS)
    return time.thread_time() - begun


@pytest.mark.parametrize(
    "run",
    [
        lambda program: program.start(INPUTS, is_traced=False).advance(()),
        lambda program: program.start(INPUTS).advance(()),
        lambda program: program.start_pathed(INPUTS, KEY).advance(()),
        lambda program: program.call_pathed(INPUTS, KEY),
    ],
    ids=["with effects", "traced", "followed with effects", "followed"],
)
def test_a_follower_and_a_run_with_effects_stall_no_thread(
    run: Callable[[DirectProgram], object], slow: DirectProgram
) -> None:
    assert best_hold(lambda: run(slow), FOLLOWER_SECONDS) <= FOLLOWER_SECONDS


def test_a_short_follower_stalls_neither_its_caller_nor_other_threads(slow: DirectProgram) -> None:
    handed: list[Any] = []
    route = slow.route(
        lambda _: {"found": 1},
        lambda *_: {},
        lambda *each: handed.append(each),
        lambda: None,
        Slot.unshared().flights,
        is_bare=True,
        deadline=5.0,
        most_bytes=1 << 26,
        keeps=False,
    )
    route.set(Mode.SHADOW_DIRECT.level, [], KEY, 0.0)
    took: list[float] = []

    def call() -> None:
        begun = time.perf_counter()
        assert route.call(INPUTS) == {"found": 1}
        took.append(time.perf_counter() - begun)
        assert route.wait(60)

    bound = kernel_seconds(slow) / 4  # other processes delay threads too
    assert best_stall(call, bound) <= bound
    assert min(took) <= FOLLOWER_SECONDS, "the caller does not wait for its follower"
    agreed, *_, wanted = route.drain()
    assert sum(compared for *_, compared in agreed) + len(wanted) == len(took)
    assert not handed
    route.close()


@pytest.mark.parametrize("tiering", ["interp", "jit"])
@pytest.mark.parametrize("n", [500, 2_000, 8_000, 20_000, 60_000, 1_000_000])
def test_a_pure_leader_in_a_loop_holds_the_lock_for_at_most_5_ms(n: int, tiering: str) -> None:
    """Machine code without a frame does not poll: its fuel bounds it."""
    program = (DirectEngine() if tiering == "interp" else DirectEngine(ALWAYS)).load(LOOP)
    inputs = {"n": n}
    program.entry(inputs)
    assert best_hold(lambda: program.entry(inputs), LEADER_SECONDS) <= LEADER_SECONDS


def test_a_routed_node_with_a_slow_kernel_stalls_no_thread(slow: DirectProgram, tmp_path: Path) -> None:
    """The leader in Python is replaced; all else is as users have it."""
    routes = routes_in(tmp_path)
    routes.helper.rerun = lambda *_, **__: None  # type: ignore[method-assign]
    program = routes.program(SLOW)
    program._python.entry = lambda _: {"found": 1}
    call = program.fast_entry(lambda outcome, _: dict(outcome.value), takes_now=False)  # type: ignore[union-attr]
    assert call is not None

    def work() -> None:
        call(dict(INPUTS))
        assert program._way_in is not None
        assert program._way_in.wait(60)
        program.drain()
        assert routes.followers.drain(60)

    bound = kernel_seconds(slow) / 4
    try:
        assert best_stall(work, bound) <= bound
    finally:
        routes.close()


# -- supervision ----------------------------------------------------------------------------------


def test_a_follower_that_hangs_is_abandoned_and_a_fault(slow: DirectProgram, tmp_path: Path) -> None:
    """The thread of the extension: the kernel takes longer than three deadlines."""
    routes = routes_in(tmp_path, deadline="10ms")
    routes.helper.rerun = lambda *_, **__: None  # type: ignore[method-assign]
    program = routes.program(SLOW)
    program._python.entry = lambda _: {"found": 1}
    call = program.fast_entry(lambda outcome, _: dict(outcome.value), takes_now=False)  # type: ignore[union-attr]
    assert call is not None
    try:
        for _ in range(3):
            assert call(dict(INPUTS)) == {"found": 1}
        eventually(lambda: program.live.local.mode is Mode.PYTHON_ONLY)
        eventually(lambda: bool(divergences_of(routes, program)))
        (found,) = divergences_of(routes, program)
        assert found.kind == "fault"
        assert program._way_in is not None
        assert program._way_in.wait(1), "what was queued behind it is lost, and nothing waits for the thread"
        assert call(dict(INPUTS)) == {"found": 1}
        assert [each.reason.value for each in state_of(routes, program).latches] == ["engine_fault"]
        time.sleep(2 * kernel_seconds(slow))  # the abandoned thread returns, and reports nothing
        assert state_of(routes, program).clean == 0
    finally:
        routes.close()


def test_a_shadow_run_of_the_queue_that_hangs_is_abandoned(slow: DirectProgram, tmp_path: Path) -> None:
    routes = routes_in(tmp_path, deadline="10ms")
    routes.helper.rerun = lambda *_, **__: None  # type: ignore[method-assign]
    program = routes.program(SLOW)
    program._python.call = lambda *_, **__: Returned({"found": 1})  # type: ignore[method-assign]
    try:
        for _ in range(3):
            assert program.call(dict(INPUTS)) == Returned({"found": 1})
        eventually(lambda: program.live.local.mode is Mode.PYTHON_ONLY)
        assert routes.followers.drain(5)
        assert routes.followers._abandoned == 1, "queued executions of the node are not followed any more"
        eventually(lambda: len(divergences_of(routes, program)) == 1)
    finally:
        routes.close()
