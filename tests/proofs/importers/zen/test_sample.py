"""A sample of `make proof-zen`: one model of each kind passes on both engines, and refusals are named."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.proofs.importers.zen.compare import MODELS, PASSED, verdicts
from tests.proofs.importers.zen.random_models import compare

SAMPLE = [
    "table-loop",
    "expression-fields",
    "expression-passthrough",
    "decision-table-discounts",
    "multi-switch",
    "set-fee",
    "customer-onboarding-kyc-verification",
    "insurance-coverage-calculator",
]


@pytest.mark.parametrize("name", SAMPLE)
def test_a_model_gives_the_results_of_its_tests(name: str) -> None:
    found = list(verdicts(MODELS / f"{name}.json"))
    assert found
    assert [each for each in found if each.reason != PASSED] == []


def test_javascript_is_refused_by_name() -> None:
    found = list(verdicts(MODELS / "company-analysis.json"))
    assert {each.reason for each in found} == {"refused by name"}
    assert all("Overall Mapper: JavaScript has no translation" in each.detail for each in found)


def test_random_models_give_the_results_of_the_reference() -> None:
    counts: Counter[str] = Counter()
    found = [difference for seed in range(12) for difference in compare(seed, counts)]
    assert found == []
    assert counts["same"] > 30
