"""The fast entry in Rust: equal to the router in Python in every mode, and with equal counts."""

from __future__ import annotations

import gc
import math
import os
import signal
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import vesper
from tests.proofs.robustness.memory import in_use
from tests.support.waiting import eventually
from tests.unit.migration.support.routed import (
    DECISION,
    compiled,
    divergences_of,
    payment,
    put_into,
    routes_in,
    state_of,
)
from vesper.api.node import Node
from vesper.engines.direct_engine import DirectProgram, Flight, Plan
from vesper.engines.outcome import Returned
from vesper.engines.registry import ENGINES
from vesper.migration.compare.paths import PathNote, ending_of
from vesper.migration.control.modes import LADDER, Mode
from vesper.migration.router.fast_entry import NodeFastEntry
from vesper.migration.router.router import RoutedProgram
from vesper.migration.stores import ledger
from vesper.migration.workers.inflight_counters import Slot

KEY = b"k" * 16
INPUTS = [payment(), payment("500.00"), payment("-1"), payment(currency="XXX"), {"amount": "no"}, payment("99.99")]


class Here:
    """A node as users load it. `reference` replaces the generated function, to plant faults."""

    def __init__(
        self, folder: Path, node: Path = DECISION, reference: Callable[..., Any] | None = None, **settings: Any
    ) -> None:
        # What is told, and when, is said by the tests.
        self.routes = routes_in(folder, **{"refresh": "10s", **settings})
        # Nothing is run again in another process: tests/unit/migration/router/test_background_checks.py has that.
        self.routes.helper.rerun = lambda *_, **__: None  # type: ignore[method-assign]
        made = compiled(node)
        self.program: RoutedProgram = self.routes.program(made)
        if reference is not None:
            self.program._python.entry = reference
        self.node: Node = vesper.load(node, engine="auto", routes=self.routes)
        self.python = vesper.load(node)
        self.direct = ENGINES["interp"].load(made)
        way_in = self.program._way_in
        assert way_in is not None
        self.way_in: NodeFastEntry = way_in

    def sample(self, share: float) -> None:
        """Put a share of the requests into the sample from now on."""
        self.way_in._sample = share
        self.way_in._look(self.program.live.local)

    def note(self, inputs: dict[str, Any]) -> PathNote:
        ran = self.direct.call_pathed(inputs, KEY)  # type: ignore[attr-defined]
        return PathNote(ran.path, (), ending_of(ran.outcome))

    def told(self) -> None:
        assert self.way_in.wait(5)
        self.routes.migration.tend()
        assert self.routes.followers.drain(5)
        self.routes.migration.tend(is_all=True)

    def served(self) -> dict[str, int]:
        """Return the counted and unreported requests."""
        self.program.drain()
        return dict(self.program.live._served)


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Here]:
    made = Here(tmp_path)
    yield made
    made.routes.close()


def answer(call: Callable[..., Any], inputs: Any) -> tuple[str, Any]:
    """Return the result for the caller."""
    try:
        return "returned", call(inputs)
    except Exception as error:  # noqa: BLE001  # whatever it is, it must be the same
        return type(error).__name__, getattr(error, "code", None)


def lying(inputs: dict[str, Any]) -> dict[str, Any]:
    """Return a reference that is wrong in one output, as if the direct engine were."""
    return {**RIGHT(inputs), "fee": Decimal("7.77")}


RIGHT = ENGINES["python"].load(compiled()).entry  # type: ignore[attr-defined]


@pytest.mark.parametrize("mode", LADDER, ids=lambda each: each.value)
def test_the_caller_gets_pythons_answer_in_every_mode(mode: Mode, here: Here) -> None:
    put_into(here.routes, here.program, mode, *([here.note(payment())] if mode is Mode.DIRECT_ONLY else []))
    for inputs in INPUTS * 5:
        assert answer(here.node.call, inputs) == answer(here.python.call, inputs)
    here.told()
    assert not divergences_of(here.routes, here.program)


