"""The credentials that a server accepts, as its table has them: hashes of API keys, and public keys of issuers."""

from __future__ import annotations

import hashlib
import http.client
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from vesper.config.serve import JwtSettings, KeySettings, ServeSettings
from vesper.effects.performer import EffectFailed
from vesper.effects.secrets.settings import SecretSettings
from vesper.effects.secrets.store import open_secrets
from vesper.effects.settings import ConfigError
from vesper.storage.file_access import read_regular

if TYPE_CHECKING:
    from vesper.config.settings import Config

MIN_KEY_CHARACTERS = 16
_MAX_BYTES = 1 << 20
_TIMEOUT_SECONDS = 5.0


def read_auth(config: Config) -> dict[str, object]:
    """Read all credentials anew: a store of secrets keeps what it has read. Raises `ConfigError`."""
    return auth_table(config.serve, open_secrets(config.parts.secrets or SecretSettings("environment")).text)


def auth_table(settings: ServeSettings, secret: Callable[[str], str]) -> dict[str, object]:
    """Return the member `auth` of the table; `secret` reads a secret. Raises `ConfigError`."""
    return {
        "keys": _read_keys(settings, secret),
        "jwt": [_issuer(each, f"serve.jwt[{n}]") for n, each in enumerate(settings.jwt)],
        "mtls": settings.tls is not None and settings.tls.client_ca is not None,
        "is_required": settings.has_auth,
    }


def _read_keys(settings: ServeSettings, secret: Callable[[str], str]) -> list[dict[str, object]]:
    found: dict[str, dict[str, object]] = {}
    for n, each in enumerate(settings.keys):
        row = _key(each, secret, f"serve.keys[{n}].secret")
        other = found.setdefault(str(row["sha256"]), row)
        if other is not row:
            message = f"the secrets of `{other['name']}` and `{each.name}` have one text: give each caller a key"
            raise ConfigError(f"serve.keys[{n}].secret", message)
    return list(found.values())


def _key(settings: KeySettings, secret: Callable[[str], str], where: str) -> dict[str, object]:
    try:
        text = secret(settings.secret).strip()
    except EffectFailed as problem:
        raise ConfigError(where, str(problem)) from None
    if len(text) < MIN_KEY_CHARACTERS:
        raise ConfigError(where, f"an API key has {MIN_KEY_CHARACTERS} characters at least: draw a random one")
    digest = hashlib.sha256(text.encode()).hexdigest()
    return {"name": settings.name, "sha256": digest, "tenant": settings.tenant, "scopes": list(settings.scopes)}


def _issuer(settings: JwtSettings, where: str) -> dict[str, object]:
    return {
        "issuer": settings.issuer,
        "audience": settings.audience,
        "keys": _key_set(settings.jwks, f"{where}.jwks"),
        "algorithms": list(settings.algorithms),
        "subject_claim": settings.subject_claim,
        "tenant_claim": settings.tenant_claim,
        "scope_claim": settings.scope_claim,
    }


def _key_set(place: str, where: str) -> list[Mapping[str, Any]]:
    """Read the keys of an issuer. Raises `ConfigError`."""
    try:
        data = _fetch(place) if "://" in place else read_regular(Path(place), _MAX_BYTES)
    except (OSError, http.client.HTTPException) as error:
        raise ConfigError(where, f"{place} cannot be read: {str(error) or type(error).__name__}") from None
    try:
        found = json.loads(data)["keys"]
    except (ValueError, KeyError, TypeError, RecursionError):
        found = None
    if not isinstance(found, list) or not found or not all(isinstance(each, dict) for each in found):
        raise ConfigError(where, f'{place} is no key set: {{"keys": […]}} with a key at least is expected')
    return found


def _fetch(url: str) -> bytes:
    """Return the body of a URL, without following redirects: they could lead away from TLS."""
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=_TIMEOUT_SECONDS)
    try:
        path = f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}"
        connection.request("GET", path, headers={"Accept": "application/json", "User-Agent": "vesper"})
        response = connection.getresponse()
        if response.status != 200:
            raise OSError(f"status {response.status}")
        data = response.read(_MAX_BYTES + 1)
    finally:
        connection.close()
    if len(data) > _MAX_BYTES:
        raise OSError(f"it has more than {_MAX_BYTES:,} bytes")
    return data
