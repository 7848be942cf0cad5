from __future__ import annotations

import asyncio
import multiprocessing
import pickle
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import vesper
from tests.unit.api.given import ASKING, CLOCK, ENGINES, NODES, PAYMENT, basket, written
from tests.unit.api.given import BASKET as GIVEN_BASKET

LINE = {"sku": "ink", "qty": 2, "price": "1.50", "tags": ["new"]}
BASKET = {"lines": [LINE], "kind": "retail", "rates": {"new": "0.5"}, "days": {date(2026, 11, 15): 3}}


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def payment(engine: str) -> vesper.Node:
    return vesper.load("payment_decision", nodes=NODES, engine=engine)


# -- outputs --------------------------------------------------------------------------------------


def test_a_call_gives_the_outputs(payment: vesper.Node) -> None:
    outcome = payment(**PAYMENT)
    assert outcome.ok
    assert outcome
    assert outcome.error is None
    assert outcome.value == {
        "decision": "approve", "fee": Decimal("1.75000"), "risk": 0, "new_balance": Decimal("48.25000"),
    }  # fmt: skip
    assert outcome.value == outcome.unwrap() == payment.call(PAYMENT)
    assert outcome["fee"] == outcome.fee == Decimal("1.75")
    assert repr(outcome) == (
        "<Outcome ok: decision='approve', fee=Decimal('1.75000'), risk=0, new_balance=Decimal('48.25000')>"
    )
    assert "fee" in dir(outcome)


def test_a_misspelt_output_says_what_is_close(payment: vesper.Node) -> None:
    outcome = payment(**PAYMENT)
    with pytest.raises(KeyError, match="no output `fees`; did you mean `fee`"):
        outcome["fees"]
    with pytest.raises(AttributeError, match="no output `fees`; did you mean `fee`"):
        outcome.fees  # noqa: B018
    with pytest.raises(KeyError, match="the outputs are decision, fee, risk, new_balance"):
        outcome["x"]


def test_an_output_that_is_called_like_a_part_of_the_outcome_is_read_by_name(tmp_path: Path, engine: str) -> None:
    outcome = basket(tmp_path, engine)(BASKET)
    assert outcome["value"] == 100
    assert outcome.value == {"total": Decimal("3.50"), "kind": "retail", "days": 3, "value": 100}


def test_every_execution_has_a_name_and_names_sort(payment: vesper.Node) -> None:
    before = datetime.now(UTC)
    outcomes = [payment(**PAYMENT) for _ in range(50)]
    names = [each.trace_id for each in reversed(outcomes)][::-1]  # asked for in another order than they ended
    assert names == [each.trace_id for each in outcomes], "asking twice gives the same"
    assert len(set(names)) == 50
    assert names[0] < names[-1]
    assert [each[:13] for each in names] == sorted(each[:13] for each in names)
    found = uuid.UUID(names[0])
    assert (found.version, found.variant) == (7, uuid.RFC_4122)
    at = datetime.fromtimestamp((found.int >> 80) / 1000, UTC)
    assert before - timedelta(seconds=1) <= at <= datetime.now(UTC)


def test_an_outcome_can_be_pickled(payment: vesper.Node) -> None:
    for outcome in (payment(**PAYMENT), payment(**{**PAYMENT, "amount": 0}), payment(amount=0.1)):
        again: vesper.Outcome[dict[str, Any]] = pickle.loads(pickle.dumps(outcome))
        assert (again.ok, again.value, again.error) == (outcome.ok, outcome.value, outcome.error)
        if outcome.error is not None:
            error = outcome.error.exception()
            same = pickle.loads(pickle.dumps(error))
            assert (type(same), str(same)) == (type(error), str(error)) == (type(error), outcome.error.message)


# -- what is not returned -------------------------------------------------------------------------


def test_a_declared_error(tmp_path: Path, engine: str) -> None:
    node = basket(tmp_path, engine)
    outcome = node({**BASKET, "lines": []})
    error = outcome.error
    assert error is not None
    assert not outcome
    assert outcome.value is None
    assert (error.kind, error.code) == ("declared_error", "empty_basket")
    assert error.fields == {"error_code": "empty_basket", "message": "nothing to buy for retail", "lines": 0}
    assert str(error) == "empty_basket: nothing to buy for retail"
    assert repr(outcome) == "<Outcome declared_error: empty_basket: nothing to buy for retail>"
    for run in (outcome.unwrap, lambda: outcome["total"], lambda: node.call({**BASKET, "lines": []})):
        with pytest.raises(vesper.DeclaredError) as raised:
            run()
        assert raised.value.values == error.fields
        assert isinstance(raised.value, vesper.VesperError)
    with pytest.raises(AttributeError, match="no `total`: the outcome has no outputs"):
        outcome.total  # noqa: B018