@pytest.mark.parametrize("mode", [Mode.SHADOW_DIRECT, Mode.DUAL_VERIFY, Mode.DIRECT_ONLY], ids=lambda each: each.value)
def test_a_difference_is_found_and_kept_and_the_caller_has_pythons_answer(mode: Mode, tmp_path: Path) -> None:
    here = Here(tmp_path, reference=lying)
    put_into(here.routes, here.program, mode)
    here.sample(1.0)
    for number in range(1, 6):
        assert here.node.call(payment(f"{number}.00"))["fee"] == Decimal("7.77")
    here.told()
    (found,) = divergences_of(here.routes, here.program)
    assert (found.kind, found.where, found.count) == ("outcome", "outputs.fee", 5)
    here.routes.close()


@pytest.mark.parametrize(
    "changed",
    [
        {"fee": Decimal("1.7500")},
        {"fee": 2},
        {"risk": True},
        {"decision": "none of these"},
        {"more": 1},
        {"new_balance": Decimal("-0.0")},
    ],
    ids=["another scale", "an integer for a decimal", "a boolean for an integer", "no member", "one too many", "-0"],
)
def test_nearly_equal_values_differ(changed: dict[str, Any], tmp_path: Path) -> None:
    here = Here(tmp_path, reference=lambda inputs: {**RIGHT(inputs), **changed})
    here.node.call(payment())
    here.told()
    assert len(divergences_of(here.routes, here.program)) == 1
    here.routes.close()


def test_in_direct_only_a_proven_path_is_served_by_the_direct_engine_alone(tmp_path: Path) -> None:
    asked: list[Any] = []

    def reference(inputs: dict[str, Any]) -> Any:
        asked.append(inputs)
        return RIGHT(inputs)

    here = Here(tmp_path, reference=reference)
    put_into(here.routes, here.program, Mode.DIRECT_ONLY, here.note(payment()))
    here.sample(0.0)
    assert here.node.call(payment()) == here.python.call(payment())
    assert not asked
    assert here.served() == {"direct_only/direct": 1}
    other = payment("5000.00")
    assert here.note(other) != here.note(payment())
    assert here.node.call(other) == here.python.call(other)  # compared first: it runs on both
    here.told()
    assert state_of(here.routes, here.program).compared == 120_001
    here.routes.close()


def test_in_direct_only_all_paths_are_trusted_where_evidence_is_complete(here: Here) -> None:
    put_into(here.routes, here.program, Mode.DIRECT_ONLY)
    here.way_in._route.set(Mode.DIRECT_ONLY.level, None, KEY, 0.0)
    assert here.node.call(payment()) == here.python.call(payment())
    assert here.served() == {"direct_only/direct": 1}
    here.told()
    assert state_of(here.routes, here.program).compared == 120_000


def test_the_sample_of_direct_only_is_about_as_large_as_it_should_be(tmp_path: Path) -> None:
    here = Here(tmp_path, sample="5%")
    put_into(here.routes, here.program, Mode.DIRECT_ONLY, here.note(payment()))
    for _ in range(4000):
        here.node.call(payment())
    served = here.served()
    assert sum(served.values()) == 4000
    assert 120 <= served["direct_only/python"] <= 290
    here.told()
    assert state_of(here.routes, here.program).compared == 120_000 + served["direct_only/python"]
    here.routes.close()


def test_the_sample_of_direct_only_is_followed_however_busy_the_process_is(tmp_path: Path) -> None:
    here = Here(tmp_path, sample="5%")
    put_into(here.routes, here.program, Mode.DIRECT_ONLY, here.note(payment()))
    here.way_in._route.admit(0.0)
    for _ in range(1000):
        here.node.call(payment())
    here.way_in._route.wait(60.0)
    sampled = here.served()["direct_only/python"]
    here.told()
    assert state_of(here.routes, here.program).compared == 120_000 + sampled > 120_000
    here.routes.close()


