"""The task on DBOS: a workflow with one step, enqueued by a client; `worker` as the second argument runs the queue."""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

import psycopg
from dbos import DBOS, DBOSClient

from tests.bench.queues.contestant import serve

QUEUE = "bench"
POLLING_SECONDS = 0.01


@DBOS.step()
def read_clock() -> float:
    return time.time()


@DBOS.workflow(name="stamp")
def stamp(number: int) -> float:
    return float(read_clock())


class DbosProducer:
    def __init__(self, url: str) -> None:
        self._client = DBOSClient(system_database_url=url)
        self._connection = psycopg.connect(url, autocommit=True)

    def enqueue(self, number: int) -> None:
        self._client.enqueue({"workflow_name": "stamp", "queue_name": QUEUE}, number)

    def done(self) -> int:
        sql = "SELECT count(*) FROM dbos.workflow_status WHERE status = 'SUCCESS'"
        found = self._connection.execute(sql).fetchone()
        return 0 if found is None else int(found[0])

    def close(self) -> None:
        self._client.destroy()
        self._connection.close()


def work(url: str) -> None:
    """Run the queue until standard input ends."""
    config: Any = {"name": "bench", "system_database_url": url, "log_level": "ERROR", "console_log_level": "ERROR"}
    DBOS(config=config)
    DBOS.launch()
    DBOS.register_queue(QUEUE, polling_interval_sec=POLLING_SECONDS)
    print("ready", flush=True)
    sys.stdin.read()
    threading.Timer(5, lambda: sys.exit(0)).start()
    DBOS.destroy()


if __name__ == "__main__":
    if sys.argv[2:] == ["worker"]:
        work(sys.argv[1])
    else:
        serve(DbosProducer)
