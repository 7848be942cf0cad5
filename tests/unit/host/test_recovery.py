"""What becomes of a run whose process died, at each point between INTENT and RESULT and for each class, on each engine
and from one engine to the other. The processes that are killed for real are in tests/proofs/kills."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import vesper
from vesper.config.settings import Config, config_from
from vesper.effects.performer import NOT_DONE, Ask, EffectFailed, Performer
from vesper.engines.outcome import Returned
from vesper.engines.registry import ENGINES
from vesper.host.host import Host
from vesper.journal.entry import Kind
from vesper.journal.journal import NotTaken, Status, open_journal
from vesper.testing import Sources

NODE = """
node_id: two_steps_v1
type: event_handler
intent: Do two things, one after the other
inputs:
  event_id: string
outputs:
  success:
    seen: integer
    first: integer
    second: integer
flow:
  - step: look
    operation: custom
    name: look
    effect: read
    returns: integer
  - step: one
    operation: custom
    name: act
    effect: {effect_class}
    {key}
    request: {{n: "1"}}
    returns: integer
  - step: two
    operation: custom
    name: act
    effect: {effect_class}
    {key}
    request: {{n: "2"}}
    returns: integer
  - operation: return
    success: {{seen: look, first: one, second: two}}
security:
  capabilities_required: [effect.call.look, effect.call.act]
"""


class Died(BaseException):
    """The process is gone: nothing of it runs any more."""


class World:
    """What is outside: it does what it is asked for, and counts. It may take the process with it."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.done: dict[str, int] = {}
        self.looks = 0
        self.dies: Callable[[Ask, str], bool] = lambda _ask, _when: False

    def perform(self, ask: Ask) -> object:
        if ask.fixed["name"] == "look":
            self.looks += 1
            return self.looks
        self._maybe_die(ask, "before")
        self.asked.append(ask.path)
        name = ask.receipt if ask.effect_class in ("keyed", "txn") else f"{ask.path} {len(self.asked)}"
        self.done.setdefault(name, len(self.done) + 1)
        self._maybe_die(ask, "after")
        return self.done[name]

    def probe(self, ask: Ask) -> object:
        return len(self.done) if ask.path in self.asked else NOT_DONE

    def close(self) -> None: ...

    def _maybe_die(self, ask: Ask, when: str) -> None:
        if self.dies(ask, when):
            raise Died


@pytest.fixture
def config(tmp_path: Path) -> Config:
    settings = {
        "grants": [{"nodes": ["two_steps"], "allow": ["effect.*"]}],
        "journal": {"dsn": f"sqlite:{tmp_path / 'journal.db'}"},
        "recovery": {"enabled": False},
    }
    return config_from(settings, tmp_path)


def host_of(config: Config, world: Performer, owner: str) -> Host:
    journal = open_journal(config.journal.dsn, owner=owner, lease_seconds=_LEASE)
    return Host(config, journal=journal, performers={"custom": world})


def node_of(tmp_path: Path, effect_class: str, host: Host, engine: str) -> vesper.Node:
    key = "key: event_id" if effect_class == "keyed" else ""
    path = tmp_path / "two_steps_v1.vsp"
    text = NODE.format(effect_class=effect_class, key=key)
    path.write_text("\n".join(line for line in text.splitlines() if line.strip()), encoding="utf-8")
    if effect_class == "keyed":  # each step has a key of its own
        text = path.read_text(encoding="utf-8")
        first, _, rest = text.partition("key: event_id")
        path.write_text(first + "key: event_id + '-1'" + rest.replace("key: event_id", "key: event_id + '-2'"))
    return vesper.load(path, engine=engine, host=host)


_LEASE = 0.01


def wait_for_the_lease() -> None:
    time.sleep(3 * _LEASE)


HANDOFFS = [("python", "python"), ("interp", "interp"), ("python", "interp"), ("interp", "python")]


