"""Two engines on one run of payment_handler: a Host, a database, a journal and a counting provider.

The direct engine is wrong, fails or is slow; a card is charged once, the caller gets Python's outcome, and the journal
can be read and replayed.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.support.nodes import compiled
from tests.support.web import FakeStripe
from tests.unit.migration.support.pairs import KEY, KINDS, Both, Noting, Step, Wrong, asks, at, at_end, gives
from vesper.config.settings import config_from
from vesper.engines.engine import Blocked, Done, Request
from vesper.engines.outcome import DeclaredError, EngineFault, LimitHit, Returned
from vesper.engines.registry import ENGINES
from vesper.host.host import Host
from vesper.host.in_doubt import InDoubt
from vesper.host.prepared import Ran
from vesper.journal.entry import Entry, Kind
from vesper.journal.journal import Status
from vesper.migration.compare.reports import Agreement, Disagreement, Fault, Lost, Report
from vesper.migration.compare.transcript import Transcript
from vesper.migration.shadow.journal_replay import follow
from vesper.migration.shadow.routed_programs import RecordedProgram, follow_transcript

ROOT = Path(__file__).parents[4]
NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
API_KEY = "sk_test_0123456789abcdef"
TABLE = """CREATE TABLE transactions (transaction_id text PRIMARY KEY, order_id text, user_id text, amount text,
    status text, idempotency_key text UNIQUE, created_at text)"""
DEADLINE = 1.0


@dataclass
class Shop:
    host: Host
    stripe: FakeStripe
    folder: Path
    both: Both
    orders: Iterator[int]

    def pay(self, program: Any, order: str, **changed: Any) -> Ran:
        return self.host.run(self.prepared(program), self.inputs(order, **changed), NOW)

    def prepared(self, program: Any, engine: str = "interp") -> Any:
        own = self.host.prepare(self.both.compiled, self.both.python, "python")
        return replace(own, program=program, engine=engine)

    def inputs(self, order: str, **changed: Any) -> dict[str, object]:
        return {"order_id": order, "user_id": "cus_7", "amount": "99.99", "idempotency_key": f"k {order}", **changed}

    def new_order(self) -> str:
        return f"order-{next(self.orders)}"

    def entries(self, execution: str) -> list[Entry]:
        return [each.entry for each in self.host.journal.read(execution).entries]

    def charges(self, order: str) -> int:
        found = self.stripe.counts()["charges_by_key"]
        assert isinstance(found, dict)
        return int(found.get(order, 0))

    def rows(self, order: str) -> list[Any]:
        with closing(sqlite3.connect(self.folder / "shop.db")) as connection:
            sql = "SELECT transaction_id, amount, status FROM transactions WHERE order_id = ?"
            return connection.execute(sql, (order,)).fetchall()

    def state(self, order: str) -> str:
        with closing(sqlite3.connect(self.folder / "shop.db")) as connection:
            ((found,),) = connection.execute("SELECT state FROM vesper_states WHERE entity = ?", (order,)).fetchall()
            return str(found)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    folder = tmp_path_factory.mktemp("shop")
    with closing(sqlite3.connect(folder / "shop.db")) as connection:
        connection.execute(TABLE)
    with pytest.MonkeyPatch.context() as patch, FakeStripe(api_key=API_KEY) as stripe:
        patch.setenv("VESPER_SECRET_STRIPE_API_KEY", API_KEY)
        auth = {"header": "Authorization", "value": "Bearer {secret:stripe_api_key}"}
        settings = {
            "grants": [{"nodes": ["payment_handler"], "allow": ["database.*", "state.*", "network.*", "secrets.*"]}],
            "providers": {"stripe": {"base_url": stripe.url, "allow_private_addresses": True, "auth": auth}},
            "databases": {"main": {"dsn": f"sqlite:{folder / 'shop.db'}"}},
            "journal": {"dsn": f"sqlite:{folder / 'journal.db'}"},
            "recovery": {"enabled": False},
        }
        with Host(config_from(settings, folder)) as host:
            both = Both.of(compiled(ROOT / "nodes/payments/payment_handler_v1.vsp"))
            yield Shop(host, stripe, folder, both, count(1))


def assert_paid_once(shop: Shop, order: str, ran: Ran) -> None:
    """Check that outcome, effects and journal are those of one payment by Python."""
    assert isinstance(ran.outcome, Returned), ran.outcome
    ((charge, amount, status),) = shop.rows(order)
    assert shop.charges(order) == 1
    assert shop.stripe.charges[charge]["amount"] == 9999
    assert (amount, status, shop.state(order)) == ("99.99", "succeeded", "paid")
    told = dict(ran.outcome.value)
    assert (told["transaction_id"], str(told["amount_charged"]), told["is_repeat"]) == (charge, "99.99", False)
    assert_readable(shop, ran.execution)


def assert_readable(shop: Shop, execution: str) -> None:
    """Check the hash chain, and that both engines replay the records."""
    for name in ENGINES:
        program = shop.both.python if name == "python" else shop.both.direct
        assert follow(program, shop.entries(execution)).difference is None, name


def handoffs(shop: Shop, execution: str) -> list[Entry]:
    return [each for each in shop.entries(execution) if each.kind is Kind.HANDOFF]


# -- agreement ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_payment_on_two_engines_is_one_payment(shop: Shop, kind: str) -> None:
    order, watch = shop.new_order(), Noting()
    ran = shop.pay(shop.both.program(kind, watch), order)
    assert_paid_once(shop, order, ran)
    assert handoffs(shop, ran.execution) == []
    if kind == "all":
        assert watch.reports == []
        assert len(watch.prefixes) == 4, "each request that changes something is asked about"
        return
    (found,) = watch.reports
    assert isinstance(found, Agreement)
    assert found.note.settled == (
        "begin: ok",
        "call_stripe_api: ok",
        "record: ok",
        "settle: ok",
        "validate_request: ok",
    )
    assert len(found.note.prefixes) == 4
    if kind == "prefixes":
        assert tuple(watch.prefixes) == found.note.prefixes


@pytest.mark.parametrize("kind", KINDS)
def test_a_card_that_is_declined_is_declined_once(shop: Shop, kind: str) -> None:
    order, watch = shop.new_order(), Noting()
    ran = shop.pay(shop.both.program(kind, watch), order, user_id="declined")
    assert isinstance(ran.outcome, DeclaredError)
    assert (shop.charges(order), shop.rows(order), shop.state(order)) == (0, [], "payment_failed")
    assert_readable(shop, ran.execution)
    notes = [each.note for each in watch.reports if isinstance(each, Agreement)]
    assert [(each.ending, "call_stripe_api: http_402" in each.settled) for each in notes] == [
        ("error card_declined", True)
    ] * (kind != "all")


def test_a_prefix_without_evidence_is_compared_and_the_rest_with_it(shop: Shop) -> None:
    """Python starts at the charge, on the earlier completions."""

    class UpToTheCharge(Noting):
        def trusts_prefix(self, name: str) -> bool:
            super().trusts_prefix(name)
            return len(self.prefixes) == 1

    order, watch = shop.new_order(), UpToTheCharge()
    ran = shop.pay(shop.both.program("guarded", watch), order)
    assert_paid_once(shop, order, ran)
    (found,) = watch.reports
    assert isinstance(found, Agreement)
    assert watch.prefixes == list(found.note.prefixes[:2]), "once they are compared nobody asks for trust"


# -- a direct engine that goes wrong --------------------------------------------------------------


class Panic(BaseException):
    pass


def _raises(error: BaseException) -> Callable[[Any], Step]:
    def bend(_: Any) -> Step:
        raise error

    return bend


def _late(request: Request) -> Step:
    time.sleep(DEADLINE * 1.1)
    return Blocked((request,))


def _ends(_: Request) -> Step:
    value: dict[str, Any] = {
        "transaction_id": "ch_x",
        "status": "completed",
        "amount_charged": 1,
        "is_repeat": False,
        "at": NOW,
    }
    return Done(Returned(value), ())


def _another_body(request: Request) -> Step:
    body = request.arguments["body"]
    assert isinstance(body, dict)
    return asks(request, arguments={**request.arguments, "body": {**body, "amount": 1}})


def _another_entity(request: Request) -> Step:
    return asks(request, arguments={**request.arguments, "entity": "another order"})


def _another_query(request: Request) -> Step:
    (name, _), *_rest = request.arguments.items()
    return asks(request, arguments={**request.arguments, name: {"key": "another"}})


def _once_more(done: Done) -> Step:
    request = Request(9, "settle", "state_transition", "txn", {}, {"entity": "another order"})
    return Blocked((request,))


LIES = {
    "another read": (at("validate_request", _another_query), "request", False),
    "another entity": (at("begin", _another_entity), "request", True),
    "another amount": (at("call_stripe_api", _another_body), "request", True),
    "another key": (at("call_stripe_api", lambda asked: asks(asked, key="another")), "request", True),
    "another step": (at("call_stripe_api", lambda asked: asks(asked, path="record")), "request", True),
    "another class": (at("call_stripe_api", lambda asked: asks(asked, effect_class="unsafe")), "request", True),
    "ends before the charge": (at("call_stripe_api", _ends), "request", True),
    "ends before the record": (at("record", _ends), "request", True),
    "asks once more": (at_end(_once_more), "request", True),
    "another answer": (at_end(lambda done: gives(done, transaction_id="ch_x")), "outcome", False),
    "an error instead": (at_end(lambda done: replace(done, outcome=DeclaredError({}))), "outcome", False),
}


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("kind", ["paired", "guarded"])
def test_a_lie_is_caught_before_it_does_anything(shop: Shop, kind: str, lie: str) -> None:
    bend, difference, is_effect = LIES[lie]
    order, watch = shop.new_order(), Noting()
    ran = shop.pay(shop.both.program(kind, watch, bend), order)
    assert_paid_once(shop, order, ran)
    (found,) = watch.reports
    assert isinstance(found, Disagreement)
    assert (found.difference.kind, found.difference.is_effect) == (difference, is_effect), found.difference
    assert found.execution == ran.execution
    assert found.transcript.inputs == shop.inputs(order)
    (handoff,) = handoffs(shop, ran.execution)
    assert (handoff.body["before"], handoff.body["engine"]) == ("interp", "python")
    assert str(handoff.body["why"]).startswith(f"the engines differ: {difference} ")


BREAKS = {
    "raises at the start": (at("validate_request", _raises(ValueError("no"))), "it raised ValueError: no"),
    "raises before the charge": (at("call_stripe_api", _raises(ValueError("no"))), "it raised ValueError: no"),
    "raises after the charge": (at("record", _raises(ValueError("no"))), "it raised ValueError: no"),
    "raises at the end": (at_end(_raises(ValueError("no"))), "it raised ValueError: no"),
    "panics after the charge": (at("record", _raises(Panic("oh"))), "it raised Panic: oh"),
    "is at fault": (at("record", lambda _: Done(EngineFault("oh"), ())), "it is at fault: oh"),
    "dawdles after the charge": (at("record", _late), f"it computed for more than {DEADLINE:g} s"),
    "hits a limit of nobody": (
        at("record", lambda _: Done(LimitHit("disk"), ())),
        "it hit a limit on disk, which is not its own",
    ),
    "asks for two things": (
        at("record", lambda asked: Blocked((asked, asked))),
        "it raised ValueError: the requests of a wave are not numbered in order",
    ),
}


@pytest.mark.parametrize("fault", BREAKS)
@pytest.mark.parametrize("kind", KINDS)
def test_python_takes_over_after_a_fault_without_repetition(shop: Shop, kind: str, fault: str) -> None:
    bend, what = BREAKS[fault]
    order, watch = shop.new_order(), Noting()
    deadline = DEADLINE if "dawdles" in fault else None
    ran = shop.pay(shop.both.program(kind, watch, bend, deadline=deadline), order)
    assert_paid_once(shop, order, ran)
    (found,) = watch.reports
    assert isinstance(found, Fault)
    assert (found.what, found.execution) == (what, ran.execution)
    (handoff,) = handoffs(shop, ran.execution)
    assert handoff.body["why"] == f"the direct engine broke: {what}"
    kinds = [str(each.kind) for each in shop.entries(ran.execution)]
    assert kinds.count("INTENT") == 4, "each thing was asked for once"


def test_a_limit_of_the_caller_is_no_fault(shop: Shop) -> None:
    order, watch = shop.new_order(), Noting()
    ran = shop.pay(shop.both.program("all", watch, at("record", lambda _: Done(LimitHit("time"), ()))), order)
    assert_paid_once(shop, order, ran)
    assert watch.reports == [Lost("the limit on time was hit")]


@pytest.mark.parametrize("lie", ["another answer", "an error instead", "ends before the record"])
def test_a_lie_on_a_trusted_prefix_is_caught_at_the_end(shop: Shop, lie: str) -> None:
    """The requests that were performed for the direct engine alone were right: Python continues from there."""
    bend, difference, is_effect = LIES[lie]
    order, watch = shop.new_order(), Noting()
    ran = shop.pay(shop.both.program("prefixes", watch, bend), order)
    (found,) = watch.reports
    assert isinstance(found, Disagreement)
    assert (found.difference.kind, found.difference.is_effect) == (difference, is_effect)
    assert_paid_once(shop, order, ran)
    assert len(handoffs(shop, ran.execution)) == 1


@pytest.mark.parametrize("lie", ["another amount", "another key"])
def test_a_wrongly_performed_request_is_in_doubt(shop: Shop, lie: str) -> None:
    """It is not performed again, and the run waits for a person's resolution."""
    order, watch = shop.new_order(), Noting()
    with pytest.raises(InDoubt, match="call_stripe_api: it was performed, and the engine that should go on") as caught:
        shop.pay(shop.both.program("prefixes", watch, LIES[lie][0]), order)
    execution = caught.value.execution
    (found,) = watch.reports
    assert isinstance(found, Disagreement)
    assert (found.difference.kind, found.difference.is_effect) == ("request", True)
    assert len([each for each in shop.stripe.got if each.body.find(order.encode()) >= 0]) == 1, "it was sent once"
    kinds = [f"{each.kind} {each.path}".strip() for each in shop.entries(execution)]
    assert kinds[-3:] == ["HANDOFF", "DIVERGENCE call_stripe_api", "IN_DOUBT call_stripe_api"]
    assert shop.host.journal.read(execution).summary.status is Status.IN_DOUBT
    ((charge, _, _),) = shop.rows(order)
    answer = {"id": charge, "status": "succeeded"}
    shop.host.journal.resolve(execution, "call_stripe_api", answer, None, "kim", "seen in the dashboard")
    recovered = shop.host.resume(execution)
    assert isinstance(recovered.outcome, Returned), recovered
    assert recovered.outcome.value["transaction_id"] == charge
    assert handoffs(shop, execution)[-1].body["engine"] == "python", "the engine that it was taken from is not asked"
    assert len(shop.rows(order)) == 1


