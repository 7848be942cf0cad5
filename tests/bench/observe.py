"""Measure an unsampled pure call with and without counting: `make bench-observe`. The last line is JSON.

The uncounted call is the same entry without its series: `Entry` of the direct engine, the generated function of Python.
Rounds interleave, and each ratio is one of medians over rounds of processor time.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from time import process_time_ns

import vesper
from vesper._direct import CountedCall

MAX_RATIO = 1.05
ROUNDS, CALLS = 41, 20_000
NODE = Path(__file__).parents[2] / "nodes" / "payments" / "payment_decision_v1.vsp"
INPUTS = {
    "amount": Decimal("50.00"),
    "balance": Decimal("100.00"),
    "currency": "USD",
    "country": "DE",
    "user_age_days": 400,
}


def _measure(call: Callable[..., object], given: object) -> int:
    began = process_time_ns()
    for _ in range(CALLS):
        call(given)
    return process_time_ns() - began


def _ratio(plain: Callable[..., object], counted: Callable[..., object], given: object) -> float:
    for call in (plain, counted):
        _measure(call, given)  # machine code is made
    rounds = [(_measure(plain, given), _measure(counted, given)) for _ in range(ROUNDS)]
    before, after = (statistics.median(times) for times in zip(*rounds, strict=True))
    print(f"  {before / CALLS:7.1f} ns without, {after / CALLS:7.1f} ns with counting")
    return float(round(after / before, 3))


def main() -> int:
    direct, python = vesper.load(NODE, engine="jit"), vesper.load(NODE)
    text = json.dumps(INPUTS, default=str).encode()
    ratios = {
        "direct_json": _ratio(direct._program.run_json, direct.run_json, text),  # type: ignore[attr-defined]  # a `DirectProgram`
        "python": _ratio(
            python._program.entry,  # type: ignore[attr-defined]  # a `PythonProgram`
            CountedCall(python._program.entry, python.id, "python").call,  # type: ignore[attr-defined]
            INPUTS,
        ),
    }
    print(json.dumps({"ratios": ratios, "bar": MAX_RATIO}))
    return 0 if max(ratios.values()) <= MAX_RATIO else 1


if __name__ == "__main__":
    sys.exit(main())
