"""One engine of a session: its execution, what it told so far, and the stops that this makes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from vesper.compiler import Compiled
from vesper.debug.statement_walk import OnCall, Walk
from vesper.debug.stops import Answered, Asked, Ended, Event, Marked, Stop
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
        """What it asks for and was not told yet."""
        self.outcome: Outcome | None = None
        self._walk = Walk(compiled, engine, expressions, inputs, now, on_call)
        self._events: list[Event] = []
        self._execution: Execution | None = None
        try:
            self._execution = loader.load(engine, compiled).start(inputs, now, limits, self._observe)
        except EngineUnavailable:
            raise
        except Exception as error:  # noqa: BLE001  # an engine that breaks is what a debugger is there to show
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
        """The stop to which a mark belongs; None where the walk has not come to it."""
        return self._walk.owners[mark] if mark < len(self._walk.owners) else None

    def complete(self, completion: Completion) -> None:
        """Tells what came of the request that it waits for, and goes on to the next one or to the end."""
        assert self.waits_for is not None
        self.waits_for = None
        self._events.append(Answered(completion))
        self._advance((completion,))

    def give_up(self, outcome: Outcome) -> None:
        """Ends here, whatever the engine would do: the Host has stopped the run."""
        self.waits_for = None
        self._end(outcome)

    def _observe(self, index: int, value: Value) -> None:
        self.marks.append((index, value))
        self._events.append(Marked(index, value))

    def _advance(self, completions: tuple[Completion, ...]) -> None:
        assert self._execution is not None
        try:
            step = self._execution.advance(completions)
        except Exception as error:  # noqa: BLE001  # an engine that breaks is what a debugger is there to show
            self._end(EngineFault(f"{type(error).__name__}: {error}"))
            return
        if isinstance(step, Blocked):
            (self.waits_for,) = step.requests
            self.requests.append(self.waits_for)
            self._events.append(Asked(self.waits_for))
            self._flush()
        else:
            self._end(step.outcome)

    def _end(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self._events.append(Ended(outcome))
        self._flush()

    def _flush(self) -> None:
        events, self._events = self._events, []
        self._walk.feed(events)