def test_requests_that_are_not_admitted_run_on_python_alone(here: Here) -> None:
    here.way_in._route.admit(0.25)
    for number in range(2000):
        here.node.call(payment(f"{number + 1}.00"))
    here.told()
    assert 380 <= state_of(here.routes, here.program).compared <= 640


def test_evidence_is_that_of_the_router_in_python(tmp_path: Path) -> None:
    """Equal inputs give equal fingerprints on equal paths."""
    given = [payment(f"{number * 37 % 900 + 1}.00", user_age_days=number % 40) for number in range(500)]
    seen: list[Any] = []
    for name in ("rust", "python"):
        folder = tmp_path / name
        folder.mkdir()
        here = Here(folder)
        here.routes.migration.key = KEY
        here.way_in._look(here.program.live.local)
        for inputs in given:
            if name == "rust":
                here.node.call(inputs)
            else:
                assert isinstance(here.program.call(inputs), Returned)
        assert here.way_in.wait(5)  # what took long is followed in a thread of its own
        here.program.drain()
        assert here.routes.followers.drain(5)
        live = here.program.live
        notes = {each: note.points for each, note in live._notes.items()}
        agreed = {each: frozenset(fingerprints) for each, fingerprints in live._agreed.items()}
        seen.append((agreed, dict(live._compared), notes))
        here.routes.close()
    assert seen[0] == seen[1]
    assert sum(map(len, seen[0][0].values())) > 300


