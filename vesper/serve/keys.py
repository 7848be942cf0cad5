"""The credentials that a server accepts, in the form of its table.

They are hashes of API keys, and public keys of issuers.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from vesper.config.keys import read_keys
from vesper.config.serve import JwtSettings, ServeSettings
from vesper.effects.performer import EffectFailed
from vesper.effects.secrets.settings import SecretSettings
from vesper.effects.secrets.store import open_secrets
from vesper.effects.settings import ConfigError
from vesper.storage.file_access import read_regular

if TYPE_CHECKING:
    from vesper.config.settings import Config
    from vesper.effects.http.webhooks import WebhookScheme

_MAX_BYTES = 1 << 20
_TIMEOUT_SECONDS = 5.0


def read_auth(config: Config) -> dict[str, object]:
    """Read all credentials with a new store of secrets, because a store caches its texts. Raises `ConfigError`."""
    return auth_table(config.serve, open_secrets(config.parts.secrets or SecretSettings("environment")).text)


def auth_table(settings: ServeSettings, secret: Callable[[str], str]) -> dict[str, object]:
    """Return the member `auth` of the table; `secret` reads a secret. Raises `ConfigError`."""
    return {
        "keys": read_keys(settings.keys, secret, "serve.keys"),
        "jwt": [_issuer(each, f"serve.jwt[{n}]") for n, each in enumerate(settings.jwt)],
        "webhooks": [_webhook(node, each, secret) for node, each in settings.webhooks.items()],
        "mtls": settings.tls is not None and settings.tls.client_ca is not None,
        "is_required": settings.has_auth,
    }


def _webhook(node: str, scheme: WebhookScheme, secret: Callable[[str], str]) -> dict[str, object]:
    try:
        texts = [secret(each) for each in scheme.secrets]
    except EffectFailed as problem:
        raise ConfigError(f"serve.webhooks.{node}.secrets", str(problem)) from None
    return {"node": node, **scheme.row(texts)}


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
