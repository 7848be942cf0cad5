"""`vesper debug`."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TextIO

import click

from vesper.cli.debug.recorded_run import find_trace
from vesper.cli.exits import FINE, OUR_BUG, WRONG_INPUT
from vesper.cli.load_node import compile_or_exit, find_node, nodes_option
from vesper.cli.run.command import print_refusal, read_inputs, read_start
from vesper.compiler import Compiled
from vesper.debug.breakpoints import BadBreakpoint
from vesper.debug.columns import Style, plain_style
from vesper.debug.commands import PROMPT, Commands
from vesper.debug.responses import Live, ManualAnswers
from vesper.debug.session import Session
from vesper.debug.start import (
    NoSuchCase,
    Subject,
    case_of,
    subject_for_real,
    subject_of_case,
    subject_of_trace,
    unfit_inputs,
)
from vesper.debug.view import outcome_rows
from vesper.engines.engine import Engine, EngineUnavailable
from vesper.engines.registry import PAIR, REFERENCE
from vesper.language.check.cases import Case
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.trace.expressions import BadExpression

_COLOURS = {"differs": "\x1b[1;31m", "title": "\x1b[1m", "dim": "\x1b[2m"}


@click.command("debug")
@click.argument("node", required=False)
@nodes_option
@click.option("--comparative", is_flag=True, help="Both engines, side by side.")
@click.option("--engine", type=click.Choice(list(PAIR)), help=f"One engine alone; {REFERENCE} unless said.")
@click.option("--input", "-i", "pairs", multiple=True, metavar="NAME=VALUE", help="An input; give one for each.")
@click.option("--json", "json_file", type=click.File(encoding="utf-8"), help="All inputs as a JSON object; - is stdin.")
@click.option("--now", "start", metavar="TIMESTAMP", help="When the execution starts.")
@click.option("--case", "case_name", metavar="NAME", help="Inputs and answers of a case; the first one, unless said.")
@click.option("--trace", "trace_id", metavar="TRACE", help="Inputs and answers of a recorded run.")
@click.option("--reveal", is_flag=True, help="Show what a sensitive trace holds.")
@click.option("--answer", "answers", multiple=True, metavar="STEP=JSON", help="What a step is answered with.")
@click.option("--fail", "failures", multiple=True, metavar="STEP=CODE", help="Let a step fail.")
@click.option("--live", is_flag=True, help="Perform effects for real, each when you go past it.")
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The vesper.toml for --live, --trace and running services; the nearest upwards, unless said.",
)
@click.option("--break-on", "break_on", multiple=True, metavar="WHERE", help="Where to stop; may be given often.")
@click.option("--commands", "command_file", type=click.File(encoding="utf-8"), help="Commands, one on each line.")
@click.option("--execute", "-x", "execute", multiple=True, metavar="COMMAND", help="One command; may be given often.")
@click.option("--width", type=click.IntRange(20, 1000), help="Columns; those of the terminal, unless said.")
@click.option("--dap", is_flag=True, help="Speak the Debug Adapter Protocol on stdin and stdout.")
@click.option("--port", type=click.IntRange(0, 65535), help="Speak it on this port of 127.0.0.1 instead.")
@click.option("--list", "is_listed", is_flag=True, help="Without NODE: which breakpoints running services have.")
@click.option("--clear", is_flag=True, help="Without NODE: take all breakpoints of running services away.")
def command(
    node: str | None,
    root: Path,
    comparative: bool,
    engine: str | None,
    pairs: tuple[str, ...],
    json_file: TextIO | None,
    start: str | None,
    case_name: str | None,
    trace_id: str | None,
    reveal: bool,
    answers: tuple[str, ...],
    failures: tuple[str, ...],
    live: bool,
    config: Path | None,
    break_on: tuple[str, ...],
    command_file: TextIO | None,
    execute: tuple[str, ...],
    width: int | None,
    dap: bool,
    port: int | None,
    is_listed: bool,
    clear: bool,
) -> None:
    """Step through a node on both engines, forwards and backwards.

    Nothing is performed: what effects answer comes from a case of the node (the first one, unless --case, --input or
    --json say otherwise), from a recorded run (--trace), or from you (--answer, --fail, `answer` at the prompt). --live
    performs effects for real, one when you go past it, granted and journalled as ever: it begins now, unless --now says
    otherwise, and with the inputs that you give alone.

    --break-on takes contract_violation, state_transition:paid->refunded (`*` is any state), divergence, step:NAME,
    effect:http, FILE:LINE, or an expression such as 'input.amount > 10000'; each may have `if EXPRESSION` behind it.
    Without NODE it is for all nodes of running services: they do not stop, they keep a trace of each run that meets it
    (`vesper traces list`).

    Exit codes: 0 fine, 1 the inputs or a breakpoint are wrong, 2 usage, 3 the engines differ.
    """
    of_session: dict[str, object] = {
        "--comparative": comparative, "--engine": engine, "--input": pairs, "--json": json_file, "--now": start,
        "--case": case_name, "--reveal": reveal, "--answer": answers, "--fail": failures, "--commands": command_file,
        "--execute": execute, "--width": width,
    }  # fmt: skip
    if dap or port is not None:
        from vesper.cli.debug.dap_server import serve

        others: dict[str, object] = {"--trace": trace_id, "--break-on": break_on, "--list": is_listed, "--clear": clear}
        _leave_away(of_session | others, "an editor says in its launch what is debugged and where it stops")
        sys.exit(serve(node, root, port, live, config))
    if node is None and trace_id is None:
        from vesper.cli.debug.services import watch_services

        if not (break_on or is_listed or clear):
            raise click.UsageError("give a NODE to debug, or --break-on for the nodes of running services")
        _leave_away(of_session | {"--live": live}, "without NODE this is about running services, which do not stop")
        sys.exit(watch_services(config, root, break_on, is_listed, clear))
    if is_listed or clear:
        raise click.UsageError("--list and --clear are about running services: leave NODE and --trace away")
    if comparative and engine is not None:
        raise click.UsageError("--comparative runs both engines: leave --engine away")
    if live and (answers or failures):
        raise click.UsageError(
            "with --live the world answers, and the journal says what: leave --answer and --fail away"
        )
    chosen = [PAIR[name] for name in (PAIR if comparative else [engine or REFERENCE])]
    if trace_id is not None:
        if node is not None or pairs or json_file or start is not None or case_name is not None or live:
            raise click.UsageError("--trace has a node, inputs, a start and answers of its own: leave the others away")
        subject = subject_of_trace(find_trace(trace_id, config, reveal), chosen)
    else:
        assert node is not None
        if reveal:
            raise click.UsageError("--reveal is about a recorded run: it goes with --trace")
        compiled = compile_or_exit(find_node(node, root))
        asked = _for_real if live else _asked_for
        subject = asked(compiled, chosen, pairs, json_file, start, case_name)
    _say(subject.manual, answers, failures)
    script = None if command_file is None else _lines_of(command_file)
    with ExitStack() as stack:
        world = stack.enter_context(_live(subject, config)) if live else None
        session = _session(subject, world)
        columns = lambda: width or shutil.get_terminal_size((80, 24)).columns  # noqa: E731  # asked at each stop
        commands = Commands(session, subject.manual, columns, _style())
        try:
            for text in break_on:
                session.add_breakpoint(text)
        except (BadBreakpoint, BadExpression) as problem:
            click.echo(str(problem), err=True)
            sys.exit(WRONG_INPUT)
        _print(commands.begin(runs=bool(break_on)))
        _converse(commands, script, execute)
        if world is not None:
            world.finish(session.leader.outcome)
    if session.divergence() is not None:
        sys.exit(OUR_BUG)
    # Who typed it has seen what was said; a script that asks for what there is not should not go on as if it had it.
    is_scripted = bool(execute) or script is not None
    sys.exit(WRONG_INPUT if is_scripted and commands.has_refused else FINE)


def _leave_away(options: dict[str, object], why: str) -> None:
    """Refuses what would do nothing here: whoever gives it expects something of it."""
    given = [name for name, value in options.items() if value not in (None, False, ())]
    if given:
        raise click.UsageError(f"{why}: leave {', '.join(given)} away")


# -- what is debugged -----------------------------------------------------------------------------


def _asked_for(
    compiled: Compiled,
    engines: list[Engine],
    pairs: tuple[str, ...],
    json_file: TextIO | None,
    start: str | None,
    case_name: str | None,
) -> Subject:
    """Inputs, start and answers: of a case, of the command line, or of the first case with some inputs changed."""
    case = _case(compiled, case_name) if case_name is not None or json_file is None else None
    given = _given(compiled, pairs, json_file)
    return subject_of_case(compiled, engines, case, given, None if start is None else read_start(start))


def _for_real(
    compiled: Compiled,
    engines: list[Engine],
    pairs: tuple[str, ...],
    json_file: TextIO | None,
    start: str | None,
    case_name: str | None,
) -> Subject:
    """The same for an execution whose effects are performed."""
    given = _given(compiled, pairs, json_file)
    case = None if case_name is None else _case(compiled, case_name)
    subject = subject_for_real(compiled, engines, case, given, read_start(start))
    if unfit_inputs(subject):
        code = print_refusal(compiled, [REFERENCE], dict(subject.inputs), {}, "text")
        click.echo("--live takes nothing from the first case: give --input, --json or --case", err=True)
        sys.exit(code)
    return subject


def _case(compiled: Compiled, wanted: str | None) -> Case | None:
    try:
        return case_of(compiled, wanted)
    except NoSuchCase as problem:
        raise click.UsageError(str(problem)) from None


def _given(compiled: Compiled, pairs: tuple[str, ...], json_file: TextIO | None) -> dict[str, object]:
    given, unread = read_inputs(compiled, pairs, json_file)
    if unread:
        told = ", ".join(f"{name}: {kind.value}" for name, kind in unread.items())
        click.echo(f"the inputs do not fit {compiled.node.node_id}: {told}", err=True)
        sys.exit(WRONG_INPUT)
    unknown = [name for name in given if name not in {each.name for each in compiled.node.inputs}]
    if unknown:
        hint = did_you_mean(unknown[0], [each.name for each in compiled.node.inputs])
        raise click.UsageError(f"{compiled.node.node_id} has no input `{unknown[0]}`" + (f"; {hint}" if hint else ""))
    return given


def _say(said: ManualAnswers, answers: tuple[str, ...], failures: tuple[str, ...]) -> None:
    for option, listed, say in (("--answer", answers, said.set_answer), ("--fail", failures, said.fail)):
        for text in listed:
            step, equals, value = text.partition("=")
            if not equals:
                raise click.UsageError(f"{option} {text}: write STEP=…")
            try:
                say(step, value)
            except ValueError as problem:
                raise click.UsageError(f"{option} {text}: {problem}") from None


@contextmanager
def _live(subject: Subject, config: Path | None) -> Iterator[Live]:
    """The real world for the length of a session; what is not finished then is given up, and the journal says so."""
    from vesper.cli.run.hosted import host_or_exit
    from vesper.effects.settings import ConfigError

    with host_or_exit(config) as host:
        try:
            world = Live(host, subject.compiled, subject.engines[0].name, subject.inputs, subject.now)
        except ConfigError as problem:
            raise click.ClickException(str(problem)) from None
        try:
            yield world
        finally:
            ran = world.finish(None)
            if ran is not None:
                click.echo(f"execution {ran.execution}: {outcome_rows(ran.outcome)['']}")


def _session(subject: Subject, world: Live | None) -> Session:
    try:
        return subject.session(world)
    except EngineUnavailable as problem:
        raise click.UsageError(str(problem)) from None


# -- the terminal ---------------------------------------------------------------------------------


def _style() -> Style:
    """Colours on a terminal that has them; NO_COLOR takes them away, and the signs stay."""
    if os.environ.get("NO_COLOR") or not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
        return plain_style
    return lambda text, kind: f"{_COLOURS[kind]}{text}\x1b[0m"


def _lines_of(file: TextIO) -> list[str]:
    """All of a script, before anything is begun: one that cannot be read is not half obeyed."""
    try:
        return file.read().splitlines()
    except UnicodeDecodeError:
        raise click.UsageError(f"--commands {file.name}: commands are text in UTF-8, and this is none") from None


def _converse(commands: Commands, script: list[str] | None, execute: tuple[str, ...]) -> None:
    """Commands from the options, from a file, or from whoever types; each is shown where nobody types it."""
    if script is None and not execute and sys.stdin is None:
        script = []  # cron and services have none: nobody says anything
    is_typed = script is None and not execute and sys.stdin.isatty()
    for line in _typed() if is_typed else _scripted(script, execute):
        if not is_typed:
            click.echo(f"\n{PROMPT}{line}\n" if line.strip() else "")
        _print(commands.run(line))
        if commands.is_over:
            return
        if is_typed:
            click.echo()


def _scripted(script: list[str] | None, execute: tuple[str, ...]) -> Iterator[str]:
    yield from execute
    if script is not None or not execute:
        for line in sys.stdin if script is None else script:
            if not line.startswith("#"):
                yield line.rstrip("\n")


def _typed() -> Iterator[str]:
    with suppress(ImportError):
        import readline  # noqa: F401  # lines can be edited and repeated, where the system has it
    click.echo()
    while True:
        try:
            yield input(PROMPT)
        except EOFError:
            click.echo()
            return
        except KeyboardInterrupt:
            click.echo("\n`quit` ends the session")


def _print(lines: list[str]) -> None:
    for line in lines:
        click.echo(line)
