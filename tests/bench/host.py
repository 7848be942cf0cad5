"""What a payment order costs: `make bench-host`, or `python tests/bench/host.py [--quick] [--update]`.

Each contestant is a process that pays orders of `payment_handler_v1` against a provider in another process, with its
databases in memory: the Host in `python_only` and in `direct_only`, a plain service without a journal (httpx, tenacity,
sqlite3), and the same flow on DBOS. Rounds of all of them take turns; the cost is the processor time of the best round.
Syncs are counted on the disk, with 1 and with 16 callers.

Machines are compared through the plain service: docs/benchmarks/host-today.json has the ratios of the Host in Python
against it, `--update` writes it. The last line is JSON:

    payment_direct_vs_today   processor time of an order in direct_only, of one in python_only on the Host in Python
    payment_python_vs_today   the same of an order in python_only
    orders_per_core_vs_plain  orders that a core pays in direct_only, of those of the plain service
    orders_vs_dbos            the same, of those of DBOS; null where it is not installed
    syncs_per_order           with one caller
    keyed_step_vs_floor       a synced keyed step of the direct engine, in floors of tests/bench/effects.py
    waiting_runs              runs of 10,000 that wait for a second attempt at the same time
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.bench import effects  # noqa: E402
from tests.bench.orders.contestant import API_KEY  # noqa: E402
from tests.support.web import FakeStripeProcess  # noqa: E402

TODAY = ROOT / "docs" / "benchmarks" / "host-today.json"
ORDERS, ROUNDS, WARM = 100, 15, 300
SYNCED_ORDERS = 160
CALLERS = 16
WAITING, WAITING_SECONDS = 10_000, 60.0
COMMANDS = {
    "plain": ["plain_service"],
    "python": ["vesper_service", "python_only"],
    "direct": ["vesper_service", "direct_only"],
    "dbos": ["dbos_service"],
}


class Contestant:
    """A process that pays orders when it is asked to."""

    def __init__(self, name: str, folder: Path, url: str, environment: dict[str, str] | None = None) -> None:
        module, *arguments = COMMANDS[name]
        self._folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=folder))
        command = [sys.executable, "-m", f"tests.bench.orders.{module}", str(self._folder), url, *arguments]
        self._process = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, **(environment or {})}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True,
        )  # fmt: skip

    def pay(self, orders: int, callers: int = 1) -> dict[str, float]:
        """Return what an order took, on the clock and of the processor, in microseconds."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{orders} {callers}\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._folder.name} ended with {self._process.wait()}")
        found: dict[str, float] = json.loads(line)
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


@dataclass(frozen=True)
class Cost:
    """What an order took, in microseconds."""

    processor: float
    """Of the best round."""
    clock: float
    """Of the median round."""
    clock_together: float
    """Of the median round with 16 callers."""


def payment_costs(folder: Path, url: str, names: list[str], rounds: int) -> dict[str, Cost]:
    with ExitStack() as stack:
        contestants = {name: stack.enter_context(Contestant(name, folder, url)) for name in names}
        alone: dict[str, list[dict[str, float]]] = {name: [] for name in names}
        together: dict[str, list[dict[str, float]]] = {name: [] for name in names}
        for contestant in contestants.values():
            contestant.pay(WARM)
        for number in range(rounds):
            for name, contestant in contestants.items():
                alone[name].append(contestant.pay(ORDERS))
                if number % 3 == 0:
                    together[name].append(contestant.pay(ORDERS, CALLERS))
    return {
        name: Cost(
            min(each["processor_us"] for each in alone[name]),
            statistics.median(each["clock_us"] for each in alone[name]),
            statistics.median(each["clock_us"] for each in together[name]),
        )
        for name in names
    }


def syncs(folder: Path, url: str, name: str, callers: int) -> float:
    """Return the syncs of an order on the disk of `folder`."""
    library, counted = folder / "syncs.so", folder / f"{name}-{callers}.syncs"
    if not library.exists():
        source = ROOT / "tests" / "bench" / "orders" / "syncs.c"
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    environment = {"LD_PRELOAD": str(library.resolve()), "VESPER_SYNCS": str(counted.resolve())}
    with Contestant(name, folder, url, environment) as contestant:
        contestant.pay(CALLERS, callers)
        before = counted.stat().st_size
        contestant.pay(SYNCED_ORDERS, callers)
        return (counted.stat().st_size - before) / SYNCED_ORDERS


