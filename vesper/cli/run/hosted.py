"""`vesper run` of a node with effects. The Host performs them once, also with two engines."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vesper.cli.engine_names import engine_label
from vesper.cli.exits import OUR_BUG, WRONG_INPUT
from vesper.cli.journal.open_journal import read_journal_settings, report_journal_errors
from vesper.cli.load_node import load_programs
from vesper.cli.output.outcomes import json_text
from vesper.cli.run.options import RunOptions, RunRequest
from vesper.cli.run.output import exit_code, outcome_text, outcomes_document, print_explanation
from vesper.compiler import Compiled
from vesper.effects.settings import ConfigError
from vesper.engines.engine import Limits, Program
from vesper.engines.outcome import Denied, Failed, Outcome, Returned
from vesper.host.host import Host
from vesper.host.in_doubt import InDoubt
from vesper.host.keyed_runs import outcome_with_reason
from vesper.host.masking import SENSITIVE, is_sensitive
from vesper.host.plans import MachineConflict
from vesper.host.prepared import Prepared, Ran
from vesper.host.waiting import RunWaits
from vesper.host.waiting_runs import ended_run
from vesper.journal.journal import JournalError
from vesper.migration.shadow.journal_replay import ReplayResult, follow
from vesper.testing.recorder import NotRecorded, Recorder

if TYPE_CHECKING:
    from vesper._direct import Running
    from vesper.api.explanation.model import Explanation

NOT_RECORDED = "the run left memory to wait; `vesper traces to-test EXECUTION` writes a case of it when it has ended"
_POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class HostedRun:
    """A finished run on a Host, with the comparison of the other engines."""

    outcome: Outcome
    execution: str
    followed: Mapping[str, ReplayResult]
    not_recorded: str | None
    """Why `--record` wrote no case, if so."""
    trace_id: str | None
    """A journalled execution is its own trace; None where the node never began."""
    why: tuple[str, ...]
    """Details that the outcome lacks: the message of a failed request, or the reasons of missing grants."""

    @property
    def difference(self) -> str | None:
        return next((each.difference for each in self.followed.values() if each.difference), None)


def run_with_effects(request: RunRequest) -> int:
    """Run the node on its Host, print the outcome, and return the exit code."""
    options = request.options
    programs = load_programs(request.compiled, options.engines, options.is_sandboxed)
    ran = run_hosted(
        request.compiled,
        programs,
        request.inputs,
        request.now,
        options.limits,
        options,
    )
    leader = options.engines[0]
    explanation = None
    if options.is_explained and ran.trace_id is not None:
        from vesper.cli.run.explained import explain_run

        explanation = explain_run(request, options.limits, ran.execution)
    if options.style == "json":
        _print_json(request, ran, leader, explanation)
    elif options.style == "text" or explanation is None:
        _print_text(request, ran, leader)
    print_explanation(explanation, options.style)
    if options.record is not None and ran.not_recorded is not None:
        click.echo(f"error: not recorded: {ran.not_recorded}", err=True)
    elif options.record is not None and options.style == "text":
        click.echo(f"recorded in {options.record}", err=not isinstance(ran.outcome, Returned))
    if ran.difference:
        return OUR_BUG
    return WRONG_INPUT if ran.not_recorded is not None else exit_code({leader: ran.outcome})


def _print_json(request: RunRequest, ran: HostedRun, leader: str, explanation: Explanation | None) -> None:
    document = outcomes_document(request.compiled, {leader: ran.outcome}, ran.why, request.options.reveal)
    if explanation is not None:
        document["explanation"] = explanation.to_json()
    document["execution"] = ran.execution
    if request.options.is_traced:
        document["trace_id"] = ran.trace_id
    if ran.followed:
        document["agree"] = ran.difference is None
    if request.options.record is not None:
        document["recorded"] = ran.not_recorded is None
    click.echo(json_text(document))


def _print_text(request: RunRequest, ran: HostedRun, leader: str) -> None:
    is_error = not isinstance(ran.outcome, Returned)
    options = request.options
    text = outcome_text(request.compiled, ran.outcome, request.inputs, options.limits, ran.why, options.reveal)
    click.echo(text, err=is_error)
    click.echo(f"\nexecution {ran.execution}", err=is_error)
    if ran.trace_id is not None and not isinstance(ran.outcome, Returned | Denied):
        click.echo(f"`vesper journal show {ran.execution[:18]}` shows its requests and their answers", err=True)
    if request.options.is_traced and ran.trace_id is not None:
        click.echo(f"trace {ran.trace_id}")
    elif request.options.is_traced:
        click.echo("the node never began, so there is no trace", err=True)
    for name, followed in ran.followed.items():
        label = engine_label(name)
        if followed.difference is None:
            click.echo(f"{label} agrees with {engine_label(leader)}, on the records")
        else:
            click.echo(f"THE ENGINES DISAGREE: {label}: {followed.difference}")


def host_or_exit(config: Path | None) -> Host:
    """Open the Host of the settings; a problem with them ends the command."""
    settings = read_journal_settings(config, None)
    with report_journal_errors():
        return Host(settings)


def run_hosted(
    compiled: Compiled,
    programs: Mapping[str, Program],
    inputs: Mapping[str, object],
    now: datetime,
    limits: Limits,
    options: RunOptions,
) -> HostedRun:
    """Run the node on the first engine; the others receive its records and perform nothing.

    Raises `RunWaits` unless the command waits for the end.
    """
    leader, *followers = programs
    record = options.record
    not_recorded = None
    begun: list[Running] = []
    with host_or_exit(options.config) as real:
        try:
            host = real if record is None else Recorder(real, record, reveals=options.reveal)
            prepared = host.prepare(compiled, programs[leader], leader)
            if not prepared.refused:  # a refused run performs nothing
                real.check_equipped(compiled.node, prepared.plans)
            try:
                ran = host.run(prepared, inputs, now, limits, begun.append)
            except NotRecorded as problem:
                if problem.ran is None:
                    raise
                ran, not_recorded = problem.ran, str(problem)
            except RunWaits as wait:
                if not options.waits:
                    raise
                click.echo(f"{wait.description} (execution {wait.execution})", err=True)
                ran = _wait_for_end(real, wait.execution)
                not_recorded = None if record is None else NOT_RECORDED
            followed: dict[str, ReplayResult] = {}
            is_known = host.knows(ran.execution)
            stored = host.journal.read(ran.execution).entries if is_known else ()
            if followers and is_known:
                entries = [each.entry for each in stored]
                followed = {name: follow(programs[name], entries, limits) for name in followers}
            why = tuple(_explain(ran.outcome, prepared, real, options.reveal))
        except InDoubt as doubt:
            raise click.ClickException(f"{doubt}; `vesper journal list --status in_doubt` lists such runs") from None
        except (JournalError, ConfigError, NotRecorded, MachineConflict) as problem:
            # The Host adds notes about a run that has begun.
            raise click.ClickException("\n".join([str(problem), *getattr(problem, "__notes__", ())])) from None
        except KeyboardInterrupt:
            raise click.ClickException(_interruption_text(begun)) from None
    return HostedRun(ran.outcome, ran.execution, followed, not_recorded, ran.execution if is_known else None, why)


def _wait_for_end(host: Host, execution: str) -> Ran:
    """Stay until the run has ended; the keeper of this process continues it."""
    while (recorded := ended_run(host, execution)) is None:
        time.sleep(_POLL_SECONDS)
    return Ran(execution, outcome_with_reason(recorded))


def _interruption_text(begun: Sequence[Running]) -> str:
    """Describe the state of an interrupted run. Before its first commit nothing was changed or journalled."""
    left = next((each.execution for each in begun if each.has_committed), None)
    if left is None:
        return "interrupted before anything was changed"
    return (
        f"interrupted: execution {left} has begun and may have performed effects. Do not start it again: "
        f"`vesper journal recover` finishes it, `vesper journal show {left[:18]}` shows its progress"
    )


def _explain(outcome: Outcome, prepared: Prepared, host: Host, reveals: bool) -> Iterator[str]:
    """Yield details that engines do not have: the message of a failed request, the reasons of each refusal."""
    match outcome:
        case Failed() if outcome.why:
            # The message may repeat any part of the request and of its answer.
            yield outcome.why if reveals or not is_sensitive(prepared.compiled) else SENSITIVE
        case Denied():
            yield from (f"{capability}: {why}" for capability, why in prepared.refused.items())
            path = host.config.path
            yield "there is no vesper.toml from here upwards" if path is None else f"the grants are those of {path}"
        case _:
            return
