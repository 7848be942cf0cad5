"""A path of a node in words: the conditions as its source spells them, what came of its requests, how it ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from vesper.cli.show import span_of
from vesper.compiler import Compiled
from vesper.migration.paths import PathNote
from vesper.spec.values import printable

_LONGEST = 60
_OUTCOMES = {"true": "yes", "false": "no", "none": "no round", "one": "one round", "many": "many rounds"}


class Point(Protocol):
    """A point that an execution may pass (docs/spec/migration.md, Paths)."""

    @property
    def kind(self) -> str: ...
    @property
    def expression(self) -> int: ...
    @property
    def outcome(self) -> str: ...


def passed(path: bytes) -> list[int]:
    """The numbers of the points in a path."""
    return [8 * at + bit for at, byte in enumerate(path) for bit in range(8) if byte >> bit & 1]


def path_words(note: PathNote, compiled: Compiled | None, points: Sequence[Point]) -> list[str]:
    """What makes the path, in order: `amount > 100: yes`, `charge: ok`, `returned`. Without the source of the node the
    conditions are left out: their numbers say nothing to anybody."""
    words: list[str] = []
    if compiled is not None:
        words = [point_words(points[at], compiled) for at in passed(note.points) if at < len(points)]
    return [*words, *map(printable, note.settled), printable(note.ending).replace("_", " ")]


def point_words(point: Point, compiled: Compiled) -> str:
    if point.kind == "handler":
        return f"handler {point.expression + 1}: ran"
    outcome = _OUTCOMES.get(point.outcome, point.outcome)
    return f"{_source_text(compiled, point.expression)}: {outcome}"


def _source_text(compiled: Compiled, expression: int) -> str:
    span = span_of(compiled.source, compiled.node.expressions()[expression].place)
    text = printable(" ".join(compiled.source.text[span.start : span.end].split()))
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
