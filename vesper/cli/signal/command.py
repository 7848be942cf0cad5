"""`vesper signal`: send a signal to waiting runs."""

from __future__ import annotations

from pathlib import Path

import click

from vesper.cli.interrupts.values import report_refusals, value_of_json
from vesper.cli.journal.open_journal import current_user, find_execution, open_journal
from vesper.cli.options import by_option, journal_options, style_option


@click.command("signal")
@click.argument("target", nargs=-1, required=True, metavar="[EXECUTION] NAME")
@click.option("--match", metavar="TEXT", help="Send it to every run that waits with this `match`.")
@click.option("--value", metavar="JSON", help="Value of the type that the step declares; null by default.")
@click.option("--key", metavar="KEY", help="Send it once: a repeated key sends nothing.")
@journal_options
@by_option
@style_option
def command(
    target: tuple[str, ...],
    match: str | None,
    value: str | None,
    key: str | None,
    config: Path | None,
    dsn: str | None,
    by: str | None,
    style: str,
) -> None:
    """Send the signal NAME to a run, or to all runs that wait for it with --match.

    A run that does not wait for it yet finds it when it does. The value is checked against the `returns` of the step; a
    wrong one is refused, and the run keeps waiting. `vesper serve` or `vesper work` continues the run.

    Exit codes: 0 sent, or sent before with this --key, 1 refused, 2 usage.
    """
    from vesper.cli.output.outcomes import json_text
    from vesper.host.waiting_runs import send_signal

    if len(target) != (2 if match is None else 1):
        raise click.UsageError("write `vesper signal EXECUTION NAME`, or `vesper signal --match TEXT NAME`")
    who = by or current_user()
    with open_journal(config, dsn) as journal, report_refusals():
        execution = find_execution(journal, target[0]) if match is None else None
        given = None if value is None else value_of_json(value)
        sent = send_signal(journal, execution, target[-1], given, key, match, who)
    if style == "json":
        click.echo(json_text({"woken": list(sent.woken), "kept": sent.is_kept, "repeat": sent.is_repeat}))
    elif sent.is_repeat:
        click.echo("sent before with this key: nothing was sent")
    else:
        for each in sent.woken:
            click.echo(f"woken: {each}")
        if sent.is_kept:
            receiver = "the run" if execution else "the first run that waits for it"
            click.echo(f"kept: no run waits for it yet; {receiver} receives it later")
