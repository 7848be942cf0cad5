"""A payment provider on loopback: charges once for each key, and counts requests and charges."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

_CHARGE_SECONDS = 0.25
"""Time of one charge, so that a killed worker leaves some unanswered."""


class Provider:
    def __init__(self) -> None:
        self.requests: Counter[str] = Counter()
        """Requests by key."""
        self.charges: dict[str, str] = {}
        """Charge by key."""
        self.charges_made = 0
        self._lock = threading.Lock()
        provider = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                status, found = provider._charge(self.headers.get("Idempotency-Key"))
                body = json.dumps(found).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Write no log."""

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, name="demo-provider", daemon=True).start()

    def _charge(self, key: str | None) -> tuple[int, dict[str, str]]:
        if key is None:
            return 400, {"error": "a charge needs an Idempotency-Key"}
        time.sleep(_CHARGE_SECONDS)
        with self._lock:
            self.requests[key] += 1
            if key not in self.charges:
                self.charges_made += 1
                self.charges[key] = f"ch_{self.charges_made}"
            return 200, {"id": self.charges[key], "status": "succeeded"}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """Ignore clients that are gone: the demo kills one."""
