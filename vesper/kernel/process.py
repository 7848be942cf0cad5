"""The kernel's program: where it is, and a kernel that lives as long as a block of code.

with Kernel(store="sqlite:kernel.db") as kernel:
    kernel.client.get_system_status(v1.GetSystemStatusRequest())
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, Self

from vesper.config.kernel import KernelSettings
from vesper.kernel.client import AsyncClient, Client
from vesper.kernel.errors import KernelNotStarted
from vesper.kernel.program import environment_of, find_program, make_store_folder
from vesper.kernel.tokens import Token

START_SECONDS = 30.0
_LISTENING = "listening on "
_METRICS = "metrics on "


class Kernel:
    """A kernel in a process of its own; leaving the block ends it in order."""

    def __init__(
        self,
        store: str = "memory",
        *,
        port: int = 0,
        settings: KernelSettings | None = None,
        token: Token | None = None,
        ca: Path | str | None = None,
        certificate: Path | str | None = None,
        key: Path | str | None = None,
    ) -> None:
        """`store` is `memory` or `sqlite:PATH`; port 0 takes a free one. `settings` has the other limits.

        `token`, `ca`, `certificate` and `key` are those of its clients. Where `settings` name no keys and issuers,
        the kernel accepts this token alone.
        """
        base = settings or KernelSettings()
        if store.startswith("sqlite:"):
            store = f"sqlite:{Path(store.removeprefix('sqlite:')).absolute()}"
        self._settings = replace(base, host="127.0.0.1", port=port, store=store)
        self._token = token
        self._connection: Any = {"token": token, "ca": ca, "certificate": certificate, "key": key}
        self._process: subprocess.Popen[str] | None = None
        self._errors: IO[str] | None = None
        self._client: Client | None = None
        self.address = ""
        """Host and port, once it has started."""
        self.metrics_address = ""
        """Host and port of its metrics, where `settings` has some."""

    @property
    def client(self) -> Client:
        """A client of this kernel."""
        if self._client is None:
            self._client = Client(self._require_address(), **self._connection)
        return self._client

    @property
    def pid(self) -> int:
        """The id of its process."""
        if self._process is None:
            raise KernelNotStarted(_NOT_STARTED)
        return self._process.pid

    def async_client(self) -> AsyncClient:
        """Return a new client for the running event loop; the caller closes it."""
        return AsyncClient(self._require_address(), **self._connection)

    def start(self) -> Self:
        """Start the program, and return when it listens. Raises `KernelNotStarted`."""
        if self._process is not None:
            raise KernelNotStarted("the kernel has been started already")
        program = find_program()
        environment = {name: each for name, each in os.environ.items() if not name.startswith("VESPER_KERNEL_")}
        environment |= environment_of(self._settings, None)
        if isinstance(self._token, str) and not (self._settings.keys or self._settings.jwt):
            environment["VESPER_KERNEL_TOKENS"] = self._token
        make_store_folder(self._settings)
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115  # `_release` closes it
        self._process = subprocess.Popen(
            [program], env=environment, stdout=subprocess.PIPE, stderr=self._errors, stdin=subprocess.DEVNULL, text=True
        )
        assert self._process.stdout is not None
        # A program that neither listens nor ends is ended by the timer; its output ends with it.
        timer = threading.Timer(START_SECONDS, self._process.kill)
        timer.start()
        line = self._process.stdout.readline()
        timer.cancel()
        if not line.startswith(_LISTENING):
            self._process.wait()
            self._errors.seek(0)
            problem = self._errors.read().strip() or f"it did not listen within {START_SECONDS:.0f} s"
            self._release()
            raise KernelNotStarted(f"the kernel did not start: {problem}")
        self.address = line.removeprefix(_LISTENING).strip()
        if self._settings.metrics:
            self.metrics_address = self._process.stdout.readline().removeprefix(_METRICS).strip()
        return self

    def stop(self) -> None:
        """End in order: requests under way are finished, at most the drain time, and a snapshot is written."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End at once, as a power failure does."""
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None
        if self._process is None:
            return
        self._process.send_signal(number)
        try:
            self._process.wait(self._settings.drain_seconds + 10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._release()

    def _release(self) -> None:
        for stream in (self._errors, self._process.stdout if self._process is not None else None):
            if stream is not None:
                stream.close()
        self._process, self._errors = None, None

    def _require_address(self) -> str:
        if self._process is None:
            raise KernelNotStarted(_NOT_STARTED)
        return self.address

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


_NOT_STARTED = "the kernel has not been started: use `with Kernel() as kernel:` or `start()`"
