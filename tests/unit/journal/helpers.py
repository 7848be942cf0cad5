"""Runs for tests of the journal."""

from __future__ import annotations

import itertools
import os
import traceback
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any

from tests.support.journal_file import run_statement
from vesper.journal.entry import AuditEvent, Definition, Entry, Kind
from vesper.journal.journal import Beginning, Journal, Run, Status

NOW = datetime(2026, 11, 15, 12, 0, 0, 500000, tzinfo=UTC)
CALLED = Definition("cd" * 32, "called", "called.vsp", "id: called\n", b'{"id":"called"}')
DEFINITION = Definition("ab" * 32, "pay", "nodes/pay.vsp", "id: pay\n", b'{"id":"pay"}', (CALLED,))
INPUTS: Mapping[str, object] = {
    "amount": Decimal("12.50"),
    "customer": "Ada",
    "when": NOW,
    "tags": frozenset({"a", "b"}),
}
_numbers = itertools.count(1)


def first_hash(execution: str) -> bytes:
    return sha256(b"vesper journal 1\n" + execution.encode()).digest()


def next_hash(before: bytes, line: bytes) -> bytes:
    return sha256(before + line).digest()


def begin(journal: Journal, execution: str | None = None, **more: Any) -> Run:
    """A new run, not committed."""
    name = execution if execution is not None else f"run-{next(_numbers)}"
    fields = {"definition": DEFINITION, "inputs": INPUTS, "now": NOW, "engine": "interp", **more}
    return journal.begin(Beginning(execution=name, **fields))


def begun(journal: Journal, execution: str | None = None, **more: Any) -> Run:
    run = begin(journal, execution, **more)
    run.commit()
    return run


def intent(path: str = "charge", body: Mapping[str, object] | None = None, key: str | None = "key-1") -> Entry:
    return Entry(Kind.INTENT, path, "external_api_call", "keyed", key, "0" * 64, body or {"endpoint": "/v1/charges"}, 7)


def result(path: str = "charge", value: object = "ch_1") -> Entry:
    return Entry(Kind.RESULT, path, "external_api_call", "keyed", None, "", {"value": value}, 8)


def end(run: Run, outcome: str = "returned") -> None:
    run.append(Entry(Kind.END, body={"kind": outcome}, at_us=9))
    run.commit(Status.ENDED, outcome)


def event(action: str = "effect", **fields: object) -> AuditEvent:
    return AuditEvent(1_700_000_000_000_000, "run-x", "pay", "basic", action, fields)


def in_child(work: Callable[[], None]) -> int:
    """The exit status of a fork that did `work`; what went wrong is on stderr."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            work()
            status = 0
        except BaseException:  # noqa: BLE001  # the child must not come back into pytest
            traceback.print_exc()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


class Raw:
    """What an administrator, or somebody who should not, does to the tables."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn

    def run(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        if self._dsn.startswith("sqlite:"):
            return run_statement(Path(self._dsn.removeprefix("sqlite:")), sql, values)
        import psycopg

        with psycopg.connect(self._dsn, autocommit=True) as connection:
            cursor = connection.execute(sql.replace("%", "%%").replace("?", "%s").encode(), values)
            return list(cursor.fetchall()) if cursor.description else []
