"""The prompt of `vesper replay`, which reads and writes lines through given functions.

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
from vesper.host.masking import SENSITIVE
from vesper.host.plans import plans_of
from vesper.host.stub_answers import plain_step
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.replay.changes import Change, ChangeRejected, InputChange, find_step, input_change, read_answer, read_change
from vesper.replay.fixing import CorpusReport, FixRejected
from vesper.replay.live import status_text
from vesper.replay.rerun import ChangedExecution
from vesper.replay.session import ReplayInterrupted, Session
from vesper.replay.text import (
    difference_lines,
    duration_text,
    header_lines,
    outcome_line,
    step_lines,
    timeline_lines,
)
from vesper.trace.masking import masked_trace
from vesper.trace.model import Exchange, Trace
from vesper.trace.recorder import exchange_of
from vesper.trace.timeline import TimelineStep, timeline
from vesper.values.model import printable, show
from vesper.values.vesper_error import VesperError

Read = Callable[[str], str | None]
"""Reads a line after a prompt; None at the end of input."""
Write = Callable[[str], None]

PROMPT = "(replay) "
HELP = f"""\
timeline              show the steps
goto N, next, back    move to a step
show [N]              show its request, attempts, answer and values
modify [step] N       change a step and run again from it: `timeout 60s`, `response JSON`, `fails CODE`,
                      or a parameter of the step in the node's text: `retry.attempts 5`