def test_a_change_after_a_differing_read_is_in_doubt(shop: Shop) -> None:
    """Python cannot read the earlier state any more: it would find the pending charge."""
    order, watch = shop.new_order(), Noting()
    with pytest.raises(InDoubt, match="begin: it was performed"):
        shop.pay(shop.both.program("prefixes", watch, LIES["another read"][0]), order)
    (found,) = watch.reports
    assert isinstance(found, Disagreement)
    assert (found.difference.where, found.difference.is_effect) == ("validate_request: bind.key", True)
    assert shop.charges(order) == 1


def test_a_read_that_nothing_followed_is_read_again_by_python(shop: Shop) -> None:
    """The direct engine made another read and failed: nothing was changed yet, and Python starts over."""

    def bend(step: Step) -> Step:
        if isinstance(step, Blocked) and step.requests[0].path == "begin":
            raise ValueError("no")
        return LIES["another read"][0](step)

    order, watch = shop.new_order(), Noting()
    ran = shop.pay(shop.both.program("all", watch, bend), order)
    assert_paid_once(shop, order, ran)
    assert [type(each) for each in watch.reports] == [Disagreement, Fault]
    reads = [each for each in shop.entries(ran.execution) if each.path == "validate_request"]
    assert [each.body["arguments"]["bind"]["key"] for each in reads] == ["another", f"k {order}"]  # type: ignore[index]


