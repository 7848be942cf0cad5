"""`make proof-interrupts`: answers race the expiry of interrupts, and exactly one of them wins.

Runs ask a person with times to live from 100 ms to 10 s; keepers in other processes expire them. For two of three,
a person answers within 60 ms of the expiry. Every run then has one RESULT, and the answer was accepted, or one FAILED
`expired`, not before its time and at most 250 ms after it, and an answer was refused.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

from tests.proofs.robustness.proof import PROOFS, STATE, engine_hash, whole_hash, write_json  # noqa: E402
from tests.proofs.waiting.places import Place, Workers, fork, join, prepare  # noqa: E402
from vesper.host.waiting import RunWaits  # noqa: E402
from vesper.host.waiting_runs import InterruptStatus, NotWaiting, answer, interrupts_of  # noqa: E402
from vesper.journal.journal import Journal, Status  # noqa: E402

NAME, NODE = "interrupts", "asker_v1"
COUNT, PROCESSES, RATE = 1_000, 3, 25
SEED = 20_261_119
MIN_TTL_SECONDS, MAX_TTL_SECONDS = 0.1, 10.0
MAX_LATE_SECONDS = 0.25
RACE_SECONDS = 0.06
_THREADS = 64


def ask_and_answer(place: Place, given: argparse.Namespace, report: Path) -> None:
    """Begin all runs, answer two of three near their expiry, and compare what the journal recorded."""
    draw = random.Random(given.seed)
    count, rate, max_ttl = given.count, given.rate, given.max_ttl
    plans = [(draw.uniform(MIN_TTL_SECONDS, max_ttl), draw.uniform(-RACE_SECONDS, RACE_SECONDS)) for _ in range(count)]
    host = place.host(is_keeping=False)
    prepared = prepare(host, NODE, "python")
    began = time.monotonic()

    def ask(number: int) -> tuple[str, int, bool | None]:
        """Return the run, its expiry, and whether its answer was accepted; None without an answer."""
        ttl, shift = plans[number]
        time.sleep(max(0.0, began + number / rate - time.monotonic()))
        try:
            host.run(prepared, {"event_id": str(number), "ttl": timedelta(seconds=ttl)}, host.moment())
        except RunWaits as waits:
            due_us = waits.due_us or 0
            if number % 3 == 0:
                return waits.execution, due_us, None
            time.sleep(max(0.0, due_us / 1_000_000 + shift - time.time()))
            try:
                answer(host.journal, waits.execution, {"approved": number % 2 == 0}, "proof")
            except NotWaiting:
                return waits.execution, due_us, False
            return waits.execution, due_us, True
        raise AssertionError("it did not wait")

    with ThreadPoolExecutor(_THREADS) as pool:
        asked = list(pool.map(ask, range(count)))
    until = time.monotonic() + max_ttl + 60
    while any(host.journal.find(status=each, limit=1) for each in (Status.WAITING, Status.RUNNING)):
        assert time.monotonic() < until, "the runs do not end"
        time.sleep(0.1)
    report.write_text(json.dumps(_compare(host.journal, asked, given.any_lateness)), encoding="ascii")
    host.close()


def _compare(journal: Journal, asked: list[tuple[str, int, bool | None]], any_lateness: bool) -> dict[str, Any]:
    problems: list[str] = []
    late: list[float] = []
    won = 0
    for execution, due_us, is_accepted in asked:
        (found,) = interrupts_of(journal, journal.read(execution))
        assert found.ended_us is not None
        if found.status is InterruptStatus.RESOLVED:
            won += 1
            if not is_accepted or found.by != "proof":
                problems.append(f"{execution} has an answer that was refused")
        else:
            late.append((found.ended_us - due_us) / 1_000_000)
            if is_accepted:
                problems.append(f"{execution} expired, and its answer was accepted")
    late.sort()
    if late[0] < 0 or (late[-1] > MAX_LATE_SECONDS and not any_lateness):
        problems.append("an interrupt expired early, or more than 250 ms late")
    return {
        "interrupts": len(asked),
        "answers_that_won": won,
        "answers_that_lost": sum(each[2] is False for each in asked),
        "earliest_seconds": round(late[0], 4),
        "median_late_seconds": round(late[len(late) // 2], 4),
        "max_late_seconds": round(late[-1], 4),
        "problems": problems[:20],
    }


def campaign(place: Place, given: argparse.Namespace) -> dict[str, Any]:
    report = place.folder / "report.json"
    place.folder.mkdir(parents=True, exist_ok=True)
    workers = Workers(place, given.processes, NODE, "python")
    try:
        assert join(fork(lambda: ask_and_answer(place, given, report))), "the campaign broke"
    finally:
        workers.stop()
    found: dict[str, Any] = json.loads(report.read_text(encoding="ascii"))
    return found


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--count", type=int, default=COUNT)
    arguments.add_argument("--processes", type=int, default=PROCESSES)
    arguments.add_argument("--rate", type=float, default=RATE, help="runs that begin in a second")
    arguments.add_argument("--max-ttl", type=float, default=MAX_TTL_SECONDS)
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
            stores["postgres"] = campaign(Place("postgres", postgres.new_database(), given.folder / "postgres"), given)
        finally:
            postgres.remove()
    report = {
        "source_hash": whole_hash(),
        "engine_hash": engine_hash(),
        "seed": given.seed,
        "stores": stores,
        "elapsed_seconds": round(time.monotonic() - started, 1),
    }
    print(json.dumps(report, indent=2))
    problems = [problem for each in stores.values() for problem in each["problems"]]
    for problem in problems:
        print(f"PROBLEM: {problem}", file=sys.stderr)
    if not problems and given.count >= COUNT and given.store == "both":
        write_json(PROOFS / f"{NAME}.json", report)
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
