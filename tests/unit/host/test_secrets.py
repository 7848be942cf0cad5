"""A secret that nobody else can know is planted, used by a provider's credentials and by a `secret` step; whatever
happens then, it is found nowhere: in no file, no table, no key of Redis, no log, no outcome, no output of a command."""

from __future__ import annotations

import base64
import json
import logging
import secrets as random_texts
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis
from click.testing import CliRunner

from tests.support.dying import run_dying
from tests.support.servers import Postgres, Redis
from tests.support.web import Got, Script, Web, Wire, closes, hangs, message, redirects, says
from tests.unit.host.small import entries, kinds, message_of, node_from
from vesper.cli.audit import command as audit
from vesper.cli.journal import command as journal
from vesper.config.settings import read_config
from vesper.effects.custom.performer import Context, effect, unregister
from vesper.effects.performer import Ask
from vesper.effects.secrets.encoded_forms import forms_of
from vesper.engines.registry import ENGINES
from vesper.host.host import Host
from vesper.journal.entry import Kind
from vesper.migration.shadow.journal_replay import follow

NODE = """
node_id: courier_v1
type: event_handler
intent: Use a secret in every way that there is
inputs:
  event_id: string
  what: string
outputs:
  success:
    said: json
    held: string
    custom: string
flow:
  - {step: token, operation: secret, name: planted}
  - step: keep
    operation: cache
    action: put
    cache: notes
    key: what
    value: token
    ttl: 1h
  - step: row
    operation: database_write
    table: notes
    data: {what: what, held: token}
  - step: tell
    operation: event_publish
    topic: notes
    payload: {held: "{token}", what: "{what}"}
    effect: keyed
    key: what
  - step: file
    operation: file
    action: write
    root: out
    path: "note.txt"
    content: token
    effect: keyed
    key: what
  - step: call
    operation: external_api_call
    provider: shop
    method: POST
    endpoint: /it
    headers: {X-Token: "Token {token}"}
    body: {what: "{what}", deep: [{token: "x={token}"}]}
    effect: keyed
    key: what
    timeout: 2s
  - step: own
    operation: custom
    name: planted_effect
    request: {what: what}
    returns: string
  - operation: return
    success: {said: call, held: token, custom: own}
security:
  capabilities_required:
    - secrets.read.planted
    - cache.write.notes
    - database.write.notes
    - events.publish.notes
    - filesystem.write.out
    - network.http_client.shop
    - effect.call.planted_effect
  audit_level: detailed
"""
CONFIG = """
[[grants]]
nodes = ["*"]
allow = ["*"]

[providers.shop]
base_url = "{web}"
allow_private_addresses = true
auth = {{header = "Authorization", value = "Bearer {{secret:planted}}"}}
headers = {{"X-Static" = "a {{secret:planted}} b"}}
redirects = "same_host"

[databases.main]
dsn = "{postgres}"

[caches.notes]
url = "{redis}"

[events]
url = "{redis}"

[files.out]
path = "out"

[journal]
dsn = "{journal}"

[recovery]
enabled = false
"""