@pytest.mark.parametrize("first, second", HANDOFFS)
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", ["one", "two"])
@pytest.mark.parametrize("effect_class", ["keyed", "txn", "probe", "unsafe"])
def test_nothing_is_lost_and_nothing_doubled(
    tmp_path: Path, config: Config, effect_class: str, step: str, when: str, first: str, second: str
) -> None:
    world = World()
    world.dies = lambda ask, moment: (ask.path, moment) == (step, when)
    dying = host_of(config, world, "one machine")
    node = node_of(tmp_path, effect_class, dying, first)
    with pytest.raises(Died):
        node(event_id="e1")
    world.dies = lambda _ask, _when: False
    looks = world.looks
    wait_for_the_lease()
    with host_of(config, world, "another machine") as living:
        (found,) = living.recover(second)
        recorded = living.journal.read(found.execution)
        kinds = [each.entry.kind for each in recorded.entries]
        assert Kind.HANDOFF in kinds
        if effect_class == "unsafe":
            assert found.outcome is None
            assert recorded.summary.status is Status.IN_DOUBT
            assert living.recover(second) == []
            # Never twice, whether it was performed or not: that is for somebody to say.
            assert world.asked.count(step) == (1 if when == "after" else 0)
            living.journal.resolve(found.execution, step, 7, None, "a person", "it was seen in the ledger")
            wait_for_the_lease()
            (found,) = living.recover(second)
            assert isinstance(found.outcome, Returned)
            assert found.outcome.value["first" if step == "one" else "second"] == 7
            assert world.asked.count(step) == (1 if when == "after" else 0)
            return
        assert isinstance(found.outcome, Returned)
        assert len(world.done) == 2, "each thing was done once"
        assert found.outcome.value == {"seen": 1, "first": 1, "second": 2}
        assert world.looks == looks, "what was read before the INTENT is not read again"
        assert living.recover() == []


def test_a_read_is_done_again_where_nothing_was_changed(tmp_path: Path, config: Config) -> None:
    """Nothing was committed, so nobody knows of the run: it did not happen."""
    world = World()
    dying = host_of(config, world, "one machine")
    real = world.perform

    def perform(ask: Ask) -> object:
        real(ask)
        raise Died

    world.perform = perform  # type: ignore[method-assign]
    with pytest.raises(Died):
        node_of(tmp_path, "keyed", dying, "python")(event_id="e1")
    with host_of(config, world, "another machine") as living:
        assert living.recover() == []


CALLING = """
node_id: two_steps_v1
type: event_handler
intent: Ask a provider that forgets keys
inputs:
  event_id: string
outputs:
  success: {id: string}
flow:
  - step: one
    operation: external_api_call
    provider: bank
    method: POST
    endpoint: /charge
    body: {event: "{event_id}"}
    effect: keyed
    key: event_id
    expect: {id: string}
  - operation: return
    success: {id: one.id}
security:
  capabilities_required: [network.http_client.bank]
"""


@pytest.mark.parametrize("hours", [1, 3])
def test_a_key_that_is_too_old_is_in_doubt(tmp_path: Path, hours: int) -> None:
    settings = {
        "grants": [{"nodes": ["two_steps"], "allow": ["network.*"]}],
        "journal": {"dsn": f"sqlite:{tmp_path / 'journal.db'}"},
        "providers": {"bank": {"base_url": "https://bank.example", "key_ttl": "2h"}},
        "recovery": {"enabled": False},
    }
    config = config_from(settings, tmp_path)
    bank = Bank()
    path = tmp_path / "two_steps_v1.vsp"
    path.write_text(CALLING, encoding="utf-8")
    journal = open_journal(config.journal.dsn, owner="one machine", lease_seconds=_LEASE)
    node = vesper.load(path, host=Host(config, journal=journal, performers={"http_request": bank}))
    with pytest.raises(Died):
        node(event_id="e1")
    wait_for_the_lease()
    later = Sources(now_ns=lambda: time.time_ns() + hours * 3_600_000_000_000)
    with Host(config, performers={"http_request": bank}, sources=later) as living:
        (found,) = living.recover()
        if hours == 1:
            assert isinstance(found.outcome, Returned)
            assert bank.asked == 2
        else:
            assert found.outcome is None
            assert "its key is good for 7200 s" in found.why
            assert bank.asked == 1


