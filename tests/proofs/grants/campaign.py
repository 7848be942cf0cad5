"""`make proof-grants`: under a grant of one table, SQL reads and writes nothing outside it.

Every function, type and operator that PostgreSQL and SQLite ship, in eight places of a statement, and the handwritten
texts of attacks.txt. The check refuses a text, or the text is executed as a superuser on a database with a table
`secrets` and a file: neither shows in a result, and tables, files and transaction ids are unchanged afterwards.
"""
# ruff: noqa: S608  # the names in these statements are constants, or come from the catalogs of a test server

from __future__ import annotations

import argparse
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

import psycopg  # noqa: E402  # after the path is set

from tests.proofs.grants.texts import Text, postgres_texts, sqlite_texts  # noqa: E402
from tests.proofs.robustness.proof import PROOFS, hash_of, write_json  # noqa: E402
from tests.support.servers import Postgres  # noqa: E402
from vesper.effects.database.performer import DatabasePerformer  # noqa: E402
from vesper.effects.database.settings import DatabaseSettings  # noqa: E402
from vesper.effects.performer import EffectFailed, no_secret  # noqa: E402
from vesper.language.check.flow.sql import SqlProblem, read_sql  # noqa: E402

NAME = "grants"
GRANTED = frozenset(("database.read.users", "database.write.users"))
IN_TABLE, IN_FILE = "canary4711table", "canary4712file"
SCHEMA = f"""
CREATE TABLE users (id integer, name text, a integer);
INSERT INTO users VALUES (1, 'ada', 1), (2, 'bob', 2);
CREATE TABLE secrets (pw text);
INSERT INTO secrets VALUES ('{IN_TABLE}');
"""
_HERE = Path(__file__).parent


def source_hash() -> str:
    """Change with the check of SQL, with its lists, and with the performers of databases."""
    vesper = ROOT / "vesper"
    folders = (vesper / "language" / "sql", vesper / "effects" / "database", _HERE)
    native = ROOT / "direct_runtime" / "crates" / "vesper-host" / "src" / "database"
    single = (vesper / "language" / "check" / "flow" / "sql.py", vesper / "values" / "generated" / "sql_functions.py")
    python = [path for folder in folders for path in folder.glob("*.py")]
    return hash_of([*single, *python, *sorted(native.rglob("*.rs")), _HERE / "attacks.txt"])


def attacks(path: Path) -> list[Text]:
    lines = (_HERE / "attacks.txt").read_text(encoding="utf-8").splitlines()
    texts = [line.replace("{path}", str(path)) for line in lines if line and not line.startswith("#")]
    return [
        Text("attack", "insert" if text.startswith(("INSERT", "UPDATE", "DELETE")) else "select", text)
        for text in texts
    ]


def is_accepted(sql: str) -> bool:
    """Return whether the check accepts a statement for a node that declares the granted capabilities."""
    try:
        needs = set(read_sql(sql).capabilities)
    except SqlProblem:
        return False
    return bool(needs) and needs <= GRANTED


def performer_of(settings: DatabaseSettings) -> DatabasePerformer:
    return DatabasePerformer({settings.name: settings}, no_secret)


class Runner:
    """Executes accepted texts, and counts what came of them."""

    def __init__(self, performer: DatabasePerformer) -> None:
        self._databases = performer.native
        self.counts: Counter[str] = Counter()
        self.leaks: list[str] = []

    def run(self, text: Text) -> None:
        try:
            then = "SELECT name FROM users" if text.writes else None
            found = self._databases.try_out("main", text.sql, then, 5.0)
        except EffectFailed:
            self.counts["refused_by_the_database"] += 1
            return
        self.counts["executed"] += 1
        shown = repr(found)
        if IN_TABLE in shown or IN_FILE in shown:
            self.leaks.append(text.sql)


def tried(texts: Iterable[Text], runner: Runner) -> dict[str, Any]:
    """Check all texts and execute those that are accepted."""
    seen, names, accepted, refused = 0, set(), set(), 0
    for text in texts:
        seen += 1
        names.add(text.name)
        if is_accepted(text.sql):
            accepted |= {text.name} if text.place not in ("attribute", "column") else set()
            runner.run(text)
        else:
            refused += 1
    return {
        "texts": seen,
        "names": len(names),
        "refused_by_the_check": refused,
        "names_with_an_accepted_text": len(accepted),
        **{name: runner.counts[name] for name in ("executed", "refused_by_the_database")},
        "leaks": runner.leaks,
    }


# -- the two databases ----------------------------------------------------------------------------


def on_postgres(server: Postgres, folder: Path, every: int) -> dict[str, Any]:
    dsn, path = server.new_database(), _file(folder)
    performer = performer_of(DatabaseSettings("main", dsn))
    with psycopg.connect(dsn, autocommit=True) as watch:
        watch.execute(SCHEMA.encode())
        watch.execute("ALTER SYSTEM SET autovacuum = off")  # it takes transaction ids, as queries must not
        watch.execute("SELECT pg_reload_conf()")
        texts = [*list(postgres_texts(watch, str(path)))[::every], *attacks(path)]
        queries = [text for text in texts if not text.writes]
        before = _postgres_state(watch), _files(folder)
        runner = Runner(performer)
        reads = tried(queries, runner)
        given_to_reads = _next_transaction(watch) - before[0]["next_transaction"]
        both = tried([text for text in texts if text.writes], runner)
        performer.close()
        after = _postgres_state(watch), _files(folder)
    before[0].pop("next_transaction")
    after[0].pop("next_transaction")
    counted = ("texts", "refused_by_the_check")
    return {
        **both,
        **{name: reads[name] + both[name] for name in counted},
        "names": reads["names"],
        "names_with_an_accepted_text": reads["names_with_an_accepted_text"],
        "transaction_ids_given_to_queries": given_to_reads,
        "is_unchanged": before == after,
    }


