"""Commands of Vesper for an author: each a process of its own, with a time limit and bounded output."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

    from vesper.mcp.author.project import Project

SECONDS = 60.0
"""Time of a command; tests on busy machines give more."""
MAX_OUTPUT: Final = 64 << 10
"""Bytes of output that a result has."""


@dataclass(frozen=True, slots=True)
class Ran:
    """A command that has ended."""

    exit_code: int
    text: str

    @property
    def is_usable(self) -> bool:
        """True where the command answered: it found nothing wrong, or found errors of the node."""
        return self.exit_code in (0, 1)


async def run_command(project: Project, *arguments: str, given: str = "", seconds: float | None = None) -> Ran:
    """Run `vesper ARGUMENTS` in the folder of the project; `given` is its standard input."""
    seconds = SECONDS if seconds is None else seconds
    settings = {} if project.config is None else {"VESPER_CONFIG": str(project.config)}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "vesper", *arguments),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=project.root,
        env={**os.environ, "NO_COLOR": "1", "COLUMNS": "120", **settings},
        start_new_session=True,
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(given.encode()), seconds)
    except TimeoutError:
        return Ran(2, f"`vesper {arguments[0]}` took longer than {seconds:g} s and was ended")
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    assert process.returncode is not None
    return Ran(process.returncode, _bounded(output))


def _bounded(output: bytes) -> str:
    text = output[:MAX_OUTPUT].decode("utf-8", "replace").strip()
    more = len(output) - MAX_OUTPUT
    return text if more <= 0 else f"{text}\n… and {more:,} bytes more"


def command_path(project: Project, path: Path) -> str:
    """Return a path as the commands get it: relative to the folder in which they run."""
    return f"./{path.relative_to(project.root).as_posix()}"
