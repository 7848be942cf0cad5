"""The prompt of `vesper replay`. It reads lines and writes lines, from and to whoever it is given: a terminal, a file.

Replaying execution: 01a1…
Timestamp: 2025-01-08 14:23:15

Step 1: validate_request ✓
Step 2: state_transition: pending -> processing ✓
Step 3: call_stripe_api ✗ (timeout)

(replay) modify step 3
  Change: timeout 30s -> 60s
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from vesper.engines.engine import EngineUnavailable, Request
from vesper.engines.registry import ENGINES
from vesper.host.plans import plans_of
from vesper.host.stub_answers import plain_step
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.replay.changes import Change, InputChange, NotChanged, input_change, read_answer, read_change, the_step
from vesper.replay.fixing import CorpusReport, NotApplied
from vesper.replay.live import status_text
from vesper.replay.rerun import Changed
from vesper.replay.session import Interrupted, Session
from vesper.replay.text import (
    SENSITIVE,
    difference_lines,
    duration_text,
    header_lines,
    outcome_line,
    step_lines,
    timeline_lines,
)
from vesper.trace.model import Exchange, Trace
from vesper.trace.recorder import exchange_of
from vesper.trace.timeline import TimelineStep
from vesper.values.model import printable, show
from vesper.values.vesper_error import VesperError

Read = Callable[[str], str | None]
"""Asks for a line with this prompt; None where there are no more."""
Write = Callable[[str], None]

PROMPT = "(replay) "
HELP = f"""\
timeline              the steps again
goto N, next, back    look at a step
show [N]              all there is to say about it: request, attempts, answer, values
modify [step] N       change it and run on from it: `timeout 60s`, `response JSON`, `fails CODE`,
                      or any parameter of the step in the node's text: `retry.attempts 5`
