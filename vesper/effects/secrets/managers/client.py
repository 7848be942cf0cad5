"""Requests to managers of secrets: one connection for each, no redirects, no response text in errors."""

from __future__ import annotations

import http.client
import json
import os
import ssl
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from vesper.effects.performer import EffectFailed
from vesper.effects.settings import Table
from vesper.storage.file_access import read_regular

_LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "::1")
_MAX_BYTES = 1 << 20
_MARGIN_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Credential:
    """A credential of this process, read at each use: `{env = "NAME"}` or `{file = "PATH"}`."""

    env: str | None
    path: Path | None

    @classmethod
    def from_table(cls, table: Table, name: str, folder: Path | None, env: str | None = None) -> Credential:
        """Read a setting, by default the variable `env`. Raises `ConfigError`."""
        inner = table.table(name)
        if name not in table and env is not None:
            return cls(env, None)
        found = cls(
            inner.text("env") if "env" in inner else None,
            (folder or Path()) / inner.text("file") if "file" in inner else None,
        )
        inner.done()
        if (found.env is None) == (found.path is None):
            raise table.error(name, '`{env = "NAME"}` or `{file = "PATH"}` is expected')
        return found

    def text(self) -> str:
        """Return the text of the credential. Raises `EffectFailed`."""
        if self.path is None:
            found = os.environ.get(self.env or "")
            if not found:
                raise EffectFailed("unavailable", f"the variable {self.env} is not set")
            return found
        try:
            return read_regular(self.path, _MAX_BYTES).decode().strip()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "it is no text"
            raise EffectFailed("unavailable", f"{self.path} cannot be read: {reason}") from None


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    body: Any
    """Parsed JSON; None where the body is none."""

    def member(self, *names: str) -> Any:
        """Return the member of the body at a path; None if there is none."""
        found = self.body
        for name in names:
            found = found.get(name) if isinstance(found, dict) else None
        return found


@dataclass(frozen=True, slots=True)
class Server:
    """A server reached by HTTPS, or by HTTP on this machine."""

    url: str
    ca_file: Path | None = None
    timeout: float = 10.0

    @classmethod
    def from_table(
        cls, table: Table, name: str, default: str | None = None, folder: Path | None = None, timeout: float = 10.0
    ) -> Server:
        """Read the URL of a server. Raises `ConfigError`."""
        url = (table.text(name) if default is None else table.text(name, default)).rstrip("/")
        parts = urlsplit(url)
        is_safe = parts.scheme == "https" or url == default or parts.hostname in _LOOPBACK_HOSTS
        if parts.scheme not in ("http", "https") or not parts.hostname or not is_safe or parts.query:
            raise table.error(name, f"`https://HOST` is expected, not `{url}`: secrets travel there")
        ca_file = (folder or Path()) / table.text("ca_file") if "ca_file" in table else None
        return cls(url, ca_file, timeout)

    def request(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None = None) -> Reply:
        """Send a request and return its reply. Raises `EffectFailed`."""
        parts = urlsplit(self.url)
        connection: http.client.HTTPConnection
        try:
            if parts.scheme == "https":
                context = ssl.create_default_context(cafile=self.ca_file)
                connection = http.client.HTTPSConnection(
                    parts.hostname or "", parts.port, timeout=self.timeout, context=context
                )
            else:
                connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=self.timeout)
            try:
                every = {"Accept": "application/json", "User-Agent": "vesper"}
                connection.request(method, f"{parts.path}{path}", body, {**every, **headers})
                answer = connection.getresponse()
                data = answer.read(_MAX_BYTES + 1)
            finally:
                connection.close()
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = getattr(error, "strerror", None) or type(error).__name__
            raise EffectFailed("unavailable", f"{self.url} cannot be reached: {reason}") from None
        try:
            found = json.loads(data) if len(data) <= _MAX_BYTES else None
        except (ValueError, RecursionError):
            found = None
        return Reply(answer.status, found)

    def refusal(self, reply: Reply, why: str = "") -> EffectFailed:
        """Return the failure for a reply without a usable secret or token."""
        return EffectFailed("unavailable", f"{self.url} answered with status {reply.status}{why}")


class Manager(ABC):
    """A source of secrets. A call with a name returns the text, or None if there is no such secret."""

    place: str
    """The manager in messages."""

    def __call__(self, name: str) -> str | None:
        """Return a secret. Raises `EffectFailed`."""
        try:
            return self.read(name)
        except EffectFailed as failed:
            raise EffectFailed(failed.code, f"the secret `{name}`: {failed.message}") from None

    @abstractmethod
    def read(self, name: str) -> str | None:
        """Request a secret. Raises `EffectFailed`."""


class Tokens:
    """The access token of a manager. It is requested at its first use, when it expires and when it is refused."""

    def __init__(self, login: Callable[[], tuple[str, float]]) -> None:
        """`login` returns a token and its lifetime in seconds."""
        self._login = login
        self._lock = threading.Lock()
        self._token = ""
        self._until = 0.0

    def send(self, request: Callable[[str], Reply]) -> Reply:
        """Send a request with the token, and again with a new token if it is refused."""
        token = self._current()
        reply = request(token)
        return request(self._current(token)) if reply.status in (401, 403) else reply

    def _current(self, refused: str | None = None) -> str:
        with self._lock:
            if time.monotonic() >= self._until or self._token == refused:
                self._token, life = self._login()
                self._until = time.monotonic() + life - min(_MARGIN_SECONDS, life / 4)
            return self._token


def fill_name(template: str, name: str) -> str:
    """Return a setting with the name of the secret in place of `{name}`."""
    return template.replace("{name}", name)


def text_of(found: object, field: str | None = None) -> str | None:
    """Return a secret, or a field of one that is a JSON object."""
    if field is not None and isinstance(found, str):
        try:
            found = json.loads(found)
        except (ValueError, RecursionError):
            return None
    if field is not None:
        found = found.get(field) if isinstance(found, dict) else None
    return found if isinstance(found, str) else None
