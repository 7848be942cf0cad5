"""Finishes executions on a Host without background recovery."""

from __future__ import annotations

from dataclasses import replace

import click

from vesper.cli.exits import FINE, OUR_BUG, WRONG_INPUT
from vesper.cli.journal.resolve import compiled_of
from vesper.cli.journal.text import words
from vesper.cli.output.outcomes import outcome_lines
from vesper.compiler import Compiled
from vesper.config.settings import Config
from vesper.effects.settings import ConfigError
from vesper.engines.engine import EngineUnavailable
from vesper.engines.outcome import DeclaredError, EngineFault, Failed, Outcome, Returned
from vesper.engines.registry import ENGINES
from vesper.host.auditing import result_of
from vesper.host.host import Host
from vesper.host.plans import MachineConflict, plans_of
from vesper.host.prepared import Recovered
from vesper.journal.journal import NotTaken, Recorded, Summary
from vesper.values.model import printable


def quiet_host(settings: Config, finishes: bool) -> Host:
    """Open a Host without background recovery.

    Without `finishes` it does not import the application's own effects.
    """
    quiet = replace(settings, recovery=replace(settings.recovery, enabled=False))
    return Host(quiet if finishes else replace(quiet, modules=()))


def check_can_finish(settings: Config, otherwise: str) -> None:
    """Refuse to finish executions without grants: each would end as denied."""
    if settings.path is None:
        raise click.ClickException(
            "there is no vesper.toml from here upwards: without grants a finished execution ends as denied. "
            f"Name the file with --config; {otherwise}"
        )


def check_equipped(host: Host, compiled: Compiled) -> None:
    """Check that the application's own effects and the secrets are available here."""
    try:
        host.check_equipped(compiled.node, plans_of(compiled))
    except ConfigError as problem:
        raise click.ClickException(
            f"{problem}. Nothing was written; --later records the outcome for a process that has them"
        ) from None


def resume_execution(host: Host, summary: Summary, engine: str | None) -> Recovered:
    """Finish one execution; an engine or a node that cannot be used here ends the command."""
    chosen = engine or summary.engine
    if chosen not in ENGINES:
        raise click.ClickException(
            f"it began on the engine `{printable(chosen)}`, which this Vesper lacks: choose another with --engine"
        )
    try:
        return host.resume(summary.execution, chosen)
    except EngineUnavailable as problem:
        raise click.ClickException(f"engine {chosen}: {problem}") from None
    except MachineConflict as problem:
        raise click.ClickException(str(problem)) from None


def finish(host: Host, recorded: Recorded, engine: str | None) -> int:
    """Finish a resolved execution, print its outcome, and return the exit code."""
    summary = recorded.summary
    try:
        finished = resume_execution(host, summary, engine)
    except NotTaken as reason:
        click.echo(f"another process continues it: {reason}")
        return FINE
    if finished.outcome is None:
        click.echo(f"it cannot continue: {printable(finished.why)}", err=True)
        return WRONG_INPUT
    if summary.is_sensitive:
        click.echo(f"ended: {outcome_text(finished.outcome)}; `vesper journal show --reveal` shows its values")
    else:
        inputs = recorded.entries[0].entry.body.get("inputs")
        compiled = compiled_of(host.journal, recorded)
        click.echo(f"ended: {outcome_text(finished.outcome)}")
        click.echo(outcome_lines(compiled, finished.outcome, inputs if isinstance(inputs, dict) else {}))
    return OUR_BUG if isinstance(finished.outcome, EngineFault) else FINE


def outcome_text(outcome: Outcome) -> str:
    """Summarise an outcome without its values."""
    if isinstance(outcome, Returned):
        return words(outcome.kind)
    result = printable(result_of(outcome))
    return f"{words(outcome.kind)}: {result}" if isinstance(outcome, DeclaredError | Failed) else result
