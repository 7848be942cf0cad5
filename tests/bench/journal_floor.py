"""What the journal costs over the least that anything durable costs: `python tests/bench/journal_floor.py [FOLDER]`.

The floor is a function call, `json.dumps` of a small request, and its INSERT into a SQLite table that commits at the
same level of syncing. A step of each class is measured in turns with it, and the best of each is compared: what else
the machine does only adds. At NORMAL it is time of the processor, for nobody waits for the disk there; at FULL it is
time of the clock. Of `keyed`, `probe` and `txn` steps RESULT(n) and INTENT(n+1) share a commit; an `unsafe`
one commits twice; a `read` is only appended, and goes with the next commit. FOLDER is on the disk that is measured.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from time import perf_counter_ns, thread_time_ns

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from vesper.journal.entry import Definition, Entry, Kind  # noqa: E402  # the repository's own, wherever this is started
from vesper.journal.journal import Beginning, Journal, Run, Status, open_journal  # noqa: E402

PLAIN = {"order": "o-1234567", "amount": "12.50", "currency": "EUR", "customer": "c-99", "tax": "1.20", "note": "hello"}
BODY = {**PLAIN, "amount": Decimal("12.50"), "tax": Decimal("1.20")}
FIXED = {"provider": "stripe", "method": "POST", "endpoint": "/v1/charges"}
BUDGET = 1.5
"""Of an append and commit of a keyed step, in floors; reads have to stay under one."""


class Bench:
    def __init__(self, folder: Path, level: str) -> None:
        self._level = level
        self._floor = sqlite3.connect(folder / f"floor-{level}.db", isolation_level=None)
        self._floor.execute("PRAGMA journal_mode = WAL")
        self._floor.execute(f"PRAGMA synchronous = {level}")
        self._floor.execute("CREATE TABLE floor (id INTEGER PRIMARY KEY, body TEXT)")
        self._journal: Journal = open_journal(f"sqlite:{folder / f'journal-{level}.db'}")
        self._begun = 0
        self._run: Run = self._begin()
        self._run.commit()

    def _begin(self) -> Run:
        self._begun += 1
        definition = Definition("ab" * 32, "bench", "bench.vsp", "id: bench\n" * 50, b"{}" * 500)
        beginning = Beginning(
            f"run-{self._begun}", definition, BODY, datetime.now(UTC), "interp", writes=self._level == "FULL"
        )
        return self._journal.begin(beginning)

    def floor(self) -> None:
        self._floor.execute("INSERT INTO floor (body) VALUES (?)", (json.dumps(PLAIN),))

    def _asked(self, effect_class: str) -> Entry:
        run = self._run
        digest = run.digest("external_api_call", effect_class, FIXED, BODY, "key-1")
        return Entry(Kind.INTENT, "charge[2]", "external_api_call", effect_class, "key-1", digest, BODY, 1)

    def keyed(self) -> None:
        """The digest of the request is part of it; a `txn` step writes the same."""
        self._run.append(Entry(Kind.RESULT, "charge[1]", body={"value": "ch_1"}, at_us=1))
        self._run.append(self._asked("keyed"))
        self._run.commit()

    def unsafe(self) -> None:
        self._run.append(self._asked("unsafe"))
        self._run.commit()
        self._run.append(Entry(Kind.RESULT, "charge[2]", body={"value": "ch_1"}, at_us=1))
        self._run.commit()

    def read(self) -> None:
        digest = self._run.digest("database_query", "read", FIXED, {"id": "o-1"}, None)
        self._run.append(Entry(Kind.RESULT, "look[1]", "database_query", "read", None, digest, {"value": BODY}, 1))

    def flush(self) -> None:
        self._run.commit()

    def whole(self) -> None:
        """An execution with one keyed step: START and INTENT, then RESULT and END."""
        last, self._run = self._run, self._begin()
        self._run.append(self._asked("keyed"))
        self._run.commit()
        self._run.append(Entry(Kind.RESULT, "charge[1]", body={"value": "ch_1"}, at_us=1))
        self._run.append(Entry(Kind.END, body={"kind": "returned", "value": "ch_1"}, at_us=1))
        self._run.commit(Status.ENDED, "returned")
        self._run = last


def microseconds(step: Callable[[], None], calls: int, clock: Callable[[], int]) -> float:
    start = clock()
    for _ in range(calls):
        step()
    return (clock() - start) / calls / 1000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help="where the journals are made; a new one here by default")
    given = parser.parse_args().folder
    is_within = True
    with tempfile.TemporaryDirectory(dir=given if given is not None else Path.cwd(), prefix="journal-floor-") as name:
        for level, calls, rounds, clock in (("NORMAL", 200, 30, thread_time_ns), ("FULL", 10, 40, perf_counter_ns)):
            bench = Bench(Path(name), level)
            steps = {
                "floor": bench.floor, "read": bench.read, "keyed, txn": bench.keyed, "unsafe": bench.unsafe,
                "execution with one step": bench.whole,
            }  # fmt: skip
            best = dict.fromkeys(steps, float("inf"))
            for _ in range(rounds):
                for label, step in steps.items():
                    best[label] = min(best[label], microseconds(step, calls, clock))
                    bench.flush()
            for label, found in best.items():
                print(f"{level:6}  {label:24} {found:8.1f} µs  {found / best['floor']:5.2f} floors")
            is_within = is_within and best["read"] < best["floor"]
            is_within = is_within and best["keyed, txn"] <= BUDGET * best["floor"]
    print("within budget" if is_within else f"over budget: a keyed step {BUDGET} floors, a read 1")
    return 0 if is_within else 1


if __name__ == "__main__":
    sys.exit(main())
