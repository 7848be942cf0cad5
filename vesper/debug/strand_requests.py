"""Requests of strands, which an engine makes before it shows any mark of them (docs/spec/ir.md, Waves).

The walk takes them out again by their paths: first those of the first strand, then those of the second, and so on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from vesper.debug.stops import CompletionEvent, RequestEvent
from vesper.engines.engine import Completion, Request

Made: TypeAlias = tuple[Request, Completion | None]
"""A request and its completion; None where the execution ended before."""


class StrandRequests:
    """The requests of one statement with strands that the walk has not reached yet, in the order of their waves."""

    def __init__(self) -> None:
        self._made: list[Made] = []

    def add(self, event: RequestEvent | CompletionEvent) -> None:
        if isinstance(event, RequestEvent):
            self._made.append((event.request, None))
        else:
            self._made[-1] = (self._made[-1][0], event.completion)

    def take(self, path: str) -> Made | None:
        """Take the request of a step."""
        found = self._take(lambda each: each == path)
        return found[0] if found else None

    def take_inside(self, path: str) -> list[Made]:
        """Take the requests of a called node."""
        return self._take(lambda each: each.startswith(f"{path}/"))

    def has_round(self, iterations: str) -> bool:
        """Return whether a request of a round is left."""
        return any(_iterations_of(each.path).startswith(iterations) for each, _ in self._made)

    def _take(self, is_wanted: Callable[[str], bool]) -> list[Made]:
        found = [each for each in self._made if is_wanted(each[0].path)]
        self._made = [each for each in self._made if not is_wanted(each[0].path)]
        return found


def _iterations_of(path: str) -> str:
    """Return the iterations of the loops around a step: of `look[2][0]/charge` they are `[2][0]`."""
    _, bracket, rest = path.partition("/")[0].partition("[")
    return bracket + rest
