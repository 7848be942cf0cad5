"""`make proof-service`: payment_handler under load through all five modes, against a provider that counts.

The direct engine runs in worker processes that lie, abort and hang at times (`worker`). In each mode the service is
first run without faults beside Python alone, at half of what one core can do, in turns; then with them. Whatever the
engine does, each order is charged exactly once and its caller gets the right answer; every lie that was told is a
divergence, and is shrunk to a case. Evidence that takes days of traffic is written into the store beforehand: it is the
service that is tried here, not the statistics.

What Python's callers notice is measured twice: with the direct engine in the service's own process, which is what users
have who say nothing, and in processes of its own. The bar is on what Python leads; what the direct engine leads (the
canary's share, direct_only) is told beside it.

What was loaded is left to itself by Python's collector (`gc.freeze`), as in a service that looks after its slowest
requests: to look through it takes a tenth of a second, in which no thread runs, and whichever side that falls on has
its 99th percentile from it (docs/how-to/roll-out-a-node.md).

Half of what one core can do is a rate at which Python alone keeps one core busy for half of the time. It is not half of
what one thread gets through that has nobody beside it: a request then costs two thirds of what it does where threads
pass Python's lock on to one another, and six threads get through little more than that half, all cores taken.

The files stand in memory where the machine has a folder for that (`--place`). A disk that stands still for a tenth of a
second at times makes the 99th percentile of whichever side it hits; and what the two sides share is a processor.

In direct_only no path has evidence while the engine lies: with it, what leaves is not looked at but for the sample,
which is what trust is. How soon the sample finds a fault is for `make proof-controller`.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

from tests.proofs.robustness.proof import engine_hash, whole_hash, write_proof  # noqa: E402
from tests.proofs.service.measured import Measured, Turn, compared, is_decided, quantile  # noqa: E402
from tests.proofs.service.planted import lied, lied_about  # noqa: E402
from tests.support.web import FakeStripeProcess  # noqa: E402
from tests.unit.host.tables import make_tables  # noqa: E402
from tests.unit.migration.support.routed import divergences_of, put_into, state_of  # noqa: E402
from tests.unit.migration.support.wrong_engine import WrongProgram  # noqa: E402
from vesper.api.node import Node  # noqa: E402
from vesper.compiler import Compiled, compile_file  # noqa: E402
from vesper.config.settings import Config, config_from  # noqa: E402
from vesper.engines.direct_engine import DirectEngine  # noqa: E402
from vesper.engines.engine import Program  # noqa: E402
from vesper.engines.python_engine import PythonEngine  # noqa: E402
from vesper.host.host import Host  # noqa: E402
from vesper.migration.compare.comparator import Comparator  # noqa: E402
from vesper.migration.compare.journalled import journalled_transcript  # noqa: E402
from vesper.migration.compare.paths import PathNote  # noqa: E402
from vesper.migration.compare.shrinking import shrink_divergence  # noqa: E402
from vesper.migration.control.modes import LADDER, Mode  # noqa: E402
from vesper.migration.control.state import Close, Resume, Settings  # noqa: E402
from vesper.migration.router.routes import Routes  # noqa: E402
from vesper.migration.shadow.guarded_direct import PathedProgram  # noqa: E402
from vesper.migration.stores import ledger  # noqa: E402
from vesper.migration.workers.isolation import IsolatedProgram, Workers  # noqa: E402

NAME = "service"
NODE = ROOT / "nodes" / "payments" / "payment_handler_v1.vsp"
THREADS = 6
STRIPE_KEY = "sk_test_of_the_service"
MUST_BE_FOUND = {"outcome": 13, "request": 57, "fault": 111}
"""Kinds of divergence, each with an amount in cents whose fault (`planted.EVERY`) is of that kind."""
TRIES = 10
BAR_P99 = 1.10
"""Bar for the 99th percentile of Python-led requests in any mode, as a multiple of Python alone."""
HALF = 0.5
"""Share of one core that Python alone uses."""
CALIBRATIONS = 4
"""Trials of the rate before it is used."""
SETTLING = 5
"""Turns before the first one that counts."""
MORE, LOOK_EVERY = 2, 10
"""Maximum factor on the number of rounds, and the rounds between two checks whether they suffice."""
_OPERATOR = "the operator of the proof"


class TurnClock:
    """The clock of admission, which stops in turns of Python alone.

    Otherwise a mode would seem to have pauses that a real service does not have, and would follow more in them.
    """

    def __init__(self) -> None:
        self._state: tuple[float, float | None] = (0.0, None)
        """Elapsed time, and the start of the running interval; replaced as a whole, as another thread reads it."""

    def __call__(self) -> float:
        passed, since = self._state
        return passed + (0.0 if since is None else time.monotonic() - since)

    @contextmanager
    def running(self, is_running: bool) -> Iterator[None]:
        if is_running:
            self._state = self(), time.monotonic()
        try:
            yield
        finally:
            self._state = self(), None


class _Isolated(Routes):
    """Routes whose direct engine runs in these workers."""

    def __init__(self, config: Config, workers: Workers) -> None:
        super().__init__(config)
        self._planted = workers

    def _direct(self, compiled: Compiled) -> PathedProgram:
        return IsolatedProgram(compiled, self._planted)


class Service:
    def __init__(self, folder: Path, is_isolated: bool = True, follow_cpu: str | None = None) -> None:
        """`is_isolated` runs the direct engine in workers, in which faults can be planted.

        `follow_cpu` is the default of users where it is None.
        """
        self.folder = folder
        os.environ["VESPER_SECRET_STRIPE_API_KEY"] = STRIPE_KEY
        self.planted = folder / "planted"
        os.environ["VESPER_PLANTED"] = str(self.planted)
        self.provider = FakeStripeProcess("--api-key", STRIPE_KEY)
        database = f"sqlite:{folder / 'main.db'}"
        make_tables(database)
        config = config_from(
            {
                "grants": [{"nodes": ["*"], "allow": ["*"]}],
                "providers": {
                    "stripe": {
                        "base_url": self.provider.url,
                        "allow_private_addresses": True,
                        "auth": {"header": "Authorization", "value": "Bearer {secret:stripe_api_key}"},
                    }
                },
                "databases": {"main": {"dsn": database}},
                "state": {"database": "main"},
                "recovery": {"enabled": False},
                "migration": {
                    "refresh": "100ms",
                    "deadline": "500ms",
                    **({} if follow_cpu is None else {"follow_cpu": follow_cpu}),
                },
            },
            folder,
        )
        compiled, bag = compile_file(NODE)
        assert compiled is not None, bag.sorted()
        self.compiled = compiled
        self.workers = Workers(3, 0.5, max_deaths=10**6, module="tests.proofs.service.worker")
        if is_isolated:
            self.workers.start()
            assert self.workers.wait_until_up(60)
        self.host = Host(config)
        self.routes = _Isolated(config, self.workers) if is_isolated else Routes(config)
        self.clock = TurnClock()
        admission = self.routes.followers.admission
        admission._clock, admission._since = self.clock, self.clock()
        self.program = self.routes.program(compiled)
        self.node = Node(compiled, self.program, "auto", None, (), self.host)
        self._orders = 0
        self.insists_on: int | None = None
        """Amount in cents of every second order; None for the usual amounts."""
        self._lock = threading.Lock()
        self.paid: set[str] = set()
        self.notes: dict[str, PathNote] = {}

    def plant(self, is_planted: bool) -> None:
        """Turn the planted faults on or off."""
        if is_planted:
            self.planted.touch()
        else:
            self.planted.unlink(missing_ok=True)

    def planted_lies(self) -> Counter[str]:
        log = Path(f"{self.planted}.log")
        lines = log.read_text().splitlines() if log.exists() else []
        return Counter(line.partition(" ")[0] for line in dict.fromkeys(lines))

    # -- one request ------------------------------------------------------------------------------

    def order(self) -> str:
        with self._lock:
            self._orders += 1
            return f"order-{self._orders}"

    def asked(self, order: str) -> dict[str, Any]:
        number = int(order.rpartition("-")[2])
        cents = number % 4000 + 1 if self.insists_on is None or number % 2 else self.insists_on
        return {"order_id": order, "user_id": f"user {order}", "amount": Decimal(cents) / 100}

    def is_led_by_python(self, order: str) -> bool:
        """Return True where Python leads in the present mode."""
        mode = self.program.live.local.mode
        is_in_canary = self.program.chooser.is_in_canary(
            self.asked(order)
        )  # drawn in every mode: it costs in none more
        return mode is not Mode.DIRECT_ONLY and not (mode is Mode.CANARY_DIRECT and is_in_canary)

    def serve(self, order: str) -> str | None:
        """Pay for one order; return the problem of the outcome, if any."""
        asked = self.asked(order)
        amount = asked["amount"]
        outcome = self.node(**asked)
        if not outcome.ok:
            return f"{order}: {outcome.error}"
        self.paid.add(order)
        value = outcome.value
        assert value is not None
        is_right = value["amount_charged"] == amount and str(value["transaction_id"]).startswith("ch_")
        is_right = is_right and not str(value["transaction_id"]).endswith("!")
        return None if is_right else f"{order}: {value}"

    def load(self, rate: float, seconds: float) -> Measured:
        """Send requests at a steady rate. The latency of a late one counts from its due time."""
        with self.clock.running(self.program.live.local.mode is not Mode.PYTHON_ONLY):
            return self._load(rate, seconds)

    def _load(self, rate: float, seconds: float) -> Measured:
        found = Measured()
        processor = time.process_time()
        begun = time.perf_counter()
        turns = iter(range(int(rate * seconds)))
        lock = threading.Lock()

        def work() -> None:
            while True:
                with lock:
                    turn = next(turns, None)
                if turn is None:
                    return
                due = begun + turn / rate
                time.sleep(max(0.0, due - time.perf_counter()))
                order = self.order()
                wrong = self.serve(order)
                took = int((time.perf_counter() - due) * 1e6)
                is_led_by_python = self.is_led_by_python(order)
                with lock:
                    (found.by_python_us if is_led_by_python else found.by_direct_us).append(took)
                    if wrong is not None:
                        found.wrong.append(wrong)

        threads = [threading.Thread(target=work) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found.core = (time.process_time() - processor) / (time.perf_counter() - begun)
        return found

    def capacity(self, seconds: float, threads: int = 1) -> float:
        """Return the requests a second that `threads` threads complete."""
        until = time.perf_counter() + seconds
        counts = [0] * threads
        wrong: list[str] = []

        def work(number: int) -> None:
            while time.perf_counter() < until:
                wrong.extend(filter(None, [self.serve(self.order())]))
                counts[number] += 1

        workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
        for each in workers:
            each.start()
        for each in workers:
            each.join()
        assert not wrong, wrong[:3]
        return sum(counts) / seconds

    # -- the operator -----------------------------------------------------------------------------

    def into(self, mode: Mode, is_proven: bool = True) -> None:
        """Put the node into a mode, with or without evidence for the known paths."""
        self.settle()
        put_into(self.routes, self.program, mode, *(self.notes.values() if is_proven else ()))

    def settle(self) -> None:
        self.routes.followers.drain(60)
        self.routes.migration.tend(is_all=True)
        for name, text in self.routes.migration.store.paths(self.program.live.key).items():
            note = PathNote.from_text(text)
            if note.ending == "returned" or note.ending.startswith("error"):
                self.notes[name] = note

    def forgive(self, mode: Mode) -> None:
        """Close open divergences, release latches, and restore the mode."""
        store, key = self.routes.migration.store, self.program.live.key
        now = time.time_ns() // 1000
        for each in divergences_of(self.routes, self.program):
            if each.status == "open":
                ledger.apply_event(store, key, Close(each.fingerprint, _OPERATOR, "planted"), Settings(), now)
        if state_of(self.routes, self.program).latches:
            ledger.apply_event(store, key, Resume(_OPERATOR, "planted"), Settings(), now)
        self.into(mode, is_proven=False)

    def charges(self) -> Counter[str]:
        found: Any = self.provider.counts()["charges_by_key"]
        return Counter(found)

    def close(self) -> None:
        self.routes.close()
        self.host.close()
        self.workers.close()
        self.provider.close()


def memory_mib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def beside_python(service: Service, mode: Mode, rate: float, seconds: float, rounds: int) -> dict[str, Any]:
    """Run the same load in the mode and on Python alone, in turns.

    After each round the rate follows the core use of Python alone, because the machine may have become slower. If the
    rounds do not decide the bar, more are run, and all count: for a mode that looks good as well as for one that does
    not.
    """
    turns: list[Turn] = []
    rates = []
    is_judged = mode not in (Mode.PYTHON_ONLY, Mode.DIRECT_ONLY)
    if is_judged:  # until it is known how many can be followed
        service.into(mode)
        service.load(rate, SETTLING * seconds)
    while len(turns) < rounds or (
        is_judged
        and len(turns) < rounds * MORE
        and ((len(turns) - rounds) % LOOK_EVERY or not is_decided(turns, BAR_P99))
    ):
        number = len(turns)
        found = {}
        for is_alone in (True, False) if number % 2 == 0 else (False, True):
            into = Mode.PYTHON_ONLY if is_alone else mode
            service.into(into)
            found[is_alone] = service.load(rate, seconds)
            # A turn is too short for evidence to move the node.
            assert service.program.live.local.mode is into, service.program.live.local
        turns.append((found[True], found[False]))
        rates.append(rate)
        rate = found[True].rate_for(HALF, rate)
    return {
        **compared(turns),
        "rate": round(statistics.mean(rates), 1),
        "followed_share": round(service.routes.followers.admission.chance, 3),
    }


def with_faults(service: Service, mode: Mode, rate: float, seconds: float) -> dict[str, Any]:
    """Run the mode with planted faults; an operator restores the node after each fall."""
    service.into(mode, is_proven=False)
    before = service.planted_lies()
    kinds: Counter[str] = Counter()
    service.plant(True)
    stop = threading.Event()
    falls = 0

    def operate() -> None:
        nonlocal falls
        while not stop.wait(0.5):
            if service.program.live.local.mode is not mode:
                falls += 1
                service.forgive(mode)

    operator = threading.Thread(target=operate)
    operator.start()
    found = service.load(rate, seconds)
    stop.set()
    operator.join()
    service.plant(False)
    service.settle()
    for each in divergences_of(service.routes, service.program):
        kinds[each.kind] += each.count
    told = service.planted_lies() - before
    service.forgive(mode)
    return {
        "requests": found.done,
        "wrong_answers": len(found.wrong),
        "first_wrong": found.wrong[:3],
        "planted": dict(told),
        "divergences_so_far": dict(kinds),
        "falls": falls,
        "p99_us": quantile(found.all_us, 0.99),
    }


def insisted(service: Service, rate: float, seconds: float, say: Callable[[str], None]) -> dict[str, Any]:
    """Send orders with each kind of fault until a divergence of that kind is found.

    A short run or a slow machine may not meet all kinds by chance.
    """
    found: dict[str, Any] = {}
    for kind, cents in MUST_BE_FOUND.items():
        for number in range(TRIES):
            if any(each.kind == kind for each in divergences_of(service.routes, service.program)):
                break
            service.insists_on = cents
            name = f"{Mode.SHADOW_DIRECT.value}, for {kind}, {number + 1}"
            found[name] = with_faults(service, Mode.SHADOW_DIRECT, rate, seconds)
            say(f"{name} {found[name]}")
            service.insists_on = None
    return found


def shrink_all(service: Service) -> dict[str, dict[str, Any]]:
    """Shrink every divergence. A worker that died has none: there is no outcome to differ."""
    programs: dict[str, Program] = {
        "python": PythonEngine().load(service.compiled),
        "interp": WrongProgram(DirectEngine().load(service.compiled), lied, lied_about),
    }
    comparator = Comparator(service.compiled)
    found: dict[str, dict[str, Any]] = {}
    for each in divergences_of(service.routes, service.program):
        said: dict[str, Any] = {"kind": each.kind, "where": each.where, "count": each.count}
        if each.kind != "fault":
            # The node is sensitive: what it was given stands in the journal and nowhere else.
            journalled = service.host.journal.read(each.exemplars[0].execution)
            transcript = journalled_transcript([stored.entry for stored in journalled.entries])
            shrunk = shrink_divergence(service.compiled, transcript, programs, comparator)
            said |= {"size_before": shrunk.size_before, "size": shrunk.size, "case": shrunk.case}
        found[each.fingerprint] = said
    return found


@contextmanager
def service_of(is_isolated: bool, place: str | None, follow_cpu: str | None = None) -> Iterator[Service]:
    with tempfile.TemporaryDirectory(prefix="vesper-service-", dir=place) as folder:
        service = Service(Path(folder), is_isolated, follow_cpu)
        try:
            yield service
        finally:
            service.close()


def run(turn: float, rounds: int, faulty: float, place: str | None, say: Callable[[str], None]) -> dict[str, Any]:
    """Run all modes. `turn` and `faulty` are the seconds of a turn beside Python alone, and of a mode with faults.

    Latencies are measured with the default settings; with faults everything is followed, so that every fault is found.
    """
    found: dict[str, Any] = {}
    orders = 0
    for name, is_isolated in (("in_process", False), ("clean", True)):
        with service_of(is_isolated, place) as service:
            rate = warmed_up(service, turn * 8, say)
            found[name] = without_faults(service, rate, turn, rounds, say)
            charges = service.charges()
            assert set(charges.values()) == {1}, "an order was charged more than once"
            assert set(charges) == service.paid
            orders += service._orders
    with service_of(is_isolated=True, place=place, follow_cpu="100 %") as service:
        found |= _with_faults(service, turn, faulty, say)
    return {**found, "orders": orders + found["orders_with_faults"]}


def warmed_up(service: Service, seconds: float, say: Callable[[str], None]) -> float:
    """Return the requests a second that use half of one core.

    `seconds` must be long enough to even out the changing speed of the machine.
    """
    service.into(Mode.SHADOW_DIRECT)
    for _ in range(300):  # so that the usual paths are known
        assert service.serve(service.order()) is None
    service.into(Mode.PYTHON_ONLY)
    gc.unfreeze()  # of a service before this one, which is gone
    gc.collect()
    gc.freeze()
    alone, together = service.capacity(seconds / 4), service.capacity(seconds / 4, THREADS)
    rate = alone / 2
    for _ in range(CALIBRATIONS):
        tried = service.load(rate, seconds / 2 / CALIBRATIONS)
        assert not tried.wrong, tried.wrong[:3]
        rate = tried.rate_for(HALF, rate)
    say(
        f"one thread alone pays for {alone:.0f} orders a second, {THREADS} together for {together:.0f}; half of a core "
        f"is taken by {rate:.0f}, which the service is asked for"
    )
    return rate


def without_faults(
    service: Service, rate: float, seconds: float, rounds: int, say: Callable[[str], None]
) -> dict[str, Any]:
    """Measure all modes without faults, and Python beside itself as the noise of the machine."""
    found: dict[str, Any] = {}
    for mode in LADDER:
        # Nothing is held to a bar there: Python leads none of it.
        enough = rounds if mode is not Mode.DIRECT_ONLY else max(1, rounds // 3)
        found[mode.value] = beside_python(service, mode, rate, seconds, enough)
        rate = found[mode.value]["rate"]
        say(f"{mode.value:<14} {found[mode.value]}")
    return found


def _with_faults(service: Service, turn: float, seconds: float, say: Callable[[str], None]) -> dict[str, Any]:
    rate = warmed_up(service, turn * 8, say)
    faulty: dict[str, Any] = {}
    memory = {"begin": memory_mib()}
    for mode in LADDER:
        faulty[mode.value] = with_faults(service, mode, rate, seconds)
        say(f"{mode.value:<14} {faulty[mode.value]}")
        memory[mode.value] = memory_mib()
    faulty |= insisted(service, rate, max(1.0, seconds / 5), say)
    charges = service.charges()
    lost = sorted(service.paid - set(charges))
    return {
        "rate": round(rate, 1),
        "orders_with_faults": service._orders,
        "paid": len(service.paid),
        "charged_more_than_once": sum(count > 1 for count in charges.values()),
        "paid_without_charge": len(lost),
        "charged_without_being_paid": len(set(charges) - service.paid),
        "faulty": faulty,
        "planted": dict(service.planted_lies()),
        "cases": shrink_all(service),
        "memory_mib": memory,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turn", type=float, default=1.2, help="seconds of each turn beside Python alone (1.2)")
    parser.add_argument("--rounds", type=int, default=40, help="of a turn of each (40)")
    parser.add_argument("--place", default=_in_memory(), help="where the files stand (%(default)s)")
    parser.add_argument("--faulty", type=float, default=40.0, help="seconds of each mode with faults (40)")
    parser.add_argument("--sample", action="store_true", help="a few seconds in all; writes no result")
    options = parser.parse_args()
    begun = time.monotonic()
    turn, rounds, faulty = (1.0, 1, 1.0) if options.sample else (options.turn, options.rounds, options.faulty)
    found = run(turn, rounds, faulty, options.place, lambda text: print(text, flush=True))
    found = {"source_hash": whole_hash(), "engine_hash": engine_hash(), **found}
    found["elapsed_seconds"] = round(time.monotonic() - begun, 1)
    print(json.dumps(found, indent=2))
    problems = problems_of(found)
    for problem in problems:
        print(f"FAILED: {problem}")
    for line in over_the_bar(found) if not options.sample else ():  # one round says nothing of times
        print(line)
    if not options.sample and not problems:
        write_proof(NAME, summary_of(found), found)
    sys.exit(bool(problems))


_SUMMARISED = {
    "requests": "requests",
    "rate": "rate",
    "followed_share": "followed",
    "by_python_p50_of_all": "python_p50",
    "by_python_p99_of_all": "python_p99",
    "by_python_p99_of_all_from_to": "interval",
    "by_direct_p99_of_all": "direct_p99",
}
"""Figures of a mode in the summary, by their names there; percentiles are ratios to Python alone. A run with wrong
answers writes no summary."""


def summary_of(found: dict[str, Any]) -> dict[str, Any]:
    """Return counts, ratios to Python alone and kinds of divergence: one line per mode."""
    modes = {
        name: {
            mode: {short: each[key] for key, short in _SUMMARISED.items() if key in each}
            for mode, each in found[name].items()
        }
        for name in ("in_process", "clean")
    }
    charges = ("charged_more_than_once", "paid_without_charge", "charged_without_being_paid")
    return {
        **{key: found[key] for key in ("source_hash", "engine_hash", "orders", "elapsed_seconds")},
        **modes,
        "with_faults": {key: found[key] for key in ("rate", "orders_with_faults", "paid", *charges)},
        "faulty": {
            mode: {key: each[key] for key in ("requests", "wrong_answers", "planted", "falls", "p99_us")}
            for mode, each in found["faulty"].items()
        },
        "cases": [
            {key: each[key] for key in ("kind", "where", "count", "size_before", "size") if key in each}
            for each in found["cases"].values()
        ],
        "memory_mib": found["memory_mib"],
    }


def _in_memory() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def over_the_bar(found: dict[str, Any]) -> list[str]:
    """Return latencies over the bar, which also depend on the machine. They are reported, and do not fail the proof."""
    return [
        f"OVER THE BAR: {mode}, {where}: the 99th percentile of what Python leads is {ratio:.2f} of Python alone "
        f"({each['by_python_p99_of_all_from_to'][0]:.2f} to {each['by_python_p99_of_all_from_to'][1]:.2f}; the median "
        f"of rounds is {each['by_python_p99_ratio']:.2f}); the bar is {BAR_P99:.2f}"
        for where, name in (("in one process", "in_process"), ("in processes of its own", "clean"))
        for mode, each in found[name].items()
        if mode != Mode.PYTHON_ONLY.value and (ratio := each.get("by_python_p99_of_all", 0.0)) > BAR_P99
    ]


def problems_of(found: dict[str, Any]) -> list[str]:
    """Return violations that no machine excuses."""
    problems = [
        f"{name}: {found[name]}"
        for name in ("charged_more_than_once", "paid_without_charge", "charged_without_being_paid")
        if found[name]
    ]
    for mode, each in [*found["in_process"].items(), *found["clean"].items()]:
        if each["wrong"]:
            problems.append(f"{mode}, without faults: {each['wrong']} wrong answers")
    for mode, each in found["faulty"].items():
        if each["wrong_answers"]:
            problems.append(f"{mode}, with faults: {each['wrong_answers']} wrong answers: {each['first_wrong']}")
        if mode != Mode.PYTHON_ONLY.value and each["planted"] and not each["divergences_so_far"]:
            problems.append(f"{mode}: faults were planted, and nothing was found")
    kinds = {each["kind"] for each in found["cases"].values()}
    problems += [f"no divergence is of the kind {kind}" for kind in MUST_BE_FOUND if kind not in kinds]
    return problems


if __name__ == "__main__":
    main()
