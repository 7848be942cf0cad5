"""Opens the traces of a command, and finds nodes in them. Problems end the command with exit code 1."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import click

from vesper.cli.exits import WRONG_INPUT
from vesper.cli.journal.open_journal import missing_file, read_journal_settings
from vesper.config.settings import Config
from vesper.effects.settings import ConfigError
from vesper.engines.engine import EngineUnavailable
from vesper.host.performers import Performers
from vesper.journal.journal import JournalError
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.trace.expressions import BadExpression
from vesper.trace.library import Traces
from vesper.trace.model import TraceError
from vesper.trace.store import TraceStore
from vesper.values.model import printable
from vesper.values.node_id import is_of_node, split_node_id


@contextmanager
def report_trace_errors() -> Iterator[None]:
    """End the command with the message of a problem of a trace, the journal or the settings."""
    try:
        yield
    except BadExpression as problem:
        click.echo(str(problem), err=True)  # the message has a caret, so it gets no prefix
        sys.exit(WRONG_INPUT)
    except (TraceError, JournalError, ConfigError, EngineUnavailable) as problem:
        raise click.ClickException(str(problem)) from None


@contextmanager
def open_configured_traces(config: Path | None, dsn: str | None) -> Iterator[Traces]:
    """Open the traces of the settings for reading; create neither a store nor a journal."""
    with report_trace_errors(), traces_of(read_journal_settings(config, dsn)) as traces:
        yield traces


@contextmanager
def traces_of(settings: Config) -> Iterator[Traces]:
    """Open the traces without importing the application's own modules."""
    performers = Performers(replace(settings, modules=()), {})
    journal = None if missing_file(settings) is not None else performers.open_journal()
    try:
        yield Traces(TraceStore(settings.trace_settings(), performers.key_ring()), journal)
    finally:
        if journal is not None:
            journal.close()


def find_node_ids(traces: Traces, wanted: str | None) -> tuple[str, ...] | None:
    """Return the ids that `--node` selects: an id, or every version of a name. None selects all."""
    if wanted is None:
        return None
    known = traces.node_ids()
    found = tuple(each for each in known if is_of_node(each, wanted))
    if not found:
        names = {parts[0] for each in known if (parts := split_node_id(each)) is not None}
        hint = did_you_mean(wanted, [*known, *sorted(names)])
        raise click.ClickException(f"no trace of a node `{printable(wanted[:80])}`" + (f"; {hint}" if hint else ""))
    return found
