"""A rerun of both engines on a stored execution: their steps up to the first difference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import zip_longest
from typing import TYPE_CHECKING

from vesper.dashboard.page import Context
from vesper.dashboard.pages.divergences.stored import unchanged_node
from vesper.dashboard.problem import Problem
from vesper.engines import registry
from vesper.engines.engine import EngineUnavailable
from vesper.engines.path import guards
from vesper.migration.compare.answers import AnswerRow, answer_rows
from vesper.migration.compare.comparator import Comparator, Same
from vesper.migration.compare.divergence_record import outcome_words
from vesper.migration.compare.request_difference import request_texts
from vesper.migration.compare.rerun_from_log import Given, compare_done, mark_of, run_to_end
from vesper.migration.compare.tolerances import BadTolerance
from vesper.migration.stores.configured import OpenStore
from vesper.migration.stores.kept_divergences import StoredDivergence, is_sensitive
from vesper.values.model import printable, show
from vesper.verify.branches import condition_text
from vesper.verify.differential.verifier import steps_by_expression

if TYPE_CHECKING:
    from vesper.compiler import Compiled
    from vesper.engines.engine import Done, Engine, Program
    from vesper.migration.compare.transcript import Transcript

_MAX_ROWS = 60
"""Maximum number of steps shown; the last ones before the difference."""
_MAX_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class StepRow:
    step: str
    """Name of the step; empty for a contract."""
    line: int | None
    """Line of the source; None for the outcome."""
    expression: str
    """Condition as written; `its value` for the value of a step."""
    leader: str | None
    """Value as text; None where this engine did not get here. `follower` likewise."""
    follower: str | None
    is_marked: bool


@dataclass(frozen=True, slots=True)
class Rerun:
    """The steps of both engines, or the reason why there are none."""

    note: str
    rows: tuple[StepRow, ...] = ()
    left_out: int = 0
    """Number of equal steps before the first row."""
    requests: tuple[AnswerRow, ...] = ()
    """Requests of both engines in order, by path."""
    outcomes: tuple[AnswerRow, ...] = ()


def rerun(context: Context, opened: OpenStore, found: StoredDivergence, transcript: Transcript | None) -> Rerun:
    """Run both engines again on a stored execution. Nothing is performed."""
    divergence = found.divergence
    if divergence.kind in ("fault", "noise"):
        return Rerun("A page does not repeat a fault of an engine: shrinking does, or `vesper divergences shrink`.")
    if any(name not in registry.PAIR for name in divergence.engines):
        return Rerun("A page does not call an adopted function.")
    if transcript is None:
        return Rerun("No inputs are stored here, so the engines cannot run again.")
    try:
        _, compiled = unchanged_node(context, found)
        if is_sensitive(compiled):
            return Rerun("The node is sensitive: its values are not shown.")
        programs = [
            _load(_LoadKey(compiled.semantic_hash, registry.PAIR[name], compiled)) for name in divergence.engines
        ]
        comparator = Comparator(compiled, opened.migration.of(divergence.node).tolerances)
    except Problem as problem:
        return Rerun(f"The engines cannot run again: {problem.what}.")
    except (EngineUnavailable, BadTolerance) as problem:
        return Rerun(f"The engines cannot run again: {printable(str(problem))}.")
    given = Given.of(transcript, compiled.node)
    leader, follower = (run_to_end(program, given) for program in programs)
    names = steps_by_expression(compiled.node)
    is_same = isinstance(compare_done(leader, follower, comparator, names), Same)
    result = "agree: the defect is fixed, intermittent, or specific to another machine" if is_same else "differ"
    return Rerun(
        f"The engines ran again here and {result}.",
        *_step_rows(compiled, names, leader, follower),
        tuple(_request_rows(leader, follower)),
        tuple(answer_rows(outcome_words(leader.outcome), outcome_words(follower.outcome))),
    )


def _request_rows(leader: Done, follower: Done) -> Iterator[AnswerRow]:
    for one, other in zip_longest(leader.requests, follower.requests):
        texts = [_cut(text.replace("\n", ", ")) for text in request_texts(one, other, None)]
        yield AnswerRow((one or other).path, texts[0], texts[1], texts[0] != texts[1])


@dataclass(frozen=True, slots=True)
class _LoadKey:
    semantic_hash: str
    engine: Engine
    compiled: Compiled = field(compare=False)


@lru_cache(maxsize=16)
def _load(wanted: _LoadKey) -> Program:
    """Load a node once for all views of its divergences: generating Python takes longer than a page may."""
    return wanted.engine.load(wanted.compiled)


def _step_rows(
    compiled: Compiled, names: dict[int, str], leader: Done, follower: Done
) -> tuple[tuple[StepRow, ...], int]:
    """Return the rows up to the first difference, and the number of rows left out.

    Without a differing step, the last row compares the outcomes.
    """
    first, conditions = mark_of(leader, follower), guards(compiled.node)
    pairs = list(zip_longest(leader.marks, follower.marks))[: None if first is None else first + 1]
    left_out = max(0, len(pairs) - _MAX_ROWS)
    rows = []
    for number, (one, other) in list(enumerate(pairs))[left_out:]:
        index = (one or other or (0, None))[0]
        expression = compiled.node.expressions()[index]
        left, right = (None if each is None or each[0] != index else _cut(show(each[1])) for each in (one, other))
        step = names.get(index, "")
        is_value = step and index not in conditions
        text = "its value" if is_value else _cut(printable(condition_text(compiled.source, expression)))
        rows.append(StepRow(step, expression.place.line, text, left, right, number == first))
    if first is None:
        words = [_cut(", ".join(outcome_words(each.outcome).split("\n"))) for each in (leader, follower)]
        rows.append(StepRow("outcome", None, "", words[0], words[1], words[0] != words[1]))
    return tuple(rows), left_out


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_CHARACTERS else f"{text[: _MAX_CHARACTERS - 1]}…"
