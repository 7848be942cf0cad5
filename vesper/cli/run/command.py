"""`vesper run`."""

from __future__ import annotations

import sys
from typing import Any

import click

from vesper.cli.exits import FINE, WRONG_INPUT
from vesper.cli.load_node import compile_or_exit, find_lead, has_effects
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

    `--record` writes the run as a case to paste into the node, or to replay (`vesper.testing.Replay`); sensitive values
    become placeholders of the same shape, and secrets appear as `secret:NAME`. Error messages and `--explain` mask
    sensitive values. `--reveal` writes and prints them as they are. `--trace` prints the id of a trace for
    `vesper replay`.

    A scalar input is spelled as in a node (`-i amount=9.99`), a list, map or record as JSON (`-i 'tags=["a", "b"]'`).
    `--json` takes all inputs as one object; its numbers are exact. `--format json` prints values in the same form, so
    outputs can be inputs of another run.

    A run that waits (`sleep`, `wait_for`, `interrupt`) prints what it waits for, with exit code 0: `vesper serve` or
    `vesper work` continues it. `--wait` stays and continues it here.

    `--batch FILE -o OUT` runs the node on every row of a table. OUT has a column for each output, and a column `error`
    that is empty for rows with outputs. `--resume` continues an interrupted batch. Several files, a folder or a pattern
    run in parts; where OUT is a folder it has a file for each part. `--on ray` runs the parts on Ray.

    Exit codes: 0 the node returned (or met its --case; with --batch, on every row), 1 any other outcome, or the inputs
    do not fit, 2 usage, 3 a bug in Vesper (an engine is at fault, or two engines disagree).
    """
    options = RunOptions(**given)
    check_combination(context)
    path = find_lead(options.node, options.root, options.config)
    if options.batch:
        from vesper.cli.run.batch import run_batch

        sys.exit(run_batch(path, options))
    compiled = compile_or_exit(path, overlay=options.overlay)
    if options.case_name is not None:
        from vesper.cli.run.cases import run_case

        sys.exit(run_case(compiled, options))
    inputs, unread = read_inputs(compiled, options.pairs, options.json_file)
    now = read_start(options.start)
    if unread:
        sys.exit(print_refusal(compiled, options.engines, inputs, unread, options.style, options.reveal))
    sys.exit(_run(RunRequest(compiled, inputs, now, options)))


def _run(request: RunRequest) -> int:
    """Run the node and return the exit code.

    The engine option and the node's effects select a pure, routed or hosted run.
    """
    if not has_effects(request.compiled) and request.options.engine != AUTO:
        from vesper.cli.run.pure import run_pure

        return run_pure(request)
    from vesper.host.waiting import RunWaits

    try:
        if request.options.engine == AUTO:
            from vesper.cli.run.routed import run_routed

            return run_routed(request)
        from vesper.cli.run.hosted import run_with_effects

        return run_with_effects(request)
    except RunWaits as waits:
        from vesper.cli.run.hosted import NOT_RECORDED
        from vesper.cli.run.output import print_wait

        print_wait(waits, request.options.style)
        if request.options.record is None:
            return FINE
        click.echo(f"error: not recorded: {NOT_RECORDED}", err=True)
        return WRONG_INPUT
