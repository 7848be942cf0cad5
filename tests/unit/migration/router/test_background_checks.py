"""Background checks of a node: repetitions, enumeration, and replay of the last definition."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.waiting import eventually
from tests.unit.migration.router.test_store_replacement import Other
from tests.unit.migration.support.memory_store import MemoryStore
from tests.unit.migration.support.routed import routes_in, state_of
from vesper.compiler import Compiled, compile_source
from vesper.language.diagnostics.source import SourceFile
from vesper.migration.control.modes import Mode
from vesper.migration.control.state import Kill, Resume, Settings
from vesper.migration.stores import ledger

SWITCH = """\
node_id: switch_v1
type: function
intent: Say whether a lamp is on

inputs:
  first:  enum[on, off]
  second: enum[on, off, broken]
  is_day: boolean

outputs:
  success:
    is_on: boolean

flow:
  - step: is_on
    operation: compute
    value: first == 'on' AND second == 'on' AND NOT is_day
  - operation: return
    success: [is_on]
"""
AMOUNTS = """\
node_id: amounts_v1
type: function
intent: Add a fee to an amount

inputs:
  amount: decimal

outputs:
  success:
    total: decimal

flow:
  - step: total
    operation: compute
    value: amount + FEE
  - operation: return
    success: [total]
"""


def made(text: str) -> Compiled:
    found, bag = compile_source(SourceFile("node.vsp", text))
    assert found is not None, bag.sorted()
    return found


def test_two_enums_and_a_boolean_are_enumerated_and_reach_direct_only(tmp_path: Path) -> None:
    routes = routes_in(tmp_path)
    program = routes.program(made(SWITCH))
    try:
        eventually(lambda: state_of(routes, program).is_complete, within=300)
        for _ in range(4):  # one mode at a time, each at an event
            program.call({"first": "on", "second": "off", "is_day": True})
            routes.migration.tend(is_all=True)
        assert state_of(routes, program).mode is Mode.DIRECT_ONLY
        program.chooser.draw = lambda: 0.5
        assert program.live.local.is_complete
    finally:
        routes.close()


@pytest.mark.parametrize("is_latched", [False, True], ids=["as it is", "latched"])
def test_a_node_is_enumerated_again_for_a_store_that_was_replaced(tmp_path: Path, is_latched: bool) -> None:
    """Traffic brings only twelve distinct inputs, too few for a promotion.

    A latched node is enumerated after its release.
    """
    routes = routes_in(tmp_path)
    program = routes.program(made(SWITCH))
    key = program.live.key
    try:
        eventually(lambda: program.live.state.is_complete, within=300)
        if is_latched:
            ledger.apply_event(routes.migration.store, key, Kill("ann", "an incident"), Settings(), 1)
            eventually(lambda: bool(program.live.state.latches))
        routes.migration.store = Other()
        eventually(lambda: routes.migration.key == Other().secret())
        if is_latched:
            eventually(lambda: bool(state_of(routes, program).latches))
            ledger.apply_event(routes.migration.store, key, Resume("ann", "it is over"), Settings(), 2)
        eventually(lambda: state_of(routes, program).is_complete, within=300)
    finally:
        routes.close()


def test_an_enumeration_waits_for_a_busy_helper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vesper.migration.router.background_checks._RETRY_SECONDS", 0.01)
    routes = routes_in(tmp_path)
    asked, enumerate_part = [], routes.helper.enumerate_part

    def refuses_at_first(*given: Any) -> Any:
        asked.append(given)
        return None if len(asked) < 4 else enumerate_part(*given)

    monkeypatch.setattr(routes.helper, "enumerate_part", refuses_at_first)
    program = routes.program(made(SWITCH))
    try:
        eventually(lambda: state_of(routes, program).is_complete, within=300)
    finally:
        routes.close()


def test_a_new_definition_repeats_executions_of_the_last(tmp_path: Path) -> None:
    store = MemoryStore()
    routes = routes_in(tmp_path / "one", store)
    program = routes.program(made(AMOUNTS.replace("FEE", "1.00")))
    for number in range(40):
        program.call({"amount": f"{number}.00"} if number % 2 else {"amount": number})
    routes.close()
    routes = routes_in(tmp_path / "two", store)
    changed = routes.program(made(AMOUNTS.replace("FEE", "2.00")))
    assert changed.live.key.epoch != program.live.key.epoch
    try:
        eventually(lambda: changed.live._pending > 0 or state_of(routes, changed).clean > 0, within=300)
        routes.migration.tend(is_all=True)
        assert state_of(routes, changed).clean == state_of(routes, program).clean
    finally:
        routes.close()


def test_a_process_that_ends_too_early_leaves_the_rest_to_the_next(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A short-lived process must not use up the stored executions of the last definition."""
    caplog.set_level("INFO", "vesper.migration")
    store = MemoryStore()
    routes = routes_in(tmp_path / "one", store)
    program = routes.program(made(AMOUNTS.replace("FEE", "1.00")))
    for number in range(40):
        program.call({"amount": number})
    routes.close()
    routes = routes_in(tmp_path / "two", store)
    routes.helper.close()
    changed = routes.program(made(AMOUNTS.replace("FEE", "2.00")))
    eventually(lambda: "this process ends, and the next one runs the others" in caplog.text, within=300)
    routes.close()
    assert (state_of(routes, changed).clean, state_of(routes, changed).unknown) == (0, 0)
    routes = routes_in(tmp_path / "three", store)
    changed = routes.program(made(AMOUNTS.replace("FEE", "2.00")))
    try:
        eventually(lambda: changed.live._pending > 0 or state_of(routes, changed).clean > 0, within=300)
        routes.migration.tend(is_all=True)
        assert state_of(routes, changed).clean == 40
    finally:
        routes.close()