def test_a_charge_that_python_would_not_have_made_is_in_doubt(shop: Shop) -> None:
    """The direct engine accepts a card that Python knows to be declined: the charge must not be forgotten."""
    order, watch = shop.new_order(), Noting()

    class Trusting(Wrong):
        def start_pathed(self, inputs: Any, *rest: Any, **more: Any) -> Any:
            return super().start_pathed({**inputs, "order_id": str(inputs["order_id"]).strip()}, *rest, **more)

    program = shop.both.program("prefixes", watch)
    program._pair = replace(program._pair, direct=Trusting(shop.both.direct, lambda step: step))
    with pytest.raises(InDoubt, match="begin: it was performed, and the engine that should go on ends without it"):
        shop.pay(program, f" {order}")  # Python: an order id has no spaces around it
    (found,) = watch.reports
    assert isinstance(found, Disagreement)
    assert found.difference.is_effect
    assert found.transcript.exchanges == ()


# -- the Host stops it ----------------------------------------------------------------------------


def test_recorded_executions_are_followed(shop: Shop) -> None:
    order, written = shop.new_order(), list[Any]()
    program = RecordedProgram(shop.both.python, lambda *told: written.append(told))
    ran = shop.host.run(shop.prepared(program, "python"), shop.inputs(order), NOW)
    assert_paid_once(shop, order, ran)
    ((transcript, took_ns, name),) = written
    assert isinstance(transcript, Transcript)
    assert (name, len(transcript.exchanges), took_ns > 0) == (ran.execution, 5, True)
    requests = len(shop.stripe.got)
    found = follow_transcript(shop.both.direct, transcript, shop.both.comparator, KEY)
    assert isinstance(found, Agreement), found
    assert len(shop.stripe.got) == requests, "a follower performs nothing"


