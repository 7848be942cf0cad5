"""Nodes as an ASGI application: under uvicorn, and mounted in FastAPI and Starlette."""

from __future__ import annotations

import asyncio
import base64
import gzip
import http.client
import json
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import fastapi
import httpx
import pytest
import starlette.applications
import starlette.routing
import uvicorn
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

import vesper.serve
from tests.support.waiting import eventually
from vesper.effects.settings import ConfigError
from vesper.serve.asgi import Application

DOUBLE = """node_id: double_v1
type: function
intent: Double a number

inputs:
  number: {type: integer, constraints: [{min: 0}]}

outputs:
  success:
    result: integer

flow:
  - operation: return
    success: {result: number * 2}
"""
QUOTE = """node_id: quote_v1
type: http_handler
intent: Price some pieces of an article

inputs:
  article: string
  pieces: {type: integer, default: 1}
  tags: {type: array<string>, default: []}
  region: optional<string>

outputs:
  success:
    article: string
    price: decimal
    tags: array<string>
    region: optional<string>
  error:
    error_code: enum[unknown_article]
    message: string

flow:
  - operation: validation
    require:
      - condition: article != 'none'
        error: {error_code: unknown_article, message: "no such article"}

  - operation: return
    success: {article: article, price: 1.50 * pieces, tags: tags, region: region}

http:
  method: GET
  path: /quotes/{article}
  query: [pieces, tags]
  headers: {region: X-Region}
  errors: {unknown_article: 404}
  response_headers: {X-Article: "{article}"}
"""
NOTE = """node_id: note_v1
type: http_handler
intent: Keep a note

inputs:
  name: string
  text: string

outputs:
  success:
    written: integer
  error:
    error_code: enum[bad_name]
    message: string

flow:
  - operation: validation
    require:
      - condition: length(name) < 20
        error: {error_code: bad_name, message: "a name has less than 20 characters"}

  - step: written
    operation: file
    action: write
    root: notes
    path: "{name}.txt"
    content: text
    key: name

  - operation: return
    success: {written: written}

security:
  capabilities_required: [filesystem.write.notes]

http:
  method: PUT
  path: /notes/{name}
  status: 201
"""
CONFIG = """[files.notes]
path = "notes"

[[grants]]
nodes = ["note_v1"]
allow = ["filesystem.write.notes"]

[serve]
expose = ["double"]
"""
JWT = """
[[serve.jwt]]
issuer = "https://issuer.example"
audience = "api"
jwks = "keys.json"
"""


def shop(folder: Path, config: str = CONFIG) -> Path:
    for name in ("nodes", "notes"):
        (folder / name).mkdir()
    for text in (DOUBLE, QUOTE, NOTE):
        (folder / "nodes" / f"{text.split()[1]}.vsp").write_text(text)
    (folder / "vesper.toml").write_text(config)
    return folder


def application(folder: Path, **settings: Any) -> Application:
    return vesper.serve.app(folder / "nodes", config=folder / "vesper.toml", **{"engine": "direct", **settings})


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    found = application(shop(tmp_path_factory.mktemp("shop")))
    yield found
    found.close()


def ask(app: Any, method: str, url: str, **how: Any) -> httpx.Response:
    async def send() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
            return await client.request(method, url, **how)

    return asyncio.run(send())


def test_inputs_come_from_path_query_header_and_body(shared: Application) -> None:
    found = ask(shared, "GET", "/quotes/caf%C3%A9%2Fx?pieces=3&tags=a&tags=b+c", headers={"X-Region": "eu"})
    assert found.json() == {"article": "café/x", "price": "4.50", "region": "eu", "tags": ["a", "b c"]}
    assert (found.status_code, found.headers["x-article"]) == (200, "caf%C3%A9%2Fx")
    assert ask(shared, "GET", "/quotes/none").status_code == 404
    assert ask(shared, "POST", "/nodes/double_v1", json={"number": 21}).json() == {"result": 42}
    assert ask(shared, "PUT", "/notes/a", json={"text": "hello"}).json() == {"written": 5}


def test_every_problem_is_reported_with_its_source(shared: Application) -> None:
    found = ask(shared, "GET", "/quotes/x?pieces=many&typo=1&article=y&pieces=2")
    problems = found.json()["problems"]
    assert found.status_code == 422
    assert [(each["path"], each["kind"], each["in"]) for each in problems] == [
        ("pieces", "wrong_type", "query"),
        ("?article", "unknown", "query"),
        ("?typo", "unknown", "query"),
    ]
    assert not any("line" in each or "(line" in each["message"] for each in problems)
    assert ask(shared, "PUT", "/notes/a", content=b'{"text": ', headers=_JSON).status_code == 400
    for twice in (b'{"text": "x", "name": "b"}', b'{"text": "x", "n\\u0061me": "b"}'):
        repeated = ask(shared, "PUT", "/notes/a", content=twice, headers=_JSON)
        assert (repeated.status_code, repeated.json()["type"]) == (400, "urn:vesper:problem:bad_json")
    assert ask(shared, "POST", "/nodes/double_v1", content=b"").status_code == 422
    assert ask(shared, "POST", "/nodes/double_v1", json={"number": -1}).status_code == 422
    assert ask(shared, "POST", "/nodes/double_v1", content=b"number=1").status_code == 415


