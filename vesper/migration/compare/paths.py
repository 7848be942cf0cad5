"""Names and notes of paths.

A path is the points that the direct engine passed (`vesper/engines/path.py`), the result of each request by step, and
the ending of the execution. Its name is a short hash, the same in every process throughout an epoch. A *prefix* is the
same for an execution that is suspended at a request: before an effect is performed, the prefix tells whether this path
has enough evidence.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from vesper.engines.outcome import ContractBroken, DeclaredError, Failed, LimitHit, Outcome
from vesper.migration.compare.transcript import Exchange

_ITERATION = re.compile(r"\[[0-9]+\]")
_FORMAT = 1
_MAX_NAMES = 1024
"""Maximum number of cached names. A node has few paths, and every shadow run needs the names of one and of its
prefixes."""


@dataclass(frozen=True, slots=True)
class PathNote:
    """The stored description of a path."""

    points: bytes
    settled: tuple[str, ...]
    """Each step with a request, and its distinct results: `charge: ok`, `charge: http_402`."""
    ending: str
    prefixes: tuple[str, ...] = ()
    """Names of the prefixes, at each request that is not a read."""

    def to_text(self) -> str:
        return json.dumps(
            {
                "format": _FORMAT,
                "points": self.points.hex(),
                "settled": list(self.settled),
                "ending": self.ending,
                "prefixes": list(self.prefixes),
            },
            sort_keys=True,
        )

    @staticmethod
    def from_text(text: str) -> PathNote:
        found = json.loads(text)
        if found.get("format") != _FORMAT:
            raise ValueError("a path of another version of Vesper")
        points = bytes.fromhex(found["points"])
        return PathNote(points, tuple(found["settled"]), found["ending"], tuple(found["prefixes"]))

    @property
    def name(self) -> str:
        return _name(self.points, self.settled, self.ending)


def ending_of(outcome: Outcome) -> str:
    """Return the ending of an execution without values: its kind, with code and location or clause."""
    match outcome:
        case Failed(code, at):
            return f"failed {code} at {'inputs' if at is None else at}"
        case ContractBroken(phase, index):
            return f"broken {phase} {index}"
        case DeclaredError(value):
            return f"error {value.get('error_code')!s}"
        case LimitHit(limit):
            return f"limit {limit}"
        case _:
            return outcome.kind


def settled_of(exchanges: Iterable[Exchange]) -> tuple[str, ...]:
    """Return the results of the requests by step. Rounds of loops are merged, as in points."""
    return tuple(sorted({settled_text(each.request.path, each.failure) for each in exchanges}))


def settled_text(path: str, failure: str | None) -> str:
    """Return the result of one request as text."""
    return f"{_without_rounds(path)}: {failure or 'ok'}"


def path_name(points: bytes, exchanges: Iterable[Exchange], outcome: Outcome) -> str:
    return _name(points, settled_of(exchanges), ending_of(outcome))


def prefix_name(points: bytes, settled: tuple[str, ...], step: str) -> str:
    """Return the name of the prefix of an execution suspended at `step`, with the results `settled`."""
    return _name(points, settled, f"at {_without_rounds(step)}")


def _without_rounds(path: str) -> str:
    """Return the step without the rounds of loops."""
    return _ITERATION.sub("", path) if "[" in path else path


@lru_cache(_MAX_NAMES)
def _name(points: bytes, settled: tuple[str, ...], ending: str) -> str:
    text = "\x00".join((points.hex(), *settled, ending))
    # Lone surrogates get a name too, so that no caller has to handle an encoding error.
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8, person=b"vesper.path.nam1").hexdigest()
