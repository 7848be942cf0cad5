"""`vesper traces`: recorded executions, step by step."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from vesper import __version__
from vesper.cli.engine_names import EngineChoice
from vesper.cli.exits import FINE, WRONG_INPUT
from vesper.cli.journal.text import document
from vesper.cli.options import (
    format_option,
    journal_options,
    limit_option,
    node_filter_option,
    older_than_option,
    read_since,
    reveal_option,
    since_option,
    style_option,
    yes_option,
)
from vesper.cli.traces.open_traces import find_node_ids, open_configured_traces
from vesper.cli.traces.text import difference_lines, list_lines, show_json, show_lines, summary_json
from vesper.cli.traces.to_test import to_test_command
from vesper.journal.moments import number, time_text
from vesper.storage.write_file import create_text
from vesper.trace.difference import differences
from vesper.trace.library import OUTCOMES, Filters
from vesper.trace.masking import masked_differences
from vesper.trace.model import Trace


@click.group("traces")
def command() -> None:
    """Show what executions did, step by step; turn traces into tests.

    Every journalled execution has a trace, and every run with `vesper run --trace`. TRACE is an id, a unique prefix of
    it, or a file of `vesper traces export`.

    Exit codes: 0 success, 1 an error, an unreadable trace, or two traces differ, 2 usage, 3 a bug in Vesper.
    """


command.add_command(to_test_command)


@command.command("list")
@journal_options
@node_filter_option
@since_option
@click.option("--until", "until_us", metavar="WHEN", callback=read_since, help="Only those before then.")
@click.option(
    "--outcome", metavar="KIND", help=f"Only those with this outcome: {', '.join(OUTCOMES)}, or an error code."
)
@click.option(
    "--where", metavar="EXPRESSION", help="Only those whose inputs meet the condition: `input.amount > 10000`."
)
@click.option("--diverged", is_flag=True, help="Only those on which the engines disagreed.")
@click.option("--reveal", is_flag=True, help="Let --where read sensitive inputs.")
@limit_option
@style_option
def list_command(
    config: Path | None,
    dsn: str | None,
    node: str | None,
    since_us: int | None,
    until_us: int | None,
    outcome: str | None,
    where: str | None,
    diverged: bool,
    reveal: bool,
    limit: int,
    style: str,
) -> None:
    """List traces, newest first."""
    with open_configured_traces(config, dsn) as traces:
        filters = Filters(find_node_ids(traces, node), since_us, until_us, outcome, where, diverged, reveal)
        listed = traces.listed(filters, limit)
    if style == "json":
        click.echo(document([summary_json(each) for each in listed.found]))
    else:
        click.echo("\n".join(list_lines(listed.found) if listed.found else ["no matching traces"]))
        if listed.has_more:
            click.echo("\nonly the newest are shown; --limit shows more")
    if listed.is_cut and not listed.has_more:
        click.echo("only the newest 10,000 were searched; narrow the search with --since or --node", err=True)
    if listed.not_asked:
        skipped = f"{number(listed.not_asked, 'trace')} skipped: --where reads sensitive inputs"
        click.echo(f"{skipped}; --reveal includes them", err=True)
    if listed.unread:
        click.echo(f"{number(listed.unread, 'trace')} could not be read: sealed, erased or damaged", err=True)


@command.command("show")
@click.argument("trace")
@journal_options
@style_option
@reveal_option
@click.option("--engine", type=EngineChoice(), help="Engine that reruns a journalled execution.")
def show_command(
    trace: str, config: Path | None, dsn: str | None, style: str, reveal: bool, engine: str | None
) -> None:
    """Show a trace: inputs, steps, contracts and outcome."""
    with open_configured_traces(config, dsn) as traces:
        found = traces.find(trace, engine)
    if engine is not None and found.engines[0] != engine:
        recorded = f"note: a stored trace is shown as recorded, on {found.engines[0]}"
        click.echo(f"{recorded}; `vesper replay --engine {engine}` runs it on {engine}", err=True)
    if style == "json":
        click.echo(document(show_json(found, reveal)))
    else:
        click.echo("\n".join(show_lines(found, reveal)))


@command.command("export")
@click.argument("traces_wanted", metavar="TRACE…", nargs=-1, required=True)
@journal_options
@format_option(
    *("trace", "otlp", "jsonl", "sqlite"),
    help="A file that can be replayed anywhere, spans for OpenTelemetry, or records of model and agent calls.",
)
@click.option(
    "--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="New file; by default standard output."
)
@click.option("--reveal", is_flag=True, help="Export the values of a sensitive trace; the file is not encrypted.")
def export_command(
    traces_wanted: tuple[str, ...],
    config: Path | None,
    dsn: str | None,
    style: str,
    output: Path | None,
    reveal: bool,
) -> None:
    """Export traces to files.

    A trace file contains its node and can be replayed on any machine. OTLP has a span for the execution and one for
    each request, without values. The records of model and agent calls have tokens, cost, latency, status and retries:
    as lines of JSON, or in the table `calls` of a new SQLite file.
    """
    with open_configured_traces(config, dsn) as traces:
        found = [traces.find(each) for each in traces_wanted]
    if style == "otlp":
        from vesper.trace.export.otlp import otlp_document

        text = document(otlp_document(found, __version__)) + "\n"
    elif style == "sqlite":
        _write_calls(found, output)
        return
    elif style == "jsonl":
        from vesper.trace.export.call_records import json_lines

        text = json_lines(found)
    else:
        if len(found) > 1:
            raise click.UsageError("a trace file holds one trace: export them one at a time")
        _check_exportable(found[0], reveal)
        text = found[0].to_bytes().decode("utf-8")
    if output is None:
        click.echo(text, nl=False)
        return
    with _report_write_errors(output):
        create_text(output, text, is_private=True)
    click.echo(f"wrote {output}")


@contextmanager
def _report_write_errors(output: Path) -> Iterator[None]:
    """End the command where a new file cannot be written."""
    try:
        yield
    except FileExistsError:
        raise click.ClickException(f"{output} already exists and is not overwritten") from None
    except OSError as error:
        raise click.ClickException(f"{output} cannot be written: {error.strerror or error}") from None


def _write_calls(traces: list[Trace], output: Path | None) -> None:
    from vesper.trace.export.call_records import write_sqlite

    if output is None:
        raise click.UsageError("SQLite is written to a file: name it with --output")
    with _report_write_errors(output):
        count = write_sqlite(traces, output)
    click.echo(f"wrote {number(count, 'record')} to {output}")


def _check_exportable(trace: Trace, reveal: bool) -> None:
    if trace.is_sensitive and not reveal:
        raise click.ClickException(
            f"trace {trace.trace_id} is sensitive, and the file is not encrypted: --reveal exports it anyway; "
            "`--format otlp` exports its spans without values"
        )


@command.command("diff")
@click.argument("left")
@click.argument("right")
@journal_options
@style_option
@reveal_option
def diff_command(left: str, right: str, config: Path | None, dsn: str | None, style: str, reveal: bool) -> None:
    """Show where two traces differ in inputs, steps and outcome.

    Durations are ignored; start times count only where the node reads the time.
    """
    with open_configured_traces(config, dsn) as traces:
        one, other = traces.find(left), traces.find(right)
        found = differences(one, other) if reveal else masked_differences(one, other)
    if style == "json":
        click.echo(document([{"where": each.where, "left": each.left, "right": each.right} for each in found]))
    elif not found:
        click.echo("the traces do not differ")
    else:
        click.echo("\n".join(difference_lines(found, ("left", "right"))))
    sys.exit(WRONG_INPUT if found else FINE)


@command.command("prune")
@journal_options
@older_than_option("Traces that began so long ago")
@node_filter_option
@yes_option
def prune_command(config: Path | None, dsn: str | None, seconds: float, node: str | None, yes: bool) -> None:
    """Delete stored traces. Traces of journalled executions are deleted by `vesper journal prune`."""
    before_us = time.time_ns() // 1000 - int(seconds * 1_000_000)
    with open_configured_traces(config, dsn) as traces:
        nodes = find_node_ids(traces, node) or (None,)
        count = sum(traces.store.prunable(before_us, each) for each in nodes)
        if not count:
            click.echo(f"no stored trace began before {time_text(before_us)}")
            return
        click.echo(f"{number(count, 'stored trace')} began before {time_text(before_us)}")
        if not yes:
            click.confirm("delete permanently?", abort=True)
        pruned = sum(traces.store.prune(before_us, each) for each in nodes)
        click.echo(f"deleted {number(pruned, 'trace')}")
