"""What is kept of a divergence: what kind it is, how often it came, a few inputs that show it, and what became of it.

The fingerprint says what kind: the node, how the two differ and where. The same fault on a thousand inputs is one
divergence that came a thousand times.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

MAX_EXEMPLARS = 5
_TEXT = 2000
_FORMAT = 1

Kind = Literal["outcome", "value", "request", "path", "fault", "noise"]
"""How two executions differ: in what they gave back, in a value on the way, in what they asked for, in the path that
they took, or in that one of them broke. `noise` is one engine that differs from itself."""


@dataclass(frozen=True, slots=True)
class Exemplar:
    """One execution that shows it."""

    execution: str
    """Under which the journal has it, or a name of its own."""
    at_us: int
    inputs: str | None
    """Typed JSON; None where the node is sensitive: the journal has them, sealed."""
    now: str | None
    records: str | None
    """What was asked for and answered, as `transcript.Transcript.to_text`; None as above, or where nothing was."""
    leader: str
    """What each of the two came to, in words for people."""
    follower: str
    left_out: int = 0
    """Bytes of inputs and records that were too many to keep; then both are None."""


@dataclass(frozen=True, slots=True)
class Divergence:
    fingerprint: str
    node: str
    kind: Kind
    where: str
    """The output, the step or the request in which they first differ: `outputs.fee`, `charge`, `step 3`."""
    path: str
    engines: tuple[str, str]
    """Leader, follower."""
    odd: str | None = None
    """Which of three stands alone, where three were asked."""
    count: int = 1
    first_us: int = 0
    last_us: int = 0
    exemplars: tuple[Exemplar, ...] = ()
    status: Literal["open", "closed"] = "open"
    closed_by: str | None = None
    closed_why: str | None = None
    small: str | None = None
    """The smallest form that was found, as a conformance case; None until it was looked for."""
    extra: Mapping[str, Any] = field(default_factory=dict)

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

    def and_again(self, other: Divergence) -> Divergence:
        """The same divergence, seen once more. It is open again if it was closed."""
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


def fingerprint_of(node: str, kind: Kind, where: str, leader: str, follower: str) -> str:
    """What kind of divergence it is. `leader` and `follower` are kinds of outcomes with their codes, never values."""
    text = f"{node}\x00{kind}\x00{where}\x00{leader}\x00{follower}"
    data = text.encode("utf-8", "surrogatepass")  # a key of a map may be half of a surrogate pair
    return hashlib.blake2b(data, digest_size=8, person=b"vesper.diverge.1").hexdigest()


def shortened(text: str) -> str:
    return text if len(text) <= _TEXT else text[: _TEXT - 1] + "…"
