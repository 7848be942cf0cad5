"""Positions of a flow's boxes and edges: the main way from top to bottom, alternatives and handlers to its right.

A block is a column of boxes with one left edge. The parts behind a condition are in a column to its right; ways that
continue are led around everything below them and join the main way under their fork. A loop's round is indented, with
the way back at its left. Straight runs of computations share one box, a line for each.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from vesper.dashboard.draw.flow.evidence import Way
from vesper.dashboard.draw.flow.parts import Box, Fork, Handler, LoopPart, Part, Step

CHARACTER, LINE, PADDING = 7.25, 17, 9
"""Sizes in pixels, of a monospaced font of 12 pixels."""
ENTRY = 17
"""Distance of an edge that enters from the left from the top of its box."""
_SPINE = 24
"""Distance of the main way from the left edge of its boxes."""
_GAP, _JOIN, _INDENT, _BUS = 26, 14, 40, 14
_MIN_WIDTH, _MAX_CHARACTERS, _MAX_LINES = 96, 40, 3
_COMPUTED = ("compute", "require")
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class TextLine:
    text: str
    full: str
    box: Box
    """Statement to which the line belongs."""
    way: Way | None
    style: str
    """`name`, `text` or `row`."""
    at: int
    """Line in the source."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A box with its position."""

    kind: str
    boxes: tuple[Box, ...]
    """Its statement, or all statements of a run."""
    lines: tuple[TextLine, ...]
    way: Way | None
    left: float
    top: float
    width: float
    height: float

    @property
    def right(self) -> float:
        return self.left + self.width

    @property
    def bottom(self) -> float:
        return self.top + self.height


@dataclass(frozen=True, slots=True)
class Edge:
    points: tuple[Point, ...]
    way: Way | None
    label: str = ""
    kind: str = ""
    """`failure` leads to a handler, `back` to the head of a loop."""
    has_arrow: bool = True


@dataclass(slots=True)
class Layout:
    """A drawing: boxes, edges, and frames around parts whose failures a handler catches."""

    boxes: list[Placed] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    frames: list[tuple[float, float, float, float]] = field(default_factory=list)
    width: float = 0
    height: float = 0


@dataclass(frozen=True, slots=True)
class _Area:
    """A part that was placed: its open edges and its extent."""

    tips: list[Edge]
    bottom: float
    right: float


def lay_out(name: str, parts: Sequence[Part], machines: Sequence[Box], has_evidence: bool) -> Layout:
    """Place a node's flow below a box with its name and its state machines. Evidence needs room for numbers."""
    placer = _Placer(92 if has_evidence else 46, LINE if has_evidence else 0)
    start = last = placer.put(Box(None, "start", name, "", 1), 12, 12, [], None)
    bottom = start.bottom
    for machine in machines:
        last = placer.put(machine, last.right + _GAP, 12, [], None)
        bottom = max(bottom, last.bottom)
    entering = Edge((_below(start),), _way("at", parts[0].box))
    area = placer.block(parts, 12, bottom + _GAP, [entering])
    found = placer.layout
    found.width, found.height = max(area.right, last.right) + 24, area.bottom + 16
    return found


