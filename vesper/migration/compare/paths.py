"""The names of paths, and what each is in words.

A path is the points that the direct engine passed (`vesper/engines/path.py`), what came of each request by step, and
how the execution ended. Its name is a short hash, the same in every process and for as long as the epoch lasts. A
*prefix* is the same of an execution that waits at a request: before anything is changed, the prefix says whether this
way has been gone often enough to be trusted.
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
"""A node has few paths, and every request that is followed asks for the name of one, and of its prefixes."""


@dataclass(frozen=True, slots=True)
class PathNote:
    """What a store keeps of a path."""

    points: bytes
    settled: tuple[str, ...]
    """`charge: ok`, `charge: http_402`: each step that asked for something, and what came of it, once."""
    ending: str
    prefixes: tuple[str, ...] = ()
    """The names of its prefixes, at each request that changes something."""

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
    """How an execution ended, without its values: the kind, with the code and the place or the clause."""
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
    """What came of the requests so far, by step: rounds of loops fall together, as points do."""
    return tuple(sorted({settled_text(each.request.path, each.failure) for each in exchanges}))


def settled_text(path: str, failure: str | None) -> str:
    """What came of one."""
    return f"{_step(path)}: {failure or 'ok'}"


def path_name(points: bytes, exchanges: Iterable[Exchange], outcome: Outcome) -> str:
    return _name(points, settled_of(exchanges), ending_of(outcome))


def prefix_name(points: bytes, settled: tuple[str, ...], step: str) -> str:
    """Of an execution that is about to ask for something at this step, after what is settled (`settled_of`)."""
    return _name(points, settled, f"at {_step(step)}")


def _step(path: str) -> str:
    """In whichever round of a loop."""
    return _ITERATION.sub("", path) if "[" in path else path


@lru_cache(_MAX_NAMES)
def _name(points: bytes, settled: tuple[str, ...], ending: str) -> str:
    text = "\x00".join((points.hex(), *settled, ending))
    # Halves of characters, which no engine of ours has, make a name as well: nobody who asks for one is to be troubled.
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8, person=b"vesper.path.nam1").hexdigest()
