"""`make bench-quick`: the ratios that matter, in at most forty seconds. The last line of the output is one JSON object.

A number is null where a part is not in this build; the reason is on standard error. Everybody is checked before
anybody is timed, and a wrong answer ends it without a JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.bench import batch, ours  # noqa: E402  # after the path is set
from tests.bench.peers import by_hand  # noqa: E402
from tests.bench.peers.built import FUNCTIONS  # noqa: E402
from tests.bench.peers.present import NotHere, needed  # noqa: E402
from tests.bench.workloads import PLAIN, W1, Contestant, Wrong, judged  # noqa: E402
from vesper.cli.bench.interpreter import this_interpreter  # noqa: E402
from vesper.cli.bench.rounds import Way, interleaved, ratio, time_text  # noqa: E402

KEYS = (
    "w1_vs_plain", "w2_vs_plain", "w3_vs_plain", "w1_json_vs_orjson", "w1_batch_vs_plain_call", "batch_two_threads",
    "first_call_ms", "tracing_vs_off",
)  # fmt: skip
SECONDS = 2.0
"""For each of the three workloads, JSON and tracing."""
SECONDS_OF_STARTS, SECONDS_OF_BATCHES = 6.0, 6.0


class Quick:
    """The measurements, and what they found."""

    def __init__(self, seconds: float = SECONDS, rows: int = batch.ROWS, rounds: int = 5) -> None:
        self._seconds, self._rows, self._rounds = seconds, rows, rounds
        self.found: dict[str, float | None] = dict.fromkeys(KEYS)

    def all(self) -> dict[str, float | None]:
        self._part("w1_vs_plain w2_vs_plain w3_vs_plain", self.calls)
        self._part("w1_json_vs_orjson", self.requests)
        self._part("tracing_vs_off", self.tracing)
        self._part("w1_batch_vs_plain_call batch_two_threads", self.batches)
        self._part("first_call_ms", self.first_call)
        return self.found

    def _part(self, keys: str, measure: Callable[[], None]) -> None:
        try:
            measure()
        except NotHere as problem:
            for key in keys.split():
                if self.found[key] is None:
                    print(f"{key}: null: {problem}", file=sys.stderr)

    def _note(self, key: str, value: float, said: str) -> None:
        self.found[key] = round(value, 4)
        print(f"{key:<24} {value:9.3f}   {said}")

    def calls(self) -> None:
        """`node.call` in the mode direct_only beside plain Python: dict and Decimal in and out."""
        with ours.moved_over() as moved:
            for title, ours_there in moved.items():
                plain = Contestant(PLAIN, title, getattr(by_hand, FUNCTIONS[title]))
                for each in (plain, ours_there):
                    judged(each)
                ways = {each.name: Way(each.call, each.inputs) for each in (plain, ours_there)}
                ours.warm(ways[ours.DIRECT_ONLY])
                timings = interleaved(ways, seconds=self._seconds)
                best = {name: time_text(timing.best) for name, timing in timings.items()}
                said = f"{best[ours.DIRECT_ONLY]}, plain {best[PLAIN]}, spread {timings[PLAIN].spread:.2f}"
                self._note(f"{title.lower()}_vs_plain", ratio(timings, ours.DIRECT_ONLY, PLAIN), said)

    def requests(self) -> None:
        """A request as JSON to its response, beside orjson that only reads the request."""
        loads = needed("orjson", "orjson").loads
        ways = {"run_json": Way(ours.run_json(W1), ours.requests_of(W1)), "orjson": Way(loads, ours.requests_of(W1))}
        ours.warm(ways["run_json"])
        timings = interleaved(ways, seconds=self._seconds)
        said = f"{time_text(timings['run_json'].best)}, orjson.loads {time_text(timings['orjson'].best)}"
        self._note("w1_json_vs_orjson", ratio(timings, "run_json", "orjson"), said)

    def tracing(self) -> None:
        timings = interleaved(ours.traced_ways(W1), seconds=self._seconds)
        said = f"{time_text(timings['tracing on'].best)}, off {time_text(timings['tracing off'].best)}"
        self._note("tracing_vs_off", ratio(timings, "tracing on", "tracing off"), said)

    def batches(self) -> None:
        """A batch in columns on one thread beside a plain call for each record; two threads beside one."""
        table = batch.arrow_table(self._rows)
        one = batch.ours(table, 1)
        begun = time.perf_counter()
        batch.check(one, self._rows)
        # Many rounds, and as long ones of the plain call: a neighbour on the same core, which a virtual machine cannot
        # see, takes half of it for seconds. Fewer where a batch takes seconds: the whole has forty.
        taken = time.perf_counter() - begun
        rounds = max(2, min(self._rounds * 5, int(SECONDS_OF_BATCHES / (2 * taken))))
        plain = Way(by_hand.payment_decision, W1.inputs)
        # A batch takes long enough to be disturbed: on one thread the time of the processor says the same, undisturbed.
        alone = interleaved(
            {"one": Way(one.call, [table]), "plain": plain},
            rounds=rounds, seconds_a_round=min(taken, 0.1), clock=time.process_time,
        )  # fmt: skip
        a_record, a_call = alone["one"].best / self._rows, alone["plain"].best
        said = f"{time_text(a_record)} a record of {self._rows:,}, plain {time_text(a_call)}"
        self._note("w1_batch_vs_plain_call", a_record / a_call, said)
        processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        if processors < 2:
            raise NotHere("there is one processor here")
        timings = batch.on_two_threads(table, min(batch.SECONDS_OF_THREADS, 5 * self._seconds))
        apart = ratio(timings, batch.ALONE, batch.HALVES)
        said = f"times as fast as on one; two threads that share nothing, each with half of the table: {apart:.3f}"
        self._note("batch_two_threads", ratio(timings, batch.ALONE, batch.TWO), said)

    def first_call(self) -> None:
        """What the slower engine's import, load and first call take over a Python that does nothing."""
        # A round takes a fifth of a second, and a machine may be slow for one: so many that some meet a quick one.
        timings = ours.starts(self._rounds * 5, SECONDS_OF_STARTS)
        over = {
            name: (timing.best - timings["bare Python"].best) * 1e3
            for name, timing in timings.items()
            if name.startswith("first call")
        }
        said = ", ".join(f"{name} {value:.1f} ms" for name, value in over.items())
        self._note("first_call_ms", max(over.values()), f"{said}; bare {timings['bare Python'].best * 1e3:.1f} ms")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--rows", type=int, default=batch.ROWS)
    parser.add_argument("--rounds", type=int, default=5)
    asked: Any = parser.parse_args()
    interpreter = this_interpreter()
    if not interpreter.is_optimised:
        print(
            f"error: {interpreter.executable} is {interpreter.described()}. Nothing is measured on it: run "
            "`make bench-quick`, which finds another, or name one with PYTHON=",
            file=sys.stderr,
        )
        return 1
    begun = time.perf_counter()
    print(f"{interpreter.described()}; {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
    try:
        found = Quick(asked.seconds, asked.rows, asked.rounds).all()
    except Wrong as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    print(f"{time.perf_counter() - begun:.0f} s")
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
