"""Vault, AWS, Google and Azure as sources of secrets, against servers that speak their protocols."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from tests.support.web import Got, Web, Wire, message, says
from tests.unit.effects.aws_signatures import is_signed
from vesper._direct import SecretStore
from vesper.effects.performer import EffectFailed
from vesper.effects.secrets.settings import SecretSettings
from vesper.effects.secrets.store import open_secrets
from vesper.effects.settings import ConfigError, Table
from vesper.storage.sources import Sources

TEXT = "sk_live_4eC39H"


@pytest.fixture
def web() -> Iterator[Web]:
    with Web() as server:
        yield server


def settings(values: Mapping[str, object], folder: Path | None = None) -> SecretSettings:
    return SecretSettings.from_table("secrets", Table("vesper.toml: secrets", values), folder)


def store_of(values: Mapping[str, object], folder: Path | None = None) -> SecretStore:
    return open_secrets(settings(values, folder))


def failed(store: SecretStore, name: str = "stripe_key") -> tuple[str, str]:
    with pytest.raises(EffectFailed) as caught:
        store.text(name)
    return caught.value.code, caught.value.message


# -- Vault ----------------------------------------------------------------------------------------


class FakeVault(Web):
    """The KV engine, version 2, and logins whose tokens are revoked by `generation`."""

    def __init__(self) -> None:
        self.secrets: dict[str, dict[str, str]] = {"/v1/secret/data/stripe_key": {"value": TEXT}}
        self.generation = 1
        super().__init__()

    def answer(self, got: Got, wire: Wire) -> None:
        if got.path in ("/v1/auth/approle/login", "/v1/auth/kubernetes/login"):
            given = json.loads(got.body)
            is_known = given in ({"role_id": "shop", "secret_id": "s-1"}, {"role": "shop", "jwt": "j-1"})
            login = {"auth": {"client_token": f"hvs.{self.generation}", "lease_duration": 3600}}
            return says(login if is_known else {"errors": ["invalid"]}, 200 if is_known else 400)(got, wire)
        if got.headers.get("x-vault-token") != f"hvs.{self.generation}":
            return says({"errors": ["permission denied"]}, 403)(got, wire)
        if got.path not in self.secrets:
            return says({"errors": []}, 404)(got, wire)
        return says({"data": {"data": self.secrets[got.path], "metadata": {"version": 1}}})(got, wire)


@pytest.fixture
def vault() -> Iterator[FakeVault]:
    with FakeVault() as server:
        yield server


def test_vault_with_a_token(vault: FakeVault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VAULT_TOKEN", "hvs.1")
    store = store_of({"source": "vault", "url": vault.url, "namespace": "team"})
    assert store.text("stripe_key") == TEXT
    assert store.text("stripe_key") == TEXT
    assert [got.headers["x-vault-namespace"] for got in vault.got] == ["team"]
    assert failed(store, "other") == ("not_found", f"there is no secret `other`: Vault at {vault.url} knows none")
    monkeypatch.setenv("VAULT_TOKEN", "hvs.9")
    code, text = failed(store, "third")
    assert (code, "hvs.9" in text) == ("unavailable", False)
    assert "answered with status 403: the token may not read `secret/data/…`" in text
    monkeypatch.delenv("VAULT_TOKEN")
    assert failed(store, "third")[1] == "the secret `third`: the variable VAULT_TOKEN is not set"


def test_vault_with_one_secret_of_many_fields(vault: FakeVault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VAULT_TOKEN", "hvs.1")
    vault.secrets["/v1/team%20kv/data/shop/all"] = {"stripe_key": TEXT}
    given = {"source": "vault", "url": vault.url, "mount": "team kv", "path": "shop/all", "field": "{name}"}
    store = store_of(given)
    assert store.text("stripe_key") == TEXT
    assert failed(store, "other")[0] == "not_found"


@pytest.mark.parametrize("method", ["approle", "kubernetes"])
def test_vault_with_a_login(vault: FakeVault, tmp_path: Path, method: str) -> None:
    (tmp_path / "credential").write_text("s-1\n" if method == "approle" else "j-1")
    auth: dict[str, object] = {"method": method}
    if method == "approle":
        auth |= {"role_id": "shop", "secret_id": {"file": "credential"}}
    else:
        auth |= {"role": "shop", "jwt_file": str(tmp_path / "credential")}
    store = store_of({"source": "vault", "url": vault.url, "auth": auth, "ttl": "0s"}, tmp_path)
    assert store.text("stripe_key") == store.text("stripe_key") == TEXT
    assert len([got for got in vault.got if "login" in got.path]) == 1
    vault.generation = 2  # the token was revoked: one more login
    assert store.text("stripe_key") == TEXT
    assert len([got for got in vault.got if "login" in got.path]) == 2
    vault.generation = 3
    (tmp_path / "credential").write_text("wrong-credential")
    code, text = failed(store)
    assert (code, "wrong-credential" in text) == ("unavailable", False)
    assert f"status 400 to the login by {method}" in text


def test_a_new_version_is_read_after_the_ttl(vault: FakeVault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VAULT_TOKEN", "hvs.1")
    now = [0]
    sources = Sources(monotonic_ns=lambda: now[0])
    store = open_secrets(settings({"source": "vault", "url": vault.url, "ttl": "60s"}), sources)
    assert store.text("stripe_key") == TEXT
    vault.secrets["/v1/secret/data/stripe_key"] = {"value": "rotated-text"}
    assert store.text("stripe_key") == TEXT
    now[0] = 60_000_000_000
    assert store.text("stripe_key") == "rotated-text"
    assert store.redact(f"{TEXT} rotated-text") == "secret:stripe_key secret:stripe_key"


# -- the clouds -----------------------------------------------------------------------------------


def test_aws(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(got: Got, wire: Wire) -> None:
        assert is_signed(got, "AKIAEXAMPLE", "secret/key")
        assert got.headers["content-type"] == "application/x-amz-json-1.1"
        assert got.headers["x-amz-target"] == "secretsmanager.GetSecretValue"
        assert got.headers["x-amz-security-token"] == "session-token"
        name = json.loads(got.body)["SecretId"]
        if name == "shop/stripe_key":
            return says({"Name": name, "SecretString": json.dumps({"key": TEXT})})(got, wire)
        kind = "ResourceNotFoundException" if name == "shop/none" else "AccessDeniedException"
        return says({"__type": f"com.amazonaws#{kind}", "Message": "no"}, 400)(got, wire)

    web.on("/", answer)
    for name, value in {
        "ACCESS_KEY_ID": "AKIAEXAMPLE",
        "SECRET_ACCESS_KEY": "secret/key",
        "SESSION_TOKEN": "session-token",
    }.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    given = {"source": "aws", "region": "eu-central-1", "url": web.url, "secret_id": "shop/{name}", "field": "key"}
    store = store_of(given)
    assert store.text("stripe_key") == TEXT
    assert failed(store, "none") == (
        "not_found",
        "there is no secret `none`: AWS Secrets Manager in eu-central-1 knows none",
    )
    assert (
        failed(store, "denied")[1] == f"the secret `denied`: {web.url} answered with status 400 (AccessDeniedException)"
    )


def test_google(web: Web) -> None:
    path = "/v1/projects/shop-1/secrets/stripe_key/versions/latest:access"
    web.on(
        "/computeMetadata/v1/instance/service-accounts/default/token",
        lambda got, wire: says({"access_token": f"ya29.{got.headers['metadata-flavor']}", "expires_in": 3599})(
            got, wire
        ),
    )
    data = base64.b64encode(TEXT.encode()).decode()

    def access(got: Got, wire: Wire) -> None:
        is_known = got.headers["authorization"] == "Bearer ya29.Google"
        says({"name": "…", "payload": {"data": data}} if is_known else {}, 200 if is_known else 401)(got, wire)

    web.on(path, access)
    store = store_of({"source": "gcp", "project": "shop-1", "url": web.url, "metadata_url": web.url})
    assert store.text("stripe_key") == TEXT
    assert failed(store, "none")[0] == "not_found"
    web.on(path.replace("stripe_key", "denied"), says({}, 403))
    assert "needs the role Secret Manager Secret Accessor" in failed(store, "denied")[1]


def test_azure(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    def login(got: Got, wire: Wire) -> None:
        assert parse_qs(got.body.decode()) == {
            "grant_type": ["client_credentials"],
            "client_id": ["client-1"],
            "client_secret": ["very+secret"],
            "scope": ["https://vault.azure.net/.default"],
        }
        says({"token_type": "Bearer", "expires_in": 3599, "access_token": "eyJ0"})(got, wire)

    def secret(got: Got, wire: Wire) -> None:
        assert got.target == "/secrets/stripe-key?api-version=7.4"
        assert got.headers["authorization"] == "Bearer eyJ0"
        says({"value": TEXT, "id": "…"})(got, wire)

    web.on("/tenant-1/oauth2/v2.0/token", login)
    web.on("/secrets/stripe-key", secret)
    monkeypatch.setenv("AZURE_CLIENT_SECRET", "very+secret")
    given = {"source": "azure", "url": web.url, "login_url": web.url, "tenant": "tenant-1", "client_id": "client-1"}
    store = store_of(given)
    assert store.text("stripe_key") == TEXT
    assert failed(store, "none")[0] == "not_found"
    assert len([got for got in web.got if got.path.startswith("/tenant")]) == 1


# -- problems -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values, problem",
    [
        ({"source": "vault"}, "`url` is missing"),
        ({"source": "vault", "url": "http://vault.example"}, "url: `https://HOST` is expected"),
        ({"source": "vault", "url": "https://x", "auth": {"method": "approle"}}, "`role_id` is missing"),
        (
            {"source": "vault", "url": "https://x", "auth": {"method": "approle", "role_id": "r", "secret_id": {}}},
            "secret_id: `{env = ",
        ),
        ({"source": "aws"}, "`region` is missing"),
        ({"source": "aws", "region": "r", "rgion": "x"}, "rgion: no such setting"),
        ({"source": "gcp"}, "`project` is missing"),
        ({"source": "gcp", "project": "p", "metadata_url": "http://evil.example"}, "metadata_url: `https://HOST`"),
        ({"source": "azure", "url": "https://v"}, "`tenant` is missing"),
        ({"source": "environment", "timeout": "1s"}, "timeout: only functions and managers"),
    ],
)
def test_settings_that_cannot_be_used(values: dict[str, object], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        settings(values)


@pytest.mark.parametrize("body", [b"", b"<html>", b"[1]", b'{"data": {"data": {"value": 5}}}'])
def test_an_answer_without_a_text(web: Web, monkeypatch: pytest.MonkeyPatch, body: bytes) -> None:
    monkeypatch.setenv("VAULT_TOKEN", "hvs.1")
    web.on("/v1/secret/data/stripe_key", lambda _, wire: wire.send(message(200, body)))
    assert failed(store_of({"source": "vault", "url": web.url}))[0] == "not_found"


def test_a_manager_that_is_away(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VAULT_TOKEN", "hvs.1")
    store = store_of({"source": "vault", "url": web.url})
    web.close()
    code, text = failed(store)
    assert code == "unavailable"
    assert text == f"the secret `stripe_key`: {web.url} cannot be reached: Connection refused"
