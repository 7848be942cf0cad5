"""`vesper queue`: queued runs, dead letters, and the changes that a person makes to them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from vesper.cli.journal.open_journal import (
    current_user,
    find_execution,
    open_journal,
    read_journal_settings,
    report_journal_errors,
    require_journal,
)
from vesper.cli.journal.text import document, short_ids, table
from vesper.cli.options import by_option, journal_options, limit_option, style_option, why_option, yes_option
from vesper.host.finishing import quiet_host
from vesper.host.host import Host
from vesper.journal.due import Due
from vesper.journal.moments import number, time_text, took_text
from vesper.queues.overview import (
    QueuedRun,
    QueueLine,
    cancel,
    dead_letters,
    drop,
    find_dead,
    lane_lines,
    pause,
    queue_lines,
    queued_runs,
    requeue,
    resume,
)
from vesper.values.model import printable


@click.group("queue")
def command() -> None:
    """Show queues and their runs; pause queues; requeue or drop dead letters.

    A run that failed on its last attempt, or in a way that another attempt would not change, is a dead letter.
    EXECUTION is the id of an execution, or a unique prefix of it.

    Exit codes: 0 success, 1 refused, 2 usage, 3 a bug in Vesper.
    """


# -- showing --------------------------------------------------------------------------------------


@command.command("list")
@journal_options
@style_option
def list_command(config: Path | None, dsn: str | None, style: str) -> None:
    """List the queues with their depth, the age of the oldest run, and dead letters."""
    with open_journal(config, dsn) as journal:
        lines = queue_lines(journal)
    if style == "json":
        click.echo(document([each.to_json() for each in lines]))
        return
    if not lines:
        click.echo("no queue has a run; `node.enqueue(…)` puts one there (docs/how-to/queue-work.md)")
        return
    click.echo("\n".join(_queue_table(lines)))
    for each in lines:
        if each.paused_by is not None:
            by, why = printable(each.paused_by), printable(each.paused_why or "")
            click.echo(f"\n{printable(each.queue)} is paused by {by}: {why}\n  `vesper queue resume` lets it go on")


@command.command("show")
@click.argument("queue")
@journal_options
@limit_option
@style_option
def show_command(queue: str, config: Path | None, dsn: str | None, limit: int, style: str) -> None:
    """Show the longest lanes of a QUEUE and its runs, oldest first."""
    with open_journal(config, dsn) as journal:
        lanes, runs = lane_lines(journal, queue), queued_runs(journal, queue, _now_us(), limit=limit)
    if style == "json":
        click.echo(document({"lanes": [each.to_json() for each in lanes], "runs": [each.to_json() for each in runs]}))
        return
    if not runs:
        click.echo(f"the queue {printable(queue)} has no run; `vesper queue list` lists the queues")
        return
    click.echo("\n".join([*_queue_table(lanes), "", *_run_table(runs)]))


@command.command("dead")
@click.argument("queue")
@journal_options
@limit_option
@style_option
def dead_command(queue: str, config: Path | None, dsn: str | None, limit: int, style: str) -> None:
    """List the dead letters of a QUEUE, oldest first."""
    with open_journal(config, dsn) as journal:
        runs = queued_runs(journal, queue, _now_us(), dead=True, limit=limit)
    if style == "json":
        click.echo(document([each.to_json() for each in runs]))
    elif not runs:
        click.echo(f"the queue {printable(queue)} has no dead letters")
    else:
        click.echo("\n".join(_run_table(runs)))
        click.echo("\n`vesper queue requeue EXECUTION` runs one again, `vesper queue drop EXECUTION` deletes one")


def _queue_table(lines: Sequence[QueueLine]) -> list[str]:
    now_us = _now_us()
    rows = [["lane" if lines and lines[0].lane is not None else "queue"]]
    rows[0] += ["waiting", "delayed", "running", "dead", "oldest"]
    for each in lines:
        age = "" if each.oldest_us is None else took_text(max(0, now_us - each.oldest_us))
        counts = (each.waiting, each.delayed, each.running, each.dead)
        name = printable(each.queue if each.lane is None else each.lane)
        rows.append([name, *(f"{count:,}" for count in counts), age])
    return table(rows)


def _run_table(runs: Sequence[QueuedRun]) -> list[str]:
    shorts = short_ids([each.due.execution or "" for each in runs])
    rows = [["execution", "node", "lane", "state", "attempt", "priority", "due", "code"]]
    for each in runs:
        due = each.due
        rows.append(
            [
                shorts[due.execution or ""],
                printable(due.node_id or ""),
                printable(due.lane),
                each.state,
                f"{each.attempt} of {each.attempts}",
                str(due.priority),
                "" if due.due_us is None else time_text(due.due_us),
                printable(each.code or ""),
            ]
        )
    return table(rows)


# -- changing -------------------------------------------------------------------------------------


@command.command("pause")
@click.argument("queue")
@journal_options
@why_option(is_required=True)
@by_option
def pause_command(queue: str, config: Path | None, dsn: str | None, why: str, by: str | None) -> None:
    """Let no worker start runs of a QUEUE. Runs under way go on; runs can still be enqueued."""
    with open_journal(config, dsn) as journal:
        is_changed = pause(journal, queue, by or current_user(), why)
    click.echo(f"{printable(queue)} {'is paused' if is_changed else 'was paused already'}")


@command.command("resume")
@click.argument("queue")
@journal_options
@by_option
def resume_command(queue: str, config: Path | None, dsn: str | None, by: str | None) -> None:
    """Let workers start runs of a paused QUEUE again."""
    with open_journal(config, dsn) as journal:
        is_changed = resume(journal, queue, by or current_user())
    click.echo(f"{printable(queue)} {'goes on' if is_changed else 'was not paused'}")


def _dead_options(decorated: click.decorators.FC) -> click.decorators.FC:
    for option in (
        yes_option,
        by_option,
        click.option("--all", "queue", metavar="QUEUE", help="All dead letters of a queue."),
        journal_options,
        click.argument("executions", nargs=-1, metavar="[EXECUTION]..."),
    ):
        decorated = option(decorated)
    return decorated


@command.command("requeue")
@_dead_options
def requeue_command(
    executions: tuple[str, ...], config: Path | None, dsn: str | None, queue: str | None, by: str | None, yes: bool
) -> None:
    """Run dead letters again: each as a new run with the same inputs, all its attempts anew."""
    with _dead(config, dsn, executions, queue, yes, "requeue") as (host, found):
        queued = [requeue(host, each, by or current_user()) for each in found]
    click.echo(f"queued {number(sum(each is not None for each in queued), 'run')}")


@command.command("drop")
@_dead_options
def drop_command(
    executions: tuple[str, ...], config: Path | None, dsn: str | None, queue: str | None, by: str | None, yes: bool
) -> None:
    """Delete dead letters. Their runs stay in the journal, where `vesper journal retry` can repeat them."""
    with _dead(config, dsn, executions, queue, yes, "drop") as (host, found):
        dropped = [drop(host.journal, each, by or current_user()) for each in found]
    click.echo(f"dropped {number(sum(dropped), 'dead letter')}")


@contextmanager
def _dead(
    config: Path | None, dsn: str | None, executions: tuple[str, ...], queue: str | None, yes: bool, verb: str
) -> Iterator[tuple[Host, list[Due]]]:
    """Open a Host, and find the dead letters that a command names."""
    if bool(executions) == (queue is not None):
        raise click.UsageError("name either executions, or a queue with --all")
    settings = read_journal_settings(config, dsn)
    require_journal(settings)
    with report_journal_errors(), quiet_host(settings, finishes=False) as host:
        if queue is not None:
            found = list(dead_letters(host.journal, queue))
            if found and not yes:
                click.confirm(f"{verb} {number(len(found), 'dead letter')} of {printable(queue)}?", abort=True)
        else:
            found = [find_dead(host.journal, find_execution(host.journal, each)) for each in executions]
        yield host, found


@command.command("cancel")
@click.argument("execution")
@journal_options
@why_option(is_required=True)
@by_option
def cancel_command(execution: str, config: Path | None, dsn: str | None, why: str, by: str | None) -> None:
    """Cancel a queued run, or fail the wait of a waiting one with `cancelled`."""
    with open_journal(config, dsn) as journal:
        name = find_execution(journal, execution)
        status = cancel(journal, name, by or current_user(), why)
    click.echo(f"cancelled: {name} is {status.value}")


def _now_us() -> int:
    return time.time_ns() // 1000
