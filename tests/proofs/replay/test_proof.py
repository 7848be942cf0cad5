"""What the proof of replay would say if something were wrong; and whether its file is of these sources."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.proofs.replay.replay import EXECUTIONS, NAME, is_right, same_on_every_engine
from tests.proofs.robustness.proof import PROOFS, read_json, whole_hash
from tests.support.nodes import ROOT, compiled
from tests.unit.trace.test_model import case_trace

RIGHT: tuple[dict[str, Any], dict[str, Any]] = (
    {"differing": [], "performed_by_replay": 0},
    {"differing": [], "requests_by_replay": 0, "charges": 3, "payments": 3},
)


@pytest.mark.parametrize(
    "place, name, value",
    [
        (0, "differing", ["x"]),
        (0, "performed_by_replay", 1),
        (1, "differing", ["x"]),
        (1, "requests_by_replay", 1),
        (1, "charges", 4),
    ],
)
def test_whatever_is_wrong_is_not_right(place: int, name: str, value: object) -> None:
    assert is_right(*RIGHT)
    parts = [dict(each) for each in RIGHT]
    parts[place][name] = value
    assert not is_right(parts[0], parts[1])


def test_a_trace_that_is_not_what_happened_is_found() -> None:
    trace = case_trace(compiled(ROOT / "nodes" / "payments" / "payment_handler_v1.vsp"), 0)
    assert same_on_every_engine(trace) is None
    marks = (*trace.marks[:-1], replace(trace.marks[-1], value=False))
    assert same_on_every_engine(replace(trace, marks=marks)) is not None
    moved = tuple(replace(each, to="refunded") for each in trace.transitions)
    assert same_on_every_engine(replace(trace, transitions=moved)) == "python: the trace of the replay is another"


def test_the_proof_that_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    proof = read_json(PROOFS / f"{NAME}.json")
    assert proof is not None
    assert proof["executions"] == EXECUTIONS
    assert proof["is_right"] is True
    if proof["source_hash"] != whole_hash():
        with capsys.disabled():
            print(f"\ndocs/proofs/{NAME}.json is of other sources; `make proof-replay` renews it")
