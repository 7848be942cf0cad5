"""The performer against a payment provider: keys, declines, lost answers, and asking whether it happened."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator

import pytest

from tests.support.web import FakeStripe, FakeStripeProcess
from tests.unit.effects.http.helpers import Side, ask_of, failure
from vesper.effects.http.performer import HttpPerformer
from vesper.effects.performer import NOT_DONE, Ask, EffectFailed
from vesper.values.types import INTEGER, STRING, Enum, Record

CHARGE = Record((("id", STRING), ("amount", INTEGER), ("status", Enum(("succeeded", "pending")))))
BODY = {"amount": 990, "currency": "usd", "customer": "c1"}
PROBE = {"endpoint": "/v1/made_under/{key}"}


@pytest.fixture
def stripe() -> Iterator[FakeStripe]:
    with FakeStripe(api_key="sk_live_0123456789") as server:
        yield server


@pytest.fixture
def performer(stripe: FakeStripe) -> Iterator[HttpPerformer]:
    side = Side(stripe)
    yield side.performer(auth={"value": "Bearer {secret:api_key}"}, probe=PROBE)
    side.close()


def charge(key: str | None = "o1", effect_class: str = "keyed", **body: object) -> Ask:
    return ask_of("/v1/charges", "POST", CHARGE, effect_class, key, body=BODY | body)


def test_the_same_key_acts_once(stripe: FakeStripe, performer: HttpPerformer) -> None:
    first = performer.perform(charge())
    assert first == {"id": "ch_1", "amount": 990, "status": "succeeded"}
    assert performer.perform(charge()) == first
    assert performer.perform(charge("o2")) != first
    assert stripe.counts()["charges_by_key"] == {"o1": 1, "o2": 1}
    assert failure(performer, charge(amount=991)).code == "http_409"
    assert len(stripe.charges) == 2


def test_a_lost_answer_and_the_same_key(stripe: FakeStripe, performer: HttpPerformer) -> None:
    stripe.drop_answers = 1
    failed = failure(performer, charge())
    assert (failed.code, failed.may_have_happened) == ("unavailable", True)
    assert performer.perform(charge()) == {"id": "ch_1", "amount": 990, "status": "succeeded"}
    assert stripe.counts()["charges_by_key"] == {"o1": 1}


def test_without_a_key_each_request_acts(stripe: FakeStripe, performer: HttpPerformer) -> None:
    performer.perform(charge(None, "unsafe"))
    performer.perform(charge(None, "unsafe"))
    assert (stripe.charges_without_key, stripe.charges_by_key) == (2, {})


def test_declines_and_refunds(stripe: FakeStripe, performer: HttpPerformer) -> None:
    failed = failure(performer, charge("o1", customer="declined"))
    assert (failed.code, '"card_declined"' in failed.message) == ("http_402", True)
    assert failure(performer, charge("o1", customer="declined")).code == "http_402"
    made = performer.perform(charge("o2"))
    assert isinstance(made, dict)
    refund = ask_of("/v1/refunds", "POST", effect_class="keyed", key="refund ch_1", body={"charge": made["id"]})
    assert performer.perform(refund) == performer.perform(refund)
    part = ask_of(f"/v1/charges/{made['id']}/refunds", "POST", effect_class="keyed", key="p", body={"amount": 1})
    assert failure(performer, part).code == "http_400"
    assert (len(stripe.charges), stripe.refunds_by_key) == (1, {"refund ch_1": 1})


def test_a_wrong_credential(stripe: FakeStripe, performer: HttpPerformer) -> None:
    stripe.api_key = "another"
    assert failure(performer, charge()).code == "http_401"
    assert stripe.charges == {}


def test_forms(stripe: FakeStripe) -> None:
    side = Side(stripe)
    performer = side.performer(auth={"value": "Bearer {secret:api_key}"}, body="form")
    assert performer.perform(charge()) == {"id": "ch_1", "amount": 990, "status": "succeeded"}
    side.close()


# -- class probe ----------------------------------------------------------------------------------


def test_a_probe_finds_what_happened(stripe: FakeStripe, performer: HttpPerformer) -> None:
    ask = charge(None, "probe")
    assert performer.probe(ask) is NOT_DONE
    stripe.drop_answers = 1
    assert failure(performer, ask).may_have_happened
    assert performer.probe(ask) == {"id": "ch_1", "amount": 990, "status": "succeeded"}
    assert stripe.charges_by_key == {"run:run_1/charge[2]": 1}
    assert stripe.got[-1].target == "/v1/made_under/run%3Arun_1%2Fcharge%5B2%5D"


def test_a_probe_that_nobody_can_answer(stripe: FakeStripe, performer: HttpPerformer) -> None:
    stripe.api_key = "another"
    with pytest.raises(EffectFailed) as caught:
        performer.probe(charge(None, "probe"))
    assert caught.value.code == "http_401"
    stripe.close()
    with pytest.raises(EffectFailed) as caught:
        performer.probe(charge(None, "probe"))
    assert caught.value.code == "unavailable"


def test_a_provider_without_a_probe_is_not_sent_what_could_not_be_asked_for(stripe: FakeStripe) -> None:
    side = Side(stripe)
    performer = side.performer()
    failed = failure(performer, charge(None, "probe"))
    assert "`[providers.shop.probe]` is not configured" in failed.message
    with pytest.raises(EffectFailed, match="is not configured"):
        performer.probe(charge(None, "probe"))
    assert stripe.connections == 0
    side.close()


# -- the provider itself --------------------------------------------------------------------------


def test_two_requests_at_once_under_one_key_act_once(stripe: FakeStripe, performer: HttpPerformer) -> None:
    found: list[object] = []

    def ask() -> None:
        try:
            found.append(performer.perform(charge()))
        except EffectFailed as failed:
            found.append(failed.code)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(20)
    assert len(found) == 8
    assert all(each in ("http_409", {"id": "ch_1", "amount": 990, "status": "succeeded"}) for each in found)
    assert stripe.counts()["charges"] == 1


def test_the_provider_as_a_process_of_its_own() -> None:
    with FakeStripeProcess("--latency", "0.01", "--drop-answers", "1") as stripe:
        with pytest.raises((ConnectionError, http.client.RemoteDisconnected)):
            post(stripe.port)
        assert post(stripe.port)["id"] == "ch_1"
        counts = stripe.counts()
    assert (counts["charges"], counts["charges_by_key"]) == (1, {"k": 1})


def post(port: int) -> dict[str, object]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("POST", "/v1/charges", json.dumps(BODY), {"Idempotency-Key": "k"})
        found: dict[str, object] = json.loads(connection.getresponse().read())
        return found
    finally:
        connection.close()
