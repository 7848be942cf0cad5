"""Rounds of forms that take memory hit a limit at the same point on both engines."""

from __future__ import annotations

import pytest

from vesper.compiler import compile_source
from vesper.language.diagnostics.source import SourceFile
from vesper.verify.differential.forms import COMPARED
from vesper.verify.differential.verifier import Verifier

NODE = """node_id: rounds_v1
type: function
intent: Keep some items
inputs: {{xs: array<integer>}}
outputs: {{success: {{n: integer}}}}
flow:
  - operation: return
    success: {{n: "{value}"}}
"""
TAKING = "length([1 FOR z IN xs])"


@pytest.mark.parametrize(
    "value",
    [
        f"length(sort_by(x FOR x IN xs WHERE {TAKING} > 5))",
        f"length(sort_by(0 - x FOR x IN xs WHERE {TAKING} > 1 AND x > 2))",
        f"length(group_by({TAKING} FOR x IN xs WHERE {TAKING} > 1 AND x > 2))",
        f"length(take_while({TAKING} < 4 FOR x IN xs))",
        f"length(take_while({TAKING} < 4 FOR x IN xs WHERE {TAKING} > 1 AND x > 2))",
        f"length(drop_while({TAKING} < 4 FOR x IN xs))",
        f"length(drop_while({TAKING} < 4 FOR x IN xs WHERE {TAKING} > 1 AND x > 2))",
        f"length(distinct_by(x FOR x IN xs WHERE {TAKING} > 1 AND x > 2))",
        f"min_by(x FOR x IN xs WHERE {TAKING} > 1 AND x > 2) ?? 3",
        f"fold(sum + x FOR x IN xs WHERE {TAKING} > 1, sum = 0)",
    ],
)
def test_excluded_rounds_give_their_memory_back(value: str) -> None:
    compiled, bag = compile_source(SourceFile("rounds_v1.vsp", NODE.format(value=value)))
    assert compiled is not None, bag.sorted()
    report = Verifier(compiled, COMPARED, seed=0).run(120)
    assert report.differences == []
    assert report.ways["metered"] > 40
