"""`vesper run --engine auto`: the mode of the node selects the engines, as in a service.

The run is a request like any other: the comparison is in the store before the command ends. Without a reachable store
Python answers, as in a service. The answer is printed also then, because its effects may have been performed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from vesper.cli.exits import OUR_BUG
from vesper.cli.load_node import has_effects
from vesper.cli.migrate.open_store import report_store_errors
from vesper.cli.output.outcomes import json_text
from vesper.cli.run.options import AUTO, RunRequest
from vesper.cli.run.output import exit_code, outcome_text, outcomes_document, print_explanation
from vesper.cli.settings import read_settings
from vesper.compiler import Compiled
from vesper.engines.engine import EngineUnavailable
from vesper.engines.outcome import Outcome, Returned
from vesper.migration.compare.divergence import Divergence
from vesper.migration.control.modes import Mode
from vesper.migration.router.router import RoutedProgram
from vesper.migration.router.routes import Routes

_START_SECONDS = 30.0
"""Time for the process of the direct engine to start, where it has its own."""
_MEANING = {
    Mode.PYTHON_ONLY: "Python answers, without a comparison",
    Mode.SHADOW_DIRECT: "Python answers, and the direct engine follows",
    Mode.CANARY_DIRECT: "both engines run before a canary caller is answered; Python answers the others",
    Mode.DUAL_VERIFY: "Python answers, and the direct engine follows",
    Mode.DIRECT_ONLY: "the direct engine answers on paths with enough evidence",
}


class RoutedRun:
    """One routed request: its mode, and the divergences that it found."""

    def __init__(self, program: RoutedProgram) -> None:
        self.program = program
        self.mode = program.live.local.mode
        """The mode at the start of the request."""
        self.divergences: list[str] = []
        """Fingerprints found by this run. Findings of other processes in the same store are not included."""
        program.live.witnesses.append(self._add)

    def _add(self, divergence: Divergence) -> None:
        if divergence.fingerprint not in self.divergences:
            self.divergences.append(divergence.fingerprint)

    @property
    def text(self) -> str:
        return f"mode {self.mode.value}: {_MEANING[self.mode]}"


def run_routed(request: RunRequest) -> int:
    """Run the node as a service would, print the outcome and the mode, and return the exit code."""
    compiled, options = request.compiled, request.options
    execution: str | None = None
    why: tuple[str, ...] = ()
    with open_route(compiled, options.config) as run:
        if not has_effects(compiled):
            outcome = run.program.call(request.inputs, request.now, options.limits)
        else:
            from vesper.cli.run.hosted import run_hosted

            programs = {AUTO: run.program}
            inputs, now, limits = request.inputs, request.now, options.limits
            ran = run_hosted(compiled, programs, inputs, now, limits, options)
            outcome, execution, why = ran.outcome, ran.execution, ran.why
    explanation = None
    if options.is_explained:
        from vesper.cli.run.explained import explain_run

        explanation = explain_run(request, options.limits, execution)
    if options.style == "json":
        document = outcomes_document(compiled, {AUTO: outcome}, why, options.reveal)
        if explanation is not None:
            document["explanation"] = explanation.to_json()
        document |= {"mode": run.mode.value, "divergences": run.divergences}
        click.echo(json_text(document if execution is None else {**document, "execution": execution}))
    elif options.style == "text":
        _print_text(request, run, outcome, execution, why)
    print_explanation(explanation, options.style)
    return OUR_BUG if run.divergences else exit_code({AUTO: outcome})


def _print_text(
    request: RunRequest, run: RoutedRun, outcome: Outcome, execution: str | None, why: tuple[str, ...]
) -> None:
    is_error = not isinstance(outcome, Returned)
    options = request.options
    text = outcome_text(request.compiled, outcome, request.inputs, options.limits, why, options.reveal)
    click.echo(text, err=is_error)
    click.echo("\n" + run.text, err=is_error)
    if execution is not None:
        click.echo(f"execution {execution}", err=is_error)
    for each in run.divergences:
        click.echo(f"THE ENGINES DISAGREE: `vesper divergences show {each}`", err=True)


@contextmanager
def open_route(compiled: Compiled, config: Path | None) -> Iterator[RoutedRun]:
    """Route the node; on exit wait for the comparison and report it to the store."""
    with report_store_errors():
        routes = Routes(read_settings(config))
        try:
            run = RoutedRun(routes.program(compiled))
            if not routes.wait_until_ready(_START_SECONDS):
                click.echo("warning: the process of the direct engine did not start: nothing is compared", err=True)
            yield run
        except EngineUnavailable as problem:
            raise click.UsageError(f"engine {AUTO}: {problem}") from None
        finally:
            routes.close()
