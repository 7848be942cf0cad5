"""What the proof of conversations would say if something were wrong; a sample of it; and its file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.proofs.conversations.campaign import CONVERSATIONS, NAME, is_right, run
from tests.proofs.robustness.proof import PROOFS, read_json, whole_hash

RIGHT: dict[str, Any] = {
    "differing": [],
    "requests_by_replay": 0,
    "requests_to_models": 7,
    "effects": {"model_call": 7},
    "outcomes": {"returned": 3},
}


@pytest.mark.parametrize(
    "name, value",
    [
        ("differing", ["x"]),
        ("requests_by_replay", 1),
        ("requests_to_models", 6),
        ("effects", {"model_call": 0}),
        ("outcomes", {"failed": 3}),
    ],
)
def test_whatever_is_wrong_is_not_right(name: str, value: object) -> None:
    assert is_right(RIGHT)
    assert not is_right(RIGHT | {name: value})


def test_a_sample_of_conversations(tmp_path: Path) -> None:
    found = run(tmp_path, 6, 5)
    assert not found["differing"]
    assert found["requests_by_replay"] == 0
    assert found["runs"] == 6


def test_the_proof_that_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    proof = read_json(PROOFS / f"{NAME}.json")
    assert proof is not None
    assert proof["conversations"] == CONVERSATIONS
    assert proof["is_right"] is True
    if proof["source_hash"] != whole_hash():
        with capsys.disabled():
            print(f"\ndocs/proofs/{NAME}.json is of other sources; `make proof-conversations` renews it")
