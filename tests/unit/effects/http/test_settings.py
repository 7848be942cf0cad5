from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.unit.effects.http.helpers import settings_of
from vesper.effects.http.credentials import AuthHeader, Basic
from vesper.effects.http.performer import http_performer
from vesper.effects.http.settings import Origin
from vesper.effects.settings import ConfigError

ROOT = Path(__file__).parents[4]
BASE = {"base_url": "https://api.shop.example/v1/"}


def test_what_holds_unless_said() -> None:
    found = settings_of(BASE)
    assert found.base == (Origin(True, "api.shop.example", 443), "/v1")
    assert found.allowed == (Origin(True, "api.shop.example", 443),)
    assert found.auth is None
    assert (found.headers, found.key_header, found.key_ttl) == ((), "Idempotency-Key", 86400.0)
    assert (found.body, found.timeout, found.connect_timeout, found.max_response) == ("json", 30.0, 10.0, 1 << 20)
    assert (found.redirects, found.allow_private_addresses, found.ca_file) == ("none", False, None)
    assert (found.max_connections, found.probe, found.retry_after_max) == (20, None, 60.0)


def test_everything_said(tmp_path: Path) -> None:
    ca_file = tmp_path / "ca.pem"
    ca_file.write_text("x")
    text = f"""
        base_url = "http://pay.internal:8080"
        allowed_hosts = ["pay.internal", "files.internal:9000", "[::1]:80"]
        auth = {{header = "X-Key", value = "{{secret:pay_key}}"}}
        headers = {{X-Tenant = "mine"}}
        key_header = "X-Request-Id"
        key_ttl = "7d"
        body = "form"
        timeout = "5s"
        connect_timeout = "200ms"
        max_response = "64 KiB"
        redirects = "allowed_hosts"
        allow_private_addresses = true
        ca_file = "{ca_file}"
        max_connections = 3
        retry_after_max = "10m"
        probe = {{method = "GET", endpoint = "/v1/made_under/{{key}}?full=1", found_status = 200}}
    """
    found = settings_of(tomllib.loads(text))
    assert found.allowed == (
        Origin(False, "pay.internal", 8080),
        Origin(False, "files.internal", 9000),
        Origin(False, "::1", 80),
    )
    assert isinstance(found.auth, AuthHeader)
    assert (found.auth.name, found.auth.value) == ("X-Key", (("", ""), ("pay_key",)))
    assert found.headers == (("X-Tenant", (("mine",), ())),)
    assert (found.key_header, found.key_ttl, found.body) == ("X-Request-Id", 7 * 86400.0, "form")
    assert (found.timeout, found.connect_timeout, found.max_response) == (5.0, 0.2, 65536)
    assert (found.redirects, found.ca_file, found.max_connections) == ("allowed_hosts", ca_file, 3)
    assert found.retry_after_max == 600.0
    assert found.probe is not None
    assert found.probe.endpoint == "/v1/made_under/{key}?full=1"


def test_basic_credentials() -> None:
    found = settings_of(BASE | {"auth": {"basic": {"user": "me", "password": "{secret:it}"}}})
    assert isinstance(found.auth, Basic)
    assert (found.auth.user, found.auth.password) == ((("me",), ()), (("", ""), ("it",)))


