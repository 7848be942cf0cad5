"""The largest things that the front end accepts must run on every engine."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tests.support.nodes import small_node
from vesper.engines.outcome import Returned
from vesper.engines.registry import ENGINES
from vesper.syntax.expression_parser import MAX_DEPTH
from vesper.syntax.yaml_to_ast import MAX_ROWS


@pytest.mark.parametrize("engine", ENGINES)
def test_the_deepest_expression_and_the_longest_table(engine: str) -> None:
    # Integers on the deep side, so that every operator also has a conversion to decimal under it.
    deep = "(" * (MAX_DEPTH - 2) + "n" + " + 0.5)" * (MAX_DEPTH - 2)
    rows = "".join(f"    - {{when: n == {number}, then: {number}}}\n" for number in range(1, MAX_ROWS - 1))
    flow = (
        "- step: result\n  operation: decision_table\n  rows:\n"
        f"{rows}    - {{when: n == 0, then: {deep}}}\n    - {{otherwise: -1}}\n"
        "- {operation: return, success: [result]}"
    )
    program = ENGINES[engine].load(small_node("n: integer", flow))
    for given, expected in ((0, Decimal("0.5") * (MAX_DEPTH - 2)), (97, Decimal(97)), (1000, Decimal(-1))):
        outcome = program.call({"n": given})
        assert isinstance(outcome, Returned)
        assert outcome.value["result"] == expected
