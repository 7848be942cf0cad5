"""A folder for `vesper serve` of the shipped handlers: configuration, tables, secrets, providers on loopback.

The language model of `ticket_triage_v1` is the function of `model.py`.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.unit.host.tables import make_tables

ROOT = Path(__file__).parents[3]
STRIPE_KEY = "sk_test_of_the_served_shop"
SECRETS = {"VESPER_SECRET_STRIPE_API_KEY": STRIPE_KEY, "VESPER_SECRET_GATEWAY_TOKEN": "gw_of_the_served_shop"}
HANDLERS = [
    ROOT / "nodes" / name
    for name in (
        "access/api_key_issue_v1.vsp",
        "finance/exchange_rates_v1.vsp",
        "payments/payment_handler_v1.vsp",
        "payments/refund_v1.vsp",
        "shop/stock_reservation_v1.vsp",
        "support/ticket_triage_v1.vsp",
    )
]


def make_shop(folder: Path, stripe: str, dsn: str, others: str = "http://127.0.0.1:9", redis: str = "") -> None:
    """Write vesper.toml and the tables. `others` are bank and gateway; without Redis there are no caches."""
    make_tables(dsn)
    text = _CONFIG.format(stripe=stripe, others=others, dsn=dsn) + (_CACHES.format(redis=redis) if redis else "")
    (folder / "vesper.toml").write_text(text, encoding="utf-8")


def rows(dsn: str, sql: str) -> list[tuple[Any, ...]]:
    if dsn.startswith("sqlite:"):
        with closing(sqlite3.connect(dsn.removeprefix("sqlite:"), timeout=30)) as connection, connection:
            return connection.execute(sql).fetchall()
    import psycopg

    with psycopg.connect(dsn) as postgres:
        found = postgres.execute(sql.encode())
        return found.fetchall() if found.description else []


_CONFIG = """\
[[grants]]
nodes = ["*"]
allow = ["*"]

[providers.stripe]
base_url = "{stripe}"
allow_private_addresses = true
auth = {{header = "Authorization", value = "Bearer {{secret:stripe_api_key}}"}}

[providers.bank]
base_url = "{others}/bank"
allow_private_addresses = true

[providers.gateway]
base_url = "{others}/gateway"
allow_private_addresses = true

[databases.main]
dsn = "{dsn}"

[databases.accounts]
dsn = "{dsn}"

[state]
database = "main"

[journal]
dsn = "sqlite:journal.db"

[effects]
modules = ["tests.proofs.serving.model"]
"""
_CACHES = """
[caches.rates]
url = "{redis}"

[caches.key_lists]
url = "{redis}"

[events]
url = "{redis}"
database = "main"
"""
