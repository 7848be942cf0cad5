"""What a journalled step costs over the least that it could cost: `python tests/bench/effects.py [FOLDER]`.

The floor is a call, `json.dumps` of a small request, and its INSERT into a SQLite table that commits at the same level
of syncing, in turns with what is measured. A step is the difference between a run with many and a run with few, divided
by the number: engine, grants, policies, the performer's call, digest and journal, all of it. `replayed` is a step that
is looked up in the journal instead. FOLDER is on the disk that is measured; the default is beside this repository.

On the clock it is the median of the rounds, of the processor the best round. A write is synced, and waits for the disk:
it is held to its bar on the clock. Of what waits for nothing the processor says what it costs, whatever else the
machine does meanwhile. Both logs have their full length before anything is measured: while one grows, a sync takes half
as long again.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from time import perf_counter_ns, thread_time_ns

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

import vesper  # noqa: E402
from tests.bench.ours import warm  # noqa: E402
from tests.bench.workloads import W1  # noqa: E402
from vesper.cli.bench.rounds import Way, interleaved, ratio  # noqa: E402
from vesper.config.settings import config_from  # noqa: E402
from vesper.effects.performer import Ask  # noqa: E402
from vesper.engines.registry import ENGINES  # noqa: E402
from vesper.host.host import Host  # noqa: E402
from vesper.migration.shadow.journal_replay import follow  # noqa: E402

NODE = """
node_id: {name}_v1
type: event_handler
intent: Ask for the same thing again and again
inputs:
  event_id: string
  orders: array<string>
outputs:
  success:
    count: integer
flow:
  - step: all
    operation: loop
    over: order IN orders
    steps:
      - step: ask
        operation: custom
        name: bench
        effect: {effect_class}
        {key}
        request: {{order: order, amount: "12.50", currency: "'EUR'", customer: "'c-99'", tax: "1.20", note: "'hello'"}}
        returns: integer
    collect: ask
  - operation: return
    success: {{count: length(all.collected)}}
security:
  capabilities_required: [effect.call.bench]
"""
PLAIN = {"order": "o-1234567", "amount": "12.50", "currency": "EUR", "customer": "c-99", "tax": "1.20", "note": "hello"}
BARS = {"keyed": 2.5, "read": 1.0, "replayed": 1.5}
PURE_BAR = 1.05
"""Nothing: both run the same code, and this is what rounds of the same differ by."""
LEVELS = {"keyed": "FULL", "read": "NORMAL"}
"""How the journal of a node is synced that does nothing else."""
FEW, MANY = 5, 105
LOG = 17 << 20
"""Bytes: more than a log has before it is moved into its file and begun anew."""


class Performer:
    """Does nothing, quickly."""

    def perform(self, ask: Ask) -> object:
        return len(ask.path)

    def probe(self, ask: Ask) -> object:
        raise AssertionError

    def close(self) -> None: ...


def made(folder: Path, effect_class: str, engine: str, host: Host) -> vesper.Node:
    path = folder / f"{effect_class}_v1.vsp"
    key = "key: order" if effect_class == "keyed" else ""
    text = NODE.format(name=effect_class, effect_class=effect_class, key=key)
    path.write_text("\n".join(line for line in text.splitlines() if line.strip()), encoding="utf-8")
    return vesper.load(path, engine=engine, host=host)


def opened(path: Path) -> sqlite3.Connection:
    """An empty file whose log has its full length for as long as the connection is open."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE large (body BLOB)")
    connection.execute("INSERT INTO large VALUES (zeroblob(?))", (LOG,))
    connection.execute("DROP TABLE large")
    connection.execute("VACUUM")
    connection.execute("PRAGMA wal_checkpoint(FULL)").fetchall()
    return connection


def floor_of(folder: Path, level: str) -> Callable[[], None]:
    connection = opened(folder / f"floor-{level}.db")
    connection.execute(f"PRAGMA synchronous = {level}")
    connection.execute("CREATE TABLE floor (id INTEGER PRIMARY KEY, body TEXT)")
    called = Performer().perform
    ask: Mapping[str, str] = PLAIN

    def floor() -> None:
        for number in range(MANY - FEW):
            len(f"{called}{number}")
            connection.execute("INSERT INTO floor (body) VALUES (?)", (json.dumps(ask),))

    return floor


class Timer:
    """What a call took in each round, in microseconds: on the clock, and of the processor."""

    def __init__(self, call: Callable[[], object]) -> None:
        self._call = call
        self.clock: list[float] = []
        self.processor: list[float] = []

    def round(self) -> None:
        clock, processor = perf_counter_ns(), thread_time_ns()
        self._call()
        self.processor.append((thread_time_ns() - processor) / 1000)
        self.clock.append((perf_counter_ns() - clock) / 1000)


