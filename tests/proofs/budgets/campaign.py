"""`make proof-budgets`: 64 tasks make 10,000 requests inside nested budgets, and their processes are killed.

Each request is inside five budgets: of the service, of its tenant, of its run, of its node and of its step. The model
is a function that notes each charge in a file before it answers; one request in ten fails, with or without a charge.
For Redis and PostgreSQL the 64 tasks are threads of processes that are killed with SIGKILL at random moments; in
memory they are tasks of one process, and runs are cancelled at random moments.

- charged: the money that the provider has charged;
- spent: the money that the budgets count as used. It is at least what was charged, and at most the limit;
- reserved: what the budgets still hold when all leases are over. It is nothing.

It is resumable: a store that has ended is not repeated.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import signal
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))


import vesper  # noqa: E402
from tests.proofs.robustness.proof import PROOFS, STATE, engine_hash, whole_hash, write_json  # noqa: E402
from tests.proofs.waiting.places import fork, join  # noqa: E402
from tests.support.servers import Postgres, Redis  # noqa: E402
from vesper.config.settings import config_from  # noqa: E402
from vesper.host.host import Host  # noqa: E402

NAME = "budgets"
STORES = ("memory", "redis", "postgres")
TASKS = 64
TENANTS = 4
USD_PER_CALL = Decimal("0.0045")
"""The limit of the service; a request costs more on the average, so that the last ones are refused."""
LEASE_SECONDS = 6.5
"""The timeout of a step, and the time by which a lease is longer."""
SEED = 20_261_119
NODE = """\
node_id: asking_v1
type: event_handler
intent: Ask a model inside budgets.
inputs:
  event_id: string
outputs:
  success: {answer: json}
policies:
  budget: {calls: 3}
flow:
  - step: answer
    operation: ask_model
    model: main
    request:
      messages: [{role: user, content: "{event_id}"}]
      max_tokens: 100
    timeout: 1s
    budget: {usd: 0.05}
  - operation: return
    success: [answer]
security:
  capabilities_required: [models.call.main]
