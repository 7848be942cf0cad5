"""Makes the trace of an execution that is run now. Whoever runs it says what each request is answered with."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeAlias

from vesper.compiler import Compiled
from vesper.engines.engine import Blocked, Limits, Program, Request
from vesper.engines.outcome import ContractBroken, Outcome
from vesper.host.host import definition_of
from vesper.host.plans import plans_of
from vesper.trace.model import ContractResult, Exchange, Marked, MarkKind, Origin, Trace, TraceError, Transition
from vesper.trace.places import MarkPlace, mark_places
from vesper.trace.programs import Kept
from vesper.values.model import Value

Respond: TypeAlias = Callable[[Request, Sequence[Exchange]], Exchange]
"""What a request is answered with, given the exchanges before it. What it raises ends the execution."""
MAX_REQUESTS = 100_000
"""A loop may ask for ever; a trace of it would have no end."""


class Unanswered(Exception):
    """Raised by a `Respond`: nobody knows what came of this request. The trace ends here, without an outcome."""


def no_effects(request: Request, _: Sequence[Exchange]) -> Exchange:
    """The `Respond` of a pure node."""
    raise TraceError(f"`{request.path}` asks for {request.effect}, and there is nobody to perform it")


@dataclass(frozen=True, slots=True)
class _About:
    """What every trace of a node needs to know of it."""

    places: dict[int, MarkPlace]
    is_sensitive: bool


_known: Kept[_About] = Kept()


def _about(compiled: Compiled) -> _About:
    def made() -> _About:
        return _About(mark_places(compiled.node), plans_of(compiled).is_sensitive)

    return _known.get(compiled.semantic_hash, made)


class Watching:
    """Gathers the marks of one execution with what they belong to."""

    def __init__(self, compiled: Compiled) -> None:
        self._places = _about(compiled).places
        self.exchanges: list[Exchange] = []
        self.marks: list[Marked] = []
        self.contracts: list[ContractResult] = []
        self.transitions: list[Transition] = []

    def observe(self, index: int, value: Value) -> None:
        place = self._places.get(index) or MarkPlace("", MarkKind.VALUE)
        after = len(self.exchanges)
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
        """Adds to the clause that was broken the values that it mentions."""
        if not isinstance(outcome, ContractBroken):
            return
        for position in reversed(range(len(self.contracts))):
            found = self.contracts[position]
            if (found.phase, found.index) == (outcome.phase, outcome.index):
                self.contracts[position] = replace(found, holds=False, values=dict(outcome.values))
                return


def traced_run(
    compiled: Compiled,
    program: Program,
    engine: str,
    trace_id: str,
    inputs: Mapping[str, object],
    now: datetime | None,
    respond: Respond = no_effects,
    limits: Limits | None = None,
    origin: Origin | None = None,
) -> Trace:
    """Runs a node to its end on one engine and gives the trace of it. Every answer comes from `respond`."""
    watching = Watching(compiled)
    execution = program.start(inputs, now, limits, watching.observe)  # loads the traced form, which counts for nothing
    started_us, began = time.time_ns() // 1000, time.monotonic_ns()
    outcome: Outcome | None = None
    waits_at: str | None = None
    step = execution.advance(())
    try:
        while isinstance(step, Blocked):
            (request,) = step.requests
            if len(watching.exchanges) >= MAX_REQUESTS:
                raise TraceError(f"the execution asked for more than {MAX_REQUESTS:,} things: it is given up")
            waits_at = request.path
            answer = respond(request, watching.exchanges)
            watching.answered(answer)
            step = execution.advance((answer.completion(request),))
        outcome, waits_at = step.outcome, None
    except Unanswered:
        pass  # the trace ends at the request that nobody knows the answer to
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
        _about(compiled).is_sensitive,
    )


def exchange_of(
    request: Request,
    value: object = None,
    failure: str | None = None,
    origin: str = "recorded",
    message: str = "",
) -> Exchange:
    """A request with its answer."""
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
