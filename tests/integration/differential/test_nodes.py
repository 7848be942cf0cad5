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
MORE_INPUTS = {"checkout_v1": 300}
"""Nodes with branches that few inputs reach."""


@pytest.mark.parametrize("path", [*worked_nodes(), *written_for_tests()], ids=lambda path: path.stem)
def test_engines_agree(path: Path) -> None:
    node = compiled(path)
    report = Verifier(node, COMPARED, seed=20261115).run(MORE_INPUTS.get(path.stem, INPUTS))
    texts = [difference_text(node, difference, None) for difference in report.differences]
    assert not texts, "\n\n" + "\n\n".join(texts)
    assert not report.case_failures
    assert report.not_comparable == 0
    coverage = report.coverage
    assert len(coverage.guards) >= 0.8 * coverage.guards_total, (
        "too many branches are never taken: the inputs miss them"
    )
    assert len(coverage.operations) >= 0.8 * coverage.operations_total, "nor are too many operations ever tried"
