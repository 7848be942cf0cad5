"""`make proof-sleepers`: sleeping runs are woken once each, on time, while the processes that wake them are killed.

One process begins all runs, each sleeps for three days, and the process holds at most 200 MB. Then three days pass: on
SQLite the clock of all processes jumps, on PostgreSQL, whose own clock decides, the due times are moved. Eight
processes wake and finish the runs while they are killed with SIGKILL and replaced, until all have ended. Every run then
has one RESULT of its sleep, not before its time and at most a second after it, and one END.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

from tests.proofs.robustness.proof import PROOFS, STATE, engine_hash, whole_hash, write_json  # noqa: E402
from tests.proofs.waiting.places import Place, Workers, fork, join, prepare, resident_bytes  # noqa: E402
from vesper.host.waiting import RunWaits  # noqa: E402
from vesper.journal.entry import Kind  # noqa: E402
from vesper.journal.journal import Status  # noqa: E402

NAME, NODE = "sleepers", "sleeper_v1"
COUNT, KILLS, PROCESSES, RATE = 100_000, 1_000, 8, 150
SEED = 20_261_118
NAP = timedelta(days=3)
MAX_LATE_SECONDS = 1.0
MAX_RESIDENT_BYTES = 200_000_000
LEAD_SECONDS = 5.0
"""Time between the jump and the first due time, in which the processes start."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def put_sleepers(place: Place, count: int, rate: float, engine: str, report: Path) -> None:
    """Begin all runs in this process; `rate` of them are due in a second."""
    with place.host(is_keeping=False) as host:
        prepared = prepare(host, NODE, engine)
        first = host.moment() + NAP

        def put(number: int) -> None:
            due = first + timedelta(seconds=number / rate)
            try:
                host.run(prepared, {"event_id": str(number), "due": due}, host.moment())
            except RunWaits:
                return
            raise AssertionError("it did not wait")

        with ThreadPoolExecutor(16) as pool:
            for begun, _ in enumerate(pool.map(put, range(count))):
                if begun % 1_000 == 0:
                    progress(f"{place.kind}: {begun:,} of {count:,} sleep")
    first_us = (first - _EPOCH) // timedelta(microseconds=1)
    report.write_text(json.dumps({"first_us": first_us, "resident": resident_bytes()}), encoding="ascii")


def pass_three_days(place: Place, first_us: int, lead: float) -> Place:
    """Return the place at the moment before the first due time."""
    jump_us = first_us - time.time_ns() // 1000 - int(lead * 1_000_000)
    if place.kind == "sqlite":
        return replace(place, offset_us=jump_us)
    import psycopg

    with psycopg.connect(place.dsn) as connection:
        connection.execute("UPDATE vesper_due SET due_us = due_us - %s", (jump_us,))
    return place


def wake_all(place: Place, given: argparse.Namespace, engine: str) -> int:
    """Keep and kill until all runs have ended; return the number of kills."""
    due_at = time.monotonic() + given.lead
    draw = random.Random(given.seed)
    count, kills, processes, rate = given.count, given.kills, given.processes, given.rate
    workers = Workers(place, processes, NODE, engine)
    pause = count / rate / (kills + 1)
    began = time.monotonic()
    try:
        while True:
            if workers.kills >= kills and join(fork(lambda: None if has_ended(place) else os._exit(1))):
                return workers.kills
            assert time.monotonic() - began < 120 + 4 * count / rate, "the runs do not end"
            progress(f"{place.kind}: {workers.kills:,} of {kills:,} kills")
            until = time.monotonic() + 1.0
            while time.monotonic() < until:
                if workers.kills < kills and time.monotonic() >= due_at + workers.kills * pause:
                    workers.kill_one(draw.randrange(processes))
                else:
                    time.sleep(0.01)
    finally:
        workers.stop()


def has_ended(place: Place) -> bool:
    """Return whether all runs have ended; called in a child, because the process that forks must have no threads."""
    journal = place.journal()
    try:
        return not any(journal.find(status=each, limit=1) for each in (Status.WAITING, Status.RUNNING))
    finally:
        journal.close()


