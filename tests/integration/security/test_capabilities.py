"""Every effect with and without its grant: without it, nothing is sent, opened or written.

A grant for another target does not help, and a denial overrides every grant.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.support.mcp.settings import pinned, server_table
from tests.support.servers import Redis
from tests.support.web import Web, says
from tests.unit.host.small import host_in, kinds, node_from
from vesper.effects.custom.performer import effect, unregister
from vesper.effects.performer import Ask, EffectFailed
from vesper.effects.settings import ConfigError
from vesper.engines.registry import ENGINES
from vesper.host.host import Host
from vesper.host.waiting import RunWaits
from vesper.values.generated.effects import EFFECTS

NODE = """
node_id: does_one_thing_v1
type: event_handler
intent: Do one thing
inputs:
  event_id: string
outputs:
  success: {{done: boolean}}
{machine}
flow:
  - step: it
{step}
  - operation: return
    success: {{done: true}}
security:
  capabilities_required: [{capability}]
"""
MACHINE = """state_machines:
  things:
    initial: new
    transitions: {new: [used]}
"""


ANSWER = {
    "model": "small",
    "message": {"role": "assistant", "content": "done"},
    "done": True,
    "done_reason": "stop",
    "prompt_eval_count": 1,
    "eval_count": 1,
}
"""An answer of a model."""


@cache
def tools_of_tests() -> dict[str, object]:
    """Return the settings of the MCP server of tests with the pin of its tools."""
    return server_table(tools=pinned().tools)


@dataclass
class World:
    """Every system in which an effect would leave a trace."""

    folder: Path
    web: Web
    redis: redis.Redis
    redis_url: str
    called: list[str] = field(default_factory=list)
    secrets_read: list[str] = field(default_factory=list)

    def host(self, grants: list[dict[str, Any]], **more: Any) -> Host:
        names = ("one", "other")
        return host_in(
            self.folder,
            {
                "grants": grants,
                "databases": {"main": {"dsn": f"sqlite:{self.folder / 'main.db'}"}},
                "providers": {
                    name: {"base_url": self.web.url, "allow_private_addresses": True, "timeout": "5s"} for name in names
                },
                "caches": {name: {"url": self.redis_url} for name in names},
                "events": {"url": self.redis_url},
                "files": {name: {"path": f"files_{name}"} for name in names},
                "commands": {name: {"program": "/bin/echo", "arguments": ["done"]} for name in names},
                "mcp": {name: tools_of_tests() for name in names},
                "sessions": {name: {} for name in names},
                "budgets": {name: {"calls": 9} for name in names},
                "models": {
                    name: {
                        "api": "ollama",
                        "model": "small",
                        "base_url": self.web.url,
                        "allow_private_addresses": True,
                        "max_output": 100,
                        "context": 1000,
                    }
                    for name in names
                },
            },
            **more,
        )

    def rows(self, sql: str) -> list[Any]:
        with closing(sqlite3.connect(self.folder / "main.db")) as connection:
            return connection.execute(sql).fetchall()

    def has_table(self, name: str) -> bool:
        return bool(self.rows(f"SELECT 1 FROM sqlite_master WHERE name = '{name}'"))  # noqa: S608

    def traces(self) -> dict[str, object]:
        """Return everything that an effect can change."""
        return {
            "connections": self.web.connections,
            "redis": sorted(self.redis.scan_iter()),
            "rows": self.rows("SELECT * FROM one"),
            "states": self.has_table("vesper_states"),
            "receipts": self.has_table("vesper_receipts"),
            "files": sorted(
                str(path) for name in ("one", "other") for path in (self.folder / f"files_{name}").rglob("*")
            ),
            "called": list(self.called),
            "sessions": self.messages(),
            "commands": self._redis_commands(),
        }

    def messages(self) -> int:
        """Return the number of messages and values in the sessions."""
        found = self.folder / ".vesper" / "sessions.db"
        if not found.exists():
            return 0
        with closing(sqlite3.connect(found)) as connection:
            tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            counts = [connection.execute(f"SELECT COUNT(*) FROM {name}").fetchone()[0] for name in tables]  # noqa: S608
            return sum(counts)

    def _redis_commands(self) -> int:
        """Return the number of key reads and writes, without those of this method."""
        stats: Any = self.redis.info("commandstats")
        names = ("get", "set", "del", "unlink", "xadd", "evalsha", "eval", "fcall", "setex", "psetex", "getdel")
        return sum(stats.get(f"cmdstat_{name}", {}).get("calls", 0) for name in names)


@pytest.fixture
def world(tmp_path: Path, redis_server: Redis, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setenv("VESPER_SECRET_ONE", "the-text-of-one")
    url = redis_server.url.removesuffix("/0") + "/11"
    client = redis.Redis.from_url(url)
    client.flushdb()
    for name in ("one", "other"):
        (tmp_path / f"files_{name}").mkdir()
    with closing(sqlite3.connect(tmp_path / "main.db")) as connection, connection:
        connection.execute("CREATE TABLE one (id text)")
    with Web() as web:
        web.on("/it", says(1))
        web.on("/api/chat", says(ANSWER))
        made = World(tmp_path, web, client, url)

        @effect("one")
        def one() -> int:
            made.called.append("one")
            return 1

        yield made
        unregister("one")
    client.close()


@dataclass(frozen=True)
class Kind:
    """One effect: its step, its capability, similar grants, and its visible result."""

    step: str
    capability: str
    other: str
    done: Callable[[World], bool]
    """Whether the effect was performed, as seen from outside."""
    machine: str = ""


def _always(_: World) -> bool:
    return True


KINDS = {
    "database_query": Kind(
        "operation: database_query\nquery: SELECT id FROM one\nreturns: array<string>",
        "database.read.one", "database.read.other", _always,
    ),
    "database_write": Kind(
        "operation: database_write\ntable: one\ndata: {id: event_id}",
        "database.write.one", "database.write.other", lambda world: world.rows("SELECT * FROM one") == [("e",)],
    ),
    "http_request": Kind(
        "operation: external_api_call\nprovider: one\nmethod: GET\nendpoint: /it",
        "network.http_client.one", "network.http_client.other", lambda world: world.web.connections == 1,
    ),
    "cache_get": Kind(
        "operation: cache\naction: get\ncache: one\nkey: event_id\nreturns: string",
        "cache.read.one", "cache.read.other", _always,
    ),
    "cache_put": Kind(
        "operation: cache\naction: put\ncache: one\nkey: event_id\nvalue: event_id\nttl: 1h",
        "cache.write.one", "cache.write.other", lambda world: world.redis.get("vesper:cache:one:e") is not None,
    ),
    "cache_delete": Kind(
        "operation: cache\naction: delete\ncache: one\nkey: event_id",
        "cache.write.one", "cache.write.other", _always,
    ),
    "event_publish": Kind(
        'operation: event_publish\ntopic: one\npayload: {it: "{event_id}"}\neffect: unsafe',
        "events.publish.one", "events.publish.other", lambda world: world.redis.xlen("vesper:events:one") == 1,
    ),
    "secret_read": Kind("operation: secret\nname: one", "secrets.read.one", "secrets.read.other", _always),
    "file_read": Kind(
        "operation: file\naction: read\nroot: one\npath: there.txt\nreturns: string",
        "filesystem.read.one", "filesystem.read.other", _always,
    ),
    "file_write": Kind(
        "operation: file\naction: write\nroot: one\npath: it.txt\ncontent: event_id\neffect: unsafe",
        "filesystem.write.one", "filesystem.write.other",
        lambda world: (world.folder / "files_one/it.txt").read_text() == "e",
    ),
    "file_append": Kind(
        "operation: file\naction: append\nroot: one\npath: it.txt\ncontent: event_id",
        "filesystem.write.one", "filesystem.write.other",
        lambda world: (world.folder / "files_one/it.txt").read_text() == "e",
    ),
    "clock_now": Kind("operation: clock", "clock.read.system", "random.read.system", _always),
    "random_integer": Kind("operation: random\nmin: 1\nmax: 6", "random.read.system", "clock.read.system", _always),
    "uuid_new": Kind("operation: uuid", "random.read.system", "clock.read.system", _always),
    "state_transition": Kind(
        "operation: state_machine_transition\nmachine: things\nentity: event_id\nfrom: new\nto: used",
        "state.write.things", "state.write.other", lambda world: len(world.rows("SELECT * FROM vesper_states")) == 1,
        MACHINE,
    ),
    "state_read": Kind(
        "operation: state_read\nmachine: things\nentity: event_id",
        "state.read.things", "state.read.other", _always, MACHINE,
    ),
    "custom": Kind(
        "operation: custom\nname: one\nreturns: integer\neffect: unsafe",
        "effect.call.one", "effect.call.other", lambda world: world.called == ["one"],
    ),
    "command_run": Kind(
        "operation: shell_command\ncommand: one\narguments: [done]\neffect: read",
        "exec.shell_command.one", "exec.shell_command.other", _always,
    ),
    "mcp_call": Kind(
        "operation: mcp_call\nserver: one\ntool: echo\neffect: read",
        "mcp.call.one.echo", "mcp.call.other.echo", _always,
    ),
    "session_read": Kind(
        "operation: session\naction: read\nsession: one\nid: event_id",
        "sessions.read.one", "sessions.read.other", _always,
    ),
    "session_append": Kind(
        "operation: session\naction: append\nsession: one\nid: event_id\n"
        "messages: \"[{role: 'user', content: event_id}]\"",
        "sessions.write.one", "sessions.write.other", lambda world: world.messages() > 0,
    ),
    "session_compact": Kind(
        "operation: session\naction: compact\nsession: one\nid: event_id\nsummary: event_id\nthrough: 0\n"
        "on_error: {invalid_argument: {value: 0}}",
        "sessions.write.one", "sessions.write.other", lambda world: (world.folder / ".vesper" / "sessions.db").exists(),
    ),
    "session_get": Kind(
        "operation: session\naction: get\nsession: one\nid: event_id\nkey: event_id",
        "sessions.read.one", "sessions.read.other", _always,
    ),
    "session_put": Kind(
        "operation: session\naction: put\nsession: one\nid: event_id\nkey: event_id\nvalue: event_id",
        "sessions.write.one", "sessions.write.other", lambda world: world.messages() > 0,
    ),
    "session_delete": Kind(
        "operation: session\naction: delete\nsession: one\nid: event_id\nkey: event_id",
        "sessions.write.one", "sessions.write.other", _always,
    ),
    "budget_read": Kind("operation: budget_read\nname: one", "budgets.read.one", "budgets.read.other", _always),
    "model_call": Kind(
        "operation: ask_model\nmodel: one\nrequest: {messages: [{role: user, content: x}], max_tokens: 9}",
        "models.call.one", "models.call.other", lambda world: world.web.connections == 1,
    ),
    "sleep": Kind("operation: sleep\nduration: 1h", "clock.sleep.system", "clock.read.system", _always),
    "signal_wait": Kind("operation: wait_for\nsignal: one", "signals.receive.one", "signals.receive.other", _always),
    "interrupt": Kind(
        "operation: interrupt\nkind: confirmation\nmessage: event_id\nreturns: boolean",
        "interrupts.raise.confirmation", "interrupts.raise.checkpoint", _always,
    ),
}  # fmt: skip


def _text(kind: Kind) -> str:
    step = "\n".join(f"    {line}" for line in kind.step.split("\n"))
    return NODE.format(machine=kind.machine, step=step, capability=kind.capability)


def _grants(*allow: str, deny: tuple[str, ...] = (), nodes: tuple[str, ...] = ("*",)) -> list[dict[str, Any]]:
    return [{"nodes": list(nodes), "allow": list(allow), "deny": list(deny)}]


def _all_but(capability: str) -> tuple[str, ...]:
    """Return grants for everything except this capability's operation."""
    from vesper.values.generated.capabilities import CAPABILITIES

    operation = capability.rpartition(".")[0] if capability.count(".") == 2 else ".".join(capability.split(".")[:2])
    return tuple(f"{name}.*" for name in CAPABILITIES if name != operation)


