"""The table `[serve]`: defaults, paths, and refusals that name the place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vesper.config.serve import JwtSettings, KeySettings, ServeSettings, TlsSettings
from vesper.config.settings import config_from, read_config
from vesper.effects.settings import ConfigError

KEY = {"name": "shop", "secret": "shop_key"}
JWT = {"issuer": "https://id.example", "audience": "api", "jwks": "keys.json"}


def serve(**values: Any) -> ServeSettings:
    return config_from({"serve": values}, Path("/srv")).serve


def test_defaults_are_loopback_without_authentication() -> None:
    found = serve()
    assert (found.host, found.has_auth, found.decimals) == ("127.0.0.1", False, "text")
    assert found == config_from({}, Path("/srv")).serve


def test_every_kind_of_authentication_counts() -> None:
    assert serve(keys=[KEY]).keys == (KeySettings("shop", "shop_key"),)
    assert serve(jwt=[JWT]).jwt == (JwtSettings("https://id.example", "api", "/srv/keys.json"),)
    mutual = serve(tls={"certificate": "a.pem", "key": "/k.pem", "client_ca": "ca.pem"})
    assert mutual.tls == TlsSettings(Path("/srv/a.pem"), Path("/k.pem"), Path("/srv/ca.pem"))
    assert all(each.has_auth for each in (serve(keys=[KEY]), serve(jwt=[JWT]), mutual))
    assert not serve(tls={"certificate": "a.pem", "key": "k.pem"}).has_auth


@pytest.mark.parametrize(
    "values, where",
    [
        ({"ports": 1}, "serve.ports"),
        ({"reveal_scope": "pii"}, "serve.runs"),
        ({"scopes": {"/runs": ["a"]}, "keys": [KEY]}, "serve.runs"),
        ({"scopes": {"/run": ["a"]}, "keys": [KEY], "runs": True}, "serve.scopes"),
        ({"port": 65_536}, "serve.port"),
        ({"grace": "2h"}, "serve.grace"),
        ({"limits": {"max_body": "1 B"}}, "serve.limits.max_body"),
        ({"limits": {"connections": 1}}, "serve.limits.connections"),
        ({"keys": [{"name": "a"}]}, "serve.keys[0]"),
        ({"keys": [KEY, KEY]}, "serve.keys"),
        ({"keys": [{**KEY, "name": " "}]}, "serve.keys[0].name"),
        ({"keys": {"name": "a"}}, "serve.keys"),
        ({"jwt": [{**JWT, "algorithms": ["none"]}]}, "serve.jwt[0].algorithms"),
        ({"jwt": [{**JWT, "algorithms": []}]}, "serve.jwt[0].algorithms"),
        ({"jwt": [{**JWT, "jwks": "http://id.example/jwks"}]}, "serve.jwt[0].jwks"),
        ({"cors": {"origins": []}}, "serve.cors.origins"),
        ({"cors": {"origins": ["*"], "credentials": True}}, "serve.cors.credentials"),
        ({"cors": {"origins": ["https://shop.example/path"]}}, "serve.cors.origins"),
        ({"scopes": {"payment_*": ["pay"]}}, "serve.scopes"),
        ({"keys": [KEY], "scopes": {"/metric": ["observe"]}}, "serve.scopes"),
        ({"limits": {"max_headers": 501}}, "serve.limits.max_headers"),
        ({"limits": {"min_rate": "0 B"}}, "serve.limits.min_rate"),
        ({"jwt": [{**JWT, "jwks": "https://id.example:99999/jwks"}]}, "serve.jwt[0].jwks"),
    ],
)
def test_a_wrong_setting_is_refused_at_its_place(values: dict[str, Any], where: str) -> None:
    with pytest.raises(ConfigError) as raised:
        serve(**values)
    assert raised.value.where == where


def test_a_wrong_key_of_a_file_is_refused_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "vesper.toml"
    file.write_text('[[serve.keys]]\nname = "a"\nsecret = "a"\n\n[[serve.keys]]\nname = "b"\nscope = ["x"]\n')
    with pytest.raises(ConfigError, match=r"vesper\.toml:5"):
        read_config(file)