_JSON = {"Content-Type": "application/json"}


def test_answers_are_compressed_tagged_and_traced(shared: Application) -> None:
    trace = "0af7651916cd43dd8448eb211c80319c"
    first = ask(shared, "GET", "/quotes/x", headers={"traceparent": f"00-{trace}-b7ad6b7169203331-01"})
    assert first.headers["traceparent"].split("-")[1] == trace
    again = ask(shared, "GET", "/quotes/x", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    head = ask(shared, "HEAD", "/quotes/x")
    assert (head.content, head.headers["content-length"]) == (b"", str(len(first.content)))
    large = ask(shared, "GET", f"/quotes/{'x' * 2000}", headers={"Accept-Encoding": "gzip"})
    assert (large.headers["content-encoding"], len(large.json()["article"])) == ("gzip", 2000)
    assert len(gzip.compress(large.content)) < 200


def test_keyed_requests_run_once_for_each_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = "".join(
        f'\n[[serve.keys]]\nname = "{name}"\nsecret = "{name}"\n{tenant}'
        for name, tenant in (("ada", ""), ("bob", ""), ("eve", 'tenant = "t"'), ("kim", 'tenant = "t"'))
    )
    for name in ("ada", "bob", "eve", "kim"):
        monkeypatch.setenv(f"VESPER_SECRET_{name.upper()}", f"the key of {name}, long enough")
    app = application(shop(tmp_path, CONFIG + keys))

    def put(name: str, text: str) -> tuple[int, str | None]:
        headers = {"X-API-Key": f"the key of {name}, long enough", "Idempotency-Key": "k 1"}
        found = ask(app, "PUT", "/notes/a", json={"text": text}, headers=headers)
        return found.status_code, found.headers.get("vesper-execution", found.json().get("execution"))

    try:
        first = put("ada", "x")
        assert first[0] == 201
        assert put("ada", "x") == first
        assert put("ada", "other") == (422, first[1])
        assert put("bob", "other")[0] == 201
        shared_by_tenant = put("eve", "y")
        assert put("kim", "y") == shared_by_tenant
        assert ask(app, "PUT", "/notes/a", json={"text": "x"}).status_code == 401
        assert ask(app, "GET", "/readyz").status_code == 200
    finally:
        app.close()


def test_a_passed_deadline_is_a_gateway_timeout(shared: Application) -> None:
    found = ask(shared, "PUT", "/notes/late", json={"text": "x"}, headers={"Vesper-Timeout": "0"})
    assert (found.status_code, found.json()["type"]) == (504, "urn:vesper:problem:deadline")
    assert ask(shared, "PUT", "/notes/late", json={"text": "x"}, headers={"Vesper-Timeout": "60"}).status_code == 201


def test_a_full_queue_is_refused_and_gives_its_places_back(tmp_path: Path) -> None:
    app = application(shop(tmp_path, CONFIG + "threads = 1\n\n[serve.limits]\nqueue = 1\n"))
    try:
        app.open()
        opened = app._opened
        assert opened is not None
        assert opened._places.acquire(blocking=False)
        assert opened._places.acquire(blocking=False)
        found = ask(app, "PUT", "/notes/a", json={"text": "x"})
        assert (found.status_code, found.headers["retry-after"]) == (503, "1")
        assert ask(app, "POST", "/nodes/double_v1", json={"number": 1}).status_code == 200
        opened._places.release()
        assert [ask(app, "PUT", "/notes/a", json={"text": "x"}).status_code for _ in range(3)] == [201] * 3
    finally:
        app.close()


def test_large_bodies_are_refused(tmp_path: Path) -> None:
    app = application(shop(tmp_path, CONFIG + '\n[serve.limits]\nmax_body = "1 KiB"\n'))

    async def chunks() -> Any:
        for _ in range(3):
            yield b" " * 512

    try:
        assert ask(app, "POST", "/nodes/double_v1", content=b" " * 1025, headers=_JSON).status_code == 413
        assert ask(app, "POST", "/nodes/double_v1", content=chunks(), headers=_JSON).status_code == 413
    finally:
        app.close()


def test_decimals_are_numbers_where_configured(tmp_path: Path) -> None:
    app = application(shop(tmp_path, CONFIG + 'decimals = "number"\n'), engine="python")
    try:
        assert b'"price":3.00' in ask(app, "GET", "/quotes/x?pieces=2").content
    finally:
        app.close()


def test_tokens_are_verified_and_keys_read_again(tmp_path: Path) -> None:
    old, new = (rsa.generate_private_key(65537, 2048) for _ in range(2))
    folder = shop(tmp_path, CONFIG + JWT)
    _write_keys(folder, old)
    app = application(folder)

    def status(key: rsa.RSAPrivateKey, alg: str = "RS256") -> int:
        headers = {"Authorization": f"Bearer {_token(key, alg)}"}
        return ask(app, "POST", "/nodes/double_v1", json={"number": 1}, headers=headers).status_code

    try:
        assert [status(old), status(new), status(old, "RS512"), status(old, "HS256")] == [200, 401, 401, 401]
        _write_keys(folder, new)
        opened = app._opened
        assert opened is not None
        opened._keys_due = 0.0
        eventually(lambda: status(new) == 200)
        assert status(old) == 401
        (folder / "keys.json").write_text("no keys")
        opened._keys_due = 0.0
        assert status(new) == 200
        eventually(lambda: opened._keys_due > 0)
        assert status(new) == 200
    finally:
        app.close()


def _write_keys(folder: Path, key: rsa.RSAPrivateKey) -> None:
    numbers = key.public_key().public_numbers()
    jwk = {"kty": "RSA", "kid": "a", "use": "sig", "n": _encode(_bytes(numbers.n)), "e": _encode(_bytes(numbers.e))}
    (folder / "keys.json").write_text(json.dumps({"keys": [jwk]}))


def _bytes(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 7) // 8)


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _token(key: rsa.RSAPrivateKey, alg: str) -> str:
    claims = {"iss": "https://issuer.example", "aud": "api", "sub": "ada", "exp": time.time() + 600}
    signed = ".".join(_encode(json.dumps(each).encode()) for each in ({"alg": alg, "kid": "a"}, claims))
    return f"{signed}.{_encode(key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


@pytest.mark.parametrize("kind", ["fastapi", "starlette"])
def test_an_application_is_mounted_below_a_path(shared: Application, kind: str) -> None:
    whole: Any
    if kind == "fastapi":
        whole = fastapi.FastAPI()
        whole.mount("/rules", shared)
    else:
        whole = starlette.applications.Starlette(routes=[starlette.routing.Mount("/rules", shared)])
    assert ask(whole, "GET", "/rules/quotes/a%2Fb").json()["article"] == "a/b"
    assert ask(whole, "POST", "/rules/nodes/double_v1", json={"number": 2}).json() == {"result": 4}
    assert ask(whole, "GET", "/rules/livez").status_code == 200
    assert ask(whole, "GET", "/rules/nothing").json()["type"] == "urn:vesper:problem:not_found"


def test_pages_are_served(shared: Application) -> None:
    assert ask(shared, "GET", "/readyz").json()["journal"] == "writable"
    nodes = ask(shared, "GET", "/status").json()["nodes"]
    assert [each["id"] for each in nodes] == ["double_v1", "note_v1", "quote_v1"]
    assert "/quotes/{article}" in ask(shared, "GET", "/openapi.json").json()["paths"]
    assert ask(shared, "GET", "/docs").headers["content-type"].startswith("text/html")
    assert b"sir_requests_total" in ask(shared, "GET", "/metrics").content


def test_uvicorn_serves_an_application_from_startup_to_shutdown(tmp_path: Path) -> None:
    app = application(shop(tmp_path))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", lifespan="on"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        eventually(lambda: server.started)
        assert app._opened is not None
        port = server.servers[0].sockets[0].getsockname()[1]
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
            for number in range(3):
                connection.request("POST", "/nodes/double_v1", json.dumps({"number": number}), _JSON)
                response = connection.getresponse()
                assert (response.status, json.loads(response.read())) == (200, {"result": number * 2})
            connection.request("HEAD", "/quotes/x%2Fy?pieces=2")
            response = connection.getresponse()
            assert (response.status, response.headers["X-Article"], response.read()) == (200, "x%2Fy", b"")
    finally:
        server.should_exit = True
        thread.join(60)
    assert app._opened is None


def test_a_failing_startup_is_reported(tmp_path: Path) -> None:
    app = application(shop(tmp_path, CONFIG + '\n[[serve.keys]]\nname = "a"\nsecret = "missing"\n'))
    sent: list[Any] = []

    async def receive() -> dict[str, str]:
        return {"type": "lifespan.startup"}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(app({"type": "lifespan"}, receive, send))
    assert [each["type"] for each in sent] == ["lifespan.startup.failed"]
    assert "serve.keys[0].secret" in sent[0]["message"]
    with pytest.raises(ConfigError):
        app.open()
