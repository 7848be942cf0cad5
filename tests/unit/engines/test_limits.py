"""The largest things that the front end accepts must run on every engine, plain and observed, from any caller."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tests.support.nodes import small_node
from vesper.compiler import Compiled
from vesper.engines.engine import run_observed
from vesper.engines.outcome import Returned
from vesper.engines.registry import ENGINES
from vesper.language.syntax.table_to_ast import MAX_ROWS
from vesper.language.syntax.token_reader import MAX_DEPTH

DEEP = MAX_DEPTH - 2
RETURN = "- {operation: return, success: [result]}"


def computed(value: str) -> Compiled:
    return small_node("n: integer\nok: boolean", f'- {{step: result, operation: compute, value: "{value}"}}\n{RETURN}')


def table() -> Compiled:
    # Integers on the deep side, so that every operator also has a conversion to decimal under it.
    deep = "(" * DEEP + "n" + " + 0.5)" * DEEP
    rows = "".join(f"    - {{when: n == {number}, then: {number}}}\n" for number in range(1, MAX_ROWS - 1))
    flow = f"- step: result\n  operation: decision_table\n  rows:\n{rows}    - {{when: n == 0, then: {deep}}}\n"
    return small_node("n: integer\nok: boolean", f"{flow}    - {{otherwise: -1}}\n{RETURN}")


NODES: dict[str, tuple[Compiled, Decimal]] = {
    "a row of operators": (computed(" + ".join(["n"] * (MAX_DEPTH - 1))), Decimal(0)),
    "parentheses": (computed("(" * DEEP + "n" + " - 1)" * DEEP), Decimal(-DEEP)),
    "nested conditions": (computed("IF ok THEN " * DEEP + "n" + " ELSE 1" * DEEP), Decimal(0)),
    "conditions in ELSE": (computed("IF NOT ok THEN 1 ELSE " * (DEEP - 1) + "n"), Decimal(0)),
    "a table": (table(), Decimal("0.5") * DEEP),
}


@pytest.mark.parametrize("name", NODES)
@pytest.mark.parametrize("engine", ENGINES)
def test_at_the_limit(name: str, engine: str) -> None:
    node, expected = NODES[name]
    program = ENGINES[engine].load(node)
    inputs = {"n": 0, "ok": True}
    outcome = program.call(inputs)
    assert isinstance(outcome, Returned)
    assert outcome.value["result"] == expected
    assert run_observed(program, inputs).outcome == outcome


def test_a_caller_deep_in_its_stack_can_load_a_node() -> None:
    node, _ = NODES["parentheses"]

    def deeper(levels: int) -> None:
        if levels:
            deeper(levels - 1)
        else:
            ENGINES["python"].load(node)

    deeper(700)