def test_a_denied_run_is_no_evidence(shop: Shop) -> None:
    order, written, watch = shop.new_order(), list[Any](), Noting()
    for program in (
        RecordedProgram(shop.both.python, lambda *told: written.append(told)),
        shop.both.program("paired", watch),
    ):
        found, refused = shop.prepared(program), {"network.http_client.stripe": "somebody"}
        native = partial(shop.host._native_node, found.compiled, found.plans, found.handles, refused)
        prepared = replace(found, refused=refused, native=native)
        assert shop.host.run(prepared, shop.inputs(order), NOW).outcome.kind == "denied"
    assert [type(told[0]) for told in written] == [Transcript]
    assert written[0][0].outcome.kind == "denied"
    assert watch.reports == []


@pytest.mark.parametrize("kind", KINDS)
def test_coroutines_and_a_cancelled_caller(shop: Shop, kind: str) -> None:
    """Cancelled once the charge is pending, a run continues to its end: compared, and paid once."""
    order, watch = shop.new_order(), Noting()
    may_go, reported = threading.Event(), threading.Event()

    def report(found: Report) -> None:
        watch.reports.append(found)
        reported.set()

    watch.report = report  # type: ignore[method-assign, assignment]

    async def leave() -> None:
        asked, loop = asyncio.Event(), asyncio.get_running_loop()

        def waits(request: Request) -> Step:
            loop.call_soon_threadsafe(asked.set)
            assert may_go.wait(30)
            raise ValueError("and breaks")

        program = shop.both.program(kind, watch, at("record", waits))
        task = asyncio.create_task(shop.host.arun(shop.prepared(program), shop.inputs(order), NOW))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(leave())
    may_go.set()
    assert reported.wait(30)
    while (summary := shop.host.journal.find(limit=1)[0]).status is not Status.ENDED:
        time.sleep(0.001)
    assert shop.charges(order) == 1
    assert [type(each) for each in watch.reports] == [Fault]
    assert_readable(shop, summary.execution)