def waiting(folder: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.bench.orders.waiting", str(folder), str(WAITING), str(WAITING_SECONDS)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def print_costs(costs: dict[str, Cost], synced: dict[str, dict[int, float]]) -> None:
    plain = costs["plain"]
    print("an order      of the processor      on the clock   16 callers, on the clock   syncs   syncs, 16 callers")
    for name, cost in costs.items():
        ratio = f"{cost.processor:8.0f} µs {cost.processor / plain.processor:6.2f} plain"
        counts = "".join(f"{synced[name][callers]:9.2f}" if name in synced else " " * 9 for callers in (1, CALLERS))
        print(f"{name:8} {ratio} {cost.clock:14.0f} µs {cost.clock_together:19.0f} µs {counts}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true", help=f"write {TODAY.relative_to(ROOT)}")
    parser.add_argument("--quick", action="store_true", help="a third of the rounds")
    parser.add_argument("--folder", type=Path, default=ROOT.parent, help="on the disk whose syncs are counted")
    given = parser.parse_args()
    names = [name for name in COMMANDS if name != "dbos" or importlib.util.find_spec("dbos") is not None]
    memory = Path("/dev/shm")
    with ExitStack() as stack:
        fast = Path(
            stack.enter_context(tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None, prefix="orders-"))
        )
        disk = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=given.folder, prefix="orders-")))
        stripe = stack.enter_context(FakeStripeProcess("--api-key", API_KEY))
        costs = payment_costs(fast, stripe.url, names, ROUNDS // 3 if given.quick else ROUNDS)
        synced = {name: {callers: syncs(disk, stripe.url, name, callers) for callers in (1, CALLERS)} for name in names}
        keyed = effects.measured(disk, "keyed", "jit", 5 if given.quick else 15)
        waits = waiting(fast)
    print_costs(costs, synced)
    step = keyed["keyed"].floors(keyed["floor"])
    print(f"a synced keyed step: {step[0]:.2f} floors on the clock, {step[1]:.2f} of the processor")
    print(f"runs that wait: {waits['waiting']:,} of {waits['runs']:,} after {waits['seconds']} s, "
          f"{waits['threads']} threads, {waits['kib_each']} KiB each")  # fmt: skip
    plain = costs["plain"].processor
    against_plain = {f"payment_{name}_vs_plain": round(costs[name].processor / plain, 3) for name in names[1:]}
    if given.update:
        known: dict[str, Any] = {
            **against_plain,
            "syncs_per_order": {name: round(each[1], 2) for name, each in synced.items()},
            "syncs_per_order_of_16_callers": {name: round(each[CALLERS], 2) for name, each in synced.items()},
            "keyed_step_vs_floor": round(step[0], 2),
            "waiting_runs": waits,
            "plain_processor_us": round(plain),
            "python": sys.version.split()[0],
        }
        TODAY.write_text(json.dumps(known, indent=2) + "\n", encoding="utf-8")
    today = json.loads(TODAY.read_text(encoding="utf-8"))["payment_python_vs_plain"]
    direct = costs["direct"].processor
    ratios = {
        "payment_direct_vs_today": round(against_plain["payment_direct_vs_plain"] / today, 3),
        "payment_python_vs_today": round(against_plain["payment_python_vs_plain"] / today, 3),
        "orders_per_core_vs_plain": round(plain / direct, 3),
        "orders_vs_dbos": round(costs["dbos"].processor / direct, 2) if "dbos" in costs else None,
        "syncs_per_order": round(synced["direct"][1], 2),
        "keyed_step_vs_floor": round(step[0], 2),
        "waiting_runs": waits["waiting"],
    }
    print(json.dumps(ratios))
    return 0


if __name__ == "__main__":
    sys.exit(main())
