"""`vesper run`."""

from __future__ import annotations

import sys
from typing import Any

import click

from vesper.cli.load_node import compile_or_exit, find_node, has_effects
from vesper.cli.run.inputs import print_refusal, read_inputs, read_start
from vesper.cli.run.options import AUTO, RunOptions, RunRequest, check_combination, run_options


@click.command("run")
@run_options
@click.pass_context
def command(context: click.Context, /, **given: Any) -> None:
    """Run a node and print its outcome.

    Effects are performed as vesper.toml configures and grants them, and are journalled. With `--engine both` the first
    engine performs them, and the second one receives the recorded answers. With `--engine auto` the run is routed like
    a request of a service: the mode of the node selects the engine, and the comparison counts as evidence.

    `--record` writes the run as a case to paste into the node, or to replay (`vesper.testing.Replay`); sensitive inputs
    are masked, and secrets appear as `secret:NAME`. `--trace` prints the id of a trace for `vesper replay`.

    A scalar input is spelled as in a node (`-i amount=9.99`), a list, map or record as JSON (`-i 'tags=["a", "b"]'`).
    `--json` takes all inputs as one object; its numbers are exact. `--format json` prints values in the same form, so
    outputs can be inputs of another run.

    `--batch FILE -o OUT` runs the node on every row of a table. OUT has a column for each output, and a column `error`
    that is empty for rows with outputs. `--resume` continues an interrupted batch.

    Exit codes: 0 the node returned (or met its --case; with --batch, on every row), 1 any other outcome, or the inputs
    do not fit, 2 usage, 3 a bug in Vesper (an engine is at fault, or two engines disagree).
    """
    options = RunOptions(**given)
    check_combination(context)
    path = find_node(options.node, options.root)
    if options.batch is not None:
        from vesper.cli.run.batch import run_batch

        sys.exit(run_batch(path, options.batch, options))
    compiled = compile_or_exit(path, overlay=options.overlay)
    if options.case_name is not None:
        from vesper.cli.run.cases import run_case

        sys.exit(run_case(compiled, options))
    inputs, unread = read_inputs(compiled, options.pairs, options.json_file)
    now = read_start(options.start)
    if unread:
        sys.exit(print_refusal(compiled, options.engines, inputs, unread, options.style))
    sys.exit(_run(RunRequest(compiled, inputs, now, options)))


def _run(request: RunRequest) -> int:
    """Select the kind of run by the engine option and the effects of the node."""
    if request.options.engine == AUTO:
        from vesper.cli.run.routed import run_routed

        return run_routed(request)
    if has_effects(request.compiled):
        from vesper.cli.run.hosted import run_with_effects

        return run_with_effects(request)
    from vesper.cli.run.pure import run_pure

    return run_pure(request)