def test_a_broken_contract(payment: vesper.Node) -> None:
    error = payment(**{**PAYMENT, "amount": "0"}).error
    assert error is not None
    assert (error.kind, error.code, error.fields) == ("contract_broken", "precondition", {"amount": Decimal(0)})
    assert error.where is not None
    assert error.where.endswith("nodes/payments/payment_decision_v1.vsp:25:7")
    assert str(error) == f"{error.where}: precondition `amount > 0` does not hold: amount is 0"
    with pytest.raises(vesper.ContractBroken, match="does not hold"):
        payment.call({**PAYMENT, "amount": "0"})


def test_a_failure_says_where(tmp_path: Path, engine: str) -> None:
    node = basket(tmp_path, engine)
    error = node({**BASKET, "divisor": 0}).error
    assert error is not None
    assert (error.kind, error.code) == ("failed", "division_by_zero")
    text = Path(node.path).read_text(encoding="utf-8").splitlines()
    line = next(number for number, each in enumerate(text, start=1) if "quot(100, divisor)" in each)
    assert error.where == f"{node.path}:{line}:14"
    assert str(error).endswith(": division_by_zero in `quot(100, divisor)`")
    with pytest.raises(vesper.Raised, match="division_by_zero"):
        node.call({**BASKET, "divisor": 0})


# -- inputs that do not fit -----------------------------------------------------------------------


def test_every_offending_input_is_listed_with_what_was_expected_and_what_came(payment: vesper.Node) -> None:
    outcome = payment(amount=0.1, balance="x", currency="USDX", country=7, flaged=True)
    error = outcome.error
    assert error is not None
    assert (error.kind, error.code, error.where) == ("failed", "bad_input", None)
    assert str(error).splitlines() == [
        "the inputs do not fit payment_decision_v1:",
        '  amount: expected decimal, got float 0.1; give it as text, "0.1", or as a Decimal: a float is not exact',
        '  balance: expected decimal, got str "x", which is malformed',
        '  currency: expected one of USD, EUR, GBP, got str "USDX"; did you mean `USD`?',
        "  country: expected string, got int 7",
        "  user_age_days: missing; expected integer",
        "  flaged: no such input; did you mean `flagged`?",
    ]
    assert [(each.path, each.kind, each.expected, each.got) for each in error.problems][:2] == [
        ("amount", "wrong_type", "decimal", "float 0.1"),
        ("balance", "malformed", "decimal", 'str "x"'),
    ]
    with pytest.raises(vesper.BadInput) as raised:
        payment.call({"amount": 0.1})
    assert [each.path for each in raised.value.problems][:2] == ["amount", "balance"]
    assert "a float is not exact" in str(raised.value)


def test_problems_inside_collections_and_records_have_their_path(tmp_path: Path, engine: str) -> None:
    lines = [LINE, {**LINE, "qty": 2.0, "tags": ["old"], "colour": "red"}, {"sku": "pen"}]
    days = {date(2026, 11, 15): "x", "2026-11-16": True}
    error = basket(tmp_path, engine)(
        lines=lines, kind=None, rates={"new": float("nan"), "older": 1}, days=days, buyer=5
    ).error
    assert error is not None
    assert str(error).splitlines()[1:] == [
        "  lines[1].qty: expected integer, got float 2.0",
        '  lines[1].tags[0]: expected one of new, sale, got str "old"',
        "  lines[1].colour: no such field; the fields are sku, qty, price, tags, note",
        "  lines[2].qty: missing; expected integer",
        "  lines[2].price: missing; expected decimal",
        "  lines[2].tags: missing; expected set<enum[new, sale]>",
        "  kind: expected one of retail, trade, got null",
        "  rates[?]: expected one of new, sale (not a member)",
        '  rates["new"]: expected decimal, got float NaN',
        '  days[2026-11-15]: expected integer, got str "x"',
        "  days[2026-11-16]: expected integer (wrong type)",
        "  buyer: expected optional<Line>, got int 5",
    ]


