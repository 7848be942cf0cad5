"""Policies through the Host, against a provider that misbehaves: what is tried again and what never, breakers, rates,
places; and every decision in the journal."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers import Redis
from tests.support.web import Got, Web, Wire, closes, hangs, says
from tests.unit.host.small import decisions, entries, host_in, kinds, node_from
from tests.unit.host.world import answers, status
from vesper.engines.registry import ENGINES, PAIR
from vesper.host.host import Host
from vesper.journal.entry import Kind
from vesper.migration.shadow.journal_replay import follow

NODE = """
node_id: asks_v1
type: event_handler
intent: Ask a provider under policies
inputs:
  event_id: string
outputs:
  success: {said: json}
flow:
  - step: call
    operation: external_api_call
    provider: shop
    method: POST
    endpoint: /it
    effect: EFFECT
    POLICY
  - operation: return
    success: {said: call}
security:
  capabilities_required: [network.http_client.shop]
"""


def _node(policy: str, effect: str = "keyed") -> str:
    """Timeouts and retries stand at the step; limits that runs share are the node's."""
    lines = policy.split("\n") if policy else []
    own = [f"    {line}" for line in lines if line.startswith(("timeout", "retry"))]
    shared = [f"  {line}" for line in lines if not line.startswith(("timeout", "retry"))]
    text = NODE.replace("    POLICY\n", "".join(f"{line}\n" for line in own)).replace("EFFECT", effect)
    return text.replace("flow:\n", "\n".join(["policies:", *shared, "flow:", ""])) if shared else text


@dataclass
class Place:
    folder: Path
    web: Web
    host: Host

    def run(self, policy: str, engine: str = "python", effect: str = "keyed", event: str = "e") -> Any:
        return node_from(_node(policy, effect), self.folder, self.host, engine)(event_id=event)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with Web() as web:
        shop = {"base_url": web.url, "allow_private_addresses": True, "retry_after_max": "2s"}
        with host_in(tmp_path, {"providers": {"shop": shop}}) as host:
            yield Place(tmp_path, web, host)


RETRY = "timeout: 20s\nretry: {attempts: 3, on: [timeout, unavailable, http_429, http_5xx], backoff: {base: 10ms}}"
TRIED_AGAIN = {
    "http_429": status(429),
    "http_503": status(503),
    "http_500": status(500),
    "timeout": hangs,
    "unavailable": closes,
}


def retry(code: str) -> str:
    """Only what waits for the time-out has a short one: the others must not meet it on a busy machine."""
    return RETRY.replace("20s", "500ms") if code == "timeout" else RETRY


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("code", TRIED_AGAIN)
def test_what_the_node_says_is_tried_again(place: Place, code: str, engine: str) -> None:
    place.web.on("/it", answers(TRIED_AGAIN[code], TRIED_AGAIN[code], says("at last")))
    outcome = place.run(retry(code), engine)
    assert outcome.ok, outcome.error
    assert [got.headers["idempotency-key"] for got in place.web.got] == ["e"] * 3
    found = decisions(place.host, outcome)
    assert [(each["decision"], each["code"], each["attempt"]) for each in found] == [
        ("retry", code, 2),
        ("retry", code, 3),
    ]
    assert [each["delay_us"] for each in found] == [10_000, 20_000]
    assert kinds(place.host, outcome) == [
        "START", "INTENT call", "VALUE call#1", "VALUE call#2", "RESULT call", "END",
    ]  # fmt: skip
    for other in ENGINES.values():
        program = other.load(node_from(_node(retry(code)), place.folder, place.host)._compiled)
        assert follow(program, entries(place.host, outcome)).difference is None


@pytest.mark.parametrize("code", TRIED_AGAIN)
def test_it_is_given_up_after_the_last_attempt(place: Place, code: str) -> None:
    place.web.on("/it", TRIED_AGAIN[code])
    outcome = place.run(retry(code))
    assert outcome.error.code == code
    assert len(place.web.got) == 3
    last = decisions(place.host, outcome)[-1]
    assert (last["decision"], last["attempts"], last["reason"]) == ("give_up", 3, "attempts")
    (failed,) = [each for each in entries(place.host, outcome) if each.kind is Kind.FAILED]
    assert failed.body["may_have_happened"] is (code in ("timeout", "unavailable"))


