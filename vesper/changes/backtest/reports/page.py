"""The report of a backtest as one HTML file: no script, nothing loaded, light and dark.

Pictures are bars of SVG beside their numbers, so that they keep their size on a telephone; each has a text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from vesper.changes.backtest.measures import ExactSum
from vesper.changes.backtest.reports.report import (
    Report,
    ShownExample,
    ShownKind,
    difference_text,
    share_text,
    sum_text,
)
from vesper.changes.backtest.reports.text import example_value, segment_row
from vesper.changes.backtest.tally import Group, Sums
from vesper.trace.svg import element

MAX_SHOWN = 100
"""Kinds of change, segments and reasons of exclusion that the page lists."""
_STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1a1f27; --muted: #5a6472; --line: #d8dde4; --same: #9fb4cf;
  --changed: #c2571a; --other: #8a8f98; }
@media (prefers-color-scheme: dark) { :root { --paper: #13161b; --ink: #e4e8ee; --muted: #9aa5b4; --line: #303741;
  --same: #4a6484; --changed: #f2a45f; --other: #6d737d; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 16px; max-width: 1100px; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 22px; line-height: 1.25; margin: 8px 0 4px; } h2 { font-size: 17px; margin: 32px 0 8px; }
p { margin: 4px 0; } .muted { color: var(--muted); }
.stopped { border-left: 4px solid var(--changed); padding: 8px 12px; font-weight: 600; }
.figure { font-size: 28px; font-weight: 650; font-variant-numeric: tabular-nums; }
svg { display: block; width: 100%; height: 14px; } svg.wide { height: 24px; }
.same { fill: var(--same); } .changed { fill: var(--changed); } .other { fill: var(--other); }
.rest { fill: var(--line); }
.key { white-space: nowrap; }
.key::before { content: ""; display: inline-block; width: 10px; height: 10px; margin: 0 6px 0 12px; }
.key.same::before { background: var(--same); } .key.changed::before { background: var(--changed); }
.key.other::before { background: var(--other); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 6px 14px 6px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th { color: var(--muted); font-weight: 500; white-space: nowrap; } .number { text-align: right; white-space: nowrap; }
td.bar { min-width: 90px; width: 30%; padding-top: 11px; }
.change { border-bottom: 1px solid var(--line); padding: 10px 0; }
.change .head { display: flex; gap: 12px; justify-content: space-between; font-weight: 600; margin-bottom: 4px; }
details { margin-top: 6px; } summary { cursor: pointer; color: var(--muted); }
dl { display: grid; grid-template-columns: minmax(60px, max-content) 1fr; gap: 2px 14px; margin: 6px 0 0; }
dt { color: var(--muted); } dd { margin: 0; font-family: ui-monospace, monospace; font-size: 13px; }
"""


def report_html(report: Report) -> str:
    """Return the page."""
    tally = report.tally
    title = f"{report.before} → {report.after}"
    parts = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="muted">Backtest on {escape(report.on)}: recorded inputs and answers, 0 effects performed.</p>',
    ]
    if not report.is_complete:
        parts.append(f'<p class="stopped">Stopped: these are the first {tally.seen:,} runs, not all of them.</p>')
    share = share_text(report.changed_share)
    parts += [
        f'<p class="figure">{tally.changed:,} of {tally.compared:,} runs change ({share})</p>',
        _overview(report),
        *(f"<p>{escape(each)}</p>" for each in report.interface),
        *_changes(report),
        *_sums(report),
        *(part for number, text in enumerate(report.by) for part in _segments(report, number, text)),
        *_left_out(report),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}: backtest</title><style>{_STYLE}</style></head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body></html>\n"
    )


def _bars(parts: Sequence[tuple[str, float]], label: str, class_: str = "") -> str:
    """Return one bar of parts, each a class and its share of the width."""
    shapes, left = [], 0.0
    for name, share in parts:
        # A part that exists is visible, however small its share.
        width = max(share * 1000, 3.0) if share > 0 else 0.0
        shapes.append(element("rect", x=left, y=0, width=width, height=10, class_=name))
        left += width
    return element(
        "svg",
        element("title", text=label),
        *shapes,
        viewBox=f"0 0 {max(left, 1000):.0f} 10",
        preserveAspectRatio="none",
        role="img",
        aria_label=label,
        class_=class_ or "bar",
    )


def _overview(report: Report) -> str:
    tally = report.tally
    others = tally.seen - tally.compared
    seen = max(tally.seen, 1)
    counts = {"changed": tally.changed, "same": tally.compared - tally.changed, "other": others}
    words = {"changed": "changed", "same": "the same", "other": "not compared"}
    keys = "".join(
        f'<span class="key {name}">{count:,} {words[name]}</span>'
        for name, count in counts.items()
        if count or name != "other"
    )
    label = ", ".join(f"{count:,} {words[name]}" for name, count in counts.items())
    bar = _bars([(name, count / seen) for name, count in counts.items()], label, "wide")
    return f'{bar}<p class="muted">{keys}</p>'


