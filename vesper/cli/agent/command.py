"""`vesper agent`: talk to one agent in a terminal."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vesper.cli.load_node import find_lead
from vesper.cli.options import NODE, config_option, nodes_option
from vesper.cli.output.terminal import style
from vesper.cli.settings import printable_lines
from vesper.values.model import printable
from vesper.values.vesper_error import VesperError

if TYPE_CHECKING:
    from vesper.agents.conversation import Conversation
    from vesper.api.outcome import AnyOutcome
    from vesper.effects.hooks.registry import Call
    from vesper.host.host import Host
    from vesper.host.streaming.events import RunEvent
    from vesper.host.tools.guarded import Question

_END_WORDS = ("/exit", "/quit")
_SHOWN_ARGUMENTS = 1000
"""Characters of the arguments of a call that a person is shown."""


@click.group("agent")
def command() -> None:
    """Talk to an agent.

    Exit codes: 0 the conversation ended, 1 the agent or its settings cannot be used, 2 usage.
    """


@command.command("chat")
@click.argument("node", type=NODE)
@click.option("--sessions", "store", metavar="NAME", help="Keep the conversation in [sessions.NAME].")
@click.option("--session", metavar="ID", help="Id of the conversation; by default a new one.")
@click.option("--resume", is_flag=True, help="Continue the conversation that changed last.")
@click.option("--message-input", metavar="INPUT", help="Input that gets the messages, where several could.")
@click.option("--input", "-i", "pairs", multiple=True, metavar="NAME=VALUE", help="Another input, the same each time.")
@nodes_option
@config_option()
def chat_command(
    node: str,
    store: str | None,
    session: str | None,
    resume: bool,
    message_input: str | None,
    pairs: tuple[str, ...],
    root: Path,
    config: Path | None,
) -> None:
    """Talk to the agent NODE; its answers appear as they are written.

    Calls of tools are shown, and a call that a rule of the configuration asks about waits for your yes. Ctrl-C ends the
    answer and not the conversation; Ctrl-D or /exit ends the conversation. An answer that was ended leaves no turn.
    """
    import vesper
    from vesper.agents.conversation import Conversation
    from vesper.host.host import Host

    if (session is not None or resume) and store is None:
        raise click.UsageError("name the sessions: --sessions NAME, of [sessions.NAME] in vesper.toml")
    if session is not None and resume:
        raise click.UsageError("--session names a conversation, and --resume the one that changed last: choose one")
    path = find_lead(node, root, config)
    try:
        with Host.from_file(config) as host:
            loaded = vesper.load(path, host=host)
            sessions = None if store is None else host.sessions(store)
            chosen = session
            if sessions is not None and chosen is None:
                recent = sessions.recent(1) if resume else []
                chosen = recent[0].id if recent else host.new_execution()[:8]
            given = dict(_pair(each) for each in pairs)
            conversation = Conversation(loaded, sessions, chosen or "", given, message_input)
            shown = _AnswerDisplay()
            _let_person_confirm(host, shown)
            if sessions is not None:
                click.echo(f"session {printable(str(chosen))}: {sessions.read(str(chosen)).count} messages")
            _talk(conversation, shown)
    except VesperError as problem:
        raise click.ClickException(printable_lines(str(problem))) from None


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise click.UsageError(f"`--input {printable(text)}`: NAME=VALUE is expected")
    return name, value


def _talk(conversation: Conversation, shown: _AnswerDisplay) -> None:
    while True:
        try:
            text = input("you> " if sys.stdin.isatty() else "")
        except EOFError:
            click.echo()
            return
        except KeyboardInterrupt:
            click.echo("\n(Ctrl-D or /exit ends the conversation)")
            continue
        if text.strip() in _END_WORDS:
            return
        if text.strip():
            _answer(conversation, text, shown)


def _answer(conversation: Conversation, text: str, shown: _AnswerDisplay) -> None:
    """Show one answer; Ctrl-C ends it."""
    stream = conversation.ask(text)
    shown.begin()
    try:
        with stream:
            for event in stream:
                shown.show(event)
            outcome = conversation.keep(stream)
    except KeyboardInterrupt:
        stream.close()
        click.echo("\n(cancelled: the answer leaves no turn)")
        return
    shown.end(outcome)
    if outcome.ok:
        used = conversation.usage(outcome.trace_id)
        tokens = f"{used['input_tokens']} + {used['output_tokens']} tokens"
        click.echo(style(f"({tokens}, ${used['cost_usd']})", "dim"))


class _AnswerDisplay:
    """The display of answers in a terminal.

    Questions of tool rules come from other threads; a lock keeps them apart from events.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.begin()

    def begin(self) -> None:
        self._is_line_open = False
        self._has_text = False

    def show(self, event: RunEvent) -> None:
        with self._lock:
            self._show(event)

    def confirm(self, question: Question) -> bool:
        with self._lock:
            self._close_line()
            click.echo(f"  {printable(question.rule)} asks before `{printable(question.call.tools[0])}`")
            click.echo(f"  {printable(_arguments_text(question.call))}")
            return click.confirm("  allow this call?", default=False)

    def _show(self, event: RunEvent) -> None:
        match event.kind:
            case "text":
                click.echo(printable_text(event.text), nl=False)
                self._is_line_open = self._has_text = True
            case "tool_start":
                self._close_line()
                click.echo(style(f"  → {printable(str(event.call.get('name', '')))} ", "cyan"), nl=False)
                self._is_line_open = True
            case "tool_arguments":
                click.echo(style(printable_text(event.text), "dim"), nl=False)
            case "start" if self._has_text:
                self._close_line()
                click.echo(style("  (asked again: the text above is void)", "dim"))
            case "end":
                self._close_line()
            case _:
                pass

    def end(self, outcome: AnyOutcome) -> None:
        from vesper.agents.conversation import answer_text

        self._close_line()
        if not outcome.ok:
            assert outcome.error is not None
            click.echo(f"error: {printable_lines(outcome.error.message)}", err=True)
        elif not self._has_text:
            click.echo(printable_text(answer_text(outcome)))

    def _close_line(self) -> None:
        if self._is_line_open:
            click.echo()
        self._is_line_open = False


def printable_text(text: str) -> str:
    """Return a fragment without control characters, which could rewrite the terminal; line ends stay."""
    return "\n".join(map(printable, text.split("\n")))


def _arguments_text(call: Call) -> str:
    """Return the arguments of a call on one line, for consent; sensitive ones are left out."""
    if call.is_sensitive:
        return "(its arguments are sensitive)"
    text = json.dumps(call.arguments, ensure_ascii=False, sort_keys=True, default=str)
    return text if len(text) <= _SHOWN_ARGUMENTS else f"{text[:_SHOWN_ARGUMENTS]}… ({len(text):,} characters)"


def _let_person_confirm(host: Host, shown: _AnswerDisplay) -> None:
    """Answer the questions of tool rules at the terminal; without a terminal they are refused."""
    guard: Any = getattr(host, "guard", None)
    if guard is not None and sys.stdin.isatty():
        guard.confirm = shown.confirm