@pytest.mark.parametrize("code", [400, 401, 403, 404, 409, 422])
def test_what_is_our_own_fault_is_never_tried_again(place: Place, code: int) -> None:
    place.web.on("/it", status(code))
    outcome = place.run(RETRY)
    assert outcome.error.code == f"http_{code}"
    assert len(place.web.got) == 1
    (decision,) = decisions(place.host, outcome)
    assert (decision["decision"], decision["reason"]) == ("give_up", "code")


def test_an_unsafe_request_is_never_sent_twice(place: Place) -> None:
    """Its own `retry` would be an error of the node; that of the node as a whole does not hold for it."""
    text = _node("", "unsafe").replace("flow:\n", "policies:\n  retry: {attempts: 5, backoff: {base: 1ms}}\nflow:\n")
    place.web.on("/it", closes)
    outcome = node_from(text, place.folder, place.host)(event_id="e")
    assert outcome.error is not None
    assert outcome.error.code == "unavailable"
    assert len(place.web.got) == 1
    assert [each["reason"] for each in decisions(place.host, outcome)] == ["unsafe"]


def test_without_a_retry_there_is_one_attempt_and_no_record(place: Place) -> None:
    place.web.on("/it", status(503))
    outcome = place.run("timeout: 5s")
    assert (len(place.web.got), decisions(place.host, outcome)) == (1, [])


def test_jitter_is_drawn_and_the_draw_is_in_the_journal(place: Place) -> None:
    place.web.on("/it", answers(*[status(503)] * 4, says(1)))
    policy = "retry: {attempts: 5, on: [http_503], backoff: {base: 20ms, factor: 1, jitter: full}}"
    found = decisions(place.host, place.run(policy))
    assert len(found) == 4
    assert all(0 <= each["delay_us"] <= 20_000 for each in found)
    assert len({each["jitter"] for each in found}) == 4


# -- Retry-After ----------------------------------------------------------------------------------


def test_what_the_provider_asks_us_to_wait_is_waited(place: Place) -> None:
    place.web.on("/it", answers(status(429, {"Retry-After": "1"}), says(1)))
    began = time.monotonic()
    outcome = place.run("retry: {attempts: 2, on: [http_429], backoff: {base: 1ms, max: 2ms}}")
    assert outcome.ok
    assert time.monotonic() - began >= 1
    assert [each["delay_us"] for each in decisions(place.host, outcome)] == [1_000_000]


def test_a_provider_cannot_make_us_wait_for_ever(place: Place) -> None:
    place.web.on("/it", answers(status(503, {"Retry-After": "99999999"}), says(1)))
    outcome = place.run("retry: {attempts: 2, on: [http_503], backoff: {base: 1ms}}")
    assert outcome.ok
    assert [each["delay_us"] for each in decisions(place.host, outcome)] == [2_000_000]  # `retry_after_max`


def test_who_has_no_time_to_wait_gives_up_at_once(place: Place) -> None:
    text = _node("retry: {attempts: 3, on: [http_503], backoff: {base: 1ms}}").replace(
        "security:", "performance: {timeout_seconds: 20}\nsecurity:"
    )
    place.web.on("/it", status(503, {"Retry-After": "30"}))
    shop = {"base_url": place.web.url, "allow_private_addresses": True, "retry_after_max": "30s"}
    folder = place.folder / "patient"
    folder.mkdir()
    with host_in(folder, {"providers": {"shop": shop}}) as host:
        began = time.monotonic()
        outcome = node_from(text, folder, host)(event_id="e")
        assert time.monotonic() - began < 20
        assert [each["reason"] for each in decisions(host, outcome)] == ["retry_after"]
    assert outcome.error is not None
    assert outcome.error.code == "http_503"


# -- limits that runs share -----------------------------------------------------------------------

BREAKER = "circuit_breaker: {failures: 3, within: 1m, open_for: 1s}"