"""


@dataclass(frozen=True)
class Place:
    """A folder with the files of all processes, and the store of budgets."""

    folder: Path
    store: str
    url: str
    calls: int

    @property
    def limit(self) -> Decimal:
        return USD_PER_CALL * self.calls

    @property
    def tenant_limit(self) -> Decimal:
        return self.limit * 3 / 10

    def host(self) -> Host:
        in_postgres = self.store == "postgres"
        journal = self.url if in_postgres else f"sqlite:{self.folder / f'journal-{os.getpid()}.db'}"
        place = {"memory": "memory:", "postgres": "journal"}.get(self.store, self.url)
        settings = {
            "grants": [{"nodes": ["*"], "allow": ["*"]}],
            "journal": {"dsn": journal},
            "recovery": {"enabled": False},
            "policies": {"budgets": place},
            "models": {
                "main": {
                    "api": "custom",
                    "adapter": "proof_model",
                    "model": "proof",
                    "prices": {"input": "10", "output": "20"},
                }
            },
            "budgets": {
                "service": {"usd": f"{self.limit}", "alert_at": 0.5},
                "customers": {"usd": f"{self.tenant_limit:f}", "per": "tenant"},
                "single": {"calls": 5, "per": "run"},
            },
        }
        return Host(config_from(settings, self.folder))

    def node(self, host: Host) -> vesper.Node:
        return vesper.load(self.folder / "asking_v1.vsp", engine="python", host=host)


@vesper.effect("proof_model", effect_class="read", response="json")
def answer(model: str, request: dict[str, Any]) -> dict[str, Any]:
    """Answer after a short time; note the charge before."""
    draw = random.Random(os.urandom(8))
    tenant = request["messages"][-1]["content"]
    time.sleep(draw.random() * 0.004)
    kind = draw.random()
    if kind < 0.05:
        raise vesper.EffectFailed("rate_limit", "too many requests")
    usage = {"input_tokens": draw.randrange(50, 1000), "output_tokens": draw.randrange(1, 101)}
    cost = Decimal(usage["input_tokens"] * 10 + usage["output_tokens"] * 20) / 1_000_000
    if kind > 0.07:  # others fail before they are charged, and nobody can tell
        os.write(_FILES["charges"], f"{tenant} {cost}\n".encode())
    if kind < 0.1:
        raise vesper.EffectFailed("unavailable", "the connection broke", may_have_happened=True)
    return {"text": "fine", "usage": usage}


_FILES: dict[str, int] = {}
"""Files of this process by name; a line is one write."""


def open_files(place: Place) -> int:
    """Open the files of this process; return that of outcomes."""
    append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    _FILES["charges"] = os.open(place.folder / "charges", append)
    return os.open(place.folder / "outcomes", append)


def count_lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def ask(node: vesper.Node, tenant: str) -> str:
    with vesper.run_context(tenant=tenant):
        outcome = node({"event_id": tenant})
    return "returned" if outcome.error is None else str(outcome.error.code)


def work(place: Place, threads: int) -> None:
    """Make requests with so many threads until this process is killed, or enough were made."""
    outcomes = open_files(place)
    host = place.host()
    node = place.node(host)

    def repeat() -> None:
        draw = random.Random(os.urandom(8))
        while count_lines(place.folder / "outcomes") < place.calls:
            os.write(outcomes, f"{ask(node, f'tenant-{draw.randrange(TENANTS)}')}\n".encode())

    crowd = [threading.Thread(target=repeat, daemon=True) for _ in range(threads)]
    for each in crowd:
        each.start()
    for each in crowd:
        each.join()
    host.close()


def kill_workers(place: Place, kills: int, processes: int, seed: int) -> int:
    """Run the workers, and kill one after every part of the requests; return the number of kills."""
    draws = random.Random(seed)
    threads = TASKS // processes
    workers = [fork(lambda: work(place, threads)) for _ in range(processes)]
    done = 0
    for number in range(kills):
        target = place.calls * (number + 1) // (kills + 2)
        until = time.monotonic() + 60
        while count_lines(place.folder / "outcomes") < target and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(draws.random() * 0.02)
        at = draws.randrange(processes)
        os.kill(workers[at], signal.SIGKILL)
        os.waitpid(workers[at], 0)
        done += 1
        workers[at] = fork(lambda: work(place, threads))
        sys.stderr.write(f"\r{place.store}: {done} kills, {count_lines(place.folder / 'outcomes')} requests   ")
    for each in workers:
        assert join(each)
    return done


def cancel_tasks(place: Place, seed: int) -> tuple[int, dict[str, Any]]:
    """Make the requests with tasks of this process, and cancel one in twenty; return their number and the counts."""
    outcomes = open_files(place)
    cancelled = 0

    async def repeat(node: vesper.Node, number: int) -> None:
        nonlocal cancelled
        draw = random.Random(seed + number)
        for _ in range(place.calls // TASKS + 1):
            tenant = f"tenant-{draw.randrange(TENANTS)}"
            with vesper.run_context(tenant=tenant):
                run = asyncio.ensure_future(node.arun({"event_id": tenant}))
                if draw.random() < 0.05:
                    await asyncio.sleep(draw.random() * 0.02)
                    run.cancel()
                try:
                    outcome = await run
                except asyncio.CancelledError:
                    cancelled += 1
                    os.write(outcomes, b"cancelled\n")
                else:
                    code = "returned" if outcome.error is None else str(outcome.error.code)
                    os.write(outcomes, f"{code}\n".encode())

    async def all_tasks(node: vesper.Node) -> None:
        await asyncio.gather(*(repeat(node, number) for number in range(TASKS)))

    with place.host() as host:
        asyncio.run(all_tasks(place.node(host)))
        time.sleep(0.5)  # runs that were cancelled end without their caller
        return cancelled, judge(place, host)


def judge(place: Place, host: Host) -> dict[str, Any]:
    """Compare what was charged with what the budgets count."""
    charges: Counter[str] = Counter()
    for line in (place.folder / "charges").read_text().splitlines():
        tenant, cost = line.split()
        charges[tenant] += Decimal(cost)  # type: ignore[assignment]
    tenants = [f"tenant-{number}" for number in range(TENANTS)]
    counts = host.budgets.read(["named/service", *(f"tenant/customers/{each}" for each in tenants)])
    spent, reserved = [Decimal(each[0][0]) for each in counts], [each[1] for each in counts]
    limits = [place.limit, *([place.tenant_limit] * TENANTS)]
    charged = [Decimal(sum(charges.values())), *(Decimal(charges[each]) for each in tenants)]
    outcomes = Counter((place.folder / "outcomes").read_text().split())
    return {
        "requests": outcomes.total(),
        "answered": outcomes["returned"],
        "refused": outcomes["budget_exceeded"],
        "limit_usd": str(limits[0]),
        "spent_usd": str(spent[0]),
        "charged_usd": str(charged[0]),
        "over_the_limit": sum(used > limit for used, limit in zip(spent, limits, strict=True)),
        "charged_and_not_spent": sum(cost > used for cost, used in zip(charged, spent, strict=True)),
        "reserved_at_the_end": sum(each != ("0", 0, 0, 0) for each in reserved),
    }


def run_store(store: str, given: argparse.Namespace) -> dict[str, Any]:
    folder: Path = given.folder.resolve() / store
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "asking_v1.vsp").write_text(NODE)
    began = time.monotonic()
    if store == "memory":
        place = Place(folder, store, "", given.calls)
        found: list[Any] = []
        # In a process of its own: the campaign forks others, and has no threads.
        report = folder / "report.json"

        def in_memory() -> None:
            report.write_text(json.dumps(cancel_tasks(place, given.seed)))

        assert join(fork(in_memory))
        found = json.loads(report.read_text())
        result = {"cancelled": found[0], **found[1]}
    else:
        server: Any = Redis() if store == "redis" else Postgres()
        place = Place(folder, store, server.url if store == "redis" else server.new_database(), given.calls)
        kills = kill_workers(place, given.kills, given.processes, given.seed)
        time.sleep(LEASE_SECONDS)
        report = folder / "report.json"

        def read() -> None:
            with place.host() as host:
                report.write_text(json.dumps(judge(place, host)))

        assert join(fork(read))
        result = {"kills": kills, **json.loads(report.read_text())}
        server.remove()
    return {**result, "elapsed_seconds": round(time.monotonic() - began, 1)}


def problems_of(store: str, found: dict[str, Any]) -> list[str]:
    names = ("over_the_limit", "charged_and_not_spent", "reserved_at_the_end")
    wrong = [f"{store}: {name}: {found[name]}" for name in names if found[name]]
    if not found["refused"] or not found["answered"]:
        wrong.append(f"{store}: nothing was refused, or nothing answered: the limit was not reached")
    return wrong


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=10_000, help="requests for each store")
    parser.add_argument("--kills", type=int, default=20, help="of processes, for Redis and for PostgreSQL")
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--stores", nargs="*", choices=STORES, default=STORES)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--folder", type=Path, default=STATE / NAME)
    parser.add_argument("--no-write", action="store_true", help="write no docs/proofs/budgets.json")
    given = parser.parse_args(arguments)
    given.folder.mkdir(parents=True, exist_ok=True)
    state = given.folder / "state.json"
    known: dict[str, dict[str, Any]] = json.loads(state.read_text()) if state.exists() else {}
    for store in given.stores:
        if store not in known:
            known[store] = run_store(store, given)
            state.write_text(json.dumps(known))
        print(f"\n{store}: {json.dumps(known[store])}", flush=True)
    problems = [each for store, found in known.items() for each in problems_of(store, found)]
    for each in problems:
        print(f"error: {each}", file=sys.stderr)
    if not problems and not given.no_write:
        settings = {"tasks": TASKS, "nested_budgets": 5, "processes": given.processes, "seed": given.seed}
        write_json(PROOFS / f"{NAME}.json", {**settings, **known, "sources": whole_hash(), "engine": engine_hash()})
    shutil.rmtree(given.folder, ignore_errors=True)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
