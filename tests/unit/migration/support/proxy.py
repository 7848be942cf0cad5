"""A network that can be broken, in front of a server on a loopback port."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Literal


class Proxy:
    """A proxy that forwards everything until it is broken."""

    def __init__(self, port: int) -> None:
        self._target = port
        self.mode: Literal["pass", "refuse", "swallow"] = "pass"
        self.cut_at: bytes | None = None
        """Bytes of a message that reaches the server, and whose response is dropped."""
        self._open: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def away(self) -> None:
        """Refuse and drop all connections, as after the death of the server."""
        self.mode = "refuse"
        self._cut()

    def close(self) -> None:
        self.away()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _cut(self) -> None:
        while self._open:
            connection = self._open.pop()
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self.mode == "refuse":
                client.close()
                continue
            server = socket.create_connection(("127.0.0.1", self._target))
            self._open += [client, server]
            is_lost = threading.Event()
            threading.Thread(target=self._send, args=(client, server, is_lost), daemon=True).start()
            threading.Thread(target=self._answer, args=(client, server, is_lost), daemon=True).start()

    def _send(self, client: socket.socket, server: socket.socket, is_lost: threading.Event) -> None:
        with suppress(OSError):
            while data := client.recv(1 << 16):
                if self.mode == "swallow":
                    continue
                if self.cut_at is not None and self.cut_at in data:
                    self.cut_at = None
                    is_lost.set()
                server.sendall(data)

    def _answer(self, client: socket.socket, server: socket.socket, is_lost: threading.Event) -> None:
        with suppress(OSError):
            while data := server.recv(1 << 16):
                if is_lost.is_set():  # the server has answered, so it is done; nobody hears of it
                    client.shutdown(socket.SHUT_RDWR)
                    return
                client.sendall(data)
