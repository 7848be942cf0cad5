"""`make proof-kills`: processes that are killed with `kill -9` in the middle of a purchase, and what is left of it.

A purchase charges (keyed), moves an entity (txn), writes a row (txn), gives notice (unsafe), moves the entity again.
A process runs one and dies: at a named point, before or after every commit of the journal and every effect, or at a
random moment. Another process recovers, on the same engine or on the other one. Then everything outside has happened
exactly once, or not at all where the journal had not heard of the run; what is unsafe was done at most once, and is in
doubt if it may have been. In doubt, the campaign looks outside and says what it found, as a person would.

The control runs the same with a provider that does not see the keys, and must find doubled charges: a campaign that
cannot fail shows nothing. `power` loses what was not synced as well (tests/proofs/kills/power.py).
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

from tests.proofs.robustness.proof import PROOFS, STATE, engine_hash, whole_hash, write_json  # noqa: E402
from vesper.compiler import Compiled, compile_file  # noqa: E402
from vesper.config.settings import Config, config_from  # noqa: E402
from vesper.effects.performer import Ask  # noqa: E402
from vesper.engines.outcome import Returned  # noqa: E402
from vesper.engines.registry import ENGINES  # noqa: E402
from vesper.host.gate import Gate  # noqa: E402
from vesper.host.host import Host  # noqa: E402
from vesper.journal.journal import Status  # noqa: E402
from vesper.journal.run import StoreRun  # noqa: E402

NAME = "kills"
KILLS = 1_000
SEED = 20_261_115
HANDOFFS = [("python", "python"), ("interp", "interp"), ("python", "interp"), ("interp", "python")]
POINTS = [
    *(f"{when} commit {number}" for number in range(1, 8) for when in ("before", "after")),
    *(
        f"{when} {step}"
        for step in ("charge", "is_charged", "record", "notice", "is_done")
        for when in ("before", "after")
    ),
]
"""Commits are counted: INTENTs of the five effects, the RESULT of the unsafe one, the END."""
RANDOM = "random"
TABLE = "CREATE TABLE ledger (event_id text, charge text)"


def purchase() -> Compiled:
    compiled, bag = compile_file(ROOT / "tests" / "proofs" / "kills" / "purchase_v1.vsp")
    assert compiled is not None, bag.sorted()
    return compiled


class OutsideAt:
    """The provider, as others see it."""

    def __init__(self, port: int) -> None:
        self.port = port

    def counts(self) -> Counter[str]:
        """How often each thing was done."""
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)) as connection:
            connection.request("GET", "/counts")
            return Counter(json.loads(connection.getresponse().read()))


class OutsideProcess(OutsideAt):
    """The provider, in a process that nobody kills."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.proofs.kills.outside"]
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        super().__init__(int(self._process.stdout.readline()))

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(10)


@dataclass
class Place:
    """Databases and a journal of one kind."""

    kind: str
    database: str
    journal: str
    folder: Path
    port: int
    key_header: str = "Idempotency-Key"

    def config(self) -> Config:
        return config_from(
            {
                "grants": [{"nodes": ["purchase"], "allow": ["database.*", "network.*", "state.*"]}],
                "providers": {
                    "outside": {
                        "base_url": f"http://127.0.0.1:{self.port}",
                        "allow_private_addresses": True,
                        "key_header": self.key_header,
                    }
                },
                "databases": {"main": {"dsn": self.database}},
                "journal": {"dsn": self.journal},
                "recovery": {"enabled": False},
            },
            self.folder,
        )

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        if self.kind == "sqlite":
            with closing(sqlite3.connect(self.database.removeprefix("sqlite:"), timeout=30)) as connection:
                try:
                    return connection.execute(sql).fetchall()
                except sqlite3.OperationalError as error:
                    if "no such table" not in str(error):
                        raise
                    return []  # it was lost, or nobody has needed it yet
        import psycopg

        with psycopg.connect(self.database) as postgres:
            return postgres.execute(sql.encode()).fetchall()


def sqlite_place(folder: Path, port: int, key_header: str = "Idempotency-Key") -> Place:
    folder.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(folder / "shop.db")) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(TABLE)
    return Place("sqlite", f"sqlite:{folder / 'shop.db'}", f"sqlite:{folder / 'journal.db'}", folder, port, key_header)


def postgres_place(dsn: str, folder: Path, port: int) -> Place:
    import psycopg

    with psycopg.connect(dsn) as postgres:
        postgres.execute(TABLE.encode())
    return Place("postgres", dsn, dsn, folder, port)


# -- in the processes that are killed --------------------------------------------------------------


