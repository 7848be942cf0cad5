"""A sample of the campaign: proofs stand against many inputs, refutations show, planted proofs are noticed."""

from __future__ import annotations

from tests.proofs.claims.campaign import passed, run, summarise
from tests.support.nodes import ROOT

_NODES = ("payments/payment_decision_v1", "orders/order_settlement_v1", "orders/order_pricing_v1")


def test_a_sample_of_nodes() -> None:
    files = [ROOT / "nodes" / f"{each}.vsp" for each in _NODES]
    summary = summarise(run(files, seconds=60.0, inputs=1_000, state=None))
    assert summary["nodes"] == len(_NODES)
    assert passed({**summary, "longest_processor_seconds": 0.0}), summary


def test_a_fault_or_an_unnoticed_plant_fails_the_campaign() -> None:
    good = {"decided": 0.7, "longest_processor_seconds": 9.0, "faults": [], "control": {"planted": 2, "noticed": 2}}
    assert passed(good)
    for wrong in (
        {"decided": 0.5},
        {"longest_processor_seconds": 30.0},
        {"faults": ["proven and broken"]},
        {"control": {"planted": 2, "noticed": 1}},
        {"control": {"planted": 0, "noticed": 0}},
    ):
        assert not passed({**good, **wrong})
