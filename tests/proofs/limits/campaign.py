"""`make proof-limits`: limits of models, breakers and retries hold, in the machines and through a Host.

- Requests and tokens of a model, in memory and in Redis, by a clock that is moved: over minutes 16 workers use the
  limit to within 1 %, and no window holds more than rate + burst + 1 of either.
- The same through a Host against a loopback server, whole answers and streams: arrivals keep the rate, and no second of
  them holds more than rate + burst + 1 and what may arrive 100 ms late.
- A breaker of 64 threads opens at exactly its threshold and lets one probe through, in memory and in Redis.
- Status 429, 529 and time-outs are retried by an agent, 400 and 401 never; `Retry-After` is met to within 50 ms.

A whole run writes `docs/proofs/limits.json`; with `--sample` it only prints.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.proofs.limits.simulation import NOW, SECOND, Load, simulate
from tests.proofs.policies.load import THREADS, crowd
from tests.proofs.robustness.proof import ROOT, hash_of, write_proof
from tests.support.models.replies import Asked, Behaviour, Fault, Reply
from tests.support.models.server import ModelServer
from tests.support.servers import Redis
from tests.support.shared_limits import ClockedRedis, MemoryPolicyState, PolicyState, RedisPolicyState
from tests.unit.host.small import host_in, node_from
from tests.unit.policies.crowds import Clock, StillClock, at_once
from vesper.api.node import Node

NAME = "limits"
TOLERANCE = 0.01
ROUGHLY = 0.05
"""Tolerance of a sample: a request is more of a short time."""
LATEST_SECONDS = 0.05
LATENESS_SECONDS = 0.1
"""Time between the begin of a request and its arrival at a server on a busy machine."""
PER_US = 10 * SECOND
REQUESTS, BURST, TOKENS, TOKEN_BURST = 100, 10, 20_000, 16_000
OF_REQUESTS: dict[str, int] = {"rate_limit": REQUESTS, "rate_per_us": PER_US, "rate_burst": BURST}
OF_TOKENS: dict[str, int] = {"token_limit": TOKENS, "token_per_us": PER_US, "token_burst": TOKEN_BURST}

AGENT = """
node_id: asker_v1
type: agent
intent: Answer a question in one sentence
inputs: {question: string}
outputs: {success: {answer: string}}
agent: {model: main, system: Be short., messages: "{question}", max_tokens: 50}
security:
  capabilities_required: [models.call.main]
"""
STEP = """
node_id: step_v1
type: event_handler
intent: Ask a model once
inputs: {event_id: string}
outputs: {success: {answer: json}}
flow:
  - step: answer
    operation: ask_model
    model: main
    request: {messages: [{role: user, content: "{event_id}"}], max_tokens: 50}
    RETRY
  - {operation: return, success: [answer]}
security:
  capabilities_required: [models.call.main]
