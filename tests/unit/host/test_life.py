"""A Host from its first run to its end: what it does in the background, cancelled coroutines, forks, and closing."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

import vesper
from tests.unit.host.custom_world import Died, World, acting, dies, host_of, settings
from vesper.compiler import compile_file
from vesper.config.settings import config_from
from vesper.effects.events.performer import OUTBOX_TABLE
from vesper.effects.performer import Ask, EffectFailed
from vesper.engines.outcome import Returned
from vesper.host.host import Host, HostClosed
from vesper.host.plans import plans_of
from vesper.host.prepared import compiled_from, definition_of
from vesper.journal.journal import Status, open_journal

ROOT = Path(__file__).parents[3]
SOON = 60.0
"""Seconds: far longer than anything here takes, also on a machine that is busy."""


def until(holds: Callable[[], object]) -> None:
    end = time.monotonic() + SOON
    while not holds():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.01)


def thread_count() -> int:
    """Return the threads of this process, those of Rust among them."""
    return len(list(Path("/proc/self/task").iterdir()))


def await_renewals(host: Host, execution: str, count: int) -> None:
    """Wait until the lease of a run was renewed so often."""
    times: set[int] = set()

    def is_renewed() -> bool:
        times.add(host.journal.read(execution).summary.updated_us)
        return len(times) > count

    until(is_renewed)


# -- nodes that need none --------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["python", "interp", "jit"])
def test_a_node_without_effects_pays_nothing(tmp_path: Path, engine: str) -> None:
    """No journal is opened, and nothing runs in the background."""
    node = ROOT / "nodes" / "payments" / "payment_decision_v1.vsp"
    inputs = {"amount": "50.00", "balance": "100.00", "currency": "USD", "country": "DE", "user_age_days": 400}
    with Host(config_from({"journal": {"dsn": f"sqlite:{tmp_path / 'journal.db'}"}}, tmp_path)) as host:
        loaded = vesper.load(node, engine=engine, host=host)
        before = thread_count()
        assert loaded(inputs).ok
        assert thread_count() == before
    assert not (tmp_path / "journal.db").exists()


# -- in the background -----------------------------------------------------------------------------


def test_leases_are_renewed_while_the_run_of_somebody_else_is_finished(tmp_path: Path) -> None:
    """Finishing a run takes as long as its effects: the leases of our own must not run out meanwhile."""
    journal = {"dsn": f"sqlite:{tmp_path / 'journal.db'}", "lease": "1s"}
    config = settings(tmp_path, journal=journal, recovery={"every": "50ms"})
    world = World(first=dies)
    with pytest.raises(Died):
        acting(tmp_path, host_of(config, world, "another machine", 0.01), "first", effect_class="txn")(
            event_id="left", text="t"
        )
    recovering, may_end = threading.Event(), threading.Event()

    def slow(_: Ask) -> object:
        recovering.set()
        assert may_end.wait(SOON)
        return "recovered"

    world.does = {"first": slow}
    with host_of(config, world, "me", 1.0) as host:

        def long(ask: Ask) -> object:
            assert recovering.wait(SOON), "the other run is being finished"
            await_renewals(host, ask.execution, 2)
            may_end.set()
            return "done"

        world.does["second"] = long
        assert acting(tmp_path, host, "second")(event_id="mine", text="t").ok
        until(lambda: all(each.status is Status.ENDED for each in host.journal.find()))


def test_the_outbox_is_emptied_in_the_background(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        connection.execute(OUTBOX_TABLE["sqlite"])
    path = tmp_path / "news_v1.vsp"
    path.write_text(
        "node_id: news_v1\ntype: event_handler\nintent: Tell everybody\n"
        "inputs:\n  event_id: string\noutputs:\n  success:\n    id: string\n"
        'flow:\n  - {step: tell, operation: event_publish, topic: news, payload: {e: "{event_id}"}, effect: txn}\n'
        "  - operation: return\n    success: {id: tell}\n"
        "security:\n  capabilities_required: [events.publish.news]\n",
        encoding="utf-8",
    )
    values = {
        "grants": [{"nodes": ["news"], "allow": ["events.*"]}],
        "journal": {"dsn": f"sqlite:{tmp_path / 'journal.db'}"},
        "recovery": {"every": "50ms"},
        "databases": {"main": {"dsn": f"sqlite:{tmp_path / 'shop.db'}"}},
        "topics": {"news": {"url": "memory:", "database": "main"}},
    }
    got: list[str] = []
    with Host(config_from(values, tmp_path)) as host:
        host.subscribe("news", lambda event: got.append(event.id))
        outcome = vesper.load(path, host=host)(event_id="e1")
        assert outcome.ok, outcome.error
        until(lambda: got)
        assert got == [outcome["id"]]

        def waiting() -> list[object]:
            with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
                return connection.execute("SELECT id FROM vesper_outbox").fetchall()

        until(lambda: not waiting())


def test_an_outbox_that_is_not_there_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    values = {
        "journal": {"dsn": f"sqlite:{tmp_path / 'journal.db'}"},
        "databases": {"main": {"dsn": f"sqlite:{tmp_path / 'shop.db'}"}},
        "topics": {"news": {"url": "memory:", "database": "main"}},
        "recovery": {"every": "50ms"},
    }

    def said() -> list[str]:
        return [each.getMessage() for each in caplog.records if "outbox" in each.getMessage()]

    with Host(config_from(values, tmp_path)) as host:
        host.start()
        until(said)
        time.sleep(0.5)  # ten more attempts
    (message,) = said()
    assert "events wait in the outbox of `main`" in message


def test_what_was_left_is_finished_without_a_run_of_our_own(tmp_path: Path) -> None:
    world = World(first=dies)
    config = settings(tmp_path, recovery={"every": "50ms"})
    with pytest.raises(Died):
        acting(tmp_path, host_of(config, world, "another machine", 0.01), "first", effect_class="txn")(
            event_id="left", text="t"
        )
    world.does.clear()
    with host_of(config, world) as host:
        host.start()
        until(lambda: host.journal.find()[0].status is Status.ENDED)


# -- coroutines ------------------------------------------------------------------------------------


def test_a_run_that_is_cancelled_before_a_worker_takes_it_up_does_nothing(tmp_path: Path) -> None:
    may_end = threading.Event()
    world = World(first=lambda _: may_end.wait(SOON) and "done")

    async def main(host: Host) -> None:
        node = acting(tmp_path, host, "first")
        busy = asyncio.create_task(node.arun(event_id="busy", text="t"))
        await asyncio.to_thread(until, lambda: world.asked)
        waiting = asyncio.create_task(node.arun(event_id="waiting", text="t"))
        await asyncio.sleep(0.05)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        may_end.set()
        assert (await busy).ok

    with host_of(settings(tmp_path, workers=1), world) as host:
        asyncio.run(main(host))
    assert world.asked == ["first"]
    journal = open_journal(f"sqlite:{tmp_path / 'journal.db'}")
    assert len(journal.find()) == 1
    journal.close()


def test_a_run_that_is_cancelled_while_it_reads_ends_before_it_changes_anything(tmp_path: Path) -> None:
    looking, may_end = threading.Event(), threading.Event()

    def look(_: Ask) -> object:
        looking.set()
        assert may_end.wait(SOON)
        return "seen"

    world = World(look=look)

    async def main(host: Host) -> None:
        task = asyncio.create_task(acting(tmp_path, host, "look", "second").arun(event_id="e", text="t"))
        assert await asyncio.to_thread(looking.wait, SOON)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        may_end.set()

    with host_of(settings(tmp_path), world) as host:
        asyncio.run(main(host))
    assert world.asked == ["look"]


def test_a_run_that_is_cancelled_after_it_changed_something_goes_on(tmp_path: Path) -> None:
    changing, may_end = threading.Event(), threading.Event()

    def first(_: Ask) -> object:
        changing.set()
        assert may_end.wait(SOON)
        return "done"

    world = World(first=first)

    async def main(host: Host) -> None:
        task = asyncio.create_task(acting(tmp_path, host, "first", "second").arun(event_id="e", text="t"))
        assert await asyncio.to_thread(changing.wait, SOON)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        may_end.set()

    host = host_of(settings(tmp_path), world)
    asyncio.run(main(host))
    host.close()
    assert world.asked == ["first", "second"], "close waited for it"


# -- lulls -----------------------------------------------------------------------------------------


def test_there_is_no_lull_while_a_run_is_under_way(tmp_path: Path) -> None:
    began, may_end = threading.Event(), threading.Event()

    def first(_: Ask) -> object:
        began.set()
        assert may_end.wait(SOON)
        return "done"

    with host_of(settings(tmp_path), World(first=first)) as host:
        assert host.lull(0.0), "nobody has asked for anything yet"
        node = acting(tmp_path, host, "first")
        callers = [threading.Thread(target=lambda text=text: node(event_id=text, text="t")) for text in "ab"]
        for caller in callers:
            caller.start()
        assert began.wait(SOON)
        assert not host.lull(0.0)
        found: list[bool] = []
        waits = threading.Thread(target=lambda: found.append(host.lull(SOON)))
        waits.start()
        assert found == []
        may_end.set()
        waits.join(SOON)
        assert found == [True]
        for caller in callers:
            caller.join(SOON)
        assert host.lull(0.0)


def test_who_waits_for_quiet_is_called_once_when_the_last_run_has_ended(tmp_path: Path) -> None:
    began, may_end, called = threading.Semaphore(0), threading.Event(), list[int]()

    def first(_: Ask) -> object:
        began.release()
        assert may_end.wait(SOON)
        return "done"

    with host_of(settings(tmp_path), World(first=first)) as host:
        assert not host.when_quiet(lambda: called.append(0)), "nobody is served: it is not called"
        node = acting(tmp_path, host, "first")
        callers = [threading.Thread(target=lambda text=text: node(event_id=text, text="t")) for text in "ab"]
        for caller in callers:
            caller.start()
        assert all(began.acquire(timeout=SOON) for _ in callers)
        one = lambda: called.append(1)  # noqa: E731  # the same twice
        assert host.when_quiet(one)
        assert host.when_quiet(one)
        assert host.when_quiet(lambda: called.append(2))
        assert called == []
        may_end.set()
        for caller in callers:
            caller.join(SOON)
        assert called == [1, 2]
        node(event_id="c", text="t")
        assert called == [1, 2]


# -- closing ---------------------------------------------------------------------------------------


def test_close_waits_for_runs_of_other_threads_and_takes_no_more(tmp_path: Path) -> None:
    began, may_end = threading.Event(), threading.Event()

    def first(_: Ask) -> object:
        began.set()
        assert may_end.wait(SOON)
        return "done"

    world = World(first=first)
    host = host_of(settings(tmp_path, journal={"dsn": f"sqlite:{tmp_path / 'journal.db'}", "lease": "1s"}), world)
    node = acting(tmp_path, host, "first", "second")
    outcomes: list[object] = []
    caller = threading.Thread(target=lambda: outcomes.append(node(event_id="e", text="t").ok))
    caller.start()
    assert began.wait(SOON)
    closer = threading.Thread(target=host.close)
    closer.start()
    until(lambda: host.is_closed)
    with pytest.raises(HostClosed, match="Make another one"):
        node(event_id="late", text="t")
    assert closer.is_alive()
    (running,) = host.journal.find()
    await_renewals(host, running.execution, 1)
    may_end.set()
    closer.join(SOON)
    caller.join(SOON)
    assert outcomes == [True]
    host.close()


def test_close_leaves_to_recovery_what_takes_too_long(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    began, may_end = threading.Event(), threading.Event()

    def first(_: Ask) -> object:
        began.set()
        assert may_end.wait(SOON)
        return "done"

    host = host_of(settings(tmp_path), World(first=first))
    caller = threading.Thread(target=lambda: acting(tmp_path, host, "first")(event_id="e", text="t"))
    caller.start()
    assert began.wait(SOON)
    host.close(timeout=0.05)
    assert "left to recovery" in caplog.text
    may_end.set()
    caller.join(SOON)
    host.close()


def test_an_effect_cannot_close_its_host(tmp_path: Path) -> None:
    world = World()
    with host_of(settings(tmp_path), world) as host:

        def first(_: Ask) -> object:
            with pytest.raises(RuntimeError, match="cannot close the Host that performs it"):
                host.close()
            return "done"

        world.does["first"] = first
        assert acting(tmp_path, host, "first")(event_id="e", text="t").ok


# -- forks -----------------------------------------------------------------------------------------


def in_a_child(work: Callable[[], None]) -> None:
    """Runs it in a forked process, which must come to its end."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException as error:  # noqa: BLE001  # it is the parent's to say
            os.write(2, f"{error!r}\n".encode())
            os._exit(1)
        os._exit(0)
    end = time.monotonic() + SOON
    while time.monotonic() < end:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            assert os.waitstatus_to_exitcode(status) == 0
            return
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    pytest.fail("the child hangs")


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
@pytest.mark.parametrize("engine", ["python", "interp"])
def test_a_child_waits_between_attempts_while_its_parent_does(tmp_path: Path, engine: str) -> None:
    """The timers of the parent have a thread that the child lacks."""
    failed: set[str] = set()

    def fails_once(ask: Ask) -> object:
        if ask.is_repeat:
            return "done"
        failed.add(ask.execution)
        raise EffectFailed("unavailable", "try again")

    retried = "txn\n    retry: {attempts: 2, backoff: {base: 200ms}}"
    with host_of(settings(tmp_path), World(first=fails_once)) as host:
        node = acting(tmp_path, host, "first", effect_class=retried, engine=engine)
        with ThreadPoolExecutor(4) as pool:
            waiting = [pool.submit(node, event_id=f"p{number}", text=str(number)) for number in range(4)]
            until(lambda: len(failed) == 4)
            in_a_child(lambda: _check(node(event_id="c", text="child").ok))
            assert all(each.result().ok for each in waiting)


