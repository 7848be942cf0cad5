"""Rows of pending work: waits of runs, queued runs, schedules (docs/spec/journal.md, *Waiting runs*)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vesper.journal.journal import Status


@dataclass(frozen=True, slots=True)
class Due:
    """A row. `remove`, `release` and `renew_due` change it only if its fence is unchanged."""

    id: int
    kind: str
    """`sleep`, `signal`, `interrupt`, `queued`, `schedule` or `topic`."""
    due_us: int | None
    """None: never."""
    execution: str | None
    node_id: str | None
    path: str
    name: str
    """The signal, the kind of an interrupt, the node of a schedule."""
    queue: str
    lane: str
    """The key of a limit, or the match of a signal; of a sensitive run a digest."""
    priority: int
    attempts: int
    fence: int
    body: str
    """JSON; of a wait the typed JSON of `arguments` and `fixed`; `{}` where the key of the run was deleted."""
    owner: str = ""
    """The process that claimed the row."""
    lease_until_us: int = 0
    status: Status | None = None
    """The status of the run."""
    is_sensitive: bool = False
    """True where the body holds sensitive values: pages and commands mask it."""
    start_in_us: int = 0
    """The time from the claim to the start that a rate gives, by the clock of the store."""


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """The number of rows of a queue, or of one of its lanes."""

    queue: str
    lane: str
    """Empty where all lanes are counted together."""
    count: int
    waiting: int
    """Rows that are due and wait for a worker."""
    delayed: int
    running: int
    oldest_us: int | None
    """The time since which the oldest row is due."""


@dataclass(frozen=True, slots=True)
class SignalSent:
    """The result of sending a signal."""

    woken: tuple[str, ...]
    """The executions that it woke."""
    is_kept: bool
    """True where no run waited: the first run that asks takes it."""
    is_repeat: bool
    """True where a signal with this key was sent before: nothing was done."""
