"""`vesper traces`: what executions did, step by step."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click

from vesper import __version__
from vesper.cli.engine_names import EngineChoice
from vesper.cli.exits import FINE, WRONG_INPUT
from vesper.cli.journal.text import document, number, time_text
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
from vesper.cli.traces.open_traces import the_nodes, the_traces
from vesper.cli.traces.text import difference_lines, list_lines, show_json, show_lines, summary_json
from vesper.cli.traces.to_test import to_test_command
from vesper.cli.write_file import create_text
from vesper.trace.difference import NODE, NOW, differences
from vesper.trace.library import OUTCOMES, Filters
from vesper.trace.model import Trace


@click.group("traces")
def command() -> None:
    """See what executions did, step by step.

    Every journalled execution has a trace, and so has every one that was run with `vesper run --trace`. TRACE is its
    id, as much of its beginning as is unique, or a file that `vesper traces export` wrote.

    Exit codes: 0 fine, 1 something is wrong, cannot be read, or two traces differ, 2 usage, 3 a bug in Vesper.
    """


command.add_command(to_test_command)


@command.command("list")
@journal_options
@node_filter_option
@since_option
@click.option("--until", "until_us", metavar="WHEN", callback=read_since, help="Only those before then.")
@click.option("--outcome", metavar="KIND", help=f"Only those that ended so: {', '.join(OUTCOMES)}, or an error code.")
@click.option("--where", metavar="EXPRESSION", help="Only those whose inputs meet it: `input.amount > 10000`.")
@click.option("--diverged", is_flag=True, help="Only those on which engines did not agree.")
@click.option("--reveal", is_flag=True, help="Let --where ask about sensitive inputs.")
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
    """List traces, the newest first."""
    with the_traces(config, dsn) as traces:
        filters = Filters(the_nodes(traces, node), since_us, until_us, outcome, where, diverged, reveal)
        listed = traces.listed(filters, limit)
    if style == "json":
        click.echo(document([summary_json(each) for each in listed.found]))
    else:
        click.echo("\n".join(list_lines(listed.found) if listed.found else ["no such traces"]))
        if listed.has_more:
            click.echo("\nthese are the newest; --limit shows more")
    if listed.is_cut and not listed.has_more:
        click.echo("only the newest 10,000 were looked into; --since and --node narrow it down", err=True)
    if listed.not_asked:
        told = f"{number(listed.not_asked, 'trace')} left out: --where asks about what is sensitive there"
        click.echo(f"{told}; --reveal asks all the same", err=True)
    if listed.unread:
        click.echo(f"{number(listed.unread, 'trace')} could not be looked into: sealed, erased or damaged", err=True)


@command.command("show")
@click.argument("trace")
@journal_options
@style_option
@reveal_option
@click.option("--engine", type=EngineChoice(), help="Engine that reruns a journalled execution.")
def show_command(
    trace: str, config: Path | None, dsn: str | None, style: str, reveal: bool, engine: str | None
) -> None:
    """Show a trace: its inputs, its steps, its contracts and how it ended."""
    with the_traces(config, dsn) as traces:
        found = traces.find(trace, engine)
    if engine is not None and found.engines[0] != engine:
        told = f"note: a stored trace is shown as it was kept, on {found.engines[0]}"
        click.echo(f"{told}; `vesper replay --engine {engine}` runs it on {engine}", err=True)
    if style == "json":
        click.echo(document(show_json(found, reveal)))
    else:
        click.echo("\n".join(show_lines(found, reveal)))


@command.command("export")
@click.argument("traces_wanted", metavar="TRACE…", nargs=-1, required=True)
@journal_options
@format_option("trace", "otlp", help="A file that can be replayed anywhere, or spans for OpenTelemetry.")
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="Write a new file; else stdout.")
@click.option("--reveal", is_flag=True, help="Export a sensitive trace as it is: the file is not sealed.")
def export_command(
    traces_wanted: tuple[str, ...],
    config: Path | None,
    dsn: str | None,
    style: str,
    output: Path | None,
    reveal: bool,
) -> None:
    """Write traces for elsewhere.

    A trace file carries its node, and replays on any machine. OTLP has a span for the execution and one for each
    request, and no values.
    """
    with the_traces(config, dsn) as traces:
        found = [traces.find(each) for each in traces_wanted]
    if style == "otlp":
        from vesper.trace.otlp import otlp_document

        text = document(otlp_document(found, __version__)) + "\n"
    else:
        if len(found) > 1:
            raise click.UsageError("a trace file holds one trace: export them one by one")
        _check_may_leave(found[0], reveal)
        text = found[0].to_bytes().decode("utf-8")
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        create_text(output, text)
    except FileExistsError:
        raise click.ClickException(f"{output} is there already, and is not overwritten") from None
    except OSError as error:
        raise click.ClickException(f"{output} cannot be written: {error.strerror or error}") from None
    click.echo(f"wrote {output}")


def _check_may_leave(trace: Trace, reveal: bool) -> None:
    if trace.is_sensitive and not reveal:
        raise click.ClickException(
            f"trace {trace.trace_id} is sensitive, and a file is not sealed: --reveal exports it all the same; "
            "`--format otlp` exports its spans without any values"
        )


@command.command("diff")
@click.argument("left")
@click.argument("right")
@journal_options
@style_option
@reveal_option
def diff_command(left: str, right: str, config: Path | None, dsn: str | None, style: str, reveal: bool) -> None:
    """Say where two traces differ: in inputs, in a step, in how they ended.

    How long anything took is not looked at, and when they began only where the node asks for the time.
    """
    with the_traces(config, dsn) as traces:
        one, other = traces.find(left), traces.find(right)
        found = differences(one, other)
    if (one.is_sensitive or other.is_sensitive) and not reveal:
        from dataclasses import replace

        from vesper.cli.journal.text import SENSITIVE

        found = [
            each if each.where in (NODE, NOW) else replace(each, left=SENSITIVE, right=SENSITIVE) for each in found
        ]
    if style == "json":
        click.echo(document([{"where": each.where, "left": each.left, "right": each.right} for each in found]))
    elif not found:
        click.echo("the two did the same")
    else:
        click.echo("\n".join(difference_lines(found, ("left", "right"))))
    sys.exit(WRONG_INPUT if found else FINE)


@command.command("prune")
@journal_options
@older_than_option("Traces that began so long ago")
@node_filter_option
@yes_option
def prune_command(config: Path | None, dsn: str | None, seconds: float, node: str | None, yes: bool) -> None:
    """Delete stored traces. Those of journalled executions go with the journal: `vesper journal prune`."""
    before_us = time.time_ns() // 1000 - int(seconds * 1_000_000)
    with the_traces(config, dsn) as traces:
        nodes = the_nodes(traces, node) or (None,)
        count = sum(traces.store.prunable(before_us, each) for each in nodes)
        if not count:
            click.echo(f"no stored trace began before {time_text(before_us)}")
            return
        click.echo(f"{number(count, 'stored trace')} began before {time_text(before_us)}")
        if not yes:
            click.confirm("delete for good?", abort=True)
        pruned = sum(traces.store.prune(before_us, each) for each in nodes)
        click.echo(f"deleted {number(pruned, 'trace')}")
