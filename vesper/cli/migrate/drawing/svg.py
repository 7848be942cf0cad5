"""The confidence of a node over time as SVG, without a drawing library, for light and dark backgrounds.

The vertical scale counts nines: 0.9, 0.99 and 0.999 are equally far apart, as the thresholds are. Modes are bands with
their names in them or in the legend; colour is never the only sign.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

from vesper.cli.migrate.drawing.layout import (
    LINE,
    MARK,
    MAX_NINES,
    MODE_COLOURS,
    SOFT,
    THRESHOLD_TICKS,
    TICKS,
    describe,
    modes_in,
    nines,
    time_ticks,
    title_of,
)
from vesper.journal.moments import number, time_text
from vesper.migration.stores.series import Point, Series
from vesper.values.model import printable

WIDTH, HEIGHT = 960, 440
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 50, 90
_MARK_COLUMNS = 400
"""Divergences in one of this many columns share a mark."""
_CHARACTER_WIDTH = 6.6
_BANDS = " ".join(f"--m{level}: {colour};" for level, colour in enumerate(MODE_COLOURS))
_STYLE = (
    f"""
  :root {{ --back: #ffffff; --ink: #1b1f24; --soft: {SOFT}; --grid: #d7dbe0; --line: {LINE}; --mark: {MARK};
          {_BANDS} }}
"""
    """  @media (prefers-color-scheme: dark) {
    :root { --back: #14171a; --ink: #e6e8ea; --soft: #9aa3ad; --grid: #343a40; --line: #8ab4f8; --mark: #ff8a80;
            --m0: #2b2f33; --m1: #1b2b44; --m2: #3d3413; --m3: #2d2548; --m4: #14382b; } }
  text { font: 12px system-ui, sans-serif; fill: var(--ink); }
  .soft { fill: var(--soft); } .title { font-size: 15px; font-weight: 600; }
  .grid { stroke: var(--grid); } .threshold { stroke: var(--soft); stroke-dasharray: 4 3; }
  .line { fill: none; stroke: var(--line); stroke-width: 2; stroke-linejoin: round; }
  .mark { fill: none; stroke: var(--mark); stroke-width: 2; }
"""
)


def draw_svg(series: Series) -> str:
    title = title_of(series)
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}"'
    about = f"epoch {printable(series.epoch[:12])}, lower bound of the share of runs that agree; times are UTC"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-labelledby="title desc">',
        f'<title id="title">{escape(title)}</title>',
        f'<desc id="desc">{escape(describe(series))}</desc>',
        f"<style>{_STYLE}</style>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="var(--back)"/>',
        f'<text class="title" x="{LEFT}" y="22">{escape(title)}</text>',
        f'<text class="soft" x="{LEFT}" y="40">{escape(about)}</text>',
        *_bands(series),
        *_scale(series),
        f'<polyline class="line" points="{_line(series)}"/>',
        *_divergences(series),
        *_legend(series),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _x(series: Series, at_us: int) -> float:
    span = max(1, series.until_us - series.start_us)
    return LEFT + (WIDTH - LEFT - RIGHT) * (at_us - series.start_us) / span


def _y(bound: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * nines(bound) / MAX_NINES


def _bands(series: Series) -> Iterable[str]:
    for each in series.bands:
        left, right = _x(series, each.start_us), _x(series, each.end_us)
        name = each.mode.value
        yield (
            f'<rect x="{left:.1f}" y="{TOP}" width="{max(0.5, right - left):.1f}" height="{HEIGHT - TOP - BOTTOM}" '
            f'fill="var(--m{each.mode.level})"><title>{name} from {time_text(each.start_us)}</title></rect>'
        )
        if right - left > _CHARACTER_WIDTH * len(name) + 8:
            yield f'<text class="soft" x="{left + 4:.1f}" y="{TOP + 14}">{name}</text>'


def _scale(series: Series) -> Iterable[str]:
    for bound in TICKS:
        kind = "threshold" if bound in THRESHOLD_TICKS else "grid"
        y = _y(bound)
        yield f'<line class="{kind}" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{bound:g}</text>'
    for at_us, text in time_ticks(series):
        x = _x(series, at_us)
        yield f'<text class="soft" x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{text}</text>'


def _line(series: Series) -> str:
    shown: list[str] = []
    for each in _thin(series.points):
        pair = f"{_x(series, each.at_us):.1f},{_y(each.lower_bound):.1f}"
        if not shown or shown[-1] != pair:
            shown.append(pair)
    return " ".join(shown)


def _thin(points: Sequence[Point]) -> Sequence[Point]:
    """Reduce the points to what the width can show; keep the last one."""
    most = 4 * WIDTH
    return points if len(points) <= most else [*points[:: math.ceil(len(points) / most)], points[-1]]


def _divergences(series: Series) -> Iterable[str]:
    span = max(1, series.until_us - series.start_us)
    marks: dict[int, list[str]] = {}
    for each in series.divergences:
        marks.setdefault((each.at_us - series.start_us) * _MARK_COLUMNS // span, []).append(each.fingerprint)
    y = HEIGHT - BOTTOM - 10
    for column, fingerprints in marks.items():
        x = LEFT + (WIDTH - LEFT - RIGHT) * column / _MARK_COLUMNS
        distinct = sorted(set(fingerprints))
        label = escape(f"{number(len(distinct), 'divergence')}: {printable(', '.join(distinct[:5]))}")
        yield (f'<path class="mark" d="M{x - 4:.1f} {y - 4}l8 8m0 -8l-8 8"><title>{label}</title></path>')


def _legend(series: Series) -> Iterable[str]:
    x = float(LEFT)
    y = HEIGHT - 24
    for mode in modes_in(series):
        fill = f'fill="var(--m{mode.level})" stroke="var(--grid)"'
        yield f'<rect x="{x:.1f}" y="{y - 10}" width="14" height="12" {fill}/>'
        yield f'<text x="{x + 20:.1f}" y="{y}">{mode.value}</text>'
        x += 34 + _CHARACTER_WIDTH * len(mode.value)
    if series.divergences:
        yield f'<path class="mark" d="M{x + 3:.1f} {y - 8}l8 8m0 -8l-8 8"/>'
        yield f'<text x="{x + 20:.1f}" y="{y}">divergence</text>'
