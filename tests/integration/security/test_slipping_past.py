"""Attacks on the Host through inputs, provider responses and careless settings.

Each is rejected before anything happens, or arrives as harmless text. An attempt is a place in a node, a text that
flows into it, and the required result.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import psycopg
import pytest
import redis

from tests.support.servers import Postgres, Redis
from tests.support.web import Got, Web, Wire, redirects, says
from tests.unit.host.small import entries, host_in, message_of, node_from
from vesper.effects.settings import ConfigError
from vesper.engines.registry import PAIR
from vesper.host.host import Host
from vesper.journal.entry import Kind

HEAD = """
node_id: takes_a_text_v1
type: event_handler
intent: Put a text where it belongs
inputs:
  event_id: string
  given: string
outputs:
  success: {said: string}
flow:
"""
CALL = """
  - step: call
    operation: external_api_call
    provider: shop
    method: POST
    endpoint: ENDPOINT
    effect: EFFECT
  - operation: return
    success: {said: text(call)}
security:
  capabilities_required: [network.http_client.shop]
"""


def _call(more: str = "", endpoint: str = "/it", effect: str = "unsafe") -> str:
    effect += "".join(f"\n    {line}" for line in more.split("\n") if line)
    return HEAD + CALL.lstrip("\n").replace("ENDPOINT", endpoint).replace("EFFECT", effect)


def _step(step: str, said: str, *capabilities: str) -> str:
    lines = "\n".join(f"    {line}" for line in step.split("\n"))
    end = f"  - operation: return\n    success:\n      said: {said}\n"
    return f"{HEAD}  - step: it\n{lines}\n{end}security:\n  capabilities_required: [{', '.join(capabilities)}]\n"


NODES = {
    "segment": _call(endpoint='"/items/{given}"'),
    "middle": _call(endpoint='"/items/{given}/price"'),
    "endpoint": _call(endpoint='"/{given}"'),
    "query": _call("query: {q: given}"),
    "header": _call('headers: {X-Name: "{given}"}'),
    "body": _call('body: {text: "{given}", deep: ["{given}"]}'),
    "key": _call("key: given", effect="keyed"),
    "bind": _step(
        "operation: database_query\nquery: SELECT name FROM people WHERE name = :given\nbind: [given]\n"
        "returns: array<string>",
        "join(it, '|')",
        "database.read.people",
    ),
    "insert": _step(
        "operation: database_write\ntable: people\ndata: {name: given}", "text(it)", "database.write.people"
    ),
    "cache": _step(
        "operation: cache\naction: put\ncache: notes\nkey: given\nvalue: given\nttl: 1h",
        "text(it)",
        "cache.write.notes",
    ),
    "event": _step(
        'operation: event_publish\ntopic: told\npayload: {text: "{given}"}\nevent_key: given\neffect: unsafe',
        "it",
        "events.publish.told",
    ),
    "read": _step(
        'operation: file\naction: read\nroot: open\npath: "{given}"\nreturns: string', "it", "filesystem.read.open"
    ),
    "write": _step(
        'operation: file\naction: write\nroot: open\npath: "{given}"\ncontent: given\neffect: unsafe',
        "text(it)",
        "filesystem.write.open",
    ),
    "template": _step('operation: string_template\ntemplate: "Dear {given}, {{given}}"', "it").replace(
        "  capabilities_required: []\n", ""
    ),
}
NODES["template"] = NODES["template"].removesuffix("security:\n")


@dataclass
class Place:
    folder: Path
    web: Web
    inside: Web
    """A server that must not receive requests."""
    redis: redis.Redis
    host: Host

    def run(self, slot: str, given: str, engine: str = "python") -> Any:
        return node_from(NODES[slot], self.folder, self.host, engine)(event_id="e", given=given)


@pytest.fixture(scope="module")
def people(postgres: Postgres) -> str:
    dsn = postgres.new_database()
    with psycopg.connect(dsn) as connection:
        connection.execute("CREATE TABLE people (name text)")
    return dsn


@pytest.fixture(params=["sqlite", "postgres"])
def dsn(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """SQL attempts run on both databases, all others on the first."""
    if request.param == "postgres":
        found: str = request.getfixturevalue("people")
        with psycopg.connect(found) as postgres:
            postgres.execute("TRUNCATE people")
            postgres.execute("INSERT INTO people VALUES ('ann'), ('bo')")
        return found
    with closing(sqlite3.connect(tmp_path / "people.db")) as connection, connection:
        connection.execute("CREATE TABLE people (name text)")
        connection.execute("INSERT INTO people VALUES ('ann'), ('bo')")
    return f"sqlite:{tmp_path / 'people.db'}"


def _people(dsn: str) -> list[str]:
    sql = "SELECT name FROM people ORDER BY name"
    if dsn.startswith("sqlite:"):
        with closing(sqlite3.connect(dsn.removeprefix("sqlite:"))) as connection:
            return [name for (name,) in connection.execute(sql)]
    with psycopg.connect(dsn) as postgres:
        return [name for (name,) in postgres.execute(sql)]


@pytest.fixture
def place(tmp_path: Path, redis_server: Redis, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    yield from _place(tmp_path, redis_server, monkeypatch, f"sqlite:{tmp_path / 'none.db'}", {})


@pytest.fixture
def place_with_people(
    tmp_path: Path, redis_server: Redis, monkeypatch: pytest.MonkeyPatch, dsn: str
) -> Iterator[Place]:
    yield from _place(tmp_path, redis_server, monkeypatch, dsn, {})


def _place(
    folder: Path, server: Redis, monkeypatch: pytest.MonkeyPatch, dsn: str, provider: dict[str, Any]
) -> Iterator[Place]:
    monkeypatch.setenv("VESPER_SECRET_SHOP_KEY", "the-key-of-the-shop-0123456789")
    url = server.url.removesuffix("/0") + "/12"
    client = redis.Redis.from_url(url)
    client.flushdb()
    (folder / "open").mkdir()
    (folder / "open/hello.txt").write_text("hello", encoding="utf-8")
    (folder / "closed").mkdir()
    (folder / "closed/key.txt").write_text("do not read", encoding="utf-8")
    (folder / "open/link").symlink_to(folder / "closed")
    (folder / "open/link.txt").symlink_to(folder / "closed/key.txt")
    with Web() as web, Web() as inside:
        web.answer = _any_path  # type: ignore[method-assign]
        inside.answer = _any_path  # type: ignore[method-assign]
        shop = {
            "base_url": f"{web.url}/v1",
            "allow_private_addresses": True,
            "timeout": "5s",
            "auth": {"value": "Bearer {secret:shop_key}"},
            **provider,
        }
        settings = {
            "providers": {"shop": shop},
            "databases": {"main": {"dsn": dsn}},
            "caches": {"notes": {"url": url}},
            "events": {"url": url},
            "files": {"open": {"path": "open"}},
        }
        with host_in(folder, settings) as host:
            yield Place(folder, web, inside, client, host)
    client.close()


def _any_path(got: Got, wire: Wire) -> None:
    says("fine")(got, wire)


# -- requests -------------------------------------------------------------------------------------

REFUSED = [
    ("segment", ".."),
    ("segment", "."),
    ("segment", "../admin"),
    ("segment", "..\\admin"),
    ("segment", "a/../../admin"),
    ("segment", "%2e%2e"),
    ("segment", "%2e%2e%2fadmin"),
    ("segment", "%252e%252e%252fadmin"),
    ("segment", "..%00"),
    ("segment", "..;x=1"),
    ("segment", "\x00"),
    ("segment", "a\r\nHost: evil"),
    ("segment", "a" * 9000),
    ("middle", ".."),
    ("middle", ""),
    ("endpoint", ".."),
    ("endpoint", "../v2"),
    ("endpoint", "/../admin"),
    ("header", "a\r\nX-Admin: true"),
    ("header", "a\nX-Admin: true"),
    ("header", "a\r\n\r\nGET /admin HTTP/1.1\r\nHost: x\r\n\r\n"),
    ("header", "a\x00b"),
    ("header", "a\x0bb"),
    ("header", "a\x85X-Admin: true"),
    ("header", "a\u2028X-Admin: true"),
    ("header", "a\u010aX-Admin: true"),
    ("header", " leading"),
    ("header", "trailing "),
    ("header", "x" * 9000),
    ("query", "x" * 9000),
    ("key", ""),
    ("key", "k" * 300),
]
"""Attempts that are not sent: the provider sees no connection."""

INERT = [
    ("segment", "http://127.0.0.1/"),
    ("segment", "@evil.example"),
    ("segment", "a?admin=true"),
    ("segment", "a#fragment"),
    ("segment", "a&b=c"),
    ("segment", "a;admin"),
    ("segment", "a b"),
    ("segment", "…"),
    ("segment", "\uff0e\uff0e"),
    ("segment", "\u2024\u2024"),
    ("segment", "\uff0e\uff0e\uff0fadmin"),
    ("segment", "..."),
    ("segment", "{secret:shop_key}"),
    ("endpoint", "evil.example"),
    ("endpoint", "http://evil.example/x"),
    ("endpoint", "//evil.example/x"),
    ("query", "a&admin=true"),
    ("query", "a#b"),
    ("query", "a\r\nX-Admin: true"),
    ("query", "secret:shop_key"),
    ("query", "{secret:shop_key}"),
    ("query", "%26admin=true"),
    ("header", "secret:shop_key"),
    ("header", "Bearer {secret:shop_key}"),
    ("header", "a, b; q=\"'"),
    ("body", '","admin":true,"x":"'),
    ("body", "secret:shop_key"),
    ("body", "{secret:shop_key}"),
    ("body", "{given}{{given}}${given}%s"),
    ("body", "\x00\x1b[31m\u202e"),
    ("body", "x" * 100_000),
    ("key", "k\r\nX-Admin: true"),
    ("key", "k\x00"),
    ("key", " k "),
    ("key", "ключ"),
]
"""Attempts that arrive as one text in the intended place."""


def _ids(attempts: list[tuple[str, str]]) -> list[str]:
    return [f"{number} {slot} {ascii(text[:20])[1:-1]}" for number, (slot, text) in enumerate(attempts)]


@pytest.mark.parametrize("slot, text", REFUSED, ids=_ids(REFUSED))
def test_it_is_not_sent(place: Place, slot: str, text: str) -> None:
    for engine in PAIR:
        outcome = place.run(slot, text, engine)
        assert (outcome.error.kind, outcome.error.code) == ("failed", "invalid_argument")
        told = message_of(place.host, outcome)
        assert told.startswith("nothing was sent: ")
        assert len(told) < 500
        assert told.isprintable()
    assert place.web.connections == 0


@pytest.mark.parametrize("slot, text", INERT, ids=_ids(INERT))
def test_it_arrives_as_the_text_that_it_is(place: Place, slot: str, text: str) -> None:
    for engine in PAIR:
        outcome = place.run(slot, text, engine)
        assert outcome.ok, outcome.error
    assert len(place.web.got) == len(PAIR)
    assert place.inside.connections == 0
    for got in place.web.got:
        assert "x-admin" not in got.headers
        assert got.headers["host"] == f"127.0.0.1:{place.web.port}"
        assert got.headers["authorization"] == "Bearer the-key-of-the-shop-0123456789"
        parts = urlsplit(got.target)
        assert got.target.startswith("/v1/")
        assert _arrived(slot, got, parts.path, parts.query) == text


def _arrived(slot: str, got: Got, path: str, query: str) -> str:
    """Return the text as the provider reads it."""
    match slot:
        case "segment" | "endpoint":
            assert query == ""
            (segment,) = path.removeprefix("/v1/items/" if slot == "segment" else "/v1/").split("/")
            return unquote(segment)
        case "query":
            fields = parse_qs(query, keep_blank_values=True)
            assert list(fields) == ["q"]
            return fields["q"][0]
        case "header":
            return got.headers["x-name"]
        case "key":
            return unquote(got.headers["idempotency-key"])
        case _:
            body = json.loads(got.body)
            assert set(body) == {"text", "deep"}
            assert body["deep"] == [body["text"]]
            return str(body["text"])


# -- redirects and addresses ----------------------------------------------------------------------

PLACES = [
    "http://127.0.0.1:{inside}/",
    "http://localhost:{inside}/",
    "http://LOCALHOST:{inside}/",
    "http://127.1:{inside}/",
    "http://2130706433:{inside}/",
    "http://0x7f000001:{inside}/",
    "http://0177.0.0.1:{inside}/",
    "http://[::1]:{inside}/",
    "http://[::ffff:127.0.0.1]:{inside}/",
    "http://0.0.0.0:{inside}/",
    "http://169.254.169.254/latest/meta-data/",
    "http://[fd00:ec2::254]/latest/meta-data/",
    "http://10.0.0.1/",
    "http://metadata.google.internal/",
    "http://shop.example@127.0.0.1:{inside}/",
    "http://127.0.0.1:{web}@127.0.0.1:{inside}/",
    "http://127.0.0.1:{inside}#@127.0.0.1:{web}/",
    "http://127.0.0.1:{inside}\\@127.0.0.1:{web}/",
    "//127.0.0.1:{inside}/",
    "\\\\127.0.0.1:{inside}/",
    "/\\127.0.0.1:{inside}/",
    "http:/127.0.0.1:{inside}/",
    "http:127.0.0.1:{inside}/",
    "https://127.0.0.1:{inside}/",
    "file:///etc/passwd",
    "gopher://127.0.0.1:{inside}/_x",
    "javascript:alert(1)",
    "http://\uff11\uff12\uff17.0.0.1:{inside}/",
    "http://127.0.0.1%00.shop.example:{inside}/",
    "http://127.0.0.1:{inside}/\u2028",
    "/../../admin",
    "/%2e%2e/admin",
    "",
]
"""Targets to which a provider may try to redirect."""


@pytest.mark.parametrize("redirect", ["same_host", "allowed_hosts"])
@pytest.mark.parametrize("where", PLACES, ids=[f"{n} {ascii(each)[1:-1]}" for n, each in enumerate(PLACES)])
def test_no_redirect_leads_inside(
    where: str, redirect: str, tmp_path: Path, redis_server: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = _place(tmp_path, redis_server, monkeypatch, f"sqlite:{tmp_path / 'none.db'}", {"redirects": redirect})
    for place in made:
        location = where.format(inside=place.inside.port, web=place.web.port)
        # As servers send non-ASCII text: the bytes of its UTF-8.
        script = redirects(location.encode().decode("latin-1"), 307)
        place.web.answer = script  # type: ignore[method-assign, assignment]
        for engine in PAIR:
            outcome = place.run("body", "text", engine)
            assert (outcome.error.kind, outcome.error.code) == ("failed", "http_307")
        assert place.inside.connections == 0
        assert {got.path for got in place.web.got} == {"/v1/it"}
        assert len(place.web.got) == len(PAIR)


HOSTS = [
    "127.0.0.1", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "0x7f.1", "[::1]", "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "0.0.0.0", "localhost", "LocalHost.",
    "localhost.localdomain", "127.0.0.1.", "\uff11\uff12\uff17.0.0.1", "127\u30020.0.1", "user@127.0.0.1",
]  # fmt: skip


@pytest.mark.parametrize("host", HOSTS, ids=ascii)
def test_no_spelling_of_a_private_address_is_connected_to(host: str, tmp_path: Path) -> None:
    """A private address in the base URL is an error of the settings or of the request."""
    with Web() as web:
        web.answer = _any_path  # type: ignore[method-assign]
        shop = {"base_url": f"http://{host}:{web.port}", "allow_http": True, "timeout": "5s"}
        made: Host | None = None
        with contextlib.suppress(ConfigError):
            made = host_in(tmp_path, {"providers": {"shop": shop}})
        if made is not None:
            with made:
                for engine in PAIR:
                    outcome = node_from(NODES["body"], tmp_path, made, engine)(event_id="e", given="x")
                    assert outcome.error is not None
                    assert outcome.error.code == "unavailable"
                    failed = [each for each in entries(made, outcome) if each.kind is Kind.FAILED]
                    assert failed[0].body["may_have_happened"] is False
        assert web.connections == 0


# -- databases, caches, events, files, texts ------------------------------------------------------

SQL = [
    "ann' OR '1'='1", "'; DROP TABLE people; --", "ann'--", "ann\\' OR 1=1 --", ":given", "$1", "%s", "%(given)s",
    "ann\" OR \"1\"=\"1", "' UNION SELECT sql FROM sqlite_master --", "ann' AND pg_sleep(9) --", "\u02bc OR 1=1",
    "{given}", "ann\r\n", "\u0000", "ann\u0000' OR '1'='1", "x" * 100_000,
]  # fmt: skip


@pytest.mark.parametrize("text", SQL, ids=[f"{n} {ascii(each[:20])[1:-1]}" for n, each in enumerate(SQL)])
def test_a_text_in_sql_is_a_text(place_with_people: Place, dsn: str, text: str) -> None:
    place = place_with_people
    for engine in PAIR:
        found = place.run("bind", text, engine)
        put = place.run("insert", text, engine)
        if "\x00" in text and dsn.startswith("postgres"):  # PostgreSQL has no such texts, so none is sent
            assert [found.error.code, put.error.code] == ["bad_response", "conflict"]
            continue
        assert found.ok, found.error
        assert found["said"] == "" if engine == next(iter(PAIR)) else found["said"] == text
        assert put["said"] == "1"
    names = _people(dsn)
    assert {"ann", "bo"} <= set(names)
    assert set(names) - {"ann", "bo"} <= {text}


KEYS = ["a b\r\nSET admin 1\r\n", "*", "\x00", "../other:key", "{secret:shop_key}", "secret:shop_key", "x" * 2000, ""]


@pytest.mark.parametrize("text", KEYS, ids=[f"{n} {ascii(each[:20])[1:-1]}" for n, each in enumerate(KEYS)])
def test_a_key_of_a_cache_stays_in_its_cache(place: Place, text: str) -> None:
    place.redis.set("admin", "0")
    for engine in PAIR:
        outcome = place.run("cache", text, engine)
        assert outcome.ok or outcome.error.code == "invalid_argument"
    assert place.redis.get("admin") == b"0"
    assert all(key.startswith(b"vesper:cache:notes:") for key in place.redis.scan_iter() if key != b"admin")


EVENTS = ['"}', "a\r\nXADD other * x y", "\x00", "secret:shop_key", "{secret:shop_key}", "\u202e", "x" * 2_000_000]


@pytest.mark.parametrize("text", EVENTS, ids=[f"{n} {ascii(each[:20])[1:-1]}" for n, each in enumerate(EVENTS)])
def test_an_event_is_one_event(place: Place, text: str) -> None:
    outcomes = [place.run("event", text, engine) for engine in PAIR]
    if len(text) > 1_000_000:
        assert [outcome.error.code for outcome in outcomes] == ["invalid_argument"] * len(PAIR)
        assert list(place.redis.scan_iter()) == []
        return
    assert all(outcome.ok for outcome in outcomes), outcomes[0].error
    found: Any = place.redis.xrange("vesper:events:told")
    assert [json.loads(fields[b"payload"]) for _, fields in found] == [{"text": text}] * len(PAIR)
    assert list(place.redis.scan_iter()) == [b"vesper:events:told"]


PATHS = [
    "../closed/key.txt", "/etc/passwd", "link/key.txt", "link.txt", "./../closed/key.txt", "a/../../closed/key.txt",
    "..", ".", "", "/", "\\..\\closed\\key.txt", "hello.txt\x00.png", "\x00", "..\uff0fclosed/key.txt",
    "\uff0e\uff0e/closed/key.txt", "%2e%2e/closed/key.txt", "~/x", "a//../b", "hello.txt/", "hello.txt/x",
    "a" * 300, "a/" * 100 + "b", "a\nb", ".vesper-x.tmp", "file:///etc/passwd", "C:\\x", "//server/share",
]  # fmt: skip


@pytest.mark.parametrize("text", PATHS, ids=[f"{n} {ascii(each[:24])[1:-1]}" for n, each in enumerate(PATHS)])
def test_a_path_stays_below_its_root(place: Place, text: str) -> None:
    root = (place.folder / "open").resolve()
    for engine in PAIR:
        read = place.run("read", text, engine)
        assert not read.ok
        assert read.error.code in ("not_found", "invalid_argument")
        wrote = place.run("write", text, engine)
        if wrote.ok:  # unusual names are valid
            assert (root / text).resolve().is_relative_to(root)
            (root / text).unlink()
        else:
            assert wrote.error.code in ("invalid_argument", "unavailable")
    assert (place.folder / "closed/key.txt").read_text() == "do not read"
    assert [path.name for path in (place.folder / "closed").iterdir()] == ["key.txt"]
    assert (root / "hello.txt").read_text() == "hello"
    assert sorted(path.name for path in root.iterdir() if path.is_file() or path.is_symlink()) == [
        "hello.txt", "link", "link.txt",
    ]  # fmt: skip


TEXTS = [
    "{given}",
    "{event_id}",
    "{{given}}",
    "{secret:shop_key}",
    "secret:shop_key",
    "%s",
    "${given}",
    "{0.__class__}",
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_in_a_template_is_not_read_as_one(place: Place, text: str) -> None:
    for engine in PAIR:
        assert place.run("template", text, engine)["said"] == f"Dear {text}, {{given}}"


def test_how_many_attempts_these_are() -> None:
    of_texts = (SQL, KEYS, EVENTS, PATHS, TEXTS)
    assert len(REFUSED) + len(INERT) + len(PLACES) + len(HOSTS) + sum(map(len, of_texts)) >= 180
