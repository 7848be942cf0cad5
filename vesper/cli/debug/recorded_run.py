"""A recorded run for `vesper debug --trace`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from vesper.cli.journal.open_journal import missing_file, read_journal_settings
from vesper.effects.settings import ConfigError
from vesper.engines.engine import EngineUnavailable
from vesper.host.performers import Performers
from vesper.journal.errors import JournalError
from vesper.trace.library import Traces
from vesper.trace.model import Trace, TraceError
from vesper.trace.store import TraceStore


def find_trace(wanted: str, config: Path | None, reveals: bool) -> Trace:
    """Find a trace by id, by a prefix of one, or by file. Refuses a sensitive trace without `reveals`."""
    trace = _read_trace(wanted, config)
    if trace.is_sensitive and not reveals:
        raise click.ClickException(f"trace {trace.trace_id} is sensitive: --reveal shows its values")
    return trace


def _read_trace(wanted: str, config: Path | None) -> Trace:
    try:
        settings = read_journal_settings(config, None)
        performers = Performers(replace(settings, modules=()), {})
        journal = None if missing_file(settings) is not None else performers.open_journal()
        try:
            return Traces(TraceStore(settings.trace_settings(), performers.key_ring()), journal).find(wanted)
        finally:
            if journal is not None:
                journal.close()
    except (TraceError, JournalError, ConfigError, EngineUnavailable) as problem:
        raise click.ClickException(str(problem)) from None
