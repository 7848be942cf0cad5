"""`vesper journal`: executions, and how to resolve and recover them."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vesper.cli.engine_names import EngineChoice
from vesper.cli.exits import FINE, OUR_BUG, WRONG_INPUT
from vesper.cli.journal.bulk import cancel_command, retry_command
from vesper.cli.journal.open_journal import (
    current_user,
    find_execution,
    find_node_ids,
    missing_file,
    open_journal,
    read_journal_settings,
    report_journal_errors,
    require_journal,
)
from vesper.cli.journal.text import (
    document,
    list_lines,
    short_ids,
    show_json,
    show_lines,
    summary_json,
)
from vesper.cli.options import (
    by_option,
    journal_options,
    limit_option,
    node_filter_option,
    older_than_option,
    read_words,
    reveal_option,
    since_option,
    style_option,
    yes_option,
)
from vesper.cli.output.progress import Progress
from vesper.journal.audit import audit_change
from vesper.journal.doubts import open_doubts
from vesper.journal.entry_text import words
from vesper.journal.journal import Journal, JournalError, NotTaken, Recorded, Status, UnknownExecution
from vesper.journal.moments import number, time_text
from vesper.values.model import printable

if TYPE_CHECKING:
    from vesper.host.host import Host

_MAX_COUNTED = 1_000
_MAX_PROBLEMS = 20
"""Executions from which `verify` shows a progress bar."""


@click.group("journal")
def command() -> None:
    """Show runs with effects; resolve and recover runs with an unknown outcome.

    EXECUTION is the id of an execution, or a unique prefix of it.

    Exit codes: 0 success, 1 an execution is in doubt, damaged, refused or unreadable, 2 usage, 3 a bug in Vesper.
    """


# -- list -----------------------------------------------------------------------------------------


@command.command("list")
@journal_options
@click.option("--status", type=click.Choice([each.value for each in Status]), help="Only executions with this status.")
@node_filter_option
@since_option
@limit_option
@style_option
def list_command(
    config: Path | None,
    dsn: str | None,
    status: str | None,
    node: str | None,
    since_us: int | None,
    limit: int,
    style: str,
) -> None:
    """List executions, newest first, and count those in doubt."""
    settings = read_journal_settings(config, dsn)
    absent = missing_file(settings) if dsn is None else None
    if absent is not None:
        click.echo(f"no executions yet: there is no journal at {printable(str(absent))}", err=True)
        if style == "json":
            click.echo("[]")
        return
    with open_journal(config, dsn) as journal:
        wanted = None if status is None else Status(status)
        found = [
            summary
            for each in find_node_ids(journal, node)
            for summary in journal.find(status=wanted, node=each, since_us=since_us, limit=limit)
        ]
        found = sorted(found, key=lambda each: each.started_us, reverse=True)[:limit]
        if style == "json":
            click.echo(document([summary_json(each) for each in found]))
            return
        click.echo("\n".join([*list_lines(found, _now_us())] if found else ["no matching executions"]))
        for line in _footnotes(journal, len(found) == limit):
            click.echo(line)


def _footnotes(journal: Journal, is_full: bool) -> list[str]:
    """Mention executions that are not listed, and those that need a decision."""
    lines = ["", "only the newest are shown; --limit shows more"] if is_full else []
    doubtful = len(journal.find(status=Status.IN_DOUBT, limit=_MAX_COUNTED))
    left = len(journal.unfinished(_MAX_COUNTED))
    if doubtful:
        lines += [
            "",
            f"{_count_text(doubtful)} in doubt: it is unknown whether an effect was performed",
            "  `vesper journal show EXECUTION` shows the step; `vesper journal resolve EXECUTION STEP …` resolves it",
        ]
    if left:
        lines += [
            "",
            f"{_count_text(left)} unfinished after their process ended; `vesper journal recover` finishes them",
        ]
    return lines


def _count_text(count: int) -> str:
    more = " or more" if count >= _MAX_COUNTED else ""
    return f"{count:,}{more} {'execution is' if count == 1 else 'executions are'}"


# -- show -----------------------------------------------------------------------------------------


@command.command("show")
@click.argument("execution")
@journal_options
@style_option
@reveal_option
def show_command(execution: str, config: Path | None, dsn: str | None, style: str, reveal: bool) -> None:
    """Show an execution: requests, results and decisions."""
    with open_journal(config, dsn) as journal:
        recorded = journal.read(find_execution(journal, execution))
        doubts = open_doubts(recorded)
        hides = recorded.summary.is_sensitive and not reveal
        gives: dict[str, str] = {}
        if doubts:
            from vesper.host.finishing import compiled_of
            from vesper.host.recovery.resolving import plan_of

            compiled = compiled_of(journal, recorded)
            gives = {each.path: str(plan_of(compiled, each.path).gives) for each in doubts}
        if style == "json":
            shown = show_json(recorded, reveal)
            shown["in_doubt"] = [
                {
                    "path": each.path,
                    "why": None if hides else each.why,
                    "obstacle": each.obstacle,
                    "gives": gives[each.path],
                }
                for each in doubts
            ]
            click.echo(document(shown))
            return
        click.echo("\n".join(show_lines(recorded, _now_us(), reveal)))
        for each in doubts:
            why = each.obstacle or ("" if hides else each.why)
            click.echo(f"\nin doubt: {printable(each.path)}" + (f": {printable(why)}" if why else ""))
            if each.obstacle is None:
                click.echo(f"  the step gives {gives[each.path]}; record its outcome with:")
                click.echo(
                    f"  vesper journal resolve {recorded.summary.execution} '{printable(each.path)}' "
                    "(--result JSON | --failed CODE | --not-done) --why TEXT"
                )


# -- resolve and recover --------------------------------------------------------------------------


@command.command("resolve")
@click.argument("execution")
@click.argument("step")
@journal_options
@click.option("--result", metavar="JSON", help="The effect was performed, with this result.")
@click.option("--failed", metavar="CODE", help="The effect failed with this code.")
@click.option("--not-done", is_flag=True, help="The effect was certainly not performed: perform it now.")
@click.option("--why", required=True, metavar="TEXT", callback=read_words, help="How you know; kept in the journal.")
@by_option
@click.option("--later", is_flag=True, help="Only record the outcome; the next recovery finishes the execution.")
def resolve_command(
    execution: str,
    step: str,
    config: Path | None,
    dsn: str | None,
    result: str | None,
    failed: str | None,
    not_done: bool,
    why: str,
    by: str | None,
    later: bool,
) -> None:
    """Record the outcome of a STEP in doubt, and finish the execution.

    STEP is the path in `vesper journal show`, such as charge or pay/charge[2]. The result is JSON of the type that the
    step declares. Be certain before you use --not-done: the step is performed now.
    """
    from vesper.host.finishing import check_can_finish, quiet_host
    from vesper.host.recovery.resolving import StatedOutcome, left_out_text, resolve

    if (result is not None) + (failed is not None) + not_done != 1:
        raise click.UsageError("give the outcome with exactly one of --result, --failed and --not-done")
    who = by or current_user()
    settings = read_journal_settings(config, dsn)
    require_journal(settings)
    with report_journal_errors():
        if not later:
            check_can_finish(settings, "--later only records the outcome")
        with quiet_host(settings, finishes=not later) as host:
            recorded = host.journal.read(find_execution(host.journal, execution))
            done = resolve(host, recorded, step, StatedOutcome(result, failed), who, why, finishes=not later)
            if done.dropped:
                click.echo(left_out_text(done.dropped, done.path), err=True)
            click.echo(f"resolved: {printable(done.path)} of {recorded.summary.execution}: {done.outcome}")
            if later:
                click.echo("`vesper journal recover`, or any process with this journal, finishes the execution")
                return
            sys.exit(_finish(host, recorded, settings.recovery.engine))


def _finish(host: Host, recorded: Recorded, engine: str | None) -> int:
    """Finish a resolved execution, print its outcome, and return the exit code."""
    from vesper.cli.output.outcomes import outcome_lines
    from vesper.engines.outcome import EngineFault
    from vesper.host.finishing import compiled_of, outcome_text, resume_execution

    try:
        finished = resume_execution(host, recorded.summary, engine)
    except NotTaken as reason:
        click.echo(f"another process continues it: {reason}")
        return FINE
    if finished.is_waiting:
        click.echo(printable(finished.why))
        return FINE
    if finished.outcome is None:
        click.echo(f"it cannot continue: {printable(finished.why)}", err=True)
        return WRONG_INPUT
    if recorded.summary.is_sensitive:
        click.echo(f"ended: {outcome_text(finished.outcome)}; `vesper journal show --reveal` shows its values")
    else:
        inputs = recorded.entries[0].entry.body.get("inputs")
        compiled = compiled_of(host.journal, recorded)
        click.echo(f"ended: {outcome_text(finished.outcome)}")
        click.echo(outcome_lines(compiled, finished.outcome, inputs if isinstance(inputs, dict) else {}))
    return OUR_BUG if isinstance(finished.outcome, EngineFault) else FINE


@command.command("recover")
@journal_options
@click.option("--engine", type=EngineChoice(), help="Engine to finish them on; by default the one they began on.")
@click.option(
    "--limit", type=click.IntRange(1, 100_000), default=100, show_default=True, help="Finish at most this many."
)
def recover_command(config: Path | None, dsn: str | None, engine: str | None, limit: int) -> None:
    """Finish executions that a process left unfinished.

    Prints one line for each. Effects that must not be repeated are not. An effect with an unknown outcome puts its
    execution in doubt; the exit code is then 1.
    """
    from vesper.host.finishing import check_can_finish, quiet_host, recover_all

    settings = read_journal_settings(config, dsn)
    absent = missing_file(settings) if dsn is None else None
    if absent is not None:
        click.echo(f"no executions yet: there is no journal at {printable(str(absent))}", err=True)
        return
    require_journal(settings)
    code = FINE
    with report_journal_errors():
        check_can_finish(settings, "use the file that the node runs with")
    with report_journal_errors(), quiet_host(settings, finishes=True) as host:
        left = host.journal.unfinished(limit)
        shorts = short_ids([each.execution for each in left])
        ended = 0
        for each in recover_all(host, left, engine or settings.recovery.engine):
            click.echo(f"{shorts[each.summary.execution]}  {printable(each.summary.node_id)}  {each.text}")
            ended += each.is_ended
            if each.is_fault:
                code = OUR_BUG
            elif not each.is_ended and not each.is_elsewhere:
                code = code or WRONG_INPUT
        click.echo(f"{number(ended, 'execution')} finished" if left else "no execution is unfinished")
        doubtful = len(host.journal.find(status=Status.IN_DOUBT, limit=_MAX_COUNTED))
        if doubtful:
            click.echo(f"{_count_text(doubtful)} in doubt; `vesper journal list --status in_doubt` lists them")
    sys.exit(code)


command.add_command(cancel_command)
command.add_command(retry_command)


# -- prune, erase, verify -------------------------------------------------------------------------


@command.command("prune")
@journal_options
@older_than_option("Executions that ended so long ago")
@node_filter_option
@yes_option
@by_option
def prune_command(
    config: Path | None, dsn: str | None, seconds: float, node: str | None, yes: bool, by: str | None
) -> None:
    """Delete old executions. Keeps running ones, those in doubt, and the audit log."""
    who = by or current_user()
    before_us = _now_us() - int(seconds * 1_000_000)
    with open_journal(config, dsn) as journal:
        nodes = find_node_ids(journal, node)
        count = sum(journal.prunable(before_us, each) for each in nodes)
        if not count:
            click.echo(f"no execution ended before {time_text(before_us)}")
            return
        click.echo(f"{number(count, 'execution')} ended before {time_text(before_us)}")
        if not yes:
            click.confirm("delete permanently?", abort=True)
        pruned = sum(journal.prune(before_us, each) for each in nodes)
        audit_change(journal, "journal_prune", "", node or "", who, executions=pruned, before=time_text(before_us))
        click.echo(f"deleted {number(pruned, 'execution')}")


@command.command("erase")
@click.argument("execution")
@journal_options
@yes_option
@by_option
def erase_command(execution: str, config: Path | None, dsn: str | None, yes: bool, by: str | None) -> None:
    """Make the values of a sensitive execution unreadable.

    Deletes its key, permanently. The execution itself, its times and its kind of outcome stay.
    """
    who = by or current_user()
    with open_journal(config, dsn) as journal:
        name = find_execution(journal, execution)
        node_id = _node_to_erase(journal, name)
        if not yes:
            about = f"{name} ({printable(node_id)})" if node_id else name
            click.confirm(f"erase the values of {about} permanently?", abort=True)
        if not journal.erase(name):
            click.echo(f"{name} has no key: it was deleted earlier, or never existed")
            return
        audit_change(journal, "journal_erase", name, node_id, who)
        click.echo(f"erased: the key of {name} is deleted")


def _node_to_erase(journal: Journal, name: str) -> str:
    """Return the node of an execution to erase; refuse one that is not sensitive.

    The text is empty if the execution is unreadable.
    """
    try:
        summary = journal.read(name).summary
    except JournalError as problem:
        click.echo(f"note: {problem}", err=True)
        return ""
    if not summary.is_sensitive:
        raise click.ClickException(
            f"execution {name} is not sensitive: its values are not encrypted, and it has no key. "
            "`vesper journal prune` deletes whole executions"
        )
    if summary.status is not Status.ENDED:
        click.echo(f"note: {name} is {words(summary.status)}: without its key it cannot be finished", err=True)
    return summary.node_id


@command.command("verify")
@click.argument("execution", required=False)
@journal_options
def verify_command(execution: str | None, config: Path | None, dsn: str | None) -> None:
    """Check executions for changes after they were written.

    Verifies the hash chain of one execution or of all, the row of each execution, and the definitions and blobs that
    executions rely on.
    """
    with open_journal(config, dsn) as journal:
        names = journal.executions() if execution is None else iter([find_execution(journal, execution)])
        total = 1 if execution is not None else sum(1 for _ in journal.executions())
        problems: list[str] = []
        checked = 0
        for name in _with_progress(names, total):
            try:
                problems += journal.verify(name)
            except UnknownExecution:
                continue  # pruned meanwhile
            except JournalError as problem:
                problems.append(str(problem))
            if len(problems) >= _MAX_PROBLEMS:
                break
            checked += 1
        problems += journal.verify_shared()
    if len(problems) > _MAX_PROBLEMS:
        problems[_MAX_PROBLEMS:] = ["further problems are not listed"]
    if problems:
        raise click.ClickException("\n".join(map(printable, problems)))
    click.echo(f"{number(checked, 'execution')} checked: nothing was changed")


def _with_progress(names: Iterator[str], total: int) -> Iterator[str]:
    with Progress("executions", total) as progress:
        yield from progress.over(names)


def _now_us() -> int:
    return time.time_ns() // 1000
