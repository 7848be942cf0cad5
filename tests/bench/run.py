"""`make bench`: three nodes on both engines beside hand-written Python, in one run.

Rounds are interleaved, so that noise of the machine hits all alike; the best round of each counts; ratios to
hand-written Python are what to compare. On a CPython that was not built with profile-guided optimisation plain Python
looks slower than it is: the table says so.
"""

from __future__ import annotations

import random
import sys
import sysconfig
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.bench import plain  # noqa: E402  # after the path is set
from vesper.codegen.module import generate_module  # noqa: E402
from vesper.compiler import Compiled, compile_file  # noqa: E402
from vesper.engines.outcome import Returned  # noqa: E402
from vesper.engines.registry import ENGINES  # noqa: E402

ROUNDS = 30
SECONDS_A_ROUND = 0.03
RIVAL = "hand-written Python"

Inputs = dict[str, Any]
Function = Callable[[Any], Any]


def payments(count: int = 64) -> list[Inputs]:
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


def orders(count: int = 8, lines: int = 20) -> list[Inputs]:
    """Orders below and above the limits of discounts and shipping."""
    source = random.Random(11)
    found = []
    for number in range(count):
        most, dearest = (3, 5, 8, 20)[number % 4], 3000 if number % 2 else 1200
        items = [
            {
                "qty": source.randrange(1, most),
                "unit_price": Decimal(source.randrange(50, dearest)).scaleb(-2),
                "category": source.choice(tuple(plain.TAX_RATES)),
            }
            for _ in range(lines)
        ]
        found.append({"items": items})
    return found


WORKLOADS: dict[str, tuple[str, Function, list[Inputs]]] = {
    "payment_decision_v1": ("payments", plain.payment_decision, payments()),
    "order_pricing_v1": ("orders", plain.order_pricing, orders()),
    "numeric_loop_v1": ("numbers", plain.numeric_loop, [{"seed": 42, "n": 10_000}]),
}


def contestants(compiled: Compiled, rival: Function) -> dict[str, Function]:
    namespace: dict[str, Any] = {}
    exec(generate_module(compiled.node).text, namespace)
    generated = namespace[compiled.node.node_id]
    found: dict[str, Function] = {RIVAL: rival, "generated function": lambda inputs: generated(**inputs)}
    for name, engine in ENGINES.items():
        program = engine.load(compiled)
        found[f"engine {name}"] = program.call
        entry = getattr(program, "entry", None)
        if entry is not None:
            found[f"  {name}, entry"] = entry
    return found


def seconds_for(function: Function, inputs: list[Any], times: int) -> float:
    start = time.perf_counter()
    for _ in range(times):
        for each in inputs:
            function(each)
    return time.perf_counter() - start


def measure(functions: dict[str, Function], inputs: list[Inputs]) -> dict[str, float]:
    """The seconds of one call, in the best of the rounds."""
    times = {
        name: max(1, round(SECONDS_A_ROUND / seconds_for(function, inputs, 3) * 3))
        for name, function in functions.items()
    }
    best = dict.fromkeys(functions, float("inf"))
    for _ in range(ROUNDS):
        for name, function in functions.items():
            taken = seconds_for(function, inputs, times[name]) / times[name] / len(inputs)
            best[name] = min(best[name], taken)
    return best


def main() -> None:
    # Distributions build optimised interpreters without saying so in the configuration.
    configured = "--enable-optimizations" in str(sysconfig.get_config_var("CONFIG_ARGS"))
    optimised = configured or sys.base_prefix == "/usr"
    print(f"dict and Decimal in and out, CPython {sys.version.split()[0]}")
    if not optimised:
        print("this CPython is not a PGO build: hand-written Python is slower here than where it matters")
    for node_id, (folder, rival, inputs) in WORKLOADS.items():
        compiled, _ = compile_file(ROOT / f"nodes/{folder}/{node_id}.vsp")
        assert compiled is not None
        functions = contestants(compiled, rival)
        for name, function in functions.items():
            for each in inputs:
                answer = function(each)
                value = dict(answer.value) if isinstance(answer, Returned) else answer
                assert value == rival(each), f"{name} is wrong on {each}"
        best = measure(functions, inputs)
        print(node_id)
        for name, taken in best.items():
            print(f"  {name:<20} {taken * 1e9:10.0f} ns   {taken / best[RIVAL]:5.2f}")


if __name__ == "__main__":
    main()