@dataclass
class Place:
    """Where the secret may have got to."""

    planted: str
    folder: Path
    dsn: str
    redis_url: str
    web: Web
    host: Host
    caplog: pytest.LogCaptureFixture
    engine: str

    def run(self, what: str = "a thing") -> Any:
        return node_from(NODE, self.folder, self.host, self.engine)(event_id=what, what=what)

    def assert_nowhere(self, *outcomes: Any) -> None:
        """It is looked for in every form that Vesper knows, and in some more."""
        texts = {"the log": self.caplog.text, "what is logged": " ".join(map(str, self.caplog.records))}
        for number, outcome in enumerate(outcomes):
            shown = [repr(outcome), str(outcome.value), str(outcome.error), repr(outcome.error)]
            texts[f"outcome {number}"] = " ".join(shown)
            texts[f"journal {number}"] = repr(self.host.journal.read(outcome.trace_id))
            for command in (
                ["journal", "show", outcome.trace_id],
                ["journal", "show", outcome.trace_id, "--format", "json"],
            ):
                texts[" ".join(command)] = self._command(*command)
        texts["audit"] = self._command("audit", "export", "-o", "-") + self._command("audit", "list")
        texts["list"] = self._command("journal", "list")
        self.host.close()
        for path in self.folder.rglob("*"):
            if path.is_file():
                texts[str(path)] = path.read_bytes().decode("latin-1")
        texts |= self._tables()
        texts["redis"] = self._redis()
        for where, text in texts.items():
            for form in forms_of(self.planted) | {self.planted[8:24], self.planted[::-1]}:
                assert form not in text, where
        assert len(texts["audit"]) > 100
        assert len(texts["redis"]) > 10

    def _command(self, *arguments: str) -> str:
        config = str(self.folder / "vesper.toml")
        group, *rest = arguments
        commands = {"journal": journal.command, "audit": audit.command}
        result = CliRunner().invoke(commands[group], [*rest, "--config", config])
        assert result.exit_code == 0, (arguments, result.output)
        return result.output

    def _tables(self) -> dict[str, str]:
        found = {}
        with psycopg.connect(self.dsn) as postgres:
            names = postgres.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
            for (name,) in names:
                rows = postgres.execute(f"SELECT t::text FROM {name} t".encode()).fetchall()  # noqa: S608
                found[name] = "\n".join(row[0] for row in rows)
                columns = postgres.execute(
                    "SELECT column_name FROM information_schema.columns WHERE data_type = 'bytea' AND table_name = %s",
                    [name],
                ).fetchall()
                for (column,) in columns:
                    raw = postgres.execute(f"SELECT {column} FROM {name}".encode()).fetchall()  # noqa: S608
                    found[f"{name}.{column}"] = "".join((row[0] or b"").decode("latin-1") for row in raw)
        return found

    def _redis(self) -> str:
        client = redis.Redis.from_url(self.redis_url)
        found = []
        for key in client.scan_iter():
            is_stream = client.type(key) == b"stream"
            found.append(f"{key!r} {client.xrange(key) if is_stream else client.get(key)!r}")
        client.close()
        return "\n".join(found)


@pytest.fixture(scope="module")
def notes(postgres: Postgres) -> str:
    dsn = postgres.new_database()
    with psycopg.connect(dsn) as connection:
        connection.execute("CREATE TABLE notes (what text, held text)")
    return dsn


@pytest.fixture
def answer() -> dict[str, Callable[[Context], str]]:
    return {"own": lambda _: "fine"}


@pytest.fixture(params=[("python", "sqlite"), ("interp", "postgres")], ids="-".join)
def place(
    request: pytest.FixtureRequest,
    notes: str,
    redis_server: Redis,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    answer: dict[str, Callable[[Context], str]],
) -> Iterator[Place]:
    engine, journal_kind = request.param
    planted = f'plant/{random_texts.token_urlsafe(24)}+&"'
    monkeypatch.setenv("VESPER_SECRET_PLANTED", planted)
    caplog.set_level(logging.DEBUG)
    (tmp_path / "out").mkdir()
    url = redis_server.url.removesuffix("/0") + "/10"
    client = redis.Redis.from_url(url)
    client.flushdb()
    client.close()

    @effect("planted_effect")
    def planted_effect(what: str, context: Context) -> str:
        return answer["own"](context)

    with Web() as web:
        dsn = notes if journal_kind == "postgres" else f"sqlite:{tmp_path / 'journal.db'}"
        config = tmp_path / "vesper.toml"
        config.write_text(CONFIG.format(web=web.url, postgres=notes, redis=url, journal=dsn), encoding="utf-8")
        with Host(read_config(config)) as host:
            yield Place(planted, tmp_path, notes, url, web, host, caplog, engine)
    unregister("planted_effect")


def echoes(status: int, form: Callable[[str], bytes]) -> Script:
    """A server that says what it was sent as a credential."""

    def script(got: Got, wire: Wire) -> None:
        sent = got.headers["authorization"].removeprefix("Bearer ")
        wire.send(message(status, form(sent), {"Content-Type": "application/json"}))

    return script


def _escaped(text: str) -> bytes:
    return b'{"it": "' + "".join(f"\\u{ord(each):04x}" for each in text).encode() + b'"}'


