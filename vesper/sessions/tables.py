"""The tables of sessions in SQLite and PostgreSQL, and their numbered migrations.

A released migration never changes; a later one alters its tables. In PostgreSQL they may share a database with the
journal.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from vesper.sessions.errors import SessionError
from vesper.storage.transaction import Transaction

MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = (
    (
        """CREATE TABLE vesper_sessions (
            name {text} NOT NULL,
            id {text} NOT NULL,
            created_us {integer} NOT NULL,
            updated_us {integer} NOT NULL,
            count {integer} NOT NULL,
            first {integer} NOT NULL,
            bytes {integer} NOT NULL,
            summary {text},
            input_tokens {integer} NOT NULL,
            output_tokens {integer} NOT NULL,
            cost_usd {text} NOT NULL,
            forked_from {text},
            PRIMARY KEY (name, id)
        ){updated}""",
        """CREATE TABLE vesper_session_messages (
            name {text} NOT NULL,
            id {text} NOT NULL,
            number {integer} NOT NULL,
            at_us {integer} NOT NULL,
            execution {text} NOT NULL,
            message {text} NOT NULL,
            PRIMARY KEY (name, id, number)
        )""",
        """CREATE TABLE vesper_session_values (
            name {text} NOT NULL,
            id {text} NOT NULL,
            key {text} NOT NULL,
            value {text} NOT NULL,
            expires_us {integer},
            PRIMARY KEY (name, id, key)
        )""",
        """CREATE TABLE vesper_session_receipts (
            receipt {text} PRIMARY KEY,
            name {text} NOT NULL,
            id {text} NOT NULL,
            at_us {integer} NOT NULL,
            value {text} NOT NULL
        )""",
        "CREATE INDEX vesper_session_receipts_of ON vesper_session_receipts (name, id)",
    ),
)
FORMAT: Final = len(MIGRATIONS)
_FORMAT_TABLE: Final = (
    "CREATE TABLE IF NOT EXISTS vesper_session_format (version {integer} PRIMARY KEY, applied_us {integer} NOT NULL)"
)


def make_tables(transaction: Transaction, name: str, words: Mapping[str, str]) -> None:
    """Bring the tables up to date. Raises `SessionError` for tables of a newer Vesper."""
    transaction.run(_FORMAT_TABLE.format_map(words))
    version: int = transaction.rows("SELECT COALESCE(MAX(version), 0) FROM vesper_session_format")[0][0]
    if version > FORMAT:
        raise SessionError(
            f"{name}: the sessions have the format {version}, and this Vesper knows {FORMAT}: a newer one made them; "
            "use that one, or another store"
        )
    for number, statements in enumerate(MIGRATIONS, start=1):
        if number > version:
            for statement in statements:
                transaction.run(statement.format_map(words))
            values = (number, transaction.now_us())
            transaction.run("INSERT INTO vesper_session_format (version, applied_us) VALUES (?, ?)", values)