class _Placer:
    def __init__(self, label_width: int, badge_height: int) -> None:
        self.layout = Layout()
        self._label_width = label_width
        self._badge_height = badge_height

    # -- boxes and edges --------------------------------------------------------------------------

    def put(self, box: Box, left: float, top: float, tips: Sequence[Edge], way: Way | None) -> Placed:
        return self._place(box.kind, (box,), _lines_of(box), left, top, tips, way)

    def _place(
        self, kind: str, boxes: tuple[Box, ...], lines: tuple[TextLine, ...], left: float, top: float,
        tips: Sequence[Edge], way: Way | None,
    ) -> Placed:  # fmt: skip
        badge = 0 if way is None else self._badge_height
        longest = max(len(each.text) + (9 if badge and each.way else 0) for each in lines)
        width = max(_MIN_WIDTH, (28 * 6.3 if badge else 0), longest * CHARACTER) + 2 * PADDING
        # Room for slanted sides, and for the double sides of a call.
        width += 0 if kind in ("compute", "table", "require", "start", "value") else 16
        placed = Placed(kind, boxes, lines, way, left, top, round(width), LINE * len(lines) + 2 * PADDING + badge)
        self.layout.boxes.append(placed)
        for tip in tips:
            self._finish(tip, left, top)
        return placed

    def _finish(self, tip: Edge, left: float, top: float) -> None:
        """Lead an open edge into a box: from its left where the edge is above its entry, else from above."""
        if tip.points[-1][1] >= top:
            self.layout.edges.append(replace(tip, points=(*tip.points, (left, top + ENTRY))))
        else:
            self.layout.edges.append(replace(tip, points=_bend(tip.points, left + _SPINE, top)))

    # -- parts ------------------------------------------------------------------------------------

    def block(self, parts: Sequence[Part], left: float, top: float, tips: list[Edge]) -> _Area:
        """Place a block. Its first box takes the open edges."""
        area = _Area(tips, top - _GAP, left)
        for run in _runs(parts):
            if len(run) > 1:
                found = self._run([each.box for each in run], left, area.bottom + _GAP, area.tips)
            else:
                found = self._part(run[0], left, area.bottom + _GAP, area.tips)
            area = _Area(found.tips, found.bottom, max(area.right, found.right))
        return area

    def _run(self, boxes: list[Box], left: float, top: float, tips: list[Edge]) -> _Area:
        lines = tuple(_line_of_run(box) for box in boxes)
        placed = self._place(boxes[0].kind, tuple(boxes), lines, left, top, tips, _way("at", boxes[0]))
        return _Area([Edge((_below(placed),), _way("after", boxes[-1]))], placed.bottom, placed.right)

    def _part(self, part: Part, left: float, top: float, tips: list[Edge]) -> _Area:
        area: _Area
        match part:
            case Step(box):
                placed = self.put(box, left, top, tips, _way("at", box))
                ends = box.kind in ("return", "raise")
                # The value of an arm continues the edge that entered it.
                way = tips[0].way if box.number is None and tips else _way("after", box)
                area = _Area([] if ends else [Edge((_below(placed),), way)], placed.bottom, placed.right)
            case Fork():
                area = self._fork(part, left, top, tips)
            case LoopPart():
                area = self._loop(part, left, top, tips)
        if part.handlers:
            if not isinstance(part, Step):
                self.layout.frames.append((left - 6, top - 6, area.right + 6, area.bottom + 6))
                area = _Area(area.tips, area.bottom + 6, area.right + 6)
            area = self._handlers(part.handlers, area, top)
        return self._join(area, left, _way("after", part.box))

    def _join(self, area: _Area, left: float, way: Way | None) -> _Area:
        """Join several open edges below the part to which they belong."""
        if not area.tips or (len(area.tips) == 1 and area.tips[0].points[-1][0] == left + _SPINE):
            return area
        y = area.bottom + _JOIN
        for tip in area.tips:
            points = (*tip.points, (tip.points[-1][0], y), (left + _SPINE, y))
            self.layout.edges.append(replace(tip, points=_without_repeats(points), has_arrow=False))
        return _Area([Edge(((left + _SPINE, y),), way)], y, area.right)

    def _fork(self, fork: Fork, left: float, top: float, tips: list[Edge]) -> _Area:
        number = fork.box.number
        assert number is not None
        widths = [self._width(rung.box) for rung in fork.rungs]
        column = left + max(widths) + self._label_width
        open_: list[Edge] = []
        right, y, last = left + max(widths), top, top
        for index, rung in enumerate(fork.rungs):
            way = ("at", number, 0) if index == 0 else ("no", number, index - 1)
            placed = self.put(rung.box, left, y, tips, way)
            out = Edge(((placed.right, y + ENTRY), (column, y + ENTRY)), ("arm", number, index), rung.yes)
            if rung.parts:
                out = replace(out, points=out.points[:1])
            area = self.block(rung.parts, column, y, [out])
            right = max(right, area.right, column)
            bottom = max(area.bottom, y + ENTRY)
            last = area.tips[0].points[-1][1] if area.tips else top
            open_ += [replace(tip, way=tip.way if rung.parts else out.way) for tip in area.tips]
            no = "yes" if rung.yes == "no" else "no"
            tips = [Edge((_below(placed),), ("no", number, index), no)]
            y = max(placed.bottom, bottom) + _GAP
        rest = self.block(fork.otherwise, left, y, tips)
        bottom = max(rest.bottom, y - _GAP)
        bus = max(right, rest.right) + _BUS
        is_clear = rest.right + 8 < column + _SPINE or not fork.otherwise
        led = [tip if tip.points[-1][1] == last and is_clear else _lead_to(tip, bus) for tip in open_]
        if led != open_:
            open_, right = led, bus
        return _Area([*rest.tips, *open_], bottom, max(right, rest.right))

    def _width(self, box: Box) -> float:
        return _Placer(self._label_width, self._badge_height).put(box, 0, 0, [], ("at", 0, 0)).width

    def _loop(self, cycle: LoopPart, left: float, top: float, tips: list[Edge]) -> _Area:
        number = cycle.box.number
        assert number is not None
        head = self.put(cycle.box, left, top, tips, ("at", number, 0))
        inner = left + _INDENT
        way: Way = ("loop", number, 0)
        entering = [Edge(((inner + _SPINE, head.bottom),), way, "each")]
        area = self.block(cycle.parts, inner, head.bottom + _GAP, entering)
        area = self._join(area, inner, way) if len(area.tips) > 1 else area
        bottom = max(area.bottom, head.bottom) + _JOIN
        for tip in area.tips:
            points = (*tip.points, (tip.points[-1][0], bottom), (left + _SPINE, bottom), (left + _SPINE, head.bottom))
            self.layout.edges.append(replace(tip, points=_without_repeats(points), way=way, kind="back"))
        leaving = Edge(((left + 8, head.bottom),), ("after", number, 0), "")
        return _Area([leaving], bottom, max(head.right, area.right))

    def _handlers(self, handlers: Sequence[Handler], main: _Area, top: float) -> _Area:
        start = main.right
        column, y = start + self._label_width, top
        open_: list[Edge] = []
        right = start
        for handler in handlers:
            way: Way = ("run", handler.number, 0)
            points = ((start, top + ENTRY), (column - 18, top + ENTRY), (column - 18, y + ENTRY))
            edge = Edge(
                _without_repeats(points if y > top else points[:1]), way, "fails" if y == top else "", "failure"
            )
            placed = self.put(handler.box, column, y, (), way)
            self.layout.edges.append(replace(edge, points=(*edge.points, (column, y + ENTRY))))
            parts = handler.parts
            leaves = parts and isinstance(parts[-1], Step) and parts[-1].box.kind in ("return", "raise")
            if not handler.resumes and not leaves:
                parts = (*parts, Step(Box(None, "raise", "failure passed on", "", handler.box.line)))
            area = self.block(parts, column, placed.bottom + _GAP, [Edge((_below(placed),), way)])
            right = max(right, placed.right, area.right)
            open_ += [replace(tip, way=("resume", handler.number, 0)) for tip in area.tips if handler.resumes]
            y = max(placed.bottom, area.bottom) + _GAP
        led = [tip if tip.points[-1][1] == y - _GAP else _lead_to(tip, right + _BUS) for tip in open_]
        right += 0 if led == open_ else _BUS
        return _Area([*main.tips, *led], max(main.bottom, y - _GAP), right)


