"""The tables of migration state in SQLite and PostgreSQL, and their numbered migrations.

A released migration never changes; a later one alters its tables. In PostgreSQL they may share a database with the
journal.

A set of fingerprints is a row of `vesper_control_sets` and its members. A dropped set loses its name at once, and its
members a few thousand at a time in later transactions, so that a demotion does not wait until a million rows are
deleted.
"""

from __future__ import annotations

from dataclasses import dataclass

from vesper.migration.stores.store import StoreError
from vesper.storage.sql_words import POSTGRES_WORDS, SQLITE_WORDS
from vesper.storage.transaction import Transaction

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE vesper_control_nodes (
            id {identity},
            node {text} NOT NULL,
            epoch {text} NOT NULL,
            version {integer} NOT NULL,
            state {text},
            UNIQUE (node, epoch)
        ){updated}""",
        """CREATE TABLE vesper_control_batches (
            node {integer} NOT NULL,
            process {text} NOT NULL,
            number {integer} NOT NULL,
            at_us {integer} NOT NULL,
            PRIMARY KEY (node, process)
        ){clustered}""",
        """CREATE TABLE vesper_control_sets (
            id {identity},
            node {integer} NOT NULL,
            scope {text},
            size {integer} NOT NULL,
            UNIQUE (node, scope)
        )""",
        """CREATE TABLE vesper_control_members (
            owner {integer} NOT NULL,
            fingerprint {integer} NOT NULL,
            PRIMARY KEY (owner, fingerprint)
        ){clustered}""",
        """CREATE TABLE vesper_control_history (
            node {integer} NOT NULL,
            number {integer} NOT NULL,
            line {text} NOT NULL,
            hash {text} NOT NULL,
            PRIMARY KEY (node, number)
        )""",
        """CREATE TABLE vesper_control_divergences (
            node {integer} NOT NULL,
            fingerprint {text} NOT NULL,
            turn {integer} NOT NULL,
            divergence {text} NOT NULL,
            PRIMARY KEY (node, fingerprint)
        )""",
        """CREATE TABLE vesper_control_paths (
            node {integer} NOT NULL,
            path {text} NOT NULL,
            note {text} NOT NULL,
            PRIMARY KEY (node, path)
        )""",
        """CREATE TABLE vesper_control_documents (
            node {integer} NOT NULL,
            name {text} NOT NULL,
            document {text} NOT NULL,
            PRIMARY KEY (node, name)
        )""",
        """CREATE TABLE vesper_control_secret (
            one {integer} PRIMARY KEY CHECK (one = 1),
            secret {bytes} NOT NULL
        )""",
    ),
)
FORMAT = len(MIGRATIONS)
_FORMAT_TABLE = (
    "CREATE TABLE IF NOT EXISTS vesper_control_format (version {integer} PRIMARY KEY, applied_us {integer} NOT NULL)"
)


@dataclass(frozen=True, slots=True)
class Dialect:
    """The differences between SQL dialects."""

    words: dict[str, str]
    numbers: str
    """Table expression `given` with the column `value`, from one parameter with many integers."""
    among: str
    """Test of a column against one parameter with many integers. Its plan must not depend on what the server has
    counted so far: Postgres compares every row with every number of an `unnest` if it believes the table small."""


SQLITE = Dialect(SQLITE_WORDS, "json_each(?) AS given", "IN (SELECT value FROM json_each(?))")
POSTGRES = Dialect(POSTGRES_WORDS, "unnest(?::bigint[]) AS given (value)", "= ANY (?::bigint[])")


def make_tables(transaction: Transaction, name: str, dialect: Dialect) -> None:
    """Bring the tables up to date. Raises `StoreError` for tables of a newer Vesper."""
    transaction.run(_FORMAT_TABLE.format_map(dialect.words))
    version: int = transaction.rows("SELECT COALESCE(MAX(version), 0) FROM vesper_control_format")[0][0]
    check_format(version, name)
    for number, statements in enumerate(MIGRATIONS, start=1):
        if number > version:
            for statement in statements:
                transaction.run(statement.format_map(dialect.words))
            values = (number, transaction.now_us())
            transaction.run("INSERT INTO vesper_control_format (version, applied_us) VALUES (?, ?)", values)


def check_format(version: int, name: str) -> None:
    if version > FORMAT:
        raise StoreError(
            f"{name}: the migration state has the format {version}, and this Vesper knows {FORMAT}: a newer one made "
            "it; use that one, or another store"
        )