"""


@dataclass
class Report:
    lines: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add(self, name: str, is_right: bool, **found: Any) -> None:
        self.lines[name] = {"is_right": is_right, **found}
        print(f"{'ok   ' if is_right else 'WRONG'}  {name}: {json.dumps(found)}", flush=True)

    @property
    def is_right(self) -> bool:
        return all(each["is_right"] for each in self.lines.values())


def long_run(
    report: Report,
    where: str,
    state: PolicyState,
    seconds: float,
    tolerance: float,
    set_clock: Callable[[int], None] = lambda _: None,
) -> None:
    """Each limit alone and both together; which of two is the tighter one depends on what requests use."""
    for name, policy, used, tight in (
        ("requests", OF_REQUESTS, (50, 150), "requests"),
        ("tokens", OF_TOKENS, (100, 600), "tokens"),
        ("requests of both", {**OF_REQUESTS, **OF_TOKENS}, (50, 150), "requests"),
        ("tokens of both", {**OF_REQUESTS, **OF_TOKENS}, (150, 600), "tokens"),
    ):
        load = Load(used=used)
        found = simulate(state, name, policy, load, seconds, 7, set_clock)
        since_us = NOW + PER_US
        requests, tokens = found.rate(since_us, NOW + int(seconds * SECOND))
        limit, rate = (REQUESTS, requests) if tight == "requests" else (TOKENS, tokens)
        off = rate / (limit * SECOND / PER_US) - 1
        most_requests, most_tokens = found.fullest(PER_US)
        has_requests, has_tokens = "rate_limit" in policy, "token_limit" in policy
        is_within = not has_requests or most_requests <= REQUESTS + BURST + 1
        is_within &= not has_tokens or most_tokens <= TOKENS + TOKEN_BURST + 1
        report.add(
            f"{where}: {name}",
            is_within and abs(off) < tolerance,
            seconds=seconds,
            decisions=found.decisions,
            off_percent=round(100 * off, 3),
            fullest_requests=most_requests if has_requests else None,
            fullest_tokens=most_tokens if has_tokens else None,
        )


def machines(report: Report, url: str, seconds: float, redis_seconds: float, tolerance: float) -> None:
    long_run(report, "memory", MemoryPolicyState(), seconds, tolerance)
    shared = ClockedRedis(url, NOW, prefix="proof:")

    def set_clock(at_us: int) -> None:
        shared.at_us = at_us

    long_run(report, "Redis", shared, redis_seconds, tolerance, set_clock)
    shared.close()
    for where, state, clock in (
        ("memory", MemoryPolicyState(), StillClock()),
        ("Redis", RedisPolicyState(url, on_store_failure="refuse", timeout=30), Clock()),
    ):
        line = crowd(f"breaker, {THREADS} threads, {where}", state, clock)
        report.add(line.what, line.is_right, found=line.found)
        state.close()


# -- through a Host -------------------------------------------------------------------------------


@contextmanager
def asked_of(behaviour: Behaviour, text: str, **settings: Any) -> Iterator[tuple[ModelServer, Node]]:
    """Yield a loopback model and a node that asks it."""
    with tempfile.TemporaryDirectory() as folder, ModelServer(behaviour) as server:
        model = {"api": "ollama", "model": "m", "base_url": server.url, "allow_private_addresses": True, **settings}
        with host_in(Path(folder), {"models": {"main": model}}) as host:
            yield server, node_from(text, Path(folder), host)


def classes(report: Report) -> None:
    """What an agent does with each class of failure, under the defaults of agents."""
    for name, fault, attempts in (
        ("429", Fault(429), 3),
        ("529", Fault(529), 3),
        ("time-out", Fault(is_silent=True), 3),
        ("400", Fault(400), 1),
        ("401", Fault(401), 1),
    ):
        with asked_of(lambda _, fault=fault: fault, AGENT, timeout="300ms") as (server, node):  # type: ignore[misc]
            outcome = node(question="Why?")
            report.add(f"agent, {name}", len(server.asked) == attempts and not outcome.ok, attempts=len(server.asked))


def waits_of_server(report: Report, rounds: int) -> None:
    """How much later than `Retry-After` the next attempt arrives."""
    late: list[float] = []
    arrivals: list[float] = []

    def busy(asked: Asked) -> Reply | Fault:
        arrivals.append(time.perf_counter())
        return Fault(429, headers={"Retry-After-Ms": "250"}) if asked.number % 2 else Reply("Because.")

    retry = "retry: {attempts: 2, on: [rate_limit]}"
    with asked_of(busy, STEP.replace("RETRY", retry)) as (_, node):
        for _ in range(rounds):
            assert node(event_id="Why?").ok
            late.append(arrivals[-1] - arrivals[-2] - 0.25)
    late.sort()
    report.add(
        "Retry-After",
        late[0] >= 0 and late[len(late) // 2] < LATEST_SECONDS,
        rounds=rounds,
        earliest_ms=round(late[0] * 1000, 2),
        median_ms=round(late[len(late) // 2] * 1000, 2),
        latest_ms=round(late[-1] * 1000, 2),
        within_50_ms=sum(each < LATEST_SECONDS for each in late),
    )


def arrivals_of(report: Report, seconds: float, is_streamed: bool) -> None:
    """Requests and tokens that arrive at a server from 16 threads; the limits are counted where they begin."""
    moments: list[tuple[int, int]] = []
    lock = threading.Lock()

    def answer(asked: Asked) -> Reply:
        used = 20 + 10 * (asked.number % 5)
        with lock:
            moments.append((time.monotonic_ns() // 1000, used))
        return Reply("Because it is so.", input_tokens=used - 5, output_tokens=5)

    limits = {"requests": 40, "tokens": 8_000, "per": "1s", "burst": 4, "burst_tokens": 8_000}
    with asked_of(answer, STEP.replace("    RETRY\n", ""), limits=limits) as (server, node):
        if is_streamed:
            node.host.subscribe(runs=lambda _: None)
        end = time.monotonic() + seconds

        def work(_: int) -> None:
            while time.monotonic() < end:
                assert node(event_id="Why?").ok

        at_once(16, work)
        streamed = {each.is_streamed for each in server.asked}
    ordered = sorted(at_us for at_us, _ in moments)
    fullest = max(sum(first <= at_us < first + SECOND for at_us in ordered[n:]) for n, first in enumerate(ordered))
    rate = (len(ordered) - 4) / ((ordered[-1] - ordered[0]) / SECOND)
    # Requests begin when the limits say, and arrive up to `LATENESS_SECONDS` later.
    allowed = 40 * (1 + LATENESS_SECONDS) + 4 + 1
    off = LATENESS_SECONDS * SECOND / (ordered[-1] - ordered[0]) + TOLERANCE
    report.add(
        f"Host, 16 threads, {'streams' if is_streamed else 'whole answers'}",
        streamed == {is_streamed} and fullest <= allowed and rate <= 40 * (1 + off),
        requests=len(ordered),
        per_second=round(rate, 2),
        fullest_second=fullest,
    )


def source_hash() -> str:
    policy = ROOT / "direct_runtime" / "crates" / "vesper-host" / "src" / "policy"
    return hash_of([*policy.rglob("*.rs"), *policy.rglob("*.lua"), *Path(__file__).parent.glob("*.py")])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", action="store_true")
    is_sample = parser.parse_args().sample
    began, report, server = time.monotonic(), Report(), Redis()
    try:
        machines(report, server.url, *((60, 30, ROUGHLY) if is_sample else (1800, 300, TOLERANCE)))
    finally:
        server.remove()
    classes(report)
    waits_of_server(report, 6 if is_sample else 40)
    for is_streamed in (False, True):
        arrivals_of(report, 2 if is_sample else 20, is_streamed)
    print(f"{'all as promised' if report.is_right else 'NOT as promised'}, in {time.monotonic() - began:.0f} s")
    if not is_sample and report.is_right:
        proof = {"source_hash": source_hash(), **report.lines, "elapsed_seconds": round(time.monotonic() - began)}
        write_proof(NAME, proof)
    return 0 if report.is_right else 1


if __name__ == "__main__":
    sys.exit(main())
