"""A contestant of `make bench-queue`: enqueues tasks in threads of one process; its workers are another process.

A line "N CALLERS" on standard input enqueues N tasks and waits until all have ended; the answer is JSON.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

POLL_SECONDS = 0.02


class Producer(Protocol):
    def enqueue(self, number: int) -> None: ...

    def done(self) -> int:
        """Return the number of tasks that have ended since the producer was made."""
        ...

    def close(self) -> None: ...


def serve(make: Callable[[str], Producer]) -> None:
    """Answer the lines of standard input; `sys.argv[1]` is the address of the store."""
    producer = make(sys.argv[1])
    total = 0
    try:
        for line in sys.stdin:
            count, callers = map(int, line.split())
            began, spent = time.monotonic(), time.process_time()
            with ThreadPoolExecutor(callers) as pool:
                list(pool.map(producer.enqueue, range(total, total + count)))
            enqueued = time.monotonic() - began
            total += count
            while producer.done() < total:
                time.sleep(POLL_SECONDS)
            seconds = time.monotonic() - began
            answer = {"seconds": seconds, "enqueue_seconds": enqueued, "processor": time.process_time() - spent}
            print(json.dumps(answer), flush=True)
    finally:
        producer.close()
