"""Requests to the demo's server: decisions, and orders that are sent until they have an answer."""

from __future__ import annotations

import http.client
import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

from vesper.cli.demo.shop import DECISION

_CALLERS = 4
_ATTEMPT_SECONDS = 30.0
_PATIENCE_SECONDS = 60.0
"""Time of an order, all attempts together."""
_PAUSE_SECONDS = 0.05


class Traffic:
    """Threads that send requests, and the counts of their answers."""

    def __init__(self, port: int, numbers: Iterator[int]) -> None:
        """`numbers` gives each request another input, across servers."""
        self.port = port
        self.decisions = 0
        self.wrong_fees = 0
        """Answers with another fee than the node defines."""
        self.resent = 0
        """Orders that were sent again, because the connection broke."""
        self.refused: dict[str, Any] = {}
        """Last answers to orders that were not paid; None where there was none."""
        self._numbers = numbers
        self._local = threading.local()
        self._lock = threading.Lock()

    def request(self, path: str, value: object, headers: dict[str, str] | None = None) -> tuple[int, Any]:
        """Send JSON on the connection of this thread, and read JSON. Raises `OSError` and `HTTPException`."""
        connection: http.client.HTTPConnection | None = getattr(self._local, "connection", None)
        self._local.connection = None
        if connection is None:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_ATTEMPT_SECONDS)
        try:
            body = None if value is None else json.dumps(value).encode()
            given = {"Content-Type": "application/json", **(headers or {})}
            connection.request("GET" if value is None else "POST", path, body, given)
            response = connection.getresponse()
            found = json.loads(response.read())
        except BaseException:
            connection.close()
            raise
        self._local.connection = connection
        return response.status, found

    # -- decisions --------------------------------------------------------------------------------

    @contextmanager
    def send_decisions(self, pause: float = 0.0) -> Iterator[None]:
        """Send decisions from several threads while the context is open."""
        is_over = threading.Event()

        def send() -> None:
            while not is_over.wait(pause):
                try:
                    self._decide(next(self._numbers))
                except (OSError, http.client.HTTPException):
                    is_over.wait(_PAUSE_SECONDS)  # the worker of this connection is gone

        with _threads(_CALLERS, send, before_join=is_over.set):
            yield

    def _decide(self, number: int) -> None:
        cents = 1_00 + number * 7_919 % 40_000  # all over the range
        amount = Decimal(cents) / 100 + number // 40_000
        given = {"amount": str(amount), "balance": "1000", "country": "DE", "user_age_days": 400}
        status, found = self.request(f"/nodes/{DECISION}", given)
        fee = amount * Decimal("0.029") + Decimal("0.30")
        if amount > 100:
            fee = amount * Decimal("0.025") + Decimal("0.50")
        with self._lock:
            self.decisions += 1
            self.wrong_fees += status == 200 and Decimal(found["fee"]) != fee

    # -- orders -----------------------------------------------------------------------------------

    def order(self, count: int, on_order: Callable[[int], None]) -> dict[str, str]:
        """Send orders, each until it is answered; return transactions by order."""
        paid: dict[str, str] = {}
        waiting = itertools.count(1)

        def send() -> None:
            while (number := next(waiting)) <= count:
                on_order(number)
                order = f"order-{number}"
                status, found = self._send_until_answered(order, f"{number}.99")
                with self._lock:
                    if status == 201:
                        paid[order] = found["transaction_id"]
                    else:
                        self.refused[order] = found

        with _threads(2 * _CALLERS, send):
            pass
        return paid

    def _send_until_answered(self, order: str, amount: str) -> tuple[int, Any]:
        """Send an order under its key until it has a final answer."""
        given = {"order_id": order, "user_id": "ann", "amount": amount}
        until = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                status, found = self.request("/payments", given, {"Idempotency-Key": order})
            except (OSError, http.client.HTTPException):
                status, found = 0, None
            is_running = status == 409 and str(found.get("type", "")).endswith("key_running")
            if (status not in (0, 503) and not is_running) or time.monotonic() > until:
                return status, found
            with self._lock:
                self.resent += 1
            time.sleep(_PAUSE_SECONDS)


@contextmanager
def _threads(count: int, target: Callable[[], None], before_join: Callable[[], None] | None = None) -> Iterator[None]:
    threads = [threading.Thread(target=target, name=f"demo-{n}", daemon=True) for n in range(count)]
    for each in threads:
        each.start()
    try:
        yield
    finally:
        if before_join is not None:
            before_join()
        for each in threads:
            each.join()
