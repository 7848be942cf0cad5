"""`[budgets.NAME]`: bounds of all requests to models of a tenant, a session or a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Final, Literal, TypeAlias, cast

from vesper.effects.settings import Table
from vesper.policies.budget import Budget, OnExceeded

Per: TypeAlias = Literal["all", "tenant", "session", "run"]
MAX_USD: Final = Decimal(10**9)
MAX_PLACES: Final = 12
"""Decimal places of money."""


@dataclass(frozen=True, slots=True)
class BudgetSettings:
    """One `[budgets.NAME]`."""

    budget: Budget
    per: Per
    every_us: int | None
    """Microseconds after which the count begins anew; None is never."""


def read_budgets(top: Table) -> Mapping[str, BudgetSettings]:
    """Read all budgets. Raises `ConfigError`."""
    if "budgets" not in top:
        return {}
    return {name: _budget(name, table) for name, table in top.table("budgets").tables().items()}


def _budget(name: str, table: Table) -> BudgetSettings:
    budget = Budget(
        "named",
        name,
        _usd(table) if "usd" in table else None,
        table.integer("tokens", least=1) if "tokens" in table else None,
        table.integer("calls", least=1) if "calls" in table else None,
        _micros(table, "time") if "time" in table else None,
        cast("OnExceeded", table.choice("on_exceeded", ("block", "warn", "allow"), "block")),
        _percent(table) if "alert_at" in table else None,
    )
    per = cast("Per", table.choice("per", ("all", "tenant", "session", "run"), "all"))
    every = _micros(table, "every") if "every" in table else None
    table.done()
    if budget.usd is None and budget.tokens is None and budget.calls is None and budget.time_us is None:
        raise table.error("usd", "a budget limits at least one of `usd`, `tokens`, `calls` and `time`")
    if every is not None and per == "run":
        raise table.error("every", "the budget of a run ends with the run: leave `every` out, or choose another `per`")
    return BudgetSettings(budget, per, every)


def _usd(table: Table) -> str:
    given = table.value("usd")
    text = given if isinstance(given, str) else str(given) if isinstance(given, int) else ""
    try:
        return read_usd(text)
    except ValueError as error:
        raise table.error("usd", str(error)) from None


def read_usd(text: str) -> str:
    """Return an amount of money as a canonical text. Raises `ValueError`."""
    try:
        amount = Decimal(text)
    except InvalidOperation:
        amount = Decimal(0)
    exponent = amount.as_tuple().exponent
    if not 0 < amount <= MAX_USD or not isinstance(exponent, int) or -exponent > MAX_PLACES:
        raise ValueError(
            f'dollars are a text such as "2.50" above 0, at most {MAX_USD:,}, with at most {MAX_PLACES} decimal places'
        )
    return f"{amount:f}"


def _micros(table: Table, name: str) -> int:
    micros = round(table.seconds(name) * 1_000_000)
    if not 1000 <= micros <= 10 * 366 * 86_400_000_000:
        raise table.error(name, "from 1 ms to ten years")
    return micros


def _percent(table: Table) -> int:
    share = table.value("alert_at")
    percent = round(share * 100) if isinstance(share, float) else 0
    if not 1 <= percent <= 100 or not isinstance(share, float) or abs(share * 100 - percent) > 1e-9:
        raise table.error("alert_at", "a share from 0.01 to 1.0 in steps of 0.01")
    return percent
