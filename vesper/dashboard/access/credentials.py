"""API keys and tokens, verified by the exchange that verifies them for `vesper serve`."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from vesper._direct import Exchange, ExchangeCall
from vesper.config.settings import Config, read_config
from vesper.dashboard.access.caller import Caller, Role
from vesper.serve.keys import read_auth
from vesper.serve.watch import file_stamp
from vesper.values.vesper_error import VesperError

_log = logging.getLogger("vesper.dashboard")
_PAGES: Final = {Role.VIEWER: "/status", Role.OPERATOR: "/metrics", Role.AUTHOR: "/docs"}
"""Pages of the exchange that stand for roles: their scopes are those of the role."""
_OPEN_PAGE: Final = "/openapi.json"
"""The page of any caller with accepted credentials."""
MAX_CREDENTIAL_CHARACTERS: Final = 8_192
REFRESH_SECONDS: Final = 60.0
"""Time between readings of secrets where no issuer sets one."""


class Credentials:
    """The credentials of a configuration.

    They are read again when its file changes, and as often as its issuers demand.
    """

    def __init__(self, config: Config) -> None:
        """Read all keys. Raises `ConfigError`."""
        self._path = None if config.path is None or not config.path.is_file() else config.path
        self._lock = threading.Lock()
        self._config = config
        self._read(lambda: config)

    def _read(self, settings: Callable[[], Config]) -> None:
        self._stamp = self._path and file_stamp(self._path)
        self._due = time.monotonic() + REFRESH_SECONDS  # of the next try, should this one fail
        config = settings()
        self._exchange = self._exchange_of(config)
        self._config = config
        self._due = time.monotonic() + min((each.refresh for each in config.serve.jwt), default=REFRESH_SECONDS)

    def _exchange_of(self, config: Config) -> Exchange:
        roles = config.dashboard.roles
        pages = [{"path": path, "scopes": list(roles[role.value])} for role, path in _PAGES.items()]
        table = {
            "version": 1,
            "decimals": "text",
            "max_body_bytes": 1_024,
            "cors": None,
            "auth": {**read_auth(config), "is_required": True},
            "endpoints": [],
            "builtins": [*pages, {"path": _OPEN_PAGE, "scopes": []}],
        }
        return Exchange(json.dumps(table).encode())

    @property
    def is_stale(self) -> bool:
        """True where the keys are to be read again."""
        return time.monotonic() >= self._due or (self._path and file_stamp(self._path)) != self._stamp

    def refresh(self) -> None:
        """Read settings, secrets and keys of issuers again; where that fails, the known keys stay."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            self._read(lambda: self._config if self._path is None else read_config(self._path))
        except VesperError as problem:
            _log.error("the keys of callers cannot be read again, and the known ones stay: %s", problem)
        finally:
            self._lock.release()

    def caller(self, credential: str) -> Caller | None:
        """Return the caller with this key or token, with any number of roles; None where it is not accepted."""
        if not credential.isascii() or not credential.isprintable() or len(credential) > MAX_CREDENTIAL_CHARACTERS:
            return None
        headers = [(b"authorization", f"Bearer {credential}".encode())]

        def ask(page: str) -> ExchangeCall | None:
            found = self._exchange.route("GET", page, headers)
            return found if isinstance(found, ExchangeCall) else None

        known = ask(_OPEN_PAGE)
        if known is None or known.actor is None:
            return None
        roles = {role for role, page in _PAGES.items() if ask(page) is not None}
        if roles:
            roles.add(Role.VIEWER)
        scopes = "; ".join(f"{each.value}: {', '.join(self._config.dashboard.roles[each.value])}" for each in Role)
        remedy = f"Log in with a key or token that has its scopes ({scopes})."
        return Caller(known.actor, frozenset(roles), remedy)
