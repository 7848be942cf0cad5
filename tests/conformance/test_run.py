"""The command that counts: it sees what disagrees."""

from __future__ import annotations

from tests.conformance.run import ask, report
from tests.mutants.corpus import Question
from tests.support.nodes import expression_node
from vesper.engines.direct_engine import DirectEngine
from vesper.engines.python_engine import PythonEngine

ONE = Question("example of a sum", expression_node("1 + 1", {}), lambda program: program.call({}), {})


def test_a_disagreement_is_counted_and_shown() -> None:
    other = DirectEngine().load(expression_node("1 + 2", {}))
    tally = ask([ONE], PythonEngine().load, {"interp": DirectEngine().load, "wrong": lambda _: other})
    assert len(tally.disagreements) == 1
    told = report(tally, ["interp", "wrong"], 1.0)
    assert "1 questions of 1 nodes, 1 disagreements" in told
    assert "example of a sum" in told
    assert "and wrong" in told
