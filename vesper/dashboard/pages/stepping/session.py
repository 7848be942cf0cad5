"""One stepping session: a recorded run on both engines, moved, changed and compared. It performs nothing."""

from __future__ import annotations

import json
import math
import shlex
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from vesper.debug.commands import Commands
from vesper.debug.masking import SessionMasks
from vesper.debug.responses import Unanswered
from vesper.debug.start import subject_of_trace
from vesper.effects.stored_json import stored_text
from vesper.engines.engine import EngineUnavailable, Limits, Request
from vesper.engines.outcome import LimitHit, Outcome
from vesper.engines.registry import PAIR
from vesper.host.masking import Masks
from vesper.host.plans import plans_of
from vesper.host.stub_answers import plain_step
from vesper.replay.changes import (
    Change,
    ChangeRejected,
    SourceChange,
    find_step,
    input_change,
    read_answer,
    read_change,
)
from vesper.replay.file_change import find_change
from vesper.replay.fixing import FixRejected, check_file
from vesper.replay.rerun import ChangedExecution, UnrecordedRequest
from vesper.replay.session import Session as Replay
from vesper.replay.shell import split_changes
from vesper.trace.difference import Difference
from vesper.trace.library import Traces
from vesper.trace.model import Exchange, Trace
from vesper.trace.programs import compiled_of
from vesper.trace.timeline import TimelineStep
from vesper.values.model import printable
from vesper.values.vesper_error import VesperError

MAX_VALUES: Final = 5_000
"""Maximum values of a run that a session keeps, for its memory."""
MAX_BYTES: Final = 4 << 20
MAX_TEXT: Final = 20_000
MAX_POINTS: Final = 20
"""Maximum breakpoints and watches: each is evaluated at every stop."""
SECONDS: Final = 5.0
"""Time for a command, for one engine to run the node, and for the replay of a fix."""
VIEW_SECONDS: Final = 2.0
"""Time for the watches of a page."""
_MAX_CORPUS_TRACES: Final = 100
"""Maximum traces that a proposed fix is replayed on; `vesper replay --apply` takes more."""
COMMANDS: Final = (
    "step", "next", "into", "out", "continue", "back", "reverse-continue", "divergence", "end", "break", "delete",
    "watch", "print", "answer", "fail",
)  # fmt: skip
"""Commands of the prompt that a page may send."""


class SteppingRefused(VesperError):
    """A run is too large, or a command too slow, to step through on a page."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A request of the changed run without an answer in the record."""

    path: str
    effect: str
    type: str
    """Type of the answer."""
    why: str


@dataclass(frozen=True, slots=True)
class Fix:
    """A change of the node's text as a patch."""

    diff: str
    corpus: str
    """Effect on the cases and the newest traces of the node."""
    problems: tuple[str, ...]
    state: str
    """Whether the patch fits the file as it is now."""
    command: str
    """Command that applies the fix."""
    answers: str
    """Content of its file `answers.json`; empty where the command needs none."""


