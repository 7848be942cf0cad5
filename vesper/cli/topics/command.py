"""`vesper topics`: consumer groups, their lag, pauses and dead letters."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import click

from vesper.api.errors import NodeError
from vesper.api.load import compiled_node
from vesper.cli.exits import WRONG_INPUT
from vesper.cli.journal.open_journal import current_user, report_journal_errors
from vesper.cli.journal.text import document, table
from vesper.cli.options import (
    apply_options,
    by_option,
    config_option,
    limit_option,
    nodes_option,
    reveal_option,
    style_option,
    why_option,
    yes_option,
)
from vesper.cli.output.value_lines import value_lines
from vesper.cli.settings import read_settings
from vesper.effects.performer import EffectFailed
from vesper.host.finishing import quiet_host
from vesper.host.host import Host
from vesper.journal.moments import moment_json, number, time_text
from vesper.language.work_bindings import EventsField, events_of
from vesper.repository.locate import NodeNotFound, is_library_file, node_files
from vesper.topics.message import TopicUnavailable
from vesper.topics.overview import MAX_COUNTED_LETTERS, GroupLine, overview
from vesper.topics.records import Letter, NotRequeued, TopicRecords
from vesper.values.model import printable

_MARK = b"event_handler"
group_option = click.option("--group", metavar="NAME", help="Only this consumer group; by default all of the topic.")
change_options = apply_options(group_option, config_option(), by_option, why_option(is_required=False))
letter_options = apply_options(
    click.argument("topic"),
    click.argument("ids", nargs=-1, metavar="[ID]…"),
    click.option("--all", "is_all", is_flag=True, help="All dead letters of the topic."),
    change_options,
)


@click.group("topics")
def command() -> None:
    """Show consumer groups of topics; pause them, and requeue or drop dead letters.

    Exit codes: 0 success, 1 a topic cannot be reached or nothing was changed, 2 usage, 3 a bug in Vesper.
    """


@command.command("list")
@nodes_option
@config_option()
@style_option
def list_command(root: Path, config: Path | None, style: str) -> None:
    """List the topics and their consumer groups."""
    with _open_host(config) as host:
        _print_lines(overview(host, _find_handlers(root)), style)


@command.command("show")
@click.argument("topic")
@nodes_option
@config_option()
@style_option
def show_command(topic: str, root: Path, config: Path | None, style: str) -> None:
    """Show the consumer groups of a topic."""
    with _open_host(config) as host:
        lines = [each for each in overview(host, _find_handlers(root)) if each.topic == topic]
    if not lines:
        raise click.ClickException(f"no topic `{printable(topic)}`: `vesper topics list` lists them")
    _print_lines(lines, style)


@command.command("pause")
@click.argument("topic")
@change_options
def pause_command(topic: str, group: str | None, config: Path | None, by: str | None, why: str | None) -> None:
    """Stop taking messages in all processes, within a second. Running messages end."""
    with _open_host(config) as host:
        is_new = TopicRecords(host).pause(topic, group or "", by or current_user(), why or "")
    click.echo(f"{_name(topic, group)} {'is paused' if is_new else 'was paused already'}")


@command.command("resume")
@click.argument("topic")
@change_options
def resume_command(topic: str, group: str | None, config: Path | None, by: str | None, why: str | None) -> None:
    """End a pause of a topic or, with --group, of one group."""
    with _open_host(config) as host:
        records = TopicRecords(host)
        is_ended = records.resume(topic, group or "", by or current_user(), why or "")
        others = [each.group for each in records.pauses() if each.topic == topic]
    click.echo(f"{_name(topic, group)} {'takes messages again' if is_ended else 'was not paused'}")
    for each in others:
        click.echo(f"still paused: {_name(topic, each)}", err=True)


@command.command("dead")
@click.argument("topic")
@group_option
@config_option()
@limit_option
@reveal_option
@style_option
def dead_command(topic: str, group: str | None, config: Path | None, limit: int, reveal: bool, style: str) -> None:
    """List the dead letters of a topic, oldest first, with their reasons."""
    with _open_host(config) as host:
        letters = TopicRecords(host).letters(topic, group, limit)
    shown = [each if reveal else each.masked() for each in letters]
    if style == "json":
        click.echo(document([{**asdict(each), "died_at": moment_json(each.died_us)} for each in shown]))
        return
    if not shown:
        click.echo(f"no dead letters of `{printable(topic)}`")
    for each in shown:
        what = f"{each.code} after {number(each.attempts, 'attempt')}"
        click.echo(f"{printable(each.id)}  {printable(each.group)}  {time_text(each.died_us)}  {printable(what)}")
        facts = {"reason": each.message, "key": each.event_key, "payload": each.payload, "run": each.execution}
        click.echo("\n".join(value_lines({name: fact for name, fact in facts.items() if fact}, "    ")))
    if shown:
        click.echo("`vesper topics requeue TOPIC ID` publishes one again, `vesper topics drop TOPIC ID` deletes it")


@command.command("requeue")
@letter_options
def requeue_command(
    topic: str, ids: Sequence[str], is_all: bool, group: str | None, config: Path | None, by: str | None,
    why: str | None,
) -> None:  # fmt: skip
    """Publish dead letters again, at the end of their topic. Their attempts start anew."""
    who, is_failed = by or current_user(), False
    with _open_host(config) as host:
        for letter in _select_letters(host, topic, group, ids, is_all):
            try:
                new_id = TopicRecords(host).requeue(letter, who, why or "")
                click.echo(f"{printable(letter.id)} is published again as {printable(new_id)}")
            except NotRequeued as refusal:
                is_failed = True
                click.echo(printable(str(refusal)), err=True)
    sys.exit(WRONG_INPUT if is_failed else 0)


@command.command("drop")
@letter_options
@yes_option
def drop_command(
    topic: str, ids: Sequence[str], is_all: bool, group: str | None, config: Path | None, by: str | None,
    why: str | None, yes: bool,
) -> None:  # fmt: skip
    """Delete dead letters, permanently."""
    who = by or current_user()
    with _open_host(config) as host:
        letters = _select_letters(host, topic, group, ids, is_all)
        if not yes:
            click.confirm(f"delete {number(len(letters), 'dead letter')} permanently?", abort=True)
        for letter in letters:
            is_gone = not TopicRecords(host).drop(letter, who, why or "")
            click.echo(f"{printable(letter.id)} {'was gone already' if is_gone else 'is deleted'}")


@contextmanager
def _open_host(config: Path | None) -> Iterator[Host]:
    """Open a Host without background work; end the command with the message of a problem."""
    with report_journal_errors():
        host = quiet_host(read_settings(config), finishes=False)
        try:
            yield host
        except (EffectFailed, TopicUnavailable) as problem:
            raise click.ClickException(printable(str(problem))) from None
        finally:
            host.close()


def _find_handlers(root: Path) -> list[tuple[str, EventsField]]:
    """Return the event handlers of a folder that consume topics; a faulty one is reported and left out."""
    found: list[tuple[str, EventsField]] = []
    try:
        files = [each for each in node_files([root]) if not is_library_file(each) and _MARK in each.read_bytes()]
    except NodeNotFound as problem:
        raise click.ClickException(f"{problem}; name the folder of the nodes with --nodes") from None
    for path in files:
        try:
            compiled, _, _ = compiled_node(path, None)
        except NodeError:
            click.echo(f"{printable(str(path))} is left out: `vesper check` reports its errors", err=True)
            continue
        field = events_of(compiled)
        if field is not None:
            found.append((compiled.node.node_id, field))
    return found


def _select_letters(host: Host, topic: str, group: str | None, ids: Sequence[str], is_all: bool) -> list[Letter]:
    if bool(ids) == is_all:
        raise click.UsageError("name the ids of dead letters, or --all: `vesper topics dead TOPIC` lists them")
    letters = TopicRecords(host).letters(topic, group)
    missing = set(ids) - {each.id for each in letters}
    if missing:
        listed = ", ".join(map(printable, sorted(missing)))
        raise click.ClickException(f"no dead letter {listed}: `vesper topics dead {printable(topic)}` lists them")
    return [each for each in letters if is_all or each.id in ids]


def _print_lines(lines: Sequence[GroupLine], style: str) -> None:
    if style == "json":
        click.echo(document([asdict(each) for each in lines]))
        return
    if not lines:
        click.echo("no topics: add [topics.NAME] to vesper.toml, and `events: {topic: NAME}` to an event_handler")
        return
    rows = [["topic", "in", "group", "node", "lag", "dead", "state"]]
    for each in lines:
        dead = f"{each.dead}+" if each.dead >= MAX_COUNTED_LETTERS else str(each.dead)
        cells = [each.topic, each.transport or "-", each.group or "-", each.node_id or "-"]
        lag = "-" if each.lag is None else str(each.lag)
        rows.append([*map(printable, cells), lag, dead, printable(_state(each))])
    click.echo("\n".join(table(rows)))


def _state(line: GroupLine) -> str:
    if line.problem is not None:
        return line.problem
    if line.paused_us is not None:
        why = f": {line.why}" if line.why else ""
        return f"paused since {time_text(line.paused_us)} by {line.paused_by}{why}"
    return "active" if line.group else "no consumer"


def _name(topic: str, group: str | None) -> str:
    return f"`{printable(topic)}`" + (f", group {printable(group)}," if group else "")
