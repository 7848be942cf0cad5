"""`vesper run` of a node without effects, on one engine or on both."""

from __future__ import annotations

import click

from vesper.cli.load_node import load_programs
from vesper.cli.run.options import BOTH, RunRequest
from vesper.cli.run.output import exit_code, outcome_text, print_both, print_explanation, print_json
from vesper.engines.outcome import Returned


def run_pure(request: RunRequest) -> int:
    """Call the node, print the outcome, and return the exit code."""
    compiled, inputs, now, options = request.compiled, request.inputs, request.now, request.options
    programs = load_programs(compiled, options.engines, options.is_sandboxed)
    if options.record is not None:
        raise click.UsageError(f"{compiled.node.node_id} has no effects to record: omit --record")
    limits = options.limits_for(compiled)
    trace_id = None
    if options.is_traced:
        from vesper.cli.run.traced import run_traced

        outcomes, trace_id = run_traced(compiled, programs, inputs, now, limits, options.config)
    else:
        outcomes = {name: program.call(inputs, now, limits) for name, program in programs.items()}
    explanation = None
    if options.is_explained:
        from vesper.cli.run.explained import explain_run

        explanation = explain_run(request, limits)
    if options.style == "md":
        pass  # the explanation has the outcome
    elif options.style == "json":
        print_json(compiled, outcomes, trace_id, explanation, options.reveal)
    elif options.engine == BOTH:
        print_both(compiled, programs, outcomes, inputs, now, limits, options.reveal)
    else:
        (outcome,) = outcomes.values()
        text = outcome_text(compiled, outcome, inputs, limits, reveals=options.reveal)
        click.echo(text, err=not isinstance(outcome, Returned))
    print_explanation(explanation, options.style)
    if options.style == "text" and trace_id is not None:
        click.echo(f"\ntrace {trace_id}")
    return exit_code(outcomes)
