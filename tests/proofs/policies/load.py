"""`python -m tests.proofs.policies.load`: the limits hold under load, in one process and over several.

- A limiter of 100 a second under 64 threads, and under four processes of 16 threads over a real Redis: what was let
  out differs by less than 1 % from rate × time (of the time in which all were at work), and no second holds more than
  rate + burst + 1. Moments are those that the state gave; who is given one sleeps until then, as the Host does.
- A breaker under 64 threads opens at its threshold and lets one probe through, in memory and over Redis.
- Every sequence of up to seven events of the breaker comes out as the reference says.
- Retry: 429, 503 and time-outs where they are listed, 400 and 401 never.

It prints a table and ends with 1 where a line of it fails.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

from tests.proofs.policies.reference import gate, rate_limit  # noqa: E402
from tests.support.servers import Redis  # noqa: E402
from tests.support.shared_limits import (  # noqa: E402
    MemoryPolicyState,
    PolicyState,
    RedisPolicyState,
)
from tests.unit.policies.breaker_reference import ALL, differences  # noqa: E402  # after the path is set
from tests.unit.policies.crowds import SECOND, Clock, StillClock, at_once, breaker_under_a_crowd, most_in_a_window  # noqa: E402
from vesper._direct import RetryMachine  # noqa: E402
from vesper.policies.retry import DEFAULT_CODES  # noqa: E402
from vesper.policies.settings import Policy  # noqa: E402

RATE, THREADS, PROCESSES = 100, 64, 4
LIMIT: Policy = {"rate_limit": RATE, "rate_per_us": SECOND}
NAME = "proof"
TOLERANCE = 0.01


@dataclass(frozen=True)
class Line:
    what: str
    found: str
    is_right: bool


@dataclass(frozen=True)
class Work:
    """What one process let out: when, by the clock of the store, and when it began and ended, by the same clock."""

    moments: list[int]
    began_us: int
    ended_us: int


def work(state: PolicyState, threads: int, seconds: float) -> Work:
    """Threads that go out as often as they may until the time is over."""
    clock = Clock()

    def one(_: int) -> tuple[list[int], int, int]:
        moments: list[int] = []
        admission = state.acquire(NAME, LIMIT, clock.now_us())
        assert admission.token is not None
        began_us = admission.token.admitted_us
        end_us = began_us + int(seconds * SECOND)
        while isinstance(admission.decision, gate.Admitted):
            assert admission.token is not None
            at_us = admission.token.admitted_us + admission.decision.wait_us
            if at_us < end_us:
                moments.append(at_us)
            clock.sleep_until_us(admission.decision.at_us)
            state.release(admission.token, None, clock.now_us())
            if at_us >= end_us:
                return moments, began_us, end_us
            admission = state.acquire(NAME, LIMIT, clock.now_us())
        raise AssertionError(f"nobody is to be rejected: {admission.decision}")

    found = at_once(threads, one)
    # A thread that began later may have gone on later: what counts is the time in which all were at work.
    began_us, ended_us = max(each[1] for each in found), min(each[2] for each in found)
    return Work([at for moments, _, _ in found for at in moments], began_us, ended_us)


def limiter(what: str, works: list[Work], tolerance: float) -> Line:
    """`tolerance` is the part of rate × time by which the count may be off. A machine that is too busy to ask lets
    less out; that more is let out shows in the fullest second whatever the tolerance."""
    began_us, ended_us = max(each.began_us for each in works), min(each.ended_us for each in works)
    everything = [at for each in works for at in each.moments]
    counted = sum(began_us <= at < ended_us for at in everything)
    took = (ended_us - began_us) / SECOND
    off = abs(counted - RATE * took)
    is_exact = took > 0 and off < tolerance * RATE * took
    fullest, most = most_in_a_window(everything, SECOND), RATE + rate_limit.DEFAULT_BURST + 1
    shown = f"{counted:,} in {took:.2f} s: off by {off:.1f} requests; fullest second {fullest} of at most {most}"
    return Line(what, shown, is_exact and fullest <= most)


def limiter_in_memory(seconds: float, tolerance: float = TOLERANCE) -> Line:
    return limiter(f"{RATE}/s, {THREADS} threads, memory", [work(MemoryPolicyState(), THREADS, seconds)], tolerance)


def limiter_in_redis(url: str, seconds: float, processes: int, tolerance: float = TOLERANCE) -> Line:
    threads = THREADS // PROCESSES
    command = [sys.executable, "-m", "tests.proofs.policies.load", "--worker", url, "--threads", str(threads)]
    workers = [
        subprocess.Popen(
            [*command, "--seconds", str(seconds)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(processes)
    ]
    for each in workers:
        assert each.stdout is not None
        each.stdout.readline()  # it has loaded all it needs
    for each in workers:
        assert each.stdin is not None
        each.stdin.write("go\n")
        each.stdin.flush()
    answers = [each.communicate(timeout=120)[0] for each in workers]
    works = [Work(**json.loads(answer)) for each, answer in zip(workers, answers, strict=True) if each.returncode == 0]
    what = f"{RATE}/s, {processes} processes × {threads} threads, Redis"
    if len(works) < processes:
        return Line(what, f"{processes - len(works)} processes failed", False)
    return limiter(what, works, tolerance)


def crowd(what: str, state: PolicyState, clock: Clock) -> Line:
    wrong = breaker_under_a_crowd(state, "proof of the breaker", THREADS, clock)
    shown = "; ".join(wrong) or "opened at exactly its threshold; one probe of all that asked, twice"
    return Line(what, shown, not wrong)


def sequences(most: int) -> Line:
    walked, wrong = 0, ""
    for path, difference in differences(ALL, most):
        walked += 1
        wrong = wrong or (difference and f"{path}: {difference}")
    return Line(f"breaker, every sequence of up to {most} events", wrong or f"{walked:,} as the reference", not wrong)


def retries() -> list[Line]:
    listed = ("timeout", "unavailable", "http_429", "http_5xx")
    cases = [
        *((listed, code, True) for code in ("http_429", "http_503", "timeout", "unavailable")),
        *((listed, code, False) for code in ("http_400", "http_401")),
        *((DEFAULT_CODES, code, False) for code in ("http_400", "http_401")),
    ]
    lines = []
    for codes, code, expected in cases:
        machine = RetryMachine({"attempts": 3, "retry_on": codes, "backoff_us": 1_000}, "read")
        is_retried = json.loads(machine.failed(code, 0, None, 0))["decision"] == "retry"
        where = "the default list" if codes == DEFAULT_CODES else "a list with 429 and 5xx"
        lines.append(Line(f"retry, {code}, {where}", "retried" if is_retried else "given up", is_retried == expected))
    return lines


def prove(seconds: float, most: int, say: Callable[[Line], None]) -> bool:
    """True where every line is right."""
    is_right = True

    def take(line: Line) -> None:
        nonlocal is_right
        is_right &= line.is_right
        say(line)

    take(limiter_in_memory(seconds))
    server = Redis()
    try:
        take(limiter_in_redis(server.url, seconds, PROCESSES))
        take(crowd(f"breaker, {THREADS} threads, memory", MemoryPolicyState(), StillClock()))
        shared = RedisPolicyState(server.url, on_store_failure="refuse", timeout=30)
        take(crowd(f"breaker, {THREADS} threads, Redis", shared, Clock()))
        shared.close()
    finally:
        server.remove()
    take(sequences(most))
    for line in retries():
        take(line)
    return is_right


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="how long each limiter is under load")
    parser.add_argument("--events", type=int, default=6, help="how long the sequences of the breaker are")
    parser.add_argument("--worker", metavar="URL", help=argparse.SUPPRESS)
    parser.add_argument("--threads", type=int, default=THREADS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        state = RedisPolicyState(given.worker, on_store_failure="refuse", timeout=30)
        print("ready", flush=True)
        sys.stdin.readline()
        done = work(state, given.threads, given.seconds)
        state.close()
        print(json.dumps({"moments": done.moments, "began_us": done.began_us, "ended_us": done.ended_us}))
        return 0
    began = time.monotonic()

    def say(line: Line) -> None:
        print(f"{'ok   ' if line.is_right else 'WRONG'}  {line.what:<46}  {line.found}", flush=True)

    is_right = prove(given.seconds, given.events, say)
    print(f"{'all is as promised' if is_right else 'NOT as promised'}, in {time.monotonic() - began:.0f} s")
    return 0 if is_right else 1


if __name__ == "__main__":
    raise SystemExit(main())
