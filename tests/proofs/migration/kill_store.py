"""`make proof-migration-kills`: processes that are killed with `kill -9` while they write migration state.

A process tells a store what it saw, as fast as it can: agreements, divergences, changes of mode by persons. Before and
after each it says so in a pipe. It is killed at a random moment, or a little after it began one. Now and then the
server is killed with it. Then the store must hold exactly what plain values hold after the same (`plain_store`): all
that was acknowledged, once, and of the one that was under way all or nothing. The next process sends that one again,
if it has a number, and it must count once. The history verifies, and everybody is in the bucket that they were in.

The control acknowledges before it writes, and must be found out: a campaign that cannot fail shows nothing.

Rounds of kills are kept in `.proofs` when they are done; a campaign that was stopped goes on with the next.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import select
import shutil
import signal
import struct
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

from tests.proofs.robustness.proof import PROOFS, STATE, read_json, store_hash, write_json  # noqa: E402
from tests.support.servers import Postgres, Redis  # noqa: E402
from tests.unit.migration.support.places import KEY, NOW, SETTINGS, agreed, diverged  # noqa: E402
from tests.unit.migration.support.plain_store import PlainStore  # noqa: E402
from vesper.migration.control.modes import Mode  # noqa: E402
from vesper.migration.control.routing import is_in_canary  # noqa: E402
from vesper.migration.control.state import Close, Demote, Event, Kill, Promote, Resume  # noqa: E402
from vesper.migration.stores import ledger  # noqa: E402
from vesper.migration.stores.ledger import Applied  # noqa: E402
from vesper.migration.stores.store import Batch, Happened, Store, StoreError, open_store  # noqa: E402
from vesper.migration.stores.traffic import SAMPLES, TRAFFIC  # noqa: E402

NAME = "migration_kills"
KILLS = 500
CONTROL = 200
"""Maximum number of kills of the control, which ends with the first loss found, usually after a few."""
SEED = 20_261_115
ROUND_SIZE = 25
KINDS = ("sqlite", "redis", "postgres")
BUSY = 300
"""More steps than a process completes before it is killed."""
_PATHS = ("a1", "b2", "c3")
_SERVED = "shadow_direct/python"
_ABOUT = struct.Struct(">cQ")
BEGUN, DONE, REPEATED = b"b", b"d", b"r"
_CUSTOMERS = [f"customer {number}".encode() for number in range(300)]


# -- what is told ---------------------------------------------------------------------------------


def step(seed: int, life: int, number: int) -> Batch | Event:
    """Return the event with this number in a life: the same for the same numbers."""
    draw = random.Random(f"{seed} {life} {number}")
    process = f"process-{seed}-{life}"
    who, why = "campaign", f"step {life}.{number}"
    chance = draw.random()
    if chance < 0.5:
        some = [draw.randrange(200_000) * 92_233_720_368_547 for _ in range(draw.choice([3, 40, 160]))]
        return replace(agreed(process, number, draw.choice(_PATHS), some), served={_SERVED: len(some)})
    if chance < 0.75:
        kind = f"kind-{draw.randrange(40)}"
        read = draw.randrange(200_000) * 92_233_720_368_547
        return diverged(process, number, kind, read, draw.choice(_PATHS), is_effect=draw.random() < 0.05)
    persons: list[Event] = [
        Kill(who, why), Resume(who, why), Resume(who, why), Promote(who, why), Demote(Mode.SHADOW_DIRECT, who, why)
    ]  # fmt: skip
    if chance < 0.83:
        return draw.choice(persons)
    if chance < 0.91:
        return Batch(process, number, [Happened(draw.choice(persons))])
    return Batch(process, number, [Happened(Close(f"kind-{each}", who, why)) for each in range(40)])


def tell(store: Store, told: Batch | Event, life: int, number: int) -> Applied:
    at_us = NOW + life * 10**6 + number
    if isinstance(told, Batch):
        return ledger.apply(store, KEY, told, SETTINGS, at_us)
    return ledger.apply_event(store, KEY, told, SETTINGS, at_us)


# -- in the process that is killed ----------------------------------------------------------------


def work(dsn: str, seed: int, life: int, again: tuple[int, int] | None, pipe: int, is_control: bool) -> None:
    """Send step after step until the process is killed, beginning with the unfinished one of its predecessor."""
    store = open_store(dsn)

    def say(about: bytes, number: int) -> None:
        os.write(pipe, _ABOUT.pack(about, number))

    if again is not None:
        done = tell(store, step(seed, *again), *again)
        say(REPEATED if done.is_repeat else DONE, 0)
    for number in range(1, BUSY):
        say(BEGUN, number)
        if is_control:
            say(DONE, number)
        tell(store, step(seed, life, number), life, number)
        if not is_control:
            say(DONE, number)


@dataclass
class Life:
    """The messages of a process before its death."""

    begun: int = 0
    done: int = 0
    again: bytes | None = None
    """Result of the step that it sent again."""

    def hear(self, data: bytes) -> None:
        for about, number in _ABOUT.iter_unpack(data):
            if about == BEGUN:
                self.begun = number
            elif number:
                self.done = number
            else:
                self.again = about


def live_and_die(
    dsn: str, seed: int, life: int, again: tuple[int, int] | None, draw: random.Random, is_control: bool
) -> tuple[Life, bool]:
    """Run a process to its end; return its messages and whether it was killed."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(read)
            work(dsn, seed, life, again, write, is_control)
        except BaseException:  # noqa: BLE001  # it is printed, and the parent sees the code
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    os.close(write)
    said = Life()
    target, is_random = draw.randint(1, 12), draw.random() < 0.5
    deadline = time.monotonic() + draw.uniform(0, 0.08) if is_random else float("inf")
    is_open = True
    while is_open and time.monotonic() < deadline:
        if select.select([read], [], [], min(30, max(0, deadline - time.monotonic())))[0]:
            data = os.read(read, _ABOUT.size * 64)
            is_open = bool(data)
            said.hear(data)
            if not is_random and said.begun >= target and deadline == float("inf"):
                deadline = time.monotonic() + draw.choice([0.0, draw.uniform(0, 0.004)])
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    while data := os.read(read, _ABOUT.size * 64):
        said.hear(data)
    os.close(read)
    return said, os.WIFSIGNALED(status)


