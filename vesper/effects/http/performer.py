"""The effect `http_request`, which the native Host performs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from vesper._direct import HttpPerformer, SecretStore
from vesper.effects.http.settings import HttpSettings
from vesper.effects.performer import no_secret
from vesper.effects.settings import ConfigError

__all__ = ["HttpPerformer", "HttpSettings", "http_performer"]

Resolve = Callable[[str, int], list[str]]
"""From a name and a port to addresses."""


def http_performer(
    settings: Mapping[str, HttpSettings],
    secret: SecretStore | Callable[[str], str] = no_secret,
    resolve: Resolve | None = None,
) -> HttpPerformer:
    """Return the performer of `http_request` for these providers. Raises `ConfigError`.

    `secret` reads the secrets that the settings name; `resolve` replaces the address lookup of the system.
    """
    try:
        import certifi
    except ModuleNotFoundError as missing:
        problem = f"providers need the package `{missing.name}`: pip install 'vesper[http]'"
        raise ConfigError("providers", problem) from None
    try:
        return HttpPerformer(dict(settings), secret, certifi.where(), resolve)
    except ValueError as bad:
        where, problem = bad.args
        raise ConfigError(where, problem) from None
