"""`vesper debug`."""

from __future__ import annotations

import shutil
import sys
from contextlib import ExitStack
from typing import Any

import click

from vesper.cli.debug.options import DebugOptions, check_combination, debug_options
from vesper.cli.debug.subjects import choose_subject, open_live_world, open_session
from vesper.cli.debug.terminal import print_lines, read_script, run_commands, terminal_style
from vesper.cli.exits import FINE, OUR_BUG, WRONG_INPUT
from vesper.debug.breakpoints import BadBreakpoint
from vesper.debug.commands import Commands
from vesper.debug.session import Session
from vesper.trace.expressions import BadExpression


@click.command("debug")
@debug_options
def command(**given: Any) -> None:
    """Step through a node on both engines, forwards and backwards.

    No effect is performed. Effects are answered by a case of the node (the first one by default; --case, --input and
    --json change that), by a recorded run (--trace), or by you (--answer, --fail, `answer` at the prompt). --live
    performs each effect for real when you step past it, granted and journalled as in any run; it starts now (or at
    --now) and uses only the inputs that you give.

    --break-on takes contract_violation, state_transition:paid->refunded (`*` is any state), divergence, step:NAME,
    effect:http, FILE:LINE, or an expression such as 'input.amount > 10000'; each may end with `if EXPRESSION`. Without
    NODE it applies to all nodes of running services: they do not stop, they keep a trace of each matching run (`vesper
    traces list`).

    Exit codes: 0 success, 1 the inputs or a breakpoint are wrong, 2 usage, 3 the engines differ.
    """
    options = DebugOptions(**given)
    check_combination(options)
    if options.serves_editor:
        from vesper.cli.debug.dap_server import serve

        sys.exit(serve(options.node, options.root, options.port, options.live, options.config))
    if options.watches_services:
        from vesper.cli.debug.services import watch_services

        sys.exit(watch_services(options.config, options.root, options.break_on, options.is_listed, options.clear))
    sys.exit(_debug(options))


def _debug(options: DebugOptions) -> int:
    """Run one session in the terminal, and return the exit code."""
    subject = choose_subject(options)
    script = None if options.command_file is None else read_script(options.command_file)
    with ExitStack() as stack:
        world = stack.enter_context(open_live_world(subject, options.config)) if options.live else None
        session = open_session(subject, world)
        columns = lambda: options.width or shutil.get_terminal_size((80, 24)).columns  # noqa: E731  # read at each stop
        commands = Commands(session, subject.manual, columns, terminal_style())
        _add_breakpoints(session, options.break_on)
        print_lines(commands.begin(runs=bool(options.break_on)))
        run_commands(commands, script, options.execute)
        if world is not None:
            world.finish(session.leader.outcome)
    if session.divergence() is not None:
        return OUR_BUG
    # A refused command fails a script. At the prompt its message is enough.
    is_scripted = bool(options.execute) or script is not None
    return WRONG_INPUT if is_scripted and commands.has_refused else FINE


def _add_breakpoints(session: Session, texts: tuple[str, ...]) -> None:
    try:
        for text in texts:
            session.add_breakpoint(text)
    except (BadBreakpoint, BadExpression) as problem:
        click.echo(str(problem), err=True)
        sys.exit(WRONG_INPUT)
