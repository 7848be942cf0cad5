"""`vesper run` of a node with effects: its Host performs them, once."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import click

from vesper.compiler import Compiled
from vesper.effects.settings import ConfigError
from vesper.engines.engine import Limits, Program
from vesper.engines.outcome import Outcome
from vesper.host.config import default_config, find_config, read_config
from vesper.host.host import Host
from vesper.host.recording import NotRecorded, Recorder
from vesper.host.running import InDoubt
from vesper.journal.journal import JournalError
from vesper.migration.follow.following import Followed, follow


class Hosted:
    """One run for the command line: what it came to, under which name, and whether the second engine agrees."""

    def __init__(
        self,
        outcome: Outcome,
        execution: str,
        followed: Mapping[str, Followed],
        not_recorded: str | None = None,
        is_known: bool = True,
    ) -> None:
        self.outcome = outcome
        self.execution = execution
        self.trace_id = execution if is_known else None
        """A journalled execution is its own trace; None where it never began."""
        self.followed = followed
        self.not_recorded = not_recorded
        """Why no case was written, where one was asked for."""


def host_or_exit(config: Path | None) -> Host:
    """The Host of the file that was named, or of the nearest one."""
    try:
        found = config or find_config()
        return Host(default_config(Path.cwd()) if found is None else read_config(found))
    except ConfigError as problem:
        raise click.ClickException(str(problem)) from None


def run_hosted(
    compiled: Compiled,
    programs: Mapping[str, Program],
    inputs: Mapping[str, object],
    now: datetime,
    limits: Limits,
    config: Path | None,
    record: Path | None = None,
) -> Hosted:
    """Runs it on the first engine. A second one is fed the records of the first, and performs nothing. `record` is the
    file that the run is written into as a case."""
    leader, *followers = programs
    not_recorded = None
    with host_or_exit(config) as real:
        try:
            host = real if record is None else Recorder(real, record)
            try:
                ran = host.run(host.prepare(compiled, programs[leader], leader), inputs, now, limits)
            except NotRecorded as problem:
                if problem.ran is None:
                    raise
                ran, not_recorded = problem.ran, str(problem)
            followed: dict[str, Followed] = {}
            is_known = host.knows(ran.execution)
            if followers and is_known:
                entries = [each.entry for each in host.journal.read(ran.execution).entries]
                followed = {name: follow(programs[name], entries, limits) for name in followers}
        except InDoubt as doubt:
            raise click.ClickException(f"{doubt}; `vesper journal list --status in_doubt` lists such runs") from None
        except (JournalError, ConfigError, NotRecorded) as problem:
            raise click.ClickException(str(problem)) from None
    return Hosted(ran.outcome, ran.execution, followed, not_recorded, is_known)
