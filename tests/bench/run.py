"""`make bench`: three nodes on the engines beside hand-written Python with the same checks, in one run.

Rounds are short and interleaved, so that noise of the machine hits all alike; the best round of each counts; ratios to
hand-written Python are what to compare. On a CPython that was not built with profile-guided optimisation plain Python
looks slower than it is: the table says so. An engine that cannot be loaded here is left out, and the table says so too.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.bench import plain  # noqa: E402  # after the path is set
from tests.bench.interpreter import description  # noqa: E402
from vesper.compiler import Compiled, compile_file  # noqa: E402
from vesper.engines.engine import Engine  # noqa: E402
from vesper.engines.outcome import Returned  # noqa: E402
from vesper.engines.python_engine import PythonEngine  # noqa: E402

ROUNDS = 400
SECONDS_A_ROUND = 0.0015
LINES = 20
GENERATED_BAR = 1.4
"""Generated `call` against hand-written Python, for the nodes that have a bar."""

Inputs = list[dict[str, Any]]
Function = Callable[[dict[str, Any]], Any]


@dataclass(frozen=True)
class Workload:
    title: str
    path: str
    by_hand: Function
    inputs: Inputs
    has_bar: bool = True


def payments(count: int = 64) -> Inputs:
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


def orders(count: int = 16) -> Inputs:
    """Orders of twenty lines, over and under the numbers of pieces that earn a discount."""
    source = random.Random(7)
    return [
        {
            "items": [
                {
                    "qty": source.randrange(1, 3 + number % 3 * 4),
                    "unit_price": Decimal(source.randrange(99, 9000)).scaleb(-2),
                    "category": source.choice(tuple(plain.TAX_RATE)),
                }
                for _ in range(LINES)
            ]
        }
        for number in range(count)
    ]


WORKLOADS = (
    Workload("W1", "nodes/payments/payment_decision_v1.vsp", plain.payment_decision, payments()),
    Workload(f"W2, {LINES} lines", "nodes/orders/order_pricing_v1.vsp", plain.order_pricing, orders()),
    Workload("W3", "nodes/numbers/numeric_loop_v1.vsp", plain.numeric_loop, [{"seed": 42, "n": 10_000}], has_bar=False),
)


def load_engines() -> tuple[dict[str, Engine], str | None]:
    """The engines that there are in this process, and why one is missing."""
    try:
        from vesper.engines.registry import ENGINES
    except ImportError as error:
        return {"python": PythonEngine()}, f"engine interp is left out: {error}"
    return dict(ENGINES), None


def contestants(workload: Workload, compiled: Compiled, engines: dict[str, Engine]) -> dict[str, Function]:
    program = PythonEngine().load(compiled)
    typed = program.function
    found: dict[str, Function] = {
        "hand-written Python": workload.by_hand,
        "typed function": lambda inputs: typed(**inputs),
        "generated call": program.entry,
    }
    for name, engine in engines.items():
        found[f"engine {name}.call"] = engine.load(compiled).call
    return found


def seconds_for(function: Function, inputs: Inputs, times: int) -> float:
    start = time.perf_counter()
    for _ in range(times):
        for each in inputs:
            function(each)
    return time.perf_counter() - start


def measure(functions: dict[str, Function], inputs: Inputs) -> dict[str, float]:
    """Seconds for one call of each, the best of all rounds."""
    times = {
        name: max(1, round(SECONDS_A_ROUND / min(seconds_for(function, inputs, 1) for _ in range(3))))
        for name, function in functions.items()
    }
    best = dict.fromkeys(functions, float("inf"))
    for _ in range(ROUNDS):
        for name, function in functions.items():
            taken = seconds_for(function, inputs, times[name]) / times[name] / len(inputs)
            best[name] = min(best[name], taken)
    return best


def check(workload: Workload, functions: dict[str, Function]) -> None:
    """Everybody must come to the same before anybody is measured."""
    for name, function in functions.items():
        for each in workload.inputs:
            answer = function(each)
            value = dict(answer.value) if isinstance(answer, Returned) else answer
            assert value == workload.by_hand(each), f"{name} is wrong on {each}"


def main() -> None:
    engines, missing = load_engines()
    print(f"dict and Decimal in and out, {description()}")
    if missing is not None:
        print(missing)
    for workload in WORKLOADS:
        compiled, _ = compile_file(ROOT / workload.path)
        assert compiled is not None
        functions = contestants(workload, compiled, engines)
        check(workload, functions)
        best = measure(functions, workload.inputs)
        print(f"{workload.title} {compiled.node.node_id}")
        for name, taken in best.items():
            ratio = taken / best["hand-written Python"]
            bar = f"   bar {GENERATED_BAR}" if name == "generated call" and workload.has_bar else ""
            print(f"  {name:<20} {taken * 1e9:10.0f} ns   {ratio:5.2f}{bar}")


if __name__ == "__main__":
    main()
