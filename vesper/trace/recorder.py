"""Recorder of an execution's trace, with completions from a given function."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeAlias

from vesper.compiler import Compiled
from vesper.engines.engine import Blocked, Limits, Program, Request
from vesper.engines.outcome import ContractBroken, Outcome
from vesper.host.plans import plans_of
from vesper.host.prepared import definition_of
from vesper.trace.model import ContractResult, Exchange, Marked, MarkKind, Origin, Trace, TraceError, Transition
from vesper.trace.places import MarkPlace, mark_places
from vesper.trace.programs import LeastRecentlyUsed
from vesper.values.model import Value

Respond: TypeAlias = Callable[[Request, Sequence[Exchange]], Exchange]
"""Returns the exchange of a request, given those before it. An exception ends the execution."""
MAX_REQUESTS = 100_000
"""Maximum requests of a traced execution, because a loop may request endlessly."""


class Unanswered(Exception):
    """Raised by a `Respond` for a request without a known completion; the trace ends without outcome."""


def no_effects(request: Request, _: Sequence[Exchange]) -> Exchange:
    """Raise for any request: the `Respond` of a pure node."""
    raise TraceError(f"`{request.path}` requests {request.effect}, but effects are not performed here")


@dataclass(frozen=True, slots=True)
class _NodeFacts:
    """Facts about a node that each of its traces needs."""

    places: dict[int, MarkPlace]
    is_sensitive: bool


_known: LeastRecentlyUsed[_NodeFacts] = LeastRecentlyUsed()


def _node_facts(compiled: Compiled) -> _NodeFacts:
    def read_facts() -> _NodeFacts:
        return _NodeFacts(mark_places(compiled.node), plans_of(compiled).is_sensitive)

    return _known.get(compiled.semantic_hash, read_facts)


class MarkCollector:
    """Collector of one execution's marks, with the steps that they belong to; at most the first `most_marks`."""

    def __init__(self, compiled: Compiled, most_marks: int | None = None) -> None:
        self._most_marks = most_marks
        self._places = _node_facts(compiled).places
        self.exchanges: list[Exchange] = []
        self.marks: list[Marked] = []
        self.contracts: list[ContractResult] = []
        self.transitions: list[Transition] = []

    def observe(self, index: int, value: Value) -> None:
        place = self._places.get(index) or MarkPlace("", MarkKind.VALUE)
        after = len(self.exchanges)
        if self._most_marks is None or len(self.marks) < self._most_marks:
            self.marks.append(Marked(index, value, place.step, place.kind, after))
        if place.kind is MarkKind.CLAUSE:
            result = ContractResult(place.phase, place.number, place.text, value is True, after)
            self.contracts.append(result)

    def answered(self, exchange: Exchange) -> None:
        self.exchanges.append(exchange)
        if exchange.effect == "state_transition" and exchange.failure is None:
            self.transitions.append(
                Transition(
                    exchange.path,
                    exchange.fixed.get("machine", ""),
                    exchange.arguments.get("entity"),
                    str(exchange.value),
                    exchange.fixed.get("to", ""),
                    len(self.exchanges),
                )
            )

    def broken(self, outcome: Outcome | None) -> None:
        """Add the mentioned values to the result of the broken clause."""
        if not isinstance(outcome, ContractBroken):
            return
        for position in reversed(range(len(self.contracts))):
            found = self.contracts[position]
            if (found.phase, found.index) == (outcome.phase, outcome.index):
                self.contracts[position] = replace(found, holds=False, values=dict(outcome.values))
                return


def record_trace(
    compiled: Compiled,
    program: Program,
    engine: str,
    trace_id: str,
    inputs: Mapping[str, object],
    now: datetime | None,
    respond: Respond = no_effects,
    limits: Limits | None = None,
    origin: Origin | None = None,
    most_marks: int | None = None,
) -> Trace:
    """Run a node to its end on one engine, completed by `respond`, and return the trace.

    `most_marks` bounds the marks that the trace has; with 0 the execution runs untraced.
    """
    watching = MarkCollector(compiled, most_marks)
    observe = None if most_marks == 0 else watching.observe
    # The traced form is loaded before the timed part.
    execution = program.start(inputs, now, limits, observe, is_traced=observe is not None)
    started_us, began = time.time_ns() // 1000, time.monotonic_ns()
    outcome: Outcome | None = None
    waits_at: str | None = None
    step = execution.advance(())
    try:
        while isinstance(step, Blocked):
            request = step.requests[0]
            if len(watching.exchanges) >= MAX_REQUESTS:
                raise TraceError(f"the execution made more than {MAX_REQUESTS:,} requests and was stopped")
            waits_at = request.path
            answer = respond(request, watching.exchanges)
            watching.answered(answer)
            step = execution.advance((answer.completion(request),))
        outcome, waits_at = step.outcome, None
    except Unanswered:
        pass  # the trace ends at the request without a known completion
    duration_us = None if outcome is None else (time.monotonic_ns() - began) // 1000
    watching.broken(outcome)
    return Trace(
        trace_id,
        definition_of(compiled),
        (engine,),
        dict(inputs),
        now,
        started_us,
        duration_us,
        tuple(watching.exchanges),
        tuple(watching.marks),
        tuple(watching.contracts),
        tuple(watching.transitions),
        outcome,
        None,
        origin,
        waits_at,
        _node_facts(compiled).is_sensitive,
    )


def exchange_of(
    request: Request,
    value: object = None,
    failure: str | None = None,
    origin: str = "recorded",
    message: str = "",
) -> Exchange:
    """Return a request with its completion as an exchange."""
    return Exchange(
        request.path,
        request.effect,
        request.effect_class,
        dict(request.fixed),
        dict(request.arguments),
        request.key,
        value,
        failure,
        message,
        origin=origin,
    )
