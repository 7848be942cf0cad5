"""`make proof-queues`: limits of keys, and failed runs that are retried in bulk, while processes are killed.

Eight processes of eight threads run the queues of one journal, on SQLite and on PostgreSQL.

- `rate`: each key starts within 1 % of its rate, and never above it by more.
- `concurrency`: each key runs as many as its limit at the same time, and never more.
- `retries`: runs that failed are retried by `vesper journal retry --rate`, which is killed and called again, like the
  workers; each ends once more, and no effect of a run is lost. The rate of the retries is within 1 %.

A worker writes a line to a file when it begins an effect and when it ends one; the campaign writes one for each kill.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

import vesper  # noqa: E402
from tests.proofs.queues.queued_node import host_in, load  # noqa: E402
from tests.proofs.robustness.proof import PROOFS, STATE, engine_hash, whole_hash, write_json  # noqa: E402
from tests.proofs.waiting.places import fork, join  # noqa: E402
from tests.support.servers import Postgres  # noqa: E402
from vesper.effects.performer import EffectFailed  # noqa: E402
from vesper.host.host import Host  # noqa: E402
from vesper.journal.journal import Status, open_journal  # noqa: E402
from vesper.queues.workers import QueueWorkers  # noqa: E402

NAME = "queues"
PROCESSES, THREADS, KEYS = 8, 8, 8
SEED = 20_261_118
TOLERANCE = 0.01
RATE_PER_KEY, CONCURRENCY = 10, 3
RETRY_RATE = 200


@dataclass(frozen=True)
class Place:
    """A journal, and the file of the begins and ends of effects."""

    kind: str
    dsn: str
    folder: Path

    @property
    def log(self) -> Path:
        return self.folder / "effects.log"

    def host(self, act: Callable[[str, str], str], threads: int = THREADS) -> Host:
        queues = {"proof": {"threads": threads, "poll": "50ms"}}
        return host_in(self.folder, act, self.dsn, queues=queues, journal={"dsn": self.dsn, "lease": "30s"})

    def write(self, *words: object) -> None:
        line = " ".join(map(str, (*words, f"{time.time():.6f}"))) + "\n"
        handle = os.open(self.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(handle, line.encode())
        os.close(handle)

    def lines(self) -> list[tuple[str, int, str, str, float]]:
        """Return kind, process, key, event and time of each line."""
        if not self.log.exists():
            return []
        found = (line.split() for line in self.log.read_text(encoding="ascii").splitlines())
        return [(kind, int(pid), key, event, float(at)) for kind, pid, key, event, at in found]


@dataclass(frozen=True)
class Stage:
    """Runs of one kind."""

    queue: str
    seconds: float
    """Time that an effect takes."""
    is_failing: bool = False

    def act(self, place: Place) -> Callable[[str, str], str]:
        def act(event: str, merchant: str) -> str:
            place.write("begin", os.getpid(), merchant, event)
            if self.is_failing:
                raise EffectFailed("effect_failed", "planned", may_have_happened=False)
            time.sleep(self.seconds)
            place.write("end", os.getpid(), merchant, event)
            return event

        return act


RATE = Stage(f"{{name: proof, by: merchant, rate: {{limit: {RATE_PER_KEY}, per: 1s}}}}", 0.005)
CONCURRENT = Stage(f"{{name: proof, by: merchant, concurrency: {CONCURRENCY}}}", 0.05)
FAILING = Stage("{name: proof}", 0.0, is_failing=True)
RETRIED = Stage("{name: proof}", 0.0)


def put(place: Place, stage: Stage, count: int, keys: int) -> None:
    """Enqueue runs in this process."""
    with place.host(stage.act(place)) as host:
        node = load(place.folder, host, stage.queue)
        for number in range(count):
            node.enqueue({"event_id": f"e{number}", "merchant": f"k{number % keys}"})


def work(place: Place, stage: Stage) -> None:
    """Run the queue until this process is killed."""
    host = place.host(stage.act(place))
    node: vesper.Node = load(place.folder, host, stage.queue)
    QueueWorkers(host, [node]).start()
    while True:
        time.sleep(60)


class Workers:
    """Processes that run a queue, killed and replaced."""

    def __init__(self, place: Place, stage: Stage, count: int) -> None:
        self._place, self._stage = place, stage
        self._pids = [self._start() for _ in range(count)]
        self.kills = 0

    def _start(self) -> int:
        return fork(lambda: work(self._place, self._stage))

    def kill_one(self, number: int) -> None:
        self._kill(number)
        self.kills += 1
        self._pids[number] = self._start()

    def _kill(self, number: int) -> None:
        os.kill(self._pids[number], signal.SIGKILL)
        os.waitpid(self._pids[number], 0)
        self._place.write("kill", self._pids[number], "-", "-")

    def stop(self) -> None:
        for number in range(len(self._pids)):
            self._kill(number)


def left(place: Place) -> int:
    """Return the number of runs in the queue, counted by another process: this one has no threads."""
    report = place.folder / "left"

    def look() -> None:
        journal = open_journal(place.dsn)
        depths = [each for each in journal.queue_depths() if each.queue == "proof"]
        report.write_text(str(sum(each.count for each in depths)), encoding="ascii")
        journal.close()

    assert join(fork(look)), "the queue cannot be read"
    return int(report.read_text(encoding="ascii"))


def run_stage(place: Place, stage: Stage, processes: int, kills: int, seconds: float, seed: int) -> int:
    """Run the queue to its end; kill processes evenly over the expected `seconds`; return the number of kills."""
    draw = random.Random(seed)
    workers = Workers(place, stage, processes)
    began = time.monotonic()
    try:
        while (count := left(place)) > 0:
            assert time.monotonic() - began < 120 + 10 * seconds, "the runs do not end"
            progress(f"{place.kind}: {count:,} left, {workers.kills} of {kills} kills")
            until = time.monotonic() + 0.5
            while time.monotonic() < until:
                if workers.kills < kills and time.monotonic() - began > (workers.kills + 1) * seconds / (kills + 1):
                    workers.kill_one(draw.randrange(processes))
                time.sleep(0.02)
    finally:
        workers.stop()
    return workers.kills


# -- what is checked ------------------------------------------------------------------------------


def rates(place: Place, keys: int) -> dict[str, Any]:
    """Compare the starts of each key with its rate."""
    starts: dict[str, list[float]] = defaultdict(list)
    for kind, _, key, _, at in place.lines():
        if kind == "begin":
            starts[key].append(at)
    ratios = []
    for key in starts:
        each = sorted(starts[key])[RATE_PER_KEY:]  # without the first second, in which processes start
        ratios.append((len(each) - 1) / (each[-1] - each[0]) / RATE_PER_KEY)
    problems = [f"{len(starts)} keys"] if len(starts) != keys else []
    problems += [f"a key has {ratio:.4f} of its rate" for ratio in ratios if abs(ratio - 1) > TOLERANCE]
    return {"least": round(min(ratios), 4), "most": round(max(ratios), 4), "problems": problems}


def overlaps(place: Place, count: int) -> dict[str, Any]:
    """Count the effects of each key that ran at the same time; a kill ends those of its process."""
    inside: dict[str, set[tuple[int, str]]] = defaultdict(set)
    most: Counter[str] = Counter()
    done: Counter[str] = Counter()
    for kind, pid, key, event, _ in sorted(place.lines(), key=lambda line: (line[4], line[0] != "end")):
        if kind == "kill":
            for each in inside.values():
                each.difference_update([one for one in each if one[0] == pid])
        elif kind == "begin":
            inside[key].add((pid, event))
            most[key] = max(most[key], len(inside[key]))
        else:
            inside[key].discard((pid, event))
            done[event] += 1
    problems = [f"{key}: {number} at the same time" for key, number in most.items() if number > CONCURRENCY]
    if max(most.values()) < CONCURRENCY:
        problems.append("no key reached its limit")
    if len(done) != count:
        problems.append(f"{len(done)} of {count} runs were performed")
    return {"most": max(most.values()), "repeated": sum(number - 1 for number in done.values()), "problems": problems}


def prove_rate(place: Place, given: argparse.Namespace) -> dict[str, Any]:
    """Run at the rate of each key, without kills: they cost a rate the starts of the dead process."""
    count = given.runs // given.keys * given.keys
    assert join(fork(lambda: put(place, RATE, count, given.keys)))
    run_stage(place, RATE, given.processes, 0, count / given.keys / RATE_PER_KEY, given.seed)
    return {"runs": count, **rates(place, given.keys)}


def prove_concurrency(place: Place, given: argparse.Namespace) -> dict[str, Any]:
    """Run as many of each key as its limit lets, with kills."""
    count = given.runs // given.keys * given.keys
    assert join(fork(lambda: put(place, CONCURRENT, count, given.keys)))
    seconds = count * CONCURRENT.seconds / CONCURRENCY / given.keys
    kills = run_stage(place, CONCURRENT, given.processes, given.kills, seconds, given.seed)
    return {"runs": count, "kills": kills, **overlaps(place, count)}


def prove_retries(place: Place, given: argparse.Namespace) -> dict[str, Any]:
    """Fail all runs, retry them in bulk while command and workers are killed, and compare."""
    count = given.retries
    assert join(fork(lambda: put(place, FAILING, count, given.keys)))
    run_stage(place, FAILING, given.processes, 0, count / 100, given.seed)
    place.log.unlink(missing_ok=True)
    draw = random.Random(given.seed)
    workers = Workers(place, RETRIED, given.processes)
    began, calls, seconds = time.monotonic(), 0, 0.0
    command = [sys.executable, "-m", "vesper", "journal", "retry", "--journal", place.dsn, "--by", "proof"]
    command += ["--where", "node == 'work_v1' AND code == 'effect_failed'", "--rate", f"{RETRY_RATE}/s"]
    try:
        while True:
            calls += 1
            called = time.monotonic()
            retrying = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
            limit = count / RETRY_RATE / (given.kills + 1) if calls <= given.kills else None
            try:
                output = retrying.communicate(timeout=None if limit is None else 2 + limit)[0]
            except subprocess.TimeoutExpired:
                retrying.kill()
                retrying.communicate()
                workers.kill_one(draw.randrange(given.processes))
                progress(f"{place.kind}: {calls} calls")
                continue
            assert retrying.returncode == 0, output
            seconds = time.monotonic() - called
            break
        while left(place) > 0:
            assert time.monotonic() - began < 600 + count / 20, "the retries do not end"
            time.sleep(0.5)
    finally:
        workers.stop()
    done = Counter(event for kind, _, _, event, _ in place.lines() if kind == "end")
    journal = open_journal(place.dsn)
    outcomes = Counter(each.outcome for each in journal.find(status=Status.ENDED, limit=10 * count))
    journal.close()
    problems = [] if len(done) == count else [f"{len(done)} of {count} were performed again"]
    if outcomes != Counter({"failed": count, "returned": count}):
        problems.append(f"the runs ended as {dict(outcomes)}: each is to be retried once")
    return {
        "runs": count,
        "calls": calls,
        "kills": workers.kills,
        "last_call_seconds": round(seconds, 1),
        "problems": problems,
    }


STAGES = {"rate": prove_rate, "concurrency": prove_concurrency, "retries": prove_retries}


def progress(text: str) -> None:
    sys.stderr.write(f"\r{text}   ")
    sys.stderr.flush()


def places(given: argparse.Namespace, folder: Path, server: Postgres | None) -> list[Place]:
    found = []
    for kind in given.stores:
        own = folder / kind
        own.mkdir(parents=True)
        dsn = f"sqlite:{own / 'journal.db'}" if server is None or kind == "sqlite" else server.new_database()
        found.append(Place(kind, dsn, own))
    return found


def prove(given: argparse.Namespace) -> dict[str, Any]:
    """Run all stages on all stores, each in a journal of its own."""
    folder = STATE / NAME / str(os.getpid())
    shutil.rmtree(folder, ignore_errors=True)
    server = Postgres(durable=True) if "postgres" in given.stores else None
    found: dict[str, Any] = {}
    try:
        for name in given.stages:
            for place in places(given, folder / name, server):
                found.setdefault(place.kind, {})[name] = STAGES[name](place, given)
    finally:
        if server is not None:
            server.remove()
        shutil.rmtree(folder, ignore_errors=True)
    return found


def problems_of(found: Any) -> list[str]:
    if not isinstance(found, dict):
        return []
    return [*found.get("problems", []), *(text for each in found.values() for text in problems_of(each))]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2_400, help="of each limit")
    parser.add_argument("--retries", type=int, default=15_000)
    parser.add_argument("--kills", type=int, default=20, help="of each stage")
    parser.add_argument("--keys", type=int, default=KEYS)
    parser.add_argument("--processes", type=int, default=PROCESSES)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--stores", nargs="+", choices=("sqlite", "postgres"), default=["sqlite", "postgres"])
    parser.add_argument("--stages", nargs="+", choices=STAGES, default=list(STAGES))
    parser.add_argument("--no-write", action="store_true", help="write no docs/proofs/queues.json")
    given = parser.parse_args(arguments)
    found = prove(given)
    problems = problems_of(found)
    print(f"\n{json.dumps(found)}")
    for each in problems:
        print(f"error: {each}", file=sys.stderr)
    if not problems and not given.no_write:
        settings = {"processes": given.processes, "threads": given.processes * THREADS, "seed": given.seed}
        write_json(PROOFS / f"{NAME}.json", {**settings, **found, "sources": whole_hash(), "engine": engine_hash()})
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
