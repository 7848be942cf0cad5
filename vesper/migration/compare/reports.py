"""Reports of comparisons: agreement, disagreement, fault, or no verdict.

Every component that runs two engines on one request makes one report, and passes it to the `Watch` of the node.
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
    """The kind and location of a difference, without values."""

    kind: Kind
    where: str
    """Location as in `divergence.Divergence.where`: `outputs.fee`, `charge`."""
    leader: str
    """Kind of the leader's outcome with its code, never with values: `returned`, `failed overflow`; `follower`
    likewise."""
    follower: str
    is_effect: bool = False
    """True where the engines requested different effects, or only one made a request."""
    requests: tuple[str, str] | None = None
    """Both requests as texts with values, the leader's first. A sensitive node keeps none."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """A comparison in which both engines agreed."""

    note: PathNote
    fingerprint: int
    python_ns: int | None = None
    direct_ns: int | None = None


@dataclass(frozen=True, slots=True)
class PartAgreed(Agreement):
    """A part of an enumeration on whose inputs the engines agreed. Not evidence of any path."""

    count: int = 0
    """Number of inputs in the part."""

    @staticmethod
    def on(count: int) -> PartAgreed:
        return PartAgreed(PathNote(b"", (), "enumerated"), 0, count=count)


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A comparison in which the engines differ."""

    difference: Difference
    note: PathNote | None
    """Path of the direct engine; None where it did not end."""
    fingerprint: int | None
    transcript: Transcript
    """Transcript of the leader."""
    follower: Outcome | None
    """Outcome of the follower; None where it made another request."""
    execution: str | None = None
    prefix: str = ""
    """Name of the prefix where the direct engine made another request, and has no path."""

    @property
    def path(self) -> str:
        """The path of the direct engine, or its prefix, as part of the divergence's identity."""
        return self.prefix if self.note is None else self.note.name


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of the direct engine: an exception, a reported fault, or a missed deadline."""

    what: str
    transcript: Transcript | None = None
    execution: str | None = None


@dataclass(frozen=True, slots=True)
class Lost:
    """An admitted comparison without a verdict."""

    why: str


Report: TypeAlias = Agreement | Disagreement | Fault | Lost


class Watch(Protocol):
    """The trust of a process in a node's paths. Threads may share it; no method waits for a store."""

    def trusts_prefix(self, name: str) -> bool:
        """Return True where a request may be performed for the direct engine alone.

        Runs with this prefix (`prefix_name`) have enough evidence.
        """
        ...

    def trusts(self, path: str) -> bool:
        """Return True where a direct outcome on this path may be returned uncompared."""
        ...

    def report(self, report: Report) -> None: ...
