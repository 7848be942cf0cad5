"""The words that a person types at `(sir-db)`, and what they are answered: text in, lines out, no terminal."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from vesper.debug.breakpoints import HELP, Kind
from vesper.debug.columns import Style, lay_out, plain_style
from vesper.debug.responses import Said, Unanswered
from vesper.debug.session import Moved, Session, Why
from vesper.debug.stops import END
from vesper.debug.view import divergence_lines, outcome_rows, rows
from vesper.engines.engine import EngineUnavailable
from vesper.engines.outcome import Returned
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.values.model import show
from vesper.values.vesper_error import VesperError

PROMPT = "(sir-db) "
TITLE = "Comparative Debugging Session"
_AROUND = 5
"""Lines that `list` shows before and after."""


@dataclass(frozen=True, slots=True)
class Word:
    usage: str
    help: str
    run: Callable[[str], list[str]]
    short: tuple[str, ...] = ()


class Commands:
    """One conversation. `into` puts the session of a called node on top; `out` of its end takes it away."""

    def __init__(
        self,
        session: Session,
        said: Said | None = None,
        width: Callable[[], int] = lambda: 80,
        style: Style = plain_style,
    ) -> None:
        self._sessions = [session]
        self._said = said
        self._width = width
        self._style = style
        self.is_over = False
        self.has_refused = False
        """A command was none, or could not be done."""
        self._last = ""
        self._words = {
            "step": Word("step [N]", "to the next statement, inside blocks too", self._step, ("s",)),
            "next": Word("next [N]", "to the next statement that is not inside this one", self._next, ("n",)),
            "into": Word("into", "into the node that is called here", self._into, ("i",)),
            "out": Word("out", "to after the block, or out of the called node", self._out, ("o",)),
            "continue": Word("continue", "to the next breakpoint, or to the end", self._continue, ("c",)),
            "back": Word("back [N]", "one statement back; performs nothing", self._back, ("b",)),
            "reverse-continue": Word("reverse-continue", "back to the breakpoint before", self._reverse, ("rc",)),
            "break": Word("break [WHERE]", f"stop there; without WHERE list them. {HELP}", self._break, ("br",)),
            "delete": Word("delete N", "take a breakpoint or a watch away", self._delete, ()),
            "watch": Word("watch EXPR", "show it at every stop, and stop where it changes", self._watch, ("w",)),
            "print": Word(
                "print EXPR", "an expression over what is seen here, on each engine", self._print, ("p", "eval")
            ),
            "where": Word("where", "the position, with the calls that led to it", self._where, ("bt",)),
            "list": Word("list", "the text of the node around here", self._list, ("l",)),
            "diff": Word("diff", "what differs between the engines, here and first", self._diff, ("d",)),
            "answer": Word("answer JSON", "what the request that waits is answered with", self._answer, ()),
            "fail": Word("fail CODE", "let the request that waits fail", self._fail, ()),
            "show": Word("show", "the position again", lambda _: self._shown(), ()),
            "help": Word("help", "this list", self._help, ("h", "?")),
            "quit": Word("quit", "end the session", self._quit, ("q", "exit")),
        }
        self._short = {short: name for name, word in self._words.items() for short in word.short}

    @property
    def session(self) -> Session:
        return self._sessions[-1]

    def begin(self, runs: bool) -> list[str]:
        """The title and where it stands; with breakpoints from the start on, where the first one is hit."""
        title = [TITLE if len(self.session.sides) > 1 else "Debugging Session", "=" * 40, ""]
        if not runs:
            return [*title, *self._shown()]
        return [*title, *self._moved(lambda: self.session.resume(from_start=True))]

    def run(self, line: str) -> list[str]:
        """What a line is answered. An empty one repeats a step, as debuggers do."""
        text = line.strip()
        if not text:
            text = self._last
            if not text:
                return []
        name, _, rest = text.partition(" ")
        name = self._short.get(name, name)
        word = self._words.get(name)
        if word is None:
            hint = did_you_mean(name, self._words) or "`help` lists the commands"
            self.has_refused = True
            return [f"`{name}` is no command; {hint}"]
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
        return self._moved(lambda: _times(rest, self.session.step))

    def _next(self, rest: str) -> list[str]:
        return self._moved(lambda: _times(rest, self.session.next))

    def _back(self, rest: str) -> list[str]:
        return self._moved(lambda: _times(rest, self.session.back))

    def _continue(self, _: str) -> list[str]:
        return self._moved(self.session.resume)

    def _entered(self, inside: Sequence[Session]) -> list[str]:
        """A breakpoint in a called node: its session goes on top, as after `into`."""
        self._sessions += inside
        return [f"into {each.compiled.node.node_id}" for each in inside]

    def _reverse(self, _: str) -> list[str]:
        return self._moved(self.session.reverse)

    def _into(self, _: str) -> list[str]:
        inner = self.session.into()
        if inner is None:
            return ["no node is called here; `step` goes on"]
        self._sessions.append(inner)
        return [f"into {inner.compiled.node.node_id}", "", *self._shown()]

    def _out(self, _: str) -> list[str]:
        if len(self._sessions) > 1:
            self._sessions.pop()
            return [f"back in {self.session.compiled.node.node_id}", "", *self._moved(self.session.step)]
        return self._moved(self.session.out)

    def _moved(self, move: Callable[[], Moved]) -> list[str]:
        try:
            moved = move()
        except Unanswered as problem:
            return [*self._shown(), "", *str(problem).splitlines()]
        lines = self._entered(moved.inside)
        for point in moved.breakpoints:
            if point.kind is Kind.DIVERGENCE:
                lines += divergence_lines(self.session)
            else:
                lines.append(f"stopped by {'watch ' if point.kind is Kind.WATCH else ''}`{point.text}`")
        if moved.why is Why.START:
            lines.append("this is the start")
        if moved.why is Why.END and self.session.is_at_end:
            lines.append(self._ended())
        return [*lines, *([""] if lines else []), *self._shown()]

    def _ended(self) -> str:
        points = self.session.breakpoints
        hint = "" if not points else "; no breakpoint was hit on the way"
        if len(self._sessions) > 1:
            return f"{self.session.compiled.node.node_id} has ended; `out` goes back to its caller"
        return f"the execution has ended{hint}" if self.session.stop_of(self.session.leader).path == END else "no more"

    def _shown(self) -> list[str]:
        names = [side.name for side in self.session.sides]
        return lay_out(rows(self.session), names, self._width(), self._style)

    # -- breakpoints ------------------------------------------------------------------------------

    def _break(self, rest: str) -> list[str]:
        if not rest:
            return self._listed()
        self.session.add_breakpoint(rest)
        return [f"breakpoint {len(self.session.breakpoints)}: {rest}"]

    def _watch(self, rest: str) -> list[str]:
        if not rest:
            return self._listed()
        self.session.add_watch(rest)
        return [f"watch {len(self.session.breakpoints)}: {rest}"]

    def _delete(self, rest: str) -> list[str]:
        points = self.session.breakpoints
        if rest not in map(str, range(1, len(points) + 1)):
            return [f"there is no breakpoint `{rest}`", *self._listed()]
        gone = points.pop(int(rest) - 1)
        return [f"deleted {gone.text}"]

    def _listed(self) -> list[str]:
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
            return ["print what? `print amount * 2`"]
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
        first = max(1, line - _AROUND)
        numbers = range(first, min(last, line + _AROUND) + 1)
        width = len(str(numbers[-1]))
        return [
            f"{'->' if number == line else '  '} {number:>{width}} | {source.line_text(number)}".rstrip()
            for number in numbers
        ]

    def _diff(self, _: str) -> list[str]:
        if len(self.session.sides) < 2:
            return ["one engine alone differs from nobody; --comparative runs both"]
        first = divergence_lines(self.session)
        here = [row for row in rows(self.session) if row.differs]
        if not first and not here:
            return ["the engines agree, as far as they were run"]
        names = [side.name for side in self.session.sides]
        return [*first, *([""] if first and here else []), *(lay_out(here, names, self._width()) if here else [])]

    def _answer(self, rest: str) -> list[str]:
        return self._say(lambda said, path: said.say(path, rest))

    def _fail(self, rest: str) -> list[str]:
        return self._say(lambda said, path: said.fail(path, rest))

    def _say(self, say: Callable[[Said, str], None]) -> list[str]:
        waiting = self._sessions[0].leader.waits_for
        if waiting is None or self._said is None:
            return ["no request waits for an answer"]
        say(self._said, waiting.path)
        return self._moved(self._sessions[0].step)

    def _help(self, _: str) -> list[str]:
        width = max(len(word.usage) for word in self._words.values())
        lines = []
        for word in self._words.values():
            told = f"  {word.usage:<{width}}  {word.help}{f' ({word.short[0]})' if word.short else ''}"
            indent = " " * (width + 4)
            lines += textwrap.wrap(told, max(self._width(), width + 24), subsequent_indent=indent)
        return lines

    def _quit(self, _: str) -> list[str]:
        self.is_over = True
        return []


def _times(rest: str, move: Callable[[], Moved]) -> Moved:
    """Once, or as often as the number says; until the end or the start."""
    if rest and not re.fullmatch("[1-9][0-9]{0,17}", rest):
        raise ValueError(f"`{rest[:80]}` is no number of times")
    moved = move()
    for _ in range(int(rest or 1) - 1):
        if moved.why in (Why.END, Why.START):
            break
        moved = move()
    return moved
