"""Words of table definitions that differ between SQLite and PostgreSQL, for `str.format_map`."""

from typing import Final

SQLITE_WORDS: Final = {
    "identity": "INTEGER PRIMARY KEY AUTOINCREMENT",
    "text": "TEXT",
    "integer": "INTEGER",
    "bytes": "BLOB",
    "clustered": " WITHOUT ROWID",
    "updated": "",
}
POSTGRES_WORDS: Final = {
    "identity": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    "text": 'TEXT COLLATE "C"',
    "integer": "BIGINT",
    "bytes": "BYTEA",
    "clustered": "",
    "updated": " WITH (fillfactor = 70)",  # room in the page for the new version of a row that every commit writes
}
