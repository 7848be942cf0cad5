"""The rules of deny.toml as `make check-dependencies` applies them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.proofs.packaging.dependencies import bill_of, is_allowed, problems_of

ALLOWED = {"MIT", "Apache-2.0"}
RULES: dict[str, Any] = {"licenses": {"allow": sorted(ALLOWED)}, "bans": {"deny": [{"name": "openssl"}]}}
REGISTRY = "registry+one"


def crate(**changes: Any) -> dict[str, Any]:
    return {"name": "one", "version": "1.0.0", "license": "MIT", "source": REGISTRY, "dependencies": [], **changes}


@pytest.mark.parametrize(
    "expression, is_met",
    [
        ("MIT", True),
        ("MIT OR GPL-3.0", True),
        ("MIT/GPL-3.0", True),
        ("MIT AND GPL-3.0", False),
        ("(MIT OR GPL-3.0) AND Apache-2.0", True),
        ("Apache-2.0 WITH LLVM-exception", False),
        ("GPL-3.0", False),
    ],
)
def test_an_expression_is_met_by_allowed_licences(expression: str, is_met: bool) -> None:
    assert is_allowed(expression, ALLOWED) is is_met


@pytest.mark.parametrize(
    "changes, problem",
    [
        ({}, None),
        ({"license": "GPL-3.0"}, "licence GPL-3.0 is not allowed"),
        ({"license": None}, "licence None is not allowed"),
        ({"name": "openssl"}, "banned"),
        ({"source": "git+https://example.com/one"}, "not the registry"),
        ({"source": None, "dependencies": [{"name": "two", "req": "*"}]}, "two has no version"),
        ({"source": None, "dependencies": [{"name": "two", "req": "*", "path": "/two"}]}, None),
    ],
)
def test_forbidden_crates_are_named(changes: dict[str, Any], problem: str | None) -> None:
    found = problems_of([crate(**changes)], RULES)
    assert (problem is None) == (found == [])
    assert problem is None or problem in found[0]


def test_a_second_registry_is_a_problem() -> None:
    assert "several registries" in problems_of([crate(), crate(source="registry+other")], RULES)[0]


def test_the_bill_lists_crates_and_packages() -> None:
    bill = bill_of([crate(), crate(source=None)], "click==8.1.7 \\\n    --hash=sha256:00\n", "0.3.0")
    assert [each["purl"] for each in bill["components"]] == ["pkg:cargo/one@1.0.0", "pkg:pypi/click@8.1.7"]
