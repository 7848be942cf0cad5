"""Plots as SVG: the confidence of a node over time, and nodes by mode over time.

The vertical scale of confidence counts nines: 0.9, 0.99 and 0.999 are equally far apart, as the thresholds are. Modes
are bands that darken with the mode and carry its name, so that they work without colour. In a page the style sheet
`plot.css` applies; a file contains it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from vesper.dashboard.draw.plot_layout import (
    MAX_NINES,
    THRESHOLD_MODES,
    TICKS,
    change_text,
    describe,
    evidence_text,
    modes_in,
    nines,
    point_text,
    time_ticks,
    title_of,
)
from vesper.journal.moments import number, time_text
from vesper.migration.control.modes import LADDER, Mode
from vesper.migration.stores.series import Point, Series
from vesper.trace.svg import element
from vesper.values.model import printable

WIDTH, HEIGHT = 960, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 136, 26, 46
_HEAD = 48
"""Height of the title in a file."""
_MARK_COLUMNS = 400
"""Divergences in one of this many columns share a mark."""
_MAX_SPOTS = 150
"""Points of a line that show their numbers."""
_MAX_LISTED = 12
"""Changes that a file lists."""
_MAX_MARKERS = 60
_MAX_TEXT = 140
_NUMBER_GAP = 14
"""Pixels between numbers of changes."""
_CHARACTER_WIDTH = 6.6
_FILE_COLOURS = """
:root { --paper: #ffffff; --ink: #1a1f27; --muted: #5a6472; --line: #d8dde4; --accent: #1f55c4; --bad: #b0231b;
  --python: #2f6fb3; --direct: #a8520a; }
@media (prefers-color-scheme: dark) { :root { --paper: #13161b; --ink: #e4e8ee; --muted: #9aa5b4; --line: #303741;
  --accent: #85aeff; --bad: #ff8f85; --python: #7fb6f2; --direct: #f2a45f; } }
"""


@dataclass(frozen=True, slots=True)
class _Frame:
    """The mapping of times to places, and the name of the picture in its page."""

    name: str
    start_us: int
    until_us: int

    def band(self, mode: Mode, kind: str = "") -> dict[str, str]:
        """Return the attributes of an area in a mode."""
        fill = {"fill": f"url(#{self.name}-hatch)"} if mode is Mode.PYTHON_ONLY else {}
        return {"class_": f"band band-{mode.level}{kind}", **fill}

    def x(self, at_us: int) -> float:
        return _LEFT + (WIDTH - _LEFT - _RIGHT) * (at_us - self.start_us) / max(1, self.until_us - self.start_us)


@cache
def _file_style() -> str:
    return _FILE_COLOURS + (Path(__file__).parents[1] / "static" / "plot.css").read_text(encoding="utf-8")


def draw_confidence(series: Series) -> str:
    """Return the plot for a page with `plot.css`."""
    return _svg("confidence", title_of(series), describe(series), HEIGHT, _confidence(series))


def draw_file(series: Series) -> str:
    """Return the plot as a file of its own, with a title and the last changes."""
    changes = [f"{at} · {change_text(each)}" for at, each in enumerate(series.changes, start=1)][-_MAX_LISTED:]
    about = f"epoch {printable(series.epoch[:12])}, lower bound of the share of runs that agree; times are UTC"
    listed = [
        element("text", x=_LEFT, y=_HEAD + HEIGHT + 20 * at, class_="muted", text=_cut(each))
        for at, each in enumerate(changes, start=1)
    ]
    height = _HEAD + HEIGHT + 20 * len(listed) + 20
    body = [
        element("style", text=_file_style()),
        element("rect", width=WIDTH, height=height, class_="paper"),
        element("text", x=_LEFT, y=22, class_="title", text=title_of(series)),
        element("text", x=_LEFT, y=40, class_="muted", text=about),
        element("g", *_confidence(series), transform=f"translate(0 {_HEAD})"),
        *listed,
    ]
    return _svg("confidence", title_of(series), describe(series), height, body) + "\n"


def draw_modes(
    name: str, title: str, times: Sequence[int], counts: Sequence[Sequence[int]], until_us: int, unit: str = ""
) -> str:
    """Return stacked steps by mode for a page: `counts` has one number for each mode, from each time on."""
    frame = _Frame(name, times[0], until_us)
    last = ", ".join(f"{counts[-1][mode.level]:,}{unit} {mode.value}" for mode in LADDER)
    about = f"From {time_text(times[0])} to {time_text(until_us)}. At the end: {last}."
    return _svg(name, title, about, HEIGHT, _stack(frame, times, counts, unit))


def _svg(name: str, title: str, description: str, height: int, body: Iterable[str]) -> str:
    return element(
        "svg",
        element("title", text=title, id=f"{name}-title"),
        element("desc", text=description, id=f"{name}-description"),
        _hatch(name),
        *body,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH} {height}",
        class_="plot",
        role="img",
        aria_labelledby=f"{name}-title {name}-description",
    )


def _hatch(name: str) -> str:
    """Return the pattern of `python_only`, where the direct engine does not run."""
    lines = element("path", d="M0 8L8 0M-2 2L2 -2M6 10L10 6", class_="hatch")
    pattern = element("pattern", lines, id=f"{name}-hatch", width=8, height=8, patternUnits="userSpaceOnUse")
    return element("defs", pattern)


# -- confidence -----------------------------------------------------------------------------------


def _confidence(series: Series) -> list[str]:
    frame = _Frame("confidence", series.start_us, _shown_until_us(series))
    return [
        *_bands(series, frame),
        *_confidence_scale(),
        *_time_scale(frame),
        *(text for line in series.lines for text in _line(frame, line)),
        *_divergences(series, frame),
        *_changes(series, frame),
        *_evidence_labels(series, frame),
        *_legend(frame, modes_in(series), bool(series.divergences)),
    ]


def _shown_until_us(series: Series) -> int:
    """Return the end of the picture: now, or a quarter past all data where nothing happened since."""
    times = [*(each.at_us for each in series.points), *(each.at_us for each in series.changes)]
    last_us = max((*times, *(each.at_us for each in series.divergences)), default=series.until_us)
    return min(series.until_us, last_us + (last_us - series.start_us) // 4)


def _y(bound: float) -> float:
    return HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * nines(bound) / MAX_NINES


def _bands(series: Series, frame: _Frame) -> Iterator[str]:
    height = HEIGHT - _TOP - _BOTTOM
    for each in series.bands:
        left, right = frame.x(each.start_us), frame.x(min(each.end_us, frame.until_us))
        name = each.mode.value
        title, width = f"{name} from {time_text(each.start_us)}", max(0.5, right - left)
        yield element("rect", title=title, x=left, y=_TOP, width=width, height=height, **frame.band(each.mode))
        if right - left > _CHARACTER_WIDTH * len(name) + 8:
            yield element("text", x=left + 4, y=_TOP + 14, class_="muted", text=name)


def _confidence_scale() -> Iterator[str]:
    for bound in TICKS:
        mode = THRESHOLD_MODES.get(bound)
        y = _y(bound)
        yield element("line", class_="grid" if mode is None else "threshold", x1=_LEFT, x2=WIDTH - _RIGHT, y1=y, y2=y)
        yield element("text", x=_LEFT - 8, y=y + 4, class_="end", text=f"{bound:g}")
        if mode is not None:
            yield element("text", x=WIDTH - _RIGHT + 6, y=y + 4, class_="muted", text=f"↑ {mode.value}")


def _time_scale(frame: _Frame) -> Iterator[str]:
    for at_us, text in time_ticks(frame.start_us, frame.until_us):
        yield element("text", x=frame.x(at_us), y=HEIGHT - _BOTTOM + 16, class_="muted middle", text=text)


def _line(frame: _Frame, line: Sequence[Point]) -> Iterator[str]:
    """Draw points and their line; a point alone is a dot."""
    places: list[str] = []
    for each in _thin(line, 4 * WIDTH):
        pair = f"{frame.x(each.at_us):.1f},{_y(each.lower_bound):.1f}"
        if not places or places[-1] != pair:
            places.append(pair)
    if len(places) > 1:
        yield element("polyline", class_="line", points=" ".join(places))
    for each in _thin(line, _MAX_SPOTS):
        kind = "spot" if len(places) > 1 else "spot dot"
        title = f"{time_text(each.at_us)}: {point_text(each)}"
        yield element("circle", class_=kind, cx=frame.x(each.at_us), cy=_y(each.lower_bound), r=4, title=title)


def _thin(points: Sequence[Point], most: int) -> Sequence[Point]:
    """Return every n-th point, about `most` in all, and always the last one."""
    return points if len(points) <= most else [*points[:: math.ceil(len(points) / most)], points[-1]]


def _divergences(series: Series, frame: _Frame) -> Iterator[str]:
    span = max(1, frame.until_us - frame.start_us)
    marks: dict[int, list[str]] = {}
    for each in series.divergences:
        marks.setdefault((each.at_us - series.start_us) * _MARK_COLUMNS // span, []).append(each.fingerprint)
    for column, fingerprints in marks.items():
        distinct = sorted(set(fingerprints))
        label = f"{number(len(distinct), 'divergence')}: {printable(', '.join(distinct[:5]))}"
        x = _LEFT + (WIDTH - _LEFT - _RIGHT) * column / _MARK_COLUMNS
        yield _cross(x, HEIGHT - _BOTTOM - 10, label)


def _cross(x: float, y: float, title: str = "") -> str:
    return element("path", class_="mark", d=f"M{x - 4:.1f} {y - 4:.1f}l8 8m0 -8l-8 8", title=title)


def _changes(series: Series, frame: _Frame) -> Iterator[str]:
    """Draw a numbered arrow above each of the last changes, with its reason."""
    first = max(0, len(series.changes) - _MAX_MARKERS)
    numbered_x = 0.0
    for at, each in enumerate(series.changes[first:], start=first + 1):
        x = frame.x(each.at_us)
        shape = "M-4 0L0 -7L4 0Z" if each.is_rise else "M-4 -7L0 0L4 -7Z"
        kind = "rise" if each.is_rise else "fall"
        yield element("line", class_="change", x1=x, x2=x, y1=_TOP, y2=HEIGHT - _BOTTOM)
        arrow = element("path", class_=kind, d=shape, title=f"{at} · {change_text(each)}")
        yield element("g", arrow, transform=f"translate({x:.1f} {_TOP - 2})")
        if x - numbered_x >= _NUMBER_GAP:
            yield element("text", x=x, y=_TOP - 12, class_="middle", text=str(at))
            numbered_x = x


def _evidence_labels(series: Series, frame: _Frame) -> Iterator[str]:
    """Write n and the divergences where the mode changes and where a line ends."""
    ends = [line[-1] for line in series.lines]
    changed = {each.at_us for each in series.changes}
    at_changes = [point for line in series.lines for point in line[:-1] if point.at_us in changed]
    taken: list[tuple[float, float, float]] = []
    for each in (*reversed(ends), *at_changes):
        text = evidence_text(each)
        x, y = frame.x(each.at_us), max(_y(each.lower_bound) - 7, _TOP + 26)
        width = _CHARACTER_WIDTH * len(text)
        is_left = x > _LEFT + width + 12
        left = x - 6 - width if is_left else x + 6
        if any(left < end and start < left + width and abs(y - top) < 14 for start, end, top in taken):
            continue
        taken.append((left, left + width, y))
        yield element("text", class_="value end" if is_left else "value", text=text, x=x - 6 if is_left else x + 6, y=y)


# -- nodes by mode --------------------------------------------------------------------------------


def _stack(frame: _Frame, times: Sequence[int], counts: Sequence[Sequence[int]], unit: str) -> Iterator[str]:
    most = max(1, *(sum(each) for each in counts))

    def y(count: float) -> float:
        return HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * count / most

    for count in sorted({0, most // 4, most // 2, most * 3 // 4, most}):
        yield element("line", class_="grid", x1=_LEFT, x2=WIDTH - _RIGHT, y1=y(count), y2=y(count))
        yield element("text", x=_LEFT - 8, y=y(count) + 4, class_="end", text=f"{count:,}{unit}")
    yield from _time_scale(frame)
    edges = [frame.x(each) for each in (*times, frame.until_us)]
    free_y = float(HEIGHT)
    for mode in LADDER:
        under = [sum(each[: mode.level]) for each in counts]
        over = [low + each[mode.level] for low, each in zip(under, counts, strict=True)]
        if under == over:
            continue
        corners = [*_steps(edges, over, y), *reversed(_steps(edges, under, y))]
        yield element("polygon", points=" ".join(corners), **frame.band(mode, " edge"))
        if over[-1] > under[-1]:
            free_y = min(free_y - 14, y((over[-1] + under[-1]) / 2) + 4)  # labels of thin areas move up
            text = f"{counts[-1][mode.level]:,}{unit} {mode.value}"
            yield element("text", x=WIDTH - _RIGHT + 6, y=free_y, text=text)
    yield from _legend(frame, [mode for mode in LADDER if any(each[mode.level] for each in counts)], False)


def _steps(edges: Sequence[float], values: Sequence[int], y: Callable[[float], float]) -> list[str]:
    found = []
    for at, value in enumerate(values):
        found += [f"{edges[at]:.1f},{y(value):.1f}", f"{edges[at + 1]:.1f},{y(value):.1f}"]
    return found


# -- both -----------------------------------------------------------------------------------------


def _legend(frame: _Frame, modes: Sequence[Mode], has_divergences: bool) -> Iterator[str]:
    x, y = float(_LEFT), HEIGHT - 8
    for mode in modes:
        yield element("rect", x=x, y=y - 10, width=14, height=12, **frame.band(mode, " edge"))
        yield element("text", x=x + 20, y=y, text=mode.value)
        x += 34 + _CHARACTER_WIDTH * len(mode.value)
    if has_divergences:
        yield _cross(x + 7, y - 4)
        yield element("text", x=x + 20, y=y, text="divergence")


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_TEXT else f"{text[: _MAX_TEXT - 1]}…"
