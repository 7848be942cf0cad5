"""The options of a server, and the messages between its supervisor and its workers.

A message is one JSON object in a line. The end of the stream means that the other process is gone.
"""

from __future__ import annotations

import json
import socket
from dataclasses import asdict, dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

from vesper.config.locate import config_for
from vesper.effects.settings import ConfigError

if TYPE_CHECKING:
    from vesper.config.settings import Config

_CHUNK_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class Options:
    """The options of the command line, which hold for all epochs."""

    nodes: tuple[str, ...] = ()
    config: str | None = None
    expose: tuple[str, ...] = ()
    """Patterns in addition to those of the settings."""
    engine: str = "auto"
    threads: int | None = None
    grace: float = 10.0
    log_format: str | None = None
    needs_auth: bool = False
    """True where other machines can reach the address, and `--insecure` was not given."""
    had_auth: bool = False
    """True where callers had to authenticate when the server was started."""

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Options:
        values: dict[str, Any] = json.loads(text)
        for name in ("nodes", "expose"):
            values[name] = tuple(values[name])
        return cls(**values)

    def read_config(self) -> Config:
        """Read the settings again. Raises `ConfigError`, also if they would drop authentication."""
        config = config_for(self.nodes[0] if self.nodes else None, self.config)
        if self.needs_auth and not config.serve.has_auth:
            raise ConfigError(
                "serve",
                "other machines can reach this address, and no caller has to authenticate: add [[serve.keys]], "
                "[[serve.jwt]] or serve.tls.client_ca, or start with --insecure",
            )
        if self.had_auth and not config.serve.has_auth:
            raise ConfigError(
                "serve",
                "callers had to authenticate when this server was started, and by these settings none has to: "
                "restore [[serve.keys]], [[serve.jwt]] or serve.tls.client_ca, or restart the server",
            )
        return config


def is_public(host: str) -> bool:
    """Return whether other machines can reach an address."""
    return not ip_address(host.partition("%")[0]).is_loopback


class Channel:
    """One end of the connection between the supervisor and a worker."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._read = b""

    def fileno(self) -> int:
        return self._end.fileno()

    def send(self, **message: object) -> None:
        """Send a message. Raises `OSError` if the other process is gone or does not read."""
        self._end.sendall(json.dumps(message).encode() + b"\n")

    def receive(self) -> list[dict[str, Any]] | None:
        """Return the messages that have arrived; None at the end of the stream."""
        try:
            # The other process may be gone while one that it started holds its end open.
            data = self._end.recv(_CHUNK_BYTES, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return []
        except ConnectionError:
            return None
        if not data:
            return None
        *lines, self._read = (self._read + data).split(b"\n")
        return [json.loads(line) for line in lines]

    def close(self) -> None:
        self._end.close()