# -- texts ----------------------------------------------------------------------------------------


def _runs(parts: Sequence[Part]) -> list[list[Step] | list[Part]]:
    """Return the parts one by one, and consecutive computations without handlers together."""
    found: list[list[Step] | list[Part]] = []
    for kind, group in groupby(parts, _run_kind):
        listed = list(group)
        found += [listed] if kind else [[each] for each in listed]
    return found


def _run_kind(part: Part) -> str:
    is_plain = isinstance(part, Step) and part.box.kind in _COMPUTED and not part.handlers
    return part.box.kind if is_plain else ""


def _line_of_run(box: Box) -> TextLine:
    full = f"{box.title} {'' if box.kind == 'require' else '= '}{box.text}"
    return TextLine(shorten(full), full, box, None, "text", box.line)


def _lines_of(box: Box) -> tuple[TextLine, ...]:
    full = f"{box.title}: {box.text}" if box.title and box.text else box.title or box.text
    lines = [TextLine(shorten(box.title), full, box, None, "name", box.line)] if box.title else []
    if box.rows:
        rows = [
            TextLine(shorten(row.text), row.text, box, _row_way(box, index), "row", row.line)
            for index, row in enumerate(box.rows)
        ]
        return (*lines, *rows)
    wrapped = textwrap.wrap(box.text, _MAX_CHARACTERS, max_lines=_MAX_LINES, placeholder=" …")
    return (*lines, *(TextLine(each, full, box, None, "text", box.line) for each in wrapped))


def _row_way(box: Box, index: int) -> Way | None:
    return None if box.number is None else ("row", box.number, index)


def shorten(text: str) -> str:
    return text if len(text) <= _MAX_CHARACTERS else f"{text[: _MAX_CHARACTERS - 1]}…"


# -- points ---------------------------------------------------------------------------------------


def _way(kind: str, box: Box) -> Way | None:
    return None if box.number is None else (kind, box.number, 0)


def _below(placed: Placed) -> Point:
    return placed.left + _SPINE, placed.bottom


def _bend(points: tuple[Point, ...], x: float, y: float) -> tuple[Point, ...]:
    """Lead an edge down to a point, with a bend above it where it comes from the side."""
    last_x, _ = points[-1]
    return _without_repeats((*points, (last_x, y - _JOIN), (x, y - _JOIN), (x, y)))


def _lead_to(tip: Edge, bus: float) -> Edge:
    """Lead an open edge to a vertical line at the right."""
    x, y = tip.points[-1]
    return replace(tip, points=(*tip.points, (x, y + 8), (bus, y + 8)))


def _without_repeats(points: tuple[Point, ...]) -> tuple[Point, ...]:
    return tuple(each for index, each in enumerate(points) if index == 0 or each != points[index - 1])
