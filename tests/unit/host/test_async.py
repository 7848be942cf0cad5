"""Coroutines, threads and forks: whoever is cancelled leaves nothing half done, and nobody waits for threads that are
not there."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.waiting import eventually
from tests.support.web import Web, says
from tests.unit.host.small import host_in, node_from
from vesper.api.node import Node
from vesper.effects.custom.performer import effect, unregister
from vesper.engines.registry import ENGINES
from vesper.host.host import Host
from vesper.journal.entry import Entry, Kind
from vesper.journal.journal import Status, Summary

NODE = """
node_id: looks_and_acts_v1
type: event_handler
intent: Look, then act, then look again
inputs:
  event_id: string
outputs:
  success: {seen: integer, done: integer, after: integer}
flow:
  - {step: look, operation: custom, name: slow_look, effect: read, returns: integer}
  - {step: act, operation: custom, name: slow_act, effect: unsafe, returns: integer}
  - {step: again, operation: custom, name: slow_look, effect: read, returns: integer}
  - operation: return
    success: {seen: look, done: act, after: again}
security:
  capabilities_required: [effect.call.slow_look, effect.call.slow_act]
"""
READS = """
node_id: only_looks_v1
type: event_handler
intent: Look twice
inputs:
  event_id: string
outputs:
  success: {seen: integer}
flow:
  - {step: look, operation: custom, name: slow_look, effect: read, returns: integer}
  - {step: again, operation: custom, name: slow_look, effect: read, returns: integer}
  - operation: return
    success: {seen: look + again}
security:
  capabilities_required: [effect.call.slow_look]
"""
_PATIENCE = 30


@dataclass
class Slow:
    """Two effects that say when they have begun, and wait until they may go on."""

    looking: threading.Event = field(default_factory=threading.Event)
    may_look: threading.Event = field(default_factory=threading.Event)
    acting: threading.Event = field(default_factory=threading.Event)
    may_act: threading.Event = field(default_factory=threading.Event)
    looks: int = 0
    acts: int = 0


@pytest.fixture
def slow() -> Iterator[Slow]:
    made = Slow()

    @effect("slow_look", effect_class="read")
    def slow_look() -> int:
        made.looking.set()
        assert made.may_look.wait(_PATIENCE)
        made.looks += 1
        return 1

    @effect("slow_act")
    def slow_act() -> int:
        made.acting.set()
        assert made.may_act.wait(_PATIENCE)
        made.acts += 1
        return 2

    yield made
    for name in ("slow_look", "slow_act"):
        unregister(name)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with host_in(tmp_path, {}) as made:
        yield made


async def _until(event: threading.Event) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not event.is_set():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.005)


def _ended(host: Host, count: int = 1) -> list[Summary]:
    """The runs, once all have ended."""
    deadline = time.monotonic() + _PATIENCE
    while len(found := host.journal.find(status=Status.ENDED)) < count:
        assert time.monotonic() < deadline, host.journal.find()
        time.sleep(0.01)
    return found


def _entries(host: Host, summary: Summary) -> list[Entry]:
    return [each.entry for each in host.journal.read(summary.execution).entries]


async def _cancelled(node: Node, at: threading.Event) -> None:
    """Begins a run, and gives it up where it is then."""
    task = asyncio.create_task(node.arun(event_id="e"))
    await _until(at)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("text", [NODE, READS], ids=["writes", "reads"])
def test_cancelled_before_anything_was_changed_it_ends(
    slow: Slow, host: Host, tmp_path: Path, engine: str, text: str
) -> None:
    asyncio.run(_cancelled(node_from(text, tmp_path, host, engine), slow.looking))
    slow.may_look.set()
    slow.may_act.set()
    (summary,) = _ended(host)
    assert (summary.outcome, slow.looks, slow.acts) == ("limit_hit", 1, 0)
    last = _entries(host, summary)[-1]
    assert (last.kind, last.body["limit"]) == (Kind.END, "cancelled")


@pytest.mark.parametrize("engine", ENGINES)
def test_cancelled_in_the_middle_of_a_change_it_goes_on_to_its_end(
    slow: Slow, host: Host, tmp_path: Path, engine: str
) -> None:
    slow.may_look.set()
    asyncio.run(_cancelled(node_from(NODE, tmp_path, host, engine), slow.acting))
    slow.may_act.set()
    (summary,) = _ended(host)
    assert (summary.outcome, slow.looks, slow.acts) == ("returned", 2, 1)
    kinds = [f"{each.kind} {each.path}".strip() for each in _entries(host, summary)]
    assert kinds == ["START", "RESULT look", "INTENT act", "RESULT act", "RESULT again", "END"]


def test_a_time_out_of_the_caller_is_a_cancellation(slow: Slow, host: Host, tmp_path: Path) -> None:
    async def run() -> None:
        async def runs_late() -> None:
            async with asyncio.timeout(None) as patience:
                running = asyncio.create_task(node_from(NODE, tmp_path, host).arun(event_id="e"))
                await _until(slow.looking)
                patience.reschedule(asyncio.get_running_loop().time())
                await running

        with pytest.raises(TimeoutError):
            await runs_late()

    asyncio.run(run())
    slow.may_look.set()
    slow.may_act.set()
    assert _ended(host)[0].outcome == "limit_hit"
    assert slow.acts == 0


def test_cancelled_before_a_thread_was_free_it_never_begins(slow: Slow, tmp_path: Path) -> None:
    with host_in(tmp_path, {"workers": 1}) as host:
        node = node_from(NODE, tmp_path, host)

        async def run() -> None:
            first = asyncio.create_task(node.arun(event_id="first"))
            await _until(slow.looking)
            second = asyncio.create_task(node.arun(event_id="second"))
            await asyncio.sleep(0.05)
            second.cancel()
            with pytest.raises(asyncio.CancelledError):
                await second
            slow.may_look.set()
            slow.may_act.set()
            assert (await first).ok

        asyncio.run(run())
        assert (slow.looks, slow.acts) == (2, 1)
        assert len(host.journal.find()) == 1


CALL = """
node_id: calls_v1
type: event_handler
intent: Ask a provider
inputs:
  event_id: string
