"""The direct engine with threads, forks, signals and hostile objects, and over many calls."""

from __future__ import annotations

import asyncio
import datetime as dt
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any, ClassVar

import pytest

from tests.proofs.robustness.memory import in_use
from tests.support.nodes import PAYMENT_DECISION, compiled, small_node
from vesper.engines.direct_engine import DirectEngine
from vesper.engines.engine import Limits
from vesper.engines.outcome import Returned

PAYMENT = DirectEngine().load(compiled(PAYMENT_DECISION))
LONG = DirectEngine().load(
    small_node(
        "n: integer\nm: integer",
        "- operation: return\n  success: {result: 'SUM(SUM(i - j FOR j IN range(0, m)) FOR i IN range(0, n))'}",
        outputs="result: integer",
    )
)
"""Uses nine of ten million units of fuel for n = m = 3000, at least forty milliseconds."""
AMPLE = Limits(10**12)
ROUNDS = 3
"""Leaks grow in each round; allocations of other threads or of the compiler do not."""
LENGTHS = (1_000, 10_000, 100_000)
"""Values of n with m = 3000; a longer run follows one that was too short to measure."""


def inputs(cents: int) -> dict[str, Any]:
    return {
        "amount": Decimal(cents) / 100,
        "balance": Decimal("1000.00"),
        "currency": "USD",
        "country": "DE",
        "user_age_days": 400,
        "flagged": cents % 3 == 0,
    }


def test_threads_come_to_the_same_as_one() -> None:
    given = [inputs(cents) for cents in range(1, 400)]
    expected = [PAYMENT.call(each) for each in given]

    def work(_: int) -> bool:
        return all([PAYMENT.call(each) for each in given] == expected for _ in range(10))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == [True] * 8


def test_a_long_run_lets_other_threads_run() -> None:
    beats = 0
    is_over = threading.Event()

    def beat() -> None:
        nonlocal beats
        while not is_over.is_set():
            beats += 1
            time.sleep(0.001)

    other = threading.Thread(target=beat)
    # The lock cannot be taken from a thread that does not release it.
    interval = sys.getswitchinterval()
    sys.setswitchinterval(60)
    other.start()
    try:
        during = 0
        for length in LENGTHS:
            before = beats
            LONG.call({"n": length, "m": 3000}, None, AMPLE)
            during = max(during, beats - before)
            if during >= 5:
                break
    finally:
        is_over.set()
        sys.setswitchinterval(interval)
        other.join()
    assert during >= 5


def test_a_short_run_keeps_the_lock() -> None:
    """Releasing the lock in a short call would cost more than it saves."""
    beats = 0
    is_over = threading.Event()

    def beat() -> None:
        nonlocal beats
        while not is_over.is_set():
            beats += 1

    interval = sys.getswitchinterval()
    other = threading.Thread(target=beat)
    other.start()
    # Much longer than the calls take, because a waiting thread may wait that long.
    sys.setswitchinterval(1)
    try:
        given = inputs(5000)
        # The lock is handed over once more for the request made before the interval was set.
        time.sleep(0)
        before = beats
        for _ in range(100):
            PAYMENT.entry(given)
        during = beats - before
    finally:
        is_over.set()
        sys.setswitchinterval(interval)
        other.join()
    assert during == 0


def test_a_signal_ends_a_long_run() -> None:
    class Rang(Exception):
        pass

    def ring(*_: object) -> None:
        # A signal handler may call a node while a node runs.
        assert isinstance(PAYMENT.call(inputs(100)), Returned)
        raise Rang

    given = {"n": 3000, "m": 3000}

    def for_long(run: Callable[[], object]) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        for _ in range(50):
            run()

    before = signal.signal(signal.SIGALRM, ring)
    try:
        for run in (
            lambda: LONG.call(given),
            lambda: LONG.entry(given),
            lambda: LONG.run_json(b'{"n": 3000, "m": 3000}'),
            lambda: LONG.start(given).advance(()),
        ):
            with pytest.raises(Rang):
                for_long(run)
        assert LONG.entry({"n": 3, "m": 2}) == {"result": 3}
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_the_result_of_a_run_that_let_go_is_that_of_a_short_one() -> None:
    n, m = 150, 200
    expected = sum(i - j for i in range(n) for j in range(m))
    assert LONG.entry({"n": n, "m": m}) == {"result": expected}


