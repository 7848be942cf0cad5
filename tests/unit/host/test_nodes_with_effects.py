"""Every node of this repository that asks for effects, for real: SQLite and Postgres, Redis, providers on loopback,
files; on both engines, in success and in failure.

A scenario is played on each engine in a world of its own. After that each engine is fed the records of the other, and
must agree; and the journals of the two are the same but for ids and times.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.support.nodes import worked_nodes
from tests.support.servers import Postgres, Redis
from tests.support.web import closes, hangs, says
from tests.unit.host.tables import empty_tables, make_tables
from tests.unit.host.world import ROOT, World, answers, ok, status
from vesper.compiler import compile_file
from vesper.engines.registry import ENGINES
from vesper.journal.entry import Kind

SCENARIOS: dict[str, tuple[tuple[str, ...], Callable[[World], None]]] = {}


def scenario(*nodes: str) -> Callable[[Callable[[World], None]], None]:
    """Of these nodes."""

    def add(play: Callable[[World], None]) -> None:
        SCENARIOS[play.__name__] = (nodes, play)

    return add


@pytest.fixture(scope="module")
def shop_in_postgres(postgres: Postgres) -> str:
    dsn = postgres.new_database()
    make_tables(dsn)
    return dsn


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_scenario(
    kind: str,
    name: str,
    tmp_path: Path,
    redis_server: Redis,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    journals = {}
    for engine in ENGINES:
        folder = tmp_path / engine
        folder.mkdir()
        if kind == "sqlite":
            dsn = f"sqlite:{folder / 'shop.db'}"
            make_tables(dsn)
        else:
            dsn = request.getfixturevalue("shop_in_postgres")
            empty_tables(dsn)
        url = redis_server.url.removesuffix("/0") + "/9"  # emptied for each world: no other test uses this one
        with World(folder, dsn, url, engine, monkeypatch) as world:
            SCENARIOS[name][1](world)
            assert world.outcomes
            world.assert_all_engines_agree()
            journals[engine] = world.journals()
    first, *others = journals.values()
    for other in others:
        assert other == first


def test_no_node_is_left_out() -> None:
    """Every node with effects is in a scenario that succeeds and in one that does not.

    Nodes around models have answers in their cases: tests/integration/differential runs those on both engines.
    """
    with_effects = set()
    for path in worked_nodes():
        compiled, _ = compile_file(path)
        assert compiled is not None
        place = str(path.relative_to(ROOT / "nodes").with_suffix(""))
        if not compiled.node.is_pure() and not place.startswith(("agents/", "tools/", "support/ticket_summary")):
            with_effects.add(place)
    played = [node for nodes, _ in SCENARIOS.values() for node in nodes]
    assert len(with_effects) == 20
    assert {node for node in with_effects if played.count(node) < 2} == set()


# -- access ---------------------------------------------------------------------------------------

KEY_ISSUE = "access/api_key_issue_v1"


def _gateway_path(number: int) -> str:
    return f"/gateway/keys/00000000-0000-4000-8000-{number:012}"


@scenario(KEY_ISSUE)
def a_key_is_issued_and_registered_with_the_gateway(world: World) -> None:
    world.on(_gateway_path(1), ok())
    world.redis.set("vesper:cache:key_lists:ann", '"old"')
    outcome = world.run(KEY_ISSUE, owner="ann", scopes=["read", "write"])
    assert outcome.ok, outcome.error
    (row,) = world.rows("SELECT key_id, owner, hash FROM api_keys")
    assert row[:2] == (outcome["key_id"], "ann")
    assert outcome["key"] not in str(row)
    (got,) = world.web.got
    assert got.headers["authorization"] == "Bearer gw_0123456789abcdef"
    assert got.headers["idempotency-key"] == outcome["key_id"]
    assert world.redis.get("vesper:cache:key_lists:ann") is None


@scenario(KEY_ISSUE)
def a_gateway_that_refuses_leaves_no_key_behind(world: World) -> None:
    world.on(_gateway_path(1), status(403))
    outcome = world.run(KEY_ISSUE, owner="ann", scopes=["read"])
    assert outcome.error.code == "gateway_refused"
    assert world.rows("SELECT * FROM api_keys") == []
    assert ("INTENT forget", "RESULT forget") == tuple(world.kinds(outcome)[-3:-1])


@scenario(KEY_ISSUE)
def a_gateway_that_closes_leaves_no_key_behind(world: World) -> None:
    world.on(_gateway_path(1), closes)
    assert world.run(KEY_ISSUE, owner="ann", scopes=["read"]).error.code == "gateway_refused"
    assert world.rows("SELECT * FROM api_keys") == []
    assert world.run(KEY_ISSUE, owner="ann", scopes=[]).error.code == "no_scopes"


@scenario(KEY_ISSUE)
def a_gateway_that_breaks_is_no_refusal(world: World) -> None:
    world.on(_gateway_path(1), status(500))
    outcome = world.run(KEY_ISSUE, owner="ann", scopes=["read"])
    assert (outcome.error.kind, outcome.error.code) == ("failed", "http_500")


# -- data -----------------------------------------------------------------------------------------

CONTACT = "data/contact_notice_v1"


@scenario(CONTACT)
def a_changed_contact_is_told_under_the_names_of_the_other_system(world: World) -> None:
    outcome = world.run(CONTACT, event_id="e1", full_name="Ada", country="germany")
    assert outcome.ok, outcome.error
    told = {"version": 2, "isTest": False, "Full Name": "Ada", "countryCode": "DE", "score": None}
    assert world.events("contacts") == [told]


@scenario(CONTACT)
def a_changed_contact_is_not_told_where_the_topic_is_no_stream(world: World) -> None:
    world.redis.set("vesper:events:contacts", "no stream")
    outcome = world.run(CONTACT, event_id="e1", full_name="Ada", country="other")
    assert not outcome.ok
    assert [path for path, _ in world.codes(outcome)] == ["notice"]


# -- finance --------------------------------------------------------------------------------------

RATES = "finance/exchange_rates_v1"
EXPORT = "finance/statement_export_v1"
REFUND = "payments/refund_v1"


@scenario(RATES)
def a_rate_comes_from_the_bank_and_then_from_the_cache(world: World) -> None:
    world.on("/bank/rates/EUR/USD", says({"rate": 1.0855}))
    first = world.run(RATES, base="EUR", quote="USD", amount="10")
    assert (first["source"], first["converted"]) == ("bank", Decimal("10.86"))
    assert world.web.got[0].target == "/bank/rates/EUR/USD?places=6"
    again = world.run(RATES, base="EUR", quote="USD", amount="20")
    assert (again["source"], again["rate"]) == ("cache", first["rate"])
    assert len(world.web.got) == 1
    assert len(world.rows("SELECT * FROM last_rates")) == 1
    assert world.run(RATES, base="EUR", quote="EUR")["source"] == "same"


@scenario(RATES)
def a_bank_that_is_away_is_tried_three_times_and_the_last_rate_stands(world: World) -> None:
    world.put(
        "last_rates",
        {"pair": "EUR/USD", "rate": "1.1", "noted_at": "2026-11-13T00:00:00.000000Z"},
        {"pair": "EUR/USD", "rate": "1.2", "noted_at": "2026-11-14T00:00:00.000000Z"},
    )
    world.on("/bank/rates/EUR/USD", status(503))
    outcome = world.run(RATES, base="EUR", quote="USD", amount="100")
    assert (outcome["source"], outcome["converted"]) == ("last_known", Decimal("120.00"))
    assert len(world.web.got) == 3
    assert world.decisions(outcome) == ["retry", "retry", "give_up"]
    assert len(world.delays(outcome)) == 2


@scenario(RATES)
def a_bank_that_comes_back_is_asked_again(world: World) -> None:
    world.on("/bank/rates/GBP/CHF", answers(closes, status(500), says({"rate": 1.1})))
    outcome = world.run(RATES, base="GBP", quote="CHF")
    assert (outcome["source"], outcome["rate"]) == ("bank", Decimal("1.1"))
    assert world.decisions(outcome) == ["retry", "retry"]


@scenario(RATES, KEY_ISSUE, REFUND)
def providers_that_hang_are_given_up(world: World) -> None:
    for name in (RATES, KEY_ISSUE, REFUND):
        world.shorten(name, "100ms")
    world.on("/bank/rates/EUR/USD", hangs)
    rates = world.run(RATES, base="EUR", quote="USD")
    assert (rates.error.code, len(world.web.got)) == ("no_rate", 3)
    assert world.codes(rates) == [("answer", "timeout"), ("noted", "not_found")]
    assert world.decisions(rates) == ["retry", "retry", "give_up", "give_up"]  # the bank, and the last known rate
    world.on(_gateway_path(1), hangs)
    issued = world.run(KEY_ISSUE, owner="ann", scopes=["read"])
    assert issued.error.code == "gateway_refused"
    assert world.rows("SELECT * FROM api_keys") == []
    (failed,) = [each for each in world.entries(issued) if each.kind is Kind.FAILED]
    assert (failed.body["code"], failed.body["may_have_happened"]) == ("timeout", True)
    assert _pay(world, amount="100.00").ok
    world.stripe.answer = hangs  # type: ignore[method-assign]
    refund = world.run(REFUND, transaction_id="ch_1", request_id="q1")
    assert (refund.error.kind, refund.error.code) == ("declared_error", "timeout")
    assert world.decisions(refund) == ["retry"] * 3 + ["give_up"]


@scenario(RATES)
def what_is_no_rate_is_refused(world: World) -> None:
    world.on("/bank/rates/EUR/CHF", answers(says({"rate": 0}), says({"rates": 1}), status(404), status(401)))
    codes = [world.run(RATES, base="EUR", quote="CHF").error.code for _ in range(4)]
    assert codes == ["bad_rate", "bad_rate", "no_rate", "http_401"]
    assert len(world.web.got) == 4


@scenario(RATES)
def a_cache_that_is_away_is_an_empty_one(world: World) -> None:
    world.on("/bank/rates/EUR/USD", says({"rate": 1.5}))
    world.redis.set("vesper:cache:rates:EUR/USD", "[not a decimal")
    outcome = world.run(RATES, base="EUR", quote="USD")
    assert outcome["source"] == "bank"
    assert world.codes(outcome)[0] == ("cached", "bad_response")


@scenario(EXPORT)
def bookings_are_written_to_a_file_and_marked(world: World) -> None:
    (world.folder / "templates/statements").mkdir()
    (world.folder / "templates/statements/head.txt").write_text("id;amount;note\n\n", encoding="utf-8")
    world.put(
        "bookings",
        {"booking_id": "b1", "account": "A1", "amount": "10.50", "note": "rent; May"},
        {"booking_id": "b2", "account": "A1", "amount": "-0.50"},
        {"booking_id": "b3", "account": "A2", "amount": "7"},
    )
    outcome = world.run(EXPORT, account="A1")
    assert outcome.ok, outcome.error
    written = (world.folder / "statements" / outcome["path"]).read_text(encoding="utf-8")
    assert written == "id;amount;note\nb1;10.50;rent, May\nb2;-0.50;\ntotal {all bookings};10.00"
    assert outcome["bytes"] == len(written.encode())
    assert len(world.rows("SELECT * FROM bookings WHERE exported = TRUE")) == 2
    log = (world.folder / "logs/exports.log").read_text(encoding="utf-8")
    assert log == f"exported 2 bookings to {outcome['path']}\n"
    assert world.run(EXPORT, account="A1").error.code == "nothing_to_export"


@scenario(EXPORT)
def without_a_template_nothing_is_exported(world: World) -> None:
    world.put("bookings", {"booking_id": "b1", "account": "A1", "amount": "1"})
    assert world.run(EXPORT, account="A1").error.code == "no_template"
    assert list((world.folder / "statements").iterdir()) == []


@scenario(EXPORT)
def an_account_that_climbs_out_of_its_folder_writes_nowhere(world: World) -> None:
    (world.folder / "templates/statements").mkdir()
    (world.folder / "templates/statements/head.txt").write_text("id", encoding="utf-8")
    world.put("bookings", {"booking_id": "b1", "account": "../..", "amount": "1"})
    outcome = world.run(EXPORT, account="../..")
    assert outcome.error.code == "invalid_argument"
    assert list((world.folder / "statements").iterdir()) == []
    assert world.rows("SELECT * FROM bookings WHERE exported = TRUE") == []


# -- orders ---------------------------------------------------------------------------------------

CHECKOUT = "orders/checkout_v1"
LIFECYCLE = "orders/order_lifecycle_v1"
NOTICE = "orders/shipment_notice_v1"
BASKET = [
    {"sku": "pen", "qty": 2, "unit_price": "10.50", "category": "other"},
    {"sku": "ink", "qty": 1, "unit_price": "1", "category": "other"},
]
BUYER: dict[str, Any] = {"user_id": "u1", "balance": "1000", "country": "DE", "user_age_days": 400}


def _stock(world: World, **available: int) -> None:
    world.put("stock", *({"sku": sku, "available": pieces} for sku, pieces in available.items()))


def _available(world: World) -> dict[str, int]:
    return dict(world.rows("SELECT sku, available FROM stock"))


@scenario(CHECKOUT)
def a_basket_is_reserved_and_paid(world: World) -> None:
    _stock(world, pen=5, ink=5)
    outcome = world.run(CHECKOUT, order_id="o1", basket=BASKET, **BUYER)
    assert outcome.ok, outcome.error
    assert (outcome["outcome"], outcome["transaction_id"]) == ("paid", "ch_1")
    assert outcome["reserved"] == {"pen": 2, "ink": 1}
    assert _available(world) == {"pen": 3, "ink": 4}
    assert world.state("order_lifecycle", "o1") == "paid"
    assert world.stripe.counts()["charges_by_key"] == {"o1": 1}


@scenario(CHECKOUT)
def what_is_sold_out_gives_back_the_rest(world: World) -> None:
    _stock(world, pen=5, ink=0)
    outcome = world.run(CHECKOUT, order_id="o1", basket=BASKET, **BUYER)
    assert outcome.error.code == "out_of_stock"
    assert _available(world) == {"pen": 5, "ink": 0}
    assert world.rows("SELECT * FROM reservations") == []
    assert world.stripe.got == []


@scenario(CHECKOUT)
def a_declined_card_gives_back_all(world: World) -> None:
    _stock(world, pen=5, ink=5)
    outcome = world.run(CHECKOUT, order_id="o1", basket=BASKET, **{**BUYER, "user_id": "declined"})
    assert outcome.error.code == "card_declined"
    assert _available(world) == {"pen": 5, "ink": 5}
    assert world.state("order_lifecycle", "o1") == "payment_failed"


@scenario(CHECKOUT)
def a_provider_that_never_answers_leaves_the_basket_waiting(world: World) -> None:
    _stock(world, pen=5, ink=5)
    world.stripe.answer = closes  # type: ignore[method-assign]
    outcome = world.run(CHECKOUT, order_id="o1", basket=BASKET, **BUYER)
    assert outcome.error.code == "payment_failed"
    assert _available(world) == {"pen": 3, "ink": 4}
    assert world.decisions(outcome) == ["retry", "retry", "give_up"]


@scenario(LIFECYCLE)
def an_order_is_shipped_delivered_and_sent_back(world: World) -> None:
    moves = [("ship", "warehouse"), ("deliver", "support"), ("send_back", "customer")]
    for action, actor in moves:
        outcome = world.run(LIFECYCLE, order_id="o1", action=action, actor=actor, tracking="T1")
        assert outcome.ok, outcome.error
    assert world.state("order", "o1") == "returned"
    assert [event["to"] for event in world.events("orders.moved")] == ["shipped", "delivered", "returned"]


@scenario(LIFECYCLE)
def what_has_left_the_house_is_not_cancelled(world: World) -> None:
    assert world.run(LIFECYCLE, order_id="o1", action="ship", actor="warehouse", tracking="T1").ok
    assert world.run(LIFECYCLE, order_id="o1", action="cancel", actor="customer").error.code == "not_possible"
    assert world.run(LIFECYCLE, order_id="o1", action="ship", actor="customer").error.code == "not_allowed"
    assert world.run(LIFECYCLE, order_id="o2", action="ship", actor="support").error.code == "no_tracking"
    assert world.run(LIFECYCLE, order_id="o2", action="deliver", actor="support").error.code == "not_possible"
    assert len(world.events("orders.moved")) == 1


def _customer(world: World, **changed: object) -> None:
    world.put(
        "customers", {"customer_id": "c1", "email": "a@example.com", "language": "de", "wants_mail": True} | changed
    )
    world.put("orders", {"order_id": "o1", "customer_id": "c1", "region": "north", "amount": "1", "refunded": False})


NOTE = {"event_id": "ev1", "order_id": "o1", "carrier": "dhl", "tracking": "T1"}


@scenario(NOTICE)
def a_mail_goes_out_once_and_an_event_waits_in_the_outbox(world: World) -> None:
    _customer(world)
    world.on("/mailer/v2/messages", answers(status(503), closes, says({"id": "m1"})))
    outcome = world.run(NOTICE, **NOTE, due="2026-11-18", days=3)
    assert (outcome["outcome"], outcome["mail_id"]) == ("sent", "m1")
    assert [got.headers["idempotency-key"] for got in world.web.got] == ["ev1"] * 3
    assert world.decisions(outcome) == ["retry", "retry"]
    assert world.delays(outcome) == [1.0, 2.0]
    ((topic, payload),) = world.rows("SELECT topic, payload FROM vesper_outbox")
    assert (topic, "m1" in payload) == ("orders.notified", True)
    world.relay_outbox()
    assert world.events("orders.notified") == [{"due": "2026-11-18", "mail": "m1", "order": "o1"}]


@scenario(NOTICE)
def an_address_that_is_refused_is_reported(world: World) -> None:
    _customer(world, email="a")
    world.on("/mailer/v2/messages", status(422))
    outcome = world.run(NOTICE, **NOTE)
    assert outcome["outcome"] == "refused"
    assert world.events("mail.refused") == [{"order": "o1", "to": "a"}]
    assert len(world.web.got) == 1
    again = world.run(NOTICE, **NOTE)  # the same event: its key publishes nothing twice
    assert again["outcome"] == "refused"
    assert len(world.events("mail.refused")) == 1


@scenario(NOTICE)
def a_mailer_that_is_down_fails_after_five_attempts(world: World) -> None:
    _customer(world)
    world.on("/mailer/v2/messages", status(503))
    outcome = world.run(NOTICE, **NOTE)
    assert (outcome.error.kind, outcome.error.code, len(world.web.got)) == ("failed", "http_503", 5)
    assert world.rows("SELECT * FROM vesper_outbox") == []


@scenario(NOTICE)
def who_is_not_to_be_told_is_not_told(world: World) -> None:
    assert world.run(NOTICE, **NOTE)["outcome"] == "no_contact"
    _customer(world, wants_mail=False)
    assert world.run(NOTICE, **NOTE)["outcome"] == "not_wanted"
    assert world.web.got == []


# -- payments -------------------------------------------------------------------------------------

DUNNING = "payments/dunning_v1"
PAYMENT = "payments/payment_handler_v1"


@scenario(DUNNING)
def reminders_climb_from_mail_to_agency(world: World) -> None:
    world.on("/mailer/v2/messages", ok())
    world.on("/printer/letters/i%2F1/2", ok())
    world.on("/agency/cases", answers(says({"case": 17}), status(409)))
    given: dict[str, Any] = {"invoice_id": "i/1", "amount": "100", "email": "a@example.com"}
    sent = [
        world.run(DUNNING, event_id=f"ev{days}", days_overdue=days, **given)["sent"]
        for days in (13, 14, 28, 3000, 3001)
    ]
    assert sent == ["nothing", "mail", "letter", "agency", "agency"]
    assert world.bodies("/agency/cases")[0] == {"invoice": "i/1", "amount": "135.63"}


@scenario(DUNNING)
def a_printer_that_is_away_is_a_failure_that_says_so(world: World) -> None:
    world.on("/printer/letters/i1/2", closes)
    world.on("/agency/cases", status(500))
    letter = world.run(DUNNING, event_id="e1", invoice_id="i1", amount="100", days_overdue=28)
    assert letter.error.code == "unavailable"
    assert [each.body.get("may_have_happened") for each in world.entries(letter) if each.kind == "FAILED"] == [True]
    agency = world.run(DUNNING, event_id="e2", invoice_id="i1", amount="100", days_overdue=3000)
    assert agency.error.code == "http_500"
    nobody = world.run(DUNNING, event_id="e3", invoice_id="i1", amount="100", days_overdue=14)
    assert nobody.error.code == "no_address"


def _pay(world: World, **changed: Any) -> Any:
    return world.run(
        PAYMENT, **({"order_id": "o1", "user_id": "u1", "amount": "99.99", "idempotency_key": "k1"} | changed)
    )


@scenario(PAYMENT)
def a_payment_and_its_repeat(world: World) -> None:
    assert _pay(world)["is_repeat"] is False
    assert _pay(world)["is_repeat"] is True
    assert _pay(world, amount="5").error.code == "other_amount"
    assert _pay(world, idempotency_key=None).error.code == "order_not_pending"
    assert world.stripe.counts()["charges"] == 1


@scenario(PAYMENT)
def a_payment_that_is_declined_may_be_tried_again(world: World) -> None:
    assert _pay(world, user_id="declined").error.code == "card_declined"
    assert world.state("order_lifecycle", "o1") == "payment_failed"
    # The provider keeps what it answered under a key: the same order again is another request under the same key.
    again = _pay(world)
    assert (again.error.kind, again.error.code) == ("failed", "http_409")


@scenario(PAYMENT)
def a_charge_that_is_recorded_twice_stands(world: World) -> None:
    world.put("transactions", {"transaction_id": "ch_1", "order_id": "x", "amount": "1", "idempotency_key": "other"})
    assert _pay(world).error.code == "already_recorded"
    assert world.stripe.counts()["refunds"] == 0


@scenario(REFUND)
def a_payment_is_given_back_in_parts(world: World) -> None:
    assert _pay(world, amount="100.00").ok
    first = world.run(REFUND, transaction_id="ch_1", request_id="q1", amount="30.00")
    assert first.ok, first.error
    assert (first["refunded"], first["left"]) == (Decimal("30.00"), Decimal("70.00"))
    (got,) = [each for each in world.stripe.got if each.path.endswith("/refunds")]
    assert (got.headers["x-reason"], got.target) == ("requested", "/v1/charges/ch_1/refunds?expand=charge")
    rest = world.run(REFUND, transaction_id="ch_1", request_id="q2")
    if world.dsn.startswith("sqlite:"):
        # SQLite adds texts up as floats, and a float is no amount of money: it is refused, not rounded.
        assert rest.error.code == "bad_response"
        assert world.stripe.counts()["refunds"] == 1
    else:
        assert (rest["refunded"], rest["left"]) == (Decimal("70.00"), 0)
        assert world.state("order_lifecycle", "o1") == "refunded"
        assert world.run(REFUND, transaction_id="ch_1", request_id="q1", amount="30.00")["refund_id"] == "re_2"
        assert world.run(REFUND, transaction_id="ch_1", request_id="q3").error.code == "nothing_left"


@scenario(REFUND)
def a_refund_that_was_never_answered_is_sent_again_under_its_key(world: World) -> None:
    assert _pay(world, amount="100.00").ok
    world.stripe.drop_answers = 2
    outcome = world.run(REFUND, transaction_id="ch_1", request_id="q1")
    assert outcome.ok, outcome.error
    assert world.stripe.counts()["refunds_by_key"] == {"q1": 1}
    assert world.decisions(outcome) == ["retry", "retry"]
    assert world.delays(outcome) == [0.5, 1.5]
    assert world.state("order_lifecycle", "o1") == "refunded"


@scenario(REFUND)
def refunds_that_must_not_be(world: World) -> None:
    assert world.run(REFUND, transaction_id="ch_1", request_id="q1").error.code == "unknown_transaction"
    world.put("transactions", {"transaction_id": "ch_9", "order_id": "o9", "amount": "10"})
    assert world.run(REFUND, transaction_id="ch_9", request_id="q1").error.code == "order_not_paid"
    assert world.run(REFUND, transaction_id="ch_9", request_id="q1", amount="11").error.code == "too_much"
    assert _pay(world).ok
    world.stripe.answer = status(400)  # type: ignore[method-assign, assignment]
    assert world.run(REFUND, transaction_id="ch_1", request_id="q2").error.code == "refused"
    assert world.rows("SELECT * FROM refunds") == []


# -- sales ----------------------------------------------------------------------------------------

PIPELINE = "sales/sales_pipeline_v1"
SUMMARY = "sales/sales_summary_v1"
CUSTOMERS = [{"customer_id": "c1", "name": "Ann"}, {"customer_id": "c2", "name": "Bo"}]


def _orders(world: World) -> None:
    later = "2026-11-16T00:00:00.000000Z"
    world.put(
        "orders",
        {
            "order_id": "o1",
            "customer_id": "c1",
            "region": "north",
            "amount": "10.50",
            "refunded": False,
            "paid_at": later,
        },
        {"order_id": "o2", "customer_id": "c2", "region": "south", "amount": "4", "refunded": False, "paid_at": later},
        {"order_id": "o3", "customer_id": "c1", "region": "north", "amount": "9", "refunded": True, "paid_at": later},
    )


@scenario(PIPELINE, SUMMARY)
def sales_are_added_up(world: World) -> None:
    _orders(world)
    outcome = world.run(PIPELINE, regions=["north", "south"], customers=CUSTOMERS)
    assert outcome.ok, outcome.error
    assert [(each["region"], each["revenue"]) for each in outcome["by_region"]] == [
        ("north", Decimal("10.50")),
        ("south", Decimal(4)),
    ]
    summary = world.run(SUMMARY, customers=CUSTOMERS)
    assert (summary["totals"]["orders"], summary["totals"]["gross"]) == (2, Decimal("17.26"))


@scenario(PIPELINE, SUMMARY)
def a_table_that_is_gone_is_a_failure(world: World) -> None:
    world.rows("ALTER TABLE orders RENAME TO gone")
    try:
        assert world.run(PIPELINE, regions=["north"], customers=CUSTOMERS).error.code == "unavailable"
        summary = world.run(SUMMARY, customers=CUSTOMERS)
        assert summary.error.code == "unavailable"
        assert world.decisions(summary) == ["retry", "retry", "give_up"]
    finally:
        world.rows("ALTER TABLE gone RENAME TO orders")


@scenario(SUMMARY, PIPELINE)
def a_row_that_does_not_fit_is_a_bad_response(world: World) -> None:
    world.put("orders", {"order_id": "o1", "customer_id": None, "region": "north", "amount": "1", "refunded": False})
    summary = world.run(SUMMARY, customers=CUSTOMERS)
    assert summary.error.code == "bad_response"
    assert world.decisions(summary) == ["give_up"]


# -- nodes that wait, and a scheduled one -----------------------------------------------------------

SETTLEMENT = "orders/order_settlement_v1"
APPROVAL = "approvals/expense_approval_v1"
REPORT = "reports/nightly_report_v1"
INVITATION = "orders/review_invitation_v1"
DELIVERY = {"order_id": "o1", "email": "ada@example.com", "delivered_at": "2026-01-01T09:00:00Z"}
EXPENSE = {"expense_id": "e1", "employee": "ada", "manager": "bo", "purpose": "a desk", "amount": Decimal("400.00")}


@scenario(SETTLEMENT)
def a_settled_order_is_shipped(world: World) -> None:
    world.on("/carrier/shipments", ok({"id": "sh1"}))
    handle = world.begin(SETTLEMENT, order_id="o1", amount=Decimal("20.00"))
    assert world.state("order_settlement", "o1") == "awaiting_settlement"
    handle.signal("payment_settled", {"settlement_id": "s1", "amount": Decimal("20.00")})
    outcome = world.finish(SETTLEMENT, handle)
    assert outcome["shipment_id"] == "sh1"
    assert world.state("order_settlement", "o1") == "shipped"


@scenario(SETTLEMENT)
def an_order_that_a_person_cancels_gives_its_stock_back(world: World) -> None:
    world.put("reservations", {"order_id": "o1", "sku": "pen", "pieces": 2, "state": "held"})
    handle = world.begin(SETTLEMENT, order_id="o1", amount=Decimal("20.00"))
    handle.cancel("the customer called")
    outcome = world.finish(SETTLEMENT, handle)
    assert outcome.error.code == "not_settled"
    assert world.rows("SELECT state FROM reservations") == [("open",)]
    assert world.state("order_settlement", "o1") == "cancelled"


@scenario(APPROVAL)
def a_manager_puts_off_and_approves_when_reminded(world: World) -> None:
    handle = world.begin(APPROVAL, **EXPENSE)
    handle.answer(None)
    world.host.keep()
    assert world.events("approvals.reminded") == [{"expense": "e1", "manager": "bo"}]
    handle.answer({"approved": True, "note": "at last"})
    outcome = world.finish(APPROVAL, handle)
    assert (outcome["decided_by"], outcome["note"]) == ("reminded_manager", "at last")


@scenario(APPROVAL)
def an_expense_is_withdrawn(world: World) -> None:
    handle = world.begin(APPROVAL, **EXPENSE)
    handle.cancel("bought already")
    assert world.finish(APPROVAL, handle).error.code == "withdrawn"
    assert world.events("approvals.reminded") == []


@scenario(INVITATION)
def a_customer_writes_a_review(world: World) -> None:
    handle = world.begin(INVITATION, event_id="e1", payload=DELIVERY)
    world.host.keep()  # the week since the delivery is over
    assert world.events("mails") == [{"to": "ada@example.com", "template": "review", "order": "o1"}]
    handle.signal("review_written", 5)
    outcome = world.finish(INVITATION, handle)
    assert (outcome["stars"], outcome["reminded"]) == (5, False)


@scenario(INVITATION)
def an_invitation_is_called_off(world: World) -> None:
    handle = world.begin(INVITATION, event_id="e1", payload={**DELIVERY, "delivered_at": "2999-01-01T09:00:00Z"})
    handle.cancel("returned")
    assert world.finish(INVITATION, handle).error.code == "cancelled"
    assert world.events("mails") == []


@scenario(REPORT)
def the_sales_of_a_night_are_reported(world: World) -> None:
    for order, shop, amount in (("o1", "berlin", "60.50"), ("o2", "oslo", "9.50")):
        row = {"order_id": order, "shop": shop, "amount": amount, "channel": "retail", "business_day": "2026-11-17"}
        world.put("orders", row)
    outcome = world.run(REPORT, scheduled_at="2026-11-18T01:30:00Z")
    assert outcome.ok, outcome.error
    assert (outcome["path"], outcome["shops"]) == ("retail/2026-11-17.csv", 2)
    assert (world.folder / "reports" / outcome["path"]).read_text(encoding="utf-8").count("\n") == 4
    assert [each["shops"] for each in world.events("reports.written")] == [2]


@scenario(REPORT)
def a_report_without_its_table_fails(world: World) -> None:
    world.rows("ALTER TABLE orders RENAME TO old_orders")
    try:
        outcome = world.run(REPORT, scheduled_at="2026-11-18T01:30:00Z")
    finally:
        world.rows("ALTER TABLE old_orders RENAME TO orders")
    assert not outcome.ok
    assert world.events("reports.written") == []


# -- shop -----------------------------------------------------------------------------------------

EXPIRE = "shop/expire_reservations_v1"
RELEASE = "shop/stock_release_v1"
RESERVE = "shop/stock_reservation_v1"


def _reserved(world: World, *skus: str) -> None:
    before = "2026-11-14T00:00:00.000000Z"
    for number, sku in enumerate(skus):
        row = {"order_id": f"o{number}", "sku": sku, "pieces": 2, "state": "open", "expires_at": before}
        world.put("reservations", row)


@scenario(EXPIRE)
def what_was_never_bought_goes_back(world: World) -> None:
    _stock(world, pen=1, ink=5)
    _reserved(world, "pen", "ink", "pen")
    outcome = world.run(EXPIRE, batch=100)
    assert outcome.ok, outcome.error
    assert (outcome["released"], outcome["skus"], outcome["is_done"]) == (3, ["pen", "ink", "pen"], True)
    assert _available(world) == {"pen": 5, "ink": 7}
    assert world.rows("SELECT * FROM reservations WHERE state = 'open'") == []
    assert world.run(EXPIRE, batch=100)["released"] == 0


@scenario(EXPIRE)
def a_shelf_that_is_full_keeps_its_reservation_open(world: World) -> None:
    _stock(world, pen=1, ink=3)
    _reserved(world, "pen", "ink")
    world.rows("CREATE UNIQUE INDEX one_of_a_kind ON stock (available)")  # pen would have as many as ink
    try:
        outcome = world.run(EXPIRE, batch=1)
    finally:
        world.rows("DROP INDEX one_of_a_kind")
    assert (outcome["released"], outcome["lost"], outcome["is_done"]) == (0, 1, False)
    assert _available(world) == {"pen": 1, "ink": 3}
    assert world.rows("SELECT state FROM reservations WHERE sku = 'pen'") == [("open",)]


@scenario(RESERVE, RELEASE)
def pieces_are_reserved_and_given_back(world: World) -> None:
    _stock(world, pen=5)
    outcome = world.run(RESERVE, sku="pen", pieces=2, order_id="o1")
    assert (outcome["reserved"], outcome["left"], outcome["is_repeat"]) == (2, 3, False)
    again = world.run(RESERVE, sku="pen", pieces=2, order_id="o1")
    assert again["is_repeat"] is True
    assert _available(world) == {"pen": 3}
    assert world.run(RELEASE, event_id="e1", order_id="o1")["released"] == 2
    assert _available(world) == {"pen": 5}
    assert world.run(RELEASE, event_id="e1", order_id="o1")["released"] == 0


@scenario(RESERVE, RELEASE)
def what_is_not_there_is_not_reserved(world: World) -> None:
    _stock(world, pen=1)
    assert world.run(RESERVE, sku="ink", pieces=1, order_id="o1").error.code == "unknown_article"
    assert world.run(RESERVE, sku="pen", pieces=2, order_id="o1").error.code == "out_of_stock"
    part = world.run(RESERVE, sku="pen", pieces=2, order_id="o1", allow_part=True)
    assert (part["reserved"], part["left"]) == (1, 0)
    world.rows("ALTER TABLE reservations RENAME TO gone")
    try:
        assert world.run(RELEASE, event_id="e1", order_id="o1").error.code == "unavailable"
    finally:
        world.rows("ALTER TABLE gone RENAME TO reservations")


@scenario(RELEASE)
def an_event_that_comes_twice_gives_back_once(world: World) -> None:
    _stock(world, pen=5)
    _reserved(world, "pen")
    assert world.run(RELEASE, event_id="e1", order_id="o0")["released"] == 2
    _reserved(world, "pen")  # the same reservation again, as if the first event had not been seen to its end
    world.run(RELEASE, event_id="e1", order_id="o0")
    assert _available(world) == {"pen": 7}


# -- support --------------------------------------------------------------------------------------

TRIAGE = "support/ticket_triage_v1"
TICKET = {"ticket_id": "t1", "subject": "Where is it", "text": "I wait for my parcel.", "plan": "paid"}


@scenario(TRIAGE)
def a_model_is_believed_as_far_as_it_can_be_checked(world: World) -> None:
    world.put("tickets", {"ticket_id": "t1", "triaged": False})
    said = {"queue": "shipping", "urgency": 3, "summary": "late", "tags": ["delay", "nonsense"]}
    world.model = lambda **_: said
    outcome = world.run(TRIAGE, **TICKET)
    assert outcome.ok, outcome.error
    assert (outcome["by"], outcome["queue"], outcome["tags"]) == ("model", "shipping", ["delay"])
    assert world.rows("SELECT queue, urgency FROM tickets") == [("shipping", 3)]
    assert world.model_calls[0]["key"] == "triage t1"
    assert world.run(TRIAGE, **TICKET).error.code == "already_triaged"


@scenario(TRIAGE)
def a_model_that_fails_is_replaced_by_the_queue(world: World) -> None:
    def fails(**_: object) -> object:
        raise RuntimeError("the model is out")

    world.put("tickets", {"ticket_id": "t1", "triaged": False}, {"ticket_id": "t2", "triaged": False})
    world.model = fails
    outcome = world.run(TRIAGE, **TICKET)
    assert (outcome["by"], outcome["urgency"]) == ("fallback", 5)
    assert world.codes(outcome) == [("answer", "effect_failed")]
    world.model = lambda **_: {"queue": "everything", "urgency": "high"}
    assert world.run(TRIAGE, **{**TICKET, "ticket_id": "t2"})["by"] == "fallback"
    assert [event["ticket"] for event in world.events("support.fallback")] == ["t1", "t2"]
    assert world.run(TRIAGE, **{**TICKET, "ticket_id": "t3"}).error.code == "unknown_ticket"
