"""Two kinds of pictures as SVG: bars beside each other, and how a cost grows. Light and dark.

Nothing is said by colour alone: what is ours has bold names.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

_STYLE = """
  :root { --back: #ffffff; --ink: #1b1f24; --soft: #6b7280; --grid: #d7dbe0; --ours: #0b57d0; --theirs: #9aa3ad; }
  @media (prefers-color-scheme: dark) {
    :root { --back: #14171a; --ink: #e6e8ea; --soft: #9aa3ad; --grid: #343a40; --ours: #8ab4f8; --theirs: #5b636b; } }
  text { font: 12px system-ui, sans-serif; fill: var(--ink); }
  .soft { fill: var(--soft); } .title { font-size: 15px; font-weight: 600; } .ours { font-weight: 600; }
  .grid { stroke: var(--grid); } .line { fill: none; stroke-width: 2; stroke: var(--ours); }
  .slope { fill: none; stroke: var(--soft); stroke-dasharray: 4 3; } .dot { fill: var(--ours); }
"""
_WIDTH, _LABEL, _RIGHT, _ROW = 960, 330, 110, 22
_TOP, _BOTTOM = 64, 34


@dataclass(frozen=True)
class Bar:
    label: str
    value: float
    text: str
    is_ours: bool = False


def _document(width: int, height: int, title: str, about: str, parts: Sequence[str]) -> str:
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
            f"<title>{escape(title)}</title>",
            f"<desc>{escape(about)}</desc>",
            f"<style>{_STYLE}</style>",
            f'<rect width="{width}" height="{height}" fill="var(--back)"/>',
            f'<text class="title" x="16" y="24">{escape(title)}</text>',
            f'<text class="soft" x="16" y="44">{escape(about)}</text>',
            *parts,
            "</svg>",
            "",
        ]
    )


def decades(low: float, high: float) -> list[float]:
    """The powers of ten around the values."""
    return [10.0**power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]


def bars(title: str, about: str, rows: Sequence[Bar]) -> str:
    """Bars on a scale of powers of ten, the shortest first."""
    ticks = decades(min(each.value for each in rows) * 0.7, max(each.value for each in rows))
    low, span = math.log10(ticks[0]), math.log10(ticks[-1]) - math.log10(ticks[0]) or 1.0
    height = _TOP + _ROW * len(rows) + _BOTTOM

    def x(value: float) -> float:
        return _LABEL + (_WIDTH - _LABEL - _RIGHT) * (math.log10(value) - low) / span

    parts = []
    for tick in ticks:
        parts.append(f'<line class="grid" x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{_TOP}" y2="{height - _BOTTOM}"/>')
        parts.append(f'<text class="soft" x="{x(tick):.1f}" y="{height - 12}" text-anchor="middle">{tick:,.0f}</text>')
    for number, each in enumerate(sorted(rows, key=lambda row: row.value)):
        y = _TOP + _ROW * number
        kind, fill = ("ours", "var(--ours)") if each.is_ours else ("", "var(--theirs)")
        parts.append(
            f'<text class="{kind}" x="{_LABEL - 8}" y="{y + 15}" text-anchor="end">{escape(each.label)}</text>'
        )
        parts.append(
            f'<rect x="{_LABEL}" y="{y + 3}" width="{x(each.value) - _LABEL:.1f}" height="{_ROW - 7}" fill="{fill}"/>'
        )
        parts.append(f'<text class="{kind}" x="{x(each.value) + 6:.1f}" y="{y + 15}">{escape(each.text)}</text>')
    return _document(_WIDTH, height, title, about, parts)


def growth(title: str, about: str, across: str, lines: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """Seconds over sizes, both on scales of powers of ten: what is linear is parallel to the dashed lines."""
    width, height, left, bottom = 720, 460, 80, 60
    points = [point for line in lines.values() for point in line]
    across_ticks = decades(min(size for size, _ in points), max(size for size, _ in points))
    up_ticks = decades(min(seconds for _, seconds in points), max(seconds for _, seconds in points))

    def place(size: float, seconds: float) -> tuple[float, float]:
        def part(value: float, ticks: Sequence[float]) -> float:
            return (math.log10(value) - math.log10(ticks[0])) / ((math.log10(ticks[-1]) - math.log10(ticks[0])) or 1.0)

        x = left + (width - left - 150) * part(size, across_ticks)
        return x, height - bottom - (height - bottom - _TOP) * part(seconds, up_ticks)

    parts = []
    for tick in across_ticks:
        x, _ = place(tick, up_ticks[0])
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{height - bottom}"/>')
        parts.append(
            f'<text class="soft" x="{x:.1f}" y="{height - bottom + 18}" text-anchor="middle">{tick:,.0f}</text>'
        )
    for tick in up_ticks:
        _, y = place(across_ticks[0], tick)
        parts.append(f'<line class="grid" x1="{left}" x2="{width - 150}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="soft" x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{_seconds(tick)}</text>')
    for name, line in lines.items():
        shown = [place(size, seconds) for size, seconds in line]
        (first, taken), (last, _) = line[0], line[-1]
        ends = [place(first, taken), place(last, min(taken * last / first, up_ticks[-1]))]
        if taken * last / first > up_ticks[-1]:
            ends[1] = place(up_ticks[-1] / taken * first, up_ticks[-1])
        parts.append(f'<polyline class="slope" points="{_pairs(ends)}"/>')
        parts.append(f'<polyline class="line" points="{_pairs(shown)}"/>')
        parts += [f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in shown]
        parts.append(f'<text class="ours" x="{shown[-1][0] + 8:.1f}" y="{shown[-1][1] + 4:.1f}">{escape(name)}</text>')
    parts.append(
        f'<text class="soft" x="{left}" y="{height - 14}">{escape(across)}; dashed: linear from the first point</text>'
    )
    return _document(width, height, title, about, parts)


def _pairs(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _seconds(value: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size * 0.999:
            return f"{value / size:g} {unit}"
    return f"{value * 1e9:g} ns"
