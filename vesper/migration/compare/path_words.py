"""A path of a node in words: its conditions in source text, its requests and its ending."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from vesper.compiler import Compiled
from vesper.engines.path import Point, points_of
from vesper.host.masking import SENSITIVE
from vesper.language.ir.nodes import Call, Expression, children
from vesper.language.ir.taint import hides_error_code
from vesper.migration.compare.paths import PathNote
from vesper.values.model import printable

_MAX_TEXT = 60
_FAILED = re.compile(r"failed (.*) at ([0-9]+)")
_OUTCOMES = {"true": "yes", "false": "no", "none": "no round", "one": "one round", "many": "many rounds"}
_OPPOSITES = {"true": "false", "false": "true"}


def path_words(note: PathNote, compiled: Compiled | None, points: Sequence[Point]) -> list[str]:
    """Describe a path in order: `amount > 100: yes`, `charge: ok`, `returned`.

    Without the source of the node the conditions are omitted.
    """
    words: list[str] = []
    if compiled is not None:
        words = [point_words(each, compiled) for each in points_of(note.points, points)]
    return [*words, *map(printable, note.settled), _ending_words(note.ending, compiled)]


@lru_cache(8)
def _expressions(compiled: Compiled) -> Sequence[Expression]:
    """Return the expressions by index; a node has many points, and each asks for one."""
    return compiled.node.expressions()


def point_words(point: Point, compiled: Compiled) -> str:
    if point.kind == "handler":
        return f"handler {point.expression + 1}: ran"
    outcome = _OPPOSITES[point.outcome] if _is_requirement(compiled, point) else point.outcome
    return f"{_source_text(compiled, point.expression)}: {_OUTCOMES.get(outcome, outcome)}"


def _is_requirement(compiled: Compiled, point: Point) -> bool:
    """Return whether the condition negates a requirement of a validation. Both have the same place in the source."""
    condition = _expressions(compiled)[point.expression]
    if point.kind != "condition" or not isinstance(condition, Call) or condition.op != "boolean.not":
        return False
    return condition.place == children(condition)[0].place


def _ending_words(ending: str, compiled: Compiled | None) -> str:
    """Describe the ending; with the source, the place of a failure is its line."""
    if compiled is not None and ending.startswith("error ") and hides_error_code(compiled.node):
        return f"error {SENSITIVE}"
    found = _FAILED.fullmatch(ending)
    if found is None or compiled is None:
        return printable(ending)
    return f"failed {printable(found[1])} at line {_expressions(compiled)[int(found[2])].place.line}"


def _source_text(compiled: Compiled, expression: int) -> str:
    place, source = _expressions(compiled)[expression].place, compiled.source
    start, end = source.offset(place.line, place.column), source.offset(place.end_line, place.end_column)
    text = printable(" ".join(source.text[start:end].split()))
    return text if len(text) <= _MAX_TEXT else f"{text[: _MAX_TEXT - 1]}…"
