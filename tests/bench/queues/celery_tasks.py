"""The task on Celery with Redis as broker and store of results; `worker` as the second argument runs the queue."""

from __future__ import annotations

import sys
import time

import redis
from celery import Celery
from celery.signals import worker_ready

from tests.bench.queues.contestant import serve

app = Celery("bench", broker=sys.argv[1], backend=sys.argv[1])
app.conf.update(result_expires=3600, worker_redirect_stdouts=False, broker_connection_retry_on_startup=True)


@app.task(name="stamp")
def stamp(number: int) -> float:
    return time.time()


@worker_ready.connect
def say_ready(**_: object) -> None:
    print("ready", flush=True)


class CeleryProducer:
    def __init__(self, url: str) -> None:
        self._redis = redis.Redis.from_url(url)

    def enqueue(self, number: int) -> None:
        stamp.delay(number)

    def done(self) -> int:
        # The only other keys of the database are those of the broker, a few.
        return int(self._redis.dbsize())

    def close(self) -> None:
        self._redis.close()


if __name__ == "__main__":
    if sys.argv[2:] == ["worker"]:
        app.worker_main(["worker", "--loglevel=ERROR", "--without-gossip", "--without-mingle", "--without-heartbeat"])
    else:
        serve(CeleryProducer)
