"""Purchases, the places where they happen, and processes that run and recover them.

`python -m tests.proofs.kills.purchase run|recover FOLDER PORT ENGINE [EVENT]` is one such process.
"""

from __future__ import annotations

import http.client
import json
import os
import sqlite3
import subprocess
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

from vesper.compiler import Compiled, compile_file  # noqa: E402
from vesper.config.settings import Config, config_from  # noqa: E402
from vesper.engines.outcome import Returned  # noqa: E402
from vesper.engines.registry import ENGINES  # noqa: E402
from vesper.host.host import Host  # noqa: E402
from vesper.journal.journal import Status  # noqa: E402

TABLE = "CREATE TABLE ledger (event_id text, charge text)"


def purchase() -> Compiled:
    compiled, bag = compile_file(ROOT / "tests" / "proofs" / "kills" / "purchase_v1.vsp")
    assert compiled is not None, bag.sorted()
    return compiled


class OutsideAt:
    """The provider, as others see it."""

    def __init__(self, port: int) -> None:
        self.port = port

    def counts(self) -> Counter[str]:
        """How often each thing was done."""
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)) as connection:
            connection.request("GET", "/counts")
            return Counter(json.loads(connection.getresponse().read()))


class OutsideProcess(OutsideAt):
    """The provider, in a process that nobody kills."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.proofs.kills.outside"]
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        super().__init__(int(self._process.stdout.readline()))

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(10)
        assert self._process.stdout is not None
        self._process.stdout.close()


@dataclass
class Place:
    """Databases and a journal of one kind."""

    kind: str
    database: str
    journal: str
    folder: Path
    port: int
    key_header: str = "Idempotency-Key"

    def config(self) -> Config:
        return config_from(
            {
                "grants": [{"nodes": ["purchase"], "allow": ["database.*", "network.*", "state.*"]}],
                "providers": {
                    "outside": {
                        "base_url": f"http://127.0.0.1:{self.port}",
                        "allow_private_addresses": True,
                        "key_header": self.key_header,
                    }
                },
                "databases": {"main": {"dsn": self.database}},
                "journal": {"dsn": self.journal},
                "recovery": {"enabled": False},
            },
            self.folder,
        )

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        if self.kind == "sqlite":
            with closing(sqlite3.connect(self.database.removeprefix("sqlite:"), timeout=30)) as connection:
                try:
                    return connection.execute(sql).fetchall()
                except sqlite3.OperationalError as error:
                    if "no such table" not in str(error):
                        raise
                    return []  # it was lost, or nobody has needed it yet
        import psycopg

        with psycopg.connect(self.database) as postgres:
            return postgres.execute(sql.encode()).fetchall()


def sqlite_place(folder: Path, port: int, key_header: str = "Idempotency-Key") -> Place:
    folder.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(folder / "shop.db")) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(TABLE.replace("TABLE", "TABLE IF NOT EXISTS"))
    return Place("sqlite", f"sqlite:{folder / 'shop.db'}", f"sqlite:{folder / 'journal.db'}", folder, port, key_header)


def postgres_place(dsn: str, folder: Path, port: int) -> Place:
    import psycopg

    with psycopg.connect(dsn) as postgres:
        postgres.execute(TABLE.encode())
    return Place("postgres", dsn, dsn, folder, port)


# -- in the processes that are killed --------------------------------------------------------------


def arm(point: str) -> None:
    """Name the kill point at which this process dies; before its first run."""
    os.environ["VESPER_DIE_AT"] = point


def run_purchase(place: Place, compiled: Compiled, engine: str, event: str) -> None:
    with Host(place.config()) as host:
        prepared = host.prepare(compiled, ENGINES[engine].load(compiled), engine)
        ran = host.run(prepared, {"event_id": event}, datetime.now(UTC))
        assert isinstance(ran.outcome, Returned), ran.outcome


def recover_all(place: Place, engine: str, outside: OutsideAt) -> dict[str, Any]:
    """Finishes whatever is left, and says what was in doubt and how all runs ended."""
    doubts: list[str] = []
    with Host(place.config()) as host:
        for _ in range(10):
            left = host.recover(engine)
            for summary in host.journal.find(status=Status.IN_DOUBT):
                event = str(host.journal.read(summary.execution).entries[0].entry.body["inputs"]["event_id"])  # type: ignore[index]
                doubts.append(event)
                count = outside.counts()[f"/notice {event}"]
                result = {"id": f"{event}-{count}"} if count else None
                if count:
                    host.journal.resolve(summary.execution, "notice", result, None, "campaign", "seen outside")
                else:
                    host.journal.resolve(
                        summary.execution, "notice", None, None, "campaign", "not there", not_done=True
                    )
            if not left and not host.journal.find(status=Status.IN_DOUBT):
                break
        runs = host.journal.find(limit=5)
        return {"doubts": doubts, "runs": [[each.execution, each.status.value, each.outcome] for each in runs]}


def in_child(work: Callable[[], Any]) -> tuple[int, Any]:
    """Does it in a forked process: its exit status, and what it gave."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(read)
            answer = json.dumps(work())
            os.write(write, answer.encode())
            code = 0
        except BaseException:  # noqa: BLE001  # it is printed, and the parent sees the code
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(write)
    with os.fdopen(read, "rb") as stream:
        text = stream.read()
    _, status = os.waitpid(pid, 0)
    return status, json.loads(text) if text else None


def is_heard_of(place: Place, outside: OutsideAt, event: str) -> bool:
    """False where the journal had not heard of the run when its process died: recovery did nothing for it."""
    rows = place.rows(f"SELECT 1 FROM ledger WHERE event_id = '{event}'")  # noqa: S608
    return bool(rows) or outside.counts()[f"/notice {event}"] > 0


def wrong(place: Place, outside: OutsideAt, event: str) -> list[str]:
    """What has not happened exactly once."""
    counts = outside.counts()
    found = [f"{name} happened {counts[f'{name} {event}']} times" for name in ("/charge", "/notice")
             if counts[f"{name} {event}"] != 1]  # fmt: skip
    rows = place.rows(f"SELECT charge FROM ledger WHERE event_id = '{event}'")  # noqa: S608
    if rows != [(f"{event}-1",)]:
        found.append(f"the ledger has {rows}")
    state = place.rows(f"SELECT state FROM vesper_states WHERE entity = '{event}'")  # noqa: S608
    if state != [("done",)]:
        found.append(f"the entity is {state}")
    return found


def main() -> None:
    command, folder, port, engine, *event = sys.argv[1:]
    place = sqlite_place(Path(folder), int(port))
    if command == "run":
        run_purchase(place, purchase(), engine, *event)
    else:
        print(json.dumps(recover_all(place, engine, OutsideAt(int(port)))))


if __name__ == "__main__":
    main()