def test_the_value_of_a_caller_is_not_asked_to_show_itself(payment: vesper.Node) -> None:
    class Loud:
        def __repr__(self) -> str:
            raise AssertionError("somebody called a method")

    error = payment(**{**PAYMENT, "amount": Loud()}).error
    assert error is not None
    assert str(error).endswith("amount: expected decimal, got Loud")


def test_misuse_is_a_type_error(payment: vesper.Node) -> None:
    with pytest.raises(TypeError, match=r"keywords, a dict, a dataclass instance.*not as int"):
        payment(5)
    with pytest.raises(TypeError, match="as keywords or as one object, not both: amount"):
        payment(PAYMENT, amount=3)
    with pytest.raises(TypeError):
        payment({1: 2})
    with pytest.raises(TypeError):
        payment([("amount", 1)])


# -- time, threads, processes, coroutines ---------------------------------------------------------


def test_a_node_that_asks_for_the_time_is_given_it(tmp_path: Path, engine: str) -> None:
    node = vesper.load(written(tmp_path, CLOCK), engine=engine)
    start = datetime(2026, 11, 15, 12, tzinfo=UTC)
    assert node(now=start)["at"] == start
    assert node({"add": 1}, now=start).value == {"at": start, "add": 1}
    assert node('{"add": 1}', now="2026-11-15T12:00:00Z").value == {"at": start, "add": 1}
    assert node(now=start.astimezone(timezone(timedelta(hours=5))))["at"] == start
    assert node.call({}, now=start) == {"at": start, "add": 0}
    assert abs(node()["at"] - datetime.now(UTC)) < timedelta(seconds=60)
    with pytest.raises(TypeError, match="now"):
        node.call({})
    with pytest.raises(ValueError, match="give a datetime with a time zone"):
        node(now=datetime(2026, 11, 15))  # noqa: DTZ001
    with pytest.raises(ValueError, match="give a datetime with a time zone"):
        node(now=5)


def test_a_function_has_no_start(payment: vesper.Node) -> None:
    error = payment(**PAYMENT, now=datetime.now(UTC)).error
    assert error is not None
    assert error.problems[0].path == "now"


def test_eight_threads_call_one_node(payment: vesper.Node) -> None:
    barrier = threading.Barrier(8)

    def work(number: int) -> list[Any]:
        barrier.wait()
        return [payment(**{**PAYMENT, "amount": f"{number}.{i:02}"})["fee"] for i in range(1, 50)]

    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(work, range(8)))
    for number, fees in enumerate(together):
        assert fees == [Decimal(f"{number}.{i:02}") * Decimal("0.029") + Decimal("0.30") for i in range(1, 50)]


def test_threads_that_ask_for_a_name_at_once_get_the_same(payment: vesper.Node) -> None:
    for _ in range(20):
        outcome = payment(**PAYMENT)
        barrier = threading.Barrier(8)

        def ask(outcome: Any = outcome, barrier: threading.Barrier = barrier) -> str:
            barrier.wait()
            return str(outcome.trace_id)

        with ThreadPoolExecutor(8) as pool:
            assert len({each.result() for each in [pool.submit(ask) for _ in range(8)]}) == 1


def test_a_forked_process_goes_on_with_the_node(payment: vesper.Node) -> None:
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def child() -> None:
        outcome = payment(**PAYMENT)
        sender.send((outcome["fee"], outcome.trace_id))

    processes = [context.Process(target=child) for _ in range(2)]
    for each in processes:
        each.start()
    answers = [receiver.recv() for _ in processes]
    for each in processes:
        each.join(30)
        assert each.exitcode == 0
    assert [fee for fee, _ in answers] == [Decimal("1.75000")] * 2
    assert len({name for _, name in answers}) == 2


def test_coroutines(tmp_path: Path, engine: str, payment: vesper.Node) -> None:
    long = basket(tmp_path, engine)
    threads: list[int] = []

    async def run() -> None:
        here = threading.get_ident()
        assert (await payment.arun(**PAYMENT))["decision"] == "approve"
        assert not (await payment.arun({**PAYMENT, "amount": 0})).ok
        assert (await long.arun(BASKET))["total"] == Decimal("3.50")
        with pytest.raises(TypeError, match="not both"):
            await payment.arun(PAYMENT, amount=1)
        for node, inputs in ((payment, PAYMENT), (long, BASKET)):
            watched = _watched(node, threads)
            await type(node).arun(watched, inputs)
        assert threads[0] == here, "a short node runs where it is"
        assert threads[1] != here, "one whose work grows with its inputs runs in a thread"

    asyncio.run(run())


