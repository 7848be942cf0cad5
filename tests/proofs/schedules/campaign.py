"""`make proof-schedules`: eight processes with five jobs, killed and stopped, over the clock changes of three zones.

A window is a day and a half around a clock change. The campaign sets the clock of all processes to one due time after
the other, found by an oracle that visits every minute with `zoneinfo`, and waits until every run has ended. Meanwhile
it kills processes: at random moments, and before and after each commit of a schedule. Processes stop for an hour and
continue with what they have read. Twice in a window all processes are gone for hours. Then the ledger has each due time
that the policies of its job select, once, and no other one; the rows count the others as missed.

The control begins runs without their keys, and must find doubled ones: a campaign that cannot fail shows nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

from tests.proofs.robustness.proof import PROOFS, STATE, engine_hash, whole_hash, write_json  # noqa: E402
from tests.proofs.schedules.processes import (  # noqa: E402
    POINTS,
    Job,
    Place,
    Shared,
    load_jobs,
    postgres_place,
    sqlite_place,
    start,
)
from vesper.host.host import Host  # noqa: E402
from vesper.journal.journal import JournalError, Status, Summary  # noqa: E402
from vesper.schedules.rows import read_rows  # noqa: E402

NAME = "schedules"
SEED = 20_261_118
DUE_TIMES = 1_000
PROCESSES = 8
HOURS = 32
KILL_SHARE = 0.3
"""Share of the moments at which a process dies."""
STALL_SECONDS, MAX_SETTLE_SECONDS = 8.0, 60.0
SECOND = timedelta(seconds=1)
ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe")
YEAR = 2040
"""In the future: the clock of a server decides when queued runs are due, and must not be ahead of that of processes."""
ALL = frozenset(range(24))


def jobs_of(hour: int, minute: int) -> list[Job]:
    """Return jobs with every policy; one is due in the changed hour."""
    return [
        Job("quarter", "*/15 * * * *", frozenset((0, 15, 30, 45)), ALL, "allow", "all"),
        Job("changed", f"{minute} {hour} * * *", frozenset((minute,)), frozenset((hour,)), "skip", "latest"),
        Job("third", "10 */3 * * *", frozenset((10,)), frozenset(range(0, 24, 3)), "queue", "all", 90),
        Job("fourth", "40 */4 * * *", frozenset((40,)), frozenset(range(0, 24, 4)), "skip", "skip"),
        Job("hourly", "50 * * * *", frozenset((50,)), ALL, "skip", "latest"),
    ]


@dataclass(frozen=True)
class Change:
    """A clock change, with the hour and minute of a local time that clocks skip or repeat."""

    zone: str
    moment: datetime
    hour: int
    minute: int


def changes() -> list[Change]:
    """Return both changes of each zone, by `zoneinfo`."""
    found = []
    for zone in ZONES:
        moment = datetime(YEAR, 1, 1, tzinfo=UTC)
        while moment.year == YEAR:
            offsets = [each.astimezone(ZoneInfo(zone)).utcoffset() for each in (moment - SECOND, moment)]
            before, after = (each or timedelta() for each in offsets)
            if before != after:
                local = moment.replace(tzinfo=None) + (before + after) / 2
                found.append(Change(zone, moment, local.hour, local.minute))
            moment += timedelta(minutes=30)
    return found


@dataclass
class Findings:
    due_times: int = 0
    runs: int = 0
    missed: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    slept: int = 0
    outages: int = 0
    doubled: int = 0
    problems: list[str] = field(default_factory=list)


class Window:
    """The processes around one clock change."""

    def __init__(self, place: Place, change: Change, processes: int, seed: int, has_keys: bool = True) -> None:
        self.zone, self.change = change.zone, change.moment
        self.place = place
        self.jobs = jobs_of(change.hour, change.minute)
        self.shared = Shared()
        self.draw = random.Random(f"{seed} {change.moment} {place.kind}")
        self.found = Findings()
        self._has_keys = has_keys
        nodes = place.folder / "nodes"
        nodes.mkdir()
        for job in self.jobs:
            (nodes / f"{job.name}_v1.vsp").write_text(job.text(self.zone), encoding="utf-8")
        self._pids = [0] * processes
        self._host = Host(place.config(), sources=self.shared.sources())
        self._loaded = load_jobs(self._host, nodes)
        self._sleeper: tuple[int, datetime] | None = None
        self._cause = ""
        """The place of the last kill that was asked for; those that no process came to are not counted."""

    @property
    def now(self) -> datetime:
        return datetime.fromtimestamp(self.shared.now_ns / 1e9, UTC)

    @now.setter
    def now(self, moment: datetime) -> None:
        self.shared.now_ns = max(self.shared.now_ns, int(moment.timestamp() * 1_000_000) * 1_000)

    def run(self, hours: int, kill_share: float = KILL_SHARE) -> Findings:
        begin = self.change - timedelta(hours=hours / 2)
        end = begin + timedelta(hours=hours)
        self.now = begin
        due = {job.name: job.oracle(self.zone).between(begin, end) for job in self.jobs}
        expected: set[tuple[str, datetime]] = set()
        moments = sorted({each for times in due.values() for each in times})
        absences = self._absences(moments)
        try:
            self._start_all()
            self._settle(rows=len(self.jobs))
            decided = begin
            for moment in moments:
                if any(first <= moment < last for first, last in absences):
                    continue  # no run waits there
                if any(moment == last for _, last in absences):
                    self._kill_all()
                    self.found.outages += 1
                for job in self.jobs:
                    times = [each for each in due[job.name] if decided < each <= moment]
                    expected |= {(job.name, each) for each in _chosen(job.missed, times, moment)}
                decided = moment
                is_delayed = any(moment in due[job.name] for job in self.jobs if job.jitter_seconds)
                for seconds in (1, 31, 61, 91) if is_delayed else (1,):
                    self.now = moment + seconds * SECOND
                    self._start_all()
                    self._disturb(moment, kill_share)
                    self._settle()
            self._wake_sleeper()
            self._settle()
        finally:
            self._kill_all()
        self.found.due_times = sum(map(len, due.values()))
        self._compare(due, expected)
        self._host.close()
        return self.found

    def _absences(self, moments: list[datetime]) -> list[tuple[datetime, datetime]]:
        """Return two times without any process, each from a moment to a quarter past an hour, hours later."""
        found = []
        for share in (0.25, 0.7):
            first = moments[int(len(moments) * share)]
            later = [each for each in moments if each > first + timedelta(hours=3) and each.minute % 60 == 15]
            if later and all(job.minutes.isdisjoint({15}) or job.name == "quarter" for job in self.jobs):
                found.append((first, later[0]))
        return found

    # -- processes --------------------------------------------------------------------------------

    def _start_all(self) -> None:
        for number, pid in enumerate(self._pids):
            if pid:
                ended, status = os.waitpid(pid, os.WNOHANG)
                if not ended:
                    continue
                if os.WIFEXITED(status):
                    raise RuntimeError(f"{self.zone}: a process failed by itself at {self.now}")
                self.found.kills[self._cause] += 1
            self._pids[number] = start(self._host, self.shared, self._loaded[number % 2], self._has_keys)

    def _kill_all(self) -> None:
        self._sleeper = None
        for number, pid in enumerate(self._pids):
            if pid:
                with suppress(ProcessLookupError, ChildProcessError):  # it has been waited for
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
                self._pids[number] = 0

    def _disturb(self, moment: datetime, kill_share: float) -> None:
        """Kill or stop a process: in a moment, or at its next point."""
        if self._sleeper is not None and moment > self._sleeper[1] + timedelta(hours=1):
            self._wake_sleeper()
        if self.draw.random() >= kill_share:
            return
        number = self.draw.randrange(len(self._pids))
        kind = self.draw.choices(["stop", "random", "point"], [0.15, 0.25, 0.6])[0]
        if kind == "point":
            point = self.draw.choice(POINTS)
            self.shared.arm(point)
            self._cause = point
        elif self._sleeper is None or number != self._sleeper[0]:
            time.sleep(self.draw.random() * 0.05)
            if kind == "random":
                self._cause = "random"
                os.kill(self._pids[number], signal.SIGKILL)
            elif self._sleeper is None:
                self._stop(number, moment)

    def _stop(self, number: int, moment: datetime) -> None:
        """Stop a process outside of transactions: one that holds the lock of a file stops all others as well."""
        self._sleeper = number, moment
        os.kill(self._pids[number], signal.SIGSTOP)
        try:
            self._host.journal.check_writable()
            self.found.slept += 1
        except JournalError:
            self._wake_sleeper()

    def _wake_sleeper(self) -> None:
        if self._sleeper is not None:
            os.kill(self._pids[self._sleeper[0]], signal.SIGCONT)
            self._sleeper = None

    def _settle(self, rows: int = 0) -> None:
        """Wait until nothing is due and every run has ended; where a process died, let time pass for its leases."""
        began = time.monotonic()
        while not self._is_settled(rows):
            waited = time.monotonic() - began
            self._start_all()
            time.sleep(0.02)
            if waited > 0.3 and not self._is_due():
                self.now = self.now + SECOND / 2
            if waited > STALL_SECONDS:
                self._wake_sleeper()  # it may hold the lock of the store
            if waited > MAX_SETTLE_SECONDS:
                raise TimeoutError(f"{self.zone}: not settled at {self.now}: {self._unfinished()}")
        self.shared.arm(None)

    def _is_due(self) -> bool:
        """Return whether a process has to decide."""
        rows = read_rows(self._host.journal)
        return not rows or any(due_us <= self.shared.now_ns // 1_000 for due_us, _ in rows.values())

    def _is_settled(self, rows: int) -> bool:
        journal = self._host.journal
        found = read_rows(journal)
        if len(found) < rows or self._is_due() or any(row.pending for _, row in found.values()):
            return False
        return not self._unfinished()

    def _unfinished(self) -> list[Summary]:
        statuses = [each for each in Status if each is not Status.ENDED]
        return [found for each in statuses for found in self._host.journal.find(status=each, limit=3)]

    # -- what must be -----------------------------------------------------------------------------

    def _compare(self, due: dict[str, list[datetime]], expected: set[tuple[str, datetime]]) -> None:
        found = self.found
        written = Counter((job, datetime.fromisoformat(text)) for job, text in self.place.written())
        found.runs, found.missed = len(expected), found.due_times - len(expected)
        found.doubled = sum(1 for count in written.values() if count > 1)
        tell = found.problems.append
        for (job, moment), count in sorted(written.items()):
            if count > 1:
                tell(f"{self.zone}: {job} of {moment} ran {count} times")
            if (job, moment) not in expected:
                tell(f"{self.zone}: {job} of {moment} ran against its policy")
        for job, moment in sorted(expected - written.keys()):
            tell(f"{self.zone}: {job} of {moment} did not run")
        for name, (_, row) in read_rows(self._host.journal).items():
            runs = sum(1 for job, _ in expected if f"{job}_v1" == name)
            counted = {"runs": row.run_count, "missed": row.missed_count, "skipped": row.skipped_count}
            must = {"runs": runs, "missed": len(due[name.removesuffix("_v1")]) - runs, "skipped": 0}
            if counted != must:
                tell(f"{self.zone}: the row of {name} counts {counted}, and {must} happened")


def _chosen(missed: str, times: list[datetime], now: datetime) -> list[datetime]:
    """Apply a policy to the due times since the last decision."""
    if missed == "latest":
        return times[-1:]
    return [each for each in times if missed == "all" or now - each < timedelta(minutes=1)]


def control(folder: Path) -> int:
    """Begin runs without keys: return the number of doubled ones."""
    fresh(folder)
    window = Window(sqlite_place(folder), changes()[0], 2, SEED, has_keys=False)
    return window.run(6, kill_share=0.9).doubled


def fresh(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--windows", type=int, default=2 * len(ZONES))
    arguments.add_argument("--hours", type=int, default=HOURS)
    arguments.add_argument("--processes", type=int, default=PROCESSES)
    arguments.add_argument("--seed", type=int, default=SEED)
    arguments.add_argument("--store", choices=["sqlite", "postgres", "both"], default="both")
    arguments.add_argument("--folder", type=Path, default=STATE / NAME)
    given = arguments.parse_args()
    given.folder = given.folder.resolve()  # processes work in folders of their own
    from tests.support.servers import Postgres

    started = time.monotonic()
    state = given.folder / "state.json"
    tied = {"source_hash": whole_hash(), "engine_hash": engine_hash(), **{k: str(v) for k, v in vars(given).items()}}
    kept = json.loads(state.read_text(encoding="utf-8")) if state.exists() else {}
    done: dict[str, dict[str, object]] = kept["done"] if kept.get("tied") == tied else {}
    postgres = Postgres() if given.store != "sqlite" else None
    try:
        for number, change in enumerate(changes()[: given.windows]):
            label = f"{change.zone} {change.moment:%Y-%m-%dT%H:%MZ}"
            if label in done:
                continue
            folder = fresh(given.folder / f"window-{number}")
            is_sqlite = postgres is None or (given.store == "both" and number % 2 == 0)
            place = sqlite_place(folder) if is_sqlite else postgres_place(postgres.new_database(), folder)  # type: ignore[union-attr]  # it is one here
            found = Window(place, change, given.processes, given.seed).run(given.hours)
            done[label] = {**vars(found), "kills": dict(found.kills), "store": place.kind}
            write_json(state, {"tied": tied, "done": done})
            print(f"{label}: {found.runs} runs, {sum(found.kills.values())} kills, {len(found.problems)} problems")
        doubled = control(given.folder / "control")
    finally:
        if postgres is not None:
            postgres.remove()
    kills: Counter[str] = Counter()
    for each in done.values():
        kills.update(each["kills"])  # type: ignore[call-overload]  # counts by point
    total = {
        name: sum(int(str(each[name])) for each in done.values())
        for name in ("due_times", "runs", "missed", "slept", "outages")
    }
    problems = [text for each in done.values() for text in each["problems"]]  # type: ignore[attr-defined]  # texts
    report = {
        **{name: tied[name] for name in ("source_hash", "engine_hash")},
        "seed": given.seed,
        "processes": given.processes,
        "windows": {label: each["store"] for label, each in done.items()},
        **total,
        "kills": sum(kills.values()),
        "by_point": dict(sorted(kills.items())),
        "lost_doubled_or_against_the_policy": len(problems),
        "control_without_keys_doubled": doubled,
        "elapsed_seconds": round(time.monotonic() - started, 1),
    }
    print(json.dumps(report, indent=2))
    for problem in problems[:20]:
        print(f"PROBLEM: {problem}", file=sys.stderr)
    failed = bool(problems) or doubled == 0
    if not failed and total["due_times"] >= DUE_TIMES and given.processes >= PROCESSES and given.store == "both":
        write_json(PROOFS / f"{NAME}.json", report)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
