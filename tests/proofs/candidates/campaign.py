"""`make proof-candidates`: a live candidate whose processes are killed at random moments performs nothing.

Processes load a name, charge purchases at a provider on loopback, and are killed with `kill -9`; the next one recovers
what was left. The candidate makes the lead's charge and asks for a notice of its own. The provider counts: every
purchase that the journal knows was charged once, and no notice was given. The store counts at most one result for each
run, and has every run that was answered more than `BOUND_SECONDS` before its process was killed.

The control lets the candidate perform, and must find notices. A measurement calls the name and its lead by turns.
Rounds of 100 kills are independent: a campaign that was interrupted continues with the next one.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import select
import shutil
import signal
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

import vesper  # noqa: E402
from tests.proofs.kills.purchase import OutsideProcess, in_child  # noqa: E402
from tests.proofs.robustness.proof import PROOFS, STATE, whole_hash, write_json  # noqa: E402
from tests.unit.migration.support.names import NOTICE, charge  # noqa: E402
from vesper.compiler import compile_file  # noqa: E402
from vesper.config.settings import Config, config_from  # noqa: E402
from vesper.engines.registry import ENGINES  # noqa: E402
from vesper.host.host import Host  # noqa: E402
from vesper.migration.candidates import live_candidate  # noqa: E402
from vesper.migration.candidates.counts import Counts  # noqa: E402
from vesper.migration.candidates.live_candidate import LiveCandidate  # noqa: E402
from vesper.migration.candidates.overview import read_name  # noqa: E402
from vesper.migration.router.routes import Routes  # noqa: E402

KILLS, KILLS_A_ROUND = 2_000, 100
BOUND_SECONDS = 2.0
_FLUSH_SECONDS = 0.05
"""Shorter than a life, so that kills come before, in and after the batches."""
_ENGINES = ("python", "auto", "interp")
SEED = 20_261_118


class Place:
    """A project with its databases."""

    def __init__(self, folder: Path, port: int, dsn: str | None = None) -> None:
        self.folder, self.nodes, self._port = folder, folder / "nodes", port
        self._journal = dsn or f"sqlite:{folder / 'journal.db'}"
        self._store = dsn or f"sqlite:{folder / 'migration.db'}"
        self.nodes.mkdir(parents=True, exist_ok=True)
        (self.nodes / "charge_v1.vsp").write_text(charge(1), encoding="utf-8")
        (self.nodes / "charge_v2.vsp").write_text(charge(2, more=NOTICE), encoding="utf-8")

    def config(self, **migration: object) -> Config:
        outside = {
            "base_url": f"http://127.0.0.1:{self._port}",
            "allow_private_addresses": True,
            "key_header": "Idempotency-Key",
        }
        values = {
            "grants": [{"nodes": ["charge"], "allow": ["network.*"]}],
            "providers": {"outside": outside},
            "journal": {"dsn": self._journal},
            "recovery": {"enabled": False},
            "migration": {"store": self._store, "refresh": "50ms", "follow_cpu": "6400 %", **migration},
            "versions": {"charge": {"lead": "charge_v1", "candidate": "charge_v2"}},
        }
        return config_from(values, self.folder)

    def load(self, host: Host, routes: Routes, engine: str, name: str = "charge") -> vesper.Node:
        return vesper.load(name, nodes=self.nodes, engine=engine, host=host, routes=routes)


# -- in the processes that are killed -------------------------------------------------------------


def live(place: Place, life: str, engine: str, pipe: int) -> None:
    """Recover what the last process left, then charge purchases until the end."""
    live_candidate._FLUSH_INTERVAL_SECONDS = _FLUSH_SECONDS
    host, routes = Host(place.config()), Routes(place.config())
    node = place.load(host, routes, engine)
    host.recover("python")
    for number in range(1_000_000):
        event = f"{life}-{number}"
        node(event_id=event, card="4242").unwrap()
        os.write(pipe, f"{event} {time.monotonic()}\n".encode())


def perform(self: LiveCandidate, found: Any, took_ns: int, execution: str | None) -> None:
    """Run the candidate with a Host, as it must never be: the control."""
    compiled, _ = compile_file(CONTROL[0].nodes / "charge_v2.vsp")
    assert compiled is not None
    with Host(CONTROL[0].config()) as host:
        prepared = host.prepare(compiled, ENGINES["python"].load(compiled), "python")
        host.run(prepared, found.inputs, found.now)


CONTROL: list[Place] = []


# -- one round ------------------------------------------------------------------------------------


def kill_once(place: Place, life: str, engine: str, draw: random.Random) -> tuple[float, list[tuple[str, float]]]:
    """Return when a process was killed, and the purchases that it answered."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(read)
            live(place, life, engine, write)
        finally:
            os._exit(1)
    os.close(write)
    select.select([read], [], [], 60)  # begun: its first purchase is answered, or it died
    time.sleep(draw.random() * draw.choice([0.02, 0.1, 0.4]))
    killed = time.monotonic()
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    with os.fdopen(read, "rb") as pipe:
        lines = pipe.read().split(b"\n")[:-1]
    assert os.WIFSIGNALED(status), f"{life}: the process failed by itself"
    return killed, [(name.decode(), float(at)) for name, at in (each.split() for each in lines)]


