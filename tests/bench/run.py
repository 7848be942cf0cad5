"""`make bench`: the payment decision on both engines beside hand-written Python, in one run.

Rounds are interleaved, so that noise of the machine hits all alike; the best round of each counts; ratios to
hand-written Python are what to compare. On a CPython that was not built with profile-guided optimisation plain Python
looks slower than it is: the table says so.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.bench.interpreter import description  # noqa: E402  # after the path is set
from tests.bench.plain import payment_decision  # noqa: E402  # after the path is set
from vesper.codegen.module import generate_module  # noqa: E402
from vesper.compiler import compile_file  # noqa: E402
from vesper.engines.outcome import Returned  # noqa: E402
from vesper.engines.registry import ENGINES  # noqa: E402

ROUNDS = 30
SECONDS_A_ROUND = 0.03


def sample_inputs(count: int = 64) -> list[dict[str, Any]]:
    """Payments over all three price bands, some declined, some flagged."""
    source = random.Random(7)
    found = []
    for number in range(count):
        low, high = ((1, 100), (101, 1000), (1001, 5000))[number % 3]
        amount = Decimal(source.randrange(low * 100, high * 100)).scaleb(-2)
        found.append(
            {
                "amount": amount,
                "balance": max(Decimal("0.00"), amount + Decimal(source.randrange(-20000, 400000)).scaleb(-2)),
                "currency": source.choice(("USD", "EUR", "GBP")),
                "country": source.choice(("NG", "RU", "KP", "IR", "DE", "FR", "US", "GB")),
                "user_age_days": source.randrange(1, 900),
                "flagged": source.random() < 0.2,
            }
        )
    return found


def contestants() -> dict[str, Callable[[dict[str, Any]], Any]]:
    compiled, _ = compile_file(ROOT / "nodes/payments/payment_decision_v1.vsp")
    assert compiled is not None
    namespace: dict[str, Any] = {}
    exec(generate_module(compiled.node).text, namespace)
    generated = namespace[compiled.node.node_id]
    found: dict[str, Callable[[dict[str, Any]], Any]] = {
        "hand-written Python": payment_decision,
        "generated function": lambda inputs: generated(**inputs),
    }
    for name, engine in ENGINES.items():
        found[f"engine {name}"] = engine.load(compiled).call
    return found


def seconds_for(function: Callable[[dict[str, Any]], Any], inputs: list[dict[str, Any]], times: int) -> float:
    start = time.perf_counter()
    for _ in range(times):
        for each in inputs:
            function(each)
    return time.perf_counter() - start


def main() -> None:
    inputs = sample_inputs()
    functions = contestants()
    for name, function in functions.items():
        for each in inputs:
            answer = function(each)
            value = dict(answer.value) if isinstance(answer, Returned) else answer
            assert value == payment_decision(each), f"{name} is wrong on {each}"
    times = {
        name: max(1, round(SECONDS_A_ROUND / seconds_for(function, inputs, 3) * 3))
        for name, function in functions.items()
    }
    best = dict.fromkeys(functions, float("inf"))
    for _ in range(ROUNDS):
        for name, function in functions.items():
            taken = seconds_for(function, inputs, times[name]) / times[name] / len(inputs)
            best[name] = min(best[name], taken)
    print(f"payment_decision_v1, dict and Decimal in and out, {description()}")
    for name, taken in best.items():
        print(f"  {name:<20} {taken * 1e9:8.0f} ns   {taken / best['hand-written Python']:5.2f}")


if __name__ == "__main__":
    main()
