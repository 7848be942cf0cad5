"""The same order as a workflow of DBOS: each step of the plain service is a step with a checkpoint in SQLite."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
from dbos import DBOS, SetWorkflowID

from tests.bench.orders.contestant import AMOUNT, main
from tests.bench.orders.plain_service import Shop, checked_amount

_shops: list[Shop] = []


@DBOS.step()
def find(key: str) -> tuple[Any, ...] | None:
    return _shops[0].find(key)


@DBOS.step()
def move(order: str, before: tuple[str, ...], after: str) -> None:
    _shops[0].move(order, before, after)


@DBOS.step(
    retries_allowed=True,
    interval_seconds=0.2,
    max_attempts=3,
    should_retry=lambda error: isinstance(error, httpx.TransportError),
)
def charge(order: str, user: str, amount: str) -> dict[str, str]:
    return _shops[0].charge(order, user, Decimal(amount))


@DBOS.step()
def record(charged: dict[str, str], order: str, user: str, amount: str, key: str) -> None:
    _shops[0].record(charged, order, user, Decimal(amount), key)


@DBOS.workflow()
def pay_order(order: str, user: str, amount: str, key: str) -> None:
    checked_amount(order, user, amount)
    if find(key) is not None:
        return
    move(order, ("pending", "payment_failed"), "processing")
    charged = charge(order, user, amount)
    record(charged, order, user, amount, key)
    move(order, ("processing",), "paid")


class DbosService:
    def __init__(self, folder: Path, url: str) -> None:
        _shops.append(Shop(folder, url))
        DBOS(
            config={
                "name": "orders",
                "system_database_url": f"sqlite:///{folder / 'dbos.db'}",
                "console_log_level": "ERROR",
                "log_level": "ERROR",
            }
        )
        DBOS.launch()

    def pay(self, order: str, user: str, key: str) -> None:
        with SetWorkflowID(key):
            pay_order(order, user, AMOUNT, key)

    def close(self) -> None:
        DBOS.destroy()
        _shops[0].close()


if __name__ == "__main__":
    main(DbosService)
