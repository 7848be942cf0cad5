"""`make proof-serve`: the payment handler under `vesper serve`, while workers are killed and nodes are loaded anew.

Two workers, a provider on loopback that counts, orders at 70 % of what the service can do. Every 5 s a random worker is
killed with SIGKILL, every 15 s the supervisor gets a SIGHUP. A client without an answer sends its order again under
the same Idempotency-Key, on a new connection. Some orders are declined, some are refused for their amount, some are
sent again after their answer, some keys are used for another order. Then, by the counts of the provider and the rows
of the database:

- every paid order was charged once, and no other order;
- every answer was right, and a repeated order has the answer of the first one;
- no connection was refused.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from decimal import Decimal
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

from tests.proofs.robustness.proof import engine_hash, whole_hash, write_proof  # noqa: E402
from tests.proofs.serving.shop import SECRETS, STRIPE_KEY, make_shop, rows  # noqa: E402
from tests.support.serving import Serving, vesper_serve  # noqa: E402
from tests.support.web import FakeStripeProcess  # noqa: E402

NAME = "serve"
NODE = ROOT / "nodes" / "payments" / "payment_handler_v1.vsp"
WORKERS, CALLERS, SHARE = 2, 24, 0.7
SECONDS, KILL_SECONDS, RELOAD_SECONDS = 300.0, 5.0, 15.0
PATIENCE_SECONDS = 120.0
"""For the answer to one order, all attempts together."""
_RETRIED = {408, 429, 502, 503, 504}


class Traffic:
    """Orders, and what their callers noticed."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._local = threading.local()
        self._lock = threading.Lock()
        self._orders = 0
        self.paid: dict[str, str] = {}
        """Transaction by order."""
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.took_ms: list[float] = []
        self.resent_ms: list[float] = []
        """From the loss of a connection to the answer, of orders that were sent again."""

    def next_order(self) -> int:
        with self._lock:
            self._orders += 1
            return self._orders

    def serve(self, number: int) -> None:
        """Send one order until it has an answer, and check that."""
        order, kind = f"order-{number}", number % 50
        cents = number % 4000 + 1
        given: dict[str, Any] = {
            "order_id": order,
            "user_id": "declined" if kind == 7 else f"user {number}",
            "amount": f"{Decimal(cents) / 100}" if kind != 13 else f"{cents}.005",
        }
        status, found = self._until_answered(order, given)
        self._count(str(status))
        if kind == 7:
            if status != 402:
                self._note(f"{order} is declined: {status} {found}")
        elif kind == 13:
            if status != 422:
                self._note(f"{order} has half a cent: {status} {found}")
        elif self._is_paid(order, given, status, found):
            self.paid[order] = found["transaction_id"]
            self._ask_again(order, given, kind)

    def _is_paid(self, order: str, given: dict[str, Any], status: int, found: Any) -> bool:
        is_right = (
            status == 201
            and Decimal(found["amount_charged"]) == Decimal(given["amount"])
            and found["transaction_id"].startswith("ch_")
        )
        if not is_right:
            self._note(f"{order}: {status} {found}")
        return is_right

    def _ask_again(self, order: str, given: dict[str, Any], kind: int) -> None:
        """Repeat some orders after their answer: the same one, or another one under its key."""
        if kind in (20, 40):
            status, found = self._until_answered(order, given)
            if status != 201 or found["transaction_id"] != self.paid[order]:
                self._note(f"{order} again: {status} {found}, first {self.paid[order]}")
            self._count("repeated")
        elif kind == 30:
            status, found = self._until_answered(order, {**given, "amount": "4999.99"})
            if status not in (409, 422):
                self._note(f"another order under the key of {order}: {status} {found}")
            self._count("keys_reused")

    def _until_answered(self, key: str, given: dict[str, Any]) -> tuple[int, Any]:
        body = json.dumps(given).encode()
        until, lost_at = time.monotonic() + PATIENCE_SECONDS, None
        while True:
            try:
                status, found = self._attempt(key, body)
            except ConnectionRefusedError:
                self._count("refused_connections")
            except (OSError, http.client.HTTPException):
                self._count("unanswered")
                lost_at = lost_at or time.monotonic()
            else:
                is_final = status not in _RETRIED and not _is_running(status, found)
                if is_final or (isinstance(found, dict) and "error" in found):
                    if lost_at is not None:
                        self.resent_ms.append((time.monotonic() - lost_at) * 1e3)
                    return status, found
                self._count(f"sent_again_after_{status}")
                if time.monotonic() < until:
                    time.sleep(0.1)
                    continue
                return status, found
            if time.monotonic() > until:
                return 0, f"no answer within {PATIENCE_SECONDS:g} s"
            time.sleep(0.02)

    def _attempt(self, key: str, body: bytes) -> tuple[int, Any]:
        connection: http.client.HTTPConnection | None = getattr(self._local, "connection", None)
        self._local.connection = None
        if connection is None:
            connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE_SECONDS)
            connection.connect()
        try:
            connection.request("POST", "/payments", body, {"Content-Type": "application/json", "Idempotency-Key": key})
            response = connection.getresponse()
            found = json.loads(response.read())
        except BaseException:
            connection.close()
            raise
        if response.will_close:
            connection.close()
        else:
            self._local.connection = connection
        return response.status, found

    def _count(self, name: str) -> None:
        with self._lock:
            self.counts[name] += 1

    def _note(self, problem: str) -> None:
        with self._lock:
            self.wrong.append(problem)

    # -- load -------------------------------------------------------------------------------------

    def capacity(self, seconds: float) -> float:
        """Return the orders a second that callers without a pause get through."""
        begun = time.monotonic()
        done = self._in_threads(lambda: time.monotonic() - begun < seconds, lambda: begun)
        return done / (time.monotonic() - begun)

    def load(self, rate: float, seconds: float) -> None:
        """Send orders at a steady rate. The latency of a late one counts from its due time."""
        begun = time.monotonic()
        turns = iter(range(int(rate * seconds)))
        self.took_ms.clear()

        def due() -> float | None:
            turn = next(turns, None)
            return None if turn is None else begun + turn / rate

        self._in_threads(lambda: True, due)

    def _in_threads(self, is_open: Callable[[], bool], due: Callable[[], float | None]) -> int:
        done = [0] * CALLERS

        def work(caller: int) -> None:
            while is_open():
                with self._lock:
                    at = due()
                if at is None:
                    return
                time.sleep(max(0.0, at - time.monotonic()))
                self.serve(self.next_order())
                done[caller] += 1
                self.took_ms.append((time.monotonic() - at) * 1e3)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(CALLERS)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        return sum(done)


