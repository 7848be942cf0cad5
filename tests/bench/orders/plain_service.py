"""The same order without a journal: httpx, tenacity and sqlite3, as a service would be written by hand.

It promises less. A crash between two steps leaves an order for a person to look at. It syncs each change once.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import tenacity

from tests.bench.orders.contestant import AMOUNT, API_KEY, main

MAX_AMOUNT = Decimal(50_000)


class Declined(Exception):
    """An order that cannot be paid."""


class Shop:
    """The steps of an order, each a transaction or a request."""

    def __init__(self, folder: Path, url: str) -> None:
        self._path = folder / "shop.db"
        self._local = threading.local()
        self._writing = threading.Lock()
        headers = {"Authorization": f"Bearer {API_KEY}"}
        self._client = httpx.Client(base_url=url, headers=headers, timeout=30)
        self._connection().execute("CREATE TABLE states (entity text PRIMARY KEY, state text, changed_at text)")
        self._post = tenacity.retry(
            stop=tenacity.stop_after_attempt(3),
            wait=tenacity.wait_random_exponential(multiplier=0.2, max=5),
            retry=tenacity.retry_if_exception_type(httpx.TransportError),
            reraise=True,
        )(self._post_once)

    def _connection(self) -> sqlite3.Connection:
        found: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if found is None:
            found = self._local.connection = sqlite3.connect(self._path, isolation_level=None, timeout=30)
            found.execute("PRAGMA journal_mode = WAL")
            found.execute("PRAGMA synchronous = FULL")
        return found

    def _write(self, change: Callable[[sqlite3.Connection], None]) -> None:
        connection = self._connection()
        with self._writing, connection:
            connection.execute("BEGIN IMMEDIATE")
            change(connection)

    def find(self, key: str) -> tuple[Any, ...] | None:
        sql = "SELECT transaction_id, status, amount FROM transactions WHERE idempotency_key = ?"
        row: tuple[Any, ...] | None = self._connection().execute(sql, (key,)).fetchone()
        return row

    def move(self, order: str, before: tuple[str, ...], after: str) -> None:
        now = datetime.now(UTC).isoformat()

        def change(connection: sqlite3.Connection) -> None:
            row = connection.execute("SELECT state FROM states WHERE entity = ?", (order,)).fetchone()
            if (row[0] if row else "pending") not in before:
                raise Declined(f"order {order} is not to be paid")
            sql = "INSERT INTO states VALUES (?, ?, ?) ON CONFLICT (entity) DO UPDATE SET state = ?, changed_at = ?"
            connection.execute(sql, (order, after, now, after, now))

        self._write(change)

    def charge(self, order: str, user: str, amount: Decimal) -> dict[str, str]:
        body = {"amount": int(amount * 100), "currency": "usd", "customer": user, "description": f"order {order}"}
        response = self._post("/v1/charges", body, order)
        if response.status_code != 200:
            raise Declined(response.text)
        found = response.json()
        if not isinstance(found.get("id"), str) or found.get("status") not in ("succeeded", "pending"):
            raise Declined("the provider answered with something else")
        return {"id": found["id"], "status": found["status"]}

    def _post_once(self, path: str, body: dict[str, object], key: str) -> httpx.Response:
        return self._client.post(path, json=body, headers={"Idempotency-Key": key})

    def record(self, charge: dict[str, str], order: str, user: str, amount: Decimal, key: str) -> None:
        row = (charge["id"], order, user, str(amount), charge["status"], key, datetime.now(UTC).isoformat())
        self._write(lambda connection: self._insert(connection, row))

    def _insert(self, connection: sqlite3.Connection, row: tuple[str, ...]) -> None:
        connection.execute("INSERT INTO transactions VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def close(self) -> None:
        self._client.close()


def checked_amount(order: str, user: str, text: str) -> Decimal:
    """Return the amount of an order whose inputs are valid."""
    amount = Decimal(text)
    exponent = amount.as_tuple().exponent
    if not 0 < amount <= MAX_AMOUNT or not isinstance(exponent, int) or exponent < -2:
        raise Declined(f"{text} cannot be paid")
    if not order or order.strip() != order or len(order) > 64 or not user:
        raise Declined("an order id has no spaces around it")
    return amount


class PlainService:
    def __init__(self, folder: Path, url: str) -> None:
        self._shop = Shop(folder, url)

    def pay(self, order: str, user: str, key: str) -> None:
        shop = self._shop
        amount = checked_amount(order, user, AMOUNT)
        if shop.find(key) is not None:
            return
        shop.move(order, ("pending", "payment_failed"), "processing")
        charge = shop.charge(order, user, amount)
        shop.record(charge, order, user, amount, key)
        shop.move(order, ("processing",), "paid")

    def close(self) -> None:
        self._shop.close()


if __name__ == "__main__":
    main(PlainService)