# -- what is left ---------------------------------------------------------------------------------


@dataclass
class Findings:
    kills: int = 0
    servers_killed: int = 0
    acknowledged: int = 0
    divergences: int = 0
    mode_changes: int = 0
    under_way: Counter[str] = field(default_factory=Counter)
    """Results of the unfinished steps."""
    problems: list[str] = field(default_factory=list)

    def report(self) -> dict[str, Any]:
        return {
            "kills": self.kills,
            "servers_killed": self.servers_killed,
            "acknowledged": self.acknowledged,
            "divergences": self.divergences,
            "mode_changes": self.mode_changes,
            "under_way": dict(sorted(self.under_way.items())),
            "problems": self.problems,
        }


def difference(store: Store, plain: PlainStore) -> str | None:
    """Return how a store differs from the expected values."""
    node = plain.node(KEY)
    pairs: Iterator[tuple[str, object, object]] = iter(
        [
            ("state", store.read(KEY), node.text),
            ("history", list(store.history(KEY)), node.lines),
            ("divergences", list(store.divergences(KEY)), plain.divergences(KEY)),
            ("versions", dict(store.versions()), plain.versions()),
            *((name, store.document(KEY, name), node.documents.get(name)) for name in (TRAFFIC, SAMPLES)),
        ]
    )
    for what, found, expected in pairs:
        if found != expected:
            return f"{what}: {str(found)[-300:]} is not {str(expected)[-300:]}"

    def sets(transaction: Any) -> str | None:
        for scope, expected in node.sets.items():
            if (size := transaction.size(scope)) != len(expected):
                return f"the set {scope} has {size} members, not {len(expected)}"
            if transaction.known(scope, expected) != expected:
                return f"the set {scope} has other members"
        wrong = [each for each, number in node.batches.items() if transaction.applied(each) != number]
        return f"the last batch of {wrong} is another" if wrong else None

    return store.transact(KEY, sets)


