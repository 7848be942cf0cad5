"""The processes of `make proof-bus`: publishers and subscribers over gRPC, each of which can be killed at any moment.

`python -m tests.proofs.bus.actors ROLE ADDRESS FILE SETTINGS`, settings as JSON. A subscriber appends a record to its
file for each message as soon as it has it; publishers one for each message that was acknowledged to them.
"""

from __future__ import annotations

import asyncio
import json
import os
import queue
import random
import struct
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import NamedTuple

from vesper.kernel import AsyncClient, Client, KernelError, v1

TOPICS = 10
_FORMAT = struct.Struct("<IIIB")
_PUBLISH_SECONDS = 600.0
"""Publishers wait for full queues: one that gives up would not know what became of its message."""


class Record(NamedTuple):
    """A message; `stream` counts the subscriptions of its process."""

    sender: int
    number: int
    stream: int
    delivery: int


@dataclass(frozen=True, slots=True)
class Settings:
    """What a process does; each role reads its own part."""

    publishers: tuple[int, int] = (0, 0)
    """From the first to before the last."""
    messages: tuple[int, int] = (0, 0)
    payload: int = 100
    pause_every: int = 1
    """Messages between two pauses of a subscriber."""
    pause_seconds: float = 0.0
    """How long nothing may move for a pause to end; of a worker, what a message takes."""
    seed: int = 0

    def text(self) -> str:
        return json.dumps(asdict(self))


def write(file: int, record: Record) -> None:
    """Append a record, which outlives the process."""
    os.write(file, _FORMAT.pack(*record))


def records_of(path: Path) -> Iterator[Record]:
    """Read the records of a process. A kill may cut the last one, which was not acknowledged."""
    data = path.read_bytes() if path.exists() else b""
    whole = len(data) - len(data) % _FORMAT.size
    for fields in _FORMAT.iter_unpack(data[:whole]):
        yield Record(*fields)


def records_in(path: Path) -> int:
    return path.stat().st_size // _FORMAT.size if path.exists() else 0


def record_of(message: v1.Message, stream: int) -> Record:
    return Record(int(message.sender), int(message.headers["number"]), stream, message.delivery)


async def publish(address: str, file: int, settings: Settings) -> None:
    """Publish the messages of all publishers, each of which waits for its last message before it sends the next."""
    payload = bytes(settings.payload)

    async def send(client: AsyncClient, sender: int) -> None:
        for number in range(*settings.messages):
            request = v1.PublishRequest(
                topic=f"orders.{sender % TOPICS}", sender=str(sender), payload=payload, headers={"number": str(number)}
            )
            await client.publish(request, timeout=_PUBLISH_SECONDS)
            write(file, Record(sender, number, 0, 0))

    async with AsyncClient(address) as client:
        await asyncio.gather(*(send(client, sender) for sender in range(*settings.publishers)))


def read_all(address: str, file: int, settings: Settings) -> None:
    """Receive everything in one stream, with pauses: a slow one where they are long."""
    with Client(address) as client:
        for handled, message in enumerate(client.subscribe(v1.SubscribeRequest(topics=["orders.*"], max_in_flight=64))):
            write(file, record_of(message, 0))
            if (handled + 1) % settings.pause_every == 0:
                wait_until_still(client, settings.pause_seconds)


def wait_until_still(client: Client, seconds: float) -> None:
    """Wait until nothing moves: the queue of this reader is full, and all publishers wait for room in it."""
    before = -1
    while (queued := client.get_system_status(v1.GetSystemStatusRequest()).bus.queued) != before:
        before = queued
        time.sleep(seconds)


def read_pieces(address: str, file: int, settings: Settings) -> None:
    """Receive some messages, drop the stream in the middle of them, and subscribe again."""
    draws = random.Random(settings.seed)
    with Client(address) as client:
        for stream in count():
            messages = client.subscribe(v1.SubscribeRequest(topics=["orders.*"], max_in_flight=256))
            for _ in range(draws.randint(1, 4 * settings.pause_every)):
                write(file, record_of(next(messages), stream))
            messages.cancel()


def work(address: str, file: int, settings: Settings) -> None:
    """Handle messages of a group: note them, then acknowledge, until this process is killed.

    A thread acknowledges what was handled during its last call, together.
    """
    request = v1.SubscribeRequest(topics=["orders.*"], group="workers", acknowledges=True, max_in_flight=64)
    handled: queue.SimpleQueue[v1.Message] = queue.SimpleQueue()
    with Client(address) as client:
        threading.Thread(target=acknowledge, args=(client, handled), daemon=True).start()
        for message in client.subscribe(request):
            write(file, record_of(message, 0))
            time.sleep(settings.pause_seconds)
            handled.put(message)


def acknowledge(client: Client, handled: queue.SimpleQueue[v1.Message]) -> None:
    while True:
        messages = [handled.get()]
        messages += [handled.get() for _ in range(handled.qsize())]
        done = [each.message_id for each in messages]
        client.acknowledge(v1.AcknowledgeRequest(subscription_id=messages[0].subscription_id, message_ids=done))


ROLES = {"read_all": read_all, "read_pieces": read_pieces, "work": work}


def main() -> int:
    role, address, path, given = sys.argv[1:]
    raw = json.loads(given)
    settings = Settings(**{**raw, "publishers": tuple(raw["publishers"]), "messages": tuple(raw["messages"])})
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        if role == "publish":
            asyncio.run(publish(address, file, settings))
        else:
            ROLES[role](address, file, settings)
    except KernelError as problem:
        print(f"{role}: {problem.code}: {problem.message}", file=sys.stderr)
        return 1
    finally:
        os.close(file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
