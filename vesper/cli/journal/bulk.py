"""`vesper journal cancel` and `retry`: many runs at once, selected by an expression, at a rate."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from vesper.cli.exits import FINE, WRONG_INPUT
from vesper.cli.journal.open_journal import (
    current_user,
    read_journal_settings,
    report_journal_errors,
    require_journal,
)
from vesper.cli.journal.text import list_lines
from vesper.cli.options import by_option, journal_options, why_option
from vesper.cli.output.progress import Progress
from vesper.config.settings import Config
from vesper.host.finishing import quiet_host
from vesper.host.host import Host
from vesper.journal.journal import Summary
from vesper.journal.moments import number
from vesper.queues.bulk import RUN_FIELDS, Done, RunFilter, WrongFilter, cancel_all, retry_all, select
from vesper.values.model import printable

_RATE = re.compile(r"([0-9]+(?:\.[0-9]+)?)/(s|m|h)", re.ASCII)
_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600}
_MAX_SHOWN = 20


def _read_rate(_context: click.Context, _parameter: click.Parameter, text: str | None) -> float | None:
    """Return a rate such as `200/s` in runs a second."""
    if text is None:
        return None
    found = _RATE.fullmatch(text)
    if found is None or float(found[1]) <= 0:
        raise click.BadParameter(f"`{printable(text[:40])}` is no rate: write `200/s`, `30/m` or `100/h`")
    return float(found[1]) / _UNIT_SECONDS[found[2]]


def _bulk_options(decorated: click.decorators.FC) -> click.decorators.FC:
    for option in (
        by_option,
        click.option("--limit", type=click.IntRange(1), help="At most so many, the oldest first."),
        click.option("--dry-run", is_flag=True, help="Only list what would be changed."),
        click.option("--rate", "per_second", metavar="N/s", callback=_read_rate, help="At most so many a second."),
        click.option(
            "--where", "expression", required=True, metavar="EXPR", help=f"Expression over {', '.join(RUN_FIELDS)}."
        ),
        journal_options,
    ):
        decorated = option(decorated)
    return decorated


@click.command("retry")
@_bulk_options
def retry_command(
    config: Path | None,
    dsn: str | None,
    expression: str,
    per_second: float | None,
    dry_run: bool,
    limit: int | None,
    by: str | None,
) -> None:
    """Queue failed executions again: new runs with the same inputs and definition.

    An execution is retried once, however often this is called: interrupt it and call it again to continue. A retry that
    fails is an execution of its own.

        vesper journal retry --where "node == 'payment_v1' AND code == 'unavailable'" --rate 200/s
    """
    settings = read_journal_settings(config, dsn)

    def act(host: Host, found: list[Summary]) -> Iterator[Done]:
        return retry_all(host, found, per_second, by or current_user())

    sys.exit(_change(settings, expression, True, limit, dry_run, act, "retried"))


@click.command("cancel")
@_bulk_options
@why_option(is_required=True)
def cancel_command(
    config: Path | None,
    dsn: str | None,
    expression: str,
    per_second: float | None,
    dry_run: bool,
    limit: int | None,
    by: str | None,
    why: str,
) -> None:
    """Cancel executions that are queued or wait.

    A queued one ends; the wait of a waiting one fails with `cancelled`, which its node may handle.
    """
    settings = read_journal_settings(config, dsn)

    def act(host: Host, found: list[Summary]) -> Iterator[Done]:
        return cancel_all(host, found, per_second, by or current_user(), why)

    sys.exit(_change(settings, expression, False, limit, dry_run, act, "cancelled"))


def _change(
    settings: Config,
    expression: str,
    is_retry: bool,
    limit: int | None,
    is_dry: bool,
    act: Callable[[Host, list[Summary]], Iterator[Done]],
    verb: str,
) -> int:
    """Select executions, change each, and return the exit code."""
    require_journal(settings)
    try:
        wanted = RunFilter(expression)
        with report_journal_errors(), quiet_host(settings, finishes=False) as host:
            found = select(host.journal, wanted, is_retry, limit)
            if is_dry:
                shown = list_lines(found[:_MAX_SHOWN], host.now_us()) if found else []
                more = [f"… and {len(found) - _MAX_SHOWN:,} more"] if len(found) > _MAX_SHOWN else []
                click.echo("\n".join([*shown, *more, f"{number(len(found), 'execution')} would be {verb}"]))
                return FINE
            done = []
            with Progress("executions", len(found)) as progress:
                for each in act(host, found):
                    done.append(each)
                    progress.advance()
    except WrongFilter as problem:
        raise click.ClickException(str(problem)) from None
    problems = [each for each in done if each.problem is not None]
    for each in problems[:_MAX_SHOWN]:
        click.echo(f"{each.summary.execution}: {printable(each.problem or '')}", err=True)
    changed = sum(each.execution is not None for each in done)
    left = len(done) - changed - len(problems)
    known = f"; {number(left, 'execution')} had been before" if left else ""
    click.echo(f"{verb} {number(changed, 'execution')}{known}")
    return WRONG_INPUT if problems else FINE
