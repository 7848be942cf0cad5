"""The tables that the nodes of `nodes/` name."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from vesper.effects.events.performer import OUTBOX_TABLE

_TYPES = {
    "sqlite": {
        "decimal": "text",
        "moment": "text",
        "boolean": "integer",
        "day": "text",
        "number": "integer PRIMARY KEY",
    },
    "postgres": {
        "decimal": "numeric",
        "moment": "timestamptz",
        "boolean": "boolean",
        "day": "date",
        "number": "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    },
}
_TABLES = """
CREATE TABLE api_keys (key_id text PRIMARY KEY, owner text, hash text, label text, issued_at {moment},
    revoked {boolean});
CREATE TABLE last_rates (pair text, rate {decimal}, noted_at {moment});
CREATE TABLE bookings (booking_id text PRIMARY KEY, account text, amount {decimal}, note text,
    exported {boolean} DEFAULT FALSE, file_id text);
CREATE TABLE transactions (transaction_id text PRIMARY KEY, order_id text, user_id text, amount {decimal}, status text,
    idempotency_key text UNIQUE, created_at {moment});
CREATE TABLE refunds (refund_id text PRIMARY KEY, request_id text UNIQUE, transaction_id text, amount {decimal},
    reason text);
CREATE TABLE stock (sku text PRIMARY KEY, available bigint, changed_at {moment});
CREATE TABLE reservations (reservation_id {number}, order_id text, sku text, pieces bigint, state text,
    made_at {moment}, expires_at {moment}, closed_at {moment}, UNIQUE (order_id, sku));
CREATE TABLE orders (order_id text PRIMARY KEY, customer_id text, region text, amount {decimal}, refunded {boolean},
    paid_at {moment}, shop text, channel text, business_day {day});
CREATE TABLE customers (customer_id text PRIMARY KEY, email text, language text, wants_mail {boolean});
CREATE TABLE tickets (ticket_id text PRIMARY KEY, triaged {boolean}, queue text, urgency bigint);
"""


def make_tables(dsn: str) -> None:
    """All tables that nodes name, and the outbox."""
    if dsn.startswith("sqlite:"):
        with closing(sqlite3.connect(dsn.removeprefix("sqlite:"))) as connection:
            connection.executescript(_TABLES.format(**_TYPES["sqlite"]) + OUTBOX_TABLE["sqlite"])
    else:
        import psycopg  # where only SQLite is measured nobody has it

        with psycopg.connect(dsn) as postgres:
            postgres.execute((_TABLES.format(**_TYPES["postgres"]) + OUTBOX_TABLE["postgresql"]).encode())


def empty_tables(dsn: str) -> None:
    """Everything as it was when the tables were made, but for the journal: a database is made once, and used by many
    tests."""
    ours = "'vesper_receipts', 'vesper_states', 'vesper_state_history', 'vesper_outbox'"
    find = f"SELECT tablename FROM pg_tables WHERE tablename IN ({ours}) OR "  # noqa: S608
    find += "(schemaname = 'public' AND tablename NOT LIKE 'vesper%')"
    import psycopg

    with psycopg.connect(dsn) as postgres:
        names = [name for (name,) in postgres.execute(find.encode())]
        postgres.execute(f"TRUNCATE {', '.join(names)} RESTART IDENTITY".encode())
