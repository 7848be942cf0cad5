"""`make bench-jit`: how long machine code of a node of 50 steps takes to make, and what a caller notices meanwhile.

Nodes become hot one after the other and are compiled by the thread in the background, while this thread calls another
node that is compiled already. Calls that fall into a compilation are told from the others by the counters of the
process before and after them; they are read between all calls, so that no kind of call has another neighbour.
Printed: the time of one compilation (the bar is 2 ms), and the 99th percentile of the calls of three kinds: alone,
beside a process that does nothing but turn in a circle, and during compilation. The second kind is the floor: a
neighbour that shares nothing with the caller but the machine (caches, clock, hyperthreads, the hypervisor). What
compiling costs callers by what it does is the third beside the second; the bar is 10 % where a core is free. On a
machine that does other things as well the numbers say little, and so do those of few compilations. A Python that is no
optimised build shows more of it: 1.07 to 1.20 of alone where the optimised one of the same hour showed 1.02 to 1.10.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.support.nodes import compiled, small_node  # noqa: E402  # after the path is set
from vesper.compiler import Compiled  # noqa: E402
from vesper.engines.direct_engine import DirectEngine, DirectProgram, load_documents, tier_counters  # noqa: E402
from vesper.engines.tiering import ALWAYS, Tiering  # noqa: E402

STEPS = 50
BAR_MILLISECONDS = 2.0
BAR_CALLERS = 1.10
PAYMENT = ROOT / "nodes" / "payments" / "payment_decision_v1.vsp"


def fifty_steps() -> Compiled:
    """Decimals, integers and conditions, as nodes have them; each step reads those before it."""
    lines = []
    for number in range(STEPS):
        before = f"s{number - 1}" if number else "amount"
        value = (
            f"{before} * 1.01 + 0.30",
            f"IF {before} > 1000 THEN {before} - 10 ELSE {before} + count",
            f"{before} - amount / 4",
        )[number % 3]
        lines.append(f"- {{step: s{number}, operation: compute, type: decimal, value: '{value}'}}")
    lines.append(f"- {{operation: return, success: {{result: s{STEPS - 1}}}}}")
    return small_node("amount: decimal\ncount: integer", "\n".join(lines))


def hot(node: Compiled, given: dict[str, object]) -> DirectProgram:
    program = load_documents(node.ir, [], Tiering("auto", calls=1))
    program.call(given)
    program.call(given)
    return program


def percentile(times: list[int], share: float) -> float:
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] / 1000


class Neighbour:
    """A process that turns in a circle while it is asked to, and sleeps otherwise."""

    def __init__(self, process: int) -> None:
        self._process = process

    @contextmanager
    def turning(self) -> Iterator[None]:
        os.kill(self._process, signal.SIGCONT)
        try:
            yield
        finally:
            os.kill(self._process, signal.SIGSTOP)


@contextmanager
def neighbour() -> Iterator[Neighbour]:
    with subprocess.Popen([sys.executable, "-S", "-c", "print(flush=True)\nwhile True: pass"], stdout=-1) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            os.kill(process.pid, signal.SIGSTOP)
            yield Neighbour(process.pid)
        finally:
            process.kill()


def calls_until(call: Callable[[], object], is_over: Callable[[], bool]) -> list[int]:
    """Nanoseconds of each call. What is asked between two of them stands between all of them."""
    times: list[int] = []
    while not is_over():
        begun = time.perf_counter_ns()
        call()
        times.append(time.perf_counter_ns() - begun)
    return times


def made() -> int:
    counters = tier_counters()
    return counters.compiled + counters.refused


def until(moment: int) -> Callable[[], bool]:
    """The same work as looking whether something was compiled."""
    return lambda: made() < 0 or time.perf_counter_ns() >= moment


def until_made(count: int) -> Callable[[], bool]:
    """As long as something is compiled, or not longer than ten seconds."""
    last = time.perf_counter_ns() + 10_000_000_000
    return lambda: made() >= count or time.perf_counter_ns() >= last


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000, help="how many are compiled (1000)")
    asked = parser.parse_args()
    node = fifty_steps()
    given: dict[str, object] = {"amount": Decimal("50.00"), "count": 3}
    entry = DirectEngine(ALWAYS).load(compiled(PAYMENT)).entry
    inputs = {"amount": Decimal("50.00"), "balance": Decimal("100.00"), "currency": "USD", "country": "DE"}
    inputs |= {"user_age_days": 400}
    alone, beside, during = "alone", "beside a process that turns in a circle", "during compilation"
    times: dict[str, list[int]] = {alone: [], beside: [], during: []}
    compilations: list[float] = []
    size = ""
    window = 2_000_000

    def call() -> object:
        return entry(inputs)

    with neighbour() as other:
        for _ in range(asked.nodes):
            times[alone] += calls_until(call, until(time.perf_counter_ns() + window))
            with other.turning():
                time.sleep(0)
                times[beside] += calls_until(call, until(time.perf_counter_ns() + window))
            before, known = tier_counters(), made()
            program = hot(node, given)
            times[during] += calls_until(call, until_made(known + 1))
            compilations.append((tier_counters().nanoseconds - before.nanoseconds) / 1e6)
            (tier,) = program.tier().plain.values()
            if tier.stage != "installed":
                print(f"the node is {tier.stage}: {tier.reason}", file=sys.stderr)
                return 1
            size = f"{tier.bytes} bytes and {tier.guards} guards each"
    compilations.sort()
    median = compilations[len(compilations) // 2]
    print(f"{asked.nodes} compilations of {STEPS} steps, {size}")
    print(f"  one takes {median:.2f} ms (median), {compilations[0]:.2f} ms (best); the bar is {BAR_MILLISECONDS} ms")
    for name, each in times.items():
        shown = ", ".join(f"p{share * 100:g} {percentile(each, share):.2f} us" for share in (0.5, 0.99))
        print(f"  calls {name}: {shown} ({len(each):,} calls)")
    last = {name: percentile(each, 0.99) for name, each in times.items()}
    print(f"  p99 {beside} is {last[beside] / last[alone]:.2f} of that alone: the floor of this machine at this time")
    print(
        f"  p99 during compilation is {last[during] / last[alone]:.2f} of that alone, and "
        f"{last[during] / last[beside]:.2f} of the floor; the bar is {BAR_CALLERS:.2f} where a core is free"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
