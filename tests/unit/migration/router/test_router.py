"""The router of a node without effects: every mode, with direct engines that are right, wrong, failing or slow.

The caller always gets Python's outcome.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.support.nodes import worked_nodes
from tests.support.waiting import eventually
from tests.unit.migration.support.routed import (
    Misbehaving,
    at_fault,
    compiled,
    divergences_of,
    lying,
    payment,
    put_into,
    raising,
    routes_in,
    state_of,
)
from vesper.engines import python_engine
from vesper.engines.engine import Limits
from vesper.engines.outcome import Failed, LimitHit, Outcome, Returned
from vesper.engines.path import Pathed
from vesper.engines.registry import ENGINES
from vesper.host.limits import limits_of_run
from vesper.migration.compare.paths import PathNote, ending_of
from vesper.migration.compare.reports import Lost, Report
from vesper.migration.control.modes import LADDER, Mode
from vesper.migration.router.router import RoutedProgram
from vesper.migration.shadow.shadow_queue import MAX_ABANDONED, Following


class Here:
    def __init__(self, folder: Path, **settings: Any) -> None:
        self.node = compiled()
        self.direct = Misbehaving(self.node)
        self.routes = routes_in(folder, **settings)
        self.routes._direct = lambda _: self.direct  # type: ignore[assignment,method-assign]
        self.program: RoutedProgram = self.routes.program(self.node)
        self.python = ENGINES["python"].load(self.node)

    def note(self, inputs: dict[str, Any]) -> PathNote:
        ran = self.direct.call_pathed(inputs, b"k" * 16)
        return PathNote(ran.path, (), ending_of(ran.outcome))

    def told(self) -> None:
        self.routes.followers.drain(5)
        self.routes.migration.tend(is_all=True)


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Here]:
    made = Here(tmp_path)
    yield made
    made.routes.close()


INPUTS = [payment(), payment("500.00"), payment("-1"), payment(currency="XXX"), {"amount": "no"}, payment("99.99")]


@pytest.mark.parametrize("mode", LADDER, ids=lambda each: each.value)
@pytest.mark.parametrize("does", [None, lying, raising, at_fault], ids=["right", "lying", "raising", "at fault"])
def test_the_caller_always_gets_pythons_outcome(mode: Mode, does: Any, here: Here) -> None:
    put_into(here.routes, here.program, mode)  # with no path of these inputs proven
    here.direct.does = does
    for inputs in INPUTS * 5:
        assert here.program.call(inputs) == here.python.call(inputs)


@pytest.mark.parametrize("path", worked_nodes(), ids=lambda each: each.stem)
def test_no_caller_waits_for_a_form_of_python_to_be_written(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Generating one takes a tenth of a second under the GIL, so that all callers would wait."""
    node = compiled(path)
    routes = routes_in(tmp_path)
    python = routes.program(node)._python

    def written(*_: object) -> None:
        raise AssertionError("a form of the node is written while a caller waits")

    monkeypatch.setattr(python_engine, "generate_module", written)
    limits = limits_of_run(None, node.node.grants.policy)
    for is_traced in (False, True):
        python.start({}, None, limits, is_traced=is_traced)
    if python.is_plain:
        python.call({}, datetime(2026, 1, 1, tzinfo=UTC))
    routes.close()


def test_in_python_only_the_direct_engine_does_not_run(here: Here) -> None:
    put_into(here.routes, here.program, Mode.PYTHON_ONLY)
    for inputs in INPUTS:
        here.program.call(inputs)
    here.told()
    assert here.direct.calls == 0


@pytest.mark.parametrize(
    "mode", [Mode.SHADOW_DIRECT, Mode.CANARY_DIRECT, Mode.DUAL_VERIFY], ids=lambda each: each.value
)
def test_agreement_is_counted_once_for_each_input(mode: Mode, here: Here) -> None:
    put_into(here.routes, here.program, mode)
    before = state_of(here.routes, here.program)
    for number in range(20):
        for _ in range(3):
            here.program.call(payment(f"{number + 1}.00"))
    here.told()
    after = state_of(here.routes, here.program)
    assert after.clean - before.clean == 20
    assert after.compared - before.compared == 60


def test_a_million_of_one_input_is_one_piece_of_evidence(here: Here) -> None:
    for _ in range(400):
        here.program.call(payment())
        here.program.call(payment(user_age_days=400))
    here.told()
    assert state_of(here.routes, here.program).clean == 1
    assert here.program.live.local.mode is Mode.SHADOW_DIRECT