def _check(is_true: bool) -> None:
    assert is_true


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_child_has_threads_and_locks_of_its_own(tmp_path: Path) -> None:
    held, may_end = threading.Event(), threading.Event()
    world = World()
    journal = {"dsn": f"sqlite:{tmp_path / 'journal.db'}", "lease": "1s"}
    with host_of(settings(tmp_path, journal=journal), world) as host:

        def first(ask: Ask) -> object:
            if threading.current_thread().name == "holder":
                held.set()
                assert may_end.wait(SOON)
            elif held.is_set() and not may_end.is_set():
                await_renewals(host, ask.execution, 1)
            return "done"

        world.does["first"] = first
        node = acting(tmp_path, host, "first")
        assert asyncio.run(node.arun(event_id="parent", text="t")).ok
        holder = threading.Thread(target=lambda: node(event_id="held", text="t"), name="holder")
        holder.start()
        assert held.wait(SOON)

        def work() -> None:
            assert asyncio.run(node.arun(event_id="child", text="t")).ok
            assert node(event_id="child again", text="t").ok
            host.close()

        in_a_child(work)
        may_end.set()
        holder.join(SOON)
        assert node(event_id="parent again", text="t").ok
        assert len(host.journal.find()) == 5


# -- what is read off a node -----------------------------------------------------------------------


