"""A small company for tests: every database, provider, cache, topic and folder that the nodes of this repository ask
for, all of them real, and a Host in the middle of it.

    with World(folder, dsn, redis_url, "python") as world:
        outcome = world.run("payments/payment_handler_v1", order_id="o1", user_id="u1", amount="5")

What a run leaves is asked for here too: rows, events, and the journal in a form that can be compared with that of
another run.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, Self

import psycopg
import pytest
import redis

from tests.support.waiting import eventually
from tests.support.web import FakeStripe, Got, Script, Web, Wire, message, says
from vesper.api.node import Node
from vesper.api.runs import RunHandle
from vesper.compiler import Compiled, compile_source
from vesper.config.settings import RecoverySettings, config_from
from vesper.effects.custom.performer import effect, unregister
from vesper.effects.performer import Ask, EffectFailed
from vesper.engines.registry import ENGINES
from vesper.host.host import Host
from vesper.journal.entry import Entry, Kind
from vesper.language.diagnostics.source import SourceFile
from vesper.migration.shadow.journal_replay import follow
from vesper.testing import Sources, fixed_sources

ROOT = Path(__file__).parents[3]
NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
GATEWAY_TOKEN = "gw_0123456789abcdef"
STRIPE_KEY = "sk_test_0123456789abcdef"


@cache
def compiled_node(name: str, timeout: str | None = None) -> Compiled:
    """A node of this repository, with another timeout where one is given."""
    path = ROOT / "nodes" / f"{name}.vsp"
    text = path.read_text("utf-8")
    if timeout is not None:
        text, changes = re.subn(r"\btimeout: [0-9]+[a-z]+", f"timeout: {timeout}", text)
        assert changes == 1, name
    found, bag = compile_source(SourceFile(str(path), text))
    assert found is not None, bag.sorted()
    return found


@cache
def _program(name: str, engine: str, timeout: str | None = None) -> Any:
    return ENGINES[engine].load(compiled_node(name, timeout))


class FixedChance:
    """Performs clock, random and uuid: always the same in the same order, so that two runs can be compared."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def perform(self, ask: Ask) -> object:
        number = next(self._numbers)
        match ask.effect:
            case "clock_now":
                return NOW
            case "random_integer":
                least, most = ask.arguments["min"], ask.arguments["max"]
                assert isinstance(least, int)
                assert isinstance(most, int)
                return least + number % (most - least + 1)
            case _:
                return f"00000000-0000-4000-8000-{number:012}"

    def probe(self, ask: Ask) -> object:
        raise EffectFailed("unavailable", f"{ask.effect} is done again")

    def close(self) -> None: ...


