"""What a journalled step costs over the least that it could cost: `python tests/bench/effects.py [FOLDER]`.

The floor is a call, `json.dumps` of a small request, and its INSERT into a SQLite table that commits at the same level
of syncing, in turns with what is measured. A step is the difference between a run with many and a run with few, divided
by the number: engine, grants, policies, the performer's call, digest and journal, all of it. `replayed` is a step that
is looked up in the journal instead. FOLDER is on the disk that is measured; the default is beside this repository.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

import vesper  # noqa: E402
from vesper.effects.performer import Ask  # noqa: E402
from vesper.engines.registry import ENGINES  # noqa: E402
from vesper.host.config import config_from  # noqa: E402
from vesper.host.host import Host  # noqa: E402
from vesper.migration.follow.following import follow  # noqa: E402

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
FEW, MANY = 5, 105


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


def floor_of(folder: Path, level: str) -> Callable[[], None]:
    connection = sqlite3.connect(folder / f"floor-{level}.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA synchronous = {level}")
    connection.execute("CREATE TABLE IF NOT EXISTS floor (id INTEGER PRIMARY KEY, body TEXT)")
    called = Performer().perform
    ask: Mapping[str, str] = PLAIN

    def floor() -> None:
        for number in range(MANY - FEW):
            len(f"{called}{number}")
            connection.execute("INSERT INTO floor (body) VALUES (?)", (json.dumps(ask),))

    return floor


def seconds(call: Callable[[], object]) -> float:
    start = perf_counter()
    call()
    return perf_counter() - start


def measured(folder: Path, effect_class: str, engine: str, rounds: int) -> dict[str, float]:
    """Microseconds a step: the floor, the step, and the step looked up."""
    settings = {
        "grants": [{"nodes": ["*"], "allow": ["effect.*"]}],
        "journal": {"dsn": f"sqlite:{folder / f'{effect_class}-{engine}.db'}"},
        "recovery": {"enabled": False},
    }
    floor = floor_of(folder, "NORMAL" if effect_class == "read" else "FULL")
    found: dict[str, list[float]] = {"floor": [], "step": [], "replayed": []}
    with Host(config_from(settings, folder), performers={"custom": Performer()}) as host:
        node = made(folder, effect_class, engine, host)
        inputs = {
            count: {"event_id": "e", "orders": [f"o-{number:07}" for number in range(count)]} for count in (FEW, MANY)
        }
        program = ENGINES[engine].load(node._compiled)
        records = {}
        for count in (FEW, MANY):
            outcome = node(inputs[count])
            assert outcome.ok, outcome.error
            records[count] = [each.entry for each in host.journal.read(outcome.trace_id).entries]
        for _ in range(rounds):
            found["floor"].append(seconds(floor))
            steps = [seconds(lambda count=count: node(inputs[count])) for count in (FEW, MANY)]  # type: ignore[misc]
            found["step"].append(steps[1] - steps[0])
            again = [seconds(lambda count=count: follow(program, records[count])) for count in (FEW, MANY)]  # type: ignore[misc]
            found["replayed"].append(again[1] - again[0])
    return {name: statistics.median(each) / (MANY - FEW) * 1e6 for name, each in found.items()}


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("folder", nargs="?", type=Path, default=ROOT.parent)
    arguments.add_argument("--rounds", type=int, default=15)
    given = arguments.parse_args()
    over = []
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        for effect_class in ("keyed", "read"):
            for engine in ENGINES:
                found = measured(Path(name), effect_class, engine, given.rounds)
                level = "NORMAL" if effect_class == "read" else "FULL"
                print(f"{effect_class} on {engine}, {level}: floor {found['floor']:.1f} µs a step")
                for what, bar in ((effect_class, BARS[effect_class]), ("replayed", BARS["replayed"])):
                    took = found["step" if what == effect_class else what]
                    ratio = took / found["floor"]
                    print(f"  {what:<9}{took:8.1f} µs  {ratio:5.2f} floors  bar {bar}")
                    if ratio > bar:
                        over.append(f"{what} on {engine}")
    if over:
        print(f"over the bar: {', '.join(over)}")
    return bool(over)


if __name__ == "__main__":
    sys.exit(main())
