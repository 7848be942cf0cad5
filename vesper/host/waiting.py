"""The exception of a run that has left memory until a time, a signal or an answer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from vesper.journal.moments import time_text
from vesper.values.model import printable
from vesper.values.vesper_error import VesperError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class RunWaits(VesperError):
    """The run waits at a step. It has not failed, and the keeper of any process resumes it."""

    def __init__(self, execution: str, node_id: str, path: str, kind: str, name: str, due_us: int | None) -> None:
        """Describe the wait. `kind` is `sleep`, `signal` or `interrupt`; `name` the signal or kind of interrupt."""
        self.execution = execution
        """The id in the journal."""
        self.node_id = node_id
        self.path = path
        self.kind = kind
        self.name = name
        self.due_us = due_us
        """The end of the wait in microseconds since 1970; None where it waits without end."""
        super().__init__(f"{self.description} (execution {execution}); {self.advice}")

    @property
    def due(self) -> datetime | None:
        """Return the end of the wait, by the clock of the journal."""
        return None if self.due_us is None else _EPOCH + timedelta(microseconds=self.due_us)

    @property
    def description(self) -> str:
        """Return node, step and awaited event in words."""
        return f"{self.node_id} waits at `{printable(self.path)}` {wait_text(self.kind, self.name, self.due_us)}"

    @property
    def advice(self) -> str:
        """Return in words how the run is continued."""
        match self.kind:
            case "signal":
                return f"`vesper signal {self.execution} {printable(self.name)} --value JSON` continues it"
            case "interrupt":
                return f"`vesper interrupts resolve {self.execution}` answers it"
            case _:
                return "a process with its journal continues it: `vesper serve` or `vesper work`"


def wait_text(kind: str, name: str, due_us: int | None) -> str:
    """Describe a wait, for a text that begins with "waits"."""
    until = "" if due_us is None else f"until {time_text(due_us, 3)}"
    if kind == "sleep":
        return until
    what = f"for the signal `{printable(name)}`" if kind == "signal" else f"for an answer ({printable(name)})"
    return f"{what}, at most {until}" if until else what
