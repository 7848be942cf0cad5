"""Requests without credentials, role, token, or from another site do not reach a page."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.dashboard import TestClient, client_of
from tests.unit.dashboard.test_app import site
from vesper.config.settings import config_from, read_config
from vesper.dashboard.access import guard
from vesper.dashboard.access.caller import Caller, Role
from vesper.dashboard.access.credentials import Credentials
from vesper.dashboard.access.guard import MAX_BODY_BYTES, Access
from vesper.dashboard.access.peer import peer_user_id
from vesper.dashboard.app import make_app
from vesper.dashboard.stores import Stores

HOME = "http://127.0.0.1:8001"
ANN, BOB, EVE = ("operator-" + "k" * 20, "viewer-" + "k" * 20, "stranger-" + "k" * 20)
SIGNING_KEY = b"0123456789abcdef0123456789abcdef"


def encoded(value: object) -> str:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def token(scope: str, expires: float) -> str:
    claims = {"iss": "https://id.example", "aud": "vesper", "sub": "tom", "scope": scope, "exp": int(expires)}
    text = f"{encoded({'alg': 'HS256', 'kid': '1'})}.{encoded(claims)}"
    return f"{text}.{encoded(hmac.digest(SIGNING_KEY, text.encode(), hashlib.sha256))}"


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    for name, key in (("ANN", ANN), ("BOB", BOB), ("EVE", EVE)):
        monkeypatch.setenv(f"VESPER_SECRET_{name}", key)
    keys = {"keys": [{"kty": "oct", "kid": "1", "alg": "HS256", "k": encoded(SIGNING_KEY)}]}
    (tmp_path / "jwks.json").write_text(json.dumps(keys))
    issuer = {"issuer": "https://id.example", "audience": "vesper", "jwks": "jwks.json", "algorithms": ["HS256"]}
    scopes = {"ann": ["vesper:view", "vesper:operate"], "bob": ["vesper:view"], "eve": ["orders"]}
    config = config_from(
        {
            "serve": {
                "keys": [{"name": name, "secret": name.upper(), "scopes": each} for name, each in scopes.items()],
                "jwt": [issuer],
            },
            "dashboard": {"origins": ["https://ops.example"]},
        },
        tmp_path,
    )
    access = Access(Caller(""), Credentials(config), origins=config.dashboard.origins)
    with TestClient(make_app(Stores(config), access, site(tmp_path)), base_url=HOME, follow_redirects=False) as client:
        yield client


def log_in(client: TestClient, key: str, **headers: str) -> str:
    """Log in; return the token of the session."""
    answer = client.post("/login", data={"credential": key}, headers={"origin": HOME, **headers})
    assert answer.status_code == 303, answer.text
    return str(client.get("/api/session").json()["csrf"])


RENAME = "/hello/x/rename"
REASON = {"reason": "a typo"}


def test_pages_need_a_login_and_programs_a_credential(client: TestClient) -> None:
    page = client.get("/hello/x?count=4", headers={"accept": "text/html"})
    assert (page.status_code, page.headers["location"]) == (303, "/login?next=%2Fhello%2Fx%3Fcount%3D4")
    answer = client.get("/api/hello/x")
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, 'Bearer realm="vesper"')
    assert client.get("/api/hello/x", headers={"authorization": f"Bearer {BOB}"}).status_code == 200
    assert client.get("/api/hello/x", headers={"x-api-key": BOB}).status_code == 200
    assert client.get("/api/hello/x", headers={"authorization": "Bearer " + "x" * 20}).status_code == 401
    assert client.get("/api/hello/x", headers={"authorization": f"Bearer {EVE}"}).status_code == 403
    assert client.get("/events?topics=files").status_code == 401
    assert client.get("/hello/x", headers={"accept": "text/html", "x-live": "1"}).status_code == 303


def test_tokens_have_roles_and_expire(client: TestClient) -> None:
    def names(given: str) -> object:
        return client.get("/api/session", headers={"authorization": f"Bearer {given}"}).json().get("roles")

    later = time.time() + 600
    assert names(token("vesper:view vesper:author", later)) == ["author", "viewer"]
    assert names(token("vesper:operate", later)) == ["operator", "viewer"]
    assert names(token("vesper:view", time.time() - 600)) is None
    assert names(token("vesper:view", later)[:-4] + "AAAA") is None


def test_a_login_gives_a_new_session_that_a_logout_ends(client: TestClient) -> None:
    fixed = {"origin": HOME, "cookie": "vesper-8001=chosen-by-an-attacker"}
    answer = client.post("/login", data={"credential": ANN, "next": "//evil.example"}, headers=fixed)
    assert answer.headers["location"] == "/"
    cookie = answer.headers["set-cookie"]
    assert "chosen-by-an-attacker" not in cookie
    assert all(flag in cookie for flag in ("HttpOnly", "SameSite=strict", "Path=/"))
    assert "Secure" not in cookie
    assert client.get("/api/session", headers={"cookie": fixed["cookie"]}).status_code == 401
    csrf = client.get("/api/session").json()["csrf"]
    session = {"cookie": f"vesper-8001={client.cookies['vesper-8001']}"}
    assert client.get("/api/session", headers=session).status_code == 200
    assert client.post("/logout", data={"csrf": csrf}, headers={"origin": HOME}).status_code == 303
    assert client.get("/api/session", headers=session).status_code == 401


def test_the_cookie_is_secure_behind_tls(client: TestClient) -> None:
    headers = {"host": "ops.example", "origin": "https://ops.example"}
    answer = client.post("/login", data={"credential": ANN}, headers=headers)
    assert answer.headers["set-cookie"].startswith("__Host-vesper-")
    assert "Secure" in answer.headers["set-cookie"]


def test_changes_need_the_token_and_our_origin(client: TestClient) -> None:
    csrf = log_in(client, ANN)

    def act(**headers: str) -> int:
        given = {name.replace("_", "-"): each for name, each in headers.items()}
        return int(client.post("/api" + RENAME, json=REASON, headers=given).status_code)

    assert act(x_csrf=csrf) == 200
    assert act(x_csrf=csrf, origin=HOME, sec_fetch_site="same-origin") == 200
    assert act() == 403
    assert act(x_csrf=csrf[:-1]) == 403
    for origin in ("https://evil.example", "null", "http://127.0.0.1:8002", "https://127.0.0.1:8001"):
        assert act(x_csrf=csrf, origin=origin) == 403
    for site_ in ("cross-site", "same-site"):
        assert act(x_csrf=csrf, sec_fetch_site=site_) == 403


def test_a_token_belongs_to_one_session_and_a_form_may_carry_it(client: TestClient) -> None:
    stolen = log_in(client, BOB)
    own = log_in(client, ANN)
    assert client.post("/api" + RENAME, json=REASON, headers={"x-csrf": stolen}).status_code == 403
    done = client.post(RENAME, data={**REASON, "csrf": own}, headers={"origin": HOME})
    assert (done.status_code, done.headers["location"]) == (303, "/hello/x")
    page = client.get("/hello/x").text
    assert '<p class="flash" role="status">renamed by ann: a typo</p>' in page
    assert 'class="flash"' not in client.get("/hello/x").text


def test_a_refused_form_leads_back(client: TestClient) -> None:
    own = log_in(client, BOB)
    headers = {"origin": HOME, "referer": f"{HOME}/hello/x?count=2"}
    page = client.post(RENAME, data={**REASON, "csrf": own}, headers=headers)
    assert (page.status_code, 'href="/hello/x?count=2">Back' in page.text) == (403, True)
    page = client.post(RENAME, data=REASON, headers={"referer": "https://evil.example/hello"})
    assert "Back" not in page.text


def test_a_bearer_needs_no_token_and_a_viewer_may_not_act(client: TestClient) -> None:
    def act(key: str) -> int:
        return int(client.post("/api" + RENAME, json=REASON, headers={"authorization": f"Bearer {key}"}).status_code)

    assert (act(ANN), act(BOB)) == (200, 403)


def test_failed_logins_are_limited_and_come_from_our_page(client: TestClient) -> None:
    assert client.post("/login", data={"credential": ANN}).status_code == 403
    wrong = [client.post("/login", data={"credential": "wrong"}, headers={"origin": HOME}) for _ in range(10)]
    assert {each.status_code for each in wrong} == {401}
    assert client.post("/login", data={"credential": ANN}, headers={"origin": HOME}).status_code == 429


def test_a_caller_without_a_role_cannot_log_in(client: TestClient) -> None:
    answer = client.post("/login", data={"credential": EVE}, headers={"origin": HOME})
    assert answer.status_code == 403
    assert "eve has no role here" in answer.text


def test_a_visit_from_another_site_loads_itself_again_with_its_cookies(client: TestClient) -> None:
    answer = client.get("/hello/x", headers={"accept": "text/html", "sec-fetch-site": "cross-site"})
    assert (answer.status_code, b"http-equiv" in answer.content) == (200, True)


def test_a_key_that_is_removed_from_the_settings_ends_its_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("VESPER_SECRET_ANN", ANN)
    monkeypatch.setenv("VESPER_SECRET_BOB", BOB)
    path = tmp_path / "vesper.toml"

    def write(*names: str) -> None:
        keys = (f'name = "{name}"\nsecret = "{name.upper()}"\nscopes = ["vesper:view"]\n' for name in names)
        path.write_text("".join(f"[[serve.keys]]\n{each}" for each in keys))

    write("ann")
    config = read_config(path)
    access = Access(Caller(""), Credentials(config))
    with TestClient(make_app(Stores(config), access, site(tmp_path)), base_url=HOME, follow_redirects=False) as client:
        log_in(client, ANN)
        write("bob", "ann")
        assert client.get("/api/session", headers={"x-api-key": BOB}).json()["name"] == "bob"
        path.write_text("[[serve.keys]")  # half of a change: the known keys stay
        assert client.get("/api/session").json()["name"] == "ann"
        assert "the known ones stay" in caplog.text
        write("bob")
        assert client.get("/api/session").status_code == 401
        write()
        assert client.get("/api/session", headers={"x-api-key": BOB}).status_code == 401


def test_foreign_hosts_and_tricks_in_paths_are_refused(tmp_path: Path) -> None:
    with client_of(tmp_path, site(tmp_path)) as client:
        assert client.get("/hello/x", headers={"host": "localhost:8001"}).status_code == 200
        for host in ("evil.example", "127.0.0.1.evil.example", "localhost:80:80", ""):
            assert client.get("/hello/x", headers={"host": host}).status_code == 400
        for path in ("/hello/a%2fb", "/hello/%2e%2e/x", "/static/..%5cx", "//hello/x", "/hello/a%00", "/hello/a%0a"):
            assert client.get(HOME + path).status_code == 400


def test_large_bodies_are_refused_and_every_answer_has_its_headers(tmp_path: Path) -> None:
    with client_of(tmp_path, site(tmp_path)) as client:
        large = client.post("/api" + RENAME, content=b"x" * (MAX_BODY_BYTES + 1))
        for answer in (large, client.get("/hello/x"), client.get("/nothing"), client.get("/static/vesper.css")):
            assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["cross-origin-opener-policy"] == "same-origin"
        assert large.status_code == 413
        assert client.get("/hello/x").headers["cache-control"] == "no-store"


def test_only_the_user_of_the_process_sees_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    access = Access(Caller("ann", frozenset(Role)), owner_id=os.getuid())
    with TestClient(make_app(Stores(config_from({}, tmp_path)), access, site(tmp_path)), base_url=HOME) as client:
        # The client of the test has no socket, and so no user.
        for path in ("/hello/x", "/api/hello/x", "/api/session", "/events?topics=files", "/nothing"):
            refused = client.get(path)
            assert (refused.status_code, "for ann alone" in refused.text) == (403, True)
            assert re.search("[0-9a-f]{128}", refused.text) is None  # no token of the owner
        monkeypatch.setattr(guard, "peer_user_id", lambda *_: os.getuid())
        assert client.get("/api/session").json()["name"] == "ann"


def test_the_user_of_a_connection_is_found() -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as client:
        served, _ = listener.accept()
        with served:
            assert peer_user_id(client.getsockname(), listener.getsockname()) == os.getuid()
            assert peer_user_id(("127.0.0.1", 1), listener.getsockname()) is None
