"""Drawings of flows: every statement once, no box over another, ways as the debugger walks them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.support.nodes import ROOT, compiled, compiled_text, worked_nodes
from vesper.compiler import Compiled
from vesper.dashboard.draw.flow import draw_flow
from vesper.dashboard.draw.flow.evidence import FlowEvidence, PathEvidence, Way, share_text, ways_of
from vesper.dashboard.draw.flow.layout import Placed, lay_out
from vesper.dashboard.draw.flow.parts import machines_of, parts_of
from vesper.debug.case_trace import trace_case
from vesper.debug.start import subject_of_case
from vesper.debug.stops import END, guarded_by
from vesper.engines.direct_engine import DirectEngine
from vesper.engines.engine import Blocked
from vesper.engines.registry import PAIR
from vesper.language.check.cases import Case
from vesper.language.ir.statements import all_statements
from vesper.migration.compare.paths import PathNote, ending_of, settled_text
from vesper.trace.expressions import Loader

LOADER = Loader()
SVG = "{http://www.w3.org/2000/svg}"
FOLLOWED = (
    "broken_loop_v1", "orders/order_lifecycle_v1", "payments/refund_v1", "shop/order_discounts_v1",
    "shop/stock_reservation_v1", "support/ticket_triage_v1", "payments/payment_decision_v1",
)  # fmt: skip
"""Nodes with loops, handlers, state machines and tables."""
MAX_BYTES, MAX_PIXELS = 200_000, 12_000
"""Of an agent with eight tools, whose flow is long once it is lowered."""
HOSTILE = """\
node_id: hostile_v1
type: function
intent: A test
inputs: {text: string, items: array<integer>}
outputs: {success: {total: integer, answer: string}}
flow:
  - step: answer
    value: "IF text == '</text><script>alert(1)</script>' THEN '\\" onload=x' ELSE ']]>&amp;'"
  - operation: return
    when: text == '"><img src=x onerror=alert(2)>'
    success: {total: 0, answer: "'<svg/onload=y>'"}
  - step: sum
    operation: loop
    over: x IN items WHERE x < 5 AND x > 1
    state: {total: 0}
    steps:
      - {operation: return, when: x == 3, success: {total: 3, answer: "'three'"}}
      - {step: twice, value: x * 2}
    next: {total: total + twice}
  - return: {total: sum.total, answer: answer}
"""


BROKEN_LOOP = """\
node_id: broken_loop_v1
type: function
intent: A test
inputs: {items: array<integer>}
outputs: {success: {total: decimal}}
flow:
  - step: sum
    operation: loop
    over: x IN items
    state: {total: {type: decimal, value: 0}}
    steps:
      - {operation: return, when: x == 7, success: {total: 7}}
      - {step: part, value: "div(100, x, 0, floor)"}
    next: {total: total + part}
    on_error: {division_by_zero: {value: {total: -1}}}
  - return: {total: sum.total}
testing:
  test_cases:
    - {name: no round, inputs: {items: []}, expect: {total: 0}}
    - {name: two rounds, inputs: {items: [2, 4]}, expect: {total: 75}}
    - {name: the second fails, inputs: {items: [2, 0, 4]}, expect: {total: -1}}
    - {name: the second returns, inputs: {items: [2, 7, 4]}, expect: {total: 7}}
