"""A sample of `make proof-preconditions`, and the proof's own eyes."""

from __future__ import annotations

import pytest

from tests.proofs.preconditions import campaign
from tests.proofs.preconditions.campaign import DRAWS, NAME, NODES, REQUIRED_SHARE, SEED, examine, summarize
from tests.proofs.preconditions.shapes import SHAPES, draw_planted
from tests.proofs.robustness.proof import PROOFS, read_json
from vesper.verify.inputs import generator

SAMPLE = 60


def test_most_inputs_of_sixty_nodes_meet_their_preconditions() -> None:
    proof = summarize([examine(seed) for seed in range(SAMPLE)])
    assert proof["met_share"] >= REQUIRED_SHARE + 0.2
    assert proof["distinct_share"] >= REQUIRED_SHARE


def test_every_shape_is_drawn() -> None:
    drawn = {shape for seed in range(300) for shape in draw_planted(seed).shapes}
    assert drawn == set(SHAPES)


def test_the_proof_sees_inputs_that_are_not_solved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generator, "_REPAIRED_SHARE", 0.0)
    proof = summarize([examine(seed) for seed in range(SAMPLE // 2)])
    assert proof["met_share"] < REQUIRED_SHARE


def test_a_planted_solution_that_does_not_hold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    planted = draw_planted(1)
    planted.clauses.append("1 == 2")
    monkeypatch.setattr(campaign, "draw_planted", lambda _: planted)
    with pytest.raises(AssertionError, match="break"):
        examine(1)


def test_the_committed_summary_is_of_the_whole_campaign() -> None:
    proof = read_json(PROOFS / f"{NAME}.json")
    assert proof is not None
    assert (proof["nodes"], proof["seed"], proof["inputs"]) == (NODES, SEED, NODES * DRAWS)
    assert proof["met_share"] >= REQUIRED_SHARE
