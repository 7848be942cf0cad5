"""Credentials of a server: API keys by secrets, keys of issuers from files and URLs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.support.web import Web, redirects, says
from vesper.config.serve import JwtSettings, KeySettings, ServeSettings
from vesper.effects.performer import EffectFailed
from vesper.effects.settings import ConfigError
from vesper.serve.keys import auth_table

KEY = "0123456789abcdef"
JWKS = {"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "AA"}]}


def secrets_of(texts: Mapping[str, str]) -> Callable[[str], str]:
    def read(name: str) -> str:
        if name not in texts:
            raise EffectFailed("not_found", f"there is no secret `{name}`")
        return texts[name]

    return read


def test_keys_are_hashed() -> None:
    settings = ServeSettings(keys=(KeySettings("shop", "a", "acme", ("pay",)),))
    found = auth_table(settings, secrets_of({"a": f"{KEY}\n"}))
    digest = hashlib.sha256(KEY.encode()).hexdigest()
    assert found["keys"] == [{"name": "shop", "sha256": digest, "tenant": "acme", "scopes": ["pay"]}]
    assert (found["is_required"], found["mtls"]) == (True, False)
    assert KEY not in json.dumps(found)


@pytest.mark.parametrize(
    "texts, message",
    [
        ({}, "there is no secret `a`"),
        ({"a": "short"}, "16 characters at least"),
        ({"a": KEY, "b": KEY}, "`shop` and `till` have one text"),
    ],
)
def test_a_key_that_protects_nothing_is_refused(texts: Mapping[str, str], message: str) -> None:
    settings = ServeSettings(keys=(KeySettings("shop", "a"), KeySettings("till", "b")))
    with pytest.raises(ConfigError, match=message) as raised:
        auth_table(settings, secrets_of(texts))
    assert KEY not in str(raised.value)


def issuer(jwks: str) -> ServeSettings:
    return ServeSettings(jwt=(JwtSettings("https://id.example", "api", jwks),))


def test_keys_of_issuers_come_from_files_and_urls(tmp_path: Path) -> None:
    file = tmp_path / "jwks.json"
    file.write_text(json.dumps(JWKS))
    with Web() as web:
        web.on("/jwks", says(JWKS))
        for place in (str(file), f"{web.url}/jwks"):
            (found,) = auth_table(issuer(place), secrets_of({}))["jwt"]  # type: ignore[misc]  # a list
            assert found["keys"] == JWKS["keys"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"keys": []}', '{"keys": [1]}', "[" * 100_000])
def test_a_document_without_keys_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "jwks.json").write_text(text)
    with pytest.raises(ConfigError, match="is no key set"):
        auth_table(issuer(str(tmp_path / "jwks.json")), secrets_of({}))


def test_a_redirect_and_an_absent_server_are_refused() -> None:
    with Web() as web:
        web.on("/jwks", redirects("http://127.0.0.1:1/"))
        with pytest.raises(ConfigError, match="status 302"):
            auth_table(issuer(f"{web.url}/jwks"), secrets_of({}))
    with pytest.raises(ConfigError, match="cannot be read"):
        auth_table(issuer("http://127.0.0.1:1/jwks"), secrets_of({}))