outputs:
  success: {said: json}
flow:
  - {step: call, operation: external_api_call, provider: shop, method: POST, endpoint: /it, effect: keyed}
  - operation: return
    success: {said: call}
security:
  capabilities_required: [network.http_client.shop]
"""


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[tuple[Web, Host]]:
    with Web() as web:
        web.on("/it", says({"ok": True}))
        shop = {"base_url": web.url, "allow_private_addresses": True, "timeout": "30s"}
        with host_in(tmp_path, {"providers": {"shop": shop}}) as host:
            yield web, host


@pytest.mark.parametrize("engine", ENGINES)
def test_fifty_at_once(shop: tuple[Web, Host], tmp_path: Path, engine: str) -> None:
    web, host = shop
    node = node_from(CALL, tmp_path, host, engine)

    async def run() -> list[Any]:
        return await asyncio.gather(*(node.arun(event_id=f"e{number}") for number in range(50)))

    outcomes = asyncio.run(run())
    assert all(outcome.ok for outcome in outcomes)
    assert len({outcome.trace_id for outcome in outcomes}) == 50
    assert sorted(got.headers["idempotency-key"] for got in web.got) == sorted(f"e{number}" for number in range(50))
    assert {each.outcome for each in host.journal.find()} == {"returned"}
    assert len(host.journal.find()) == 50


def test_a_cancelled_one_among_many_harms_no_other(shop: tuple[Web, Host], tmp_path: Path) -> None:
    _, host = shop
    node = node_from(CALL, tmp_path, host)

    async def run() -> list[Any]:
        tasks = [asyncio.create_task(node.arun(event_id=f"e{number}")) for number in range(30)]
        await asyncio.sleep(0)
        for task in tasks[::3]:
            task.cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    found = asyncio.run(run())
    gone = [each for each in found if isinstance(each, asyncio.CancelledError)]
    assert len(gone) == 10
    assert all(each.ok for each in found if not isinstance(each, BaseException))
    eventually(lambda: {each.status for each in host.journal.find()} == {Status.ENDED})


def test_calls_from_threads(shop: tuple[Web, Host], tmp_path: Path) -> None:
    web, host = shop
    nodes = [node_from(CALL, tmp_path, host, engine) for engine in ENGINES]
    with ThreadPoolExecutor(16) as pool:
        outcomes = list(pool.map(lambda number: nodes[number % 2](event_id=f"e{number}"), range(64)))
    assert all(outcome.ok for outcome in outcomes)
    assert len(web.got) == 64


def _in_a_fork(act: Any) -> str:
    """What a forked process says of itself; a hang is killed and is no answer."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reader)
            os.write(writer, str(act()).encode())
            code = 0
        except BaseException as error:  # noqa: BLE001  # said to the parent, and no further: this process is a copy
            os.write(writer, repr(error).encode())
        finally:
            os._exit(code)
    os.close(writer)
    killer = threading.Timer(_PATIENCE, os.kill, (child, 9))
    killer.start()
    with os.fdopen(reader, "rb") as said:
        found = said.read().decode()
    os.waitpid(child, 0)
    killer.cancel()
    return found


@pytest.mark.parametrize("how", ["call", "arun", "threads"])
def test_a_forked_process_goes_on_with_the_same_host(shop: tuple[Web, Host], tmp_path: Path, how: str) -> None:
    web, host = shop
    node = node_from(CALL, tmp_path, host)

    async def many(name: str) -> bool:
        found = await asyncio.gather(*(node.arun(event_id=f"{name} {number}") for number in range(5)))
        return all(each.ok for each in found)

    assert asyncio.run(many("before"))  # the pool, the journal and the connections are all in use

    def act() -> object:
        if how == "arun":
            return asyncio.run(many("inside"))
        if how == "threads":
            with ThreadPoolExecutor(4) as pool:
                return all(pool.map(lambda number: node(event_id=f"inside {number}").ok, range(8)))
        return node(event_id="inside").ok

    assert _in_a_fork(act) == "True"
    assert asyncio.run(many("after"))
    keys = [got.headers["idempotency-key"] for got in web.got]
    assert len(keys) == len(set(keys))
    assert {each.status for each in host.journal.find()} == {Status.ENDED}


def test_a_thread_of_the_parent_that_is_in_the_host_stops_no_child(shop: tuple[Web, Host], tmp_path: Path) -> None:
    """Whatever locks it holds when another thread forks: in the child it never lets go of them."""
    _, host = shop
    node = node_from(CALL, tmp_path, host)
    is_over = threading.Event()

    def pay() -> None:
        while not is_over.is_set():
            assert node(event_id="outside").ok

    callers = [threading.Thread(target=pay) for _ in range(3)]
    for caller in callers:
        caller.start()
    try:
        assert [_in_a_fork(lambda: node(event_id="inside").ok) for _ in range(5)] == ["True"] * 5
    finally:
        is_over.set()
        for caller in callers:
            caller.join(_PATIENCE)