def test_every_effect_is_here() -> None:
    assert KINDS.keys() == EFFECTS.keys()
    assert len(KINDS) == 30


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", KINDS)
def test_with_its_grant_it_is_performed(world: World, name: str, engine: str) -> None:
    kind = KINDS[name]
    (world.folder / "files_one/there.txt").write_text("hello", encoding="utf-8")
    for words in ((kind.capability,), (kind.capability.rpartition(".")[0] + ".*",)):
        with world.host(_grants(*words)) as host:
            node = node_from(_text(kind), world.folder, host, engine)
            if EFFECTS[name].classes == ("wait",):
                with pytest.raises(RunWaits):
                    node(event_id="e")
                continue
            outcome = node(event_id="e")
            if name == "state_transition" and words != (kind.capability,):
                assert outcome.error is not None
                assert outcome.error.code == "invalid_transition"  # it was moved just before
                continue
            assert outcome.ok, outcome.error
        if words == (kind.capability,):
            assert kind.done(world)


REFUSALS: dict[str, Callable[[Kind], list[dict[str, Any]]]] = {
    "nothing is granted": lambda _: [],
    "another target is granted": lambda kind: _grants(kind.other),
    "everything else is granted": lambda kind: _grants(*_all_but(kind.capability)),
    "another node is granted it": lambda kind: _grants(
        kind.capability, nodes=("does_one", "does_one_thing_v2", "*_v2")
    ),
    "denied to all": lambda kind: [*_grants("*"), *_grants(deny=(kind.capability,))],
    "denied by a prefix": lambda kind: _grants("*", kind.capability, deny=(kind.capability.split(".")[0] + ".*",)),
    "denied before it is granted": lambda kind: [*_grants(deny=("*",)), *_grants(kind.capability)],
    "denied to this node": lambda kind: [
        *_grants(kind.capability),
        *_grants(deny=(kind.capability,), nodes=("does_one_thing",)),
    ],
}