class Cost:
    """What one of `MANY - FEW` steps took: on the clock in each round, and of the processor."""

    def __init__(self, many: Timer, few: Timer | None = None) -> None:
        without = [0.0] * len(many.clock) if few is None else few.clock
        self.rounds = [(more - less) / (MANY - FEW) for more, less in zip(many.clock, without, strict=True)]
        self.clock = statistics.median(self.rounds)
        self.processor = (min(many.processor) - (0.0 if few is None else min(few.processor))) / (MANY - FEW)

    def floors(self, floor: Cost) -> tuple[float, float]:
        """On the clock each round is compared with its own floor: what a disk takes changes by the second."""
        clock = statistics.median(step / least for step, least in zip(self.rounds, floor.rounds, strict=True))
        return clock, self.processor / floor.processor


def measured(folder: Path, effect_class: str, engine: str, rounds: int) -> dict[str, Cost]:
    """The floor, the step, and the step looked up."""
    path = folder / f"{effect_class}-{engine}.db"
    settings = {
        "grants": [{"nodes": ["*"], "allow": ["effect.*"]}],
        "journal": {"dsn": f"sqlite:{path}"},
        "recovery": {"enabled": False},
    }
    floor = Timer(floor_of(folder, LEVELS[effect_class]))
    with closing(opened(path)), Host(config_from(settings, folder), performers={"custom": Performer()}) as host:
        node = made(folder, effect_class, engine, host)
        program = ENGINES[engine].load(node._compiled)
        steps, again = {}, {}
        for count in (FEW, MANY):
            inputs = {"event_id": "e", "orders": [f"o-{number:07}" for number in range(count)]}
            outcome = node(inputs)
            assert outcome.ok, outcome.error
            records = [each.entry for each in host.journal.read(outcome.trace_id).entries]
            steps[count] = Timer(partial(node, inputs))
            again[count] = Timer(partial(follow, program, records))
        for _ in range(rounds):
            for timer in (floor, *steps.values(), *again.values()):
                timer.round()
    return {
        "floor": Cost(floor),
        effect_class: Cost(steps[MANY], steps[FEW]),
        "replayed": Cost(again[MANY], again[FEW]),
    }


def pure(folder: Path, engine: str) -> float:
    """What `node.call` of a node without effects takes where it has a Host with a journal, of what it takes without."""
    host = Host(config_from({"journal": {"dsn": "sqlite:journal.db"}}, folder))
    bare, hosted = (vesper.load(W1.file, engine=engine, host=each).call for each in (None, host))
    ways = {"bare": Way(bare, W1.inputs), "hosted": Way(hosted, W1.inputs)}
    for way in ways.values():
        warm(way)
    timings = interleaved(ways, seconds=2.0)
    host.close()
    assert not (folder / "journal.db").exists(), "a node without effects has made a journal"
    return ratio(timings, "hosted", "bare")


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("folder", nargs="?", type=Path, default=ROOT.parent)
    arguments.add_argument(
        "--rounds", type=int, default=15, help="of steps that are synced; ten times as many of others"
    )
    given = arguments.parse_args()
    over = []
    print("engine  level   step           on the clock          of the processor        bar")
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        for effect_class, level in LEVELS.items():
            is_synced = level == "FULL"
            for engine in ENGINES:
                within = Path(name, f"{effect_class}-{engine}")
                within.mkdir()
                found = measured(within, effect_class, engine, given.rounds * (1 if is_synced else 10))
                for what, took in found.items():
                    ratios = took.floors(found["floor"])
                    on_clock = f"{took.clock:8.1f} µs {ratios[0]:5.2f} floors"
                    of_processor = f"{took.processor:8.1f} µs {ratios[1]:5.2f} floors"
                    bar, where = BARS.get(what), 0 if what == effect_class and is_synced else 1
                    told = "" if bar is None else f"{bar} {('on the clock', 'of the processor')[where]}"
                    print(f"{engine:7} {level:7} {what:9} {on_clock}   {of_processor}   {told}")
                    if bar is not None and ratios[where] > bar:
                        over.append(f"{what} on {engine}, {level}")
        for engine in ENGINES:
            within = Path(name, f"pure-{engine}")
            within.mkdir()
            of_bare = pure(within, engine)
            print(f"{engine:7} a node without effects, with a Host: {of_bare:.3f} of without; the bar is {PURE_BAR}")
            if of_bare > PURE_BAR:
                over.append(f"a node without effects on {engine}")
    if over:
        print(f"over the bar: {'; '.join(over)}")
    return bool(over)


if __name__ == "__main__":
    sys.exit(main())
