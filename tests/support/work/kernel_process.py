"""The kernel's program as a process of a test, known by its address only."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Self

from vesper.kernel.program import find_program

_LISTENING = "listening on "
_END_SECONDS = 30


class KernelProcess:
    """A kernel with a log in a folder; it can be killed and started again at another port."""

    def __init__(self, folder: Path, **settings: str) -> None:
        """Settings are those of the environment, in small letters: `max_message_bytes="1000"`."""
        kept = {name: each for name, each in os.environ.items() if not name.startswith("VESPER_KERNEL_")}
        given = {"listen": "127.0.0.1:0", "store": f"sqlite:{folder / 'kernel.db'}", **settings}
        self._environment = kept | {f"VESPER_KERNEL_{name.upper()}": each for name, each in given.items()}
        self._errors = folder / "kernel.stderr"
        self._process: subprocess.Popen[str] | None = None
        self.address = ""

    def start(self) -> Self:
        with self._errors.open("a", encoding="utf-8") as errors:
            self._process = subprocess.Popen(
                [find_program()],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line.startswith(_LISTENING), self.stderr
        self.address = line.removeprefix(_LISTENING).strip()
        return self

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """End it by a signal, and return its exit code."""
        assert self._process is not None
        assert self._process.stdout is not None
        self._process.send_signal(number)
        code = self._process.wait(_END_SECONDS)
        self._process.stdout.close()
        self._process = None
        return code

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def stderr(self) -> str:
        """Return all that it has written to standard error."""
        return self._errors.read_text(encoding="utf-8")

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self.end(signal.SIGKILL)
