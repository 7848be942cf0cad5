"""`vesper journal`: what ran, what is in doubt, and what to do about it."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click

from vesper.cli.engine_names import EngineChoice
from vesper.cli.exits import FINE, OUR_BUG, WRONG_INPUT
from vesper.cli.journal.open_journal import (
    check_there,
    clean_errors,
    missing_file,
    settings_of,
    the_execution,
    the_journal,
    the_nodes,
    this_user,
)
from vesper.cli.journal.text import (
    document,
    list_lines,
    number,
    open_doubts,
    short_ids,
    show_json,
    show_lines,
    summary_json,
    time_text,
    words,
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
from vesper.effects.settings import ConfigError
from vesper.journal.entry import AuditEvent
from vesper.journal.journal import Journal, JournalError, NotTaken, Status, UnknownExecution
from vesper.values.model import printable

_MOST_COUNTED = 1_000
_MOST_PROBLEMS = 20
_LONG = 500
"""So many executions take long enough to check that somebody wants to see how far it is."""


@click.group("journal")
def command() -> None:
    """See what ran, and finish what was left.

    EXECUTION is the id of an execution, or as much of its beginning as is unique.

    Exit codes: 0 fine, 1 something is in doubt, broken, refused or cannot be read, 2 usage, 3 a bug in Vesper.
    """


# -- list -----------------------------------------------------------------------------------------


@command.command("list")
@journal_options
@click.option(
    "--status", type=click.Choice([each.value for each in Status]), help="Only those that are running, in doubt, ended."
)
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
    """List executions, the newest first, and say how many are in doubt."""
    settings = settings_of(config, dsn)
    absent = missing_file(settings) if dsn is None else None
    if absent is not None:
        click.echo(f"nothing ran yet: there is no journal at {printable(str(absent))}", err=True)
        if style == "json":
            click.echo("[]")
        return
    with the_journal(config, dsn) as journal:
        wanted = None if status is None else Status(status)
        found = [
            summary
            for each in the_nodes(journal, node)
            for summary in journal.find(status=wanted, node=each, since_us=since_us, limit=limit)
        ]
        found = sorted(found, key=lambda each: each.started_us, reverse=True)[:limit]
        if style == "json":
            click.echo(document([summary_json(each) for each in found]))
            return
        click.echo("\n".join([*list_lines(found, _now_us())] if found else ["no such executions"]))
        for line in _footnotes(journal, len(found) == limit):
            click.echo(line)


def _footnotes(journal: Journal, is_full: bool) -> list[str]:
    """What is more there, and what somebody should do."""
    lines = ["", "these are the newest; --limit shows more"] if is_full else []
    doubtful = len(journal.find(status=Status.IN_DOUBT, limit=_MOST_COUNTED))
    left = len(journal.unfinished(_MOST_COUNTED))
    if doubtful:
        lines += [
            "",
            f"{_counted(doubtful)} in doubt: nobody knows whether something was done",
            "  `vesper journal show EXECUTION` says what; `vesper journal resolve EXECUTION STEP …` settles it",
        ]
    if left:
        lines += ["", f"{_counted(left)} left unfinished by a process that is gone; `vesper journal recover` finishes"]
    return lines


def _counted(count: int) -> str:
    more = " or more" if count >= _MOST_COUNTED else ""
    return f"{count:,}{more} {'execution is' if count == 1 else 'executions are'}"


# -- show -----------------------------------------------------------------------------------------


@command.command("show")
@click.argument("execution")
@journal_options
@style_option
@reveal_option
def show_command(execution: str, config: Path | None, dsn: str | None, style: str, reveal: bool) -> None:
    """Show an execution: every request, what came of it, and what was decided on the way."""
    with the_journal(config, dsn) as journal:
        recorded = journal.read(the_execution(journal, execution))
        doubts = open_doubts(recorded)
        hides = recorded.summary.is_sensitive and not reveal
        gives: dict[str, str] = {}
        if doubts:
            from vesper.cli.journal.resolve import compiled_of, plan_of

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
                click.echo(f"  it gives {gives[each.path]}; say what came of it:")
                click.echo(
                    f"  vesper journal resolve {recorded.summary.execution} '{printable(each.path)}' "
                    "(--result JSON | --failed CODE | --not-done) --why TEXT"
                )


# -- resolve and recover --------------------------------------------------------------------------


@command.command("resolve")
@click.argument("execution")
@click.argument("step")
@journal_options
@click.option("--result", metavar="JSON", help="It happened, and this came of it.")
@click.option("--failed", metavar="CODE", help="It came to nothing, and failed with this code.")
@click.option("--not-done", is_flag=True, help="It certainly did not happen: it is performed now.")
@click.option("--why", required=True, metavar="TEXT", callback=read_words, help="How you know; kept in the journal.")
@by_option
@click.option("--later", is_flag=True, help="Only write it down; whoever recovers next finishes the execution.")
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
    """Say what came of a STEP that is in doubt, and finish the execution.

    STEP is the path that `vesper journal show` gives, such as charge or pay/charge[2]. The result is JSON, read by the
    type that the step declares. Be sure: a step that is said not to be done is done now.
    """
    from vesper.cli.journal.finish import check_can_finish, check_equipped, finish, quiet_host
    from vesper.cli.journal.resolve import checked_code, compiled_of, left_out_text, plan_of, read_result, the_doubt

    if (result is not None) + (failed is not None) + not_done != 1:
        raise click.UsageError("say what came of it with one of --result, --failed and --not-done")
    who = by or this_user()
    settings = settings_of(config, dsn)
    check_there(settings)
    if not later:
        check_can_finish(settings, "--later only writes it down")
    with clean_errors(), quiet_host(settings, finishes=not later) as host:
        journal = host.journal
        recorded = journal.read(the_execution(journal, execution))
        name = recorded.summary.execution
        path = the_doubt(recorded, step).path
        compiled = compiled_of(journal, recorded)
        plan = plan_of(compiled, path)
        if not later:
            check_equipped(host, compiled)
        value, names = (None, []) if result is None else read_result(plan, path, result)
        code = None if failed is None else checked_code(plan, path, failed)
        journal.resolve(name, path, value, code, who, why, not_done)
        said = "not done" if not_done else "succeeded" if code is None else code
        _audit(journal, "journal_resolve", name, recorded.summary.node_id, who, step=path, said=said, why=why)
        if names:
            click.echo(left_out_text(names, path), err=True)
        click.echo(f"resolved: {printable(path)} of {name}: {said}")
        if later:
            click.echo("`vesper journal recover`, or any process with this journal, finishes it")
            return
        sys.exit(finish(host, recorded, settings.recovery.engine))


@command.command("recover")
@journal_options
@click.option("--engine", type=EngineChoice(), help="Engine to finish them on; by default the one they began on.")
@click.option("--limit", type=click.IntRange(1, 100_000), default=100, show_default=True, help="At most so many.")
def recover_command(config: Path | None, dsn: str | None, engine: str | None, limit: int) -> None:
    """Finish the executions that a process left when it died: one line each.

    Nothing is done twice that must not be. What nobody can know is in doubt then, and the exit code is 1.
    """
    from vesper.cli.journal.finish import check_can_finish, outcome_text, quiet_host, resumed
    from vesper.engines.outcome import EngineFault

    settings = settings_of(config, dsn)
    absent = missing_file(settings) if dsn is None else None
    if absent is not None:
        click.echo(f"nothing ran yet: there is no journal at {printable(str(absent))}", err=True)
        return
    check_there(settings)
    check_can_finish(settings, "it is the one that the node runs with")
    code = FINE
    with clean_errors(), quiet_host(settings, finishes=True) as host:
        left = host.journal.unfinished(limit)
        shorts = short_ids([each.execution for each in left])
        ended = 0
        for summary in left:
            line = f"{shorts[summary.execution]}  {printable(summary.node_id)}  "
            try:
                finished = resumed(host, summary, engine or settings.recovery.engine)
            except (NotTaken, UnknownExecution):
                click.echo(f"{line}another process goes on with it")
                continue
            except (JournalError, ConfigError, click.ClickException) as problem:
                text = problem.message if isinstance(problem, click.ClickException) else str(problem)
                click.echo(f"{line}cannot be finished: {printable(text)}")
                code = code or WRONG_INPUT
                continue
            if finished.outcome is None:
                click.echo(f"{line}in doubt: {printable(finished.why)}")
                code = code or WRONG_INPUT
                continue
            click.echo(f"{line}{outcome_text(finished.outcome)}")
            ended += 1
            code = OUR_BUG if isinstance(finished.outcome, EngineFault) else code
        click.echo(f"{number(ended, 'execution')} finished" if left else "nothing is left unfinished")
        doubtful = len(host.journal.find(status=Status.IN_DOUBT, limit=_MOST_COUNTED))
        if doubtful:
            click.echo(f"{_counted(doubtful)} in doubt; `vesper journal list --status in_doubt` lists them")
    sys.exit(code)


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
    """Delete executions that ended long ago. What is running or in doubt, and the audit log, stay."""
    who = by or this_user()
    before_us = _now_us() - int(seconds * 1_000_000)
    with the_journal(config, dsn) as journal:
        nodes = the_nodes(journal, node)
        count = sum(journal.prunable(before_us, each) for each in nodes)
        if not count:
            click.echo(f"no execution ended before {time_text(before_us)}")
            return
        click.echo(f"{number(count, 'execution')} ended before {time_text(before_us)}")
        if not yes:
            click.confirm("delete for good?", abort=True)
        pruned = sum(journal.prune(before_us, each) for each in nodes)
        _audit(journal, "journal_prune", "", node or "", who, executions=pruned, before=time_text(before_us))
        click.echo(f"deleted {number(pruned, 'execution')}")


@command.command("erase")
@click.argument("execution")
@journal_options
@yes_option
@by_option
def erase_command(execution: str, config: Path | None, dsn: str | None, yes: bool, by: str | None) -> None:
    """Delete the key of a sensitive execution: what it held cannot be read again, by anybody.

    That it ran, when, and how it ended, stays.
    """
    who = by or this_user()
    with the_journal(config, dsn) as journal:
        name = the_execution(journal, execution)
        node_id = _node_to_erase(journal, name)
        if not yes:
            about = f"{name} ({printable(node_id)})" if node_id else name
            click.confirm(f"erase what {about} holds, for good?", abort=True)
        if not journal.erase(name):
            click.echo(f"{name} has no key: it was deleted before, or there never was one")
            return
        _audit(journal, "journal_erase", name, node_id, who)
        click.echo(f"erased: the key of {name} is deleted")


def _node_to_erase(journal: Journal, name: str) -> str:
    """The node of the execution; refuses one that has nothing to erase. What cannot be read can be erased all the same:
    nobody knows its node then."""
    try:
        summary = journal.read(name).summary
    except JournalError as problem:
        click.echo(f"note: {problem}", err=True)
        return ""
    if not summary.is_sensitive:
        raise click.ClickException(
            f"execution {name} is not sensitive: it has no key, and what it holds is not encrypted. "
            "`vesper journal prune` deletes executions as a whole"
        )
    if summary.status is not Status.ENDED:
        click.echo(f"note: {name} is {words(summary.status)}: without its key nobody can finish it", err=True)
    return summary.node_id


@command.command("verify")
@click.argument("execution", required=False)
@journal_options
def verify_command(execution: str | None, config: Path | None, dsn: str | None) -> None:
    """Check that what the journal says is what was written: the hash chain of one execution, or of all."""
    with the_journal(config, dsn) as journal:
        names = journal.executions() if execution is None else iter([the_execution(journal, execution)])
        total = 1 if execution is not None else sum(1 for _ in journal.executions())
        problems: list[str] = []
        checked = 0
        for name in _with_progress(names, total):
            try:
                journal.read(name)
            except UnknownExecution:
                continue  # it was pruned meanwhile
            except JournalError as problem:
                problems.append(str(problem))
                if len(problems) >= _MOST_PROBLEMS:
                    problems.append("there may be more")
                    break
            checked += 1
    if problems:
        raise click.ClickException("\n".join(map(printable, problems)))
    click.echo(f"{number(checked, 'execution')} checked: every entry is what was written")


def _with_progress(names: Iterator[str], total: int) -> Iterator[str]:
    """The same names; where there are many and somebody watches, with a bar."""
    if total < _LONG or not sys.stderr.isatty():
        yield from names
        return
    with click.progressbar(names, total, label="executions", file=sys.stderr) as bar:
        yield from bar


def _audit(journal: Journal, action: str, execution: str, node_id: str, by: str, **fields: object) -> None:
    """What somebody does to the journal by hand stands in the audit log, whatever the node says."""
    journal.audit([AuditEvent(_now_us(), execution, node_id, "basic", action, {"by": by, **fields})])


def _now_us() -> int:
    return time.time_ns() // 1000