@pytest.mark.parametrize(
    "grants",
    [
        lambda word: _grants(word + "x"),
        lambda word: _grants("*", deny=(word + "x",)),
        lambda word: _grants("*", deny=(word[:-1],)),
        lambda word: _grants("*", deny=(word[:-1] + word[-1].upper(),)),
        lambda word: _grants("*", deny=(word + " ",)),
        lambda word: _grants("*", deny=(word + "\n",)),
        lambda word: _grants("*", deny=(word[:-2] + "*",)),
    ],
    ids=["allow longer", "deny longer", "deny shorter", "deny capital", "deny space", "deny newline", "deny part"],
)
@pytest.mark.parametrize("name", KINDS)
def test_a_mistyped_grant_is_an_error_before_anything_is_sent(
    world: World, name: str, grants: Callable[[str], list[dict[str, Any]]]
) -> None:
    kind = KINDS[name]
    before = world.traces()

    def run() -> None:
        with world.host(grants(kind.capability)) as host:
            node_from(_text(kind), world.folder, host, "python")(event_id="e")

    with pytest.raises(ConfigError, match="did you mean"):
        run()
    assert world.traces() == before


class Noting:
    """Performs nothing and notes the effects that it is asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def perform(self, ask: Ask) -> object:
        self.asked.append(ask.effect)
        raise EffectFailed("unavailable", "not here")

    def probe(self, ask: Ask) -> object:
        raise AssertionError(ask)

    def close(self) -> None: ...


@pytest.mark.parametrize("why", REFUSALS)
@pytest.mark.parametrize("name", KINDS)
def test_without_it_nothing_is_sent(world: World, name: str, why: str) -> None:
    kind = KINDS[name]
    before = world.traces()
    noting = Noting()
    with world.host(REFUSALS[why](kind), performers=dict.fromkeys(EFFECTS, noting)) as host:
        for engine in ENGINES:
            outcome = node_from(_text(kind), world.folder, host, engine)(event_id="e")
            assert outcome.error is not None
            assert (outcome.error.kind, outcome.error.code) == ("denied", kind.capability)
            assert kinds(host, outcome) == ["START", "END"]
    assert world.traces() == before
    assert noting.asked == []


def test_what_a_node_denies_itself_wins_over_the_configuration(world: World) -> None:
    """The checker rejects such a node; the Host rejects IR with the same contradiction."""
    from dataclasses import replace

    kind = KINDS["http_request"]
    with world.host(_grants("*")) as host:
        node = node_from(_text(kind), world.folder, host)
        compiled = node._compiled
        denied = replace(compiled.node, grants=replace(compiled.node.grants, denied=("network",)))
        changed = replace(compiled, node=denied, semantic_hash="0" * 64)
        from datetime import UTC, datetime

        ran = host.run(host.prepare(changed, node._program, "python"), {"event_id": "e"}, datetime.now(UTC))
        assert ran.outcome.kind == "denied"
    assert world.web.connections == 0


def test_what_a_node_does_not_ask_for_is_not_granted_by_a_star(world: World) -> None:
    from dataclasses import replace
    from datetime import UTC, datetime

    kind = KINDS["database_write"]
    with world.host(_grants("*")) as host:
        node = node_from(_text(kind), world.folder, host)
        compiled = node._compiled
        silent = replace(compiled.node, grants=replace(compiled.node.grants, required=()))
        changed = replace(compiled, node=silent, semantic_hash="1" * 64)
        ran = host.run(host.prepare(changed, node._program, "python"), {"event_id": "e"}, datetime.now(UTC))
        assert ran.outcome.kind == "denied"
    assert world.rows("SELECT * FROM one") == []


CALLER = """
node_id: calls_it_v1
type: workflow
intent: Call a node that does one thing
inputs:
  event_id: string
