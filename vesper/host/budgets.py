"""Budgets around runs: those of the configuration, and those of `with vesper.budget(…)` (docs/spec/budgets.md).

    with vesper.budget(usd="2.50", calls=100) as spent:
        node(...)
    spent.used.usd, spent.remaining.calls

A budget holds for the runs that begin in its thread or task, and for the runs that these begin.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, TypeAlias

from vesper.config.budgets import BudgetSettings, read_usd
from vesper.host.run_context import AmbientBudget, RunContext, current_context, enter_context, leave_context
from vesper.policies.budget import Budget, OnExceeded

if TYPE_CHECKING:
    from contextvars import Token

    from vesper._direct import Running, SharedBudgets
    from vesper.host.host import Host

_DAY_US: Final = 86_400_000_000
_KEPT_UNNAMED_US: Final = 7 * _DAY_US
_KEPT_OF_SESSION_US: Final = 400 * _DAY_US
_KEPT_OF_RUN_US: Final = 90 * _DAY_US
Row: TypeAlias = tuple[str, str, str | None, int | None, int | None, int | None, str, int | None, int | None]
"""A budget as `SharedBudgets` reads it."""


@dataclass(frozen=True, slots=True)
class BudgetAmounts:
    """Amounts of the four resources. In a limit or a remainder, None is unlimited."""

    usd: Decimal | None
    tokens: int | None
    """Of input and output."""
    calls: int | None
    time: timedelta | None


class BudgetScope:
    """A budget of `with vesper.budget(…)`, also for `async with`."""

    def __init__(self, budget: Budget, key: str, kept_us: int | None) -> None:
        self._ambient = AmbientBudget(budget, key, kept_us, self.note_store)
        self._tokens: list[Token[RunContext | None]] = []
        self._stores: list[SharedBudgets] = []

    @property
    def name(self) -> str:
        return self._ambient.budget.name

    @property
    def limit(self) -> BudgetAmounts:
        budget = self._ambient.budget
        return BudgetAmounts(
            None if budget.usd is None else Decimal(budget.usd),
            budget.tokens,
            budget.calls,
            None if budget.time_us is None else timedelta(microseconds=budget.time_us),
        )

    @property
    def used(self) -> BudgetAmounts:
        """Return the amounts of ended requests, including those of other scopes with this name."""
        return self._sum(0)

    @property
    def reserved(self) -> BudgetAmounts:
        """Return the largest possible amounts of requests under way."""
        return self._sum(1)

    @property
    def remaining(self) -> BudgetAmounts:
        """Return the amounts that further requests may use."""
        limit, used, reserved = self.limit, self.used, self.reserved

        def left(name: str) -> object:
            most = getattr(limit, name)
            return None if most is None else max(most - getattr(used, name) - getattr(reserved, name), type(most)(0))

        return BudgetAmounts(*(left(name) for name in ("usd", "tokens", "calls", "time")))  # type: ignore[arg-type]

    def note_store(self, store: SharedBudgets) -> None:
        """Record a store that counts runs inside the scope."""
        if all(each is not store for each in self._stores):
            self._stores.append(store)

    def _sum(self, part: int) -> BudgetAmounts:
        usd, tokens, calls, micros = Decimal(0), 0, 0, 0
        for store in self._stores:
            found = store.read([self._ambient.key])[0][part]
            usd, tokens, calls, micros = usd + Decimal(found[0]), tokens + found[1], calls + found[2], micros + found[3]
        return BudgetAmounts(usd, tokens, calls, timedelta(microseconds=micros))

    def __enter__(self) -> Self:
        outer = current_context() or RunContext()
        self._tokens.append(enter_context(replace(outer, budgets=(*outer.budgets, self._ambient))))
        return self

    def __exit__(self, *_: object) -> None:
        leave_context(self._tokens.pop())

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, where)


def budget(
    *,
    usd: str | Decimal | int | None = None,
    tokens: int | None = None,
    calls: int | None = None,
    time: timedelta | float | None = None,
    name: str | None = None,
    on_exceeded: OnExceeded = "block",
    alert_at: float | None = None,
) -> BudgetScope:
    """Limit the requests to models in the runs of a `with` block. Raises `ValueError` for an invalid amount.

    `time` is a duration or seconds. Budgets with one `name` share one count in all processes with one store; a budget
    without a name begins at 0.
    """
    seconds = time.total_seconds() if isinstance(time, timedelta) else time
    if isinstance(usd, float):
        raise ValueError('`usd` of a budget is exact: write it as a text, "0.10"')
    if usd is None and tokens is None and calls is None and seconds is None:
        raise ValueError("a budget limits at least one of `usd`, `tokens`, `calls` and `time`")
    for what, number in (("tokens", tokens), ("calls", calls)):
        if number is not None and (type(number) is not int or not 1 <= number < 1 << 53):
            raise ValueError(f"`{what}` of a budget is a whole number above 0, not {number!r}")
    if seconds is not None and not (math.isfinite(seconds) and 0.001 <= seconds <= 10 * 366 * 86_400):
        raise ValueError("`time` of a budget is from a millisecond to ten years")
    if on_exceeded not in ("block", "warn", "allow"):
        raise ValueError(f"`on_exceeded` of a budget is 'block', 'warn' or 'allow', not {on_exceeded!r}")
    if alert_at is not None and not 0.01 <= alert_at <= 1:
        raise ValueError("`alert_at` of a budget is a share from 0.01 to 1")
    if name is not None and not (1 <= len(name) <= 255 and name.isprintable()):
        raise ValueError("`name` of a budget is a text of 1 to 255 printable characters")
    found = Budget(
        "named",
        name or "budget",
        None if usd is None else read_usd(str(usd)),
        tokens,
        calls,
        None if seconds is None else round(seconds * 1_000_000),
        on_exceeded,
        None if alert_at is None else round(alert_at * 100),
    )
    if name is None:
        return BudgetScope(found, f"scope/{os.urandom(12).hex()}", _KEPT_UNNAMED_US)
    return BudgetScope(found, f"named/{name}", None)


def set_budgets(host: Host, running: Running, context: RunContext | None) -> None:
    """Give a run the budgets of the configuration and of its caller."""
    settings, ambient = host.config.budgets, () if context is None else context.budgets
    if not settings and not ambient and (context is None or context.tenant is None):
        return
    rows = ambient_rows(settings, context, running.execution, host.now_us())
    running.set_budgets(rows, None if context is None else context.tenant)
    for each in ambient:
        if each.note_store is not None:
            each.note_store(host.budgets)


def ambient_rows(
    settings: Mapping[str, BudgetSettings], context: RunContext | None, execution: str, now_us: int
) -> list[tuple[Row, bool]]:
    """Return the budgets around a run, outermost first. The flag is true if the session completes the key."""
    tenant = None if context is None else context.tenant
    found = list(_configured_rows(settings.values(), tenant, execution, now_us))
    found += [(row_of(each.budget, each.key, each.kept_us), False) for each in (context.budgets if context else ())]
    return found


def _configured_rows(
    settings: Iterable[BudgetSettings], tenant: str | None, execution: str, now_us: int
) -> Iterator[tuple[Row, bool]]:
    order: Sequence[str] = ("all", "tenant", "session", "run")
    for each in sorted(settings, key=lambda each: order.index(each.per)):
        name, kept_us = each.budget.name, None if each.every_us is None else 2 * each.every_us
        # A window has a count of its own: requests under way at its end are settled where they were set aside.
        window = "" if each.every_us is None else f"@{now_us // each.every_us}"
        match each.per:
            case "all":
                yield row_of(each.budget, f"named/{name}{window}", kept_us), False
            case "tenant":
                if tenant is not None:
                    yield row_of(each.budget, f"tenant/{name}{window}/{tenant}", kept_us), False
            case "session":
                yield row_of(each.budget, f"session/{name}{window}/", kept_us or _KEPT_OF_SESSION_US), True
            case "run":
                yield row_of(each.budget, f"run/{execution}//{name}", _KEPT_OF_RUN_US), False


def row_of(budget: Budget, key: str, kept_us: int | None) -> Row:
    """Return a budget as `SharedBudgets` reads it."""
    return (
        budget.name,
        key,
        budget.usd,
        budget.tokens,
        budget.calls,
        budget.time_us,
        budget.on_exceeded,
        budget.alert_percent,
        kept_us,
    )
