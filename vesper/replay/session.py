"""One replay under way: the trace, where one looks, what was changed, and what came of it. Nothing here prints or asks.

The original trace is never changed: every re-execution is a trace of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from vesper.compiler import Compiled
from vesper.engines.engine import Request
from vesper.engines.outcome import Returned
from vesper.host.stub_answers import plain_step
from vesper.replay.changes import Change, NotChanged, SourceChange, read_answer
from vesper.replay.fixing import CorpusReport, check_file, replay_corpus, stored_corpus, yaml_diff
from vesper.replay.live import LiveHost
from vesper.replay.rerun import Ask, Changed, Replayed, changed, engine_of, replay, rerun
from vesper.trace.difference import Difference, differences
from vesper.trace.library import Traces
from vesper.trace.model import Exchange, Trace
from vesper.trace.programs import compiled_of
from vesper.trace.recorder import exchange_of
from vesper.trace.timeline import TimelineStep, timeline
from vesper.values.vesper_error import VesperError


class Interrupted(VesperError):
    """Somebody pressed Ctrl-C: what was under way is given up, and the session goes on."""

    def __init__(self, why: str = "nothing was changed") -> None:
        super().__init__(f"interrupted: {why}")


@dataclass(slots=True)
class Session:
    trace: Trace
    engine: str
    replayed: Replayed
    traces: Traces | None = None
    """For the corpus, and to keep re-executions in."""
    open_host: Callable[[], LiveHost] | None = None
    """Who performs, where requests may be performed at all."""
    answers: Mapping[str, tuple[object, str | None]] = field(default_factory=dict)
    """What a file says that requests are answered, by path."""
    position: int = 0
    """The step that is looked at; 0 is before the first."""
    changes: list[Change] = field(default_factory=list)
    forked: Trace | None = None
    """The last re-execution."""
    fork_of: Changed | None = None
    statuses: dict[str, int] = field(default_factory=dict)
    """Of requests that the last re-execution performed over HTTP, by path."""

    @staticmethod
    def open(
        trace: Trace,
        engine: str | None = None,
        traces: Traces | None = None,
        open_host: Callable[[], LiveHost] | None = None,
    ) -> Session:
        """Replays the trace just as it was, first of all. Raises `Unrecorded`."""
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
        """Looks at a step; 0 is before the first. Raises `NotChanged` where there is none."""
        if not 0 <= number <= len(self.steps):
            raise NotChanged(f"there is no step {number}: the steps are 1 to {len(self.steps)}")
        self.position = number

    # -- running again ----------------------------------------------------------------------------

    def change(self, change: Change) -> None:
        """Adds a change; a second one of the same thing takes the place of the first."""
        self.changes = [each for each in self.changes if _target(each) != _target(change)] + [change]

    def prepare(self, from_step: TimelineStep | None) -> Changed:
        """What would be run. Raises `NotChanged` where a changed text is no node."""
        return changed(self.trace, self.changes, from_step)

    def open_request(self, prepared: Changed) -> str | None:
        """The first step that the trace has no answer for any more, as far as one can tell before it is run."""
        for each in self.trace.exchanges:
            if each.path in prepared.anew and each.path not in prepared.answers and each.path not in self.answers:
                return each.path
        return None

    def run(self, prepared: Changed, engine: str | None = None, prompt: Ask | None = None) -> Trace:
        """Runs it again on an engine; requests that the trace has no answer for go to the file, then to `prompt`."""
        asks: list[Ask] = [self._from_file]
        if prompt is not None:
            asks.append(_once_recorded(prepared, prompt))
        self.statuses = {}
        self.forked, self.fork_of = rerun(prepared, engine or self.engine, asks), prepared
        return self.forked

    def run_live(self, prepared: Changed, engine: str | None = None) -> Trace:
        """The same, and what the trace has no answer for is performed. Whoever calls this has asked first."""
        assert self.open_host is not None, "somebody said that requests may be performed"

        def answered(request: Request) -> Exchange | None:
            known = prepared.known(request)
            if known is not None and (known.origin == "changed" or prepared.is_before(request)):
                return known
            return self._from_file(request)

        with self.open_host() as host:
            try:
                forked = host.run_changed(prepared, engine or self.engine, answered)
            except KeyboardInterrupt:
                if host.execution is None or not host.knows(host.execution):  # nothing was about to be changed yet
                    raise Interrupted("nothing was performed") from None
                raise Interrupted(
                    f"how far execution {host.execution} came, `vesper journal show {host.execution}` says; "
                    "it is not gone on with"
                ) from None
            self.forked, self.fork_of = forked, prepared
            self.statuses = dict(host.statuses)
        return self.forked

    def _from_file(self, request: Request) -> Exchange | None:
        found = self.answers.get(request.path) or self.answers.get(plain_step(request.path))
        return None if found is None else exchange_of(request, *found, origin="file")

    # -- what came of it --------------------------------------------------------------------------

    @property
    def has_succeeded(self) -> bool:
        return self.forked is not None and isinstance(self.forked.outcome, Returned)

    def difference(self) -> list[Difference]:
        """Of the last re-execution, or else of the replay, to the original."""
        return differences(self.trace, self.forked or self.replayed.trace)

    def save(self) -> str:
        """Keeps the last re-execution; its id. One that was performed is in the journal already."""
        if self.forked is None or self.traces is None:
            raise NotChanged("nothing was run again yet: there is nothing to keep")
        if not any(each.origin == "live" for each in self.forked.exchanges):
            self.traces.store.add(self.forked)
        return self.forked.trace_id

    # -- a fix ------------------------------------------------------------------------------------

    @property
    def fix(self) -> Changed | None:
        """The last re-execution, where it changed the text of the node."""
        return self.fork_of if self.fork_of is not None and self.fork_of.has_fix else None

    def fix_diff(self) -> str:
        assert self.fix is not None
        return yaml_diff(self.trace.definition.path, self.trace.definition.source, self.fix.compiled.source.text)

    def corpus(self) -> CorpusReport:
        """What the fix does to the node's cases and its stored traces, on every engine."""
        assert self.fix is not None
        found, unread = ([self.trace], 0) if self.traces is None else stored_corpus(self.traces, self.trace)
        return replay_corpus(self.fix.compiled, found, unread)

    def check_file(self, path: Path) -> None:
        """That the fix can be written. Raises `NotApplied`."""
        check_file(path, self.trace)

    @property
    def fixed_text(self) -> str:
        assert self.fix is not None
        return self.fix.compiled.source.text