def _watched(node: vesper.Node, threads: list[int]) -> Any:
    """The node, noting the thread in which it is called."""

    class Watched:
        _is_short = node._is_short
        _entries = node._entries

        def __call__(self, *given: Any, **inputs: Any) -> Any:
            threads.append(threading.get_ident())
            return node(*given, **inputs)

    return Watched()


# -- limits ---------------------------------------------------------------------------------------


def test_limits_are_kept(tmp_path: Path, engine: str) -> None:
    path = written(tmp_path, GIVEN_BASKET)
    lines = [LINE] * 100
    assert vesper.load(path, engine=engine)({**BASKET, "lines": lines}).ok
    node = vesper.load(path, engine=engine, limits=vesper.Limits(fuel=50))
    assert node.limits == vesper.Limits(fuel=50)
    assert node(BASKET).ok
    for outcome in (node({**BASKET, "lines": lines}), node(**{**BASKET, "lines": lines}), node(_Given(lines))):
        assert outcome.error is not None
        assert (outcome.error.kind, outcome.error.code) == ("limit_hit", "fuel")
        assert str(outcome.error) == "limit hit: fuel; vesper.load(…, limits=vesper.Limits(…)) can give more"
    with pytest.raises(vesper.Stopped, match="limit hit: fuel") as stopped:
        node.call({**BASKET, "lines": lines})
    assert stopped.value.kind == "limit_hit"
    run = node.start({**BASKET, "lines": lines})
    assert run.outcome is not None
    assert run.outcome.error is not None
    assert run.outcome.error.kind == "limit_hit"


@dataclass
class _Given:
    lines: list[Any]
    kind: str = "retail"
    rates: dict[str, str] = field(default_factory=dict)
    days: dict[date, int] = field(default_factory=dict)


def test_limits_of_another_kind_are_misuse() -> None:
    with pytest.raises(TypeError, match=r"limits are vesper.Limits\(fuel=…, seconds=…, memory=…\), not int"):
        vesper.load("payment_decision", nodes=NODES, limits=50)  # type: ignore[arg-type]


# -- executions -----------------------------------------------------------------------------------


def test_an_execution_asks_and_its_caller_answers(tmp_path: Path, engine: str) -> None:
    node = vesper.load(written(tmp_path, ASKING), engine=engine)
    run = node.start({"event_id": "e1"})
    assert repr(run.outcome) == "None"
    request = run.request
    assert request is not None
    assert (request.path, request.effect) == ("name", "database_query")
    assert repr(run) == "<Execution of greet_v1: waits for name>"
    assert run.answer("Ann") is None
    ended = run.outcome
    assert ended is not None
    assert ended["text"] == "hello Ann"
    with pytest.raises(ValueError, match="has ended"):
        run.answer("again")


def test_what_is_asked_for_can_fail(tmp_path: Path, engine: str) -> None:
    node = vesper.load(written(tmp_path, ASKING), engine=engine)
    run = node.start('{"event_id": "e1"}')
    run.fail("not_found")
    assert run.outcome is not None
    assert run.outcome.error is not None
    assert (run.outcome.error.kind, run.outcome.error.code) == ("declared_error", "not_found")
    run = node.start({"event_id": "e1"})
    run.answer(5)
    assert run.outcome is not None
    assert run.outcome.error is not None
    assert (run.outcome.error.kind, run.outcome.error.code) == ("failed", "bad_response")


def test_an_execution_of_bad_inputs_has_ended(tmp_path: Path, engine: str) -> None:
    node = vesper.load(written(tmp_path, ASKING), engine=engine)
    for given in ({"event_id": 5}, "no JSON"):
        run = node.start(given)
        assert run.request is None
        assert run.outcome is not None
        assert run.outcome.error is not None
        assert run.outcome.error.code == "bad_input"


def test_a_pure_node_can_be_started_too(payment: vesper.Node) -> None:
    run = payment.start(PAYMENT)
    assert run.outcome is not None
    assert run.outcome["decision"] == "approve"