outputs:
  success: {done: boolean}
flow:
  - step: inner
    operation: call_node
    node: does_one_thing_v1
    inputs: {event_id: event_id}
  - operation: return
    success: {done: inner.done}
security:
  capabilities_required: [network.http_client.one]
"""


def test_a_node_that_is_called_has_what_its_caller_was_granted(world: World) -> None:
    """The run belongs to the caller: a grant of the callee alone permits nothing."""
    with world.host(_grants("*", nodes=("does_one_thing",))) as host:
        node_from(_text(KINDS["http_request"]), world.folder, host)  # writes its file
        outcome = node_from(CALLER, world.folder, host)(event_id="e")
        assert outcome.error is not None
        assert outcome.error.kind == "denied"
    assert world.web.connections == 0
    with world.host(_grants("network.*", nodes=("calls_it",))) as host:
        assert node_from(CALLER, world.folder, host)(event_id="e").ok
    assert world.web.connections == 1


def test_a_denial_holds_for_a_node_also_where_another_calls_it(world: World) -> None:
    grants = [*_grants("*"), *_grants(deny=("network.*",), nodes=("does_one_thing",))]
    with world.host(grants) as host:
        node_from(_text(KINDS["http_request"]), world.folder, host)
        for engine in ENGINES:
            outcome = node_from(CALLER, world.folder, host, engine)(event_id="e")
            assert outcome.error is not None
            assert (outcome.error.kind, outcome.error.code) == ("denied", "network.http_client.one")
            assert kinds(host, outcome) == ["START", "END"]
    assert world.web.connections == 0