modify input NAME     change an input and run again from the start
run [ENGINE] [from N] run again with all changes, on {", ".join(ENGINES)}
changes, reset        show all changes; discard them
diff                  show how the last run differs from the original
apply                 turn changes of the node's text into a fix: YAML diff, corpus, then y or N
save                  store the last run as a trace
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
        self._reveals = options.reveals
        self._is_live = options.is_live
        self._asks_first = options.asks_first
        self._scale = options.scale
        self.report: CorpusReport | None = None
        """Effect of the last proposed fix on earlier runs."""
        self.applied: Path | None = None
        """File to which the last fix was written."""

    # -- the prompt -------------------------------------------------------------------------------

    def print_opening(self) -> None:
        """Print the header and the timeline of the replayed trace."""
        trace = self.session.trace
        for line in (*header_lines(trace), "", *timeline_lines(trace)):
            self._write(line)
        if trace.outcome is None or not self.session.steps:  # a complete timeline shows the outcome
            self._write(outcome_line(self._mask_trace(trace)))
        if self.session.replayed.difference is not None:
            self._write(f"\nThe replay on {self.session.engine} differs: {self.session.replayed.difference}")
        if self.session.trace.divergence is not None:
            self._write(f"\nRecorded divergence: {self.session.trace.divergence}")

    def loop(self) -> None:
        """Run commands until the end of input."""
        while True:
            self._write("")
            try:
                line = self._read(PROMPT)
            except ReplayInterrupted:
                self._write("`quit` ends the session")
                continue
            if line is None or line.strip() in ("quit", "q", "exit"):
                return
            if line.strip():
                self.run_command(line.strip())

    def run_command(self, line: str) -> bool:
        """Run one command; return whether it succeeded. A failed command prints why and changes nothing."""
        word, _, rest = line.partition(" ")
        command = _COMMANDS.get(word)
        if command is None:
            hint = did_you_mean(word, [*_COMMANDS, "quit"]) or "`help` lists the commands"
            self._write(f"`{printable(word[:40])}` is not a command; {hint}")
            return False
        try:
            command(self, rest.strip())
        except (VesperError, EngineUnavailable) as problem:
            self._write(str(problem))
            return False
        return True

    # -- inspection -----------------------------------------------------------------------------------

    def _help(self, _: str) -> None:
        self._write(HELP)

    def _timeline(self, _: str) -> None:
        trace = self.session.trace
        for line in timeline_lines(trace, self.session.position or None):
            self._write(line)
        self._write(outcome_line(self._mask_trace(trace)))

    def _mask_trace(self, trace: Trace) -> Trace:
        """Return the trace as it may be shown."""
        return trace if self._reveals else masked_trace(trace)

    def _goto(self, rest: str) -> None:
        if not rest:
            raise ChangeRejected("`goto` needs a step: `goto 3` or `goto NAME`")
        self.session.go_to(self._find_step(rest.removeprefix("step ")).number if rest != "0" else 0)
        self._print_step()

    def _back(self, _: str) -> None:
        if not self.session.position:
            self._write("at the start")
            return
        self.session.go_to(self.session.position - 1)
        self._print_step()

    def _next(self, _: str) -> None:
        if self.session.position == len(self.session.steps):
            self._write(f"at the end. {outcome_line(self._mask_trace(self.session.trace))}")
            return
        self.session.go_to(self.session.position + 1)
        self._print_step()

    def _show(self, rest: str) -> None:
        step = self._find_step(rest.removeprefix("step ")) if rest else self.session.step
        self._print_step(step)

    def _print_step(self, step: TimelineStep | None = None) -> None:
        found = step or self.session.step
        if found is None:
            self._write("Before the first step")
            for name, value in self._mask_trace(self.session.trace).inputs.items():
                self._write(f"  input.{name}: {printable(show(value))}")
            return
        trace = self._mask_trace(self.session.trace)
        for line in step_lines(trace, timeline(trace)[found.number - 1]):
            self._write(line)

    def _find_step(self, text: str) -> TimelineStep:
        return find_step(self.session.trace, text.strip())

    # -- changes --------------------------------------------------------------------------------------

    def _modify(self, rest: str) -> None:
        target, _, change = rest.removeprefix("step ").strip().partition(" ")
        if not target:
            raise ChangeRejected("`modify` needs a step or an input: `modify 3` or `modify input NAME`")
        if target == "input":
            name, _, value = change.strip().partition(" ")
            name, equals, after = name.partition("=")
            self._modify_input(name, f"{after} {value}".strip() if equals else value.strip())
            return
        step = self._find_step(target)
        text = change.strip() or self._read_required("  Change: ")
        changes = [read_change(self.session.trace, self.session.compiled, step, each) for each in split_changes(text)]
        self._run_changed(changes, step)

    def _modify_input(self, name: str, value: str) -> None:
        if not name:
            raise ChangeRejected("`modify input` needs a name: `modify input amount 5.00`")
        text = value or self._read_required(f"  {name}: ")
        self._run_changed([input_change(self.session.trace, self.session.compiled, name, text)], None)

    def _run_changed(self, changes: Sequence[Change], step: TimelineStep | None) -> None:
        """Run again with these changes added; on failure, no change is kept."""
        before = list(self.session.changes)
        for each in changes:
            self.session.change(each)
        try:
            self._run_from(step, None)
        except Exception:
            self.session.changes = before
            raise

    def _read_required(self, prompt: str) -> str:
        found = self._read(prompt)
        if not found or not found.strip():
            raise ChangeRejected("nothing was changed")
        return found.strip()

    def _run(self, rest: str) -> None:
        engine: str | None = None
        step: TimelineStep | None = None
        words = rest.split()
        if words and words[0] in ENGINES:
            engine = words.pop(0)
        if words and words[0] == "from":
            step = self._find_step(" ".join(words[1:]).removeprefix("step "))
        elif words:
            raise ChangeRejected(f"`run {rest}`: write `run`, `run interp`, `run python from 3`")
        self._run_from(step, engine)

    def _run_from(self, step: TimelineStep | None, engine: str | None) -> None:
        if self.rerun(step, engine, asks=True):
            self._offer_fix()

    def rerun(self, step: TimelineStep | None, engine: str | None, *, asks: bool = False) -> bool:
        """Run again with all changes; return whether it ran. With `asks`, missing answers are prompted for."""
        if any(isinstance(each, InputChange) for each in self.session.changes):
            step = None  # steps before it may change as well
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
        self._print_responses(trace, prepared)
        if not asks:
            self._write(outcome_line(self._mask_trace(trace)))
        return True

    def _print_responses(self, trace: Trace, prepared: ChangedExecution) -> None:
        """Print the responses of requests that were not copied from the trace."""
        answered = [each for each in self._mask_trace(trace).exchanges if each.origin != "recorded"]
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
        return printable(show(exchange.value)) + told

    def _may_perform(self, prepared: ChangedExecution, where: str) -> bool:
        """Ask for consent before anything is performed."""
        if not self._asks_first:
            return True
        effects = sorted({plan.effect for plan in plans_of(prepared.compiled).requests.values()})
        self._write(f"From {where} on, this is performed for real, under new idempotency keys:")
        self._write(f"  {', '.join(effects)}")
        for each in prepared.trace.exchanges[prepared.first_exchange :]:
            if each.may_have_happened:
                self._write(f"  `{plain_step(each.path)}` may have happened the first time: it would be done again")
        return (self._read("Go on? [y/N] ") or "").strip().lower() in _YES

    def _prompt_for(self, prepared: ChangedExecution) -> Callable[[Request], Exchange | None]:
        def ask(request: Request) -> Exchange | None:
            gives = plans_of(prepared.compiled).of(request.path).gives
            self._write(f"  `{plain_step(request.path)}` requests {request.effect}, which returns {gives}")
            while True:
                text = self._read("  Response (JSON, or `fails CODE`): ")
                if text is None or not text.strip():
                    return None
                try:
                    value, failure = read_answer(prepared.compiled, request.path, text.strip())
                except ChangeRejected as problem:
                    self._write(f"  {problem}; an empty line cancels")
                    continue
                return exchange_of(request, value, failure, "prompt")

        return ask

    # -- results --------------------------------------------------------------------------------------

    def _offer_fix(self) -> None:
        assert self.session.forked is not None
        if not self.session.has_succeeded:
            self._write(outcome_line(self._mask_trace(self.session.forked)))
            return
        if self.session.fix is None:
            self._write("Success!")
            return
        self.apply("Success! ")

    def apply(self, opening: str = "", *, is_agreed: bool = False) -> bool:
        """Print the fix and its effect on earlier runs, ask, and write it on yes; return whether it did."""
        if self.session.fix is None:
            raise FixRejected("the node's text was not changed: there is no fix to apply")
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
            raise FixRejected(f"{path} cannot be written: {error.strerror or error}") from None
        self.applied = path
        self._write(f"applied to {path}; the trace is as it was")
        return True

    def _apply(self, _: str) -> None:
        self.apply()

    def _diff(self, _: str) -> None:
        found = self.session.difference(self._reveals)
        for line in difference_lines(found) or ["nothing differs from the original"]:
            self._write(line)

    def save(self) -> None:
        """Store the last run as a trace. Raises if that fails."""
        self._write(f"stored as trace {self.session.save()}")

    def _save(self, _: str) -> None:
        self.save()

    def _changes(self, _: str) -> None:
        for each in self.session.changes:
            is_shown = self._reveals or not self.session.trace.is_sensitive
            self._write(printable(str(each)) if is_shown else SENSITIVE)
        if not self.session.changes:
            self._write("no changes")

    def _reset(self, _: str) -> None:
        self.session.changes = []
        self._write("no changes")


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


def split_changes(text: str) -> Iterator[str]:
    """Yield the changes of a line, split at `;` outside quotes and JSON brackets."""
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
