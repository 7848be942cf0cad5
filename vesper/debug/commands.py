"""Commands of the `(sir-db)` prompt: one line of text in, lines of text out, no terminal."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from vesper.debug.breakpoints import HELP, Breakpoint, Kind
from vesper.debug.columns import Style, lay_out, plain_style
from vesper.debug.masking import SessionMasks
from vesper.debug.responses import ManualAnswers, Unanswered
from vesper.debug.session import Move, Session, StopReason
from vesper.debug.stops import END
from vesper.debug.view import Row, divergence_lines, outcome_rows, rows
from vesper.engines.engine import EngineUnavailable
from vesper.engines.outcome import Returned
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.values.model import show
from vesper.values.vesper_error import VesperError

PROMPT = "(sir-db) "
TITLE = "Comparative Debugging Session"
_CONTEXT_LINES = 5
"""Lines that `list` prints before and after the current line."""


@dataclass(frozen=True, slots=True)
class Command:
    usage: str
    help: str
    run: Callable[[str], list[str]]
    short: tuple[str, ...] = ()


class Commands:
    """Interpreter of one debugging session's prompt.

    `into` pushes the session of a called node; `out` at its end pops it.
    """

    def __init__(
        self,
        session: Session,
        manual: ManualAnswers | None = None,
        width: Callable[[], int] = lambda: 80,
        style: Style = plain_style,
        masks: SessionMasks | None = None,
        renders: bool = True,
    ) -> None:
        """Without `renders`, commands return their messages only; `masks` hide the values of a sensitive run."""
        self._sessions = [session]
        self._masks = masks
        self._renders = renders
        self._manual = manual
        self._width = width
        self._style = style
        self.is_over = False
        self.has_refused = False
        """True once a command was unknown or failed."""
        self._last = ""
        self._has_hit = False
        """True once a breakpoint was hit."""
        self._commands = {
            "step": Command("step [N]", "go to the next statement, including those inside blocks", self._step, ("s",)),
            "next": Command("next [N]", "go to the next statement outside the current one", self._next, ("n",)),
            "into": Command("into", "enter the node called by the current statement", self._into, ("i",)),
            "out": Command("out", "go past the enclosing block, or leave the called node", self._out, ("o",)),
            "continue": Command("continue", "run to the next breakpoint or to the end", self._continue, ("c",)),
            "back": Command("back [N]", "go back one statement; performs no effect", self._back, ("b",)),
            "reverse-continue": Command(
                "reverse-continue", "go back to the previous breakpoint", self._reverse, ("rc",)
            ),
            "divergence": Command("divergence", "go to the first divergence of the engines", self._to_divergence),
            "end": Command("end", "run to the end, past all breakpoints", self._to_end),
            "break": Command(
                "break [WHERE]", f"set a breakpoint; without WHERE, list them. {HELP}", self._break, ("br",)
            ),
            "delete": Command("delete N", "remove a breakpoint or a watch", self._delete, ()),
            "watch": Command(
                "watch EXPR", "show a value at every stop, and stop where it changes", self._watch, ("w",)
            ),
            "print": Command(
                "print EXPR", "evaluate an expression on each engine at this position", self._print, ("p", "eval")
            ),
            "where": Command("where", "show the position and the calls that led to it", self._where, ("bt",)),
            "list": Command("list", "show the node's source around the current line", self._list, ("l",)),
            "diff": Command("diff", "show the first divergence and the differences here", self._diff, ("d",)),
            "answer": Command("answer JSON", "answer the pending request with this value", self._answer, ()),
            "fail": Command("fail CODE", "fail the pending request with this code", self._fail, ()),
            "show": Command("show", "show the position again", lambda _: self._render(), ()),
            "help": Command("help", "show this list", self._help, ("h", "?")),
            "quit": Command("quit", "end the session", self._quit, ("q", "exit")),
        }
        self._short = {short: name for name, word in self._commands.items() for short in word.short}

    @property
    def sessions(self) -> Sequence[Session]:
        """The session of the run, then those of the calls that were entered."""
        return self._sessions

    @property
    def session(self) -> Session:
        return self._sessions[-1]

    def begin(self, runs: bool) -> list[str]:
        """Return the title and the position; with `runs`, run to the first breakpoint first."""
        title = [TITLE if len(self.session.sides) > 1 else "Debugging Session", "=" * 40, ""]
        if not runs:
            return [*title, *self._render()]
        return [*title, *self._move_and_render(lambda: self.session.resume(from_start=True))]

    def run(self, line: str) -> list[str]:
        """Run one line and return its output. An empty line repeats the last step."""
        text = line.strip()
        if not text:
            text = self._last
            if not text:
                return []
        name, _, rest = text.partition(" ")
        name = self._short.get(name, name)
        word = self._commands.get(name)
        if word is None:
            hint = did_you_mean(name, self._commands) or "`help` lists the commands"
            self.has_refused = True
            return [f"`{name}` is not a command; {hint}"]
        self._last = ""
        try:
            told = word.run(rest.strip())
            self._last = text if name in ("step", "next", "back", "list") else ""
            return told
        except (Unanswered, VesperError, EngineUnavailable, ValueError) as problem:
            self.has_refused = True
            return str(problem).splitlines()

    # -- moving -----------------------------------------------------------------------------------

    def _step(self, rest: str) -> list[str]:
        return self._move_and_render(lambda: _repeat(rest, self.session.step))

    def _next(self, rest: str) -> list[str]:
        return self._move_and_render(lambda: _repeat(rest, self.session.next))

    def _back(self, rest: str) -> list[str]:
        return self._move_and_render(lambda: _repeat(rest, self.session.back))

    def _continue(self, _: str) -> list[str]:
        return self._move_and_render(self.session.resume)

    def _enter(self, inside: Sequence[Session]) -> list[str]:
        """Push the sessions of called nodes in which a breakpoint was met."""
        self._sessions += inside
        return [f"into {each.compiled.node.node_id}" for each in inside]

    def _reverse(self, _: str) -> list[str]:
        return self._move_and_render(self.session.reverse)

    def _to_divergence(self, _: str) -> list[str]:
        if len(self.session.sides) < 2:
            return ["`divergence` needs two engines; start with --comparative to run both"]
        lines = self._move_and_render(self.session.to_divergence, is_bounded=False)
        return lines if self.session.divergence() is not None else ["the engines do not diverge", *lines]

    def _to_end(self, _: str) -> list[str]:
        return self._move_and_render(self.session.to_end, is_bounded=False)

    def _into(self, _: str) -> list[str]:
        inner = self.session.into()
        if inner is None:
            return ["no node is called here; `step` goes to the next statement"]
        self._sessions.append(inner)
        return [f"into {inner.compiled.node.node_id}", "", *self._render()]

    def _out(self, _: str) -> list[str]:
        if len(self._sessions) > 1:
            self._sessions.pop()
            return [f"back in {self.session.compiled.node.node_id}", "", *self._move_and_render(self.session.step)]
        return self._move_and_render(self.session.out)

    def _move_and_render(self, move: Callable[[], Move], is_bounded: bool = True) -> list[str]:
        """Move and show the position; `is_bounded` moves stop at breakpoints."""
        try:
            moved = move()
        except Unanswered as problem:
            return [*self._render(), "", *str(problem).splitlines()]
        lines = self._enter(moved.inside)
        self._has_hit |= bool(moved.breakpoints)
        for point in moved.breakpoints:
            if point.kind is Kind.DIVERGENCE:
                lines += self._divergence_lines()
            else:
                lines.append(f"stopped by {'watch ' if point.kind is Kind.WATCH else ''}`{point.text}`")
        if moved.why is StopReason.START:
            lines.append("at the start")
        if moved.why is StopReason.END and self.session.is_at_end:
            lines.append(self._describe_end(is_bounded))
        return [*lines, *([""] if lines else []), *self._render()]

    def _describe_end(self, is_bounded: bool) -> str:
        points = self.session.breakpoints
        hint = f"; no {'further ' if self._has_hit else ''}breakpoint was hit" if points and is_bounded else ""
        if len(self._sessions) > 1:
            return f"{self.session.compiled.node.node_id} has ended; `out` returns to its caller"
        return f"the execution has ended{hint}" if self.session.stop_of(self.session.leader).path == END else "no more"

    def _render(self) -> list[str]:
        if not self._renders:
            return []
        names = [side.name for side in self.session.sides]
        return lay_out(self.rows(), names, self._width(), self._style)

    def rows(self) -> list[Row]:
        """Return the rows of the position as they may be shown."""
        return rows(self.session) if self._masks is None else rows(self.session, self._masks.mask_stop)

    def _divergence_lines(self) -> list[str]:
        return (
            divergence_lines(self.session) if self._masks is None else divergence_lines(self.session, self._masks.value)
        )

    def _add(self, add: Callable[[str], Breakpoint], text: str) -> Breakpoint:
        """Add a breakpoint or a watch that may be evaluated."""
        point = add(text)
        if self._masks is not None:
            try:
                self._masks.check_breakpoint(self.session, point)
            except VesperError:
                self.session.breakpoints.remove(point)
                raise
        return point

    # -- breakpoints ------------------------------------------------------------------------------

    def _break(self, rest: str) -> list[str]:
        if not rest:
            return self._list_breakpoints()
        self._add(self.session.add_breakpoint, rest)
        return [f"breakpoint {len(self.session.breakpoints)}: {rest}"]

    def _watch(self, rest: str) -> list[str]:
        if not rest:
            return self._list_breakpoints()
        self._add(self.session.add_watch, rest)
        return [f"watch {len(self.session.breakpoints)}: {rest}"]

    def _delete(self, rest: str) -> list[str]:
        points = self.session.breakpoints
        if rest not in map(str, range(1, len(points) + 1)):
            return [f"no breakpoint `{rest}`", *self._list_breakpoints()]
        gone = points.pop(int(rest) - 1)
        return [f"deleted {gone.text}"]

    def _list_breakpoints(self) -> list[str]:
        points = self.session.breakpoints
        if not points:
            return ["no breakpoints"]
        return [
            f"{number}  {'watch ' if point.kind is Kind.WATCH else ''}{point.text}"
            for number, point in enumerate(points, 1)
        ]

    # -- asking -----------------------------------------------------------------------------------

    def _print(self, rest: str) -> list[str]:
        if not rest:
            return ["`print` needs an expression, such as `print amount * 2`"]
        if self._masks is not None:
            self._masks.check(self.session, self.session.parse(rest))
        outcomes = self.session.evaluate(rest)
        texts = [
            show(outcome.value["value"]) if isinstance(outcome, Returned) else outcome_rows(outcome)[""]
            for outcome in outcomes.values()
        ]
        if len(set(texts)) == 1:
            return [texts[0]]
        return [f"≠ {name}: {text}" for name, text in zip(outcomes, texts, strict=True)]

    def _where(self, _: str) -> list[str]:
        lines = []
        for level, session in enumerate(reversed(self._sessions)):
            for side in session.sides:
                stop = session.stop_of(side)
                after = ", executed" if session.position.is_after else ""
                place = f"{session.compiled.source.path}:{stop.line}"
                lines.append(
                    f"#{level} {side.name:<7} {session.prefix}{stop.path} ({stop.operation}{after}) at {place}"
                )
        return lines

    def _list(self, _: str) -> list[str]:
        source = self.session.compiled.source
        line = self.session.stop_of(self.session.leader).line
        last = source.text.rstrip("\n").count("\n") + 1
        first = max(1, line - _CONTEXT_LINES)
        numbers = range(first, min(last, line + _CONTEXT_LINES) + 1)
        width = len(str(numbers[-1]))
        return [
            f"{'->' if number == line else '  '} {number:>{width}} | {source.line_text(number)}".rstrip()
            for number in numbers
        ]

    def _diff(self, _: str) -> list[str]:
        if len(self.session.sides) < 2:
            return ["`diff` needs two engines; start with --comparative to run both"]
        first = self._divergence_lines()
        here = [row for row in self.rows() if row.differs]
        if not first and not here:
            return ["the engines agree so far"]
        names = [side.name for side in self.session.sides]
        return [*first, *([""] if first and here else []), *(lay_out(here, names, self._width()) if here else [])]

    def _answer(self, rest: str) -> list[str]:
        return self._supply(lambda manual, path: manual.set_answer(path, rest))

    def _fail(self, rest: str) -> list[str]:
        return self._supply(lambda manual, path: manual.fail(path, rest))

    def _supply(self, say: Callable[[ManualAnswers, str], None]) -> list[str]:
        waiting = self._sessions[0].leader.waits_for
        if waiting is None or self._manual is None:
            return ["no request is pending"]
        say(self._manual, waiting.path)
        return self._move_and_render(self._sessions[0].step)

    def _help(self, _: str) -> list[str]:
        width = max(len(word.usage) for word in self._commands.values())
        lines = []
        for word in self._commands.values():
            told = f"  {word.usage:<{width}}  {word.help}{f' ({word.short[0]})' if word.short else ''}"
            indent = " " * (width + 4)
            lines += textwrap.wrap(told, max(self._width(), width + 24), subsequent_indent=indent)
        return lines

    def _quit(self, _: str) -> list[str]:
        self.is_over = True
        return []


def _repeat(rest: str, move: Callable[[], Move]) -> Move:
    """Repeat a move as often as `rest` says, once by default, or until the end or start."""
    if rest and not re.fullmatch("[1-9][0-9]{0,17}", rest):
        raise ValueError(f"`{rest[:80]}` is not a count; write a whole number from 1")
    moved = move()
    for _ in range(int(rest or 1) - 1):
        if moved.why in (StopReason.END, StopReason.START):
            break
        moved = move()
    return moved
