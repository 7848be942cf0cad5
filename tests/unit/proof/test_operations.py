"""An example of every encoded operation; the campaign of tests/proofs/solver holds all of them."""

from __future__ import annotations

from tests.proofs.mutants.corpus import Question, operation_questions
from tests.proofs.solver.campaign import hold_examples
from vesper.proof.operations.operation import ENCODINGS
from vesper.values.generated.operations import OPERATIONS


def test_encoded_operations_are_declared() -> None:
    assert set(ENCODINGS) <= set(OPERATIONS)


def test_an_example_of_every_encoded_operation_comes_out_the_same() -> None:
    firsts: dict[str, Question] = {}
    for question in operation_questions():
        operation = question.name.split(" ")[1].rpartition(".")[0]
        if operation in ENCODINGS:
            firsts.setdefault(operation, question)
    # Those without an example are evaluated for each item, or have no kernel of their own.
    assert len(firsts) > len(ENCODINGS) * 9 // 10
    tally = hold_examples(firsts.values())
    assert tally.mismatches == []
    assert tally.held == len(firsts)
