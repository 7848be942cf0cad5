"""The contract of work beside a Host that lasts as long as its process: keeper, queues, schedules, topics.

`vesper serve` and `vesper work` start all of it and stop it in reverse order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from vesper.compiler import Compiled
    from vesper.host.host import Host
    from vesper.host.prepared import Prepared


@dataclass(frozen=True, slots=True)
class WorkState:
    """A snapshot of background work, for logs, health pages and the dashboard."""

    name: str
    """`keeper`, `queues`, `schedules`, `topics` or `agents`."""
    is_running: bool
    problem: str | None = None
    """The last failure, until the work succeeds again."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Counts and names of this kind of work, as JSON values."""


class BackgroundWork(Protocol):
    """Work of a process; `start` and `stop` are called by one thread, `state` by any."""

    def start(self) -> None:
        """Start the threads without waiting for them. A second call changes nothing."""
        ...

    def stop(self, timeout: float | None = None) -> bool:
        """Take no more work and wait for the work under way. False if it continues after `timeout` seconds."""
        ...

    def state(self) -> WorkState: ...


class WorkNode(Protocol):
    """A loaded node (`vesper.api.node.Node`) as background work uses it."""

    @property
    def id(self) -> str: ...
    @property
    def _compiled(self) -> Compiled: ...
    @property
    def run_json(self) -> Callable[..., bytes]:
        """The entry that runs the node for JSON text and returns its outcome as JSON."""
        ...

    def _prepare(self, host: Host) -> Prepared:
        """Return the node as `Host.run` accepts it, on its own engine or its route."""
        ...

    def _to_plain(self, given: object) -> Any:
        """Return a caller's object or JSON text as plain inputs (`vesper.api.input_conversion.Plain`)."""
        ...


Nodes = Sequence[WorkNode]
"""The nodes of a process; background work selects those with a binding of its kind."""
