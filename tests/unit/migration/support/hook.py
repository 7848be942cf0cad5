"""A webhook server for tests, on this machine."""

from __future__ import annotations

import json
import queue
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Hook:
    """A webhook with configurable responses."""

    def __init__(self) -> None:
        self.got: queue.Queue[dict[str, Any]] = queue.Queue()
        self.answers: list[int] = []
        """Statuses, one per request; then 204."""
        self.holds = threading.Event()
        self.holds.set()
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                hook.got.put({"path": self.path, "kind": self.headers["Content-Type"], **json.loads(body)})
                hook.holds.wait(60)
                status = hook.answers.pop(0) if hook.answers else 204
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", f"{hook.url}/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Log nothing: tests read the log of the alerts."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def next(self) -> dict[str, Any]:
        return self.got.get(timeout=60)

    def close(self) -> None:
        self.holds.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