def _postgres_state(watch: psycopg.Connection[Any]) -> dict[str, Any]:
    """Return what a statement could have changed, and how often `secrets` was scanned."""
    watch.execute("SELECT pg_stat_force_next_flush()")
    time.sleep(1.2)  # other sessions report their scans at most a second later
    one: Callable[[str], Any] = lambda sql: watch.execute(sql.encode()).fetchall()  # noqa: E731
    scans = one("SELECT seq_scan, n_tup_ins, n_tup_upd, n_tup_del FROM pg_stat_user_tables WHERE relname = 'secrets'")
    rows = {
        name: one(f"SELECT count(*) FROM {name}") for name in ("pg_class", "pg_proc", "pg_largeobject", "pg_authid")
    }
    settings = one("SELECT count(*) FROM pg_settings WHERE source NOT IN ('default', 'client', 'session')")
    content = one("SELECT id, name, a FROM users ORDER BY id")
    locks = one("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'")
    return {
        "scans": scans,
        "rows": rows,
        "settings": settings,
        "users": content,
        "locks": locks,
        "next_transaction": _next_transaction(watch),
    }


def _next_transaction(watch: psycopg.Connection[Any]) -> int:
    row = watch.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())::text").fetchone()
    assert row is not None
    return int(row[0])


def on_sqlite(folder: Path, every: int) -> dict[str, Any]:
    place, path = folder / "main.db", _file(folder)
    with sqlite3.connect(place) as connection:
        connection.executescript(SCHEMA)
    connection.close()
    performer = performer_of(DatabaseSettings("main", f"sqlite:{place}", place))
    watch = sqlite3.connect(":memory:")
    watch.executescript(SCHEMA)
    texts = [*list(sqlite_texts(watch, str(path)))[::every], *attacks(path)]
    before = _sqlite_state(place), _files(folder)
    found = tried(texts, Runner(performer))
    performer.close()
    outside = sorted(
        {table for text in texts if is_accepted(text.sql) for table in touched(watch, text.sql)} - {"users"}
    )
    return {
        **found,
        "tables_touched_outside": outside,
        "is_unchanged": before == (_sqlite_state(place), _files(folder)),
    }


def touched(connection: sqlite3.Connection, sql: str) -> Iterator[str]:
    """Yield the tables that SQLite itself reports for a statement, without Vesper's guard."""
    found: list[str] = []
    actions = (sqlite3.SQLITE_READ, sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE)

    def note(action: int, first: str | None, second: str | None, *_: object) -> int:
        is_set_up = first == "sqlite_master" and (action == sqlite3.SQLITE_UPDATE or second == "ROWID")
        if action in actions and first not in (None, "json_each", "json_tree") and not is_set_up:
            found.append(str(first))
        return sqlite3.SQLITE_OK

    connection.set_authorizer(note)
    with suppress(sqlite3.Error):
        connection.execute(f"EXPLAIN {sql}").fetchall()
    connection.set_authorizer(None)
    yield from found


def _sqlite_state(place: Path) -> list[object]:
    connection = sqlite3.connect(place)
    try:
        return [
            connection.execute(sql).fetchall()
            for sql in ("SELECT * FROM users", "SELECT * FROM secrets", "SELECT sql FROM sqlite_master")
        ]
    finally:
        connection.close()


def _file(folder: Path) -> Path:
    path = folder / "canary.txt"
    path.write_text(IN_FILE, encoding="utf-8")
    path.chmod(0o644)
    return path


def _files(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder that no database keeps for itself."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if not path.name.startswith("main.db")}


# -- the whole ------------------------------------------------------------------------------------


def campaign(server: Postgres, every: int = 1) -> dict[str, Any]:
    """Return the numbers of both databases, with every n-th text."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="vesper-grants-") as one, tempfile.TemporaryDirectory() as other:
        Path(one).chmod(0o755)  # the server reads the file as another user
        found["postgres"] = on_postgres(server, Path(one), every)
        found["sqlite"] = on_sqlite(Path(other), every)
    return found


def is_right(found: dict[str, Any]) -> bool:
    postgres, sqlite = found["postgres"], found["sqlite"]
    return (
        not postgres["leaks"]
        and not sqlite["leaks"]
        and not sqlite["tables_touched_outside"]
        and not postgres["transaction_ids_given_to_queries"]
        and postgres["is_unchanged"]
        and sqlite["is_unchanged"]
        and min(postgres["executed"], sqlite["executed"]) > 0
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="take every n-th text; the file is written for all only")
    every = parser.parse_args().every
    start = time.monotonic()
    found = campaign(Postgres(), every)
    summary = {
        "source_hash": source_hash(),
        "sqlite_version": sqlite3.sqlite_version,
        **found,
        "is_right": is_right(found),
        "seconds": round(time.monotonic() - start, 1),
    }
    if every == 1:
        write_json(PROOFS / f"{NAME}.json", summary)
    for name, value in summary.items():
        print(f"{name}: {value}")
    return 0 if summary["is_right"] else 1


if __name__ == "__main__":
    sys.exit(main())
