"""`vesper replay`."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TextIO

import click

from vesper.cli.exits import FINE, OUR_BUG, WRONG_INPUT
from vesper.cli.journal.open_journal import journal_options, settings_of, style_option
from vesper.cli.journal.text import document
from vesper.cli.load_node import nodes_option
from vesper.cli.traces.open_traces import clean_trace_errors, traces_of
from vesper.cli.traces.text import show_json
from vesper.cli.write_file import replace_text
from vesper.engines.registry import ENGINES
from vesper.replay.changes import ChangeRejected, SourceChange, find_step, read_setting
from vesper.replay.fixing import FixRejected
from vesper.replay.live import LiveHost
from vesper.replay.rerun import UnrecordedRequest
from vesper.replay.session import ReplayInterrupted, Session, read_answers
from vesper.replay.shell import Shell
from vesper.repository.locate import NodeNotFound, locate
from vesper.trace.model import Trace
from vesper.values.json_forms import forms_of_json
from vesper.values.json_mistake import JsonMistake, place_at


@click.command("replay")
@click.argument("trace")
@journal_options
@nodes_option
@click.option("--engine", type=click.Choice([*ENGINES]), help="Where to replay it; as it was recorded, unless said.")
@click.option("--from", "from_step", metavar="STEP", help="Run again from this step, and ask nothing.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="STEP.PARAM=VALUE",
    help="Change it and run again: `3.timeout=60s`, `charge.response={…}`, `charge.fails=timeout`, `input.amount=5`.",
)
@click.option(
    "--responses",
    type=click.File(encoding="utf-8"),
    help='A JSON object: what steps are answered, {"charge": {"returns": …}} or {"fails": CODE}.',
)
@click.option("--live", is_flag=True, help="Perform what the trace has no answer for. Asks first; new keys.")
@click.option("--apply", "applies", is_flag=True, help="Write what --set changed into the node, after the corpus.")
@click.option("--save", is_flag=True, help="Keep what was run again as a trace.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--reveal", is_flag=True, help="Show what a sensitive trace holds.")
@style_option
def command(
    trace: str,
    config: Path | None,
    dsn: str | None,
    root: Path,
    engine: str | None,
    from_step: str | None,
    settings: tuple[str, ...],
    responses: TextIO | None,
    live: bool,
    applies: bool,
    save: bool,
    yes: bool,
    reveal: bool,
    style: str,
) -> None:
    """Replay an execution from its trace; look into it, change it, run on from any step, and make a fix of it.

    Nothing is performed: the node is told what it was told then, and a request that was not recorded is an error. Then
    commands are read (`help` lists them), from a terminal or from any other standard input, until it ends. With --from
    or --set it is run again as they say, and nothing is read.

    Exit codes: 0 it replayed as recorded (or what was run again returned), 1 what was run again did not return, or
    something is wrong, 2 usage, 3 it did not replay as recorded.
    """
    is_batch = from_step is not None or bool(settings)
    if (applies or save) and not is_batch:
        raise click.UsageError("--apply and --save go with --set or --from; at the prompt, type `apply` or `save`")
    if style == "json" and not is_batch and live:
        raise click.UsageError("--live goes with --set or --from where JSON is printed")
    if live and style == "json" and not yes:
        raise click.UsageError("--live asks first, and JSON leaves no room for it: add --yes")
    if applies and style == "json" and not yes:
        raise click.UsageError("--apply asks first, and JSON leaves no room for it: add --yes")
    with _clean_errors(), traces_of(configured := settings_of(config, dsn)) as traces:
        found = traces.find(trace)
        session = Session.open(found, engine, traces=traces)
        if responses is not None:
            session.answers = read_answers(session.compiled, _responses(responses), _json_text)
        if live:
            session.open_host = lambda: LiveHost(configured)

        def node_file() -> Path:
            return _node_file(found, root)

        shell = Shell(
            session, _read, click.echo if style == "text" else _nothing, node_file, replace_text,
            reveals=reveal, is_live=live, asks_first=not yes,
        )  # fmt: skip
        shell.print_opening()
        if is_batch:
            code = _batch(session, shell, from_step, settings, applies=applies, saves=save, yes=yes)
        else:
            code = FINE if session.replayed.difference is None else OUR_BUG
            if style == "text":
                shell.loop()
        if style == "json":
            click.echo(document(_json(session, shell, reveal)))
    sys.exit(code)


def _batch(
    session: Session,
    shell: Shell,
    from_step: str | None,
    settings: tuple[str, ...],
    *,
    applies: bool,
    saves: bool,
    yes: bool,
) -> int:
    """`--from` and `--set`: runs it again once, and says what came of it."""
    steps = []
    for text in settings:
        change, step = read_setting(session.trace, session.compiled, text)
        session.change(change)
        steps.append(step)
    start = None if from_step is None else find_step(session.trace, from_step)
    if start is None and steps and all(each is not None for each in steps):
        start = min((each for each in steps if each is not None), key=lambda each: each.number)
    if applies and not any(isinstance(each, SourceChange) for each in session.changes):
        # Said before it is run: with --live that would be for real, and for nothing.
        raise FixRejected("nothing in the node's text is changed: --apply goes with a parameter, `--set 3.timeout=60s`")
    if not shell.rerun(start, session.engine):
        return WRONG_INPUT
    if saves:
        shell.save()
    if applies and not shell.apply(is_agreed=yes):
        return WRONG_INPUT
    return FINE if session.has_succeeded else WRONG_INPUT


def _json(session: Session, shell: Shell, reveal: bool) -> dict[str, object]:
    found: dict[str, object] = {
        "trace_id": session.trace.trace_id,
        "engine": session.engine,
        "is_same": session.replayed.difference is None,
        "difference": session.replayed.difference,
    }
    if session.forked is not None:
        hides = session.trace.is_sensitive and not reveal
        found["again"] = show_json(session.forked, reveal)
        found["differences"] = [
            {"where": each.where, **({} if hides else {"original": each.left, "now": each.right})}
            for each in session.difference()
        ]
        found["fix"] = None if session.fix is None else session.fix_diff()
    if shell.report is not None:
        found["corpus"] = {"told": str(shell.report), "problems": list(shell.report.problems)}
        found["applied"] = None if shell.applied is None else str(shell.applied)
    return found


@contextlib.contextmanager
def _clean_errors() -> Iterator[None]:
    try:
        with clean_trace_errors():
            yield
    except (ChangeRejected, FixRejected, UnrecordedRequest, ReplayInterrupted) as problem:
        raise click.ClickException(str(problem)) from None


def _read(prompt: str) -> str | None:
    """A line of standard input; one that no terminal echoes is printed, so that a transcript has it."""
    if sys.stdin is None:  # cron and services have none
        click.echo(prompt.rstrip())
        return None
    if sys.stdin.isatty():
        with contextlib.suppress(ImportError):
            import readline  # noqa: F401  # lines can be edited, and come again
        try:
            return input(prompt)
        except EOFError:
            click.echo("")
            return None
        except KeyboardInterrupt:
            click.echo("")
            raise ReplayInterrupted from None
    line = sys.stdin.readline()
    if not line:
        click.echo(prompt.rstrip())
        return None
    click.echo(f"{prompt}{line.rstrip()}")
    return line.rstrip("\r\n")


def _node_file(trace: Trace, root: Path) -> Path:
    """Where the node of a trace stands: where it stood, or where its id is found now."""
    stood = Path(trace.definition.path)
    if stood.is_file():
        return stood
    try:
        return locate(trace.node_id, root)
    except NodeNotFound:
        return stood


def _responses(file: TextIO) -> dict[str, object]:
    try:
        text = file.read()
    except UnicodeDecodeError:
        raise click.UsageError(f"--responses {file.name}: JSON text is written in UTF-8, and this is none") from None
    try:
        found = forms_of_json(text)
    except JsonMistake as mistake:
        place = place_at(text, mistake.offset)
        raise click.UsageError(f"--responses {file.name}:{place.line}:{place.column}: {mistake.what}") from None
    if not isinstance(found, dict):
        raise click.UsageError(f"--responses {file.name}: a JSON object is expected: step to answer")
    return found


def _json_text(value: object) -> str:
    """A value of a JSON file as JSON again; numbers keep their places."""
    match value:
        case Decimal():
            return str(value)
        case dict():
            return "{" + ", ".join(f"{json.dumps(name)}: {_json_text(each)}" for name, each in value.items()) + "}"
        case list():
            return f"[{', '.join(map(_json_text, value))}]"
        case _:
            return json.dumps(value)


def _nothing(_: str) -> None:
    """Where JSON is printed, nothing else is."""
