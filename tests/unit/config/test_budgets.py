"""`[budgets.NAME]` of vesper.toml."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vesper.config.budgets import BudgetSettings
from vesper.config.settings import config_from
from vesper.effects.settings import ConfigError
from vesper.policies.budget import Budget


def read(table: dict[str, Any]) -> BudgetSettings:
    return config_from({"budgets": {"name": table}}, Path("/nowhere")).budgets["name"]


def test_all_settings_are_read() -> None:
    table = {"usd": "2.50", "tokens": 7, "calls": 3, "time": "90s", "on_exceeded": "warn", "alert_at": 0.8}
    budget = Budget("named", "name", "2.50", 7, 3, 90_000_000, "warn", 80)
    assert read({**table, "per": "tenant", "every": "1d"}) == BudgetSettings(budget, "tenant", 86_400_000_000)
    assert read({"usd": 5}) == BudgetSettings(Budget("named", "name", "5"), "all", None)


@pytest.mark.parametrize(
    "table,message",
    [
        ({}, "budgets.name.usd: a budget limits at least one of `usd`, `tokens`, `calls` and `time`"),
        ({"usd": 0.5}, 'dollars are a text such as "2.50"'),
        ({"usd": "-1"}, 'dollars are a text such as "2.50"'),
        ({"usd": "0.0000000000001"}, "at most 12 decimal places"),
        ({"usd": "many"}, 'dollars are a text such as "2.50"'),
        ({"calls": 0}, "calls"),
        ({"calls": 1, "per": "day"}, "per"),
        ({"calls": 1, "per": "run", "every": "1d"}, "the budget of a run ends with the run"),
        ({"calls": 1, "alert_at": 80}, "a share from 0.01 to 1.0"),
        ({"calls": 1, "alert_at": 0.005}, "a share from 0.01 to 1.0"),
        ({"calls": 1, "every": "1us"}, "from 1 ms to ten years"),
        ({"calls": 1, "window": "1d"}, "window"),
    ],
)
def test_what_cannot_be_used_is_refused(table: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(table)
    assert message in str(caught.value)


def test_the_place_of_the_count_is_read() -> None:
    def place(text: str) -> str:
        return config_from({"policies": {"budgets": text}}, Path("/nowhere")).policies.budgets

    assert [place(each) for each in ("memory:", "journal", "redis://host/1")] == [
        "memory:",
        "journal",
        "redis://host/1",
    ]
    with pytest.raises(ConfigError, match="`memory:`, `journal` or `redis://…` is expected"):
        place("postgresql://host/shop")