def finish(place: Place) -> dict[str, Any]:
    """Recover the rest, and return the events of the journal and the counts of the store."""
    config = place.config()
    routes = Routes(config)
    try:
        with Host(config) as host:
            for _ in range(10):
                host.recover("python")
            found = host.journal.find(limit=100_000)
            events = [host.journal.read(each.execution).entries[0].entry.body["inputs"]["event_id"] for each in found]  # type: ignore[index]
        name = read_name(routes.migration.store, "charge", config.versions["charge"], None)
        return {
            "events": events,
            "results": name.counts.results,
            "fields": [each.field for each in name.counts.top_groups()],
        }
    finally:
        routes.close()


def play_round(number: int, kills: int, folder: Path) -> dict[str, Any]:
    """Kill processes of one place, and compare what provider, journal and store have."""
    from tests.support.servers import Postgres

    shutil.rmtree(folder, ignore_errors=True)
    outside, draw = OutsideProcess(), random.Random(SEED + number)
    postgres = Postgres(durable=True) if number % 2 else None
    try:
        place = Place(folder, outside.port, None if postgres is None else postgres.new_database())
        answered, certain = 0, 0
        for life in range(kills):
            killed, answers = kill_once(place, f"{number}-{life}", _ENGINES[life % len(_ENGINES)], draw)
            answered += len(answers)
            certain += sum(at < killed - BOUND_SECONDS for _, at in answers)
        status, said = in_child(lambda: finish(place))
        assert status == 0, "the last recovery failed"
        done = outside.counts()
    finally:
        outside.close()
        if postgres is not None:
            postgres.remove()
    counted = sum(said["results"].values())
    charged = {name.removeprefix("/charge "): count for name, count in done.items() if name.startswith("/charge ")}
    problems = [f"{event} was charged {count} times" for event, count in charged.items() if count != 1]
    problems += [f"{event} is in the journal and was not charged" for event in said["events"] if event not in charged]
    problems += [f"{event} was charged unheard of" for event in charged if event not in set(said["events"])]
    problems += [f"an effect of the candidate: {name}" for name in done if not name.startswith("/charge ")]
    if not certain <= counted <= len(said["events"]):
        problems.append(f"{counted} counted of {len(said['events'])} runs, {certain} at least")
    return {
        "store": "sqlite" if postgres is None else "postgres",
        "kills": kills,
        "runs": len(said["events"]),
        "answered": answered,
        "counted": counted,
        "counted_at_least": certain,
        "results": said["results"],
        "effects_of_the_candidate": sum(not each.startswith("/charge ") for each in done),
        "problems": problems,
    }


def control(folder: Path) -> int:
    """Let the candidate perform; return the notices that the provider counts."""
    shutil.rmtree(folder, ignore_errors=True)
    outside = OutsideProcess()
    try:
        place = Place(folder, outside.port)
        CONTROL.append(place)

        def run() -> None:
            LiveCandidate.put = perform  # type: ignore[method-assign]
            with Host(place.config()) as host:
                node = place.load(host, Routes(place.config()), "python")
                for number in range(5):
                    node(event_id=f"control-{number}", card="1").unwrap()

        in_child(run)
        return sum(each.startswith("/notice ") for each in outside.counts())
    finally:
        outside.close()