def buckets(store: Store) -> list[bool]:
    secret = store.secret()
    return [is_in_canary(KEY.node, each, secret) for each in _CUSTOMERS]


class Place:
    """A kind of store and its server."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self._folder = folder
        self.server: Postgres | Redis | None = None
        if kind != "sqlite":
            self.server = Postgres(durable=True) if kind == "postgres" else Redis(durable=True)

    def fresh(self, number: int) -> str:
        if isinstance(self.server, Postgres):
            return self.server.new_database()
        if isinstance(self.server, Redis):
            return self.server.url.removesuffix("/0") + f"/{number % 16}"
        folder = self._folder / f"round-{number}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return f"sqlite:{folder / 'migration.db'}"

    def settle(self) -> None:
        """Wait until Redis has noticed the end of a killed process, whose last commands may still be unread.

        In PostgreSQL an unfinished transaction holds its row, and readers wait for it.
        """
        if isinstance(self.server, Redis):
            from redis import Redis as Client

            with Client.from_url(self.server.url) as client:
                while len(client.client_list()) > 1:
                    time.sleep(0.001)

    def kill(self) -> bool:
        if self.server is None:
            return False
        self.server.stop(hard=True)
        self.server.start()
        return True

    def close(self) -> None:
        if self.server is not None:
            self.server.remove()


def play(place: Place, number: int, seed: int, kills: int, is_control: bool = False) -> Findings:
    """Run one round on a fresh store."""
    draw = random.Random(f"{seed} {number}")
    dsn = place.fresh(number)
    found, plain = Findings(), PlainStore()
    store = open_store(dsn)
    before, secret = buckets(store), store.secret()
    store.close()
    again: tuple[int, int] | None = None
    is_in = False
    life = 0
    while found.kills < kills:
        life += 1
        said, was_killed = live_and_die(dsn, seed + number, life, again, draw, is_control)
        if not was_killed:
            found.problems.append(f"round {number}, life {life}: the process ended by itself")
            break
        found.kills += 1
        place.settle()
        if found.kills % 10 == 0:
            found.servers_killed += place.kill()
        problem = None
        if said.again is not None and again is not None:
            # Whoever sends it again is told whether it had been done: exactly where it had been.
            found.under_way["sent again, was done" if is_in else "sent again, was not done"] += 1
            if (said.again == REPEATED) != is_in:
                problem = f"it was {'done' if is_in else 'not done'}, and who sent it again was told otherwise"
        if again is not None:
            resend(plain, seed + number, again, said, is_in, dsn, found)
        for each in range(1, said.done + 1):
            count(found, tell(plain, step(seed + number, life, each), life, each))
        store = open_store(dsn)
        try:
            again, is_in, wrong = outcome(store, plain, seed + number, life, said, found)
            problem = problem or wrong or ledger.verify_history(store.history(KEY))
            if buckets(store) != before or store.secret() != secret:
                problem = problem or "somebody is in another bucket"
        except StoreError as error:
            problem = f"{type(error).__name__}: {error}"
        store.close()
        if problem is not None:
            found.problems.append(f"{place.kind}, round {number}, life {life}: {problem}")
            break
    return found


def is_applied(store: Store, batch: Batch) -> bool:
    return store.transact(KEY, lambda transaction: transaction.applied(batch.process)) >= batch.number


def resend(
    plain: PlainStore, seed: int, again: tuple[int, int], said: Life, is_in: bool, dsn: str, found: Findings
) -> None:
    """Return the plain values with the repeated step, if it was acknowledged or is found."""
    if is_in:
        return
    if said.again is None:
        store = open_store(dsn)
        told = step(seed, *again)
        assert isinstance(told, Batch)
        is_there = is_applied(store, told)
        store.close()
        found.under_way["sent again, and killed meanwhile"] += 1
        if not is_there:
            return
    count(found, tell(plain, step(seed, *again), *again))


def outcome(
    store: Store, plain: PlainStore, seed: int, life: int, said: Life, found: Findings
) -> tuple[tuple[int, int] | None, bool, str | None]:
    """Return the step to send again, whether it is in the store, and the problems."""
    if said.begun == said.done:
        return None, False, difference(store, plain)
    told = step(seed, life, said.begun)
    with_it = plain.copy()
    applied = tell(with_it, told, life, said.begun)
    if isinstance(told, Batch):
        is_in = is_applied(store, told)
        wrong = difference(store, with_it if is_in else plain)
    else:
        # It has no number: it is there if all of it is.
        wrong = difference(store, plain)
        is_in = wrong is not None
        wrong = difference(store, with_it) if is_in else None
    if wrong is not None:
        return None, False, f"of the one that was under way a part is there: {wrong}"
    again = (life, said.begun) if isinstance(told, Batch) else None
    found.under_way["done" if is_in else "not done"] += 1
    if is_in:
        plain.nodes = with_it.nodes
        count(found, applied)
    return again, is_in, None


def count(found: Findings, applied: Applied) -> None:
    found.acknowledged += 1
    kinds = [type(each).__name__ for each in applied.decisions]
    found.mode_changes += kinds.count("Changed")
    found.divergences += kinds.count("PathDemoted")


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--kills", type=int, default=KILLS)
    arguments.add_argument("--seed", type=int, default=SEED)
    arguments.add_argument("--folder", type=Path, default=STATE / NAME, help="on the disk that is to be durable")
    given = arguments.parse_args()
    is_whole = given.kills >= KILLS
    each = ROUND_SIZE if is_whole else max(1, given.kills // len(KINDS))
    rounds = -(-given.kills // each)
    kept_at = STATE / f"{NAME}.json"
    begun = read_json(kept_at) if is_whole else None
    about = {"source_hash": store_hash(), "seed": given.seed, "each": each}
    if begun is None or {name: begun.get(name) for name in about} != about:
        begun = {**about, "rounds": {}, "elapsed_seconds": 0.0}
    done: dict[str, dict[str, Any]] = begun["rounds"]
    started = time.monotonic() - begun["elapsed_seconds"]
    places = {kind: Place(kind, given.folder) for kind in KINDS}
    try:
        for number in range(rounds):
            if str(number) not in done:
                kind = KINDS[number % len(KINDS)]
                done[str(number)] = {"store": kind, **play(places[kind], number, given.seed, each).report()}
                if is_whole:
                    write_json(kept_at, {**begun, "elapsed_seconds": time.monotonic() - started})
            print(f"round {number + 1} of {rounds}: {json.dumps(done[str(number)])[:300]}", file=sys.stderr, flush=True)
        control = play(places["sqlite"], 1_000_000, given.seed, CONTROL, is_control=True)
    finally:
        for place in places.values():
            place.close()
        shutil.rmtree(given.folder, ignore_errors=True)
    problems = [problem for each_round in done.values() for problem in each_round["problems"]]
    report = {
        "source_hash": about["source_hash"],
        "seed": given.seed,
        "by_store": {kind: _sum(row for row in done.values() if row["store"] == kind) for kind in KINDS},
        "kills": sum(row["kills"] for row in done.values()),
        "lost_or_counted_twice": len(problems),
        "control_that_acknowledges_too_early_is_found": bool(control.problems),
        "elapsed_seconds": round(time.monotonic() - started, 1),
    }
    print(json.dumps(report, indent=2))
    for problem in problems[:20]:
        print(f"PROBLEM: {problem}", file=sys.stderr)
    failed = bool(problems) or not control.problems
    if is_whole and not failed:
        write_json(PROOFS / f"{NAME}.json", report)
    return int(failed)


def _sum(rows: Iterator[dict[str, Any]]) -> dict[str, Any]:
    total: Counter[str] = Counter()
    under_way: Counter[str] = Counter()
    for row in rows:
        total.update({name: value for name, value in row.items() if isinstance(value, int)})
        under_way.update(row["under_way"])
    return {**total, "under_way": dict(sorted(under_way.items()))}


if __name__ == "__main__":
    sys.exit(main())