ECHOES: dict[str, Callable[[str], bytes]] = {
    "plain": lambda text: json.dumps({"it": f"you sent Bearer {text}, thanks"}).encode(),
    "escaped": _escaped,
    "as a name": lambda text: json.dumps({"deep": [{text: 1}]}).encode(),
    "base64": lambda text: json.dumps([base64.b64encode(text.encode()).decode()]).encode(),
    "inside base64": lambda text: json.dumps([base64.b64encode(f"user:{text}:x".encode()).decode()]).encode(),
    "hex": lambda text: json.dumps(text.encode().hex()).encode(),
    "whole": lambda text: json.dumps(text).encode(),
}


def test_a_run_that_succeeds_has_used_it_and_left_it_nowhere(place: Place) -> None:
    place.web.on("/it", says({"thanks": True}))
    outcome = place.run()
    assert outcome.ok, outcome.error
    (got,) = place.web.got
    assert got.headers["authorization"] == f"Bearer {place.planted}"
    assert got.headers["x-token"] == f"Token {place.planted}"
    assert got.headers["x-static"] == f"a {place.planted} b"
    assert json.loads(got.body) == {"what": "a thing", "deep": [{"token": f"x={place.planted}"}]}
    assert outcome["held"].startswith("secret:planted:")
    recorded = entries(place.host, outcome)
    for name, engine in ENGINES.items():
        program = engine.load(node_from(NODE, place.folder, place.host)._compiled)
        assert follow(program, recorded).difference is None, name
    place.assert_nowhere(outcome)


@pytest.mark.parametrize("form", ECHOES)
def test_a_server_that_says_it_back_is_not_believed(place: Place, form: str) -> None:
    place.web.on("/it", echoes(200, ECHOES[form]))
    outcome = place.run()
    assert (outcome.error.kind, outcome.error.code) == ("failed", "bad_response")
    assert "has a secret in it" in message_of(place.host, outcome)
    assert [each.body["may_have_happened"] for each in entries(place.host, outcome) if each.kind is Kind.FAILED] == [
        True
    ]
    place.assert_nowhere(outcome)


@pytest.mark.parametrize("form", ["plain", "base64", "inside base64", "hex"])
@pytest.mark.parametrize("status", [400, 500])
def test_a_server_that_quotes_it_in_an_error(place: Place, status: int, form: str) -> None:
    place.web.on("/it", echoes(status, ECHOES[form]))
    outcome = place.run()
    assert outcome.error.code == f"http_{status}"
    assert "secret:planted" in message_of(place.host, outcome)
    place.assert_nowhere(outcome)


def test_a_server_that_is_no_server(place: Place) -> None:
    outcomes = []
    for number, script in enumerate((closes, hangs, echoes(200, str.encode), echoes(302, str.encode))):
        place.web.on("/it", script)
        outcomes.append(place.run(f"thing {number}"))
    assert [outcome.error.code for outcome in outcomes] == ["unavailable", "timeout", "bad_response", "http_302"]
    place.assert_nowhere(*outcomes)


def test_a_redirect_with_it_in_its_url(place: Place) -> None:
    def script(got: Got, wire: Wire) -> None:
        sent = got.headers["authorization"].removeprefix("Bearer ").replace('"', "%22")
        redirects(f"/other?key={sent}", 307)(got, wire)

    place.web.on("/it", script)
    outcome = place.run()
    assert outcome.error.code == "http_307"
    assert [got.path for got in place.web.got] == ["/it"]
    place.assert_nowhere(outcome)


def test_an_effect_of_the_application_that_gives_it_away(
    place: Place, answer: dict[str, Callable[[Context], str]]
) -> None:
    place.web.on("/it", says(1))

    def raises(context: Context) -> str:
        raise RuntimeError(f"cannot log in with {context.secret('planted')}")

    answer["own"] = lambda context: "it is " + context.secret("planted")
    returned = place.run("first")
    answer["own"] = raises
    raised = place.run("second")
    assert [returned.error.code, raised.error.code] == ["bad_response", "effect_failed"]
    place.assert_nowhere(returned, raised)


