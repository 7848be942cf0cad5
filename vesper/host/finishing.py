"""Finishes executions on a Host without background recovery, for commands and pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from vesper.compiler import Compiled
from vesper.config.settings import Config
from vesper.effects.settings import ConfigError
from vesper.engines.engine import EngineUnavailable
from vesper.engines.outcome import DeclaredError, EngineFault, Failed, Outcome, Returned
from vesper.engines.registry import ENGINES
from vesper.host.audit.auditing import result_of
from vesper.host.host import Host
from vesper.host.plans import MachineConflict, plans_of
from vesper.host.prepared import Recovered, compiled_from
from vesper.journal.entry_text import words
from vesper.journal.journal import Journal, JournalError, NotTaken, Recorded, Summary, UnknownExecution
from vesper.values.model import printable


def quiet_host(settings: Config, finishes: bool) -> Host:
    """Open a Host without background recovery.

    Without `finishes` it does not import the application's own effects.
    """
    quiet = replace(settings, recovery=replace(settings.recovery, enabled=False))
    return Host(quiet if finishes else replace(quiet, modules=()))


def check_can_finish(settings: Config, otherwise: str) -> None:
    """Refuse to finish executions without a configuration: without grants each would end as denied."""
    if settings.path is None:
        raise JournalError(
            "there is no vesper.toml from here upwards: without grants a finished execution ends as denied. "
            f"Name the file with --config; {otherwise}"
        )


def compiled_of(journal: Journal, recorded: Recorded) -> Compiled:
    """Return the definition with which the run began."""
    return compiled_from(journal.definition(recorded.summary.semantic_hash))


def check_equipped(host: Host, compiled: Compiled) -> None:
    """Check that custom effects and secrets are available in this process."""
    try:
        host.check_equipped(compiled.node, plans_of(compiled))
    except ConfigError as problem:
        later = "`vesper journal resolve --later` records the outcome for a process that has them"
        raise JournalError(f"{problem}. Nothing was written; {later}") from None


def resume_execution(host: Host, summary: Summary, engine: str | None) -> Recovered:
    """Finish one execution. Raises `JournalError` where an engine or the node cannot be used here."""
    chosen = engine or summary.engine
    if chosen not in ENGINES:
        raise JournalError(
            f"it began on the engine `{printable(chosen)}`, which this Vesper lacks: choose another with "
            "`vesper journal recover --engine`"
        )
    try:
        return host.resume(summary.execution, chosen)
    except EngineUnavailable as problem:
        raise JournalError(f"engine {chosen}: {problem}") from None
    except MachineConflict as problem:
        raise JournalError(str(problem)) from None


@dataclass(frozen=True, slots=True)
class Attempt:
    """The result of an attempt to finish a run."""

    summary: Summary
    text: str
    is_ended: bool = False
    is_elsewhere: bool = False
    """True where another process continues the run, or it waits."""
    is_fault: bool = False


def recover_all(host: Host, unfinished: Sequence[Summary], engine: str | None) -> Iterator[Attempt]:
    """Finish runs that a process left unfinished, one after the other."""
    for summary in unfinished:
        try:
            finished = resume_execution(host, summary, engine)
        except (NotTaken, UnknownExecution):
            yield Attempt(summary, "another process continues it", is_elsewhere=True)
        except (JournalError, ConfigError) as problem:
            yield Attempt(summary, f"cannot be finished: {printable(str(problem))}")
        else:
            if finished.is_waiting:
                yield Attempt(summary, printable(finished.why), is_elsewhere=True)
            elif finished.outcome is None:
                yield Attempt(summary, f"in doubt: {printable(finished.why)}")
            else:
                is_fault = isinstance(finished.outcome, EngineFault)
                yield Attempt(summary, outcome_text(finished.outcome), is_ended=True, is_fault=is_fault)


def outcome_text(outcome: Outcome) -> str:
    """Summarise an outcome without its values."""
    if isinstance(outcome, Returned):
        return words(outcome.kind)
    result = printable(result_of(outcome))
    return f"{words(outcome.kind)}: {result}" if isinstance(outcome, DeclaredError | Failed) else result
