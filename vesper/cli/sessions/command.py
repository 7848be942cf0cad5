"""`vesper sessions`: stored conversations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vesper.cli.journal.text import document, table
from vesper.cli.options import config_option, limit_option, style_option, yes_option
from vesper.cli.settings import printable_lines, read_settings
from vesper.journal.moments import moment_json, number, time_text
from vesper.values.model import printable
from vesper.values.vesper_error import VesperError

if TYPE_CHECKING:
    from vesper.sessions.store import SessionStore, SessionSummary

_name_argument = click.argument("name")
_session_argument = click.argument("session")


@click.group("sessions")
def command() -> None:
    """Show, fork and delete conversations. NAME is that of [sessions.NAME].

    `vesper agent chat NODE --sessions NAME --session ID` continues one.

    Exit codes: 0 success, 1 unknown or unreadable, 2 usage.
    """


@contextmanager
def _open(config: Path | None, name: str) -> Iterator[SessionStore]:
    from vesper.sessions.databases import open_database
    from vesper.sessions.store import SessionStore

    settings = read_settings(config)
    found = settings.parts.sessions.get(name)
    if found is None:
        known = ", ".join(sorted(settings.parts.sessions)) or "none"
        raise click.ClickException(f"there is no [sessions.{printable(name)}] in the settings; there are: {known}")
    try:
        database = open_database(settings.sessions_dsn(found.dsn))
        try:
            yield SessionStore(database, name, found.limits)
        finally:
            database.close()
    except VesperError as problem:
        raise click.ClickException(printable_lines(str(problem))) from None


@command.command("list")
@_name_argument
@config_option()
@limit_option
@style_option
def list_command(name: str, config: Path | None, limit: int, style: str) -> None:
    """List conversations, those that changed last first."""
    with _open(config, name) as sessions:
        found = sessions.recent(limit)
    if style == "json":
        click.echo(document([_members(each) for each in found]))
    elif not found:
        click.echo(f"no sessions of {printable(name)}")
    else:
        rows = [
            [each.id, str(each.count), time_text(each.updated_us), f"${each.cost_usd}", each.forked_from or ""]
            for each in found
        ]
        click.echo("\n".join(table([["session", "messages", "changed", "cost", "forked from"], *rows])))


@command.command("show")
@_name_argument
@_session_argument
@config_option()
@style_option
def show_command(name: str, session: str, config: Path | None, style: str) -> None:
    """Show the messages of a conversation, and those that the model does not read any more."""
    with _open(config, name) as sessions:
        summary, messages = sessions.show(session), sessions.messages(session)
    if style == "json":
        stored = [{"execution": each.execution, **each.message} for each in messages]
        click.echo(document({**_members(summary), "messages": stored}))
        return
    if summary.summary is not None:
        click.echo(f"summary of the first {number(summary.first, 'message')}: {printable_lines(summary.summary)}")
    for each in messages:
        mark = " " if each.number >= summary.first else "-"
        click.echo(f"{mark} {each.message['role']:<9} {printable_lines(str(each.message.get('content', '')))}")
    tokens = f"{summary.input_tokens} + {summary.output_tokens} tokens"
    click.echo(f"{number(summary.count, 'message')}, {tokens}, ${summary.cost_usd}")


@command.command("fork")
@_name_argument
@_session_argument
@click.argument("copy")
@click.option("--at", type=click.IntRange(min=0), help="Number of messages that the fork has; by default all.")
@config_option()
def fork_command(name: str, session: str, copy: str, at: int | None, config: Path | None) -> None:
    """Begin the conversation COPY with the messages of another."""
    with _open(config, name) as sessions:
        made = sessions.fork(session, copy, at)
    click.echo(f"forked {printable(session)} to {printable(copy)}: {number(made.count, 'message')}")


@command.command("delete")
@_name_argument
@_session_argument
@config_option()
@yes_option
def delete_command(name: str, session: str, config: Path | None, yes: bool) -> None:
    """Delete a conversation with its messages and values."""
    if not yes and not click.confirm(f"delete the session {printable(session)}?", default=False):
        click.echo("nothing was deleted")
        return
    with _open(config, name) as sessions:
        is_deleted = sessions.delete(session)
    if not is_deleted:
        raise click.ClickException(f"no session {printable(session)} of {printable(name)}")
    click.echo(f"deleted {printable(session)}")


def _members(found: SessionSummary) -> dict[str, object]:
    """Return a session as JSON has it."""
    members = asdict(found)
    times = {"created": moment_json(members.pop("created_us")), "updated": moment_json(members.pop("updated_us"))}
    return {**members, **times, "cost_usd": str(found.cost_usd)}
