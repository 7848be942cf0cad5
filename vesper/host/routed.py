"""An execution that holds more than one engine, and what the Host and it tell each other.

Whoever routes requests gives the Host a program whose executions are of this kind. The Host drives them as any other:
what it needs to know besides is when one engine takes over from another, because the journal says so.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from vesper.engines.engine import Blocked, Completion, Done, Request
from vesper.engines.outcome import Outcome


class Routed(ABC):
    """An `Execution` that is told its name and its end, and asked who goes on with it."""

    @abstractmethod
    def advance(self, completions: Sequence[Completion]) -> Blocked | Done: ...

    @abstractmethod
    def begin(self, execution: str) -> None:
        """The name under which the journal has it."""

    @abstractmethod
    def handed_over(self) -> Mapping[str, object] | None:
        """The body of a HANDOFF, once, where another engine goes on since the last `advance`."""

    @abstractmethod
    def stop(self, outcome: Outcome | None) -> None:
        """It is not advanced any more, though it has not ended: the Host gave it this outcome, or has none to give.
        Raises nothing."""


class Parted(Exception):
    """The engine that should go on would not have done what was done already. Nothing more may be performed."""

    def __init__(self, performed: Request, asked: Request | None) -> None:
        super().__init__(performed.path)
        self.performed = performed
        """What changed something, and was not asked for by the engine that should go on."""
        self.asked = asked
        """What that one asks for instead; None where it ends."""
