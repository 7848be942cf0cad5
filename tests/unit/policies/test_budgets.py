"""The machine of budgets: one decision over all budgets, the same in every store."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers import Postgres, Redis
from vesper._direct import Journal, SharedBudgets
from vesper.journal.journal import open_journal
from vesper.storage.sources import Sources

SECOND = 1_000_000
LEASE = 10 * SECOND
NOTHING = ("0", 0, 0, 0)


class Clock:
    """Microseconds that a test moves."""

    def __init__(self) -> None:
        self.now = 1_700_000_000 * SECOND

    def __call__(self) -> int:
        return self.now


def row(
    key: str,
    usd: str | None = None,
    tokens: int | None = None,
    calls: int | None = None,
    time_us: int | None = None,
    on_exceeded: str = "block",
    alert: int | None = None,
) -> Any:
    return (key, key, usd, tokens, calls, time_us, on_exceeded, alert, None)


def in_journal(dsn: str, clock: Clock | None = None) -> SharedBudgets:
    sources = Sources() if clock is None else Sources(now_ns=lambda: clock() * 1000)
    journal = open_journal(dsn, sources=sources)
    assert isinstance(journal, Journal)
    return SharedBudgets("", "", journal)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["memory", "redis", "sqlite"])
def budgets(request: pytest.FixtureRequest, clock: Clock, tmp_path: Path) -> Iterator[SharedBudgets]:
    """Stores whose clock a test moves."""
    match request.param:
        case "memory":
            found = SharedBudgets("memory:", "", clock=clock)
        case "redis":
            redis: Redis = request.getfixturevalue("redis_server")
            found = SharedBudgets(redis.url, f"{tmp_path.name}:", clock=clock)
        case _:
            found = in_journal(f"sqlite:{tmp_path / 'journal.db'}", clock)
    yield found
    found.close()


def reserved(budgets: SharedBudgets, *keys: str) -> list[tuple[str, int, int, int]]:
    return [each[1] for each in budgets.read(list(keys))]


def used(budgets: SharedBudgets, *keys: str) -> list[tuple[str, int, int, int]]:
    return [each[0] for each in budgets.read(list(keys))]


def test_a_request_takes_of_all_budgets_or_of_none(budgets: SharedBudgets) -> None:
    outer, inner = row("outer", usd="1"), row("inner", usd="0.3")
    worst = ("0.2", 100, 1, None)
    assert budgets.reserve([outer, inner], "a", worst, LEASE) == (None, None, [])
    assert budgets.reserve([outer, inner], "b", worst, LEASE) == ((1, "usd", "0.1"), None, [])
    assert reserved(budgets, "outer", "inner") == [("0.2", 100, 1, 0), ("0.2", 100, 1, 0)]
    budgets.settle([outer, inner], "a", ("0.000000000001", 7, 1, 3000))
    assert budgets.read(["outer", "inner", "unknown"]) == [
        (("0.000000000001", 7, 1, 3000), NOTHING),
        (("0.000000000001", 7, 1, 3000), NOTHING),
        (NOTHING, NOTHING),
    ]


def test_the_outermost_budget_that_refuses_is_named(budgets: SharedBudgets) -> None:
    around = [row("a", calls=5), row("b", tokens=10), row("c", usd="0.1")]
    refusal, _, _ = budgets.reserve(around, "x", ("1", 11, 1, None), LEASE)
    assert refusal == (1, "tokens", "10")


def test_what_is_released_is_available_again(budgets: SharedBudgets) -> None:
    one = [row("one", calls=1)]
    assert budgets.reserve(one, "a", ("0", 0, 1, None), LEASE)[0] is None
    assert budgets.reserve(one, "b", ("0", 0, 1, None), LEASE)[0] == (0, "calls", "0")
    budgets.release(one, "a")
    assert budgets.reserve(one, "b", ("0", 0, 1, None), LEASE)[0] is None


def test_a_claim_whose_process_died_is_settled_at_its_worst(budgets: SharedBudgets, clock: Clock) -> None:
    one = [row("one", usd="1", tokens=1000)]
    budgets.reserve(one, "a", ("0.75", 400, 2, 5000), LEASE)
    clock.now += LEASE - 1
    assert budgets.read(["one"]) == [(NOTHING, ("0.75", 400, 2, 5000))]
    clock.now += 1
    assert budgets.read(["one"]) == [(("0.75", 400, 2, 5000), NOTHING)]
    assert budgets.reserve(one, "b", ("0.25", 0, 1, None), LEASE)[0] is None
    budgets.settle(one, "a", ("0.1", 1, 1, 1))  # too late: it counts already
    assert used(budgets, "one") == [("0.75", 400, 2, 5000)]


def test_a_question_that_is_sent_twice_takes_once(budgets: SharedBudgets) -> None:
    one = [row("one", calls=1)]
    for _ in range(3):
        assert budgets.reserve(one, "a", ("0.1", 5, 1, None), LEASE)[0] is None
    assert reserved(budgets, "one") == [("0.1", 5, 1, 0)]
    for _ in range(3):
        budgets.settle(one, "a", ("0.1", 4, 1, 10))
    assert used(budgets, "one") == [("0.1", 4, 1, 10)]


def test_time_is_granted_up_to_what_is_left(budgets: SharedBudgets) -> None:
    one = [row("one", time_us=10 * SECOND), row("other", time_us=4 * SECOND)]
    assert budgets.reserve(one, "a", ("0", 0, 1, 3 * SECOND), LEASE) == (None, 3 * SECOND, [])
    assert budgets.reserve(one, "b", ("0", 0, 1, None), LEASE) == (None, SECOND, [])
    assert budgets.reserve(one, "c", ("0", 0, 1, 1), LEASE)[0] == (1, "time", "0")
    assert reserved(budgets, "one") == [("0", 0, 2, 4 * SECOND)]


def test_warn_and_allow_admit(budgets: SharedBudgets) -> None:
    warning, counting = row("w", calls=1, on_exceeded="warn"), row("c", usd="0.1", on_exceeded="allow")
    worst = ("5", 1, 2, None)
    assert budgets.reserve([warning, counting], "a", worst, LEASE) == (None, None, [(0, "warned", "calls")])
    assert budgets.settle([warning, counting], "a", ("5", 1, 2, 1)) == []
    assert used(budgets, "w", "c") == [("5", 1, 2, 1)] * 2


def test_an_alert_is_given_once_at_its_share(budgets: SharedBudgets) -> None:
    one = [row("one", usd="1", calls=100, alert=80)]
    notices = []
    for number in range(10):
        assert budgets.reserve(one, f"{number}", ("0.1", 0, 1, None), LEASE)[0] is None
        notices.append(budgets.settle(one, f"{number}", ("0.1", 0, 1, 1)))
    assert notices == [[], [], [], [], [], [], [], [(0, "alerted", "usd")], [], []]


def test_money_is_exact_in_every_store(budgets: SharedBudgets) -> None:
    one = [row("one", usd="1000000000")]
    total = Decimal(0)
    for number, text in enumerate(["0.000000999999", "123456.789", "0.000000000001", "999999.999999999999"]):
        budgets.reserve(one, f"{number}", (text, 0, 1, None), LEASE)
        budgets.settle(one, f"{number}", (text, 0, 1, 0))
        total += Decimal(text)
    assert Decimal(used(budgets, "one")[0][0]) == total


def test_forgotten_counts_begin_at_nothing(budgets: SharedBudgets) -> None:
    both = [row("a", calls=1), row("b", calls=1)]
    budgets.reserve(both, "x", ("0", 0, 1, None), LEASE)
    budgets.forget(["a"])
    assert budgets.read(["a", "b"]) == [(NOTHING, NOTHING), (NOTHING, ("0", 0, 1, 0))]


AROUND = [
    row("all", usd="20", tokens=9000, alert=50),
    row("tenant", usd="7.5", calls=60, time_us=40 * SECOND, alert=90),
    row("warning", tokens=2000, time_us=9 * SECOND, on_exceeded="warn", alert=100),
    row("counting", usd="0.000001", on_exceeded="allow"),
    row("call", calls=4, time_us=3 * SECOND),
]


def drive(stores: list[SharedBudgets], clock: Clock | None, seed: int, steps: int) -> list[Any]:
    """Apply the same random events to all stores; return what each found."""
    draw = random.Random(seed)
    found: list[list[Any]] = [[] for _ in stores]
    names: list[tuple[str, list[Any]]] = []
    for number in range(steps):
        if clock is not None:
            clock.now += draw.choice([0, 1, 1000, SECOND, 4 * SECOND])
        kind = draw.choice(["reserve", "reserve", "settle", "settle", "release", "again", "read"])
        if kind == "reserve" or not names:
            around = [each for each in AROUND if draw.random() < 0.7] or AROUND[:1]
            name = f"{number}"
            names.append((name, around))
            usd = f"{draw.randrange(2 * 10**12) / 10**12:.12f}"
            worst = (usd, draw.randrange(800), draw.randrange(1, 4), draw.choice([None, draw.randrange(5 * SECOND)]))
            lease = draw.choice([SECOND, LEASE]) if clock is not None else 3600 * SECOND
            results = [store.reserve(around, name, worst, lease) for store in stores]
        elif kind == "read":
            results = [store.read([each[1] for each in AROUND]) for store in stores]  # type: ignore[misc]
        else:
            name, around = draw.choice(names[-12:])
            actual = (f"{draw.randrange(10**12) / 10**12:.12f}", draw.randrange(400), 1, draw.randrange(SECOND))
            if kind == "settle":
                results = [store.settle(around, name, actual) for store in stores]  # type: ignore[misc]
            elif kind == "release":
                results = [store.release(around, name) for store in stores]  # type: ignore[misc]
            else:
                results = [store.reserve(around, name, ("0.1", 5, 1, SECOND), LEASE) for store in stores]
        for kept, result in zip(found, results, strict=True):
            kept.append((number, kind, result))
    return found


@pytest.mark.parametrize("seed", range(4))
def test_stores_decide_alike(seed: int, redis_server: Redis, tmp_path: Path) -> None:
    clock = Clock()
    stores = [
        SharedBudgets("memory:", "", clock=clock),
        SharedBudgets(redis_server.url, f"{tmp_path.name}:{seed}:", clock=clock),
        in_journal(f"sqlite:{tmp_path / 'journal.db'}", clock),
    ]
    memory, redis, sqlite = drive(stores, clock, seed, 250)
    assert memory == redis
    assert memory == sqlite
    assert {kind for _, kind, _ in memory} == {"reserve", "settle", "release", "again", "read"}
    assert sum(1 for _, kind, result in memory if kind == "reserve" and result[0] is not None) > 5


def test_postgres_decides_as_memory(postgres: Postgres) -> None:
    stores = [SharedBudgets("memory:", ""), in_journal(postgres.new_database())]
    memory, postgres = drive(stores, None, 9, 250)
    assert memory == postgres


@pytest.mark.parametrize("store", ["memory", "redis", "sqlite", "postgres"])
def test_a_budget_holds_under_threads(store: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    match store:
        case "memory":
            budgets = SharedBudgets("memory:", "")
        case "redis":
            budgets = SharedBudgets(request.getfixturevalue("redis_server").url, f"{tmp_path.name}:")
        case "sqlite":
            budgets = in_journal(f"sqlite:{tmp_path / 'journal.db'}")
        case _:
            budgets = in_journal(request.getfixturevalue("postgres").new_database())
    outer, inner = row("outer", usd="1", calls=1000), row("inner", usd="0.8")

    def work(number: int) -> int:
        draw, admitted = random.Random(number), 0
        around = [outer, inner] if number % 2 else [inner, outer]
        for turn in range(15):
            name = f"{number}/{turn}"
            if budgets.reserve(around, name, ("0.05", 10, 1, None), 60 * SECOND)[0] is None:
                admitted += 1
                budgets.settle(around, name, (f"0.0{draw.randrange(10, 50)}", 10, 1, 1))
        return admitted

    with ThreadPoolExecutor(8) as pool:
        admitted = sum(pool.map(work, range(8)))
    (outer_used, outer_reserved), (inner_used, inner_reserved) = budgets.read(["outer", "inner"])
    assert outer_reserved == inner_reserved == NOTHING
    assert outer_used == inner_used
    assert Decimal("0.74") < Decimal(inner_used[0]) <= Decimal("0.8")
    assert admitted == inner_used[2]
