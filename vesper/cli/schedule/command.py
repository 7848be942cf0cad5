"""`vesper schedule`: the schedules of jobs, their next due times, pauses, and runs by hand."""

from __future__ import annotations

import time
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any

import click

from vesper.cli.journal.open_journal import (
    current_user,
    missing_file,
    open_journal,
    read_journal_settings,
    report_journal_errors,
)
from vesper.cli.journal.text import document, table
from vesper.cli.load_node import compile_or_exit, find_lead, find_node
from vesper.cli.options import NODE, apply_options, by_option, journal_options, nodes_option, style_option, why_option
from vesper.config.moments import parse_moment
from vesper.journal.moments import took_text
from vesper.kernels.calendar.zones import offset_at
from vesper.language.work_bindings import ScheduleField, schedule_of
from vesper.schedules.overview import ScheduleLine, declared_schedules, overview
from vesper.schedules.rows import UnknownSchedule, pause, resume
from vesper.schedules.timetable import Timetable, moment_of, time_text
from vesper.values.model import printable

_MAX_TIMES = 1_000


@click.group("schedule")
def command() -> None:
    """Show and control the schedules of `scheduled_job` nodes.

    `vesper work` and `vesper serve` run the jobs; these commands read and change the rows that they share.

    Exit codes: 0 success, 1 an error, 2 usage, 3 a bug in Vesper.
    """


@command.command("list")
@nodes_option
@journal_options
@style_option
def list_command(root: Path, config: Path | None, dsn: str | None, style: str) -> None:
    """List the schedules of the journal and of the folder of nodes."""
    fields = declared_schedules(root) if root.exists() else {}
    is_new = missing_file(read_journal_settings(config, dsn)) is not None
    with nullcontext() if is_new else open_journal(config, dsn) as journal:
        lines = overview(journal, _now_us(), fields)
    if style == "json":
        click.echo(document([each.to_json() for each in lines]))
    elif lines:
        heading = ["node", "schedule", "state", "next", "last", "result", "runs", "missed", "skipped"]
        click.echo("\n".join(table([heading, *map(_cells, lines)])))
        if any(each.state in ("new", "unserved") for each in lines):
            click.echo("\n`vesper work` runs the jobs that no process serves")
    else:
        click.echo("no schedules: a node of the type `scheduled_job` has one in its field `schedule`")


def _cells(line: ScheduleLine) -> list[str]:
    row = line.row
    state = line.state if row.paused_by is None else f"paused by {printable(row.paused_by)}"
    times = ["" if each is None else time_text(each) for each in (line.next_us, row.last_us)]
    counts = map(str, (row.run_count, row.missed_count, row.skipped_count))
    return [line.node_id, printable(f"{row.cron} {row.zone}"), state, *times, line.last_status or "", *counts]


@command.command("next")
@click.argument("node", type=NODE)
@click.option("--count", type=click.IntRange(1, _MAX_TIMES), default=5, show_default=True, help="Number of due times.")
@click.option("--after", metavar="WHEN", help="Begin after this moment, such as 2026-03-28T00:00:00Z; now by default.")
@nodes_option
@style_option
def next_command(node: str, count: int, after: str | None, root: Path, style: str) -> None:
    """Show the next due times of a job, by the clocks of its zone. Needs no journal."""
    try:
        time_us = _now_us() if after is None else parse_moment(after, _now_us())
    except ValueError as problem:
        raise click.BadParameter(str(problem), param_hint="--after") from None
    node_id, field = _job(node, root)
    timetable, rows = Timetable(node_id, field), []
    for _ in range(count):
        time_us = timetable.next_after(time_us)
        rows.append((time_us, timetable.start_of(time_us)))
    if style == "json":
        times = [{"due": time_text(due), "local": _local(due, field.zone), "start": time_text(at)} for due, at in rows]
        click.echo(document({"node": node_id, "cron": field.cron, "zone": field.zone, "times": times}))
        return
    click.echo(f"{node_id}: {printable(field.cron)} in {field.zone}")
    for due_us, start_us in rows:
        jitter = f"  starts {took_text(start_us - due_us)} later" if start_us > due_us else ""
        click.echo(f"  {_local(due_us, field.zone)}  {time_text(due_us)}{jitter}")


def _local(time_us: int, zone: str) -> str:
    moment = moment_of(time_us)
    offset = offset_at(moment, zone)
    hours, minutes = divmod(abs(offset) // timedelta(minutes=1), 60)
    sign = "-" if offset < timedelta() else "+"
    return f"{moment.replace(tzinfo=None) + offset:%Y-%m-%dT%H:%M:%S}{sign}{hours:02}:{minutes:02}"


@command.command("run")
@click.argument("node", type=NODE)
@nodes_option
@journal_options
@by_option
@style_option
def run_command(node: str, root: Path, config: Path | None, dsn: str | None, by: str | None, style: str) -> None:
    """Begin a run of a job now, beside its schedule. A process of `vesper work` or `vesper serve` performs it."""
    from vesper.api.load import load
    from vesper.host.finishing import quiet_host
    from vesper.host.run_context import RunContext
    from vesper.schedules.schedules import begin_run

    node_id, field = _job(node, root)
    settings = read_journal_settings(config, dsn)
    context = RunContext(actor=by or current_user())
    with report_journal_errors(), quiet_host(settings, finishes=True) as host:
        execution = begin_run(host, load(find_lead(node, root, config), host=host), field, _now_us(), context)
    text = f"{execution} is queued; `vesper journal show {execution[:18]}` shows what became of it"
    _report(style, {"node": node_id, "execution": execution}, text)


_change_options = apply_options(
    click.argument("node", type=NODE),
    nodes_option,
    journal_options,
    by_option,
    why_option(is_required=False),
    style_option,
)


@command.command("pause")
@_change_options
def pause_command(
    node: str, root: Path, config: Path | None, dsn: str | None, by: str | None, why: str | None, style: str
) -> None:
    """Begin no run of a job until `resume`, in every process. Due times of the pause never run."""
    node_id, _ = _job(node, root)
    with open_journal(config, dsn) as journal:
        row = pause(journal, node_id, by or current_user(), why or "")
    paused = {"node": node_id, "paused_by": row.paused_by, "paused": time_text(row.paused_us)}
    _report(style, paused, f"{node_id} is paused by {printable(row.paused_by or '')} since {paused['paused']}")


@command.command("resume")
@_change_options
def resume_command(
    node: str, root: Path, config: Path | None, dsn: str | None, by: str | None, why: str | None, style: str
) -> None:
    """Let a job run again, from its next due time on."""
    node_id, field = _job(node, root)
    with open_journal(config, dsn) as journal:
        try:
            resume(journal, node_id, by or current_user(), why or "")
        except UnknownSchedule as problem:
            raise click.ClickException(str(problem)) from None
    next_text = time_text(Timetable(node_id, field).next_after(_now_us()))
    _report(style, {"node": node_id, "next": next_text}, f"{node_id} is due again at {next_text}")


def _report(style: str, data: dict[str, Any], text: str) -> None:
    click.echo(document(data) if style == "json" else text)


def _job(node: str, root: Path) -> tuple[str, ScheduleField]:
    compiled = compile_or_exit(find_node(node, root), is_run=False)
    field = schedule_of(compiled)
    if field is None:
        raise click.ClickException(
            f"{compiled.node.node_id} has no schedule: write the field `schedule` of a `scheduled_job`, "
            'such as `schedule: {cron: "30 2 * * *", zone: Europe/Berlin}`'
        )
    return compiled.node.node_id, field


def _now_us() -> int:
    return time.time_ns() // 1_000
