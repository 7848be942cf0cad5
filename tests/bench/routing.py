"""What routing costs: `make bench-routing`, or `python tests/bench/routing.py`.

`node.call` of a node that is being moved over is measured beside `node.call` on the bare engines, `python` and `jit`: a
few calls of each in turns, so that what else the machine does hits all alike. The direct call has its place in every
turn: the fifth of the turns in which that was quickest had the machine to themselves, and their medians are shown (the
percentiles are of all). Both sides run the same machine code. The modes are put there for the measurement, and nothing
that comes of the traffic changes them; every request is admitted where nothing else is said. What a sample of 1 % costs
is measured beside the same node without one. An interpreter built with profile-guided optimisation (Debian's,
python.org's) is the one to measure with.

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
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from time import perf_counter_ns
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

import vesper  # noqa: E402  # the repository's own, wherever this is started
from vesper.compiler import Compiled, compile_file  # noqa: E402
from vesper.engines.direct_engine import DirectEngine, DirectProgram  # noqa: E402
from vesper.host.config import config_from  # noqa: E402
from vesper.migration.decide.modes import Mode  # noqa: E402
from vesper.migration.live.routes import Routes  # noqa: E402

KEY = b"k" * 16
_WARM = 0.5
"""Seconds: what becomes machine code while it runs has done so then."""
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
    bare_p50: float
    routed_p50: float
    bare_p99: float
    routed_p99: float
    bar: str
    is_met: bool


class Bench:
    def __init__(self, work: Work, routes: Routes, turns: int) -> None:
        self._work = work
        self._turns = turns
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

    def against(self, what: str, bare: Call, bar: str, most_over: Callable[[float], float]) -> Row:
        """`most_over` is the bar in nanoseconds, from those of the direct entry, which has its turn as well."""
        inputs, calls = self._work.inputs, self._work.calls
        turns: tuple[list[float], list[float], list[float]] = ([], [], [])
        singles: tuple[list[int], list[int], list[int]] = ([], [], [])
        for number in range(self._turns):
            for way, found, single in zip((bare, self.call, self.direct), turns, singles, strict=True):
                begun = perf_counter_ns()
                for _ in range(calls):
                    way(inputs)
                found.append((perf_counter_ns() - begun) / calls)
                for _ in range(10):
                    begun = perf_counter_ns()
                    way(inputs)
                    single.append(perf_counter_ns() - begun)
            if number % 200 == 0:
                self._way_in.wait(5)
                self._way_in._route.drain()
        limit = statistics.quantiles(turns[2], n=5)[0]
        quiet = [each for each in zip(*turns, strict=True) if each[2] <= limit]
        over = statistics.median(routed - bare for bare, routed, _ in quiet)
        bare_ns, routed_ns, direct_ns = (statistics.median(each) for each in zip(*quiet, strict=True))
        (bare_p50, bare_p99), (routed_p50, routed_p99), _ = (_points(each) for each in singles)
        return Row(
            self._work.name, what, bare_ns, routed_ns, over, bare_p50, routed_p50, bare_p99, routed_p99,
            bar.format(direct=direct_ns), over <= most_over(direct_ns),
        )  # fmt: skip


def _points(found: list[int]) -> tuple[float, float]:
    ordered = sorted(found)
    return float(ordered[len(ordered) // 2]), float(ordered[len(ordered) * 99 // 100])


def small(routes: Routes, others: Routes, turns: int) -> list[Row]:
    work = Work("W1", "payments/payment_decision_v1.vsp", SMALL, 40)
    bench, unsampled = Bench(work, routes, turns), Bench(work, others, turns)
    rows = []
    bench.put(Mode.PYTHON_ONLY)
    rows.append(bench.against("python_only", bench.python, "100 ns", lambda _: 100))
    bench.put(Mode.SHADOW_DIRECT, chance=0.0)
    rows.append(bench.against("shadow, not admitted", bench.python, "100 ns", lambda _: 100))
    for mode in (Mode.SHADOW_DIRECT, Mode.DUAL_VERIFY):
        bench.put(mode)
        rows.append(bench.against(mode.value, bench.python, "{direct:.0f} + 300 ns", lambda direct: direct + 300))
    bench.put(Mode.DIRECT_ONLY)
    rows.append(bench.against("direct_only", bench.direct, "25 ns", lambda _: 25))
    bench.put(Mode.DIRECT_ONLY, 0.01)
    unsampled.put(Mode.DIRECT_ONLY)
    found = bench.against("sample of 1 %, beside none", unsampled.call, "p50 +3 %", lambda _: 0)
    rows.append(Row(**{**found.__dict__, "is_met": found.routed_p50 <= found.bare_p50 * 1.03}))
    return rows


def long(routes: Routes, turns: int) -> list[Row]:
    rows = []
    # A ten-thousandth of what 2,000 rounds take on Python is no quantity that a clock can tell: twenty are.
    bench = Bench(Work("W3", NUMBERS, {"seed": 42, "n": 20}, 10), routes, turns)
    bench.put(Mode.PYTHON_ONLY)
    rows.append(bench.against("python_only, 20 rounds", bench.python, "100 ns", lambda _: 100))
    bench = Bench(Work("W3", NUMBERS, {"seed": 42, "n": 2_000}, 1), routes, turns)
    for mode in (Mode.SHADOW_DIRECT, Mode.DUAL_VERIFY):
        bench.put(mode)
        found = bench.against(mode.value, bench.python, "p50 +5 %, p99 +10 %", lambda _: 0)
        is_met = found.routed_p50 <= found.bare_p50 * 1.05 and found.routed_p99 <= found.bare_p99 * 1.10
        rows.append(Row(**{**found.__dict__, "is_met": is_met}))
    bench.put(Mode.DIRECT_ONLY)
    rows.append(bench.against("direct_only", bench.direct, "25 ns", lambda _: 25))
    return rows


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
        rows = [*small(routes, others, turns), *long(routes, max(100, turns // 20))]
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
