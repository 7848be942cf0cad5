"""`vesper audit`: the audit log, its verification and its export."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, cast

import click

from vesper.cli.exits import WRONG_INPUT
from vesper.cli.journal.open_journal import open_journal, read_journal_settings, report_journal_errors
from vesper.cli.journal.text import document, table
from vesper.cli.options import ReadPath, journal_options, limit_option, node_filter_option, since_option, style_option
from vesper.cli.output.terminal import EscapedBytes
from vesper.cli.output.value_lines import value_lines
from vesper.host.performers import Performers
from vesper.journal.audit import AuditLog, verify_audit
from vesper.journal.audit_file import AuditFile, event_json, export_audit
from vesper.journal.audit_search import AuditFilter, details_of_line, result_of_line, search_audit
from vesper.journal.journal import Journal
from vesper.journal.moments import number, time_text
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.values.model import printable
from vesper.values.node_id import is_of_node, split_node_id


@click.group("audit")
def command() -> None:
    """Show, verify and export the audit log.

    A node writes to the log with `audit_level: basic` or `detailed` under `security`. `vesper journal resolve`, `prune`
    and `erase` write to it too.
    """


# -- list -----------------------------------------------------------------------------------------


@command.command("list")
@journal_options
@node_filter_option
@click.option(
    "--actor", metavar="NAME", help="Only lines of this actor or user id, or of manual changes by this person."
)
@since_option
@limit_option
@style_option
def list_command(
    config: Path | None,
    dsn: str | None,
    node: str | None,
    actor: str | None,
    since_us: int | None,
    limit: int,
    style: str,
) -> None:
    """List lines of the log, newest first."""
    with open_journal(config, dsn) as journal:
        events = search_audit(journal, AuditFilter(node, actor, since_us=since_us), limit).events
        if node is not None and not events:
            _check_node(journal, node)
    if style == "json":
        click.echo(document([event_json(each) for each in events]))
        return
    for line in _lines(events) if events else ["no matching lines"]:
        click.echo(line)
    if len(events) == limit:
        click.echo("\nonly the newest are shown; --limit shows more")


def _check_node(journal: Journal, wanted: str) -> None:
    """End the command where no line has this node."""
    known = {str(event.get("node_id", "")) for event in journal.audit_events()} - {""}
    if not any(is_of_node(each, wanted) for each in known):
        names = {parts[0] for each in known if (parts := split_node_id(each)) is not None}
        hint = did_you_mean(wanted, sorted(known | names))
        raise click.ClickException(
            f"the audit log has no line of a node `{printable(wanted[:80])}`" + (f"; {hint}" if hint else "")
        )


def _lines(events: Sequence[Mapping[str, object]]) -> list[str]:
    """Render a row for each line, followed by the fields of a detailed one."""
    rows = [["line", "time", "actor", "action", "result", "node", "execution"], *map(_cells, events)]
    if not any(actor for _, _, actor, *_ in rows[1:]):
        rows = [[*cells[:2], *cells[3:]] for cells in rows]
    heading, *lines = table(rows)
    found = [heading]
    for line, event in zip(lines, events, strict=True):
        found += [line, *value_lines(details_of_line(event), "    ")]
    return found


def _cells(event: Mapping[str, object]) -> list[str]:
    at_us = event.get("at_us")
    texts = [printable(str(event.get(name, ""))) for name in ("actor", "action", "node_id", "execution")]
    time_cell = time_text(at_us) if isinstance(at_us, int) else ""
    return [str(event["seq"]), time_cell, *texts[:2], result_of_line(event), *texts[2:]]


# -- verify ---------------------------------------------------------------------------------------


@command.command("verify")
@journal_options
@click.option(
    "--file",
    "exported",
    type=ReadPath(),
    help="Verify a file of `vesper audit export` instead of the journal.",
)
def verify_command(config: Path | None, dsn: str | None, exported: Path | None) -> None:
    """Check the log for changes.

    Finds lines that were changed, removed, inserted, moved or cut off. With a damaged log the exit code is 1, and the
    first line printed names the first damaged place.
    """
    if exported is None:
        with open_journal(config, dsn) as journal:
            journal.find(limit=1)  # an unreachable server is an error of its own, not a damaged log
            _verify(journal, "the audit log")
        return
    settings = read_journal_settings(config, dsn)
    with report_journal_errors():
        # Reads only the secret of the hashes from the settings; opens no journal.
        key = Performers(replace(settings, modules=()), {}).open_journal().audit_key
        _verify(AuditFile(exported, key), printable(str(exported)))


def _verify(log: AuditLog, what: str) -> None:
    problems = verify_audit(log)
    if problems:
        click.echo("\n".join(printable(each) for each in problems))
        click.echo(f"{what} was changed after it was written", err=True)
        sys.exit(WRONG_INPUT)
    count, last = log.audit_head()
    click.echo(f"{what} is intact: {number(count, 'line')}" + (f", the last hash is {last}" if count else ""))
    if log.audit_key is None:
        click.echo(
            "the hashes use no secret, so a writer of the log could recompute them; set `audit_key_secret` under "
            "[journal] to prevent that",
            err=True,
        )


# -- export ---------------------------------------------------------------------------------------


@command.command("export")
@journal_options
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Output file; - is standard output."
)
@click.option(
    "--format",
    "style",
    type=click.Choice(["jsonl", "csv"]),
    help="By default csv for a file that ends with .csv, otherwise jsonl.",
)
def export_command(config: Path | None, dsn: str | None, output: Path | None, style: str | None) -> None:
    """Write the whole log to a file.

    `vesper audit verify --file FILE` checks the file without the journal.
    """
    if style is None:
        style = "csv" if output is not None and output.suffix.lower() == ".csv" else "jsonl"
    with open_journal(config, dsn) as journal:
        if output is None or str(output) == "-":
            export_audit(journal, cast(BinaryIO, EscapedBytes()), style, time.time_ns() // 1000)
            sys.stdout.flush()
            return
        try:
            count = _export_file(journal, output, style)
        except OSError as error:
            raise click.ClickException(f"cannot write {printable(str(output))}: {error.strerror or error}") from None
    click.echo(f"wrote {number(count, 'line')} to {printable(str(output))}")


def _export_file(journal: Journal, output: Path, style: str) -> int:
    """Write the file completely or not at all, readable by its owner only."""
    handle, name = tempfile.mkstemp(prefix=f".{output.name}.", dir=output.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            count = export_audit(journal, file, style, time.time_ns() // 1000)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(output)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise
    return count
