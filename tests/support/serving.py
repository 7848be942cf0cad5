"""Processes that serve HTTP on a port of loopback: start, wait until ready, measure from /proc, end.

Benchmarks and proofs start `vesper serve` and its rivals through this module.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from tests.support.servers import free_port

ROOT = Path(__file__).parents[2]
START_SECONDS = 180.0
_TICK_SECONDS = 1 / os.sysconf("SC_CLK_TCK")


class Serving:
    """A server process and its children. `{port}` in the command stands for its port."""

    def __init__(
        self,
        command: Sequence[str],
        ready: str,
        folder: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Start the command in `folder`, and wait until a request for the path `ready` has any answer below 500."""
        self.port = free_port()
        self.log = folder / f"serving-{self.port}.log"
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [part.replace("{port}", str(self.port)) for part in command],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": path, **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            self._wait(ready)
        except BaseException:
            self.close()
            raise

    def _wait(self, ready: str) -> None:
        until = time.monotonic() + START_SECONDS
        while True:
            with contextlib.suppress(OSError, http.client.HTTPException):
                if self.request("GET", ready)[0] < 500:
                    return
            if self.process.poll() is not None or time.monotonic() > until:
                code = self.process.poll()
                text = self.log.read_text(encoding="utf-8", errors="replace")
                raise RuntimeError(f"{' '.join(self.process.args)} is not ready, exit code {code}:\n{text[-4000:]}")  # type: ignore[arg-type]  # a list of texts
            time.sleep(0.05)

    def request(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Send one request on a connection of its own; return status, headers in lower case, and body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=START_SECONDS)
        try:
            given = {"Content-Type": "application/json"} if body is not None else {}
            connection.request(method, path, body, {**given, **(headers or {})})
            response = connection.getresponse()
            return response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
        finally:
            connection.close()

    def post(self, path: str, value: object) -> tuple[int, Any]:
        """Send JSON, read JSON."""
        status, _, body = self.request("POST", path, json.dumps(value, default=str).encode())
        return status, json.loads(body)

    # -- processes --------------------------------------------------------------------------------

    def workers(self) -> list[int]:
        """Return the children of the started process."""
        return children_of(self.process.pid)

    def tree(self) -> list[int]:
        """Return the started process and everything below it."""
        return list(_below(self.process.pid))

    def processor_seconds(self) -> float:
        """Return the processor time of the processes that are alive, and of their reaped children."""
        return sum(_processor_seconds(pid) for pid in self.tree())

    def largest_mib(self) -> float:
        """Return the resident memory of the largest process."""
        return max(resident_mib(pid) for pid in self.tree())

    def text(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def stop(self, within: float = 60.0) -> int:
        """Send SIGTERM; return the exit code."""
        self.process.terminate()
        return self.process.wait(within)

    def close(self) -> None:
        """Kill the whole session, if any of it is left."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def vesper_serve(nodes: Sequence[str | Path], *options: str, python: str = sys.executable) -> list[str]:
    """Return the command of `vesper serve` on the port `{port}`."""
    return [python, "-m", "vesper", "serve", *map(str, nodes), "--port", "{port}", *options]


def children_of(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    return found


def _below(pid: int) -> Iterator[int]:
    yield pid
    for child in children_of(pid):
        yield from _below(child)


def _processor_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0  # it has ended
    return sum(map(int, fields[11:15])) * _TICK_SECONDS


def resident_mib(pid: int) -> float:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
    return 0.0
