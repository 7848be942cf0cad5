"""What `node(...)` costs over `node.call`: `python tests/bench/api_overhead.py`.

The same call is measured both ways, in turns, in processor time, and the best of each is compared: what else the
machine does only adds. The difference may be 1 µs. An interpreter that was built with profile-guided optimization
(Debian's, python.org's) is the one to measure with.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from time import thread_time_ns
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

import vesper  # noqa: E402  # the repository's own, wherever this is started

BUDGET_NS = 1_000
INPUTS: dict[str, Any] = {
    "amount": Decimal("50.00"),
    "balance": Decimal("100.00"),
    "currency": "USD",
    "country": "DE",
    "user_age_days": 400,
}
_ROUNDS = 200
_CALLS = 100


def nanoseconds(run: Callable[[], object]) -> float:
    start = thread_time_ns()
    for _ in range(_CALLS):
        run()
    return (thread_time_ns() - start) / _CALLS


def overhead(engine: str) -> tuple[float, float]:
    """The least time of `node.call` and of `node(...)`."""
    node = vesper.load("payment_decision", nodes=ROOT / "nodes", engine=engine)
    ways: tuple[Callable[[], object], ...] = (
        # Both build the dict of the inputs: a caller has to, one way or the other.
        lambda: node.call({**INPUTS}),
        lambda: node(**INPUTS),
    )
    samples: tuple[list[float], list[float]] = ([], [])
    for _ in range(_ROUNDS):
        for way, found in zip(ways, samples, strict=True):
            found.append(nanoseconds(way))
    return min(samples[0]), min(samples[1])


def main() -> int:
    print(f"{sys.executable}, Python {sys.version}")
    is_within = True
    for engine in ("python", "interp"):
        direct, whole = overhead(engine)
        is_within = is_within and whole - direct <= BUDGET_NS
        print(f"{engine:<8}node.call {direct:6.0f} ns   node(...) {whole:6.0f} ns   more {whole - direct:5.0f} ns")
    print(f"at most {BUDGET_NS} ns more: {'yes' if is_within else 'NO'}")
    return 0 if is_within else 1


if __name__ == "__main__":
    sys.exit(main())
