"""`vesper audit`: the log of who did what, and whether it is whole."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import click

from vesper.cli.exits import WRONG_INPUT
from vesper.cli.journal.audit_file import AuditFile, event_json, export_audit
from vesper.cli.journal.open_journal import clean_errors, is_of_node, settings_of, the_journal
from vesper.cli.journal.text import document, number, table, time_text
from vesper.cli.options import journal_options, limit_option, node_filter_option, since_option, style_option
from vesper.cli.output.value_lines import value_lines
from vesper.host.performers import Performers
from vesper.journal.audit import AuditLog, verify_audit
from vesper.journal.journal import Journal
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.values.model import printable
from vesper.values.node_id import split_node_id


@click.group("audit")
def command() -> None:
    """See what the audit log says, and show that nobody changed it.

    A node writes to it with `audit_level: basic` or `detailed` under `security`; what somebody does by hand with
    `vesper journal resolve`, `prune` and `erase` stands in it too.
    """


# -- list -----------------------------------------------------------------------------------------


@command.command("list")
@journal_options
@node_filter_option
@since_option
@limit_option
@style_option
def list_command(
    config: Path | None, dsn: str | None, node: str | None, since_us: int | None, limit: int, style: str
) -> None:
    """List the lines of the log, the newest first."""
    with the_journal(config, dsn) as journal:
        events = _newest(journal, node, since_us, limit)
        if node is not None and not events:
            _check_node(journal, node)
    if style == "json":
        click.echo(document([event_json(each) for each in events]))
        return
    for line in _lines(events) if events else ["no such lines"]:
        click.echo(line)
    if len(events) == limit:
        click.echo("\nthese are the newest; --limit shows more")


def _newest(journal: Journal, node: str | None, since_us: int | None, limit: int) -> list[Mapping[str, object]]:
    kept: deque[Mapping[str, object]] = deque(maxlen=limit)
    for event in journal.audit_events():
        at_us = event.get("at_us")
        is_wanted = node is None or is_of_node(str(event.get("node_id", "")), node)
        if is_wanted and (since_us is None or (isinstance(at_us, int) and at_us >= since_us)):
            kept.append(event)
    return list(reversed(kept))


def _check_node(journal: Journal, wanted: str) -> None:
    """A name that no line has is a slip of the fingers."""
    known = {str(event.get("node_id", "")) for event in journal.audit_events()} - {""}
    if not any(is_of_node(each, wanted) for each in known):
        names = {parts[0] for each in known if (parts := split_node_id(each)) is not None}
        hint = did_you_mean(wanted, sorted(known | names))
        raise click.ClickException(
            f"no line of the audit log is of a node `{printable(wanted[:80])}`" + (f"; {hint}" if hint else "")
        )


def _lines(events: Sequence[Mapping[str, object]]) -> list[str]:
    """A row for each, and below it what a detailed one says."""
    rows = [["line", "time", "action", "result", "node", "execution"], *map(_cells, events)]
    heading, *lines = table(rows)
    found = [heading]
    for line, event in zip(lines, events, strict=True):
        fields = event.get("fields")
        shown = {printable(name): value for name, value in fields.items()} if isinstance(fields, dict) else {}
        for name in ("result", "outcome"):
            shown.pop(name, None)
        found += [line, *value_lines(shown, "    ")]
    return found


def _cells(event: Mapping[str, object]) -> list[str]:
    fields = event.get("fields")
    at_us = event.get("at_us")
    result = fields.get("result", "") if isinstance(fields, dict) else ""
    return [
        str(event["seq"]),
        time_text(at_us) if isinstance(at_us, int) else "",
        *(printable(str(each)) for each in (event.get("action", ""), result, event.get("node_id", ""))),
        printable(str(event.get("execution", ""))),
    ]


# -- verify ---------------------------------------------------------------------------------------


@command.command("verify")
@journal_options
@click.option(
    "--file",
    "exported",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Check a file that `vesper audit export` wrote instead; no journal is needed for it.",
)
def verify_command(config: Path | None, dsn: str | None, exported: Path | None) -> None:
    """Check that the log is whole: no line was changed, removed, inserted, moved or cut off.

    The first line of what is printed is the first place at which it is not; the exit code is 1 then.
    """
    if exported is None:
        with the_journal(config, dsn) as journal:
            journal.find(limit=1)  # a server that is away says nothing about the log: nobody is to be alarmed by it
            _verify(journal, "the audit log")
        return
    settings = settings_of(config, dsn)
    with clean_errors():
        # Nothing is opened: the settings say with which secret the hashes were made.
        key = Performers(replace(settings, modules=()), {}).open_journal().audit_key
        _verify(AuditFile(exported, key), printable(str(exported)))


def _verify(log: AuditLog, what: str) -> None:
    problems = verify_audit(log)
    if problems:
        click.echo("\n".join(printable(each) for each in problems))
        click.echo(f"{what} is not what was written", err=True)
        sys.exit(WRONG_INPUT)
    count, last = log.audit_head()
    click.echo(f"{what} is whole: {number(count, 'line')}" + (f", the last hash is {last}" if count else ""))
    if log.audit_key is None:
        click.echo(
            "its hashes are made without a secret: who can write to it could make all of them anew; "
            "`audit_key_secret` under [journal] closes that",
            err=True,
        )


# -- export ---------------------------------------------------------------------------------------


@command.command("export")
@journal_options
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="The file; - is standard output.")
@click.option(
    "--format", "style", type=click.Choice(["jsonl", "csv"]), help="csv where OUTPUT ends so, jsonl unless said."
)
def export_command(config: Path | None, dsn: str | None, output: Path | None, style: str | None) -> None:
    """Write the whole log to a file that can be checked on its own: `vesper audit verify --file FILE`."""
    if style is None:
        style = "csv" if output is not None and output.suffix.lower() == ".csv" else "jsonl"
    with the_journal(config, dsn) as journal:
        if output is None or str(output) == "-":
            stream = sys.stdout.buffer
            export_audit(journal, stream, style, time.time_ns() // 1000)
            stream.flush()
            return
        try:
            count = _to_file(journal, output, style)
        except OSError as error:
            raise click.ClickException(f"cannot write {printable(str(output))}: {error.strerror or error}") from None
    click.echo(f"wrote {number(count, 'line')} to {printable(str(output))}")


def _to_file(journal: Journal, output: Path, style: str) -> int:
    """The file is there as a whole or not at all, and for its owner alone."""
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
