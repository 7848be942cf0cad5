"""Call hierarchy: who calls a node or function, and what it calls."""

from __future__ import annotations

from tests.unit.lsp.features.workspace import FEE, ORDER, RULES, marked, open_at
from vesper.lsp.features.hierarchy import incoming, outgoing, prepare
from vesper.lsp.positions import path_of


def test_nodes_call_nodes_and_functions() -> None:
    view, position = open_at(marked("intent", "|intent", ORDER), "order_v1", fee_v1=FEE, rules_v1=RULES)
    (item,) = prepare(view, position)
    assert (item.name, item.detail) == ("order_v1", "Price an order.")
    assert [each.to.name for each in outgoing(view, item)] == ["fee_v1", "doubled"]


def test_callers_of_a_node_and_of_a_function() -> None:
    view, position = open_at(marked("fee_v1", "fe|e_v1"), order_v1=ORDER, rules_v1=RULES)
    (item,) = prepare(view, position)
    assert [(each.from_.name, len(each.from_ranges)) for each in incoming(view, item)] == [("order_v1", 1)]
    view, position = open_at(marked("capped(amount", "cap|ped(amount"))
    (item,) = prepare(view, position)
    assert [each.from_.name for each in incoming(view, item)] == ["fee_v1"]
    assert outgoing(view, item) == []


def test_functions_of_a_library() -> None:
    view, position = open_at(marked("doubled:", "dou|bled:", RULES), "rules_v1", order_v1=ORDER, fee_v1=FEE)
    (item,) = prepare(view, position)
    (call,) = incoming(view, item)
    path = path_of(call.from_.uri)
    assert path is not None
    assert path.name == "order_v1.vsp"