def test_concurrent_drains_wait_for_each_other(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """The migration thread may have taken agreements and not reported them yet, when another thread drains."""
    for _ in range(100):
        here.node.call(payment("1.00"))
    live, agree_many = here.program.live, here.program.live.agree_many
    has_taken, goes_on = threading.Event(), threading.Event()
    taken: list[int] = []

    def slowly(note: PathNote, fingerprints: list[int], compared: int) -> None:
        taken.append(compared)
        has_taken.set()
        assert goes_on.wait(5)
        agree_many(note, fingerprints, compared)

    monkeypatch.setattr(live, "agree_many", slowly)
    seen: list[int] = []

    def drain_and_look() -> None:
        here.program.drain()
        seen.append(sum(live._compared.values()))

    def drain_until_taken() -> None:
        while not has_taken.is_set():  # the follower thread may need a moment
            here.program.drain()

    first = threading.Thread(target=drain_until_taken)
    first.start()
    assert has_taken.wait(5)
    second = threading.Thread(target=drain_and_look)
    second.start()
    second.join(0.1)  # time for it to come back too early, which it must not
    goes_on.set()
    first.join(5)
    second.join(5)
    assert seen[0] >= sum(taken) > 0


def test_a_flood_of_one_input_is_one_piece_of_evidence(here: Here) -> None:
    for _ in range(3000):
        here.node.call(payment())
    here.told()
    found = state_of(here.routes, here.program)
    assert (found.clean, found.compared, found.unknown) == (1, 3000, 0)


def test_eight_threads_lose_no_agreement_and_see_every_change_of_mode(here: Here) -> None:
    def work(first: int) -> None:
        for number in range(first, first + 300):
            here.node.call(payment(f"{number}.00"))

    threads = [threading.Thread(target=work, args=(1 + 300 * each,)) for each in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    here.told()
    found = state_of(here.routes, here.program)
    assert (found.clean, found.compared, found.unknown) == (2400, 2400, 0)


def test_the_kill_switch_and_modes_are_seen_by_threads_that_are_running(tmp_path: Path) -> None:
    stopped, by_mode = threading.Event(), set[str]()
    made: list[Here] = []

    def reference(inputs: dict[str, Any]) -> Any:
        by_mode.add(made[0].program.live.local.mode.value if made else "")
        return RIGHT(inputs)

    here = Here(tmp_path, reference=reference)
    made.append(here)

    def work() -> None:
        while not stopped.is_set():
            here.node.call(payment())

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    put_into(here.routes, here.program, Mode.DIRECT_ONLY, here.note(payment()))
    here.sample(0.0)
    here.program.drain()
    eventually(lambda: here.served().get("direct_only/direct", 0) > 0)
    ledger.kill_all(here.routes.migration.store, "ann", "a test", 1)
    here.routes.migration.tend()
    by_mode.clear()
    eventually(lambda: by_mode == {"python_only"})
    before = here.served().get("direct_only/direct", 0)
    eventually(lambda: here.served().get("python_only/python", 0) > 10)
    assert here.served().get("direct_only/direct", 0) <= before
    stopped.set()
    for thread in threads:
        thread.join()
    here.routes.close()


LONG = Path("nodes/numbers/numeric_loop_v1.vsp")
"""Node whose work grows with its input."""


def test_long_executions_are_followed_in_a_thread(tmp_path: Path) -> None:
    here = Here(tmp_path, LONG)
    given = [{"seed": number, "n": 800} for number in range(300)]
    for inputs in given:
        assert here.node.call(inputs) == here.python.call(inputs)
    here.told()
    found = state_of(here.routes, here.program)
    assert (found.clean, found.compared, found.unknown) == (300, 300, 0)
    assert len(here.program.live.state.paths) == 1
    here.routes.close()


def test_a_difference_is_found_in_the_thread(tmp_path: Path) -> None:
    right = ENGINES["python"].load(compiled(LONG)).entry  # type: ignore[attr-defined]
    here = Here(tmp_path, LONG, lambda inputs: {**right(inputs), "hits": 1})
    given = {"seed": 1, "n": 3000}
    assert here.node.call(given)["hits"] == 1
    given["n"] = -1  # the caller may do with it what it likes
    here.told()
    (found,) = divergences_of(here.routes, here.program)
    assert found.where == "outputs.hits"
    assert "3000" in str(found.exemplars[0].inputs)
    here.routes.close()


def test_executions_beyond_the_queue_are_lost(tmp_path: Path) -> None:
    here = Here(tmp_path, LONG, follow_memory="1KiB")
    for number in range(20):
        here.node.call({"seed": number, "n": 2000})
    here.told()
    found = state_of(here.routes, here.program)
    assert found.unknown + found.compared == 20
    here.routes.close()


LEFT_TO_PYTHON = ("data/json_address_v1", "logs/log_redaction_v1")
"""Nodes with outputs that are compared in Python: json, and maps with keys other than texts."""


class Alone:
    """A route without a node, and the calls that it leaves to Python."""

    def __init__(self, path: Path, deadline: float = 5.0) -> None:
        made = compiled(path)
        self.given = [each.inputs for each in made.cases]
        self.right: Callable[..., Any] = ENGINES["python"].load(made).entry  # type: ignore[attr-defined]
        self.reference = self.right
        self.slow: list[int] = []
        self.handed: list[tuple[Any, ...]] = []
        direct = ENGINES["interp"].load(made)
        assert isinstance(direct, DirectProgram)
        self.route = direct.route(
            self._refer,
            self._slow,
            lambda *each: self.handed.append(each),
            lambda: None,
            Slot.unshared().flights,
            is_bare=True,
            deadline=deadline,
            most_bytes=1 << 20,
            keeps=False,
        )
        self.route.set(Mode.SHADOW_DIRECT.level, [], KEY, 0.0)

    def seen(self) -> list[tuple[Any, ...]]:
        """Return the executions that were left to Python, at once or by the follower thread."""
        assert self.route.wait(30)
        found = [*self.handed, *self.route.drain()[-1]]
        self.handed.clear()
        return found

    def answers(self, outputs: dict[str, Any]) -> None:
        """Set the outcome of Python from now on."""
        self.reference = lambda _: outputs

    def _refer(self, inputs: dict[str, Any]) -> Any:
        return self.reference(inputs)

    def _slow(self, plan: int, inputs: dict[str, Any], now: datetime | None = None) -> dict[str, Any]:
        self.slow.append(plan)
        return self.right(inputs)  # type: ignore[no-any-return]


NODES = (
    "calendar/backup_plan_v1", "calendar/timesheet_v1", "data/json_address_v1", "data/record_changes_v1",
    "data/sensor_smoothing_v1", "finance/loan_schedule_v1", "logs/log_redaction_v1", "numbers/permissions_bits_v1",
    "orders/invoice_lines_v1", "security/token_parts_v1",
)  # fmt: skip


def test_a_direct_execution_that_is_not_short_is_left_at_its_deadline() -> None:
    for deadline, plans in ((5.0, []), (0.0, [Plan.DIRECT])):
        alone = Alone(LONG, deadline)
        alone.route.set(Mode.DIRECT_ONLY.level, None, KEY, 0.0)
        inputs = {"seed": 1, "n": 10_000}
        assert alone.route.call(inputs) == alone.right(inputs)
        assert alone.slow == plans


@pytest.mark.parametrize("name", NODES)
def test_outputs_of_all_types_are_compared_and_any_change_in_them_is_noticed(name: str) -> None:
    """The values are the outputs of this repository's nodes for their cases."""
    alone = Alone(Path(f"nodes/{name}.vsp"))
    was_left = False
    for inputs in alone.given:
        try:
            outputs = alone.right(inputs)
        except Exception:  # noqa: BLE001  # only what returns is compared there
            alone.reference = alone.right
            with pytest.raises(Exception):  # noqa: B017  # the same, whatever it is
                alone.route.call(inputs)
            assert alone.slow.pop() == Plan.FOLLOWED
            continue
        alone.answers(outputs)
        assert alone.route.call(inputs) is outputs
        was_left = was_left or bool(alone.handed)
        alone.seen()
        for each, value in outputs.items():
            changed = {**outputs, each: otherwise(value)}
            alone.answers(changed)
            alone.route.call(inputs)
            ((_, handed, _, is_chosen, broke, now),) = alone.seen()
            assert (handed, is_chosen, broke, now) == (changed, False, None, None)
    assert not alone.slow
    assert was_left == (name in LEFT_TO_PYTHON)


def otherwise(value: Any) -> Any:
    """Return a value that nearly equals this one."""
    match value:
        case bool():
            return int(value)
        case int():
            return value + 1
        case str():
            return f"{value} "
        case float():
            return math.nextafter(value, math.inf) if math.isfinite(value) else 0.0
        case Decimal():
            text = f"{value:f}"
            return Decimal(f"{text}0" if "." in text else f"{text}.0")
        case list():
            return [*value[:-1], otherwise(value[-1])] if value else [None]
        case dict():
            key = next(reversed(value), None)
            return {"x": 1} if key is None else {**value, key: otherwise(value[key])}
        case frozenset():
            return set(value)
        case datetime():
            return value.replace(tzinfo=timezone(timedelta(), "X"))
        case date() | timedelta():
            return value + timedelta(days=1)
        case None:
            return 0
        case _:
            return object()


def test_malformed_inputs_are_an_error_of_the_caller(here: Here) -> None:
    for mode in (Mode.SHADOW_DIRECT, Mode.DIRECT_ONLY):
        put_into(here.routes, here.program, mode, here.note(payment()))
        here.sample(0.0)
        with pytest.raises(TypeError):
            here.node.call(7)
    here.told()
    assert not divergences_of(here.routes, here.program)


@pytest.mark.parametrize("mode", LADDER, ids=lambda each: each.value)
def test_a_call_that_fails_is_one_request(mode: Mode, here: Here) -> None:
    put_into(here.routes, here.program, mode)
    for inputs in INPUTS:
        here.node(**inputs)
        here.node(inputs)
    assert sum(here.served().values()) == 2 * len(INPUTS)


@pytest.mark.parametrize("mode", [Mode.SHADOW_DIRECT, Mode.DIRECT_ONLY], ids=lambda each: each.value)
def test_foreign_exceptions_are_no_outcome(mode: Mode, tmp_path: Path) -> None:
    def interrupted(_: Any) -> Any:
        raise KeyboardInterrupt

    here = Here(tmp_path, reference=interrupted)
    put_into(here.routes, here.program, mode)
    here.sample(1.0)
    with pytest.raises(KeyboardInterrupt):
        here.node.call(payment())
    here.routes.close()


def test_a_child_counts_for_itself(here: Here) -> None:
    for number in range(40):
        here.node.call(payment(f"{number + 1}.00"))
    child = os.fork()
    if child == 0:  # pragma: no cover  # in another process
        status = 1
        try:
            for number in range(100, 130):
                here.node.call(payment(f"{number}.00"))
            here.told()
            status = 0 if state_of(here.routes, here.program).compared == 30 else 3
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    here.told()
    assert state_of(here.routes, here.program).compared == 40


def test_everything_is_reported_before_the_end(tmp_path: Path) -> None:
    here = Here(tmp_path)
    for number in range(200):
        here.node.call(payment(f"{number + 1}.00"))
    here.routes.close()
    assert state_of(here.routes, here.program).compared == 200


def test_calls_leave_nothing_behind(here: Here) -> None:
    inputs = payment()
    held = [inputs, inputs["amount"], inputs["balance"], here.program._python.entry]
    for mode in (Mode.PYTHON_ONLY, Mode.DUAL_VERIFY, Mode.DIRECT_ONLY):
        put_into(here.routes, here.program, mode, here.note(inputs))
        for _ in range(500):
            here.node.call(inputs)
        here.told()
        before = [sys.getrefcount(each) for each in held]
        for _ in range(2000):
            here.node.call(inputs)
        assert [sys.getrefcount(each) for each in held] == before


def test_memory_stays_flat_over_many_calls(here: Here) -> None:
    inputs = payment()

    def calls(count: int) -> None:
        for _ in range(count):
            here.node.call(inputs)
        here.told()

    calls(10_000)
    in_use()  # once before it counts: what it needs itself is then there
    blocks, allocated = in_use()
    calls(50_000)
    blocks_now, allocated_now = in_use()
    assert blocks_now - blocks < 5_000
    assert (allocated_now or 0) - (allocated or 0) < 1 << 20


def test_an_unreferenced_route_is_collected(tmp_path: Path) -> None:
    here = Here(tmp_path)
    gone = weakref.ref(here.way_in._route)
    here.routes.close()
    del here
    gc.collect()
    assert gone() is None


def test_all_threads_share_the_flight_counters() -> None:
    counters = memoryview(bytearray(32)).cast("Q")
    flight = Flight(counters, 1)

    def work() -> None:
        for _ in range(5000):
            flight.enter()
            flight.leave()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counters.tolist() == [0, 20_000, 20_000, 0]
    with pytest.raises(ValueError, match="two 64-bit numbers"):
        Flight(counters, 3)
    with pytest.raises(BufferError):
        counters.release()
    flight.bind(memoryview(bytearray(16)).cast("Q"), 0)
    counters.release()


def test_direct_executions_are_counted_as_flights(here: Here) -> None:
    put_into(here.routes, here.program, Mode.DIRECT_ONLY, here.note(payment()))
    here.sample(0.0)
    flights = here.routes._counting._flights
    assert flights is not None
    before = flights._counters.tolist()
    for _ in range(10):
        here.node.call(payment())
    now = flights._counters.tolist()
    assert sum(now) - sum(before) == 20


def test_a_process_that_died_in_the_direct_engine_is_reported(tmp_path: Path) -> None:
    """The next process finds its flights, and they count as lost runs of the node."""
    here = Here(tmp_path)
    child = os.fork()
    if child == 0:  # pragma: no cover  # in another process
        for _ in range(2):
            here.program._context.direct.slot.enter()  # type: ignore[attr-defined]
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    here.routes._counting._looked = float("-inf")
    for _ in range(2):
        here.routes.migration.tend(is_all=True)  # finds them; and asks where the node stands
    assert here.program.live.local.mode is Mode.PYTHON_ONLY
    assert [each.reason.value for each in state_of(here.routes, here.program).latches] == ["lost_runs"]
    here.routes.close()
