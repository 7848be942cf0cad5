"""`vesper interrupts`: questions of waiting runs to people, and their answers."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vesper.cli.interrupts.values import prompt_answer, report_refusals, value_of_fields, value_of_json
from vesper.cli.journal.open_journal import (
    current_user,
    find_execution,
    find_node_ids,
    missing_file,
    open_journal,
    read_journal_settings,
)
from vesper.cli.journal.text import short_ids, table
from vesper.cli.options import (
    by_option,
    journal_options,
    limit_option,
    node_filter_option,
    read_words,
    reveal_option,
    style_option,
)
from vesper.cli.output.outcomes import json_text
from vesper.cli.output.value_lines import value_lines
from vesper.journal.moments import moment_json, time_text, took_text
from vesper.journal.typed_json import encode_text
from vesper.values.model import printable

if TYPE_CHECKING:
    from vesper.host.waiting_runs import Interrupt
    from vesper.journal.journal import Journal

_STATUSES = ("pending", "resolved", "expired", "cancelled", "all")
_MESSAGE_COLUMNS = 60


@click.group("interrupts")
def command() -> None:
    """Show and answer questions of waiting runs.

    EXECUTION is the id of a run, or a unique prefix of it: a run asks one question at a time.

    Exit codes: 0 success, 1 refused or unreadable, 2 usage.
    """


@command.command("list")
@journal_options
@click.option("--status", type=click.Choice(_STATUSES), default="pending", show_default=True)
@node_filter_option
@limit_option
@reveal_option
@style_option
def list_command(
    config: Path | None, dsn: str | None, status: str, node: str | None, limit: int, reveal: bool, style: str
) -> None:
    """List interrupts: pending ones oldest first, others by their runs, newest first."""
    from vesper.host.waiting_runs import InterruptStatus, list_interrupts

    if dsn is None and missing_file(read_journal_settings(config, dsn)) is not None:
        click.echo("[]" if style == "json" else "no interrupts: there is no journal yet")
        return
    wanted = None if status == "all" else InterruptStatus(status)
    with open_journal(config, dsn) as journal, report_refusals():
        nodes = find_node_ids(journal, node)
        found = [each for name in nodes for each in list_interrupts(journal, wanted, name, limit, reveal)][:limit]
    if style == "json":
        click.echo(json_text([_document(each) for each in found]))
    elif not found:
        others = "; --status all lists answered and expired ones" if status == "pending" else ""
        click.echo(f"no interrupts are {status}{others}" if status != "all" else "no interrupts")
    else:
        click.echo("\n".join(_list_lines(found, time.time_ns() // 1000)))


@command.command("show")
@click.argument("execution")
@journal_options
@reveal_option
@style_option
def show_command(execution: str, config: Path | None, dsn: str | None, reveal: bool, style: str) -> None:
    """Show the interrupts of a run, with their answers."""
    with open_journal(config, dsn) as journal, report_refusals():
        found = _read_interrupts(journal, execution, reveal)
    if style == "json":
        click.echo(json_text([_document(each) for each in found]))
        return
    if not found:
        click.echo("the run has asked nothing")
    for each in found:
        click.echo("\n".join(_show_lines(each)))


@command.command("resolve")
@click.argument("execution")
@journal_options
@click.option("--value", metavar="JSON", help="The answer, as JSON of the type that the step declares.")
@click.option("--set", "pairs", multiple=True, metavar="NAME=VALUE", help="One field of the answer; repeat for more.")
@by_option
def resolve_command(
    execution: str, config: Path | None, dsn: str | None, value: str | None, pairs: tuple[str, ...], by: str | None
) -> None:
    """Answer the interrupt of a run; a terminal is asked for an answer that is not given.

    The run continues in a process with its journal: `vesper serve` or `vesper work`.
    """
    from vesper.host.waiting_runs import NotWaiting, answer, find_waiting

    if value is not None and pairs:
        raise click.UsageError("give the answer with --value or with --set, not with both")
    who = by or current_user()
    with open_journal(config, dsn) as journal, report_refusals():
        found = find_waiting(journal, find_execution(journal, execution))
        if found is None or found.kind != "interrupt" or found.answer_type is None:
            raise NotWaiting(f"{execution} has no pending interrupt; `vesper interrupts list` lists them")
        if value is not None:
            given = value_of_json(value)
        elif pairs:
            given = value_of_fields(found.answer_type, pairs)
        else:
            click.echo(f"{found.node_id} asks: {printable(found.message or '')}")
            given = prompt_answer(found.answer_type)
        done = answer(journal, found.execution, given, who)
    click.echo(f"resolved: {printable(done.path)} of {done.execution}")


@command.command("cancel")
@click.argument("execution")
@journal_options
@click.option("--why", required=True, metavar="TEXT", callback=read_words, help="Reason, kept in the journal.")
@by_option
def cancel_command(execution: str, config: Path | None, dsn: str | None, why: str, by: str | None) -> None:
    """Cancel the interrupt of a run: its step fails with `cancelled`, and the run continues with its handlers."""
    from vesper.host.waiting_runs import NotWaiting, cancel, find_waiting

    who = by or current_user()
    with open_journal(config, dsn) as journal, report_refusals():
        found = find_waiting(journal, find_execution(journal, execution))
        if found is None or found.kind != "interrupt":
            raise NotWaiting(f"{execution} has no pending interrupt; `vesper interrupts list` lists them")
        cancel(journal, found.execution, why, who)
    click.echo(f"cancelled: {printable(found.path)} of {found.execution}")


def _read_interrupts(journal: Journal, execution: str, reveal: bool) -> list[Interrupt]:
    from vesper.host.waiting_runs import interrupts_of

    return interrupts_of(journal, journal.read(find_execution(journal, execution)), reveal)


def _list_lines(found: Sequence[Interrupt], now_us: int) -> list[str]:
    shorts = short_ids(list(dict.fromkeys(each.wait.execution for each in found)))
    rows = [["execution", "node", "step", "kind", "status", "expires", "message"]]
    for each in found:
        wait = each.wait
        ends = "" if each.status != "pending" else "never" if wait.due_us is None else _time_left(wait.due_us - now_us)
        message = printable(wait.message or "")
        short = message if len(message) <= _MESSAGE_COLUMNS else f"{message[: _MESSAGE_COLUMNS - 1]}…"
        rows.append(
            [shorts[wait.execution], printable(wait.node_id), printable(wait.path), wait.name, each.status, ends, short]
        )
    return table(rows)


def _time_left(us: int) -> str:
    return f"in {took_text(us)}" if us > 0 else "now"


def _show_lines(each: Interrupt) -> list[str]:
    wait = each.wait
    rows: dict[str, object] = {"message": wait.message, "asked": time_text(wait.since_us), "status": str(each.status)}
    if each.status == "pending":
        rows["expires"] = "never" if wait.due_us is None else time_text(wait.due_us)
        rows["answer"] = f"of type {wait.answer_type}"
    else:
        rows["ended"] = time_text(each.ended_us or 0) + (f" by {printable(each.by)}" if each.by else "")
        if each.status == "resolved":
            rows["answer"] = each.answer
    lines = [f"{printable(wait.path)} of {wait.node_id} ({wait.name}), execution {wait.execution}"]
    lines += value_lines(rows)
    if each.status == "pending":
        lines.append(f"  answer it with `vesper interrupts resolve {wait.execution}`")
    return lines


def _document(each: Interrupt) -> dict[str, Any]:
    wait = each.wait
    return {
        "execution": wait.execution,
        "node": wait.node_id,
        "step": wait.path,
        "kind": wait.name,
        "status": str(each.status),
        "message": wait.message,
        "asked": moment_json(wait.since_us),
        "expires": None if wait.due_us is None else moment_json(wait.due_us),
        "answer_type": str(wait.answer_type),
        "ended": None if each.ended_us is None else moment_json(each.ended_us),
        "by": each.by,
        "answer": json.loads(encode_text(each.answer)),
    }