Answers: TypeAlias = dict[str, tuple[object, str | None]]


def read_answers(compiled: Compiled, given: Mapping[str, object], text_of: Callable[[object], str]) -> Answers:
    """The answers of a file: by path, `{"returns": VALUE}` or `{"fails": CODE}`. Raises `NotChanged`."""
    found: Answers = {}
    for path, answer in given.items():
        if not isinstance(answer, dict) or len(answer) != 1 or not {"returns", "fails"} & answer.keys():
            raise NotChanged(f'`{path}`: write {{"returns": VALUE}} or {{"fails": CODE}}')
        text = f"fails {answer['fails']}" if "fails" in answer else text_of(answer["returns"])
        try:
            found[path] = read_answer(compiled, path, text)
        except KeyError:
            raise NotChanged(f"{compiled.node.node_id} has no step `{path}` that asks for anything") from None
    return found


def _once_recorded(prepared: Changed, prompt: Ask) -> Ask:
    """Asks at the prompt only for what the trace does not know: a person is not asked the same twice."""

    def ask(request: Request) -> Exchange | None:
        return None if prepared.known(request) is not None else prompt(request)

    return ask


def _target(change: Change) -> Sequence[object]:
    match change:
        case SourceChange(step, keys):
            return "source", step, keys
        case _:
            return type(change).__name__, getattr(change, "name", None), getattr(change, "path", None)
