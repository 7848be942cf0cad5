"""A sample of `make proof-compare`, and the proof's own control."""

from __future__ import annotations

import random
from itertools import islice

import pytest

from tests.proofs.comparing import campaign
from tests.proofs.comparing.campaign import LIMITS, SEED, examine, nodes, really_differs
from tests.proofs.comparing.planting import KINDS, Site, planted_sites
from tests.proofs.comparing.refactorings import refactorings
from vesper.changes.compare.comparing import CompareLimits
from vesper.changes.compare.versions import VersionPair
from vesper.changes.compare.witness import NotDifferent, WitnessMaker
from vesper.compiler import compile_file

FEES = campaign.ROOT / "nodes/payments/payment_decision_v1.vsp"


def sites_of_fees() -> list[Site]:
    """Return one planted change of each kind that the node has; the checker refuses some."""
    found: dict[str, Site] = {}
    for each in planted_sites(SEED, [FEES]):
        if each.kind not in found and each.compile() is not None:
            found[each.kind] = each
    return [found[kind] for kind in KINDS if kind in found]


@pytest.mark.parametrize("site", sites_of_fees(), ids=lambda site: site.kind)
def test_a_planted_change_of_each_kind_has_a_witness(site: Site) -> None:
    planted = site.compile()
    assert planted is not None
    found = examine(planted.before, planted.after, LIMITS)
    assert found["verdict"] == "different", site.id
    assert found["control"] == "refused"


def test_a_refactoring_is_not_reported_different() -> None:
    for each in islice(refactorings(SEED, [FEES]), 3):
        found = examine(each.before, each.after, CompareLimits(seconds=20, max_inputs=100))
        assert found["verdict"] != "different", each.id


def test_changes_are_spread_over_kinds_and_nodes() -> None:
    drawn = list(islice(planted_sites(SEED, nodes()), campaign.CHANGES))
    assert len({each.id for each in drawn}) == campaign.CHANGES
    assert {each.kind for each in drawn} == set(KINDS)
    assert len({each.path for each in drawn}) >= 30


def test_an_input_that_does_not_differ_is_no_witness() -> None:
    compiled, _ = compile_file(FEES)
    assert compiled is not None
    pair = VersionPair(compiled, compiled)
    case = random.Random(1).choice(compiled.cases)
    given = pair.make_given(case.inputs, "control")
    assert not really_differs(pair, given)
    with pytest.raises(NotDifferent):
        WitnessMaker(pair).witness(given)
