"""One engine of a session: its execution, its events and the stops derived from them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from vesper.compiler import Compiled
from vesper.debug.statement_walk import OnCall, Walk
from vesper.debug.stops import CompletionEvent, EndEvent, Event, MarkEvent, RequestEvent, Stop
from vesper.engines.engine import Blocked, Completion, Engine, EngineUnavailable, Execution, Limits, Request
from vesper.engines.outcome import EngineFault, Outcome
from vesper.trace.expressions import Expressions, Loader
from vesper.values.model import Value


class Side:
    def __init__(
        self,
        compiled: Compiled,
        engine: Engine,
        expressions: Expressions,
        inputs: Mapping[str, object],
        now: datetime,
        on_call: OnCall,
        loader: Loader,
        limits: Limits | None = None,
    ) -> None:
        self.engine = engine
        self.name = engine.name
        self.marks: list[tuple[int, Value]] = []
        self.requests: list[Request] = []
        self.waits_for: Request | None = None
        """Pending request."""
        self.outcome: Outcome | None = None
        self._walk = Walk(compiled, engine, expressions, inputs, now, on_call)
        self._events: list[Event] = []
        self._execution: Execution | None = None
        try:
            self._execution = loader.load(engine, compiled).start(inputs, now, limits, self._observe)
        except EngineUnavailable:
            raise
        except Exception as error:  # noqa: BLE001  # the debugger must show a defect of an engine
            self._end(EngineFault(f"{type(error).__name__}: {error}"))
        else:
            self._advance(())

    @property
    def stops(self) -> list[Stop]:
        return self._walk.stops

    @property
    def is_over(self) -> bool:
        return self.outcome is not None

    def owner(self, mark: int) -> int | None:
        """Return the index of the stop that owns a mark; None if the walk has not reached it."""
        return self._walk.owners[mark] if mark < len(self._walk.owners) else None

    def complete(self, completion: Completion) -> None:
        """Complete the pending request and advance to the next request or to the end."""
        assert self.waits_for is not None
        self.waits_for = None
        self._events.append(CompletionEvent(completion))
        self._advance((completion,))

    def give_up(self, outcome: Outcome) -> None:
        """End with this outcome, because the Host has stopped the run."""
        self.waits_for = None
        self._end(outcome)

    def _observe(self, index: int, value: Value) -> None:
        self.marks.append((index, value))
        self._events.append(MarkEvent(index, value))

    def _advance(self, completions: tuple[Completion, ...]) -> None:
        assert self._execution is not None
        try:
            step = self._execution.advance(completions)
        except Exception as error:  # noqa: BLE001  # the debugger must show a defect of an engine
            self._end(EngineFault(f"{type(error).__name__}: {error}"))
            return
        if isinstance(step, Blocked):
            self.waits_for = step.requests[0]
            self.requests.append(self.waits_for)
            self._events.append(RequestEvent(self.waits_for))
            self._flush()
        else:
            self._end(step.outcome)

    def _end(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self._events.append(EndEvent(outcome))
        self._flush()

    def _flush(self) -> None:
        events, self._events = self._events, []
        self._walk.feed(events)