modify input NAME     change an input and run all of it again
run [ENGINE] [from N] run again with the changes so far, on {", ".join(ENGINES)}
changes, reset        what was changed; forget it
diff                  where the last run differs from the original
apply                 make the changes of the node's text a fix: YAML diff, corpus, then y or N
save                  keep the last run as a trace
quit"""
_YES = ("y", "yes")


@dataclass(frozen=True, slots=True)
class ShellOptions:
    """The switches of a replay shell."""

    reveals: bool = False
    """True where values of a sensitive trace are shown."""
    is_live: bool = False
    """True where changed requests are performed."""
    asks_first: bool = True
    """True where a fix is applied after a confirmation."""
    scale: float = 1.0
    """How many times faster than wall time a test runs."""


class Shell:
    """The prompt of `vesper replay`."""

    def __init__(
        self,
        session: Session,
        read: Read,
        write: Write,
        node_file: Callable[[], Path],
        write_file: Callable[[Path, str], None],
        options: ShellOptions | None = None,
    ) -> None:
        options = options or ShellOptions()
        self.session = session
        self._read = read
        self._write = write
        self._node_file = node_file
        self._write_file = write_file
        self._hides = session.trace.is_sensitive and not options.reveals
        self._is_live = options.is_live
        self._asks_first = options.asks_first
        self._scale = options.scale
        self.report: CorpusReport | None = None
        """What the last fix that was shown does to all that ran before."""
        self.applied: Path | None = None
        """Where the last fix was written."""

    # -- the prompt -------------------------------------------------------------------------------

    def opening(self) -> None:
        """The trace, replayed as it was."""
        trace = self.session.trace
        for line in (*header_lines(trace), "", *timeline_lines(trace)):
            self._write(line)
        if trace.outcome is None or not self.session.steps:  # steps that are all there tell how it ended
            self._write(outcome_line(trace, self._hides))
        if self.session.replayed.difference is not None:
            self._write(f"\nThis replay on {self.session.engine} differs: {self.session.replayed.difference}")
        if self.session.trace.divergence is not None:
            self._write(f"\nRecorded divergence: {self.session.trace.divergence}")

    def loop(self) -> None:
        """Reads commands until there are no more."""
        while True:
            self._write("")
            try:
                line = self._read(PROMPT)
            except Interrupted:
                self._write("`quit` ends the session")
                continue
            if line is None or line.strip() in ("quit", "q", "exit"):
                return
            if line.strip():
                self.obey(line.strip())

    def obey(self, line: str) -> bool:
        """One command; whether it could be done. Whatever is wrong is said, and nothing is changed."""
        word, _, rest = line.partition(" ")
        command = _COMMANDS.get(word)
        if command is None:
            hint = did_you_mean(word, [*_COMMANDS, "quit"]) or "`help` lists them"
            self._write(f"`{printable(word[:40])}` is no command; {hint}")
            return False
        try:
            command(self, rest.strip())
        except (VesperError, EngineUnavailable) as problem:
            self._write(str(problem))
            return False
        return True

    # -- looking ----------------------------------------------------------------------------------

    def _help(self, _: str) -> None:
        self._write(HELP)

    def _timeline(self, _: str) -> None:
        trace = self.session.trace
        for line in timeline_lines(trace, self.session.position or None):
            self._write(line)
        self._write(outcome_line(trace, self._hides))

    def _goto(self, rest: str) -> None:
        if not rest:
            raise NotChanged("say which step: `goto 3`, or `goto NAME`")
        self.session.go_to(self._the_step(rest.removeprefix("step ")).number if rest != "0" else 0)
        self._look()

    def _back(self, _: str) -> None:
        if not self.session.position:
            self._write("this is the beginning")
            return
        self.session.go_to(self.session.position - 1)
        self._look()

    def _next(self, _: str) -> None:
        if self.session.position == len(self.session.steps):
            self._write(f"this is the end. {outcome_line(self.session.trace, self._hides)}")
            return
        self.session.go_to(self.session.position + 1)
        self._look()

    def _show(self, rest: str) -> None:
        step = self._the_step(rest.removeprefix("step ")) if rest else self.session.step
        self._look(step)

    def _look(self, step: TimelineStep | None = None) -> None:
        found = step or self.session.step
        if found is None:
            self._write("Before the first step")
            for name, value in self.session.trace.inputs.items():
                self._write(f"  input.{name}: {SENSITIVE if self._hides else printable(show(value))}")
            return
        for line in step_lines(self.session.trace, found, self._hides):
            self._write(line)

    def _the_step(self, text: str) -> TimelineStep:
        return the_step(self.session.trace, text.strip())

    # -- changing ---------------------------------------------------------------------------------

    def _modify(self, rest: str) -> None:
        target, _, change = rest.removeprefix("step ").strip().partition(" ")
        if not target:
            raise NotChanged("say which step: `modify 3`, or `modify input NAME`")
        if target == "input":
            name, _, value = change.strip().partition(" ")
            name, equals, after = name.partition("=")
            self._modify_input(name, f"{after} {value}".strip() if equals else value.strip())
            return
        step = self._the_step(target)
        text = change.strip() or self._asked("  Change: ")
        changes = [read_change(self.session.trace, self.session.compiled, step, each) for each in parted_changes(text)]
        self._run_changed(changes, step)

    def _modify_input(self, name: str, value: str) -> None:
        if not name:
            raise NotChanged("say which input: `modify input amount 5.00`")
        text = value or self._asked(f"  {name}: ")
        self._run_changed([input_change(self.session.trace, self.session.compiled, name, text)], None)

    def _run_changed(self, changes: Sequence[Change], step: TimelineStep | None) -> None:
        """Runs it with these changes too; where that fails, nothing is changed."""
        before = list(self.session.changes)
        for each in changes:
            self.session.change(each)
        try:
            self._run_from(step, None)
        except Exception:
            self.session.changes = before
            raise

    def _asked(self, prompt: str) -> str:
        found = self._read(prompt)
        if not found or not found.strip():
            raise NotChanged("nothing was changed")
        return found.strip()

    def _run(self, rest: str) -> None:
        engine: str | None = None
        step: TimelineStep | None = None
        words = rest.split()
        if words and words[0] in ENGINES:
            engine = words.pop(0)
        if words and words[0] == "from":
            step = self._the_step(" ".join(words[1:]).removeprefix("step "))
        elif words:
            raise NotChanged(f"`run {rest}`: write `run`, `run interp`, `run python from 3`")
        self._run_from(step, engine)

    def _run_from(self, step: TimelineStep | None, engine: str | None) -> None:
        if self.rerun(step, engine, asks=True):
            self._offer_fix()

    def rerun(self, step: TimelineStep | None, engine: str | None, *, asks: bool = False) -> bool:
        """Runs it again with the changes so far; whether it was run. Where nobody knows an answer, `asks` at the
        prompt."""
        if any(isinstance(each, InputChange) for each in self.session.changes):
            step = None  # what came before the step may come otherwise
        prepared = self.session.prepare(step)
        where = "the beginning" if step is None else f"step {step.number}"
        if self._is_live and not self._may_perform(prepared, where):
            self._write("nothing was performed")
            return False
        self._write(f"\nRe-executing from {where}...")
        if self._is_live:
            trace = self.session.run_live(prepared, engine)
        else:
            trace = self.session.run(prepared, engine, self._prompt_for(prepared) if asks else None)
        self._tell(trace, prepared)
        if not asks:
            self._write(outcome_line(trace, self._hides))
        return True

    def _tell(self, trace: Trace, prepared: Changed) -> None:
        """What came of the requests that were not simply taken from the trace."""
        answered = [each for each in trace.exchanges if each.origin != "recorded"]
        only = len(answered) == 1 or (prepared.from_step is not None and bool(answered))
        for number, each in enumerate(answered):
            first = only and number == 0
            name = "" if first else f" of {plain_step(each.path)}"
            self._write(f"  Response{name}: {self._response_text(each)}")
        self._write("")

    def _response_text(self, exchange: Exchange) -> str:
        took = exchange.took_us
        told = "" if took is None or exchange.origin != "live" else f" ({duration_text(round(took * self._scale))})"
        status = self.session.statuses.get(exchange.path)
        if exchange.failure is not None:
            return f"{exchange.failure}{told}"
        if status is not None:
            return f"{status_text(status)}{told}"
        return (SENSITIVE if self._hides else printable(show(exchange.value))) + told

    def _may_perform(self, prepared: Changed, where: str) -> bool:
        """Asks before anything is performed."""
        if not self._asks_first:
            return True
        effects = sorted({plan.effect for plan in plans_of(prepared.compiled).requests.values()})
        self._write(f"From {where} on, this is performed for real, under new idempotency keys:")
        self._write(f"  {', '.join(effects)}")
        for each in prepared.trace.exchanges[prepared.first_exchange :]:
            if each.may_have_happened:
                self._write(f"  `{plain_step(each.path)}` may have happened the first time: it would be done again")
        return (self._read("Go on? [y/N] ") or "").strip().lower() in _YES

    def _prompt_for(self, prepared: Changed) -> Callable[[Request], Exchange | None]:
        def ask(request: Request) -> Exchange | None:
            gives = plans_of(prepared.compiled).of(request.path).gives
            self._write(f"  `{plain_step(request.path)}` asks for {request.effect}, and gives {gives}")
            while True:
                text = self._read("  Response (JSON, or `fails CODE`): ")
                if text is None or not text.strip():
                    return None
                try:
                    value, failure = read_answer(prepared.compiled, request.path, text.strip())
                except NotChanged as problem:
                    self._write(f"  {problem}; an empty line gives up")
                    continue
                return exchange_of(request, value, failure, "prompt")

        return ask

    # -- what came of it --------------------------------------------------------------------------

    def _offer_fix(self) -> None:
        assert self.session.forked is not None
        if not self.session.has_succeeded:
            self._write(outcome_line(self.session.forked, self._hides))
            return
        if self.session.fix is None:
            self._write("Success!")
            return
        self.apply("Success! ")

    def apply(self, opening: str = "", *, is_agreed: bool = False) -> bool:
        """Shows the fix and what it does to all that ran before, asks, and writes on yes; whether it was written."""
        if self.session.fix is None:
            raise NotApplied("nothing in the node's text was changed: there is no fix to apply")
        self._write(self.session.fix_diff().rstrip("\n"))
        report = self.report = self.session.corpus()
        self._write(f"\nCorpus: {report}")
        for problem in report.problems[:10]:
            self._write(f"  {printable(problem)}")
        self._write("")
        path = self._node_file()
        if not is_agreed:
            answer = self._read(f"{opening}Apply fix? [y/N] ")
            if (answer or "").strip().lower() not in _YES:
                self._write("not applied")
                return False
        self.session.check_file(path)
        try:
            self._write_file(path, self.session.fixed_text)
        except OSError as error:
            raise NotApplied(f"{path} cannot be written: {error.strerror or error}") from None
        self.applied = path
        self._write(f"applied to {path}; the trace is as it was")
        return True

    def _apply(self, _: str) -> None:
        self.apply()

    def _diff(self, _: str) -> None:
        found = self.session.difference()
        for line in difference_lines(found, self._hides) or ["nothing differs from the original"]:
            self._write(line)

    def save(self) -> None:
        """Keeps the last run as a trace. Raises where it cannot be kept."""
        self._write(f"kept as trace {self.session.save()}")

    def _save(self, _: str) -> None:
        self.save()

    def _changes(self, _: str) -> None:
        for each in self.session.changes:
            self._write(SENSITIVE if self._hides else printable(str(each)))
        if not self.session.changes:
            self._write("nothing is changed")

    def _reset(self, _: str) -> None:
        self.session.changes = []
        self._write("nothing is changed")


_COMMANDS: dict[str, Callable[[Shell, str], None]] = {
    "help": Shell._help,
    "?": Shell._help,
    "timeline": Shell._timeline,
    "list": Shell._timeline,
    "goto": Shell._goto,
    "back": Shell._back,
    "next": Shell._next,
    "show": Shell._show,
    "modify": Shell._modify,
    "run": Shell._run,
    "changes": Shell._changes,
    "reset": Shell._reset,
    "diff": Shell._diff,
    "apply": Shell._apply,
    "save": Shell._save,
}


def parted_changes(text: str) -> Iterator[str]:
    """The changes of a line, which `;` parts; one in quotes or in the brackets of a JSON belongs to its value."""
    begin, depth, quote, is_escaped = 0, 0, "", False
    for place, sign in enumerate(text):
        if is_escaped:
            is_escaped = False
        elif quote:
            is_escaped = sign == "\\"
            quote = "" if sign == quote else quote
        elif sign == '"':
            quote = sign
        elif sign in "{[":
            depth += 1
        elif sign in "}]":
            depth -= 1
        elif sign == ";" and depth <= 0:
            yield text[begin:place]
            begin = place + 1
    yield text[begin:]
