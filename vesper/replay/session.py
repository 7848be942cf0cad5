"""The state of a replay: trace, position, changes and results. No input or output.

The original trace never changes: each re-execution produces a new trace.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from vesper.compiler import Compiled
from vesper.engines.engine import Limits, Request
from vesper.engines.outcome import Returned
from vesper.host.stub_answers import plain_step
from vesper.replay.changes import Change, ChangeRejected, SourceChange, read_answer
from vesper.replay.fixing import MAX_TRACES, CorpusReport, check_file, replay_corpus, stored_corpus, yaml_diff
from vesper.replay.live import LiveHost
from vesper.replay.rerun import AnswerSource, ChangedExecution, ReplayResult, changed, engine_of, replay, rerun
from vesper.trace.difference import Difference, differences
from vesper.trace.library import Traces
from vesper.trace.masking import masked_differences
from vesper.trace.model import Exchange, Trace
from vesper.trace.programs import compiled_of
from vesper.trace.recorder import exchange_of
from vesper.trace.timeline import TimelineStep, timeline
from vesper.values.vesper_error import VesperError


class ReplayInterrupted(VesperError):
    """Ctrl-C cancelled the current command; the session continues."""

    def __init__(self, why: str = "nothing was changed") -> None:
        super().__init__(f"interrupted: {why}")


@dataclass(slots=True)
class Session:
    trace: Trace
    engine: str
    replayed: ReplayResult
    traces: Traces | None = None
    """Source of the corpus and store of re-executions."""
    open_host: Callable[[], LiveHost] | None = None
    """Opens the Host that performs requests; None if nothing may be performed."""
    answers: Mapping[str, tuple[object, str | None]] = field(default_factory=dict)
    """Answers from a file, by request path."""
    position: int = 0
    """Number of the current step; 0 is before the first."""
    changes: list[Change] = field(default_factory=list)
    forked: Trace | None = None
    """Trace of the last re-execution."""
    fork_of: ChangedExecution | None = None
    statuses: dict[str, int] = field(default_factory=dict)
    """HTTP status by path, for requests that the last re-execution performed."""

    @staticmethod
    def open(
        trace: Trace,
        engine: str | None = None,
        traces: Traces | None = None,
        open_host: Callable[[], LiveHost] | None = None,
    ) -> Session:
        """Open a session and replay the trace unchanged. Raises `UnrecordedRequest`."""
        chosen = engine_of(trace, engine)
        return Session(trace, chosen, replay(trace, chosen), traces, open_host)

    @property
    def compiled(self) -> Compiled:
        return compiled_of(self.trace.definition)

    @property
    def steps(self) -> tuple[TimelineStep, ...]:
        return timeline(self.trace)

    @property
    def step(self) -> TimelineStep | None:
        return self.steps[self.position - 1] if self.position else None

    def go_to(self, number: int) -> None:
        """Set the current step; 0 is before the first. Raises `ChangeRejected` for an unknown number."""
        if not 0 <= number <= len(self.steps):
            raise ChangeRejected(f"no step {number}: the steps are 1 to {len(self.steps)}")
        self.position = number

    # -- re-execution ---------------------------------------------------------------------------------

    def change(self, change: Change) -> None:
        """Add a change; it replaces an earlier change of the same target."""
        self.changes = [each for each in self.changes if _target(each) != _target(change)] + [change]

    def prepare(self, from_step: TimelineStep | None) -> ChangedExecution:
        """Prepare a re-execution. Raises `ChangeRejected` if the changed text is invalid."""
        return changed(self.trace, self.changes, from_step)

    def open_request(self, prepared: ChangedExecution) -> str | None:
        """Return the first request without a valid answer in the trace, as far as known in advance."""
        for each in self.trace.exchanges:
            if each.path in prepared.voided and each.path not in prepared.answers and each.path not in self.answers:
                return each.path
        return None

    def run(
        self,
        prepared: ChangedExecution,
        engine: str | None = None,
        prompt: AnswerSource | None = None,
        limits: Limits | None = None,
        most_marks: int | None = None,
    ) -> Trace:
        """Run again on an engine; requests without an answer go to the file, then to `prompt`."""
        asks: list[AnswerSource] = [self._from_file]
        if prompt is not None:
            asks.append(_only_unrecorded(prepared, prompt))
        self.statuses = {}
        self.forked, self.fork_of = (
            rerun(prepared, engine or self.engine, asks, limits=limits, most_marks=most_marks),
            prepared,
        )
        return self.forked

    def run_live(self, prepared: ChangedExecution, engine: str | None = None) -> Trace:
        """Run again and perform requests without an answer. The caller must have the user's consent."""
        assert self.open_host is not None, "the session was opened for performing requests"

        def answered(request: Request) -> Exchange | None:
            known = prepared.known(request)
            if known is not None and (known.origin == "changed" or prepared.is_before(request)):
                return known
            return self._from_file(request)

        with self.open_host() as host:
            try:
                forked = host.run_changed(prepared, engine or self.engine, answered)
            except KeyboardInterrupt:
                if host.execution is None or not host.knows(host.execution):  # nothing was performed yet
                    raise ReplayInterrupted("nothing was performed") from None
                raise ReplayInterrupted(
                    f"how far execution {host.execution} came, `vesper journal show {host.execution}` says; "
                    "it is not gone on with"
                ) from None
            self.forked, self.fork_of = forked, prepared
            self.statuses = dict(host.statuses)
        return self.forked

    def _from_file(self, request: Request) -> Exchange | None:
        found = self.answers.get(request.path) or self.answers.get(plain_step(request.path))
        return None if found is None else exchange_of(request, *found, origin="file")

    # -- results --------------------------------------------------------------------------------------

    @property
    def has_succeeded(self) -> bool:
        return self.forked is not None and isinstance(self.forked.outcome, Returned)

    def difference(self, reveals: bool) -> list[Difference]:
        """Return the differences of the last re-execution, or of the replay, from the original."""
        again = self.forked or self.replayed.trace
        return differences(self.trace, again) if reveals else masked_differences(self.trace, again)

    def save(self) -> str:
        """Store the last re-execution and return its id. One that performed effects is in the journal."""
        if self.forked is None or self.traces is None:
            raise ChangeRejected("no re-execution to save: `run` or `modify` makes one")
        if not any(each.origin == "live" for each in self.forked.exchanges):
            self.traces.store.add(self.forked)
        return self.forked.trace_id

    # -- a fix ------------------------------------------------------------------------------------

    @property
    def fix(self) -> ChangedExecution | None:
        """The last re-execution, if it changed the text of the node."""
        return self.fork_of if self.fork_of is not None and self.fork_of.has_fix else None

    def fix_diff(self) -> str:
        assert self.fix is not None
        return yaml_diff(self.trace.definition.path, self.trace.definition.source, self.fix.compiled.source.text)

    def corpus(self, most: int = MAX_TRACES, seconds: float = math.inf) -> CorpusReport:
        """Return the effect of the fix on the node's cases and newest traces, on every engine."""
        deadline = time.monotonic() + seconds
        assert self.fix is not None
        found, unread = ([self.trace], 0) if self.traces is None else stored_corpus(self.traces, self.trace, most)
        return replay_corpus(self.fix.compiled, found, unread, deadline)

    def check_file(self, path: Path) -> None:
        """Check that the fix can be written. Raises `FixRejected`."""
        check_file(path, self.trace)

    @property
    def fixed_text(self) -> str:
        assert self.fix is not None
        return self.fix.compiled.source.text


