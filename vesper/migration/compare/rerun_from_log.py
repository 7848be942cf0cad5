"""Repetition of a recorded execution on any engine. Nothing is performed.

The log completes a request by its path and in its order; a request without a completion in the log fails as
`unavailable`. The conformance suite completes its cases in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest
from typing import Any

from vesper.engines.compare import first_difference
from vesper.engines.engine import Completion, Done, Limits, Program, Request
from vesper.engines.outcome import EngineFault, LimitHit
from vesper.journal.typed_json import as_bytes, decode, encode, encode_text
from vesper.language.ir.nodes import Node
from vesper.migration.compare.comparator import Comparator, Incomparable, Same, Verdict
from vesper.migration.compare.reports import Difference
from vesper.migration.compare.transcript import Transcript
from vesper.verify.inputs.responses import Responder, TooManyRequests, run_with

_RUN_LIMIT_SECONDS = 2.0
"""Time limit in seconds for one run of one engine. A run that exceeds it is incomparable."""


@dataclass(frozen=True, slots=True)
class LoggedCompletion:
    """A logged completion of a request at a path."""

    path: str
    value: object = None
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class Given:
    """Everything that an execution reads."""

    inputs: Mapping[str, object]
    now: datetime | None
    answers: tuple[LoggedCompletion, ...]

    @staticmethod
    def of(transcript: Transcript, node: Node) -> Given:
        """Return the inputs, time and completions of a transcript.

        Inputs are in declared order, which storage may lose.
        """
        answers = tuple(LoggedCompletion(each.request.path, each.value, each.failure) for each in transcript.exchanges)
        names = [each.name for each in node.inputs if each.name in transcript.inputs]
        inputs = {name: transcript.inputs[name] for name in names}
        return Given(inputs | dict(transcript.inputs), transcript.now, answers)

    def responder(self) -> Responder:
        """Return a responder that gives each path its completions in order, then `unavailable`."""
        waiting: dict[str, list[LoggedCompletion]] = {}
        for each in self.answers:
            waiting.setdefault(each.path, []).append(each)

        def respond(request: Request) -> Completion:
            kept = waiting.get(request.path)
            if not kept:
                return Completion(request.id, failure="unavailable")
            found = kept.pop(0)
            return Completion(request.id, found.value, found.failure)

        return respond

    def to_text(self) -> str:
        answers = [[each.path, each.value, each.failure] for each in self.answers]
        return encode_text({"inputs": dict(self.inputs), "now": self.now, "answers": answers})

    @staticmethod
    def from_text(text: str) -> Given:
        found: dict[str, Any] = decode(as_bytes(text))
        return Given(found["inputs"], found["now"], tuple(LoggedCompletion(*each) for each in found["answers"]))

    def size(self) -> int:
        """Return the encoded size of inputs and completions in bytes."""
        return len(encode([dict(self.inputs), self.now, [[each.value, each.failure] for each in self.answers]]))


def run_to_end(program: Program, given: Given) -> Done:
    """Run one engine to its end with marks. An exception becomes an engine fault."""
    try:
        return run_with(program, dict(given.inputs), given.now, given.responder(), Limits(seconds=_RUN_LIMIT_SECONDS))
    except TooManyRequests:
        return Done(LimitHit("requests"), ())
    except Exception as error:  # noqa: BLE001  # a faulty engine may raise anything
        return Done(EngineFault(f"{type(error).__name__}: {error}"), ())


def compare_done(leader: Done, follower: Done, comparator: Comparator, steps: Mapping[int, str]) -> Verdict:
    """Compare two finished executions: requests first, then outcomes, then marks.

    `steps` maps expressions to their steps (`steps_by_expression`).
    """
    outcomes = comparator.compare_outcomes(leader.outcome, follower.outcome)
    if isinstance(outcomes, Incomparable) or (isinstance(outcomes, Difference) and outcomes.kind == "fault"):
        return outcomes
    for one, other in zip_longest(leader.requests, follower.requests):
        asked = comparator.compare_requests(one, other)
        if not isinstance(asked, Same):
            return asked
    if not isinstance(outcomes, Same):
        return outcomes
    mark = mark_of(leader, follower)
    if mark is None or outcomes.is_within_tolerance:
        return outcomes
    index = index_at(mark, leader, follower)
    step = None if index is None else steps.get(index)
    kind = comparator.kind_of(leader.outcome)
    return Difference("value", "a clause" if step is None else f"step {step}", kind, kind)


def mark_of(leader: Done, follower: Done) -> int | None:
    """Return the first mark in which they differ; None where they do not, or one has no marks."""
    is_known = leader.is_observed and follower.is_observed
    return first_difference(leader.marks, follower.marks) if is_known else None


def index_at(mark: int | None, leader: Done, follower: Done) -> int | None:
    """Return the expression index of a mark; None where neither execution has the mark."""
    if mark is None:
        return None
    return next((done.marks[mark][0] for done in (leader, follower) if mark < len(done.marks)), None)
