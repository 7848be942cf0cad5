"""A way is an entry or a form in which users run a node: JSON text, tables, limits, a node from the cache.

A way takes inputs on which the engines agree and must reach the reference's outcome. Where its own form holds other
objects (a cell of a column, a number of JSON text), the reference runs on these objects, by docs/spec/values.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from vesper.compiler import Compiled
from vesper.engines.compare import same_outcome
from vesper.engines.direct_engine import DirectProgram
from vesper.engines.engine import Completion, Done, Limits, Program, Request
from vesper.engines.outcome import Failed, LimitHit, Outcome
from vesper.values.generated.errors import ErrorCode
from vesper.values.inputs import accept_inputs
from vesper.values.model import same
from vesper.verify.inputs.responses import GeneratedResponses, TooManyRequests, run_with


@dataclass(frozen=True, slots=True)
class Given:
    """Inputs on which the engines agree, with the reference's execution."""

    number: int
    inputs: dict[str, object]
    done: Done


@dataclass(frozen=True, slots=True)
class Answer:
    """The outcome of a way, and the one that it must have."""

    given: Given
    found: Outcome
    wanted: Outcome
    detail: str = ""
    """The parameters of the way: limits, a guard, column types."""

    @property
    def differs(self) -> bool:
        """Whether the outcomes differ. A time limit is never a difference, because it depends on the machine."""
        if any(isinstance(each, LimitHit) and not each.is_counted for each in (self.found, self.wanted)):
            return False
        return not same_outcome(self.found, self.wanted)


@dataclass(frozen=True, slots=True)
class Subject:
    """A node as ways run it."""

    compiled: Compiled
    reference: Program
    direct: Mapping[str, DirectProgram]
    """Forms of the direct engine by the names of their engines; at least one."""
    responses: GeneratedResponses
    seed: int
    is_program: bool = False
    """True for a random program: it has few inputs, so an expensive way takes only some programs."""

    def program(self, number: int) -> DirectProgram:
        """Return the direct engine's form for an input. The number of the input selects it in rotation."""
        return list(self.direct.values())[number % len(self.direct)]

    def now(self, given: Given) -> datetime:
        return self.responses.now(f"{self.seed} {given.number}")

    def run(self, program: Program, given: Given, limits: Limits | None = None) -> Done:
        """Run an execution to its end on the completions that the engines had."""
        seed = f"{self.seed} {given.number}"
        try:
            respond = self.responses.responder(seed, given.inputs)
            return run_with(program, dict(given.inputs), self.responses.now(seed), respond, limits)
        except TooManyRequests:
            return Done(LimitHit("requests"), ())

    def expect(self, given: Given, inputs: dict[str, object], now: datetime | None = None) -> Outcome:
        """Return the reference's outcome on the objects of a way; `now` is another start time."""
        declared = self.compiled.node.declared_inputs
        values, problems = accept_inputs(declared, inputs)
        if problems:
            return Failed(ErrorCode.BAD_INPUT, None, tuple(problems))
        # An execution depends on the accepted values alone; the reference runs only on other ones.
        if now is None and same(values, accept_inputs(declared, given.inputs)[0]):
            return given.done.outcome
        return run_with(self.reference, inputs, now or self.now(given), _refuse).outcome


def _refuse(request: Request) -> Completion:
    raise ValueError(f"a way without completions met {request}")


class Way(ABC):
    """One way of one node."""

    name: str
    share: int = 1
    """One in this many inputs is compared, but at least one of each chunk."""

    @abstractmethod
    def answers(self, given: Sequence[Given]) -> Iterator[Answer]:
        """Yield an answer for each compared input."""


WayMaker: TypeAlias = Callable[[Subject], Sequence[Way]]
"""Returns the ways that apply to a node."""
