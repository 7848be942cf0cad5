"""The stored form of a divergence: identity, count, exemplars, and whether it is closed.

The fingerprint identifies node, kind, location and path. The same fault on a thousand inputs of one path is one
divergence with a count of a thousand.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

MAX_EXEMPLARS = 5
_MAX_CHARS = 2000
_FORMAT = 1

Kind = Literal["outcome", "value", "request", "path", "fault", "noise"]
"""Kind of a divergence: the outcome, an intermediate value, a request, the path, or an engine fault. `noise` is an
engine that differs from itself."""


@dataclass(frozen=True, slots=True)
class Exemplar:
    """One execution that shows the divergence."""

    execution: str
    """Id of the run in the journal, or a generated name."""
    at_us: int
    inputs: str | None
    """Inputs as typed JSON; None for a sensitive node, whose inputs only the journal holds, sealed."""
    now: str | None
    records: str | None
    """Requests and completions as `transcript.Transcript.to_text`; None as above, or where there were none."""
    leader: str
    """Outcome of the leader as text for people; `follower` likewise."""
    follower: str
    left_out: int = 0
    """Bytes of inputs and records where they were too large to keep; then both are None."""


@dataclass(frozen=True, slots=True)
class Divergence:
    fingerprint: str
    node: str
    kind: Kind
    where: str
    """Output, step or request of the first difference: `outputs.fee`, `charge`, `step 3`."""
    path: str
    engines: tuple[str, str]
    """Names of the leader and the follower."""
    odd: str | None = None
    """Engine that differs from two others, where three were compared."""
    count: int = 1
    first_us: int = 0
    last_us: int = 0
    exemplars: tuple[Exemplar, ...] = ()
    status: Literal["open", "closed"] = "open"
    closed_by: str | None = None
    closed_why: str | None = None
    small: str | None = None
    """Shrunk form as a conformance case; None until it was shrunk."""
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """Fingerprint of the place, which divergences on several paths share."""
        return str(self.extra.get("place", self.fingerprint))

    def to_text(self) -> str:
        return json.dumps({"format": _FORMAT, **asdict(self)}, sort_keys=True)

    @staticmethod
    def from_text(text: str) -> Divergence:
        found = json.loads(text)
        if found.pop("format", None) != _FORMAT:
            raise ValueError("a divergence of another version of Vesper")
        found["exemplars"] = tuple(Exemplar(**each) for each in found["exemplars"])
        found["engines"] = tuple(found["engines"])
        return Divergence(**found)

    def merge(self, other: Divergence) -> Divergence:
        """Return the divergence with another occurrence merged in. A closed divergence becomes open again."""
        known = {each.execution for each in self.exemplars}
        more = tuple(each for each in other.exemplars if each.execution not in known)
        return replace(
            self,
            count=self.count + other.count,
            first_us=min(self.first_us, other.first_us) or other.first_us,
            last_us=max(self.last_us, other.last_us),
            exemplars=(*self.exemplars, *more)[:MAX_EXEMPLARS],
            status="open",
            closed_by=None,
            closed_why=None,
            odd=self.odd or other.odd,
        )


def fingerprint_of(node: str, kind: Kind, where: str, leader: str, follower: str, path: str = "") -> str:
    """Return the identity of a divergence; without a path, that of its place.

    `leader` and `follower` are kinds of outcomes with their codes, never values.
    """
    text = f"{node}\x00{kind}\x00{where}\x00{leader}\x00{follower}" + (f"\x00{path}" if path else "")
    data = text.encode("utf-8", "surrogatepass")  # a map key may be a lone surrogate
    return hashlib.blake2b(data, digest_size=8, person=b"vesper.diverge.1").hexdigest()


def shorten(text: str) -> str:
    return text if len(text) <= _MAX_CHARS else text[: _MAX_CHARS - 1] + "…"