class World:
    """All of it for one engine. `model` is what the language model answers, or raises."""

    def __init__(
        self, folder: Path, dsn: str, redis_url: str, engine: str, monkeypatch: pytest.MonkeyPatch, **settings: Any
    ) -> None:
        self.folder = folder
        self.dsn = dsn
        self.engine = engine
        self.redis = redis.Redis.from_url(redis_url)
        self.redis.flushdb()
        self.stripe = FakeStripe(api_key=STRIPE_KEY)
        self.web = Web()
        self.model: Callable[..., object] = lambda **_: {}
        self.model_calls: list[dict[str, object]] = []
        self.outcomes: list[tuple[str, Any]] = []
        self._timeouts: dict[str, str] = {}
        monkeypatch.setenv("VESPER_SECRET_STRIPE_API_KEY", STRIPE_KEY)
        monkeypatch.setenv("VESPER_SECRET_GATEWAY_TOKEN", GATEWAY_TOKEN)
        for name in ("templates", "statements", "logs", "reports"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        config = config_from({**self._settings(redis_url), **settings}, folder)
        chance = FixedChance()
        # No test waits for a second attempt, and two runs draw the same delays.
        sources = Sources(random_bytes=fixed_sources(NOW, seed=7).random_bytes, wait_scale=0)
        self.host = Host(
            config, performers=dict.fromkeys(("clock_now", "random_integer", "uuid_new"), chance), sources=sources
        )
        self._register_model()

    def _settings(self, redis_url: str) -> dict[str, Any]:
        return {
            "grants": [{"nodes": ["*"], "allow": ["*"]}],
            "providers": {
                "stripe": {
                    "base_url": self.stripe.url,
                    "allow_private_addresses": True,
                    "auth": {"header": "Authorization", "value": "Bearer {secret:stripe_api_key}"},
                },
                **{
                    name: self._provider(name) for name in ("mailer", "printer", "agency", "gateway", "bank", "carrier")
                },
            },
            "databases": {name: {"dsn": self.dsn} for name in ("main", "accounts")},
            "caches": {name: {"url": redis_url} for name in ("rates", "key_lists")},
            "events": {"url": redis_url, "database": "main"},
            "files": {name: {"path": name} for name in ("templates", "statements", "logs", "reports")},
            "journal": {"dsn": self.journal_dsn},
            "recovery": {"enabled": False},
        }

    def _provider(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = {"base_url": f"{self.web.url}/{name}", "allow_private_addresses": True}
        if name == "printer":
            found["probe"] = {"endpoint": "/made/{key}"}
        return found

    @property
    def journal_dsn(self) -> str:
        return f"sqlite:{self.folder / 'journal.db'}" if self.dsn.startswith("sqlite:") else self.dsn

    def _register_model(self) -> None:
        @effect("language_model", effect_class="keyed")
        def language_model(system: str, user: str, most_tokens: int, key: str) -> object:
            self.model_calls.append({"system": system, "user": user, "most_tokens": most_tokens, "key": key})
            return self.model(user=user, key=key)

    def close(self) -> None:
        unregister("language_model")
        self.host.close()
        self.stripe.close()
        self.web.close()
        self.redis.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- running ----------------------------------------------------------------------------------

    def node(self, name: str, engine: str | None = None) -> Node:
        engine = engine or self.engine
        timeout = self._timeouts.get(name)
        return Node(compiled_node(name, timeout), _program(name, engine, timeout), engine, None, (), self.host)

    def run(self, name: str, **inputs: Any) -> Any:
        outcome = self.node(name)(**inputs, now=NOW)
        self.outcomes.append((name, outcome))
        return outcome

    def begin(self, name: str, **inputs: Any) -> RunHandle:
        """Run a node to its first wait."""
        handle = self.node(name).start_run(inputs, now=NOW)
        self.host.keep()
        return handle

    def finish(self, name: str, handle: RunHandle) -> Any:
        """Run a node from its last wait to its end."""
        self.host.keep()
        outcome = handle.wait(timeout=60)
        self.outcomes.append((name, outcome))
        return outcome

    def shorten(self, name: str, timeout: str) -> None:
        """Gives a node another timeout: no test waits for as long as the node would."""
        self._timeouts[name] = timeout

    def on(self, path: str, script: Script) -> None:
        """What a provider other than stripe answers: `/mailer/v2/messages`."""
        self.web.on(path, script)

    def bodies(self, path: str) -> list[Any]:
        """The JSON bodies that a path of a provider was sent."""
        return [json.loads(got.body) for got in self.web.got if got.path == path]

    def relay_outbox(self) -> None:
        """Publishes the events that wait in the outbox, as the background work of any Host does."""
        config = self.host.config
        with Host(replace(config, recovery=RecoverySettings(every=0.05))) as relaying:
            relaying.start()
            eventually(lambda: not self.rows("SELECT id FROM vesper_outbox"))

    # -- what is left -----------------------------------------------------------------------------

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        if self.dsn.startswith("sqlite:"):
            with closing(sqlite3.connect(self.dsn.removeprefix("sqlite:"))) as connection, connection:
                return connection.execute(sql).fetchall()
        with psycopg.connect(self.dsn) as postgres:
            found = postgres.execute(sql.encode())
            return found.fetchall() if found.description else []

    def put(self, table: str, *rows: Mapping[str, object]) -> None:
        for row in rows:
            names, values = ", ".join(row), ", ".join(map(_literal, row.values()))
            self.rows(f"INSERT INTO {table} ({names}) VALUES ({values})")  # noqa: S608

    def state(self, machine: str, entity: str) -> str | None:
        if not self._has("vesper_states"):
            return None
        found = self.rows(f"SELECT state FROM vesper_states WHERE machine = '{machine}' AND entity = '{entity}'")  # noqa: S608
        return found[0][0] if found else None

    def _has(self, table: str) -> bool:
        if self.dsn.startswith("sqlite:"):
            return bool(self.rows(f"SELECT 1 FROM sqlite_master WHERE name = '{table}'"))  # noqa: S608
        return bool(self.rows(f"SELECT 1 FROM pg_tables WHERE tablename = '{table}'"))  # noqa: S608

    def events(self, topic: str) -> list[dict[str, Any]]:
        """The payloads in the stream of a topic."""
        entries: Any = self.redis.xrange(f"vesper:events:{topic}")
        return [json.loads(fields[b"payload"]) for _, fields in entries]

    def entries(self, outcome: Any) -> list[Entry]:
        return [each.entry for each in self.host.journal.read(outcome.trace_id).entries]

    def kinds(self, outcome: Any) -> list[str]:
        return [f"{each.kind} {each.path}".strip() for each in self.entries(outcome)]

    def codes(self, outcome: Any) -> list[tuple[str, str]]:
        """The steps that failed, and with what."""
        return [(each.path, str(each.body["code"])) for each in self.entries(outcome) if each.kind is Kind.FAILED]

    def decisions(self, outcome: Any) -> list[str]:
        """Of retries and breakers; how long an attempt was paced depends on the machine."""
        return [
            str(each.body["decision"])
            for each in self.entries(outcome)
            if each.kind is Kind.VALUE and not is_paced(each)
        ]

    def delays(self, outcome: Any) -> list[float]:
        """The seconds between the attempts of a run."""
        bodies = [each.body for each in self.entries(outcome) if each.kind is Kind.VALUE]
        return [int(str(body["delay_us"])) / 1_000_000 for body in bodies if body["decision"] == "retry"]

    # -- comparing --------------------------------------------------------------------------------

    def assert_all_engines_agree(self) -> None:
        """Each engine, fed the records of every run, asks for the same and comes to the same."""
        for name, outcome in self.outcomes:
            if not self.host.knows(outcome.trace_id):
                continue  # its inputs did not fit
            entries = self.entries(outcome)
            for engine in ENGINES:
                followed = follow(_program(name, engine, self._timeouts.get(name)), entries)
                assert followed.difference is None, (name, engine, followed)

    def journals(self) -> list[Any]:
        """Every run without what differs from one run to the next: ids, times, the engine."""
        found = []
        for _, outcome in self.outcomes:
            if self.host.knows(outcome.trace_id):
                recorded = self.host.journal.read(outcome.trace_id)
                is_sensitive = recorded.summary.is_sensitive
                entries = [each.entry for each in recorded.entries if not is_paced(each.entry)]
                made = {str(each.body["value"]): "<a new id>" for each in entries if _has_new_id(each)}
                plain = [plain_entry(each, outcome.trace_id, is_sensitive) for each in entries]
                found.append([(*rest, _renamed(body, made)) for *rest, body in plain])
        return found


_VARIES = frozenset({"duration_us", "slow", "engine", "wait_us", "delay_us", "owner", "fence"})


def is_paced(entry: Entry) -> bool:
    """True for the note that a rate limit held an attempt back: with nobody asleep between attempts it may."""
    return entry.kind is Kind.VALUE and entry.body["decision"] == "admitted"


def plain_entry(entry: Entry, execution: str, is_sensitive: bool) -> tuple[object, ...]:
    """An entry without ids and times. The digests of a sensitive run are made with a key of its own, so that only
    their being there can be compared; what they are of stands in the body."""
    body = {name: _without(value, execution) for name, value in entry.body.items() if name not in _VARIES}
    if _has_new_id(entry):
        body["value"] = "<a new id>"
    digest = bool(entry.digest) if is_sensitive else entry.digest
    return (str(entry.kind), entry.path, entry.effect, entry.effect_class, entry.key, digest, body)


def _has_new_id(entry: Entry) -> bool:
    """True where an event was published under an id that is never given again."""
    return entry.effect == "event_publish" and entry.effect_class in ("unsafe", "txn") and "value" in entry.body


def _renamed(value: object, names: Mapping[str, str]) -> object:
    """With other texts for some: a run may return the id of an event."""
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, Mapping):
        return {name: _renamed(each, names) for name, each in value.items()}
    if isinstance(value, list):
        return [_renamed(each, names) for each in value]
    return value


def _without(value: object, execution: str) -> object:
    if isinstance(value, str):
        return re.sub(r"(secret:[a-z_]+):[0-9a-f]{32}", r"\1", value.replace(execution, "<execution>"))
    if isinstance(value, Mapping):
        return {name: _without(each, execution) for name, each in value.items()}
    if isinstance(value, list):
        return [_without(each, execution) for each in value]
    return value


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return str(value) if isinstance(value, int) else "'" + str(value).replace("'", "''") + "'"


def answers(*scripts: Script) -> Script:
    """The first request gets the first, the second the second; the last one stays."""
    left = list(scripts)

    def script(got: Got, wire: Wire) -> None:
        (left.pop(0) if len(left) > 1 else left[0])(got, wire)

    return script


def status(code: int, headers: Mapping[str, str] | None = None) -> Script:
    """An answer without a body."""
    return lambda _, wire: wire.send(message(code, headers=headers))


def ok(value: object = None) -> Script:
    return says({} if value is None else value)
