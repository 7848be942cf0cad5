"""One divergence: both sides, the inputs, the path, its effect on the mode, and the remaining tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vesper.dashboard.page import Context
from vesper.dashboard.pages.divergences.listing import DivergenceRow, divergence_row
from vesper.dashboard.pages.divergences.rerun import Rerun, rerun
from vesper.dashboard.pages.divergences.stored import find_divergence, unchanged_node
from vesper.dashboard.problem import Problem
from vesper.engines.engine import EngineUnavailable
from vesper.engines.registry import engine_label
from vesper.migration.compare.answers import AnswerRow, answer_rows, are_requests, first_differing, stored_transcript
from vesper.migration.compare.divergence import MAX_EXEMPLARS, Divergence, Exemplar
from vesper.migration.compare.path_words import path_words
from vesper.migration.compare.paths import PathNote
from vesper.migration.compare.transcript import Transcript
from vesper.migration.control.modes import Reason
from vesper.migration.stores.configured import OpenStore
from vesper.migration.stores.history_text import parse_record, record_lines
from vesper.migration.stores.kept_divergences import StoredDivergence, read_divergences
from vesper.migration.stores.overview import read_node
from vesper.migration.stores.store import Line
from vesper.values.model import printable, show

_OF_DIVERGENCES = frozenset(
    each.value for each in (Reason.DIVERGENCE, Reason.RATE, Reason.EFFECT_MISMATCH, Reason.TOO_MANY_DIVERGENCES)
)
_GENERATED_NAMES = ("input ", "at ")
"""Beginnings of names of executions that no journal has."""


@dataclass(frozen=True, slots=True)
class NamedText:
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class ShownExecution:
    """A stored execution of the divergence."""

    execution: str
    at_us: int
    is_journalled: bool
    """Whether the journal knows it by this name."""
    inputs: tuple[NamedText, ...]
    completions: tuple[NamedText, ...]
    """Answers to the effects, by request."""
    began: str | None
    problem: str
    """Why inputs and completions are absent; empty where they are stored."""
    are_requests: bool
    """Whether the sides are requests, not outcomes."""
    rows: tuple[AnswerRow, ...]
    first: AnswerRow | None
    """The first value that differs."""


@dataclass(frozen=True, slots=True)
class HistoryLine:
    at_us: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DivergencePage:
    row: DivergenceRow
    odd: str | None
    """Engine that differs from two others."""
    closed_why: str | None
    path_words: tuple[str, ...]
    executions: tuple[ShownExecution, ...]
    max_executions: int
    rerun: Rerun
    small: str | None
    """The smallest case, as a conformance case."""
    mode: str | None
    """Present mode of the node; None where its state cannot be read."""
    latches: tuple[str, ...]
    history: tuple[HistoryLine, ...]
    """Decisions because of this divergence, newest first."""
    siblings: tuple[DivergenceRow, ...]
    """Divergences at the same place on other paths."""
    is_sealed: bool
    """Whether only the journal has the inputs."""
    function: str | None
    """The adopted function that differs; None where two engines do."""
    todo: tuple[str, ...]


def read_detail(context: Context) -> DivergencePage:
    opened, found, is_current = find_divergence(context)
    divergence = found.divergence
    shown = [stored_transcript(each) for each in divergence.exemplars]
    overview = read_node(opened.store, found.key, opened.settings)
    state = overview.state
    latches = (
        () if state is None else tuple(f"{each.reason.value}, by {each.who}: {each.why}" for each in state.latches)
    )
    others, _ = read_divergences(opened.store, [found.key])
    siblings = [
        each
        for each in others
        if each.divergence.place == divergence.place and each.divergence.fingerprint != divergence.fingerprint
    ]
    is_sealed = any(each.inputs is None and not each.left_out for each in divergence.exemplars)
    function = next((each for each in divergence.engines if ":" in each), None)
    return DivergencePage(
        divergence_row(found, is_current),
        None if divergence.odd is None else engine_label(divergence.odd),
        divergence.closed_why,
        tuple(_path_words(context, opened, found)),
        tuple(_execution(each, *stored) for each, stored in zip(divergence.exemplars, shown, strict=True)),
        MAX_EXEMPLARS,
        rerun(context, opened, found, next((each for each, _ in shown if each is not None), None)),
        divergence.small,
        None if state is None else state.mode.value,
        latches,
        _history(opened.store.history(found.key), divergence),
        tuple(divergence_row(each, is_current) for each in siblings),
        is_sealed,
        function,
        tuple(_todo(divergence, is_sealed, function, bool(latches))),
    )


def _path_words(context: Context, opened: OpenStore, found: StoredDivergence) -> list[str]:
    """Describe the path; with its conditions only if the node is unchanged."""
    text = opened.store.paths(found.key).get(found.divergence.path)
    if text is None:
        return []
    note = PathNote.from_text(text)
    try:
        from vesper.engines.direct_engine import DirectEngine

        _, compiled = unchanged_node(context, found)
        return path_words(note, compiled, DirectEngine().load(compiled).points())
    except (Problem, EngineUnavailable):
        return path_words(note, None, ())


def _execution(exemplar: Exemplar, transcript: Transcript | None, problem: str) -> ShownExecution:
    inputs: tuple[NamedText, ...] = ()
    completions: tuple[NamedText, ...] = ()
    if transcript is not None:
        inputs = tuple(NamedText(printable(name), show(value)) for name, value in transcript.inputs.items())
        completions = tuple(
            NamedText(
                printable(each.request.path),
                show(each.value) if each.failure is None else f"failed {printable(each.failure)}",
            )
            for each in transcript.exchanges
        )
    return ShownExecution(
        exemplar.execution,
        exemplar.at_us,
        not exemplar.execution.startswith(_GENERATED_NAMES),
        inputs,
        completions,
        exemplar.now,
        problem,
        are_requests(exemplar),
        tuple(answer_rows(exemplar.leader, exemplar.follower)),
        first_differing(exemplar.leader, exemplar.follower),
    )


def _history(lines: Sequence[Line], divergence: Divergence) -> tuple[HistoryLine, ...]:
    """Return the decisions that name the divergence, and changes of the mode that came with one of them."""
    records = [(line, parse_record(line)) for line in lines]
    moments = {record.get("at_us") for line, record in records if divergence.fingerprint in line.text}
    found = []
    for line, record in records:
        latch = record.get("latch")
        reason = latch.get("reason") if isinstance(latch, dict) else record.get("reason")
        is_with = record.get("at_us") in moments and reason in _OF_DIVERGENCES
        is_fault = divergence.kind == "fault" and reason == Reason.ENGINE_FAULT.value
        at_us = record.get("at_us")
        if type(at_us) is int and (divergence.fingerprint in line.text or is_with or is_fault):
            found.append(HistoryLine(at_us, tuple(record_lines(record))))
    return tuple(reversed(found))


def _todo(divergence: Divergence, is_sealed: bool, function: str | None, is_latched: bool) -> list[str]:
    """Return the remaining tasks of a person, in order."""
    if divergence.status == "closed":
        return ["Nothing: it opens again if it occurs again."]
    name = printable(divergence.fingerprint)
    if divergence.kind == "noise":
        todo = ["Find what the engine depends on besides inputs and answers; agreement shows nothing until then."]
    elif function is not None:
        command = f"vesper divergences shrink {name} --against {printable(function)}"
        todo = [f"Where calling the function again is harmless, shrink it: `{command}`."]
    elif is_sealed:
        command = f"vesper divergences shrink {name} --reveal"
        todo = [f"Shrink it where the journal may be read: `{command}`."]
    else:
        todo = ["Shrink it to the smallest case."] if divergence.small is None else []
        todo.append("Keep it as a case of the node: `vesper test` fails until the defect is fixed.")
    todo.append("Fix the defect and deploy; or accept the difference with a tolerance in vesper.toml.")
    todo.append("Close it with a reason: while it is open, the node is not promoted.")
    if is_latched:
        todo.append("Resume the node: it is latched, and closing does not release it.")
    return todo
