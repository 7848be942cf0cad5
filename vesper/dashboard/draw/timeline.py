"""Drawing of a run over time: one row for each step, with attempts and waits of its request."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from vesper.dashboard.words import duration_text
from vesper.trace.spans import Part

MAX_ROWS: Final = 120
"""Maximum steps that are drawn; the table has all of them."""
_ROW: Final = 24
_CHARACTER_WIDTH: Final = 6.7
_CHART_WIDTH: Final = 560
_AXIS_HEIGHT: Final = 22
_MAX_LABEL: Final = 26
_STEPS: Final = (1, 2, 5)
_MAX_TICKS: Final = 6


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """One step of the drawing."""

    label: str
    sign: str
    kind: str
    """`ok`, `failed`, `skipped` or `open`."""
    text: str
    """Facts of the step in words."""
    begin_us: int
    parts: tuple[Part, ...]
    """Attempts and waits; none for a computed value."""


def draw_timeline(rows: Sequence[TimelineRow], begin_us: int, end_us: int) -> Markup:
    """Return the SVG of the steps between two moments."""
    drawn = rows[:MAX_ROWS]
    span_us = max(1, end_us - begin_us)
    height = _AXIS_HEIGHT + _ROW * len(drawn) + 4
    longest = max((min(len(each.label), _MAX_LABEL) for each in drawn), default=0)
    left = round(40 + longest * _CHARACTER_WIDTH)

    def x(at_us: int) -> float:
        return round(left + _CHART_WIDTH * min(1.0, max(0.0, (at_us - begin_us) / span_us)), 1)

    parts = [*_axis(span_us, height, left)]
    for row, each in enumerate(drawn):
        parts += _row(each, _AXIS_HEIGHT + row * _ROW, left, x)
    what = f"Timeline of {len(rows)} steps over {duration_text(span_us)}; the table has the same facts."
    return Markup('<svg class="timeline" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        left + _CHART_WIDTH + 24, height, what, Markup("").join(parts)
    )


def _axis(span_us: int, height: int, left: int) -> Iterator[Markup]:
    step = _tick_us(span_us)
    for number in range(int(span_us // step) + 1):
        at = round(left + _CHART_WIDTH * number * step / span_us, 1)
        yield Markup('<line class="tick" x1="{0}" x2="{0}" y1="16" y2="{1}"/>').format(at, height)
        text = "0" if number == 0 else duration_text(number * step)
        yield Markup('<text class="axis" x="{}" y="12" text-anchor="middle">{}</text>').format(at, text)


def _tick_us(span_us: int) -> int:
    """Return the distance between ticks: the smallest round number that gives few ticks."""
    power = 1
    while True:
        for step in _STEPS:
            if span_us / (step * power) <= _MAX_TICKS:
                return step * power
        power *= 10


def _row(row: TimelineRow, top: int, left: int, x: Callable[[int], float]) -> Iterator[Markup]:
    label = row.label if len(row.label) <= _MAX_LABEL else row.label[: _MAX_LABEL - 1] + "…"
    yield Markup('<g class="step {}"><title>{}</title>').format(row.kind, row.text)
    yield Markup('<text class="label" x="{}" y="{}" text-anchor="end">{} {}</text>').format(
        left - 12, top + 16, label, row.sign
    )
    if not row.parts:
        middle, at = top + _ROW / 2, x(row.begin_us)
        shape = f"M{at} {middle - 5}l5 5l-5 5l-5 -5z"
        yield Markup('<path class="value" d="{}"/>').format(shape)
    for part in row.parts:
        yield _bar(part, top, x(part.begin_us), x(part.end_us))
    yield Markup("</g>")


def _bar(part: Part, top: int, left: float, right: float) -> Markup:
    """Return an attempt as a bar, a wait as a dashed line."""
    if part.kind == "wait":
        return Markup('<line class="wait" x1="{}" x2="{}" y1="{y}" y2="{y}"/>').format(left, right, y=top + _ROW // 2)
    kind = "failed" if part.text else "ok"
    return Markup('<rect class="attempt {}" x="{}" y="{}" width="{}" height="12" rx="2"/>').format(
        kind, left, top + 6, max(2.0, round(right - left, 1))
    )