@pytest.mark.parametrize("shared", ["memory", "redis"])
def test_a_breaker_opens_and_closes_again(shared: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    with Web() as web:
        settings: dict[str, Any] = {"providers": {"shop": {"base_url": web.url, "allow_private_addresses": True}}}
        if shared == "redis":
            server: Redis = request.getfixturevalue("redis_server")
            settings["policies"] = {"url": server.url, "prefix": f"breaker:{tmp_path.name}:"}
        with host_in(tmp_path, settings) as host:
            place = Place(tmp_path, web, host)
            web.on("/it", status(503))
            outcomes = [place.run(BREAKER, engine) for engine in (*PAIR, *PAIR, *PAIR)]
            assert [outcome.error.code for outcome in outcomes] == ["http_503"] * 3 + ["unavailable"] * 3
            assert len(web.got) == 3
            opened = decisions(host, outcomes[2])
            assert [each["breaker"] for each in opened if "breaker" in each] == ["opened"]
            held = decisions(host, outcomes[3])
            assert (held[0]["decision"], held[0]["by"]) == ("rejected", "circuit_breaker")
            web.on("/it", says(1))
            deadline = time.monotonic() + 20
            while not (outcome := place.run(BREAKER)).ok:
                assert time.monotonic() < deadline
                time.sleep(0.1)
            assert [each["breaker"] for each in decisions(host, outcome) if "breaker" in each] == ["closed"]
            assert place.run(BREAKER).ok


def test_what_is_our_own_fault_opens_no_breaker(place: Place) -> None:
    place.web.on("/it", status(404))
    assert [place.run(BREAKER).error.code for _ in range(6)] == ["http_404"] * 6
    assert len(place.web.got) == 6


def test_a_rate_limit_paces_all_runs_of_the_process(place: Place) -> None:
    place.web.on("/it", says(1))
    policy = "rate_limit: {limit: 10, per: 500ms}"
    began = time.monotonic()
    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(lambda number: place.run(policy, event=f"e{number}"), range(12)))
    took = time.monotonic() - began
    assert all(outcome.ok for outcome in outcomes)
    assert took >= 11 * 0.05
    waited = [each for outcome in outcomes for each in decisions(place.host, outcome)]
    assert waited
    assert all(each["decision"] == "admitted" and each["wait_us"] > 0 for each in waited)


def test_no_more_than_the_places_that_there_are(place: Place) -> None:
    lock, inside, most = threading.Lock(), [0], [0]

    def script(got: Got, wire: Wire) -> None:
        with lock:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
        wire.wait(0.05)
        with lock:
            inside[0] -= 1
        says(1)(got, wire)

    place.web.on("/it", script)
    with ThreadPoolExecutor(12) as pool:
        runs = pool.map(lambda number: place.run("concurrency: 3", event=f"e{number}"), range(24))
        assert all(outcome.ok for outcome in runs)
    assert 1 <= most[0] <= 3


def test_who_cannot_wait_for_a_place_is_told_so(place: Place) -> None:
    going = threading.Event()

    def script(got: Got, wire: Wire) -> None:
        going.set()
        wire.wait(1.5)
        says(1)(got, wire)

    place.web.on("/it", script)
    text = _node("concurrency: 1").replace("security:", "performance: {timeout_seconds: 1}\nsecurity:")
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(lambda: place.run("concurrency: 1\ntimeout: 30s"))
        assert going.wait(10)
        outcome = node_from(text, place.folder, place.host)(event_id="other")
        assert first.result().ok
    assert outcome.error is not None
    assert outcome.error.code in ("unavailable", "timeout_seconds")
    assert len(place.web.got) == 1


def test_a_follower_takes_no_place_and_no_moment(place: Place) -> None:
    """It reads what was decided, and asks nobody."""
    place.web.on("/it", says(1))
    policy = f"{BREAKER}\nrate_limit: {{limit: 1, per: 1m}}\nconcurrency: 1"
    outcome = place.run(policy)
    program = ENGINES["interp"].load(node_from(_node(policy), place.folder, place.host)._compiled)
    for _ in range(20):
        assert follow(program, entries(place.host, outcome)).difference is None
    assert len(place.web.got) == 1