def _left_out(report: Report) -> Iterable[str]:
    tally = report.tally
    rows = []
    if tally.apart.runs:
        why = f"{tally.apart_other_definition:,} of another definition; {tally.apart.changed:,} change"
        what = f"{report.before} does not reproduce the record ({why}); in no sum and no segment"
        rows.append([what, f"{tally.apart.runs:,}"])
    rows += [
        [f"{report.before} asks something new at {step}", f"{runs:,}"]
        for step, runs in sorted(tally.unanswered_before.items())
    ]
    rows += [[f"ended with {ending}", f"{runs:,}"] for ending, runs in sorted(tally.not_compared.items())]
    excluded = report.excluded()
    rows += [[f"{reason}; such as {', '.join(each.names)}", f"{each.runs:,}"] for reason, each in excluded[:MAX_SHOWN]]
    if len(excluded) > MAX_SHOWN:
        rest = excluded[MAX_SHOWN:]
        rows.append([f"{len(rest):,} more reasons; the JSON has all", f"{sum(each.runs for _, each in rest):,}"])
    if tally.not_selected or tally.not_decided:
        rows.append(["not selected by --where", f"{tally.not_selected + tally.not_decided:,}"])
    if rows:
        yield "<h2>Runs that are not in these counts</h2>"
        yield _table(["what", "runs"], rows, numbers=1)


def _changes(report: Report) -> Iterable[str]:
    if not report.kinds:
        return
    yield "<h2>What changes</h2>"
    most = report.kinds[0].runs
    yield from (_change(each, most) for each in report.kinds[:MAX_SHOWN])
    if len(report.kinds) > MAX_SHOWN:
        yield f'<p class="muted">and {len(report.kinds) - MAX_SHOWN:,} more kinds; the JSON has all</p>'
    for step, runs in sorted(report.tally.unanswered_after.items()):
        what = f"{report.after} asks something new at {step} in {runs:,} runs; nothing was performed."
        yield f"<p>{escape(what)}</p>"


def _change(kind: ShownKind, most: int) -> str:
    bar = _bars([("changed", kind.runs / most), ("rest", 1 - kind.runs / most)], f"{kind.runs:,} runs: {kind.kind}")
    head = f'<div class="head"><span>{escape(kind.kind)}</span><span class="number">{kind.runs:,}</span></div>'
    return f'<div class="change">{head}{bar}{"" if kind.example is None else _example(kind.example)}</div>'


def _example(example: ShownExample) -> str:
    facts = [
        ("run", example.name),
        *((name, example_value(value)) for name, value in example.inputs.items()),
        ("before", example.before),
        ("after", example.after),
    ]
    listed = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts)
    return f"<details><summary>the smallest example</summary><dl>{listed}</dl></details>"


def _sums(report: Report) -> Iterable[str]:
    found = list(zip(report.sums, report.tally.total.sums, strict=False))
    if not found:
        return
    yield "<h2>Sums</h2>"
    for text, sums in found:
        most = max(abs(_ratio(sums.before, sums)), abs(_ratio(sums.after, sums)))
        rows = []
        for side, number, name in (("before", sums.before, "same"), ("after", sums.after, "changed")):
            share = abs(_ratio(number, sums)) / most if most else 0.0
            bar = _bars([(name, share), ("rest", 1 - share)], f"{text} {side}: {sum_text(number)}")
            cells = f'<td class="bar">{bar}</td><td class="number">{sum_text(number)}</td>'
            rows.append(f"<tr><td>{escape(text)} {side}</td>{cells}</tr>")
        missing = f"; without a value: {sums.without_before:,} before, {sums.without_after:,} after"
        is_whole = not (sums.without_before or sums.without_after)
        yield f'<div class="scroll"><table>{"".join(rows)}</table></div>'
        yield f'<p class="muted">difference {difference_text(sums)}{"" if is_whole else missing}</p>'


def _ratio(number: ExactSum, sums: Sums) -> float:
    """Return a sum as a fraction of both, for the length of a bar."""
    scale = max(sums.before.scale, sums.after.scale)
    digits = [each.digits * 10 ** (scale - each.scale) for each in (number, sums.before, sums.after)]
    whole = abs(digits[1]) + abs(digits[2])
    return digits[0] / whole if whole else 0.0


def _segments(report: Report, number: int, text: str) -> Iterable[str]:
    found = report.segments(number)
    yield f"<h2>By {escape(text)}</h2>"
    sides = (f"{each} {side}" for each in report.sums for side in ("before", "after"))
    head = [text, "changes", "runs", "changed", "share", *sides]
    rows = []
    for label, group in found[:MAX_SHOWN]:
        first, *rest = (f'<td class="number">{escape(each)}</td>' for each in segment_row(label, group, report.sums))
        name = first.replace(' class="number"', "")
        rows.append(f'<tr>{name}<td class="bar">{_segment_bar(group)}</td>{"".join(rest)}</tr>')
    heads = "".join(f"<th{'' if at < 2 else ' class=number'}>{escape(each)}</th>" for at, each in enumerate(head))
    yield f'<div class="scroll"><table><tr>{heads}</tr>{"".join(rows)}</table></div>'
    if len(found) > MAX_SHOWN:
        yield f'<p class="muted">and {len(found) - MAX_SHOWN:,} more segments; the JSON has all</p>'


def _segment_bar(group: Group) -> str:
    label = f"{share_text(group.share)} of {group.runs:,} runs"
    return _bars([("changed", group.share), ("rest", 1 - group.share)], label)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], numbers: int) -> str:
    """Return a table whose last columns are numbers."""
    first = len(head) - numbers

    def cells(row: Sequence[str], tag: str) -> str:
        return "".join(
            f"<{tag}{' class=number' if at >= first else ''}>{escape(each)}</{tag}>" for at, each in enumerate(row)
        )

    lines = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
    return f'<div class="scroll"><table><tr>{cells(head, "th")}</tr>{lines}</table></div>'
