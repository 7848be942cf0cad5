"""`vesper compare A B --on …`: a backtest on a journal, on stored traces or on files of inputs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vesper.batch.errors import BatchError
from vesper.cli.exits import FINE, WRONG_INPUT
from vesper.cli.journal.open_journal import find_node_ids, open_journal
from vesper.cli.journal.text import document
from vesper.cli.options import ReadPath, apply_options, journal_options, read_since, reveal_option, since_option
from vesper.cli.output.progress import Progress
from vesper.cli.traces.open_traces import open_configured_traces
from vesper.engines.engine import EngineUnavailable
from vesper.storage.write_file import create_text

if TYPE_CHECKING:
    from vesper.changes.backtest.backtest import Comparison
    from vesper.changes.backtest.cases import Case, Excluded
    from vesper.changes.backtest.journal_runs import Selection
    from vesper.changes.backtest.native import NativeBacktest
    from vesper.changes.backtest.reports.report import FindCase, Report
    from vesper.changes.backtest.tally import Tally
    from vesper.compiler import Compiled

JOURNAL = "journal"
TRACES = "traces"


def read_share(_context: click.Context, _parameter: click.Parameter, text: str) -> Decimal:
    """Read `--max-changed`: a share such as `0.5%`, or as a number from 0 to 1."""
    number, is_percent = (text[:-1], True) if text.endswith("%") else (text, False)
    try:
        share = Decimal(number.strip())
    except ArithmeticError:
        share = Decimal(-1)
    share = share / 100 if is_percent and share.is_finite() else share
    if not share.is_finite() or not 0 <= share <= 1:
        raise click.BadParameter(f"`{text}` is no share: write `0.5%` or `0.005`")
    return share


recorded_options = apply_options(
    click.option(
        "--on",
        "on",
        multiple=True,
        metavar="journal|traces|FILE",
        help="Replay both versions on recorded runs, or on files of inputs; repeat for more files.",
    ),
    click.option("--by", multiple=True, metavar="EXPRESSION", help="Count by an input or output, or by an expression."),
    click.option("--sum", "sums", multiple=True, metavar="EXPRESSION", help="Exact sum before and after; repeatable."),
    click.option("--where", metavar="EXPRESSION", help="Only runs that meet the condition: `input.amount > 100`."),
    click.option(
        "--max-changed",
        "most",
        default="0%",
        show_default=True,
        metavar="SHARE",
        callback=read_share,
        help="Exit code 1 when a larger share of outcomes changes.",
    ),
    since_option,
    click.option("--until", "until_us", metavar="WHEN", callback=read_since, help="Only those before then."),
    click.option("--limit", type=click.IntRange(min=1), help="Only the newest N runs, or the first N rows."),
    click.option("--runs-of", "runs_of", metavar="ID", help="Only runs of this id, not of every version of A's name."),
    click.option(
        "--html", "html", type=click.Path(dir_okay=False, path_type=Path), help="Write the report as a new HTML file."
    ),
    journal_options,
    reveal_option,
)
"""The options of a backtest. Without `--on`, only their defaults are allowed."""


@dataclass(frozen=True, slots=True)
class RecordedOptions:
    """The options of one backtest."""

    on: tuple[str, ...]
    by: tuple[str, ...] = ()
    sums: tuple[str, ...] = ()
    where: str | None = None
    most: Decimal = Decimal(0)
    since_us: int | None = None
    until_us: int | None = None
    limit: int | None = None
    runs_of: str | None = None
    html: Path | None = None
    config: Path | None = None
    dsn: str | None = None
    reveal: bool = False

    @classmethod
    def of(cls, options: dict[str, Any]) -> RecordedOptions:
        """Return the options among those of the command."""
        return cls(**{name: options[name] for name in cls.__dataclass_fields__})

    def refuse_without_on(self) -> None:
        """Refuse options that only a backtest has, where there is no `--on`."""
        default = RecordedOptions(())
        for name in self.__dataclass_fields__:
            if getattr(self, name) != getattr(default, name):
                raise click.UsageError(f"--{_OPTION_NAMES.get(name, name)} needs --on: a journal, traces or a file")


_OPTION_NAMES = {
    "sums": "sum", "most": "max-changed", "since_us": "since", "until_us": "until", "runs_of": "runs-of",
    "dsn": "journal",
}  # fmt: skip


def compare_recorded(before: Compiled, after: Compiled, options: RecordedOptions, style: str) -> int:
    """Replay both versions, print the report, and return the exit code."""
    comparison = _comparison(before, after, options)
    found: Callable[[Comparison, RecordedOptions], Report]
    found = {JOURNAL: _on_journal, TRACES: _on_traces}.get(options.on[0], _on_files)
    if len(options.on) > 1 and {JOURNAL, TRACES} & set(options.on):
        raise click.UsageError("--on journal and --on traces stand alone: only files are repeated")
    try:
        report = found(comparison, options)
    except (BatchError, EngineUnavailable) as problem:
        raise click.ClickException(str(problem)) from None
    return _finish(report, options, style)


def _finish(report: Report, options: RecordedOptions, style: str) -> int:
    from vesper.changes.backtest.reports.json_form import report_json
    from vesper.changes.backtest.reports.text import report_lines

    if options.html is not None:
        from vesper.changes.backtest.reports.page import report_html

        try:
            create_text(options.html, report_html(report), is_private=True)
        except FileExistsError:
            raise click.ClickException(f"{options.html} exists: name a new file") from None
        except OSError as error:
            raise click.ClickException(f"{options.html}: {error.strerror or error}") from None
    if style == "json":
        click.echo(document(report_json(report)))
    else:
        click.echo("\n".join(report_lines(report)))
    if report.tally.compared == 0:
        click.echo("no run was compared, so nothing is shown about the change", err=True)
    if not report.is_complete:
        click.echo("stopped: the report is of a part of the runs", err=True)
        return WRONG_INPUT
    return WRONG_INPUT if report.is_above(options.most) else FINE


def _comparison(before: Compiled, after: Compiled, options: RecordedOptions) -> Comparison:
    from vesper.changes.backtest.backtest import Comparison
    from vesper.changes.backtest.kinds import Kinds
    from vesper.changes.backtest.measures import BadMeasure, MeasureReader

    try:
        measures = MeasureReader(before, after, options.reveal).measures(options.by, options.sums, options.where)
    except BadMeasure as problem:
        raise click.UsageError(str(problem)) from None
    return Comparison(before, after, Kinds(before, after, options.reveal), measures)


def _selection(nodes: tuple[str, ...], options: RecordedOptions) -> Selection:
    from vesper.changes.backtest.journal_runs import Selection

    return Selection(nodes, options.since_us, options.until_us, options.limit)


def _on_journal(comparison: Comparison, options: RecordedOptions) -> Report:
    from vesper.changes.backtest.journal_runs import journal_runs, run_of, versions_of
    from vesper.changes.backtest.native import NativeBacktest, is_native

    with open_journal(options.config, options.dsn) as journal:
        if options.runs_of is not None:
            nodes = tuple(each for each in find_node_ids(journal, options.runs_of) if each is not None)
        else:
            nodes = versions_of(journal.node_ids(), comparison.before.node.node_id)
        selection = _selection(nodes, options)
        on = f"the journal {journal.name}"

        def find_case(name: str) -> Case | Excluded:
            return run_of(journal, journal.summary(name))

        if not is_native(comparison):
            return _replay(comparison, journal_runs(journal, selection), on, find_case, options)
        return _replay_natively(NativeBacktest(comparison, journal, selection), comparison, on, find_case, options)


def _replay_natively(
    backtest: NativeBacktest, comparison: Comparison, on: str, find_case: FindCase, options: RecordedOptions
) -> Report:
    from vesper.changes.backtest.reports.report import make_report

    began = time.perf_counter()
    is_complete = True
    with Progress("replaying", backtest.total) as line:
        try:
            while backtest.step():
                seen, changed = backtest.progress
                line.reach(seen, f"runs, {changed:,} changed")
        except KeyboardInterrupt:
            is_complete = False
    seconds = time.perf_counter() - began
    return make_report(comparison, backtest.tally, on, find_case, is_complete, seconds, options.reveal)


def _on_traces(comparison: Comparison, options: RecordedOptions) -> Report:
    from vesper.changes.backtest.journal_runs import versions_of
    from vesper.changes.backtest.trace_runs import trace_case, trace_runs

    with open_configured_traces(options.config, options.dsn) as traces:
        known = traces.store.node_ids()
        wanted = options.runs_of or comparison.before.node.node_id
        nodes = (options.runs_of,) if options.runs_of in known else versions_of(known, wanted)
        cases = trace_runs(traces, _selection(tuple(each for each in nodes if each), options))
        what = f"the traces of {traces.store.name}"
        return _replay(comparison, cases, what, lambda name: trace_case(traces.store.read(name)), options)


def _on_files(comparison: Comparison, options: RecordedOptions) -> Report:
    from vesper.changes.backtest.file_rows import file_rows

    for each in (comparison.before, comparison.after):
        if not each.node.is_pure():
            raise click.UsageError(f"{each.node.node_id} has effects, and a file has no answers: use --on journal")
    for name, value in (("since", options.since_us), ("until", options.until_us), ("runs-of", options.runs_of)):
        if value is not None:
            raise click.UsageError(f"--{name} selects recorded runs, and a file has rows: use --where or --limit")
    paths = [ReadPath().convert(each, None, None) for each in options.on]
    now = datetime.now(UTC)

    def rows(reach: Callable[[float], None]) -> Iterator[Case | Excluded]:
        left = options.limit
        for number, path in enumerate(paths):
            for case in file_rows(
                path,
                comparison.before,
                comparison.after,
                now,
                left,
                partial(_reach_part, reach, number, len(paths)),
            ):
                left = None if left is None else left - 1
                yield case
            if left == 0:
                return

    return _replay(comparison, rows, ", ".join(map(str, paths)), None, options)


def _reach_part(reach: Callable[[float], None], number: int, parts: int, share: float) -> None:
    reach((number + share) / parts)


def _replay(
    comparison: Comparison,
    cases: Iterator[Case | Excluded] | Callable[[Callable[[float], None]], Iterator[Case | Excluded]],
    on: str,
    find_case: FindCase | None,
    options: RecordedOptions,
) -> Report:
    """Replay the cases with a progress line. Ctrl-C ends it with the counts so far."""
    from vesper.changes.backtest.backtest import Backtest
    from vesper.changes.backtest.reports.report import make_report

    backtest = Backtest(comparison)
    began = time.perf_counter()
    is_complete = True
    done = [0.0]

    def reach(share: float) -> None:
        done[0] = share

    with Progress("replaying", 1.0 if callable(cases) else None) as line:
        listed = cases(reach) if callable(cases) else cases
        try:
            for seen in backtest.run(listed):
                if seen % 256 == 0:
                    line.reach(done[0], _progress_text(backtest.tally))
        except KeyboardInterrupt:
            is_complete = False
    seconds = time.perf_counter() - began
    found = find_case or _no_case
    return make_report(comparison, backtest.tally, on, found, is_complete, seconds, options.reveal)


def _progress_text(tally: Tally) -> str:
    return f"{tally.seen:,} runs, {tally.changed:,} changed"


def _no_case(name: str) -> Case | Excluded:
    raise LookupError(name)  # examples of files have their rows
