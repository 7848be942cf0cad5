"""What comparing two executions came to, for whoever counts it.

Whoever runs two engines on one request makes one of these, and gives it to the `Watch` of the node. It is evidence,
a divergence, or nothing that is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias

from vesper.engines.outcome import Outcome
from vesper.migration.compare.divergence import Kind
from vesper.migration.compare.paths import PathNote
from vesper.migration.compare.transcript import Transcript


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two executions part, and how, in words without values."""

    kind: Kind
    where: str
    """`outputs.fee`, `charge`: see `divergence.Divergence.where`."""
    leader: str
    """The kind of what each came to, with its code and never with values: `returned`, `failed overflow`."""
    follower: str
    is_effect: bool = False
    """They asked for different effects, or one asked and the other did not."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Both engines did the same."""

    note: PathNote
    fingerprint: int
    python_ns: int | None = None
    direct_ns: int | None = None


@dataclass(frozen=True, slots=True)
class PartAgreed(Agreement):
    """Both engines agreed on every input of one part of an enumeration. Not evidence of any path."""

    count: int = 0
    """Inputs that were run."""

    @staticmethod
    def on(count: int) -> PartAgreed:
        return PartAgreed(PathNote(b"", (), "enumerated"), 0, count=count)


@dataclass(frozen=True, slots=True)
class Disagreement:
    """They did not."""

    difference: Difference
    note: PathNote | None
    """The path of the direct engine; None where it did not get to an end."""
    fingerprint: int | None
    transcript: Transcript
    """Of the leader."""
    follower: Outcome | None
    """What the other came to; None where it asked for something else."""
    execution: str | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """The direct engine broke: it raised, it was at fault by its own word, or it did not come back in time."""

    what: str
    transcript: Transcript | None = None
    execution: str | None = None


@dataclass(frozen=True, slots=True)
class Lost:
    """A comparison that was admitted came to nothing."""

    why: str


Report: TypeAlias = Agreement | Disagreement | Fault | Lost


class Watch(Protocol):
    """What is known of a node while it runs. Any thread may ask and report; neither ever blocks on a store."""

    def trusts_prefix(self, name: str) -> bool:
        """True where a request may be performed for the direct engine alone: runs with this prefix (`prefix_name`) have
        their evidence."""
        ...

    def trusts(self, path: str) -> bool:
        """True where a direct answer on this path may leave uncompared."""
        ...

    def report(self, report: Report) -> None: ...
