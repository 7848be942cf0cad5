"""The conformance command reports disagreements."""

from __future__ import annotations

import argparse

import pytest

from tests.conformance.run import Part, ask, part, report
from tests.proofs.mutants.corpus import Question
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


def test_every_node_is_in_one_part() -> None:
    hashes = [f"{number * 0x1234567:08x}{'0' * 56}" for number in range(60)]
    parts = [part(f"{number}/3") for number in (1, 2, 3)]
    assert [sum(each.has(node) for each in parts) for node in hashes] == [1] * len(hashes)
    assert all(any(each.has(node) for node in hashes) for each in parts)
    assert all(Part().has(node) for node in hashes)


@pytest.mark.parametrize("text", ["", "1", "0/2", "3/2", "1/0", "-1/2", "1/x", "1/2/3"])
def test_an_invalid_part_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="names no part; write 1/2"):
        part(text)


def test_progress_is_printed() -> None:
    told: list[tuple[int, int]] = []
    ask([ONE], PythonEngine().load, {}, lambda done, of: told.append((done, of)))
    assert told == [(0, 1)]
