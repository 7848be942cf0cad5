"""Drawing of verifier runs over time: a bar for each, and covered branches as a line."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from vesper.dashboard.words import number_text, share_text, utc_text

_WIDTH: Final = 760
_HEIGHT: Final = 150
_LEFT: Final = 44
_RIGHT: Final = 44
_BASE: Final = 122
_TOP: Final = 14
_BAR_WIDTH: Final = 4


@dataclass(frozen=True, slots=True)
class RunMark:
    """One run of the drawing."""

    at_us: int
    executions: int
    has_passed: bool
    share: float | None
    """Covered share of the branches; None for a run without nodes."""
    text: str
    """The run in words."""


def draw_runs(runs: Sequence[RunMark]) -> Markup:
    """Return the SVG of runs in order of time. The height of a bar is the logarithm of its inputs."""
    first, last = runs[0].at_us, runs[-1].at_us
    tallest = max(1.0, *(math.log10(each.executions + 1) for each in runs))
    room = _WIDTH - _LEFT - _RIGHT - _BAR_WIDTH

    def x(at_us: int) -> float:
        return round(_LEFT + room * ((at_us - first) / (last - first) if last > first else 0.5), 1)

    parts = [*_axes(tallest, first, last)]
    line = [
        f"{x(each.at_us) + _BAR_WIDTH / 2:.1f},{_BASE - (_BASE - _TOP) * each.share:.1f}"
        for each in runs
        if each.share is not None
    ]
    parts += [_bar(each, x(each.at_us), (_BASE - _TOP) * math.log10(each.executions + 1) / tallest) for each in runs]
    if line:
        parts.append(Markup('<polyline class="coverage" points="{}"/>').format(" ".join(line)))
    failed = sum(not each.has_passed for each in runs)
    what = (
        f"{len(runs)} runs from {utc_text(first)} to {utc_text(last)}, {failed} failed; the table has the same facts."
    )
    return Markup('<svg class="runs" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        _WIDTH, _HEIGHT, what, Markup("").join(parts)
    )


def _axes(tallest: float, first: int, last: int) -> Iterator[Markup]:
    right = _WIDTH - _RIGHT
    for power in range(int(tallest) + 1):
        y = round(_BASE - (_BASE - _TOP) * power / tallest, 1)
        yield Markup('<line class="tick" x1="{}" x2="{}" y1="{y}" y2="{y}"/>').format(_LEFT, right, y=y)
        if power % 2 == int(tallest) % 2:
            yield Markup('<text class="axis" x="{}" y="{}" text-anchor="end">{}</text>').format(
                _LEFT - 6, y + 4, number_text(10**power)
            )
    for share in (0.0, 0.5, 1.0):
        y = round(_BASE - (_BASE - _TOP) * share, 1)
        yield Markup('<text class="axis" x="{}" y="{}">{}</text>').format(right + 6, y + 4, share_text(share, 0))
    yield Markup('<text class="axis" x="{}" y="{}">{}</text>').format(_LEFT, _HEIGHT - 8, utc_text(first))
    if last > first:
        yield Markup('<text class="axis" x="{}" y="{}" text-anchor="end">{}</text>').format(
            right, _HEIGHT - 8, utc_text(last)
        )


def _bar(run: RunMark, left: float, height: float) -> Markup:
    """Return a run as a bar; a failed one has a cross on top."""
    top = round(_BASE - max(2.0, height), 1)
    cross = Markup("")
    if not run.has_passed:
        middle = left + _BAR_WIDTH / 2
        shape = f"M{middle - 5:.1f} {top - 11:.1f}l10 10m0 -10l-10 10"
        cross = Markup('<path class="cross" d="{}"/>').format(shape)
    return Markup('<g class="{}"><title>{}</title><rect x="{}" y="{}" width="{}" height="{}"/>{}</g>').format(
        "passed" if run.has_passed else "failed", run.text, left, top, _BAR_WIDTH, round(_BASE - top, 1), cross
    )
