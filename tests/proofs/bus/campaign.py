"""`make proof-bus`: 1,000 publishers send 1,000 messages each through the bus of one kernel, over gRPC.

Every message goes to four kinds of subscribers, processes of their own:

- a reader of everything; and a slow one, which pauses until its queue is full and all publishers wait for it;
- one that drops its stream in the middle of messages and subscribes again, over and over;
- a group of three workers that acknowledge, killed with SIGKILL at random moments and started again.

What was acknowledged to a publisher is delivered: once to each reader, at least once to the group, and again only where
a worker died with it. Each stream has the messages of a sender in their order, and a stream that was dropped lacks none
between its first and its last. The kernel's resident memory stays below a limit.

It is resumable: finished parts, of 50 messages of each publisher, are kept in `.proofs/bus`.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

from tests.proofs.bus.actors import Record, Settings, records_in, records_of  # noqa: E402  # after the path is set
from tests.proofs.robustness.proof import PROOFS, STATE, engine_hash, write_json  # noqa: E402
from vesper.kernel import Kernel, v1  # noqa: E402

NAME = "bus"
SEED = 20_261_119
MAX_RSS_MIB = 256
_WORKERS = 3
_MAX_QUEUED = 4_096
_MAX_QUEUED_BYTES = 16 << 20
_SENDING_PROCESSES = 2
_SILENCE_SECONDS = 120.0
"""A campaign in which nothing arrives for so long has lost messages."""
SUBSCRIBERS = ("steady", "slow", "dropping")


class Actor:
    """A process of `tests.proofs.bus.actors`."""

    def __init__(self, role: str, address: str, path: Path, settings: Settings) -> None:
        self.path = path
        command = [sys.executable, "-m", "tests.proofs.bus.actors", role, address, str(path), settings.text()]
        self.process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@dataclass
class Part:
    """Some messages of every publisher, and the processes that handle them."""

    kernel: Kernel
    folder: Path
    given: argparse.Namespace
    first: int
    last: int
    kills: int = 0
    most_queued: int = 0

    @property
    def total(self) -> int:
        return int(self.given.publishers) * (self.last - self.first)

    def settings(self, **more: Any) -> Settings:
        return Settings(messages=(self.first, self.last), payload=self.given.payload, seed=self.first, **more)

    def path(self, name: str) -> Path:
        return self.folder / name

    def run(self) -> dict[str, int]:
        """Send and receive everything under kills; return what became of it."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        draws = random.Random(self.given.seed + self.first)
        pause = max(1, self.total // 3)
        with ExitStack() as stack:
            self._start(stack, "steady", "read_all", self.settings(pause_every=self.total + 1))
            self._start(stack, "slow", "read_all", self.settings(pause_every=pause, pause_seconds=self.given.pause))
            self._start(stack, "dropping", "read_pieces", self.settings(pause_every=max(1, self.total // 100)))
            workers = [self._worker(stack) for _ in range(_WORKERS)]
            self._wait_subscribed(len(SUBSCRIBERS) + _WORKERS)
            senders = self._senders(stack)
            progress, moved = -1, time.monotonic()
            while not self._is_complete(senders):
                done = self._handled()
                if self.kills < self.given.kills and done > self.total * (self.kills + draws.random()) / (
                    self.given.kills + 1
                ):
                    number = draws.randrange(_WORKERS)
                    workers[number].kill()
                    self.kills += 1
                    workers[number] = self._worker(stack)
                seen = sum(records_in(path) for path in self.folder.iterdir())
                if seen != progress:
                    progress, moved = seen, time.monotonic()
                elif time.monotonic() - moved > _SILENCE_SECONDS:
                    break  # what is missing is judged as lost
                sys.stderr.write(f"\rmessages {self.first}-{self.last}: {done} of {self.total}, {self.kills} kills   ")
                time.sleep(0.05)
        found = judge(
            records_of(self.path("sent")),
            {name: list(records_of(self.path(name))) for name in SUBSCRIBERS},
            [list(records_of(path)) for path in sorted(self.folder.glob("worker-*"))],
        )
        expected = self.total - found["acknowledged"]
        return {**found, "unacknowledged": expected, "kills": self.kills}

    def _start(self, stack: ExitStack, name: str, role: str, settings: Settings) -> Actor:
        return stack.enter_context(Actor(role, self.kernel.address, self.path(name), settings))

    def _worker(self, stack: ExitStack) -> Actor:
        number = len(list(self.folder.glob("worker-*")))
        self.path(f"worker-{number:04}").touch()
        return self._start(stack, f"worker-{number:04}", "work", self.settings(pause_seconds=self.given.work))

    def _wait_subscribed(self, count: int) -> None:
        until = time.monotonic() + 60
        while self._bus().subscribers < count:
            if time.monotonic() > until:
                raise RuntimeError("the subscribers do not subscribe")
            time.sleep(0.05)

    def _senders(self, stack: ExitStack) -> list[Actor]:
        edges = [self.given.publishers * place // _SENDING_PROCESSES for place in range(_SENDING_PROCESSES + 1)]
        return [
            self._start(stack, "sent", "publish", self.settings(publishers=(edges[place], edges[place + 1])))
            for place in range(_SENDING_PROCESSES)
        ]

    def _bus(self) -> v1.BusStatus:
        return self.kernel.client.get_system_status(v1.GetSystemStatusRequest()).bus

    def _handled(self) -> int:
        return sum(records_in(path) for path in self.folder.glob("worker-*"))

    def _is_complete(self, senders: Sequence[Actor]) -> bool:
        if any(each.process.poll() is None for each in senders):
            self.most_queued = max(self.most_queued, self._bus().queued)
            return False
        sent = records_in(self.path("sent"))
        is_read = all(records_in(self.path(name)) >= sent for name in ("steady", "slow"))
        return is_read and self.kills >= self.given.kills and self._handled() >= sent and self._bus().queued == 0


def judge(sent: Iterable[Record], read: dict[str, list[Record]], workers: Sequence[Sequence[Record]]) -> dict[str, int]:
    """Count what was lost, doubled and misordered."""
    acknowledged = {(each.sender, each.number) for each in sent}
    lost = doubled = misordered = gaps = 0
    for name in ("steady", "slow"):
        seen = Counter((each.sender, each.number) for each in read[name])
        lost += len(acknowledged - seen.keys())
        doubled += sum(times - 1 for times in seen.values())
        misordered += _misordered(read[name])
    dropping = read["dropping"]
    streams = {each.stream for each in dropping}
    for stream in streams:
        numbers: dict[int, list[int]] = defaultdict(list)
        for each in dropping:
            if each.stream == stream:
                numbers[each.sender].append(each.number)
        for sequence in numbers.values():
            gaps += max(sequence) - min(sequence) + 1 - len(set(sequence))
            doubled += len(sequence) - len(set(sequence))
            misordered += sum(1 for a, b in pairwise(sequence) if b < a)
    handled = Counter((each.sender, each.number) for each in (record for worker in workers for record in worker))
    redelivered = {(each.sender, each.number) for worker in workers for each in worker if each.delivery > 1}
    lost += len(acknowledged - handled.keys())
    # A second handling has a worker that died with the message, and says so.
    doubled += sum(1 for message, times in handled.items() if times > 1 and message not in redelivered)
    misordered += sum(_misordered([each for each in worker if each.delivery == 1]) for worker in workers)
    return {
        "acknowledged": len(acknowledged),
        "lost": lost,
        "doubled": doubled,
        "misordered": misordered,
        "gaps": gaps,
        "redelivered": len(redelivered),
        "dropped_streams": max(0, len(streams) - 1),
    }


def _misordered(records: Iterable[Record]) -> int:
    last: dict[int, int] = {}
    found = 0
    for each in records:
        found += each.number < last.get(each.sender, -1)
        last[each.sender] = each.number
    return found


def most_rss_mib(pid: int) -> float:
    """Return the most resident memory that a process has had."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def run(given: argparse.Namespace) -> dict[str, Any]:
    """Run the parts that are missing, in one kernel."""
    state, keys = given.folder / "state.json", ("publishers", "messages", "payload", "seed", "kills")
    head = {**{name: getattr(given, name) for name in keys}, "engine": engine_hash()}
    known = read_state(state, head)
    firsts = range(0, given.messages, given.part)
    with Kernel(store="memory") as kernel:
        for first in firsts:
            if str(first) in known["parts"]:
                continue
            part = Part(kernel, given.folder / "part", given, first, min(first + given.part, given.messages))
            began = time.monotonic()
            known["parts"][str(first)] = {**part.run(), "seconds": round(time.monotonic() - began, 1)}
            known["most_queued"] = max(known["most_queued"], part.most_queued)
            known["rss_mib"] = max(known["rss_mib"], round(most_rss_mib(kernel.pid), 1))
            write_json(state, known)
            sys.stderr.write(f"\rpart {len(known['parts'])} of {len(firsts)} done{' ' * 40}\n")
    total: Counter[str] = Counter()
    for each in known["parts"].values():
        total.update(each)
    peaks = {name: known[name] for name in ("most_queued", "rss_mib")}
    return {**head, **total, "seconds": round(total["seconds"], 1), **peaks}


def read_state(path: Path, head: dict[str, Any]) -> dict[str, Any]:
    """Return the finished parts of the same campaign."""
    known: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if all(known.get(name) == value for name, value in head.items()):
        return known
    return {**head, "parts": {}, "most_queued": 0, "rss_mib": 0.0}


def full_queue(messages: int, payload: int) -> int:
    """Return how many messages a full queue has; 0 where a part has too few to fill that of the slow reader."""
    full = min(_MAX_QUEUED, _MAX_QUEUED_BYTES // (payload + 500))
    return full if messages - messages // 3 > full + 1_000 else 0


def problems_of(found: dict[str, Any], min_queued: int) -> list[str]:
    """Return what must not be."""
    none = ("lost", "doubled", "misordered", "gaps", "unacknowledged")
    problems = [f"{name}: {found[name]}" for name in none if found[name]]
    if found["rss_mib"] > MAX_RSS_MIB:
        problems.append(f"the kernel had {found['rss_mib']} MiB, the limit is {MAX_RSS_MIB}")
    if found["most_queued"] < min_queued:
        problems.append(f"at most {found['most_queued']} messages were queued, not {min_queued}: no queue was full")
    if not found["redelivered"] or not found["dropped_streams"]:
        problems.append("nothing was redelivered, or no stream dropped: the campaign shows nothing")
    return problems


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--publishers", type=int, default=1_000)
    parser.add_argument("--messages", type=int, default=1_000, help="of each publisher")
    parser.add_argument("--part", type=int, default=50, help="messages of each publisher in a part")
    parser.add_argument("--kills", type=int, default=10, help="of workers in a part")
    parser.add_argument("--payload", type=int, default=200, help="bytes of a message")
    parser.add_argument("--pause", type=float, default=0.5, help="stillness that ends a pause, in seconds")
    parser.add_argument("--work", type=float, default=0.0, help="seconds that a worker takes for a message")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--folder", type=Path, default=STATE / NAME)
    parser.add_argument("--no-write", action="store_true", help="write no docs/proofs/bus.json")
    given = parser.parse_args(arguments)
    given.folder = given.folder.resolve()
    given.folder.mkdir(parents=True, exist_ok=True)
    found = run(given)
    print(found)
    problems = problems_of(found, full_queue(given.publishers * given.part, given.payload))
    for each in problems:
        print(f"error: {each}", file=sys.stderr)
    if not problems:
        if not given.no_write:
            write_json(PROOFS / f"{NAME}.json", {**found, "rss_limit_mib": MAX_RSS_MIB})
        shutil.rmtree(given.folder, ignore_errors=True)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
