"""The digests of API keys, whose texts are secrets."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from vesper.config.serve import KeySettings
from vesper.effects.performer import EffectFailed
from vesper.effects.settings import ConfigError

_MIN_KEY_CHARACTERS = 16


def read_keys(keys: Sequence[KeySettings], secret: Callable[[str], str], where: str) -> list[dict[str, object]]:
    """Return the digests of the keys of the setting `where`; `secret` reads a secret. Raises `ConfigError`."""
    found: dict[str, dict[str, object]] = {}
    for n, each in enumerate(keys):
        row = _key(each, secret, f"{where}[{n}].secret")
        other = found.setdefault(str(row["sha256"]), row)
        if other is not row:
            message = f"the secrets of `{other['name']}` and `{each.name}` have one text: give each caller a key"
            raise ConfigError(f"{where}[{n}].secret", message)
    return list(found.values())


def _key(settings: KeySettings, secret: Callable[[str], str], where: str) -> dict[str, object]:
    try:
        text = secret(settings.secret).strip()
    except EffectFailed as problem:
        raise ConfigError(where, str(problem)) from None
    if len(text) < _MIN_KEY_CHARACTERS:
        raise ConfigError(where, f"an API key has {_MIN_KEY_CHARACTERS} characters at least: draw a random one")
    digest = hashlib.sha256(text.encode()).hexdigest()
    return {"name": settings.name, "sha256": digest, "tenant": settings.tenant, "scopes": list(settings.scopes)}