class Bank:
    """Dies after its first answer."""

    def __init__(self) -> None:
        self.asked = 0

    def perform(self, _: Ask) -> object:
        self.asked += 1
        if self.asked == 1:
            raise Died
        return {"id": "ch_1"}

    def probe(self, ask: Ask) -> object:
        raise AssertionError(ask)

    def close(self) -> None: ...


def test_a_run_ends_on_its_own_definition(tmp_path: Path, config: Config) -> None:
    """The file was changed while the run was down: the run is pinned to what it began with."""
    world = World()
    world.dies = lambda ask, moment: moment == "after" and ask.path == "one"
    with pytest.raises(Died):
        node_of(tmp_path, "keyed", host_of(config, world, "one machine"), "python")(event_id="e1")
    (tmp_path / "two_steps_v1.vsp").write_text("node_id: nonsense", encoding="utf-8")
    world.dies = lambda _ask, _when: False
    with host_of(config, world, "another machine") as living:
        wait_for_the_lease()
        (found,) = living.recover()
        assert isinstance(found.outcome, Returned)


def test_somebody_who_was_taken_over_writes_no_more(tmp_path: Path, config: Config) -> None:
    """The first process was only slow: it comes back after the second one has finished the run."""
    world = World()
    slow = host_of(config, world, "one machine")
    others: list[Any] = []
    real = world.perform

    def perform(ask: Ask) -> object:
        value = real(ask)
        if ask.path == "one" and not others:
            others.append(None)
            with host_of(config, world, "another machine") as living:
                wait_for_the_lease()
                others[0] = living.recover()
        return value

    world.perform = perform  # type: ignore[method-assign]
    with pytest.raises(vesper.JournalError, match="taken it over"):
        node_of(tmp_path, "keyed", slow, "python")(event_id="e1")
    ((found,),) = others
    assert isinstance(found.outcome, Returned)
    assert len(world.done) == 2


def test_a_failure_of_the_journal_is_told_and_nothing_is_sent(tmp_path: Path, config: Config) -> None:
    world = World()
    (tmp_path / "journal.db").write_bytes(b"this is no database" * 100)
    with pytest.raises(vesper.JournalError):
        node_of(tmp_path, "unsafe", host_of(config, world, "one machine"), "python")(event_id="e1")
    assert world.asked == []
    assert (tmp_path / "journal.db").read_bytes() == b"this is no database" * 100


def test_a_run_of_somebody_alive_is_left_alone(tmp_path: Path, config: Config) -> None:
    journal = open_journal(config.journal.dsn, lease_seconds=60)
    world = World()
    world.dies = lambda _, moment: moment == "after"
    host = Host(config, journal=journal, performers={"custom": world})
    with pytest.raises(Died):
        node_of(tmp_path, "keyed", host, "python")(event_id="e1")
    with host_of(config, world, "another machine") as living:
        assert living.recover() == []
        (summary,) = living.journal.find()
        with pytest.raises(NotTaken):
            living.resume(summary.execution)


def test_a_failure_is_a_result_too(tmp_path: Path, config: Config) -> None:
    """A code that came back is what the run goes on with, after a crash as before it."""
    world = World()
    real = world.perform

    def perform(ask: Ask) -> object:
        if ask.path == "one":
            raise EffectFailed("effect_failed", "no")
        return real(ask)

    world.perform = perform  # type: ignore[method-assign]
    with host_of(config, world, "one machine") as host:
        for engine in ENGINES:
            outcome = node_of(tmp_path, "keyed", host, engine)(event_id=engine)
            assert outcome.error is not None
            assert outcome.error.code == "effect_failed"