def _is_running(status: int, found: Any) -> bool:
    """Return True where the first request under this key is still under way."""
    return status == 409 and isinstance(found, dict) and str(found.get("type", "")).endswith("key_running")


class Trouble(threading.Thread):
    """Kills workers and has nodes loaded anew, each at its own pace, for a time."""

    def __init__(
        self, server: Serving, seconds: float, kill_seconds: float, reload_seconds: float, source: random.Random
    ) -> None:
        super().__init__(daemon=True)
        self._seconds = seconds
        self._server, self._source = server, source
        self._every = {"kills": kill_seconds, "reloads": reload_seconds}
        self._is_over = threading.Event()
        self.counts: Counter[str] = Counter()
        self.largest_mib = 0.0

    def run(self) -> None:
        begun = time.monotonic()
        next_at = {name: begun + seconds for name, seconds in self._every.items()}
        while not self._is_over.wait(max(0.0, min(next_at.values()) - time.monotonic())):
            name = min(next_at, key=lambda each: next_at[each])
            if next_at[name] > begun + self._seconds:
                return  # orders that are late then are answered in peace
            next_at[name] += self._every[name]
            self.largest_mib = max(self.largest_mib, self._server.largest_mib())
            if name == "reloads":
                self._server.process.send_signal(signal.SIGHUP)
            elif workers := self._server.workers():
                os.kill(self._source.choice(workers), signal.SIGKILL)
            else:
                name = "moments_without_worker"
            self.counts[name] += 1

    def end(self) -> None:
        self._is_over.set()
        self.join()


