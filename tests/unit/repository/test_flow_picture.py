from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest

from tests.support.nodes import ROOT, compiled_text
from vesper.language.diagnostics.source import SourceFile
from vesper.repository.flow_picture import draw_flow

NODES = ("orders/checkout_v1", "shop/stock_reservation_v1", "shop/order_discounts_v1", "orders/order_lifecycle_v1")


def _drawn(text: str) -> tuple[list[str], list[tuple[float, ...]]]:
    """Return the texts and the rectangles of a picture."""
    root = ET.fromstring(draw_flow(SourceFile("test.vsp", text)))
    shapes = [each.attrib for each in root.iter("{http://www.w3.org/2000/svg}rect")]
    boxes = [tuple(float(each[key]) for key in ("x", "y", "width", "height")) for each in shapes]
    return [each.text or "" for each in root.iter("{http://www.w3.org/2000/svg}text")], boxes


@pytest.mark.parametrize("node", NODES)
def test_picture_has_every_step_and_boxes_do_not_cross(node: str) -> None:
    text = (ROOT / "nodes" / f"{node}.vsp").read_text(encoding="utf-8")
    texts, boxes = _drawn(text)
    named = re.findall(r"- step: (\w+)", text.split("\ntesting:")[0])
    assert named
    assert [name for name in named if not any(each.startswith(f"{name}: ") for each in texts)] == []
    for number, (left, top, width, height) in enumerate(boxes):
        for other in boxes[number + 1 :]:
            apart = (
                other[0] >= left + width or other[0] + other[2] <= left
                or other[1] >= top + height or other[1] + other[3] <= top
            )  # fmt: skip
            inside = (
                other[0] >= left and other[1] >= top
                and other[0] + other[2] <= left + width and other[1] + other[3] <= top + height
            )  # fmt: skip
            assert apart or inside, (boxes[number], other)


FLOW = """\
node_id: picture_v1
type: function
intent: A test
inputs: {items: array<integer>}
outputs: {success: {total: integer}}
flow:
  - step: sum
    operation: loop
    over: x IN items WHERE x < 5 AND x > 1
    state: {total: 0}
    steps: [{step: twice, value: x * 2}]
    next: {total: total + twice}
  - return: {total: sum.total}
"""


def test_picture_nests_loops_and_escapes_text() -> None:
    compiled_text(FLOW)  # without errors
    texts, boxes = _drawn(FLOW)
    assert texts == [
        "x IN items", "WHERE x < 5 AND x > 1", "total = total + twice", "sum: loop", "each", "x * 2", "twice: compute",
        "total = sum.total", "return",
    ]  # fmt: skip
    loop, inner, end = boxes
    assert inner[0] > loop[0]
    assert inner[1] + inner[3] < loop[1] + loop[3] < end[1]
