"""What the journal costs over the least that anything durable costs: `python tests/bench/journal_floor.py [FOLDER]`.

The floor is a function call, `json.dumps` of a small request, and its INSERT into a SQLite table that commits at the
same level of syncing. A step of each class is measured in turns with it. On the clock it is the mean, in which the log
is moved into the file now and then; of the processor it is the best round, which says what our code adds.

Of `keyed`, `probe` and `txn` steps RESULT(n) and INTENT(n+1) share a commit; an `unsafe` one commits twice; a `read` is
only appended, and goes with the next commit. FOLDER is on the disk that is measured.
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
"""Of a step that writes, which is synced, in floors on the clock; a read has to stay under one of the processor."""


class Bench:
    def __init__(self, folder: Path, level: str) -> None:
        self._level = level
        self._floor = sqlite3.connect(folder / f"floor-{level}.db", isolation_level=None)
        self._floor.execute("PRAGMA journal_mode = WAL")
        self._floor.execute(f"PRAGMA synchronous = {level}")
        self._floor.execute("CREATE TABLE floor (id INTEGER PRIMARY KEY, body TEXT)")
        self._journal: Journal = open_journal(f"sqlite:{folder / f'journal-{level}.db'}")
        # Executions that end go into a journal of their own: a run is next to those that began when it did.
        self._ended: Journal = open_journal(f"sqlite:{folder / f'ended-{level}.db'}")
        self._begun = 0
        self._run: Run = self._begin(self._journal)
        self._run.commit()

    def _begin(self, journal: Journal) -> Run:
        self._begun += 1
        definition = Definition("ab" * 32, "bench", "bench.vsp", "id: bench\n" * 50, b"{}" * 500)
        beginning = Beginning(
            f"run-{self._begun}", definition, BODY, datetime.now(UTC), "interp", writes=self._level == "FULL"
        )
        return journal.begin(beginning)

    def floor(self) -> None:
        self._floor.execute("INSERT INTO floor (body) VALUES (?)", (json.dumps(PLAIN),))

    def _ask(self, effect_class: str) -> None:
        body = {"fixed": FIXED, "arguments": BODY}
        self._run.intend(Entry(Kind.INTENT, "charge[2]", "external_api_call", effect_class, "key-1", "", body, 1))

    def keyed(self) -> None:
        """The digest of the request is part of it; a `txn` step writes the same."""
        self._run.append(Entry(Kind.RESULT, "charge[1]", body={"value": "ch_1"}, at_us=1))
        self._ask("keyed")
        self._run.commit()

    def unsafe(self) -> None:
        self._ask("unsafe")
        self._run.commit()
        self._run.append(Entry(Kind.RESULT, "charge[2]", body={"value": "ch_1"}, at_us=1))
        self._run.commit()

    def read(self) -> None:
        body = {"fixed": FIXED, "arguments": {"id": "o-1"}, "value": BODY}
        self._run.append(Entry(Kind.RESULT, "look[1]", "database_query", "read", None, "", body, 1))

    def flush(self) -> None:
        self._run.commit()

    def whole(self) -> None:
        """An execution with one keyed step: START and INTENT, then RESULT and END."""
        last, self._run = self._run, self._begin(self._ended)
        self._ask("keyed")
        self._run.commit()
        self._run.append(Entry(Kind.RESULT, "charge[1]", body={"value": "ch_1"}, at_us=1))
        self._run.append(Entry(Kind.END, body={"kind": "returned", "value": "ch_1"}, at_us=1))
        self._run.commit(Status.ENDED, "returned")
        self._run = last


class Timer:
    """Adds up what a step took: on the clock in all, of the processor in its best round."""

    def __init__(self, step: Callable[[], None]) -> None:
        self._step = step
        self._calls = 0
        self._wall = 0
        self.best = float("inf")

    def round(self, calls: int) -> None:
        wall, processor = perf_counter_ns(), thread_time_ns()
        for _ in range(calls):
            self._step()
        self.best = min(self.best, (thread_time_ns() - processor) / calls / 1000)
        self._wall += perf_counter_ns() - wall
        self._calls += calls

    @property
    def mean(self) -> float:
        return self._wall / self._calls / 1000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help="where the journals are made; a new one here by default")
    given = parser.parse_args().folder
    is_within = True
    print("level   step                       on the clock           of the processor")
    with tempfile.TemporaryDirectory(dir=given if given is not None else Path.cwd(), prefix="journal-floor-") as name:
        for level, calls, rounds in (("NORMAL", 200, 60), ("FULL", 10, 30)):
            bench = Bench(Path(name), level)
            timers = {
                "floor": Timer(bench.floor), "read": Timer(bench.read), "keyed, txn": Timer(bench.keyed),
                "unsafe": Timer(bench.unsafe), "execution with one step": Timer(bench.whole),
            }  # fmt: skip
            for _ in range(rounds):
                for timer in timers.values():
                    timer.round(calls)
                    bench.flush()
            floor = timers["floor"]
            for label, timer in timers.items():
                clock = f"{timer.mean:8.1f} µs {timer.mean / floor.mean:5.2f} floors"
                print(f"{level:6}  {label:24} {clock}   {timer.best:6.1f} µs {timer.best / floor.best:5.2f} floors")
            if level == "NORMAL":
                is_within = is_within and timers["read"].best < floor.best
            else:
                is_within = is_within and timers["keyed, txn"].mean <= BUDGET * floor.mean
    print("within budget" if is_within else f"over budget: a synced keyed step {BUDGET} floors, a read 1")
    return 0 if is_within else 1


if __name__ == "__main__":
    sys.exit(main())
