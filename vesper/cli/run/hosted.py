"""`vesper run` of a node with effects: its Host performs them, once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

import click

from vesper.cli.journal.open_journal import clean_errors, settings_of
from vesper.compiler import Compiled
from vesper.effects.settings import ConfigError
from vesper.engines.engine import Limits, Program
from vesper.engines.outcome import Denied, Failed, Outcome
from vesper.host.host import Host, Prepared
from vesper.host.plans import MachineConflict
from vesper.host.running import InDoubt, Running
from vesper.journal.entry import Kind, Stored
from vesper.journal.journal import JournalError
from vesper.migration.shadow.journal_replay import ReplayResult, follow
from vesper.testing.recorder import NotRecorded, Recorder


class Hosted:
    """One run for the command line: what it came to, under which name, and whether the second engine agrees."""

    def __init__(
        self,
        outcome: Outcome,
        execution: str,
        followed: Mapping[str, ReplayResult],
        not_recorded: str | None = None,
        is_known: bool = True,
        why: tuple[str, ...] = (),
    ) -> None:
        self.outcome = outcome
        self.execution = execution
        self.trace_id = execution if is_known else None
        """A journalled execution is its own trace; None where it never began."""
        self.followed = followed
        self.not_recorded = not_recorded
        """Why no case was written, where one was asked for."""
        self.why = why
        """What an outcome does not say of itself: what the other side said of a request that failed, and all that is
        not granted, with the reasons."""


def host_or_exit(config: Path | None) -> Host:
    """The Host of the file that was named, or of the nearest one."""
    settings = settings_of(config, None)
    with clean_errors():
        return Host(settings)


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
    begun: list[Running] = []
    with host_or_exit(config) as real:
        try:
            host = real if record is None else Recorder(real, record)
            prepared = host.prepare(compiled, programs[leader], leader)
            if not prepared.refused:  # otherwise it does nothing anyway
                real.check_equipped(compiled.node, prepared.plans)
            try:
                ran = host.run(prepared, inputs, now, limits, begun.append)
            except NotRecorded as problem:
                if problem.ran is None:
                    raise
                ran, not_recorded = problem.ran, str(problem)
            followed: dict[str, ReplayResult] = {}
            is_known = host.knows(ran.execution)
            stored = host.journal.read(ran.execution).entries if is_known else ()
            if followers and is_known:
                entries = [each.entry for each in stored]
                followed = {name: follow(programs[name], entries, limits) for name in followers}
            why = tuple(_why(ran.outcome, prepared, stored, real))
        except InDoubt as doubt:
            raise click.ClickException(f"{doubt}; `vesper journal list --status in_doubt` lists such runs") from None
        except (JournalError, ConfigError, NotRecorded, MachineConflict) as problem:
            # The Host notes what is to be known of a run that has begun.
            raise click.ClickException("\n".join([str(problem), *getattr(problem, "__notes__", ())])) from None
        except KeyboardInterrupt:
            raise click.ClickException(_interrupted(begun)) from None
    return Hosted(ran.outcome, ran.execution, followed, not_recorded, is_known, why)


def _interrupted(begun: Sequence[Running]) -> str:
    """What is left of a run that somebody stopped. Before its first commit nothing was changed, and nobody knows it."""
    left = next((each.execution for each in begun if each.has_committed), None)
    if left is None:
        return "interrupted before anything was changed"
    return (
        f"interrupted: execution {left} has begun, and may have changed something. Do not begin it anew: "
        f"`vesper journal recover` finishes it, `vesper journal show {left[:18]}` shows how far it is"
    )


def _why(outcome: Outcome, prepared: Prepared, stored: Sequence[Stored], host: Host) -> Iterator[str]:
    """Engines know the code of a failure and the first capability that is missing; the Host knows more."""
    match outcome:
        case Failed(code, at, _) if at is not None:
            failed = (each.entry.body for each in reversed(stored) if each.entry.kind is Kind.FAILED)
            last = next(failed, None)
            # A failure of the node's own may come after one that it dealt with.
            if last is not None and last.get("code") == code and last.get("message"):
                yield str(last["message"])
        case Denied():
            yield from (f"{capability}: {why}" for capability, why in prepared.refused.items())
            path = host.config.path
            yield "there is no vesper.toml from here upwards" if path is None else f"the grants are those of {path}"
        case _:
            return
