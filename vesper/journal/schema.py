"""The tables of a journal, the same on every store, and the numbered steps that make them.

A step that was released is never changed: a later one changes what it made. A store with a higher number than the last
one here was made by a newer Vesper, and is refused.

A row of `vesper_commits` is what one commit (or a part of a very large one) wrote: lines of canonical bytes parted by
line feeds, and their hashes one after the other. Its `place` is the id of the run and the number of its first line in
one integer, which is the number that SQLite keeps a table by: no index has to be written besides, and rows of a run are
neighbours (docs/adr/0012-a-journal-commit-is-one-row-and-one-statement.md has the measurements).
"""

from __future__ import annotations

PLACES = 1 << 31
"""More lines than a run can have: `place` is `id * PLACES + seq`."""

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE vesper_executions (
            id {identity},
            execution {text} NOT NULL UNIQUE,
            node_id {text} NOT NULL,
            semantic_hash {text} NOT NULL,
            status {text} NOT NULL,
            outcome {text},
            owner {text} NOT NULL,
            fence {integer} NOT NULL,
            lease_until_us {integer} NOT NULL,
            started_us {integer} NOT NULL,
            updated_us {integer} NOT NULL,
            engine {text} NOT NULL,
            is_joined {integer} NOT NULL,
            is_sensitive {integer} NOT NULL,
            is_synced {integer} NOT NULL,
            head_seq {integer} NOT NULL,
            head_hash {bytes} NOT NULL
        ){updated}""",
        "CREATE INDEX vesper_executions_open ON vesper_executions (status, id) WHERE status <> 'ended'",
        "CREATE INDEX vesper_executions_node ON vesper_executions (node_id, id)",
        "CREATE INDEX vesper_executions_started ON vesper_executions (started_us)",
        """CREATE TABLE vesper_commits (
            place {integer} PRIMARY KEY,
            lines {bytes} NOT NULL,
            hashes {bytes} NOT NULL
        )""",
        """CREATE TABLE vesper_definitions (
            semantic_hash {text} PRIMARY KEY,
            node_id {text} NOT NULL,
            path {text} NOT NULL,
            source {text} NOT NULL,
            ir {bytes} NOT NULL,
            callees {text} NOT NULL
        )""",
        """CREATE TABLE vesper_blobs (
            name {text} PRIMARY KEY,
            size {integer} NOT NULL,
            is_compressed {integer} NOT NULL,
            data {bytes} NOT NULL
        )""",
        """CREATE TABLE vesper_blob_uses (
            run {integer} NOT NULL,
            name {text} NOT NULL,
            PRIMARY KEY (run, name)
        ){clustered}""",
        "CREATE INDEX vesper_blob_uses_name ON vesper_blob_uses (name)",
        """CREATE TABLE vesper_keys (
            run {integer} PRIMARY KEY,
            master {text} NOT NULL,
            wrapped {bytes} NOT NULL
        )""",
        """CREATE TABLE vesper_audit (
            seq {integer} PRIMARY KEY,
            line {bytes} NOT NULL,
            hash {bytes} NOT NULL
        )""",
        """CREATE TABLE vesper_audit_head (
            one {integer} PRIMARY KEY CHECK (one = 1),
            count {integer} NOT NULL,
            hash {bytes} NOT NULL
        )""",
        "INSERT INTO vesper_audit_head (one, count, hash) VALUES (1, 0, {no_hash})",
    ),
)
VERSION = len(MIGRATIONS)

MIGRATIONS_TABLE = (
    "CREATE TABLE IF NOT EXISTS vesper_migrations (version {integer} PRIMARY KEY, applied_us {integer} NOT NULL)"
)

SQLITE = {
    "identity": "INTEGER PRIMARY KEY AUTOINCREMENT",
    "text": "TEXT",
    "integer": "INTEGER",
    "bytes": "BLOB",
    "clustered": " WITHOUT ROWID",
    "updated": "",
    "no_hash": "x'" + "00" * 32 + "'",
}
POSTGRES = {
    "identity": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    "text": 'TEXT COLLATE "C"',
    "integer": "BIGINT",
    "bytes": "BYTEA",
    "clustered": "",
    "updated": " WITH (fillfactor = 70)",  # room in the page for the new version of a row that every commit writes
    "no_hash": "'\\x" + "00" * 32 + "'",
}


def statements(words: dict[str, str], after: int) -> list[tuple[int, list[str]]]:
    """The steps that a store at version `after` lacks, in the words of its SQL."""
    return [
        (number, [statement.format_map(words) for statement in step])
        for number, step in enumerate(MIGRATIONS, start=1)
        if number > after
    ]
