"""A process that pays orders: reads `ORDERS CALLERS` from standard input and prints what they took as JSON."""

from __future__ import annotations

import itertools
import json
import sqlite3
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from time import perf_counter_ns, process_time_ns
from typing import Protocol

API_KEY = "sk_test_0123456789abcdef"
AMOUNT = "99.99"
TABLE = """CREATE TABLE transactions (
    transaction_id text PRIMARY KEY, order_id text, user_id text, amount text, status text,
    idempotency_key text UNIQUE, created_at text)"""


class Service(Protocol):
    def pay(self, order: str, user: str, key: str) -> None:
        """Pay one order; raises where it was not paid."""
        ...

    def close(self) -> None: ...


def main(make: Callable[[Path, str], Service]) -> None:
    """Serve rounds for `FOLDER URL`: the folder of the databases and the address of the provider."""
    folder, url = Path(sys.argv[1]), sys.argv[2]
    with closing(sqlite3.connect(folder / "shop.db")) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(TABLE)
    numbers = itertools.count(1)
    with closing(make(folder, url)) as service:

        def pay(_: int) -> None:
            name = f"{folder.name}-{next(numbers):07}"
            service.pay(f"ord_{name}", "cus_7", f"key_{name}")

        for line in sys.stdin:
            orders, callers = map(int, line.split())
            clock, processor = perf_counter_ns(), process_time_ns()
            if callers == 1:
                for number in range(orders):
                    pay(number)
            else:
                with ThreadPoolExecutor(callers) as pool:
                    list(pool.map(pay, range(orders)))
            took = {
                "processor_us": (process_time_ns() - processor) / orders / 1000,
                "clock_us": (perf_counter_ns() - clock) / orders / 1000,
            }
            print(json.dumps(took), flush=True)
