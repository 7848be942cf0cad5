"""A recorded run for `vesper debug --trace`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from vesper.cli.journal_open import missing_file, settings_of
from vesper.effects.settings import ConfigError
from vesper.host.performers import Performers
from vesper.journal.errors import JournalError
from vesper.trace.library import Traces
from vesper.trace.model import Trace, TraceError
from vesper.trace.store import TraceStore


def find_trace(wanted: str, config: Path | None) -> Trace:
    """The trace of an id, of the start of one, or of a file. Looking creates and performs nothing."""
    try:
        settings = settings_of(config, None)
        performers = Performers(replace(settings, modules=()), {})
        journal = None if missing_file(settings) is not None else performers.open_journal()
        try:
            return Traces(TraceStore(settings.tracing(), performers.key_ring()), journal).find(wanted)
        finally:
            if journal is not None:
                journal.close()
    except (TraceError, JournalError, ConfigError) as problem:
        raise click.ClickException(str(problem)) from None