"""


def drawn_boxes(node: Compiled, has_evidence: bool = False) -> list[Placed]:
    return lay_out(node.node.node_id, parts_of(node), machines_of(node), has_evidence).boxes


@pytest.mark.parametrize("path", worked_nodes(), ids=lambda path: path.stem)
def test_every_statement_is_drawn_once_and_boxes_are_apart(path: Path) -> None:
    node = compiled(path)
    text = draw_flow(node, FlowEvidence(()), source="/x")
    root = ET.fromstring(text)
    drawn = [each.attrib["data-statement"] for each in root.iter() if "data-statement" in each.attrib]
    assert sorted(map(int, drawn)) == list(range(sum(1 for _ in all_statements(node.node.body))))
    assert len(text) < MAX_BYTES
    assert max(float(root.attrib["width"]), float(root.attrib["height"])) < MAX_PIXELS
    assert overlapping(drawn_boxes(node)) == overlapping(drawn_boxes(node, True)) == []


def overlapping(boxes: list[Placed]) -> list[tuple[Placed, Placed]]:
    return [
        (one, other)
        for number, one in enumerate(boxes)
        for other in boxes[number + 1 :]
        if one.left < other.right and other.left < one.right and one.top < other.bottom and other.top < one.bottom
    ]


def test_many_statements_stay_readable() -> None:
    steps = "\n".join(
        f"  - {{step: s{number}, value: {f's{number - 1}' if number else 'n'} + 1}}" for number in range(200)
    )
    guards = "\n".join(f"  - {{operation: return, when: n == {n}, success: {{m: s{n}}}}}" for n in range(60))
    node = compiled_text(
        "node_id: long_v1\ntype: function\nintent: A test\ninputs: {n: integer}\noutputs: {success: {m: integer}}\n"
        f"flow:\n{steps}\n{guards}\n  - return: {{m: s199}}\n"
    )
    layout = lay_out("long_v1", parts_of(node), (), False)
    assert overlapping(layout.boxes) == []
    assert len(layout.boxes) == 1 + 1 + 2 * 60 + 1  # start, one box for the run, a guard and an end each, the end
    assert layout.width < 900


def test_hostile_texts_are_escaped() -> None:
    node = compiled_text(HOSTILE)
    text = draw_flow(node, source="/nodes/x/source", is_file=True)
    root = ET.fromstring(text)
    assert {each.tag.removeprefix(SVG) for each in root.iter()} <= {
        "svg", "g", "a", "path", "rect", "text", "title", "style"
    }  # fmt: skip
    attributes = {name for each in root.iter() for name in each.attrib}
    assert not [name for name in attributes if name == "style" or name.startswith("on")]
    titles = " ".join(each.text or "" for each in root.iter(f"{SVG}title"))
    assert "</text><script>alert(1)</script>" in titles
    assert all(re.fullmatch(r"/nodes/x/source#L[0-9]+", each.attrib["href"]) for each in root.iter(f"{SVG}a"))


# -- ways -----------------------------------------------------------------------------------------


def note_of(node: Compiled, case: Case) -> PathNote:
    trace = trace_case(node, case)
    execution = DirectEngine().load(node).start_pathed(trace.inputs, bytes(16), trace.now)
    step = execution.advance(())
    for exchange in trace.exchanges:
        assert isinstance(step, Blocked)
        step = execution.advance((exchange.completion(step.requests[0]),))
    assert trace.outcome is not None
    settled = tuple(sorted({settled_text(each.path, each.failure) for each in trace.exchanges}))
    return PathNote(execution.path(), settled, ending_of(trace.outcome))


def ways_of_case(node: Compiled, case: Case) -> frozenset[Way]:
    return ways_of(parts_of(node), DirectEngine().load(node).points(), note_of(node, case))


def statements_walked(node: Compiled, case: Case) -> set[int]:
    """Return the statements at which the debugger stops, and those behind their `when:`."""
    session = replace(subject_of_case(node, [PAIR["python"]], case, {}, None), loader=LOADER).session()
    session.resume()
    assert session.leader.stops[-1].path == END
    reached = {id(stop.statement) for stop in session.leader.stops if stop.statement is not None}
    for stop in session.leader.stops:
        if stop.statement is not None and not stop.is_skipped:
            reached.add(id(guarded_by(stop.statement)))
    return {number for number, each in enumerate(all_statements(node.node.body)) if id(each) in reached}


@pytest.mark.parametrize("name", FOLLOWED)
def test_ways_are_those_of_the_debugger(name: str) -> None:
    node = compiled(ROOT / "nodes" / f"{name}.vsp") if "/" in name else compiled_text(BROKEN_LOOP)
    for case in node.cases[:8]:
        at = {number for kind, number, _ in ways_of_case(node, case) if kind == "at"}
        assert at == statements_walked(node, case), case.name


def test_evidence_is_proven_where_every_path_is() -> None:
    way, other, third = ("at", 0, 0), ("arm", 1, 0), ("no", 1, 0)
    evidence = FlowEvidence(
        [
            PathEvidence("A", 970, True, 0, frozenset({way, other})),
            PathEvidence("B", 30, False, 0, frozenset({way})),
            PathEvidence("C", 0, False, 2, frozenset({third})),
        ]
    )
    found = evidence.of(way)
    assert (found.state, found.runs, found.letters) == ("unproven", 1000, ("A", "B"))
    assert evidence.of(other).text == "✓ 97 % · 970"
    assert evidence.of(third).text == "✗ 2 diverged"
    assert evidence.of(("at", 9, 0)).state == "unseen"
    assert (share_text(0.0001), share_text(0), share_text(1)) == ("< 1 %", "0 %", "100 %")


def test_evidence_and_path_show_in_the_drawing() -> None:
    node = compiled_text(HOSTILE)
    parts = parts_of(node)
    ways = frozenset({("at", 0, 0), ("after", 0, 0), ("at", 1, 0), ("arm", 1, 0), ("at", 2, 0)})
    evidence = FlowEvidence([PathEvidence("A", 10, True, 0, ways)])
    root = ET.fromstring(draw_flow(node, evidence, ways))
    boxes = {
        int(each.attrib["data-statement"]): each.attrib["class"].split()
        for each in root.iter()
        if "data-statement" in each.attrib
    }
    groups = [each for each in root.iter(f"{SVG}g") if each.attrib.get("class", "").startswith("box ")]
    states = {
        int(step.attrib["data-statement"]): set(group.attrib["class"].split())
        for group in groups
        for step in group
        if "data-statement" in step.attrib
    }
    assert len(boxes) == 8
    assert len(parts) == 4
    assert {"proven", "taken"} <= states[2]
    assert "unseen" in states[3]
    assert "taken" not in states[3]
    widths = {each.attrib["stroke-width"] for each in root.iter(f"{SVG}path") if "stroke-width" in each.attrib}
    assert widths == {"8.25", "1.25"}
    texts = [each.text for each in root.iter(f"{SVG}text")]
    assert "✓ 100 % · 10" in texts
    assert "– not seen" in texts
