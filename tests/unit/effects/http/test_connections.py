from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.web import Got, Wire, closes, hangs, message, says
from tests.unit.effects.http.helpers import PATIENCE, Side, ask_of, failure, settings_of
from vesper.effects.http.performer import http_performer
from vesper.effects.performer import EffectFailed


def test_one_connection_for_many_requests(side: Side) -> None:
    side.web.on("/it", says(1))
    side.web.on("/gone", says({"error": "gone"}, 410))
    performer = side.performer()
    for _ in range(25):
        assert performer.perform(ask_of()) == 1
        assert failure(performer, ask_of("/gone", "POST", body={"a": 1})).code == "http_410"
    assert (side.web.connections, len(side.web.got)) == (1, 50)


def test_a_connection_that_the_server_closed_meanwhile_is_not_used(side: Side) -> None:
    side.web.on("/it", says(1))
    performer = side.performer()
    for round_ in range(1, 4):
        assert performer.perform(ask_of(method="POST", effect_class="unsafe")) == 1
        assert side.web.connections == round_
        side.web.drop_idle()
        wait_for(lambda: not side.web._open)
    assert len(side.web.got) == 3


def test_a_connection_that_ends_under_the_request_is_not_silently_repeated(side: Side) -> None:
    """The server takes the request and says nothing: nobody knows whether it acted."""
    side.web.on("/it", says(1))
    side.web.on("/bad", closes)
    performer = side.performer()
    assert performer.perform(ask_of()) == 1
    failed = failure(performer, ask_of("/bad", "POST", body={"a": 1}))
    assert (failed.code, failed.may_have_happened) == ("unavailable", True)
    assert [got.path for got in side.web.got] == ["/it", "/bad"]
    assert side.web.connections == 1


def test_many_threads_share_the_connections(side: Side) -> None:
    side.web.on("/it", says(1))
    performer = side.performer(max_connections=4)
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(lambda _: performer.perform(ask_of()), range(100))) == [1] * 100
    assert side.web.connections <= 4
    assert len(side.web.got) == 100


def test_answers_are_not_mixed_up_between_threads(side: Side) -> None:
    def echo(got: Got, wire: Wire) -> None:
        wire.send(message(200, got.body))

    side.web.on("/it", echo)
    performer = side.performer(max_connections=4)
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda n: performer.perform(ask_of(method="POST", body=n)), range(100)))
    assert found == list(range(100))


def test_when_all_connections_are_in_use_the_attempt_waits_no_longer_than_it_may(side: Side) -> None:
    side.web.on("/slow", hangs)
    side.web.on("/it", says(1))
    performer = side.performer(max_connections=1)
    codes = []

    def slow() -> None:
        try:
            performer.perform(ask_of("/slow", timeout=2.0))
        except EffectFailed as failed:
            codes.append(failed.code)

    thread = threading.Thread(target=slow)
    thread.start()
    wait_for(lambda: len(side.web.got) == 1)
    failed = failure(performer, ask_of(timeout=0.2))
    assert (failed.code, failed.may_have_happened) == ("timeout", False)
    assert failed.message == ("no time was left because all 1 connections to `shop` were in use (`max_connections`)")
    thread.join(PATIENCE)
    assert codes == ["timeout"]
    assert performer.perform(ask_of()) == 1


def test_a_performer_is_used_again_after_close(side: Side) -> None:
    side.web.on("/it", says(1))
    performer = side.performer()
    assert performer.perform(ask_of()) == 1
    performer.close()
    performer.close()
    assert performer.perform(ask_of()) == 1
    assert side.web.connections == 2


FORKS = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")  # of Python 3.12: prefork servers do


@FORKS
def test_a_forked_child_makes_connections_of_its_own(side: Side) -> None:
    side.web.on("/it", says(1))
    performer = side.performer()
    assert performer.perform(ask_of()) == 1
    child = os.fork()
    if child == 0:  # nothing of pytest may run here
        status = 1
        try:
            status = 0 if [performer.perform(ask_of()) for _ in range(3)] == [1, 1, 1] else 2
        finally:
            os._exit(status)
    _, result = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(result) == 0
    assert performer.perform(ask_of()) == 1  # over the connection from before
    assert side.web.connections == 2
    assert [got.connection for got in side.web.got] == [1, 2, 2, 2, 1]


def test_the_resolver_of_the_system(side: Side) -> None:
    """`localhost` may have two addresses, of which only one is listened on."""
    side.web.on("/it", says(1))
    base = f"http://localhost:{side.web.port}"
    inside = http_performer({"shop": settings_of({"base_url": base, "allow_private_addresses": True})})
    assert inside.perform(ask_of()) == 1
    inside.close()
    outside = http_performer({"shop": settings_of({"base_url": base, "allow_http": True})})
    assert "(loopback)" in failure(outside, ask_of()).message
    assert side.web.connections == 1


def test_the_time_of_the_provider_holds_where_the_step_says_none(side: Side) -> None:
    side.web.on("/it", hangs)
    assert failure(side.performer(timeout="200ms"), ask_of(timeout=None)).code == "timeout"


def wait_for(is_so: object) -> None:
    assert callable(is_so)
    until = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.01)