def test_unread_inputs_make_no_evidence(here: Here) -> None:
    """The request is refused at its first condition, and the other inputs are not read."""
    for days in range(300):
        here.program.call(payment("-1", balance=Decimal(days)))
    here.told()
    assert state_of(here.routes, here.program).clean < 5


def test_in_direct_only_a_proven_path_runs_on_the_direct_engine_alone(here: Here) -> None:
    put_into(here.routes, here.program, Mode.DIRECT_ONLY, here.note(payment()))
    here.program.chooser.draw = lambda: 0.5  # outside of the sample
    here.direct.calls = 0
    here.direct.does = lying
    assert here.program.call(payment()) != here.python.call(payment())  # nobody looked: this is what trust is
    assert here.direct.calls == 1
    here.direct.does = None
    assert here.program.call(payment()) == here.python.call(payment())


def test_the_sample_is_followed_however_busy_the_process_is(here: Here) -> None:
    put_into(here.routes, here.program, Mode.DIRECT_ONLY, here.note(payment()))
    here.program.chooser.draw = lambda: 0.0  # in the sample
    here.program.chooser.admits = lambda: False
    here.program.call(payment())
    here.told()
    assert state_of(here.routes, here.program).compared == 120_001


def test_nothing_is_followed_without_a_worker(here: Here) -> None:
    put_into(here.routes, here.program, Mode.DIRECT_ONLY, here.note(payment()))
    here.program.chooser.draw = lambda: 0.0  # in the sample
    here.program.chooser.is_ready = lambda: False
    here.program.call(payment())
    here.told()
    state = state_of(here.routes, here.program)
    assert (state.compared, state.unknown) == (120_000, 0)


def test_in_direct_only_the_sample_finds_a_lie_and_its_path_is_compared_from_then_on(here: Here) -> None:
    put_into(here.routes, here.program, Mode.DIRECT_ONLY, here.note(payment()))
    here.program.chooser.draw = lambda: 0.0  # in the sample
    here.direct.does = lying
    assert here.program.call(payment()) == here.python.call(payment())
    here.program.chooser.draw = lambda: 0.5
    eventually(lambda: not here.program.live.trusts(here.note(payment()).name))
    for _ in range(5):
        assert here.program.call(payment()) == here.python.call(payment())
    here.told()
    (found,) = divergences_of(here.routes, here.program)
    assert found.kind == "outcome"
    assert found.count >= 1
    assert found.exemplars


def test_in_direct_only_a_path_without_evidence_is_compared_first(here: Here) -> None:
    put_into(here.routes, here.program, Mode.DIRECT_ONLY, here.note(payment()))
    here.program.chooser.draw = lambda: 0.5
    here.direct.does = lying
    other = payment("5000.00")
    assert here.note(other) != here.note(payment())
    assert here.program.call(other) == here.python.call(other)
    here.told()
    assert len(divergences_of(here.routes, here.program)) == 1


def test_the_canary_is_sticky_and_about_as_large_as_it_should_be(here: Here) -> None:
    put_into(here.routes, here.program, Mode.CANARY_DIRECT)
    chosen = [here.program.chooser.is_in_canary(payment(f"{number}.00")) for number in range(4000)]
    assert chosen == [here.program.chooser.is_in_canary(payment(f"{number}.00")) for number in range(4000)]
    assert 120 <= sum(chosen) <= 290


def test_a_routing_key_keeps_a_customer_on_one_side(tmp_path: Path) -> None:
    here = Here(tmp_path, nodes={"payment_decision_v1": {"routing_key": ["country"]}})
    sides = {here.program.chooser.is_in_canary(payment(f"{number}.00")) for number in range(200)}
    assert len(sides) == 1
    here.routes.close()


@pytest.mark.parametrize("does", [raising, at_fault], ids=["raising", "at fault"])
def test_a_fault_of_the_engine_stops_it_everywhere(does: Any, here: Here) -> None:
    put_into(here.routes, here.program, Mode.DIRECT_ONLY, here.note(payment()))
    here.program.chooser.draw = lambda: 0.5
    here.direct.does = does
    assert here.program.call(payment()) == here.python.call(payment())
    assert here.program.live.local.mode is Mode.PYTHON_ONLY
    here.told()
    assert [each.reason.value for each in state_of(here.routes, here.program).latches] == ["engine_fault"]
    (found,) = divergences_of(here.routes, here.program)
    assert found.kind == "fault"


