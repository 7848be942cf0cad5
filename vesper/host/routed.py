"""The contract between a Host and a program that selects engines per request (`vesper/migration/router`).

`HostedProgram` selects the program of a run. Its executions may be `Routed`: the Host drives them as any other and
journals the moment at which one engine takes over from another.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from vesper.engines.engine import Blocked, Completion, Done, Request
from vesper.engines.outcome import Outcome

if TYPE_CHECKING:
    from vesper.host.host import Host
    from vesper.host.prepared import Prepared


class HostedProgram(ABC):
    """A `Program` that selects the engines of each run of a Host."""

    @property
    def served_name(self) -> str:
        """Return the name without a version under which callers reach a node with a candidate. Empty for others."""
        return ""

    @abstractmethod
    def attach_host(self, host: Host) -> None:
        """Accept a Host that will run the node; called once for each Host."""

    @abstractmethod
    def route(self, prepared: Prepared, inputs: Mapping[str, object], execution: str) -> Prepared:
        """Return the node with the program of one run, and the engine that the journal names."""


class Routed(ABC):
    """An `Execution` that may be handed over from one engine to another while the Host drives it."""

    @abstractmethod
    def advance(self, completions: Sequence[Completion]) -> Blocked | Done: ...

    @abstractmethod
    def begin(self, execution: str) -> None:
        """Set the id under which the journal has the run."""

    @abstractmethod
    def handed_over(self) -> Mapping[str, object] | None:
        """Return the body of a HANDOFF if the last `advance` changed the engine. Each body is returned once."""

    @abstractmethod
    def stop(self, outcome: Outcome | None) -> None:
        """End an execution that is not advanced any further. Raises nothing.

        `outcome` is the one that the Host gave it; None if it has none.
        """


class Parted(Exception):
    """The next engine would not have made the requests that were already performed. No more may be performed."""

    def __init__(self, performed: Request, asked: Request | None) -> None:
        super().__init__(performed.path)
        self.performed = performed
        """What changed something, and was not asked for by the engine that should go on."""
        self.asked = asked
        """What that one asks for instead; None where it ends."""
