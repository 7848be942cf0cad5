"""The engines agree on every worked node: on its cases, then on generated inputs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.nodes import compiled, worked_nodes, written_for_tests
from vesper.cli.verify.text import difference_text
from vesper.verify.differential.forms import COMPARED
from vesper.verify.differential.verifier import Verifier

INPUTS = 60
"""Inputs per node; `make test-nodes` draws others."""
MORE_INPUTS = {
    "checkout_v1": 300,
    "code_review_v1": 240,
    "concierge_v1": 300,
    "contract_summary_v1": 900,
    "explore_v1": 360,
    "issue_finder_v1": 300,
}
"""Nodes with branches that few inputs reach."""
SHARE, SHARES = 0.8, {"concierge_v1": 0.6, "contract_summary_v1": 0.75, "issue_finder_v1": 0.75}
"""Of the branches, those taken: generated answers seldom have the histories and texts that agents handle."""


@pytest.mark.parametrize("path", [*worked_nodes(), *written_for_tests()], ids=lambda path: path.stem)
def test_engines_agree(path: Path) -> None:
    node = compiled(path)
    count = MORE_INPUTS.get(path.stem, INPUTS)
    report = Verifier(node, COMPARED, seed=20261115).run(count)
    texts = [difference_text(node, difference, None) for difference in report.differences]
    assert not texts, "\n\n" + "\n\n".join(texts)
    assert not report.case_failures
    assert report.not_comparable == 0
    assert report.outcomes.get("constraint_broken", 0) < 0.97 * count, (
        "nearly every input ends at a constraint: the rest of the node is not tried"
    )
    coverage = report.coverage
    assert len(coverage.guards) >= SHARES.get(path.stem, SHARE) * coverage.guards_total, (
        "too many branches are never taken: the inputs miss them"
    )
    assert len(coverage.operations) >= 0.8 * coverage.operations_total, "nor are too many operations ever tried"