def arm(point: str) -> None:
    """Makes this process kill itself at the point. There is no way back from SIGKILL: nothing is written after it."""
    commits = 0
    commit, perform = StoreRun.commit, Gate.perform

    def die_at(name: str) -> None:
        if name == point:
            os.kill(os.getpid(), signal.SIGKILL)

    def dying_commit(self: StoreRun, *arguments: Any) -> None:
        nonlocal commits
        commits += 1
        die_at(f"before commit {commits}")
        commit(self, *arguments)
        die_at(f"after commit {commits}")

    def dying_perform(self: Gate, handles: Any, capabilities: Any, ask: Ask, *rest: Any) -> object:
        die_at(f"before {ask.path}")
        value = perform(self, handles, capabilities, ask, *rest)
        die_at(f"after {ask.path}")
        return value

    StoreRun.commit = dying_commit  # type: ignore[method-assign, assignment]
    Gate.perform = dying_perform  # type: ignore[method-assign, assignment]


def run_purchase(place: Place, compiled: Compiled, engine: str, event: str) -> None:
    from datetime import UTC, datetime

    with Host(place.config()) as host:
        prepared = host.prepare(compiled, ENGINES[engine].load(compiled), engine)
        ran = host.run(prepared, {"event_id": event}, datetime.now(UTC))
        assert isinstance(ran.outcome, Returned), ran.outcome


def recover_all(place: Place, engine: str, outside: OutsideAt) -> dict[str, Any]:
    """Finishes whatever is left, and says what was in doubt and how all runs ended."""
    doubts: list[str] = []
    with Host(place.config()) as host:
        for _ in range(10):
            left = host.recover(engine)
            for summary in host.journal.find(status=Status.IN_DOUBT):
                event = str(host.journal.read(summary.execution).entries[0].entry.body["inputs"]["event_id"])  # type: ignore[index]
                doubts.append(event)
                count = outside.counts()[f"/notice {event}"]
                result = {"id": f"{event}-{count}"} if count else None
                if count:
                    host.journal.resolve(summary.execution, "notice", result, None, "campaign", "seen outside")
                else:
                    host.journal.resolve(
                        summary.execution, "notice", None, None, "campaign", "not there", not_done=True
                    )
            if not left and not host.journal.find(status=Status.IN_DOUBT):
                break
        runs = host.journal.find(limit=5)
        return {"doubts": doubts, "runs": [[each.execution, each.status.value, each.outcome] for each in runs]}