def measure(folder: Path, runs: int) -> dict[str, Any]:
    """Call the name and its lead by turns; return the quantiles of each and their ratios."""
    shutil.rmtree(folder, ignore_errors=True)
    outside = OutsideProcess()
    try:
        place = Place(folder, outside.port)
        config = place.config(follow_cpu="5 %")
        routes = Routes(config)
        with Host(config) as host:
            nodes = [place.load(host, routes, "python", name) for name in ("charge", "charge_v1")]
            wall: list[list[float]] = [[], []]
            spent: list[list[float]] = [[], []]
            for number in range(runs + 100):
                for which in (0, 1) if number % 2 else (1, 0):
                    began, cpu = time.perf_counter(), time.thread_time()
                    nodes[which](event_id=f"measured-{which}-{number}", card="1").unwrap()
                    if number >= 100:
                        spent[which].append(time.thread_time() - cpu)
                        wall[which].append(time.perf_counter() - began)
        routes.close()
        name = read_name(routes_store(config), "charge", config.versions["charge"], None)
        return {
            "runs_of_each": runs,
            "followed": name.counts.compared,
            "p99_ratio": _ratio(wall, 99),
            "p50_ratio": _ratio(wall, 50),
            "p99_ratio_of_processor_time": _ratio(spent, 99),
            "p99_ms_without": round(1000 * _quantile(wall[1], 99), 3),
            "load": round(os.getloadavg()[0], 1),
        }
    finally:
        outside.close()


def routes_store(config: Config) -> Any:
    from vesper.migration.stores.store import open_store

    return open_store(config.migration_settings().store)


def _quantile(values: list[float], percent: int) -> float:
    return statistics.quantiles(values, n=100)[percent - 1]


def _ratio(values: list[list[float]], percent: int) -> float:
    return round(_quantile(values[0], percent) / _quantile(values[1], percent), 3)


# -- the campaign ---------------------------------------------------------------------------------


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--runs", type=int, default=4_000, help="of each side of the measurement")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--folder", type=lambda text: Path(text).resolve(), default=STATE / "candidates")
    parser.add_argument("--round", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.round is not None:
        print(json.dumps(play_round(given.round, given.kills, given.folder)))
        return 0
    began = time.monotonic()
    given.folder.mkdir(parents=True, exist_ok=True)
    each = min(KILLS_A_ROUND, given.kills)
    with ThreadPoolExecutor(given.jobs) as pool:
        rounds = list(pool.map(lambda number: _round(number, each, given.folder), range(-(-given.kills // each))))
    found = {
        "source_hash": whole_hash(),
        "seed": SEED,
        "kills": sum(one["kills"] for one in rounds),
        "by_store": {
            kind: sum(one["kills"] for one in rounds if one["store"] == kind) for kind in ("sqlite", "postgres")
        },
        "runs_charged_once": sum(one["runs"] for one in rounds),
        "effects_of_the_candidate": sum(one["effects_of_the_candidate"] for one in rounds),
        "results": {name: sum(one["results"][name] for one in rounds) for name in Counts().results},
        "bound_of_loss_seconds": BOUND_SECONDS,
        "counted": sum(one["counted"] for one in rounds),
        "counted_at_least": sum(one["counted_at_least"] for one in rounds),
        "control_effects": control(given.folder / "control"),
        "measured": measure(given.folder / "measured", given.runs),
        "elapsed_seconds": round(time.monotonic() - began, 1),
    }
    problems = [problem for one in rounds for problem in one["problems"]]
    if not found["control_effects"]:
        problems.append("the control, whose candidate performs, was not noticed")
    print(json.dumps(found, indent=2))
    for problem in problems[:20]:
        print(f"PROBLEM: {problem}", file=sys.stderr)
    if not problems and found["kills"] >= KILLS:
        write_json(PROOFS / "candidates.json", found)
        shutil.rmtree(given.folder)
    return int(bool(problems))


def _round(number: int, kills: int, folder: Path) -> dict[str, Any]:
    """Play a round in a process of its own, or return what it came to before."""
    kept = folder / f"round-{number}-{kills}-{whole_hash()[:12]}.json"
    if not kept.exists():
        command = [
            sys.executable,
            "-m",
            "tests.proofs.candidates.campaign",
            "--round",
            str(number),
            "--kills",
            str(kills),
        ]
        done = subprocess.run(
            [*command, "--folder", str(folder / str(number))], cwd=ROOT, check=False, capture_output=True, text=True
        )
        if done.returncode:
            raise RuntimeError(f"round {number} failed: {done.stderr[-2000:]}")
        kept.write_text(done.stdout.splitlines()[-1], encoding="utf-8")
        print(f"round {number}: {kills} kills", file=sys.stderr)
    found: dict[str, Any] = json.loads(kept.read_text("utf-8"))
    return found


if __name__ == "__main__":
    sys.exit(main())
