"""Alerts: logged and posted content, and webhooks that are slow, broken or unreachable."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from tests.support.servers import free_port
from tests.unit.migration.support.hook import Hook
from vesper.migration.control.controller import step
from vesper.migration.control.modes import Mode
from vesper.migration.control.state import (
    Agreed,
    Close,
    Decision,
    Diverged,
    EngineFaulted,
    Enumerated,
    Event,
    Kill,
    NodeState,
    Noisy,
    PinTo,
    Resume,
    RunLost,
)
from vesper.migration.router import alerts as alerts_module
from vesper.migration.router.alerts import MAX_WAITING, Alerts, BadWebhook
from vesper.migration.stores.store import NodeKey

KEY = NodeKey("fee_v1", "f" * 64)
SECRET = "card 4111111111111111"
NOW_US = 1_794_744_000 * 10**6


@pytest.fixture
def hook() -> Iterator[Hook]:
    found = Hook()
    yield found
    found.close()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alerts_module, "RETRY_DELAYS_SECONDS", (0.01, 0.01, 0.01))


def decisions(*events: Event, start: NodeState | None = None) -> tuple[Decision, ...]:
    """Return the decisions of the controller on the last of these events."""
    state = start or NodeState(KEY.node, KEY.epoch)
    decided: tuple[Decision, ...] = ()
    for each in events:
        state, decided = step(state, each, NOW_US)
    return decided


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline, "it never came to be so"
        time.sleep(0.005)


RISEN = Agreed("p", 300, 300)


@pytest.mark.parametrize(
    "events, level, said",
    [
        ([RISEN], "INFO", "shadow_direct → canary_direct: evidence"),
        (
            [RISEN, EngineFaulted(SECRET)],
            "ERROR",
            "latched in python_only until a person resumes it: the direct engine",
        ),
        ([RISEN, Kill("ann", "fire")], "WARNING", "kill by ann: fire"),
        ([Diverged("p", "0dd")], "WARNING", "the engines disagree (divergence 0dd); path p is compared from now on"),
        ([Diverged("", "0dd")], "WARNING", "(divergence 0dd); whatever goes that way is compared from now on"),
        ([Diverged("p", "0dd"), Close("0dd", "ann", "fixed")], "INFO", "divergence 0dd closed by ann: fixed"),
        ([Noisy("a1", "outputs.fee")], "WARNING", "an engine differs from itself at outputs.fee (noise a1)"),
        ([Enumerated(0)], "WARNING", "enumerated was refused: a domain of 1 to 1,000,000 inputs"),
        ([RISEN, PinTo(Mode.SHADOW_DIRECT, NOW_US + 1, "ann", "a freeze")], "WARNING", "canary_direct → shadow_direct"),
        ([RunLost(SECRET), RunLost(SECRET + "2")], "ERROR", "runs began under the direct engine and never ended"),
    ],
)
def test_decisions_are_logged(caplog: pytest.LogCaptureFixture, events: list[Event], level: str, said: str) -> None:
    with caplog.at_level(logging.DEBUG, "vesper.migration"):
        Alerts(None).decided(KEY, decisions(*events))
    assert [each.levelname for each in caplog.records if said in each.getMessage()] == [level], caplog.text
    assert "4111" not in caplog.text


def test_posts_contain_no_text_of_an_engine(hook: Hook) -> None:
    found = Alerts(f"{hook.url}/services/T0/secret?x=1")
    found.decided(KEY, decisions(RISEN, EngineFaulted(SECRET)))
    got = hook.next()
    found.close(5)
    assert (got["path"], got["kind"]) == ("/services/T0/secret?x=1", "latched")
    assert (got["node"], got["epoch"], got["level"]) == ("fee_v1", KEY.epoch, "error")
    assert (got["before"], got["after"], got["reason"]) == ("canary_direct", "python_only", "engine_fault")
    assert got["text"].startswith("Vesper: fee_v1: latched in python_only")
    assert "4111" not in json.dumps(got)
    assert hook.got.empty()  # the latch and the fall are one alert


def test_results_of_orders_are_posted_and_not_logged(hook: Hook, caplog: pytest.LogCaptureFixture) -> None:
    """The command has informed the person; a refusal concerns no other."""
    alerts = Alerts(hook.url)
    with caplog.at_level(logging.DEBUG, "vesper.migration"):
        alerts.ordered(KEY, decisions(Resume("ann", "there is no latch")))
        alerts.ordered(KEY, decisions(RISEN, Kill("ann", "fire")))
        alerts.stopped_all("bob", "more fire")
        alerts.close(60)
    killed, stopped = hook.next(), hook.next()
    assert (killed["kind"], killed["node"], killed["who"]) == ("latched", "fee_v1", "ann")
    assert (stopped["kind"], stopped["node"], stopped["epoch"], stopped["who"]) == ("stopped", None, None, "bob")
    assert stopped["text"].startswith("Vesper: all nodes: ")
    assert hook.got.empty()
    assert caplog.text == ""


def test_informational_decisions_are_not_posted(hook: Hook) -> None:
    found = Alerts(hook.url)
    found.decided(KEY, decisions(RISEN))
    found.decided(KEY, decisions(Diverged("p", "0dd"), Close("0dd", "ann", "fixed")))
    found.decided(KEY, decisions(Enumerated(0)))
    assert hook.next()["kind"] == "refused"
    found.close(5)
    assert hook.got.empty()


def test_a_divergence_is_reported_once_until_it_is_closed(hook: Hook) -> None:
    found = Alerts(hook.url)
    once = decisions(Diverged("p", "0dd"))
    found.decided(KEY, once)
    found.decided(KEY, once)
    found.decided(NodeKey("pay_v1", "a"), once)
    assert [hook.next()["node"] for _ in range(2)] == ["fee_v1", "pay_v1"]
    found.decided(KEY, decisions(Diverged("p", "0dd"), Close("0dd", "ann", "fixed")))
    found.decided(KEY, once)
    assert hook.next()["fingerprint"] == "0dd"
    found.close(5)
    assert hook.got.empty()


@pytest.mark.usefixtures("quick")
def test_a_failing_webhook_is_retried_three_times(hook: Hook, caplog: pytest.LogCaptureFixture) -> None:
    found = Alerts(hook.url)
    hook.answers = [500, 503, 429]
    found.decided(KEY, decisions(EngineFaulted("x")))
    same = {hook.next()["id"] for _ in range(4)}
    found.decided(KEY, decisions(EngineFaulted("x")))
    hook.next()
    assert len(same) == 1
    assert "not posted" not in caplog.text
    hook.answers = [500] * 4
    found.decided(KEY, decisions(EngineFaulted("x")))
    for _ in range(4):
        hook.next()
    found.close(5)
    assert f"alerts that were not posted to {hook.url} so far: 1 (it answered 500)" in caplog.text
    assert hook.got.empty()


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    "status, said", [(302, "it answered 302, and redirects are not followed"), (404, "it answered 404")]
)
def test_some_responses_are_final(hook: Hook, caplog: pytest.LogCaptureFixture, status: int, said: str) -> None:
    found = Alerts(f"{hook.url}/secret")
    hook.answers = [status]
    found.decided(KEY, decisions(EngineFaulted("x")))
    hook.next()
    found.close(5)
    assert said in caplog.text
    assert "secret" not in caplog.text
    assert hook.got.empty()


@pytest.mark.usefixtures("quick")
def test_an_unreachable_webhook(caplog: pytest.LogCaptureFixture) -> None:
    found = Alerts(f"http://127.0.0.1:{free_port()}/")
    found.decided(KEY, decisions(EngineFaulted("x")))
    wait_until(lambda: "were not posted" in caplog.text)
    assert "it does not answer: ConnectionRefusedError" in caplog.text
    found.close(5)


@pytest.mark.usefixtures("quick")
def test_a_silent_webhook_does_not_delay_the_caller(
    hook: Hook, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alerts_module, "TIMEOUT_SECONDS", 0.05)
    hook.holds.clear()
    found = Alerts(hook.url)
    found.decided(KEY, decisions(EngineFaulted("x")))
    hook.next()
    wait_until(lambda: "it does not answer: TimeoutError" in caplog.text)
    hook.holds.set()
    found.close(5)


@pytest.mark.usefixtures("quick")
def test_a_webhook_that_responds_byte_by_byte_is_cut_off(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alerts_module, "TIMEOUT_SECONDS", 0.1)
    is_over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            while not is_over.is_set():
                connection, _ = server.accept()
                with connection, contextlib.suppress(OSError):
                    connection.sendall(b"HTTP/1.1 ")
                    while not is_over.wait(0.02):
                        connection.sendall(b"x")

        thread = threading.Thread(target=drip, daemon=True)
        thread.start()
        found = Alerts(f"http://127.0.0.1:{server.getsockname()[1]}/")
        found.decided(KEY, decisions(EngineFaulted("x")))
        wait_until(lambda: "so far: 1 (it does not answer" in caplog.text)
        is_over.set()
        socket.create_connection(server.getsockname()).close()  # it may be waiting for one
        thread.join(5)
        assert not thread.is_alive()
        found.close(5)


def test_alerts_beyond_the_queue_are_dropped_and_counted(hook: Hook, caplog: pytest.LogCaptureFixture) -> None:
    hook.holds.clear()
    found = Alerts(hook.url)
    decided = decisions(EngineFaulted("x"))
    found.decided(KEY, decided)
    hook.next()  # the thread waits for its answer
    begun = time.monotonic()
    for _ in range(MAX_WAITING + 12):
        found.decided(KEY, decided)
    assert time.monotonic() - begun < 15
    dropped = [each.getMessage() for each in caplog.records if "were not posted" in each.getMessage()]
    assert [each.partition("so far: ")[2] for each in dropped] == [
        "1 (more wait than are kept)",
        "10 (more wait than are kept)",
    ]
    begun = time.monotonic()
    found.close(0.05)
    assert time.monotonic() - begun < 15
    # All that wait, those that were dropped before, and the one that was never answered.
    assert f"so far: {MAX_WAITING + 13} (it has not answered yet, and the process ends)" in caplog.text


def test_an_unposted_alert_is_logged_at_the_end(hook: Hook, caplog: pytest.LogCaptureFixture) -> None:
    hook.holds.clear()
    alerts = Alerts(hook.url)
    alerts.decided(KEY, decisions(Diverged("p", "0dd")))
    hook.next()  # it is under way
    alerts.close(0.0)
    assert "so far: 1 (it has not answered yet, and the process ends)" in caplog.text


def test_queued_alerts_are_posted_before_the_end(hook: Hook) -> None:
    found = Alerts(hook.url)
    for _ in range(20):
        found.decided(KEY, decisions(EngineFaulted("x")))
    found.close(10)
    assert hook.got.qsize() == 20
    found.close(1)


def test_a_forked_child_posts_its_own_and_nothing_of_its_parent(hook: Hook) -> None:
    hook.holds.clear()
    found = Alerts(hook.url)
    found.decided(KEY, decisions(EngineFaulted("x")))
    found.decided(KEY, decisions(EngineFaulted("x")))
    first = hook.next()
    child = os.fork()
    if child == 0:
        found.decided(NodeKey("child_v1", "c"), decisions(EngineFaulted("x")))
        found.close(10)
        os._exit(0)
    got = [hook.next()]
    hook.holds.set()
    assert os.waitpid(child, 0)[1] == 0
    found.close(10)
    while not hook.got.empty():
        got.append(hook.next())
    assert first["process"] == os.getpid()
    assert sorted((each["node"], each["process"]) for each in got) == [("child_v1", child), ("fee_v1", os.getpid())]


@pytest.mark.parametrize(
    "url",
    [
        "ftp://host/x",
        "file:///etc/passwd",
        "host/x",
        "http://",
        "http://user:word@host/",
        "http://host:99999/",
        "http://[::1/",
        "http://host/a b",
        "http://host/\r\nX: y",
        "http://host/ä",
    ],
)
def test_only_urls_that_can_be_posted_to_are_taken(url: str) -> None:
    with pytest.raises(BadWebhook, match="the webhook"):
        Alerts(url)
