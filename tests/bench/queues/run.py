"""What a queued task costs: `make bench-queue`, or `python -m tests.bench.queues.run [--quick]`.

A task reads the clock. One process enqueues tasks in threads, one process runs them; the time is that from the first
enqueue until all have ended. Vesper and DBOS keep them in the same PostgreSQL server, which syncs every commit; Celery
keeps them in Redis, as it does by default: without syncing. Each runs alone, and counts with its best round.
The last line is JSON:

    enqueue_to_done_vs_dbos   tasks a second of Vesper, in those of DBOS; at least 5
    vs_celery                 the same, in those of Celery; at least 1
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Self

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

from tests.support.servers import Postgres, Redis  # noqa: E402

TASKS, CALLERS, ROUNDS, WARM = 3_000, 8, 3, 300
BARS = {"enqueue_to_done_vs_dbos": 5.0, "vs_celery": 1.0}


class Contestant:
    """A producer and a worker, each a process."""

    def __init__(self, name: str, address: str) -> None:
        self._name = name
        command = [sys.executable, "-m", f"tests.bench.queues.{name}_tasks", address]
        self._worker = self._start([*command, "worker"])
        assert self._worker.stdout is not None
        if not any(line.strip() == "ready" for line in self._worker.stdout):
            raise RuntimeError(f"the worker of {name} did not start")
        self._producer = self._start(command)

    def _start(self, command: list[str]) -> subprocess.Popen[str]:
        return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, tasks: int) -> float:
        """Return the tasks a second."""
        assert self._producer.stdin is not None
        assert self._producer.stdout is not None
        self._producer.stdin.write(f"{tasks} {CALLERS}\n")
        self._producer.stdin.flush()
        line = self._producer.stdout.readline()
        if not line:
            raise RuntimeError(f"the producer of {self._name} ended with {self._producer.wait()}")
        return tasks / float(json.loads(line)["seconds"])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for each in (self._producer, self._worker):
            assert each.stdin is not None
            each.stdin.close()
        for each in (self._producer, self._worker):
            try:
                each.wait(10)
            except subprocess.TimeoutExpired:
                each.terminate()
                each.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the tasks, one round")
    given = parser.parse_args()
    tasks, rounds = (TASKS // 10, 1) if given.quick else (TASKS, ROUNDS)
    with ExitStack() as stack:
        postgres, redis = Postgres(durable=True), Redis()
        stack.callback(postgres.remove)
        stack.callback(redis.remove)
        addresses = {"vesper": postgres.new_database(), "dbos": postgres.new_database(), "celery": redis.url}
        best = dict.fromkeys(addresses, 0.0)
        for name, address in addresses.items():
            with Contestant(name, address) as contestant:
                contestant.run(WARM)
                for _ in range(rounds):
                    best[name] = max(best[name], contestant.run(tasks))
                print(f"{name:8} {best[name]:8.0f} tasks a second", flush=True)
    ratios = {
        "enqueue_to_done_vs_dbos": round(best["vesper"] / best["dbos"], 2),
        "vs_celery": round(best["vesper"] / best["celery"], 2),
    }
    print(json.dumps(ratios))
    return 0 if all(ratios[name] >= bar for name, bar in BARS.items()) else 1


if __name__ == "__main__":
    sys.exit(main())