@pytest.mark.parametrize(
    "values, problem",
    [
        ({"base_url": None}, "base_url"),
        ({"base_url": "http://api.shop.example"}, "base_url: `https://` is expected; `allow_http = true` lets"),
        (
            {"base_url": "http://127.0.0.1:80"},
            "`allow_private_addresses = true` lets requests go there, also by `http://`",
        ),
        ({"base_url": "http://localhost"}, "private address: `allow_private_addresses = true` lets"),
        (
            {"base_url": "http://10.0.0.1", "allow_private_addresses": True, "allow_http": False},
            "`https://` is expected",
        ),
        ({"verify": False}, "verify: TLS is always verified"),
        ({"verify": True}, "verify: TLS is always verified"),
        ({"time_out": "3s"}, "time_out: no such setting"),
        ({"timeout": "0s"}, "timeout: more than nothing"),
        ({"timeout": "soon"}, "timeout: a duration"),
        ({"timeout": 3}, "timeout: a duration"),
        ({"max_response": "0 B"}, "max_response: from 1 B to 16 MiB"),
        ({"max_response": "1 GiB"}, "max_response: from 1 B to 16 MiB"),
        ({"max_connections": 0}, "max_connections: a number from 1 to 1,000"),
        ({"redirects": "all"}, "redirects: one of none, same_host, allowed_hosts"),
        ({"body": "xml"}, "body: one of json, form"),
        ({"allowed_hosts": ["other.example"]}, "allowed_hosts: the host of `base_url`, api.shop.example, is not among"),
        ({"allowed_hosts": []}, "is not among them"),
        ({"allowed_hosts": ["api.shop.example", "*.shop.example"]}, "allowed_hosts: `*.shop.example` is no host"),
        ({"allowed_hosts": ["api.shop.example", "127.1"]}, "allowed_hosts: `127.1` is no host"),
        ({"allowed_hosts": ["api.shop.example", "https://x.example"]}, "allowed_hosts: "),
        ({"allowed_hosts": ["api.shop.example:8443"]}, "is not among them"),
        ({"auth": {}}, "auth: `{header = …, value = …}`"),
        ({"auth": {"header": "X"}}, "auth: `value` is missing"),
        ({"auth": {"value": "Bearer {api_key}"}}, "auth.value: braces are only for secrets"),
        ({"auth": {"value": "a\nb"}}, "auth.value: "),
        ({"auth": {"value": "x", "password": "y"}}, "auth.password: no such setting"),
        ({"auth": {"header": "Host", "value": "x"}}, "auth.header: the header `Host` is set by Vesper alone"),
        ({"auth": {"header": "X Y", "value": "x"}}, "auth.header: `X Y` is no name of a header"),
        ({"auth": {"basic": {"user": "a:b", "password": "c"}}}, "auth.basic.user: a user name has no `:`"),
        ({"auth": {"basic": {"user": "a"}}}, "auth.basic: `password` is missing"),
        ({"headers": {"Content-Length": "1"}}, "headers.Content-Length: the header"),
        ({"headers": {"X-A": "1", "x-a": "2"}}, "headers: the header `x-a` is there twice"),
        ({"headers": {"X-A": 1}}, "headers.X-A: a text is expected"),
        ({"key_header": "Transfer-Encoding"}, "key_header: the header"),
        ({"ca_file": "nowhere.pem"}, "ca_file: there is no file `nowhere.pem`"),
        ({"probe": {}}, "probe: `endpoint` is missing"),
        ({"probe": {"endpoint": "/x"}}, "probe.endpoint: `{key}` is expected once"),
        ({"probe": {"endpoint": "/{key}/{key}"}}, "probe.endpoint: `{key}` is expected once"),
        ({"probe": {"endpoint": "//evil/{key}"}}, "probe.endpoint: the endpoint"),
        ({"probe": {"endpoint": "/{key}", "method": "POST"}}, "probe.method: one of GET, HEAD"),
        ({"probe": {"endpoint": "/{key}", "found_status": 302}}, "probe.found_status: a number from 200 to 299"),
    ],
    ids=lambda each: str(each)[:50],
)
def test_a_setting_that_cannot_be_used_is_named(values: dict[str, object], problem: str) -> None:
    given = {name: value for name, value in (BASE | values).items() if value is not None}
    with pytest.raises(ConfigError) as caught:
        settings_of(given)
    assert str(caught.value).startswith("vesper.toml: providers.shop")
    assert problem in str(caught.value)


def test_the_examples_of_the_documentation_are_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "company-ca.pem").write_text("x")
    page = (ROOT / "docs/how-to/configure-providers.md").read_text(encoding="utf-8")
    blocks = [block.partition("```")[0] for block in page.split("```toml\n")[1:]]
    assert len(blocks) >= 3
    for block in blocks:
        for name, values in tomllib.loads(block)["providers"].items():
            settings_of(values, name)


def test_a_missing_package_is_named_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "certifi", None)
    problem = r"providers: providers need the package `certifi`: pip install 'vesper\[http\]'"
    with pytest.raises(ConfigError, match=problem):
        http_performer({"shop": settings_of(BASE)})


def test_nothing_heavy_is_loaded_before_a_provider_is_used() -> None:
    code = (
        "import sys; before = set(sys.modules); import vesper.effects.http.performer; print(*set(sys.modules) - before)"
    )
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    loaded = set(found.stdout.split())
    assert "vesper.effects.http.performer" in loaded
    assert not loaded & {"ssl", "certifi"}


@pytest.mark.parametrize(
    "origin, text",
    [
        (Origin(True, "a.example", 443), "a.example"),
        (Origin(True, "a.example", 80), "a.example:80"),
        (Origin(False, "::1", 80), "[::1]"),
        (Origin(False, "::1", 8080), "[::1]:8080"),
    ],
)
def test_a_host_as_its_header_has_it(origin: Origin, text: str) -> None:
    assert origin.authority == text