def test_asyncio_goes_on_while_a_node_runs_in_a_thread() -> None:
    async def beats_during(length: int) -> int:
        beats = 0
        running = asyncio.create_task(asyncio.to_thread(LONG.call, {"n": length, "m": 3000}, None, AMPLE))
        while not running.done():
            beats += 1
            await asyncio.sleep(0.001)
        return beats

    assert any(asyncio.run(beats_during(length)) >= 5 for length in LENGTHS)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_goes_on_with_loaded_nodes() -> None:
    given = inputs(12345)
    expected = PAYMENT.call(given)
    is_over = threading.Event()
    running = threading.Thread(target=lambda: [PAYMENT.call(given) for _ in iter(is_over.is_set, True)])
    running.start()
    try:
        for _ in range(5):
            child = os.fork()
            if child == 0:
                is_same = PAYMENT.call(given) == expected and LONG.entry({"n": 100, "m": 100}) is not None
                os._exit(0 if is_same else 1)
            _, status = os.waitpid(child, 0)
            assert os.waitstatus_to_exitcode(status) == 0
    finally:
        is_over.set()
        running.join()
    assert PAYMENT.call(given) == expected


def test_many_calls_keep_nothing() -> None:
    given = inputs(777)
    broken = {**given, "amount": "x", "zz": 1}
    text = b'{"amount": 5, "balance": 10, "currency": "USD", "country": "DE", "user_age_days": 40}'

    def many(count: int) -> None:
        for _ in range(count):
            PAYMENT.call(given)
            PAYMENT.entry(given)
            PAYMENT.run_json(text)
        for _ in range(count // 10):
            PAYMENT.call(broken)

    many(2_000)
    in_use()  # a first call allocates what the measurement itself needs
    grown: list[tuple[int, int, int]] = []
    for _ in range(ROUNDS):
        gc.collect()
        blocks, allocated = in_use()
        counts = [sys.getrefcount(each) for each in (given, *given, *given.values())]
        objects = len(gc.get_objects())
        many(100_000)
        gc.collect()
        grown_objects = len(gc.get_objects()) - objects
        blocks_now, allocated_now = in_use()
        # `False` and short texts are shared, and other threads release some of theirs; the rarest kind of call is made
        # 10,000 times.
        held = zip((given, *given, *given.values()), counts, strict=True)
        assert all(sys.getrefcount(each) - before < 1_000 for each, before in held)
        grown.append((grown_objects, blocks_now - blocks, (allocated_now or 0) - (allocated or 0)))
        # One byte per call would be 300 kB.
        if all(more < most for more, most in zip(grown[-1], (100, 1_000, 250_000), strict=True)):
            return
    pytest.fail(f"objects, blocks and bytes grew in each round, by {grown}")


class Hostile(str):
    """A key that records every method call."""

    __slots__ = ()
    asked: ClassVar[list[str]] = []

    def __eq__(self, other: object) -> bool:
        self.asked.append("__eq__")
        return True

    def __hash__(self) -> int:
        self.asked.append("__hash__")
        return 7

    def __str__(self) -> str:
        self.asked.append("__str__")
        return "amount"


class HostileDict(dict[str, Any]):
    def __getitem__(self, key: str) -> Any:
        raise AssertionError(key)

    def __iter__(self) -> Any:
        raise AssertionError("__iter__")

    def __len__(self) -> int:
        raise AssertionError("__len__")

    def keys(self) -> Any:
        raise AssertionError("keys")

    def items(self) -> Any:
        raise AssertionError("items")


def test_methods_of_keys_are_never_called() -> None:
    given: dict[str, Any] = {Hostile(name): each for name, each in inputs(5000).items() if name == "amount"}
    given |= {name: each for name, each in inputs(5000).items() if name != "amount"}
    Hostile.asked.clear()
    outcome = PAYMENT.call(given)
    assert Hostile.asked == []
    assert outcome == PAYMENT.call(inputs(5000))


def test_a_dict_of_its_own_kind_is_read_from_its_storage() -> None:
    assert PAYMENT.call(HostileDict(inputs(5000))) == PAYMENT.call(inputs(5000))


def test_a_dict_may_change_while_it_is_read() -> None:
    """Reading inputs calls only time zones, which may change the inputs."""
    program = DirectEngine().load(
        small_node(
            "at: timestamp\nname: string\nlist: array<string>",
            "- operation: return\n  success: {result: name}",
            outputs="result: string",
        )
    )

    class Zone(dt.tzinfo):
        def utcoffset(self, _: object) -> dt.timedelta:
            given.clear()
            gc.collect()
            return dt.timedelta(0)

        def dst(self, _: object) -> None:
            raise AssertionError("dst")

        def tzname(self, _: object) -> None:
            raise AssertionError("tzname")

    given: dict[str, Any] = {}
    given |= {
        "at": dt.datetime(2026, 1, 1, tzinfo=Zone()),
        "name": "".join(["na", "me", str(os.getpid())]),
        "list": ["".join(["x", str(number)]) for number in range(50)],
    }
    name = str(given["name"])
    assert program.call(given) == Returned({"result": name})
    assert given == {}
