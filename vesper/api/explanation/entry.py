"""Explanations of calls: the call runs again, traced, and no effect is performed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from vesper.api.explanation.derive import explain_trace
from vesper.api.explanation.model import Explanation, Nearest
from vesper.api.explanation.nearest import MAX_TRIES, find_nearest
from vesper.compiler import Compiled
from vesper.engines.compare import same_outcome
from vesper.engines.engine import Completion, Done, Limits, Program, Request
from vesper.engines.outcome import Outcome, Returned
from vesper.engines.registry import ENGINES, REFERENCE
from vesper.host.in_doubt import InDoubt
from vesper.journal.journal import JournalError
from vesper.trace.model import Exchange, Trace, TraceError
from vesper.trace.programs import compiled_of, program_of
from vesper.trace.recorder import Unanswered, record_trace
from vesper.values.vesper_error import VesperError
from vesper.verify.inputs.responses import TooManyRequests, run_with

if TYPE_CHECKING:
    from vesper.api.node import Node
    from vesper.api.outcome import Outcome as CallOutcome


class NotExplained(VesperError):
    """The call behind an outcome cannot be repeated; the message has the reason."""


def explain_call(
    node: Node, inputs: Any, now: datetime | None, outcome: CallOutcome[Any], has_nearest: bool, tries: int | None
) -> Explanation:
    """Return the explanation of a call of the public API."""
    compiled = node._compiled
    engine = node.engine if node.engine in ENGINES else REFERENCE
    if node._entries is None:
        trace = _read_trace(node, outcome.trace_id, engine)
    else:
        plain = node._to_plain(inputs)
        if plain.refused:
            raise NotExplained(f"the inputs are no values of {node.id}, so nothing was evaluated")
        start = now if now is not None or not node._takes_now else None
        trace = record_trace(
            compiled, program_of(compiled, engine), engine, outcome.trace_id, plain.inputs, start, limits=node._limits
        )
        if not _is_same(trace.outcome, outcome):
            raise NotExplained("the inputs were changed after the call: the call gives another outcome now")
    return explain_execution(trace, engine, node._limits, has_nearest, tries)


def explain_execution(
    trace: Trace, engine: str, limits: Limits | None = None, has_nearest: bool = True, tries: int | None = None
) -> Explanation:
    """Return the explanation of a trace, with the nearest input where it is wanted."""
    found = explain_trace(trace)
    if not has_nearest:
        return found
    compiled = compiled_of(trace.definition)
    program = program_of(compiled, engine)
    return replace(found, nearest=nearest_of(compiled, program, trace, limits, MAX_TRIES if tries is None else tries))


def nearest_of(
    compiled: Compiled, program: Program, trace: Trace, limits: Limits | None, tries: int = MAX_TRIES
) -> Nearest | None:
    """Search the nearest input. Requests get the recorded answer of the same step; others end the try."""

    def execute(inputs: dict[str, Any]) -> Done | None:
        try:
            return run_with(program, inputs, trace.now, _answers(trace.exchanges), limits)
        except (Unanswered, TooManyRequests):
            return None

    return find_nearest(compiled.node, trace.inputs, execute, tries)


def _answers(exchanges: Sequence[Exchange]) -> Any:
    known = {each.path: each for each in exchanges}

    def respond(request: Request) -> Completion:
        found = known.get(request.path)
        if found is None or found.effect != request.effect:
            raise Unanswered
        return found.completion(request)

    return respond


def _read_trace(node: Node, execution: str, engine: str) -> Trace:
    from vesper.trace.journalled import trace_of_execution

    try:
        return trace_of_execution(node.host.journal, execution, engine)
    except (JournalError, TraceError, InDoubt) as problem:
        raise NotExplained(f"no trace of the execution can be made: {problem}") from problem


def _is_same(outcome: Outcome | None, told: CallOutcome[Any]) -> bool:
    if outcome is None:
        return False
    if told.error is None:
        return isinstance(outcome, Returned) and outcome.value == told.value
    return same_outcome(outcome, told.error.outcome)