def run(seconds: float, kill: float, reload: float, seed: int, say: Callable[[str], None]) -> dict[str, Any]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="proof-serve-")))
        stripe = stack.enter_context(FakeStripeProcess("--api-key", STRIPE_KEY))
        dsn = f"sqlite:{folder / 'shop.db'}"
        make_shop(folder, stripe.url, dsn)
        command = vesper_serve([NODE], "--workers", str(WORKERS))
        server = stack.enter_context(Serving(command, "/readyz", folder, SECRETS))
        traffic = Traffic(server.port)
        traffic.capacity(min(2.0, seconds / 10))  # warm
        capacity = traffic.capacity(min(10.0, seconds / 5))
        say(f"{capacity:.0f} orders a second without trouble")
        trouble = Trouble(server, seconds, kill, reload, random.Random(seed))
        trouble.start()
        traffic.load(capacity * SHARE, seconds)
        trouble.end()
        if server.process.poll() is not None:
            raise RuntimeError(f"the supervisor ended with {server.process.returncode}:\n{server.text()[-4000:]}")
        took, resent = sorted(traffic.took_ms), sorted(traffic.resent_ms) or [0.0]
        return {
            "orders": traffic.next_order() - 1,
            "orders_a_second": round(capacity * SHARE, 1),
            **trouble.counts,
            "answers": dict(sorted(traffic.counts.items())),
            "p50_ms": round(took[len(took) // 2], 1),
            "p99_ms": round(took[len(took) * 99 // 100], 1),
            "longest_ms": round(took[-1], 1),
            "resent_ms": {"p50": round(resent[len(resent) // 2], 1), "longest": round(resent[-1], 1)},
            "largest_worker_mib": round(trouble.largest_mib, 1),
            "exit_code": server.stop(),
            "wrong": traffic.wrong,
            **_books(traffic.paid, stripe.counts(), dsn),
        }


def _books(paid: dict[str, str], counted: dict[str, Any], dsn: str) -> dict[str, Any]:
    """Compare what callers know with what the provider did and what the database holds."""
    charges: dict[str, int] = counted["charges_by_key"]
    recorded = dict(rows(dsn, "SELECT order_id, transaction_id FROM transactions"))
    settled = {entity for (entity,) in rows(dsn, "SELECT entity FROM vesper_states WHERE state = 'paid'")}
    return {
        "paid": len(paid),
        "charged_more_than_once": sum(count != 1 for count in charges.values()),
        "charged_without_key": counted["charges_without_key"],
        "paid_without_charge": len(paid.keys() - charges.keys()),
        "charged_without_answer": len(charges.keys() - paid.keys()),
        "recorded_otherwise": sum(recorded.get(order) != transaction for order, transaction in paid.items()),
        "not_settled": len(paid.keys() - settled),
        "refunds": counted["refunds"],
    }


_MUST_BE_ZERO = (
    *("charged_more_than_once", "charged_without_key", "paid_without_charge", "charged_without_answer"),
    *("recorded_otherwise", "not_settled", "refunds", "exit_code"),
)


def problems_of(found: dict[str, Any]) -> list[str]:
    problems = [f"{name}: {found[name]}" for name in _MUST_BE_ZERO if found[name]]
    if found["wrong"]:
        problems.append(f"{len(found['wrong'])} wrong answers: {found['wrong'][:3]}")
    if refused := found["answers"].get("refused_connections"):
        problems.append(f"{refused} connections were refused")
    problems += [f"there were no {name}" for name in ("kills", "reloads") if not found.get(name)]
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--kill-every", type=float, default=KILL_SECONDS, metavar="SECONDS")
    parser.add_argument("--reload-every", type=float, default=RELOAD_SECONDS, metavar="SECONDS")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    begun = time.monotonic()
    found = run(given.seconds, given.kill_every, given.reload_every, given.seed, lambda text: print(text, flush=True))
    found = {"source_hash": whole_hash(), "engine_hash": engine_hash(), "seed": given.seed, **found}
    found["elapsed_seconds"] = round(time.monotonic() - begun, 1)
    print(json.dumps(found, indent=2))
    problems = problems_of(found)
    for problem in problems:
        print(f"FAILED: {problem}")
    if not problems and given.seconds >= SECONDS:
        write_proof(NAME, found)
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
