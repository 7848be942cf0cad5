"""What routing costs: `make bench-routing`, or `python tests/bench/routing.py`.

`node.call` of a node that is being moved over is measured beside `node.call` on the bare engines, `python` and `jit`: a
few calls of each in turns, so that what else the machine does hits all alike. The direct call has its place in every
turn: the fifth of the turns in which that was quickest had the machine to themselves, and their medians are shown (the
percentiles are of all). All of it is gone through several times: a machine that is slow for some seconds would
otherwise be measured in whatever has its time then. Both sides run the same machine code. The modes are put there for
the measurement, and nothing that comes of the traffic changes them; every request is admitted where nothing else is
said. What a sample of 1 % costs is measured beside the same node without one. An interpreter built with profile-guided
optimisation (Debian's, python.org's) is the one to measure with.

The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from time import perf_counter_ns
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

import vesper  # noqa: E402  # the repository's own, wherever this is started
from vesper.compiler import Compiled, compile_file  # noqa: E402
from vesper.config.settings import config_from  # noqa: E402
from vesper.engines.direct_engine import DirectEngine, DirectProgram  # noqa: E402
from vesper.migration.control.modes import Mode  # noqa: E402
from vesper.migration.router.routes import Routes  # noqa: E402

KEY = b"k" * 16
_WARM = 0.5
"""Seconds: what becomes machine code while it runs has done so then."""
_PASSES = 4
SMALL: dict[str, Any] = {
    "amount": Decimal("50.00"),
    "balance": Decimal("100.00"),
    "currency": "USD",
    "country": "DE",
    "user_age_days": 400,
}
NUMBERS = "numbers/numeric_loop_v1.vsp"
Call = Callable[[dict[str, Any]], object]


@dataclass(frozen=True)
class Work:
    name: str
    path: str
    inputs: dict[str, Any]
    calls: int
    """In one turn."""


@dataclass(frozen=True)
class Row:
    work: str
    what: str
    bare_ns: float
    routed_ns: float
    over_ns: float
    direct_ns: float
    bare_p50: float
    routed_p50: float
    bare_p99: float
    routed_p99: float
    bar: str
    is_met: bool = False


class Bench:
    def __init__(self, work: Work, routes: Routes) -> None:
        self._work = work
        self.name = work.name
        path = ROOT / "nodes" / work.path
        compiled, bag = compile_file(path)
        assert compiled is not None, bag.sorted()
        self.compiled: Compiled = compiled
        self._pathed: DirectProgram = DirectEngine().load(compiled)
        self.python: Call = vesper.load(path).call
        self.direct: Call = vesper.load(path, engine="jit").call
        self._program = routes.program(compiled)
        self.call: Call = vesper.load(path, engine="auto", routes=routes).call
        way_in = self._program._way_in
        assert way_in is not None
        self._way_in = way_in
        # The mode and the chance are what `put` says, whatever comes of the traffic.
        self._program.live.listeners.clear()
        routes.followers.admission.listeners.clear()

    def put(self, mode: Mode, sample: float = 0.0, chance: float = 1.0) -> None:
        path = self._pathed.call_pathed(self._work.inputs, KEY).path
        self._way_in._route.set(mode.level, [path], KEY, sample)
        self._way_in._route.admit(chance)
        for way in (self.direct, self.call):
            until, count = perf_counter_ns() + int(_WARM * 1e9), 0
            while count < 600 or perf_counter_ns() < until:  # the first ones of a path are looked at closely
                way(self._work.inputs)
                count += 1
        self._way_in.drain()

    def measure(self, bare: Call, found: Times, turns: int) -> None:
        """The direct entry has its turn as well."""
        inputs, calls = self._work.inputs, self._work.calls
        for number in range(turns):
            taken = []
            for way, single in zip((bare, self.call, self.direct), found.singles, strict=True):
                begun = perf_counter_ns()
                for _ in range(calls):
                    way(inputs)
                taken.append((perf_counter_ns() - begun) / calls)
                for _ in range(10):
                    begun = perf_counter_ns()
                    way(inputs)
                    single.append(perf_counter_ns() - begun)
            found.turns.append((taken[0], taken[1], taken[2]))
            if number % 200 == 0:
                self._way_in.wait(5)
                self._way_in._route.drain()


class Times:
    """Of the bare engine, the routed node and the direct entry."""

    def __init__(self) -> None:
        self.turns: list[tuple[float, float, float]] = []
        self.singles: tuple[list[int], list[int], list[int]] = ([], [], [])


@dataclass(frozen=True)
class Case:
    what: str
    bench: Bench
    bare: Call
    put: Callable[[], None]
    turns: int
    bar: str
    is_met: Callable[[Row], bool]
    times: Times = field(default_factory=Times)

    def measure(self) -> None:
        self.put()
        self.bench.measure(self.bare, self.times, self.turns // _PASSES)

    def row(self) -> Row:
        limit = statistics.quantiles([direct for _, _, direct in self.times.turns], n=5)[0]
        quiet = [each for each in self.times.turns if each[2] <= limit]
        over = statistics.median(routed - bare for bare, routed, _ in quiet)
        bare_ns, routed_ns, direct_ns = (statistics.median(each) for each in zip(*quiet, strict=True))
        (bare_p50, bare_p99), (routed_p50, routed_p99), _ = (_points(each) for each in self.times.singles)
        row = Row(
            self.bench.name, self.what, bare_ns, routed_ns, over, direct_ns, bare_p50, routed_p50, bare_p99, routed_p99,
            self.bar.format(direct=direct_ns),
        )  # fmt: skip
        return replace(row, is_met=self.is_met(row))


def _points(found: list[int]) -> tuple[float, float]:
    ordered = sorted(found)
    return float(ordered[len(ordered) // 2]), float(ordered[len(ordered) * 99 // 100])


def cases(routes: Routes, others: Routes, turns: int) -> list[Case]:
    small = Work("W1", "payments/payment_decision_v1.vsp", SMALL, 40)
    w1, unsampled = Bench(small, routes), Bench(small, others)
    # A ten-thousandth of what 2,000 rounds take on Python is no quantity that a clock can tell: twenty are.
    short = Bench(Work("W3", NUMBERS, {"seed": 42, "n": 20}, 10), routes)
    w3 = Bench(Work("W3", NUMBERS, {"seed": 42, "n": 2_000}, 1), routes)
    few = max(100, turns // 10)

    def sampled() -> None:
        w1.put(Mode.DIRECT_ONLY, 0.01)
        unsampled.put(Mode.DIRECT_ONLY)

    def of(bench: Bench, mode: Mode, chance: float = 1.0) -> Callable[[], None]:
        return lambda: bench.put(mode, chance=chance)

    def at_most(nanoseconds: int) -> tuple[str, Callable[[Row], bool]]:
        return f"{nanoseconds} ns", lambda row: row.over_ns <= nanoseconds

    beside_direct = ("{direct:.0f} + 300 ns", lambda row: row.over_ns <= row.direct_ns + 300)
    beside_python = (
        "p50 +5 %, p99 +10 %",
        lambda row: row.routed_p50 <= row.bare_p50 * 1.05 and row.routed_p99 <= row.bare_p99 * 1.10,
    )
    sample = ("p50 +3 %", lambda row: row.routed_p50 <= row.bare_p50 * 1.03)
    shadow, dual = Mode.SHADOW_DIRECT, Mode.DUAL_VERIFY
    return [
        Case("python_only", w1, w1.python, of(w1, Mode.PYTHON_ONLY), turns, *at_most(100)),
        Case("shadow, not admitted", w1, w1.python, of(w1, shadow, chance=0.0), turns, *at_most(100)),
        Case(shadow.value, w1, w1.python, of(w1, shadow), turns, *beside_direct),
        Case(dual.value, w1, w1.python, of(w1, dual), turns, *beside_direct),
        Case("direct_only", w1, w1.direct, of(w1, Mode.DIRECT_ONLY), turns, *at_most(25)),
        Case("sample of 1 %, beside none", w1, unsampled.call, sampled, turns, *sample),
        Case("python_only, 20 rounds", short, short.python, of(short, Mode.PYTHON_ONLY), turns, *at_most(100)),
        Case(shadow.value, w3, w3.python, of(w3, shadow), few, *beside_python),
        Case(dual.value, w3, w3.python, of(w3, dual), few, *beside_python),
        Case("direct_only", w3, w3.direct, of(w3, Mode.DIRECT_ONLY), turns, *at_most(25)),
    ]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--turns", type=int, default=4_000)
    turns = parser.parse_args().turns
    os.environ["PYTHONPATH"] = str(ROOT)  # for the process that follows calls
    print(f"{sys.executable}, Python {sys.version}")
    with tempfile.TemporaryDirectory() as folder:
        settings = {"migration": {"refresh": "10s", "follow_cpu": "100%"}}
        folders = [Path(folder) / each for each in ("routed", "unsampled")]
        for each in folders:
            each.mkdir()  # without a store there is no key of fingerprints, and each close look is a fault
        routes, others = (Routes(config_from(settings, each)) for each in folders)
        found = cases(routes, others, turns)
        for _ in range(_PASSES):
            for case in found:
                case.measure()
        rows = [case.row() for case in found]
        routes.close()
        others.close()
    print(f"{'':4} {'':28} {'bare':>10} {'routed':>10} {'over':>9}   {'p50':>19}   {'p99':>19}   bar")
    for row in rows:
        print(
            f"{row.work:4} {row.what:28} {row.bare_ns:10.0f} {row.routed_ns:10.0f} {row.over_ns:+9.0f}   "
            f"{row.bare_p50:9.0f} {row.routed_p50:9.0f}   {row.bare_p99:9.0f} {row.routed_p99:9.0f}   "
            f"{row.bar}: {'met' if row.is_met else 'NOT MET'}"
        )
    print(json.dumps([row.__dict__ for row in rows]))
    return 0 if all(row.is_met for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
