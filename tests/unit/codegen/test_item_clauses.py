"""One pass tests all clauses about the items of a collection; the first broken clause counts, as on every engine."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from tests.support.nodes import compiled_text
from vesper.codegen.module import generate_module
from vesper.engines.engine import Done
from vesper.engines.outcome import ContractBroken, Returned
from vesper.engines.registry import ENGINES
from vesper.kernels.raised import ContractBroken as Broken

NODE = """\
node_id: lines_v1
type: function
intent: Add lines
types:
  Quantity: {type: integer, constraints: [positive, {max: 10}]}
  Price: {type: decimal, constraints: [{min: 0}]}
  Note: {type: string, constraints: [non_empty]}
  Line:
    fields:
      qty: Quantity
      price: Price
      note: optional<Note>
inputs:
  lines: array<Line>
  by_name: map<string, array<Line>>
outputs:
  success: {total: decimal}
contracts:
  preconditions:
    - FORALL line IN lines SATISFIES line.price < 100
    - FORALL line IN lines SATISFIES line.qty * line.price <= 500
flow:
  - {step: total, operation: compute, value: SUM(line.qty * line.price FOR line IN lines)}
  - {operation: return, success: [total]}
"""


def line(qty: int = 1, price: str = "1", note: str | None = None) -> dict[str, Any]:
    return {"qty": qty, "price": Decimal(price), "note": note}


CASES: list[tuple[list[dict[str, Any]], dict[str, Any], tuple[str, int] | None]] = [
    ([], {}, None),
    ([line()], {"a": [line()]}, None),
    ([line(qty=11), line(qty=0)], {}, ("constraint", 0)),
    ([line(price="-1"), line(qty=11)], {}, ("constraint", 1)),
    ([line(note=""), line(price="-1")], {}, ("constraint", 2)),
    ([line(price="100"), line(note="")], {}, ("constraint", 3)),
    ([line(price="100")], {"a": [line(price="-1"), line()], "b": [line(qty=11)]}, ("constraint", 5)),
    ([line(price="100"), line()], {}, ("precondition", 0)),
    ([line(qty=10, price="99")], {}, ("precondition", 1)),
]


@pytest.mark.parametrize("lines, by_name, broken", CASES)
def test_the_first_broken_clause_counts(
    lines: list[dict[str, Any]], by_name: dict[str, Any], broken: tuple[str, int] | None
) -> None:
    inputs = {"lines": lines, "by_name": by_name}
    node = compiled_text(NODE)
    outcomes = [engine.load(node).call(inputs) for engine in ENGINES.values()]
    for engine in ENGINES.values():
        done = engine.load(node).start(inputs).advance([])
        assert isinstance(done, Done)
        outcomes.append(done.outcome)
    for outcome in outcomes:
        if broken is None:
            assert isinstance(outcome, Returned)
        else:
            assert isinstance(outcome, ContractBroken)
            assert (outcome.phase, outcome.index) == broken


@pytest.mark.parametrize("lines, by_name, broken", CASES)
def test_a_module_without_an_engine_says_the_same(
    lines: list[dict[str, Any]], by_name: dict[str, Any], broken: tuple[str, int] | None
) -> None:
    namespace: dict[str, Any] = {}
    exec(generate_module(compiled_text(NODE).node).text, namespace)
    if broken is None:
        assert "total" in namespace["call"]({"lines": lines, "by_name": by_name})
        return
    with pytest.raises(Broken) as caught:
        namespace["call"]({"lines": lines, "by_name": by_name})
    assert (caught.value.phase, caught.value.index) == broken


def test_what_can_fail_has_a_pass_of_its_own() -> None:
    text = generate_module(compiled_text(NODE).node).text
    function = text[text.index("def lines_v1") : text.index("# step total")]
    assert 'for line in lines:\n        if not line["qty"] * line["price"] <= ' in function, "the product can overflow"
    assert function.count("one pass over ") == 2