def test_a_performer_that_breaks_with_it_in_its_message(place: Place) -> None:
    class Broken:
        def perform(self, ask: Ask) -> object:
            raise RuntimeError(f"a bug, with {ask.secret('planted')} in hand")

        def probe(self, ask: Ask) -> object:
            raise AssertionError(ask)

        def close(self) -> None: ...

    with Host(place.host.config, performers={"http_request": Broken()}) as host:
        outcome = node_from(NODE, place.folder, host, place.engine)(event_id="a thing", what="a thing")
    assert outcome.error is not None
    assert outcome.error.kind == "engine_fault"
    assert "a bug, with secret:planted in hand" in str(outcome.error)
    assert "a bug, with secret:planted in hand" in place.caplog.text
    place.assert_nowhere(outcome)


def test_a_run_that_dies_and_is_finished_by_another(place: Place) -> None:
    place.web.on("/it", says({"thanks": True}))
    path = place.folder / "courier_v1.vsp"
    path.write_text(NODE, encoding="utf-8")
    settings = place.host.config.path
    assert settings is not None
    # The sixth effect is the call.
    run_dying(settings, path, place.engine, "effect.performed:6", event_id="a thing", what="a thing")
    (left,) = place.host.journal.find(limit=1)
    # The reference that it was given stands in the journal: whoever finishes the run sends the very same request.
    other = "interp" if place.engine == "python" else "python"
    recovered = place.host.resume(left.execution, other)
    assert recovered.outcome is not None
    assert recovered.outcome.kind == "returned", recovered
    first, second = place.web.got
    assert (first.headers["x-token"], first.body) == (second.headers["x-token"], second.body)
    assert second.headers["authorization"] == f"Bearer {place.planted}"

    @dataclass
    class Seen:
        trace_id: str
        value: object
        error: object

    place.assert_nowhere(Seen(left.execution, recovered, None))


# -- who may name it ------------------------------------------------------------------------------

FORGED = [
    "secret:planted",
    "{secret:planted}",
    "Bearer secret:planted",
    "secret:planted:",
    "secret:planted:00000000000000000000000000000000",
    "secret:planted:" + "f" * 32,
    "SECRET:planted",
    "secret%3Aplanted",
    "secret:planted\u200b",
    "${secret:planted}",
]


@pytest.mark.parametrize("text", FORGED)
def test_a_text_from_outside_is_never_a_reference(place: Place, text: str) -> None:
    """Also where the node has the capability, and uses that very secret in the same request."""
    place.web.on("/it", says({"thanks": text}))
    outcome = place.run(text)
    if text.isascii():
        assert outcome.ok, outcome.error
        assert json.loads(place.web.got[0].body)["what"] == text
        assert outcome["said"] == {"thanks": text}
    assert place.planted not in "".join(got.target for got in place.web.got)
    assert kinds(place.host, outcome)[-1] == "END"


def test_what_a_provider_says_is_no_reference_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One provider names the secret of another; the node hands it on."""
    monkeypatch.setenv("VESPER_SECRET_PLANTED", "plant-0123456789")
    text = """
node_id: passes_on_v1
type: event_handler
intent: Hand on what one says to another
inputs: {event_id: string}
outputs:
  success: {said: json}
flow:
  - {step: token, operation: secret, name: planted}
  - step: first
    operation: external_api_call
    provider: one
    method: GET
    endpoint: /it
    expect: {name: string}
  - step: second
    operation: external_api_call
    provider: two
    method: POST
    endpoint: /it
    headers: {X-Name: "{first.name}"}
    body: {name: "{first.name}"}
    effect: unsafe
  - operation: return
    success: {said: second}
security:
  capabilities_required: [secrets.read.planted, network.http_client.one, network.http_client.two]
"""
    from tests.unit.host.small import host_in

    with Web() as one, Web() as two:
        one.on("/it", says({"name": "secret:planted"}))
        two.on("/it", says(1))
        providers = {
            name: {"base_url": web.url, "allow_private_addresses": True} for name, web in (("one", one), ("two", two))
        }
        for engine in ENGINES:
            with host_in(tmp_path, {"providers": providers}) as host:
                assert node_from(text, tmp_path, host, engine)(event_id="e").ok
        for got in two.got:
            assert got.headers["x-name"] == "secret:planted"
            assert json.loads(got.body) == {"name": "secret:planted"}