def test_the_first_run_in_a_joined_transaction_is_known_to_be_joined(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        connection.execute("CREATE TABLE notes (text TEXT)")
        connection.commit()
        path = tmp_path / "note_v1.vsp"
        path.write_text(
            "node_id: note_v1\ntype: event_handler\nintent: Write it down\n"
            "inputs:\n  event_id: string\noutputs:\n  success:\n    rows: integer\n"
            "flow:\n  - {step: note, operation: database_write, table: notes, data: {text: event_id}}\n"
            "  - operation: return\n    success: {rows: note}\n"
            "security:\n  capabilities_required: [database.write.notes]\n",
            encoding="utf-8",
        )
        values = {
            "grants": [{"nodes": ["*"], "allow": ["database.*", "effect.*"]}],
            "journal": {"dsn": f"sqlite:{tmp_path / 'journal.db'}"},
            "recovery": {"enabled": False},
            "databases": {"main": {"dsn": f"sqlite:{tmp_path / 'shop.db'}"}},
        }
        with Host(config_from(values, tmp_path), performers={"custom": World()}) as host:
            with vesper.joined("main", connection):
                outcome = vesper.load(path, host=host)(event_id="e")
                assert outcome.ok, outcome.error
                other = acting(tmp_path, host, "first")(event_id="e", text="t")
            connection.rollback()
            assert host.journal.read(outcome.trace_id).summary.is_joined
            assert not host.journal.read(other.trace_id).summary.is_joined, "it uses no database: anybody can finish it"
        assert connection.execute("SELECT * FROM notes").fetchall() == []


def test_limits_have_the_same_name_in_a_node_that_was_read_back(tmp_path: Path) -> None:
    root = Path(__file__).parents[3]
    compiled, _ = compile_file(root / "nodes/payments/payment_handler_v1.vsp")
    assert compiled is not None
    fresh, read_back = plans_of(compiled), plans_of(compiled_from(definition_of(compiled)))
    assert fresh == read_back
    assert fresh.requests["call_stripe_api"].limits_name.endswith(" http_request stripe")


def test_a_run_is_sealed_where_a_node_that_it_calls_has_sensitive_inputs(tmp_path: Path) -> None:
    world = World(inner=lambda _: "done")
    (tmp_path / "inner_v1.vsp").write_text(
        "node_id: inner_v1\ntype: event_handler\nintent: Keep a secret\n"
        "inputs:\n  event_id: string\n  card: string\noutputs:\n  success:\n    said: string\n"
        "flow:\n  - {step: said, operation: custom, name: inner, request: {card: card}, returns: string}\n"
        "  - operation: return\n    success: {said: said}\n"
        "security:\n  capabilities_required: [effect.call.inner]\n  sensitive_data: [card]\n",
        encoding="utf-8",
    )
    outer = tmp_path / "outer_v1.vsp"
    outer.write_text(
        "node_id: outer_v1\ntype: event_handler\nintent: Ask somebody who keeps a secret\n"
        "inputs:\n  event_id: string\n  number: string\noutputs:\n  success:\n    said: string\n"
        "flow:\n  - {step: ask, operation: call_node, node: inner_v1, inputs: {event_id: event_id, card: number}}\n"
        "  - operation: return\n    success: {said: ask.said}\n"
        "security:\n  capabilities_required: [effect.call.inner]\n",
        encoding="utf-8",
    )
    config = settings(tmp_path, grants=[{"nodes": ["outer"], "allow": ["effect.*"]}])
    host = host_of(config, world)
    outcome = vesper.load(outer, host=host)(event_id="e", number="4111111111111111")
    assert outcome.ok, outcome.error
    assert host.journal.read(outcome.trace_id).summary.is_sensitive
    host.close()
    host.journal.close()
    for path in tmp_path.glob("journal.db*"):
        assert b"4111111111111111" not in path.read_bytes()


def test_a_node_that_asks_somebody_who_is_not_configured_does_not_begin(tmp_path: Path) -> None:
    path = tmp_path / "two_v1.vsp"
    path.write_text(
        "node_id: two_v1\ntype: event_handler\nintent: Act, and write it down\n"
        "inputs:\n  event_id: string\noutputs:\n  success:\n    rows: integer\n"
        "flow:\n  - {step: act, operation: custom, name: act, returns: string}\n"
        "  - {step: note, operation: database_write, table: notes, data: {text: event_id}, database: shop}\n"
        "  - operation: return\n    success: {rows: note}\n"
        "security:\n  capabilities_required: [database.write.notes, effect.call.act]\n",
        encoding="utf-8",
    )
    world = World()
    grants = [{"nodes": ["*"], "allow": ["*"]}]
    databases = {"shops": {"dsn": f"sqlite:{tmp_path / 'shop.db'}"}}
    with host_of(settings(tmp_path, grants=grants, databases=databases), world) as host:
        with pytest.raises(vesper.ConfigError, match=r"there is no \[databases.shop\]; did you mean `shops`"):
            vesper.load(path, host=host)(event_id="e")
        assert world.asked == []


def test_no_message_holds_a_sensitive_input(tmp_path: Path) -> None:
    path = tmp_path / "card_v1.vsp"
    path.write_text(
        "node_id: card_v1\ntype: event_handler\nintent: Look at a card\n"
        "inputs:\n  event_id: string\n  card: string\n  amount: integer\n"
        "outputs:\n  success:\n    at: timestamp\n"
        "contracts:\n  preconditions:\n    - amount > 0 AND length(card) == 4\n"
        "flow:\n  - {step: at, operation: clock}\n  - operation: return\n    success: {at: at}\n"
        "security:\n  capabilities_required: [clock.read.system]\n  sensitive_data: [card]\n",
        encoding="utf-8",
    )
    grants = [{"nodes": ["*"], "allow": ["*"]}]
    with host_of(settings(tmp_path, grants=grants), World()) as host:
        node = vesper.load(path, host=host)
        broken = node(event_id="e", card="4111111111111111", amount=7)
        wrong = node(event_id="e", card=4111111111111111, amount="x")
        for outcome in (broken, wrong):
            assert outcome.error is not None
            assert "4111" not in outcome.error.message
            assert "4111" not in repr(outcome)
            with pytest.raises(vesper.VesperError) as caught:
                outcome.unwrap()
            assert "4111" not in str(caught.value)
        assert broken.error is not None
        assert "card is <sensitive>" in broken.error.message
        assert "amount is 7" in broken.error.message
        assert wrong.error is not None
        assert "card: expected string, got something else (wrong type)" in wrong.error.message
        assert "amount: expected integer, got str" in wrong.error.message


def test_a_node_without_a_host_finds_one_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "vesper.toml").write_text(
        '[[grants]]\nnodes = ["*"]\nallow = ["clock.*"]\n[journal]\ndsn = "sqlite:journal.db"\n', encoding="utf-8"
    )
    path = tmp_path / "clock_v1.vsp"
    path.write_text(
        "node_id: clock_v1\ntype: event_handler\nintent: Say what time it is\n"
        "inputs:\n  event_id: string\noutputs:\n  success:\n    at: timestamp\n"
        "flow:\n  - {step: at, operation: clock}\n  - operation: return\n    success: {at: at}\n"
        "security:\n  capabilities_required: [clock.read.system]\n",
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)
    node = vesper.load(path)
    assert node(event_id="e").ok
    first = node.host
    monkeypatch.chdir("/")
    assert node(event_id="e").ok, "the folder that it is called from later decides nothing"
    assert node.host is first
    first.close()
    assert node(event_id="e").ok, "a closed one is replaced"
    assert node.host is not first
    node.host.close()


def test_the_outcome_of_a_recovered_run_is_its_own(tmp_path: Path) -> None:
    world = World(first=dies)
    with pytest.raises(Died):
        acting(tmp_path, host_of(settings(tmp_path), world, "another machine", 0.01), "first", effect_class="txn")(
            event_id="left", text="t"
        )
    time.sleep(0.03)
    world.does = {"first": lambda ask: f"repeat {ask.is_repeat}"}
    with host_of(settings(tmp_path), world) as host:
        (found,) = host.recover()
        assert found.outcome == Returned({"last": "repeat True"})
