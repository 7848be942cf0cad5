"""Reduction of flows with blocks and early returns."""

from __future__ import annotations

from vesper.values.types import BOOLEAN, INTEGER
from vesper.verify.programs.reduce import reduce_program
from vesper.verify.programs.terms import Term
from vesper.verify.programs.text import Draft, DrawnFlow, Tree


def _draft(*steps: dict[str, Tree]) -> Draft:
    return Draft(
        node_id="program_1_v1",
        records=(),
        inputs=(),
        constants=(),
        outputs=(("x", INTEGER), ("y", INTEGER)),
        preconditions=(),
        steps=tuple(map(DrawnFlow, steps)),
        returned=(("x", Term(INTEGER, ("1",))), ("y", Term(INTEGER, ("2",)))),
        postconditions=(),
    )


def test_an_output_is_dropped_from_early_returns_too() -> None:
    values: dict[str, Tree] = {"x": Term(INTEGER, ("3",)), "y": Term(INTEGER, ("4",))}
    draft = _draft({"operation": "return", "when": Term(BOOLEAN, ("false",)), "success": values})

    def is_consistent(candidate: Draft) -> bool:
        (step,) = candidate.steps or (None,)
        if not isinstance(step, DrawnFlow) or not isinstance(given := step.fields.get("success"), dict):
            return False
        return {*given} == {name for name, _ in candidate.outputs} == {name for name, _ in candidate.returned}

    assert len(reduce_program(draft, is_consistent).outputs) == 1


def test_a_conditional_is_replaced_by_one_of_its_ways() -> None:
    inner: Tree = [{"step": "kept", "operation": "compute", "value": Term(INTEGER, ("7",))}]
    condition = Term(BOOLEAN, ("true",))
    draft = _draft({"operation": "conditional", "condition": condition, "then": inner, "else": []})
    reduced = reduce_program(draft, lambda candidate: "step: kept" in candidate.text())
    assert "conditional" not in reduced.text()
