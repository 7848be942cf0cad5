"""Small HTML for notebooks: tables and texts, escaped, without scripts and without colours of their own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape

from vesper.trace.difference import outcome_text
from vesper.trace.masking import masked_trace
from vesper.trace.model import Trace
from vesper.trace.timeline import SIGNS, timeline
from vesper.values.model import show

_MAX_TEXT = 300
_MAX_ROWS = 100
_CELL = "text-align:left;padding:2px 12px 2px 0"


def cut(text: str) -> str:
    """Return the start of a long text."""
    return text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 1] + "…"


def title(name: str, rest: str) -> str:
    return f"<div><b>{escape(cut(name))}</b> {escape(cut(rest))}</div>"


def pre(text: str) -> str:
    return f'<pre style="margin:4px 0;white-space:pre-wrap">{escape(text)}</pre>'


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of texts; of many rows the first."""
    found = list(rows)
    if not found:
        return ""
    names = "".join(f'<th style="{_CELL}">{escape(each)}</th>' for each in head)
    lines = "".join(
        "<tr>" + "".join(f'<td style="{_CELL}">{escape(cut(each))}</td>' for each in row) + "</tr>"
        for row in found[:_MAX_ROWS]
    )
    more = f"<div>and {len(found) - _MAX_ROWS:,} more</div>" if len(found) > _MAX_ROWS else ""
    return f'<table style="border-collapse:collapse"><tr>{names}</tr>{lines}</table>{more}'


def trace_html(trace: Trace) -> str:
    """Return a trace: node, outcome and steps. Sensitive values are masked."""
    trace = masked_trace(trace)
    started = datetime.fromtimestamp(trace.started_us / 1_000_000, UTC)
    outcome = "not ended" if trace.outcome is None else outcome_text(trace.outcome)
    rows = [
        (
            str(each.number),
            f"{SIGNS[each.status]} {each.path}",
            (each.code or each.status) if each.status != "ok" else show(each.value),
        )
        for each in timeline(trace)
    ]
    head = title(trace.node_id, f"on {', '.join(trace.engines)}, {started:%Y-%m-%d %H:%M:%S} UTC, {trace.trace_id}")
    return f"<div>{head}{pre(cut(outcome))}{table(('', 'step', 'result'), rows)}</div>"
