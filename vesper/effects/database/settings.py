"""The settings `[databases.NAME]` of one database."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from vesper.effects.settings import Table

_SQLITE = "sqlite:"
_POSTGRES = ("postgresql://", "postgres://")
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class DatabaseSettings:
    name: str
    dsn: str
    """For PostgreSQL: as the configuration has it, and never with a password."""
    path: Path | None = None
    """The file of an SQLite database; None for PostgreSQL."""
    password_secret: str | None = None
    timeout: float = 30.0
    """Seconds that an attempt may take where its step does not say."""
    pool_size: int = 8
    max_rows: int = 10_000
    max_value: int = MIB
    """Bytes of the largest value that is read from one column of one row."""
    max_result: int = 64 * MIB
    """Bytes of all values of one result together."""
    read_only: bool = False
    foreign_keys: bool = True
    """SQLite alone: PostgreSQL always checks them."""
    create: bool = False
    """SQLite alone: a file that is missing is made. Otherwise a misspelt path would be an empty database."""
    busy_timeout: float = 5.0
    """SQLite alone: how long one waits for another's transaction to end."""

    @property
    def is_sqlite(self) -> bool:
        return self.path is not None

    @property
    def where(self) -> str:
        return f"databases.{self.name}"

    @classmethod
    def from_table(cls, name: str, table: Table, base: Path | None = None) -> DatabaseSettings:
        """Read the settings of a table.

        A relative path of SQLite is below the folder `base`, or else below the working folder of the process.
        """
        dsn = table.text("dsn")
        path = _path(table, dsn, base)
        settings = cls(
            name=name,
            dsn=dsn,
            path=path,
            password_secret=table.text("password_secret") if "password_secret" in table else None,
            timeout=table.seconds("timeout", 30.0),
            pool_size=table.integer("pool_size", 8, least=1, most=1_000),
            max_rows=table.integer("max_rows", 10_000, least=1, most=1_000_000),
            max_value=table.size("max_value", MIB),
            max_result=table.size("max_result", 64 * MIB),
            read_only=table.boolean("read_only", False),
            foreign_keys=table.boolean("foreign_keys", True),
            create=table.boolean("create", False),
            busy_timeout=table.seconds("busy_timeout", 5.0),
        )
        table.done()
        _refuse_unused(table, settings)
        return settings


def _path(table: Table, dsn: str, base: Path | None) -> Path | None:
    if dsn.startswith(_POSTGRES):
        _check_postgres(table, dsn)
        return None
    if not dsn.startswith(_SQLITE):
        # The text is not repeated: whatever else it is, it may hold a password.
        raise table.error("dsn", "`sqlite:PATH` or `postgresql://USER@HOST/DATABASE` is expected")
    rest = dsn.removeprefix(_SQLITE)
    if rest.startswith("//"):
        if not rest.startswith("///"):
            raise table.error("dsn", "an SQLite database has no host: write `sqlite:PATH` or `sqlite:///ABSOLUTE/PATH`")
        rest = rest[2:]
    if rest in ("", "/", ":memory:"):
        raise table.error("dsn", "a file is expected: a database in memory is gone with the connection that made it")
    if "\0" in rest:
        raise table.error("dsn", "a path has no NUL character")
    return (base or Path()) / rest


def _check_postgres(table: Table, dsn: str) -> None:
    try:
        parts = urlsplit(dsn)
        password, query = parts.password, dict(parse_qsl(parts.query, keep_blank_values=True))
        port = parts.port
    except ValueError as error:
        raise table.error("dsn", f"this is no address of a PostgreSQL database: {error}") from None
    if port == 0:
        raise table.error("dsn", "there is no port 0")
    if password is not None or "password" in query:
        raise table.error("dsn", 'a password stands here in the clear; name a secret: `password_secret = "NAME"`')


def _refuse_unused(table: Table, settings: DatabaseSettings) -> None:
    """Refuse settings that have no effect for this kind of database, or contradict others."""
    of_the_other = ("password_secret",) if settings.is_sqlite else ("foreign_keys", "create", "busy_timeout")
    for name in of_the_other:
        if name in table:
            kind = "an SQLite" if settings.is_sqlite else "a PostgreSQL"
            raise table.error(name, f"{kind} database has no such setting")
    if settings.timeout <= 0:
        raise table.error("timeout", "a time above zero is expected")
    if settings.create and settings.read_only:
        raise table.error("create", "a database that is only read is not made")