Answers: TypeAlias = dict[str, tuple[object, str | None]]


def read_answers(compiled: Compiled, given: Mapping[str, object], text_of: Callable[[object], str]) -> Answers:
    """Read answers by path: `{"returns": VALUE}` or `{"fails": CODE}`. Raises `ChangeRejected`."""
    found: Answers = {}
    for path, answer in given.items():
        if not isinstance(answer, dict) or len(answer) != 1 or not {"returns", "fails"} & answer.keys():
            raise ChangeRejected(f'`{path}`: write {{"returns": VALUE}} or {{"fails": CODE}}')
        text = f"fails {answer['fails']}" if "fails" in answer else text_of(answer["returns"])
        try:
            found[path] = read_answer(compiled, path, text)
        except KeyError:
            raise ChangeRejected(f"{compiled.node.node_id} has no step `{path}` that makes a request") from None
    return found


def _only_unrecorded(prepared: ChangedExecution, prompt: AnswerSource) -> AnswerSource:
    """Return a source that prompts only for requests unknown to the trace."""

    def ask(request: Request) -> Exchange | None:
        return None if prepared.known(request) is not None else prompt(request)

    return ask


def _target(change: Change) -> Sequence[object]:
    match change:
        case SourceChange(step, keys):
            return "source", step, keys
        case _:
            return type(change).__name__, getattr(change, "name", None), getattr(change, "path", None)
