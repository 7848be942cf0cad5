"""The report of a backtest as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vesper.changes.backtest.reports.report import Report, difference_text, segment_text, share_text, sum_text
from vesper.changes.backtest.tally import Group, Sums
from vesper.host.masking import SENSITIVE
from vesper.values.model import printable, show

MAX_SHOWN = 20
"""Kinds of change, segments and reasons of exclusion that the text lists."""


def report_lines(report: Report) -> Iterator[str]:
    """Yield the lines of the report."""
    tally = report.tally
    if not report.is_complete:
        yield f"STOPPED: these are the first {tally.seen:,} runs, not all of them"
    yield f"{report.before} → {report.after} on {report.on}"
    yield (
        f"{_runs(tally.compared)} compared, {tally.changed:,} changed ({share_text(report.changed_share)}); "
        "0 effects performed"
    )
    yield from (f"  {each}" for each in report.interface)
    yield from _left_out(report)
    yield from _changes(report)
    yield from _sums(report)
    for number, text in enumerate(report.by):
        yield from _segments(report, number, text)


def _left_out(report: Report) -> Iterator[str]:
    tally = report.tally
    if tally.apart.runs:
        yield (
            f"  apart: {report.before} does not reproduce {_runs(tally.apart.runs)} "
            f"({tally.apart_other_definition:,} of another definition); {tally.apart.changed:,} of them change"
        )
    for step, runs in sorted(tally.unanswered_before.items()):
        yield f"  not compared: {_runs(runs)} in which {report.before} asks something new at {step}"
    for ending, runs in sorted(tally.not_compared.items()):
        yield f"  not compared: {_runs(runs)} with {printable(ending)}"
    if tally.not_selected or tally.not_decided:
        undecided = f", and undecided for {tally.not_decided:,}" if tally.not_decided else ""
        yield f"  not selected: --where is false for {_runs(tally.not_selected)}{undecided}"
    excluded = report.excluded()
    for reason, each in excluded[:MAX_SHOWN]:
        more = ", …" if each.runs > len(each.names) else ""
        yield f"  not replayed: {_runs(each.runs)}, {reason} ({', '.join(each.names)}{more})"
    if len(excluded) > MAX_SHOWN:
        rest = excluded[MAX_SHOWN:]
        yield f"  not replayed: {_runs(sum(each.runs for _, each in rest))} for {len(rest):,} more reasons"


def _changes(report: Report) -> Iterator[str]:
    if not report.kinds:
        return
    yield ""
    yield "changes"
    width = len(f"{report.kinds[0].runs:,}")
    for each in report.kinds[:MAX_SHOWN]:
        yield f"  {each.runs:>{width},}  {printable(each.kind)}"
        if each.example is not None:
            indent = " " * (width + 4)
            inputs = ", ".join(f"{name}={example_value(value)}" for name, value in each.example.inputs.items())
            yield f"{indent}{each.example.name}: {inputs}"
            yield f"{indent}before {printable(each.example.before)}"
            yield f"{indent}after  {printable(each.example.after)}"
    if len(report.kinds) > MAX_SHOWN:
        rest = report.kinds[MAX_SHOWN:]
        yield f"  and {len(rest):,} more kinds with {_runs(sum(each.runs for each in rest))}; --format json has all"
    for step, runs in sorted(report.tally.unanswered_after.items()):
        yield f"  {report.after} asks something new at {step} in {_runs(runs)}: nothing was performed"


def example_value(value: object) -> str:
    """Return an input of an example; a masked one is no text of the node."""
    return SENSITIVE if value == SENSITIVE else show(value)


def _sums(report: Report) -> Iterator[str]:
    if report.sums:
        yield ""
        yield "sums"
    for text, each in zip(report.sums, report.tally.total.sums, strict=False):
        change = f"{sum_text(each.before)} → {sum_text(each.after)} ({difference_text(each)})"
        yield f"  {text}: {change}{_missing_values_text(each)}"


def _missing_values_text(sums: Sums) -> str:
    missing = {"before": sums.without_before, "after": sums.without_after}
    found = [f"{runs:,} {side}" for side, runs in missing.items() if runs]
    return f", runs without a value: {', '.join(found)}" if found else ""


def _segments(report: Report, number: int, text: str) -> Iterator[str]:
    found = report.segments(number)
    yield ""
    sides = (f"{each} {side}" for each in report.sums for side in ("before", "after"))
    head = [text, "runs", "changed", "share", *sides]
    rows = [head, *(segment_row(label, group, report.sums) for label, group in found[:MAX_SHOWN])]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    for row in rows:
        first, *rest = (
            each.ljust(width) if column == 0 else each.rjust(width)
            for column, (each, width) in enumerate(zip(row, widths, strict=True))
        )
        yield f"  {'  '.join([first, *rest])}".rstrip()
    if len(found) > MAX_SHOWN:
        yield f"  and {len(found) - MAX_SHOWN:,} more segments; --format json has all"


def segment_row(label: str, group: Group, sums: Sequence[str]) -> list[str]:
    """Return the cells of a segment."""
    cells = [segment_text(label), f"{group.runs:,}", f"{group.changed:,}", share_text(group.share)]
    found = [*group.sums, *(Sums() for _ in range(len(sums) - len(group.sums)))]
    return [*cells, *(sum_text(each) for sums_of in found for each in (sums_of.before, sums_of.after))]


def _runs(count: int) -> str:
    return f"{count:,} run{'' if count == 1 else 's'}"