def test_nothing_sensitive_is_in_clear(shop: Shop) -> None:
    """The handler's `user_id` is sensitive: messages of an engine stay out of reports and logs."""
    order, watch = shop.new_order(), Noting()

    def blurts(request: Request) -> Step:
        raise ValueError("cus_7_with_a_secret")

    program = shop.both.program("all", watch, at("record", blurts), is_sensitive=True)
    ran = shop.pay(program, order)
    assert_paid_once(shop, order, ran)
    (found,) = watch.reports
    assert isinstance(found, Fault)
    assert found.what == "it raised ValueError"
    stored = b"".join(each.read_bytes() for each in shop.folder.glob("journal.db*"))
    assert b"cus_7_with_a_secret" not in stored


# -- on what the journal has ----------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_that_does_not_do_what_the_journal_has_is_found(shop: Shop, engine: str) -> None:
    order = shop.new_order()
    entries = shop.entries(shop.pay(shop.both.python, order).execution)
    program = shop.both.python if engine == "python" else shop.both.direct

    def changed(kind: Kind, path: str, **body: Any) -> list[Entry]:
        return [
            replace(each, body={**each.body, **body}) if (each.kind, each.path) == (kind, path) else each
            for each in entries
        ]

    found = follow(program, entries)
    assert (found.difference, found.outcome) == (None, follow(shop.both.python, entries).outcome)
    assert isinstance(found.outcome, Returned)
    settled = next(each for each in entries if (each.kind, each.path) == (Kind.RESULT, "settle"))
    for wrong, where in (
        (changed(Kind.END, "", value={}), "the outcome: the run came to returned, and this engine to another value"),
        (changed(Kind.END, "", outcome="declared_error"), "the outcome: the run came to declared_error, and this"),
        (
            changed(Kind.INTENT, "record", arguments={}),
            "record: the run asks for record (database_write), and this engine asks for record (database_write) other",
        ),
        (changed(Kind.RESULT, "call_stripe_api", value={"id": "x", "status": "pending"}), "record: the run asks for "),
        ([each for each in entries if each.path != "settle"], "settle: the run asks for nothing, and this engine asks"),
        ([*entries[:-1], replace(settled, path="more"), entries[-1]], "more: the run asks for more (state_transition"),
    ):
        told = follow(program, wrong).difference
        assert told is not None
        assert told.startswith(where), told
    with pytest.raises(ValueError, match="only a run that has ended"):
        follow(program, entries[:-1])