def in_child(work: Callable[[], Any]) -> tuple[int, Any]:
    """Does it in a forked process: its exit status, and what it gave."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(read)
            answer = json.dumps(work())
            os.write(write, answer.encode())
            code = 0
        except BaseException:  # noqa: BLE001  # it is printed, and the parent sees the code
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(write)
    with os.fdopen(read, "rb") as stream:
        text = stream.read()
    _, status = os.waitpid(pid, 0)
    return status, json.loads(text) if text else None


# -- the campaign ---------------------------------------------------------------------------------


@dataclass
class Findings:
    kills: int = 0
    survived: int = 0
    """Runs that had ended before their moment came."""
    by_store: Counter[str] = field(default_factory=Counter)
    by_handoff: Counter[str] = field(default_factory=Counter)
    by_point: Counter[str] = field(default_factory=Counter)
    in_doubt: int = 0
    unheard: int = 0
    """Runs that the journal had not heard of: run again, as their client would."""
    problems: list[str] = field(default_factory=list)


def kill_once(
    place: Place, compiled: Compiled, outside: OutsideProcess, number: int, draw: random.Random, found: Findings
) -> None:
    """One purchase, one kill, one recovery; then everything is counted."""
    first, second = HANDOFFS[number % len(HANDOFFS)]
    # Every point with every hand-off in turn; 7 and the number of points have no divisor in common.
    point = RANDOM if draw.random() < 0.25 else POINTS[(number // len(HANDOFFS)) * 7 % len(POINTS)]
    event = f"{place.kind}-{number}"
    pid = os.fork()
    if pid == 0:
        try:
            if point != RANDOM:
                arm(point)
            run_purchase(place, compiled, first, event)
        except BaseException:  # noqa: BLE001  # as above
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    if point == RANDOM:
        time.sleep(draw.random() * 0.15)
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        found.kills += 1
        found.by_store[place.kind] += 1
        found.by_handoff[f"{first} to {second}"] += 1
        found.by_point[point] += 1
    elif os.WEXITSTATUS(status) == 0:
        found.survived += 1
    else:
        found.problems.append(f"{event}, {point}: the process failed by itself")
    before = outside.counts()
    status, said = in_child(lambda: recover_all(place, second, outside))
    if status != 0:
        found.problems.append(f"{event}, {point}: recovery failed")
        return
    found.in_doubt += event in said["doubts"]
    may_have_been_sent = point in ("after commit 4", "before notice", "after notice", "before commit 5")
    if may_have_been_sent and event not in said["doubts"]:
        found.problems.append(f"{event}, {point}: the notice may have been given, and is not in doubt")
    if not is_heard_of(place, outside, event):
        if before[f"/charge {event}"]:
            found.problems.append(f"{event}, {point}: charged, and nobody knows of it")
        found.unheard += 1
        status, _ = in_child(lambda: run_purchase(place, compiled, second, event))
        if status != 0:
            found.problems.append(f"{event}, {point}: could not be run again")
    found.problems += [f"{event}, {point}, {first} to {second}: {each}" for each in wrong(place, outside, event)]


def is_heard_of(place: Place, outside: OutsideAt, event: str) -> bool:
    """False where the journal had not heard of the run when its process died: recovery did nothing for it."""
    rows = place.rows(f"SELECT 1 FROM ledger WHERE event_id = '{event}'")  # noqa: S608
    return bool(rows) or outside.counts()[f"/notice {event}"] > 0


def wrong(place: Place, outside: OutsideAt, event: str) -> list[str]:
    """What has not happened exactly once."""
    counts = outside.counts()
    found = [f"{name} happened {counts[f'{name} {event}']} times" for name in ("/charge", "/notice")
             if counts[f"{name} {event}"] != 1]  # fmt: skip
    rows = place.rows(f"SELECT charge FROM ledger WHERE event_id = '{event}'")  # noqa: S608
    if rows != [(f"{event}-1",)]:
        found.append(f"the ledger has {rows}")
    state = place.rows(f"SELECT state FROM vesper_states WHERE entity = '{event}'")  # noqa: S608
    if state != [("done",)]:
        found.append(f"the entity is {state}")
    return found


def control(folder: Path, outside: OutsideProcess, compiled: Compiled, kills: int) -> int:
    """The same with a provider that sees no keys: how many charges were doubled."""
    place = sqlite_place(folder, outside.port, key_header="X-Nobody-Looks")
    doubled = 0
    for number in range(kills):
        event = f"control-{number}"
        pid = os.fork()
        if pid == 0:
            arm("after charge")
            run_purchase(place, compiled, "python", event)
            os._exit(1)
        os.waitpid(pid, 0)
        in_child(lambda: recover_all(place, "interp", outside))
        doubled += outside.counts()[f"/charge {event}"] == 2
    return doubled


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--kills", type=int, default=KILLS)
    arguments.add_argument("--seed", type=int, default=SEED)
    arguments.add_argument("--store", choices=["sqlite", "postgres", "both"], default="both")
    arguments.add_argument("--folder", type=Path, default=STATE / NAME, help="on the disk that is to be durable")
    given = arguments.parse_args()
    from tests.proofs.kills.power import lose_power
    from tests.support.servers import Postgres

    shutil.rmtree(given.folder, ignore_errors=True)
    compiled = purchase()
    started = time.monotonic()
    found = Findings()
    outside = OutsideProcess()
    postgres = Postgres(durable=True) if given.store != "sqlite" else None
    try:
        places = [] if given.store == "postgres" else [sqlite_place(given.folder / "sqlite", outside.port)]
        if postgres is not None:
            places.append(postgres_place(postgres.new_database(), given.folder, outside.port))
        draw = random.Random(given.seed)
        number = 0
        while found.kills < given.kills:
            kill_once(places[number % len(places)], compiled, outside, number // len(places), draw, found)
            number += 1
            _progress(found, given.kills)
        doubled = control(given.folder / "control", outside, compiled, min(20, given.kills))
        power = lose_power(given.folder / "power", outside, min(100, given.kills // 4 + 1), given.seed)
    finally:
        outside.close()
        if postgres is not None:
            postgres.remove()
    print(file=sys.stderr)
    report = {
        "source_hash": whole_hash(),
        "engine_hash": engine_hash(),
        "seed": given.seed,
        "kills": found.kills,
        "ended_before_the_kill": found.survived,
        "by_store": dict(found.by_store),
        "by_handoff": dict(found.by_handoff),
        "by_point": dict(sorted(found.by_point.items())),
        "in_doubt": found.in_doubt,
        "unheard_of_and_run_again": found.unheard,
        "lost_or_doubled": len(found.problems),
        "control_without_keys": {"kills": min(20, given.kills), "doubled": doubled},
        "power_losses": power,
        "elapsed_seconds": round(time.monotonic() - started, 1),
    }
    print(json.dumps(report, indent=2))
    for problem in [*found.problems, *power["problems"]][:20]:
        print(f"PROBLEM: {problem}", file=sys.stderr)
    failed = bool(found.problems or power["problems"]) or doubled == 0 or power["control_lost"] == 0
    if not failed and given.kills >= KILLS and given.store == "both":
        write_json(PROOFS / f"{NAME}.json", report)
    return int(failed)


def _progress(found: Findings, kills: int) -> None:
    if sys.stderr.isatty() or found.kills % 50 == 0:
        sys.stderr.write(f"\r{found.kills} of {kills} kills, {len(found.problems)} problems")
        sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