class SteppingSession:
    """A session of one caller. Requests of the page use it one at a time, under `lock`.

    `file` is the file of the node in the project; None without one.
    """

    def __init__(self, key: str, owner: tuple[str, str], trace: Trace, traces: Traces, file: Path | None) -> None:
        change = None if file is None else find_change(trace, lambda: file)
        self.file_change = () if change is None else tuple(change.lines())
        self.file = file
        self.key = key
        self.owner = owner
        self.lock = threading.Lock()
        self.used_at = 0.0
        self.trace = trace
        self.messages: tuple[str, ...] = ()
        self.pending: Pending | None = None
        self.fix: Fix | None = None
        self.replay: Replay | None = None
        self._deadline = math.inf
        self._is_ending_late = False
        self._open(trace)
        try:
            self.replay = Replay.open(trace, traces=traces)
        except UnrecordedRequest as problem:
            self.messages = (f"the run cannot be changed here, because its replay differs: {problem}",)

    def _open(self, trace: Trace) -> None:
        """Begin stepping through a trace: the recorded one, or that of the changed run."""
        if len(trace.marks) > MAX_VALUES or len(trace.to_bytes()) > MAX_BYTES:
            raise SteppingRefused(
                f"the run has {len(trace.marks):,} values, more than a page keeps ({MAX_VALUES:,} values, "
                f"{MAX_BYTES >> 20} MiB): `vesper debug --trace {self.trace.trace_id} --comparative` steps through it"
            )
        compiled = compiled_of(trace.definition)
        subject = subject_of_trace(trace, tuple(PAIR.values()))
        masks = SessionMasks(Masks(compiled)) if trace.is_sensitive else None
        session = subject.session(limits=Limits(seconds=SECONDS))
        session.question_limits = self._question_limits
        first = session.position
        with suppress(Unanswered):  # an unfinished run is recorded up to the request that it waits for
            session.to_end()
        for side in session.sides:
            if _is_late(side.outcome):
                raise SteppingRefused(
                    f"the run computes longer than {SECONDS:g} seconds on {side.name}, the most that a page waits for: "
                    f"`vesper debug --trace {self.trace.trace_id} --comparative` steps through it"
                )
        session.goto(first)
        self.commands = Commands(session, subject.manual, masks=masks, renders=False)
        self.stepped = trace

    @property
    def is_changed(self) -> bool:
        """Whether the session steps through the changed run."""
        return self.stepped is not self.trace

    def run(self, text: str) -> None:
        """Run a command of the prompt; its messages are shown with the new position."""
        word = text.strip().partition(" ")[0]
        if word not in COMMANDS or len(text) > MAX_TEXT:
            raise ChangeRejected(f"`{printable(word[:40])}` is not a command of this page")
        if word in ("answer", "fail"):
            self._check_changeable()
        if word in ("break", "watch") and len(self.commands.session.breakpoints) >= MAX_POINTS:
            raise ChangeRejected(f"{MAX_POINTS} breakpoints and watches are set, the most of a page: delete one first")
        self.allow(SECONDS)
        self._is_ending_late = True
        try:
            told = [line for line in self.commands.run(text) if line.strip()]
        finally:
            self._is_ending_late = False
        self.messages = tuple(line for line in told if "start with --answer" not in line)  # the page has a form

    def allow(self, seconds: float) -> None:
        """Limit the total time of the next evaluations of breakpoints and watches."""
        self._deadline = time.monotonic() + seconds

    def _question_limits(self) -> Limits:
        left = self._deadline - time.monotonic()
        if left <= 0 and self._is_ending_late:
            raise SteppingRefused(
                f"stopped after {SECONDS:g} seconds: every stop evaluates breakpoints and watches; delete a slow one"
            )
        return Limits(seconds=max(0.0, left))

    @property
    def unanswered(self) -> Request | None:
        """The pending request at this position; None if it has a recorded or given answer."""
        session = self.commands.sessions[0]
        request = session.leader.waits_for
        if request is None or session.position.stop < len(session.leader.stops) - 1:
            return None
        try:
            session.book.answer(request)
        except Unanswered:
            return request
        return None

    # -- changes ----------------------------------------------------------------------------------

    def change(self, target: str, text: str) -> None:
        """Change an answer, an input or a parameter of a step, and run on. Raises `VesperError`."""
        replay = self._replay()
        trace, compiled = replay.trace, replay.compiled
        step: TimelineStep | None = None
        changes: Sequence[Change]
        if not text.strip() or len(text) > MAX_TEXT:
            raise ChangeRejected(
                "write the change: `response JSON`, `fails CODE`, or a parameter such as `timeout 60s`"
            )
        if target.startswith("input."):
            changes = [input_change(trace, compiled, target.removeprefix("input."), text.strip())]
        else:
            step = find_step(trace, target)
            changes = [read_change(trace, compiled, step, each) for each in split_changes(text)]
        with self._restore_on_rejection(replay):
            for each in changes:
                replay.change(each)
            self._rerun()

    def respond(self, text: str) -> None:
        """Answer the pending request of the changed run, and run on. Raises `VesperError`."""
        replay = self._replay()
        if self.pending is None:
            raise ChangeRejected("no request waits for an answer")
        path = self.pending.path
        found = read_answer(replay.prepare(None).compiled, path, text.strip().removeprefix("response "))
        with self._restore_on_rejection(replay):
            replay.answers = {**replay.answers, path: found}
            self._rerun()

    @contextmanager
    def _restore_on_rejection(self, replay: Replay) -> Iterator[None]:
        """Restore changes, answers and their run where the new run is rejected."""
        before = (replay.changes, replay.answers, replay.forked, replay.fork_of, self.pending, self.fix)
        try:
            yield
        except (VesperError, EngineUnavailable):
            replay.changes, replay.answers, replay.forked, replay.fork_of, self.pending, self.fix = before
            raise

    def reset(self) -> None:
        """Drop all changes, and step through the recorded run again."""
        replay = self._replay()
        replay.changes, replay.answers, replay.forked, replay.fork_of = [], {}, None, None
        self.pending, self.fix, self.messages = None, None, ("the recorded run, without changes",)
        self._open(self.trace)

    def _rerun(self) -> None:
        """Run with all changes. A request without an answer becomes `pending`; nothing is sent."""
        replay = self._replay()
        prepared = replay.prepare(None)
        unanswered: list[Request] = []

        def ask(request: Request) -> Exchange | None:
            unanswered.append(request)
            return None

        self.pending, self.fix = None, None
        try:
            forked = replay.run(prepared, None, ask, Limits(seconds=SECONDS), MAX_VALUES + 1)
        except UnrecordedRequest as problem:
            if not unanswered:
                raise
            self.pending = _pending(prepared, unanswered[-1])
            replay.forked = None
            self.messages = (str(problem).partition(". ")[0],)
            self._open(self.trace)
            return
        if _is_late(forked.outcome):
            raise ChangeRejected(
                f"the changed run computes longer than {SECONDS:g} seconds, the most that a page waits for"
            )
        self._open(forked)
        self.commands.run("end")
        self.messages = ("ran on with the changes, and performed nothing",)

    def change_texts(self) -> tuple[str, ...]:
        """Return the changes, each with its values before and after."""
        return () if self.replay is None else tuple(printable(str(each)) for each in self.replay.changes)

    def differences(self) -> tuple[Difference, ...]:
        """Return the differences between the changed run and the recorded one."""
        return () if self.replay is None or not self.is_changed else tuple(self.replay.difference(reveals=False))

    # -- the fix ----------------------------------------------------------------------------------

    def propose(self) -> None:
        """Propose the changes of the node's text as a patch. Raises `VesperError`."""
        replay = self._replay()
        if self.pending is not None:
            raise FixRejected(f"the changed run waits for the answer of `{self.pending.path}`: give it first")
        if replay.fix is None:
            raise FixRejected(
                "the text of the node is not changed, so there is no fix to propose: change a parameter of a step, "
                "such as `timeout 60s` or `retry.attempts 5`"
            )
        report = replay.corpus(_MAX_CORPUS_TRACES, SECONDS)
        state = f"fits {self.file}"
        try:
            if self.file is None:
                raise FixRejected(f"no file of this project declares {self.trace.node_id}: apply the patch by hand")
            check_file(self.file, self.trace)
        except FixRejected as problem:
            state = str(problem)
        settings = [each for each in replay.changes if isinstance(each, SourceChange)]
        options = ["--responses answers.json"] if replay.answers else []
        options += [
            f"--set {shlex.quote(f'{each.step}.' + '.'.join(each.keys) + f'={each.after}')}" for each in settings
        ]
        self.fix = Fix(
            replay.fix_diff(), str(report), tuple(map(printable, report.problems[:10])), state,
            f"vesper replay {self.trace.trace_id} {' '.join(options)} --apply", _answers_text(replay.answers),
        )  # fmt: skip
        self.messages = ("the fix is below, as a patch",)

    def _check_changeable(self) -> None:
        """Raise `ChangeRejected` for a sensitive run: the path of a changed run could reveal what masks hide."""
        if self.trace.is_sensitive:
            raise ChangeRejected(
                "the run is sensitive, and the path of a changed run could reveal its values: "
                f"`vesper replay {self.trace.trace_id}` changes it on the machine of the service"
            )

    def _replay(self) -> Replay:
        self._check_changeable()
        if self.replay is None:
            raise ChangeRejected("the run cannot be changed here, because its replay differs from the record")
        return self.replay


def _is_late(outcome: Outcome | None) -> bool:
    return isinstance(outcome, LimitHit) and outcome.limit == "time"


def _answers_text(answers: Mapping[str, tuple[object, str | None]]) -> str:
    """Return the answers that the caller gave, in the form of `vesper replay --responses`."""
    entries = [
        f"{json.dumps(path)}: "
        + (f'{{"returns": {stored_text(value, MAX_TEXT)}}}' if code is None else f'{{"fails": {json.dumps(code)}}}')  # type: ignore[arg-type]  # a checked answer
        for path, (value, code) in answers.items()
    ]
    return f"{{{', '.join(entries)}}}" if entries else ""


def _pending(prepared: ChangedExecution, request: Request) -> Pending:
    gives = plans_of(prepared.compiled).of(request.path).gives
    return Pending(
        request.path, request.effect, str(gives), f"{plain_step(request.path)}: {prepared.why_unknown(request)}"
    )