def test_an_engine_that_computes_on_and_on_while_it_follows_is_ended_and_latched(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller of a short node waits for it."""
    asked: list[float | None] = []

    def late(_: object, __: bytes, ___: object, limits: Limits | None) -> Any:
        asked.append(None if limits is None else limits.seconds)
        return Pathed(LimitHit("time"), b"", 0)

    monkeypatch.setattr(here.direct, "call_pathed", late)  # as callers are served: times are compared
    monkeypatch.setattr(here.direct, "start_pathed", None)
    assert here.program.call(payment()) == here.python.call(payment())
    here.told()
    assert asked == [5.0]
    assert [each.reason.value for each in state_of(here.routes, here.program).latches] == ["engine_fault"]


def test_a_report_that_cannot_be_made_does_not_end_all_following(here: Here, caplog: pytest.LogCaptureFixture) -> None:
    def breaks(_: Report) -> None:
        raise RuntimeError("no words for it")

    followed: list[Report] = []
    for report in (breaks, followed.append):
        here.routes.followers.put(Following(lambda: Lost("it was not compared"), report, 1))
    assert here.routes.followers.drain(5)
    assert followed == [Lost("it was not compared")]
    assert "could not be reported" in caplog.text


def test_malformed_inputs_are_no_fault(here: Here) -> None:
    put_into(here.routes, here.program, Mode.DIRECT_ONLY, here.note(payment()))
    here.program.chooser.draw = lambda: 0.5
    with pytest.raises(TypeError):
        here.program.call(7)  # type: ignore[arg-type]
    here.told()
    assert not divergences_of(here.routes, here.program)


def test_many_threads_lose_no_agreement(here: Here) -> None:
    def work(first: int) -> None:
        for number in range(first, first + 200):
            here.program.call(payment(f"{number}.00"))

    threads = [threading.Thread(target=work, args=(1 + 200 * each,)) for each in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    here.told()
    found = state_of(here.routes, here.program)
    assert found.clean == 800
    assert found.unknown == 0


def test_later_changes_of_inputs_and_outputs_are_not_compared(here: Here) -> None:
    inputs = payment()
    outcome: Outcome = here.program.call(inputs)
    assert not isinstance(outcome, Failed)
    inputs["amount"] = None
    assert isinstance(outcome, Returned)
    outcome.value["decision"] = "changed"  # type: ignore[index]
    here.told()
    assert not divergences_of(here.routes, here.program)


def test_the_same_node_is_routed_once(here: Here) -> None:
    assert here.routes.program(compiled()) is here.program


def test_routes_send_everything_before_they_end(tmp_path: Path) -> None:
    here = Here(tmp_path)
    for number in range(10):
        here.program.call(payment(f"{number + 1}.00"))
    here.routes.close()
    assert state_of(here.routes, here.program).clean == 10


def test_the_child_of_a_fork_waits_for_no_thread_of_its_parent(here: Here) -> None:
    (tending,) = here.routes._tended
    held = tending._reservoir._lock
    with held:  # as a thread of the parent had it at that moment
        child = os.fork()
        if child == 0:
            signal.alarm(10)
            here.program.call(payment())  # is followed, agrees, and is offered
            os._exit(0 if here.routes.followers.drain(9) else 1)
        _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_a_process_that_cannot_follow_any_more_runs_python_alone(here: Here, caplog: pytest.LogCaptureFixture) -> None:
    put_into(here.routes, here.program, Mode.DUAL_VERIFY)
    here.routes.followers.note_abandoned(MAX_ABANDONED - 1)
    assert here.program.live.local.mode.value == "dual_verify"
    here.routes.followers.note_abandoned(1)
    assert here.program.live.local.mode is Mode.PYTHON_ONLY
    assert "the direct engine hung 4 times in this process" in caplog.text
    here.routes.migration.tend(is_all=True)
    assert here.program.live.local.mode is Mode.PYTHON_ONLY, "what the store says changes nothing"
    assert (
        here.routes.program(compiled(Path("nodes/numbers/numeric_loop_v1.vsp"))).live.local.mode is Mode.PYTHON_ONLY
    ), "nor does another node"
    assert state_of(here.routes, here.program).mode is Mode.DUAL_VERIFY, "other processes go on"