def check(place: Place, count: int, report: Path) -> None:
    """Compare every run with the promise."""
    problems: list[str] = []
    late: list[float] = []
    seen: Counter[int] = Counter()
    journal = place.journal()
    for execution in journal.executions():
        recorded = journal.read(execution)
        entries = [each.entry for each in recorded.entries]
        inputs = entries[0].body["inputs"]
        assert isinstance(inputs, dict)
        number = int(inputs["event_id"])
        seen[number] += 1
        results = [each for each in entries if each.kind in (Kind.RESULT, Kind.FAILED)]
        ends = [each for each in entries if each.kind is Kind.END]
        if recorded.summary.status is not Status.ENDED or recorded.summary.outcome != "returned":
            problems.append(f"{number} is {recorded.summary.status} {recorded.summary.outcome}")
        if len(results) != 1 or len(ends) != 1:
            problems.append(f"{number} was woken {len(results)} times and ended {len(ends)} times")
            continue
        due = results[0].body["value"]
        assert isinstance(due, datetime)
        late.append((results[0].at_us - (due - _EPOCH) // timedelta(microseconds=1)) / 1_000_000)
        if len(seen) % 1_000 == 0:
            progress(f"{place.kind}: {len(seen):,} checked")
    journal.close()
    problems += [f"{number} was run {times} times" for number, times in seen.items() if times != 1]
    if len(seen) != count:
        problems.append(f"{len(seen):,} runs, not {count:,}")
    late.sort()
    found = {
        "runs": len(seen),
        "earliest_seconds": round(late[0], 4),
        "median_late_seconds": round(late[len(late) // 2], 4),
        "max_late_seconds": round(late[-1], 4),
        "problems": problems[:20],
    }
    report.write_text(json.dumps(found), encoding="ascii")


def campaign(place: Place, given: argparse.Namespace) -> dict[str, Any]:
    report = place.folder / "report.json"
    place.folder.mkdir(parents=True, exist_ok=True)
    engine = "interp" if place.kind == "sqlite" else "python"
    assert join(fork(lambda: put_sleepers(place, given.count, given.rate, engine, report))), "no runs were begun"
    begun = json.loads(report.read_text(encoding="ascii"))
    later = pass_three_days(place, begun["first_us"], given.lead)
    kills = wake_all(later, given, engine)
    assert join(fork(lambda: check(later, given.count, report))), "the runs cannot be read"
    found: dict[str, Any] = json.loads(report.read_text(encoding="ascii"))
    found = {"kills": kills, "resident_mb": round(begun["resident"] / 1_000_000, 1), **found}
    if begun["resident"] > MAX_RESIDENT_BYTES:
        found["problems"].append(f"{begun['resident']:,} bytes are resident")
    if found["earliest_seconds"] < 0 or (found["max_late_seconds"] > MAX_LATE_SECONDS and not given.any_lateness):
        found["problems"].append("a run was woken early, or more than a second late")
    return found


def progress(text: str) -> None:
    sys.stderr.write(f"\r{text}   ")
    sys.stderr.flush()


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--count", type=int, default=COUNT)
    arguments.add_argument("--kills", type=int, default=KILLS)
    arguments.add_argument("--processes", type=int, default=PROCESSES)
    arguments.add_argument("--rate", type=float, default=RATE, help="runs that are due in a second")
    arguments.add_argument("--lead", type=float, default=LEAD_SECONDS, help="seconds before the first is due")
    arguments.add_argument("--any-lateness", action="store_true", help="for machines that do other work")
    arguments.add_argument("--seed", type=int, default=SEED)
    arguments.add_argument("--store", choices=["sqlite", "postgres", "both"], default="both")
    arguments.add_argument("--folder", type=Path, default=STATE / NAME)
    given = arguments.parse_args()
    shutil.rmtree(given.folder, ignore_errors=True)
    started = time.monotonic()
    stores: dict[str, dict[str, Any]] = {}
    if given.store != "postgres":
        folder = given.folder / "sqlite"
        stores["sqlite"] = campaign(Place("sqlite", f"sqlite:{folder / 'journal.db'}", folder), given)
    if given.store != "sqlite":
        from tests.support.servers import Postgres

        postgres = Postgres(durable=True)
        try:
            place = Place("postgres", postgres.new_database(), given.folder / "postgres")
            stores["postgres"] = campaign(place, given)
        finally:
            postgres.remove()
    report = {
        "source_hash": whole_hash(),
        "engine_hash": engine_hash(),
        "seed": given.seed,
        "processes": given.processes,
        "due_in_a_second": given.rate,
        "stores": stores,
        "elapsed_seconds": round(time.monotonic() - started, 1),
    }
    print(file=sys.stderr)
    print(json.dumps(report, indent=2))
    problems = [problem for each in stores.values() for problem in each["problems"]]
    for problem in problems:
        print(f"PROBLEM: {problem}", file=sys.stderr)
    if not problems and given.count >= COUNT and given.kills >= KILLS and given.store == "both":
        write_json(PROOFS / f"{NAME}.json", report)
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
