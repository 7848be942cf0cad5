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

from vesper.cli.engine_names import EngineChoice
from vesper.cli.exits import FINE, OUR_BUG, WRONG_INPUT
from vesper.cli.journal.open_journal import read_journal_settings
from vesper.cli.journal.text import document
from vesper.cli.options import ReadFile, journal_options, nodes_option, reveal_option, style_option, yes_option
from vesper.cli.traces.open_traces import report_trace_errors, traces_of
from vesper.cli.traces.text import show_json
from vesper.replay.changes import ChangeRejected, SourceChange, find_step, read_setting
from vesper.replay.file_change import find_change
from vesper.replay.fixing import FixRejected
from vesper.replay.live import LiveHost
from vesper.replay.rerun import UnrecordedRequest
from vesper.replay.session import ReplayInterrupted, Session, read_answers
from vesper.replay.shell import Shell, ShellOptions
from vesper.repository.locate import NodeNotFound, locate
from vesper.storage.write_file import replace_text
from vesper.trace.model import Trace
from vesper.values.json_mistake import JsonMistake, place_at
from vesper.values.strict_json import forms_of_json


@click.command("replay")
@click.argument("trace")
@journal_options
@nodes_option
@click.option("--engine", type=EngineChoice(), help="Engine to replay on; by default the recorded one.")
@click.option("--from", "from_step", metavar="STEP", help="Rerun from this step, without a prompt.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="STEP.PARAM=VALUE",
    help="Change and rerun: `3.timeout=60s`, `charge.response={…}`, `charge.fails=timeout`, `input.amount=5`.",
)
@click.option(
    "--responses",
    type=ReadFile(),
    help='JSON object of answers by step: {"charge": {"returns": …}} or {"fails": CODE}.',
)
@click.option(
    "--live", is_flag=True, help="Perform requests without a recorded answer, with new keys, after confirmation."
)
@click.option(
    "--apply", "applies", is_flag=True, help="Write the changes of --set to the node, after its cases and traces pass."
)
@click.option("--save", is_flag=True, help="Keep the rerun as a trace.")
@yes_option
@reveal_option
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
    """Replay an execution from its trace, inspect and change it, rerun it from any step, and derive a fix.

    No effect is performed: requests get the recorded answers, and an unrecorded request is an error. After the replay
    the command reads commands from standard input until it ends (`help` lists them). With --from or --set it reruns the
    execution once and reads no commands.

    Exit codes: 0 the replay matched the record (or the rerun returned), 1 the rerun did not return, or an error, 2
    usage, 3 the replay did not match the record.
    """
    is_batch = from_step is not None or bool(settings)
    if (applies or save) and not is_batch:
        raise click.UsageError("--apply and --save require --set or --from; at the prompt, type `apply` or `save`")
    if style == "json" and not is_batch and live:
        raise click.UsageError("--live with --format json requires --set or --from")
    if live and style == "json" and not yes:
        raise click.UsageError("--live asks for confirmation, which --format json cannot: add --yes")
    if applies and style == "json" and not yes:
        raise click.UsageError("--apply asks for confirmation, which --format json cannot: add --yes")
    with _report_errors(), traces_of(configured := read_journal_settings(config, dsn)) as traces:
        found = traces.find(trace)
        session = Session.open(found, engine, traces=traces)
        if responses is not None:
            session.answers = read_answers(session.compiled, _read_responses(responses), _json_text)
        if live:
            session.open_host = lambda: LiveHost(configured)

        def node_file() -> Path:
            return _find_node_file(found, root)

        shell = Shell(
            session, _read, click.echo if style == "text" else _ignore, node_file, replace_text,
            ShellOptions(reveals=reveal, is_live=live, asks_first=not yes),
        )  # fmt: skip
        shell.print_opening()
        change = find_change(found, node_file)
        for line in [] if change is None or style == "json" else change.lines():
            click.echo(line)
        if is_batch:
            code = _rerun(session, shell, from_step, settings, applies=applies, saves=save, yes=yes)
        else:
            code = FINE if session.replayed.difference is None else OUR_BUG
            if style == "text":
                shell.loop()
        if style == "json":
            changed = {"file_change": None if change is None else change.json()}
            click.echo(document(_json(session, shell, reveal) | changed))
    sys.exit(code)


def _rerun(
    session: Session,
    shell: Shell,
    from_step: str | None,
    settings: tuple[str, ...],
    *,
    applies: bool,
    saves: bool,
    yes: bool,
) -> int:
    """Rerun once with `--from` and `--set`, print the result, and return the exit code."""
    steps = []
    for text in settings:
        change, step = read_setting(session.trace, session.compiled, text)
        session.change(change)
        steps.append(step)
    start = None if from_step is None else find_step(session.trace, from_step)
    if start is None and steps and all(each is not None for each in steps):
        start = min((each for each in steps if each is not None), key=lambda each: each.number)
    if applies and not any(isinstance(each, SourceChange) for each in session.changes):
        # Checked before the rerun, which performs effects with --live.
        raise FixRejected("the text of the node does not change: --apply requires a parameter, `--set 3.timeout=60s`")
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
        found["again"] = show_json(session.forked, reveal)
        found["differences"] = [
            {"where": each.where, "original": each.left, "now": each.right} for each in session.difference(reveal)
        ]
        found["fix"] = None if session.fix is None else session.fix_diff()
    if shell.report is not None:
        found["corpus"] = {"told": str(shell.report), "problems": list(shell.report.problems)}
        found["applied"] = None if shell.applied is None else str(shell.applied)
    return found


@contextlib.contextmanager
def _report_errors() -> Iterator[None]:
    try:
        with report_trace_errors():
            yield
    except (ChangeRejected, FixRejected, UnrecordedRequest, ReplayInterrupted) as problem:
        raise click.ClickException(str(problem)) from None


def _read(prompt: str) -> str | None:
    """Read a line of standard input; print it where no terminal echoes it, for a complete transcript."""
    if sys.stdin is None:  # cron and services have no standard input
        click.echo(prompt.rstrip())
        return None
    if sys.stdin.isatty():
        with contextlib.suppress(ImportError):
            import readline  # noqa: F401  # line editing and history
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


def _find_node_file(trace: Trace, root: Path) -> Path:
    """Return the file of the node: its recorded path, or the file with its id now."""
    recorded = Path(trace.definition.path)
    if recorded.is_file():
        return recorded
    try:
        return locate(trace.node_id, root)
    except NodeNotFound:
        return recorded


def _read_responses(file: TextIO) -> dict[str, object]:
    try:
        text = file.read()
    except UnicodeDecodeError:
        raise click.UsageError(f"--responses {file.name}: the file is not UTF-8 text") from None
    try:
        found = forms_of_json(text)
    except JsonMistake as mistake:
        place = place_at(text, mistake.offset)
        raise click.UsageError(f"--responses {file.name}:{place.line}:{place.column}: {mistake.what}") from None
    if not isinstance(found, dict):
        raise click.UsageError(f"--responses {file.name}: expected a JSON object of answers by step")
    return found


def _json_text(value: object) -> str:
    """Return JSON text of a value; decimals keep their digits."""
    match value:
        case Decimal():
            return str(value)
        case dict():
            return "{" + ", ".join(f"{json.dumps(name)}: {_json_text(each)}" for name, each in value.items()) + "}"
        case list():
            return f"[{', '.join(map(_json_text, value))}]"
        case _:
            return json.dumps(value)


def _ignore(_: str) -> None:
    """Discard text beside JSON output."""
