"""Drawing of a node's flow as SVG: colour is evidence, width is traffic.

State is shown by a symbol, a dash pattern and a count besides its colour. The drawing has classes and presentation
attributes only, as the content security policy of the dashboard demands; a file gets the style sheet inside.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from html import escape
from importlib.resources import files

from vesper.compiler import Compiled
from vesper.dashboard.draw.flow.evidence import SYMBOLS, FlowEvidence, State, Way, WayEvidence
from vesper.dashboard.draw.flow.layout import ENTRY, LINE, PADDING, Edge, Layout, Placed, Point, TextLine, lay_out
from vesper.dashboard.draw.flow.parts import machines_of, parts_of

_MEANINGS: dict[State, str] = {
    "proven": "proven",
    "unproven": "more runs needed",
    "diverged": "diverged",
    "unseen": "not seen",
}
_SLANT = 8
_RADIUS = 6
_SMALL_CHARACTER = 6.4


def draw_flow(
    node: Compiled,
    evidence: FlowEvidence | None = None,
    taken: Collection[Way] | None = None,
    source: str | None = None,
    is_file: bool = False,
) -> str:
    """Return the flow of a node as SVG.

    `taken` highlights the ways of one run (`evidence.ways_of`). With `source`, the address of a page with anchors for
    lines, boxes link to their line. A file has its own style.
    """
    layout = lay_out(node.node.node_id, parts_of(node), machines_of(node), evidence is not None)
    drawer = _Drawer(evidence, taken, source)
    legend, legend_width = ("", 0.0) if evidence is None else drawer.legend()
    top = 34 if legend else 0
    width, height = max(layout.width, legend_width), layout.height + top
    style = f"<style>{style_sheet()}</style>" if is_file else ""
    title = escape(f"Flow of {node.node.node_id}")
    body = "\n".join(drawer.body(layout))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="flow{"" if taken is None else " has-path"}" '
        f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" role="group" '
        f'aria-label="{title}"><title>{title}</title>{style}\n{legend}'
        f'<g transform="translate(0 {top})">\n{body}\n</g></svg>\n'
    )


def style_sheet() -> str:
    """Return the style of flows, which pages load as `flow.css`."""
    return files("vesper.dashboard").joinpath("static/flow.css").read_text(encoding="utf-8")


class _Drawer:
    def __init__(self, evidence: FlowEvidence | None, taken: Collection[Way] | None, source: str | None) -> None:
        self._evidence = evidence
        self._taken = taken
        self._source = source

    def legend(self) -> tuple[str, float]:
        """Return the meanings of the states, and their width."""
        found: list[str] = []
        x = 12.0
        for state, meaning in _MEANINGS.items():
            found.append(f'<g class="{state}"><path class="outline" d="{_outline("compute", x, 8, 26, 18)}"/>')
            found.append(f"{_text(SYMBOLS[state], x + 9, 21, 'badge')}{_text(meaning, x + 34, 21, 'badge plain')}</g>")
            x += 34 + _SMALL_CHARACTER * len(meaning) + 16
        last = "width: share of runs"
        return "".join([*found, _text(last, x, 21, "badge plain"), "\n"]), x + _SMALL_CHARACTER * len(last) + 12

    def body(self, layout: Layout) -> Iterable[str]:
        for left, top, right, bottom in layout.frames:
            shape = f'x="{left:.0f}" y="{top:.0f}" width="{right - left:.0f}" height="{bottom - top:.0f}"'
            yield f'<rect class="frame" {shape} rx="8"/>'
        # Wide edges first, so that narrow ones remain visible where they join.
        for edge in sorted(layout.edges, key=lambda each: -self._width(each.way)):
            yield self._edge(edge)
        for placed in layout.boxes:
            yield self._box(placed)

    # -- evidence ---------------------------------------------------------------------------------

    def _evidence_of(self, way: Way | None) -> WayEvidence | None:
        return None if self._evidence is None or way is None else self._evidence.of(way)

    def _classes(self, way: Way | None) -> str:
        found = self._evidence_of(way)
        state = "" if found is None else f" {found.state}"
        return f"{state} taken" if self._taken is not None and way in self._taken else state

    def _width(self, way: Way | None) -> float:
        found = self._evidence_of(way)
        return 1.5 if found is None else 1.25 + 7 * found.share

    # -- shapes -----------------------------------------------------------------------------------

    def _edge(self, edge: Edge) -> str:
        found = self._evidence_of(edge.way)
        width = self._width(edge.way)
        parts = [f'<path class="line" d="{_rounded_line(edge.points)}" stroke-width="{width:.2f}"/>']
        if edge.has_arrow:
            parts.append(f'<path class="head" d="{_arrow(edge.points, 4 + width / 2)}"/>')
        words = [edge.label, "" if found is None or not edge.label else found.short]
        label = " ".join(filter(None, words))
        if label:
            (x, y), (_, next_y) = edge.points[:2]
            at = (x + 6, y - 5) if y == next_y else (x + 5 + width / 2, y + 13)
            parts.append(_text(label, *at, "label"))
        if found is not None:
            parts.append(f"<title>{escape(_describe_evidence(found))}</title>")
        return f'<g class="edge {edge.kind}{self._classes(edge.way)}">{"".join(parts)}</g>'

    def _box(self, placed: Placed) -> str:
        found = self._evidence_of(placed.way)
        size = (placed.left, placed.top, placed.width, placed.height)
        head = f'<path class="outline" d="{_outline(placed.kind, *size)}"/>'
        if len(placed.boxes) == 1 and not placed.boxes[0].rows:
            lines = self._link(placed, placed.lines, head)
        else:
            groups = [(line,) for line in placed.lines]
            lines = head + "".join(self._link(placed, group, "") for group in groups)
        badge = ""
        if found is not None:
            at = (placed.left + _inset(placed.kind), placed.bottom - PADDING)
            badge = f"{_text(found.text, *at, 'badge')}<title>{escape(_describe_evidence(found))}</title>"
        return f'<g class="box {placed.kind}{self._classes(placed.way)}">{lines}{badge}</g>'

    def _link(self, placed: Placed, lines: tuple[TextLine, ...], head: str) -> str:
        """Return lines of a box as one focusable element."""
        first = lines[0]
        parts = [head]
        for line in lines:
            y = placed.top + PADDING + LINE * placed.lines.index(line) + 12
            parts.append(_text(line.text, placed.left + _inset(placed.kind), y, line.style))
            row = self._evidence_of(line.way)
            if row is not None:
                x = placed.left + placed.width - PADDING
                parts.append(_text(row.short, x, y, f"badge count {row.state}"))
        is_statement = first.box.number is not None and first.style != "row" and first.way is None
        about = f' data-statement="{first.box.number}"' if is_statement else ""
        state = "" if placed.way is None or len(placed.boxes) == 1 else self._classes(("at", first.box.number or 0, 0))
        state = self._classes(first.way) if first.way is not None else state
        text = escape(f"{first.full} (line {first.at})")
        shared = f'class="step{" option" if first.style == "row" else ""}{state}"{about} data-line="{first.at}"'
        inner = f"{''.join(parts)}<title>{text}</title>"
        if self._source is None:
            return f'<g {shared} tabindex="0" role="img" aria-label="{text}">{inner}</g>'
        return f'<a {shared} href="{escape(self._source)}#L{first.at}" aria-label="{text}">{inner}</a>'


def _describe_evidence(found: WayEvidence) -> str:
    if found.state == "unseen":
        return "No compared run came here."
    paths = ", ".join(found.letters[:12]) + (" …" if len(found.letters) > 12 else "")
    return f"{found.text} runs; paths {paths}; {_MEANINGS[found.state]}"


def _inset(kind: str) -> float:
    return PADDING if kind in ("compute", "table", "require", "start", "value") else PADDING + _SLANT


def _text(text: str, x: float, y: float, style: str) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" class="{style}">{escape(text)}</text>'


def _outline(kind: str, x: float, y: float, w: float, h: float) -> str:
    """Return the outline of a box: its shape is the kind of its statement."""
    r, b, s = x + w, y + h, _SLANT
    match kind:
        case "condition":
            points = [(x + s, y), (r - s, y), (r, y + ENTRY), (r - s, b), (x + s, b), (x, y + ENTRY)]
        case "http" | "effect" | "cache":
            points = [(x + s, y), (r, y), (r - s, b), (x, b)]
        case "event":
            points = [(x, y), (r - s, y), (r, y + h / 2), (r - s, b), (x, b), (x + s, y + h / 2)]
        case "file":
            points = [(x, y), (r - s, y), (r, y + s), (r, b), (x, b)]
        case "raise":
            points = [(x + s, y), (r - s, y), (r, y + s), (r, b - s), (r - s, b), (x + s, b), (x, b - s), (x, y + s)]
        case "loop":
            points = [(x + s, y), (r - s, y), (r, y + s), (r, b), (x, b), (x, y + s)]
        case "database":
            bow = f"Q{x + w / 2:.0f} {y - 3:.0f} {r:.0f} {y + 5:.0f}"
            lid = f"M{x:.0f} {y + 5:.0f}Q{x + w / 2:.0f} {y + 11:.0f} {r:.0f} {y + 5:.0f}"
            return f"M{x:.0f} {y + 5:.0f}{bow}V{b - 4:.0f}Q{x + w / 2:.0f} {b + 4:.0f} {x:.0f} {b - 4:.0f}Z{lid}"
        case "call" | "state":
            inner = f"M{x + 5:.0f} {y:.0f}V{b:.0f}M{r - 5:.0f} {y:.0f}V{b:.0f}"
            return _rectangle(x, y, w, h, 3 if kind == "call" else 10) + inner
        case "return" | "start" | "handler":
            return _rectangle(x, y, w, h, min(14, h / 2))
        case _:
            return _rectangle(x, y, w, h, 3)
    return "M" + "L".join(f"{px:.0f} {py:.0f}" for px, py in points) + "Z"


def _rectangle(x: float, y: float, w: float, h: float, radius: float) -> str:
    corner = f"a{radius:.0f} {radius:.0f} 0 0 1 "
    return (
        f"M{x + radius:.0f} {y:.0f}h{w - 2 * radius:.0f}{corner}{radius:.0f} {radius:.0f}v{h - 2 * radius:.0f}"
        f"{corner}{-radius:.0f} {radius:.0f}h{2 * radius - w:.0f}{corner}{-radius:.0f} {-radius:.0f}"
        f"v{2 * radius - h:.0f}{corner}{radius:.0f} {-radius:.0f}z"
    )


def _rounded_line(points: tuple[Point, ...]) -> str:
    """Return a line through points at right angles, with rounded corners."""
    parts = [f"M{points[0][0]:.0f} {points[0][1]:.0f}"]
    for before, at, after in zip(points, points[1:], points[2:], strict=False):
        parts.append(f"L{_towards(at, before)}Q{at[0]:.0f} {at[1]:.0f} {_towards(at, after)}")
    return "".join([*parts, f"L{points[-1][0]:.0f} {points[-1][1]:.0f}"])


def _towards(start: Point, end: Point) -> str:
    """Return the point at a corner's radius from its start."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = max(abs(dx), abs(dy), 1)
    step = min(_RADIUS, length / 2)
    return f"{start[0] + dx / length * step:.1f} {start[1] + dy / length * step:.1f}"


def _arrow(points: tuple[Point, ...], size: float) -> str:
    (from_x, from_y), (x, y) = points[-2:]
    dx, dy = (x > from_x) - (x < from_x), (y > from_y) - (y < from_y)
    tail_x, tail_y = x - dx * size * 1.4, y - dy * size * 1.4
    one, other = (tail_x - dy * size, tail_y + dx * size), (tail_x + dy * size, tail_y - dx * size)
    return f"M{x:.1f} {y:.1f}L{one[0]:.1f} {one[1]:.1f}L{other[0]:.1f} {other[1]:.1f}Z"
