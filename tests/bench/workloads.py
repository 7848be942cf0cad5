"""The three workloads of the benchmarks: their inputs, what comes out, and how an answer is judged.

W1 decides on a payment (decimals, text, six inputs), W2 prices an order of twenty lines, W3 is a loop of 10,000 rounds
over integers and floats. Every decimal result is exact: nobody may round. `tests.bench.peers.by_hand` is the reference.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.bench.peers import by_hand

ROOT = Path(__file__).parents[2]
PLAIN = "plain Python with contracts"
"""Who all ratios are to: `peers.by_hand`."""
LINES = 20
RELATIVE = 1e-6
"""How far off a float may be that was computed in another way."""

Inputs = list[dict[str, Any]]
Function = Callable[[Any], Any]
Form = Callable[[Any], Any]


class Wrong(Exception):
    """A contestant gives another answer, or takes what it must refuse."""


@dataclass(frozen=True)
class Workload:
    title: str
    path: str
    reference: Function
    inputs: Inputs
    bad: Inputs
    """Each breaks a precondition."""
    scale: int = 0
    """Decimals that the outputs have in cents of cents, for rivals that compute with integers."""

    @property
    def file(self) -> Path:
        return ROOT / self.path


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


def orders(count: int = 16, lines: int = LINES) -> Inputs:
    """Orders of so many lines, over and under the numbers of pieces that earn a discount."""
    source = random.Random(7)
    return [
        {
            "items": [
                {
                    "qty": source.randrange(1, 3 + number % 3 * 4),
                    "unit_price": Decimal(source.randrange(99, 9000)).scaleb(-2),
                    "category": source.choice(tuple(by_hand.TAX_RATE)),
                }
                for _ in range(lines)
            ]
        }
        for number in range(count)
    ]


def _bad_orders() -> Inputs:
    (order,) = orders(1)
    first, *others = order["items"]
    return [{"items": [{**first, "qty": 0}, *others]}, {"items": [*others, {**first, "category": "boat"}]}]


W1 = Workload(
    "W1",
    "nodes/payments/payment_decision_v1.vsp",
    by_hand.payment_decision,
    payments(),
    [{**payments(1)[0], "amount": Decimal("0.00")}, {**payments(1)[0], "currency": "JPY"}],
    5,
)
W2 = Workload("W2", "nodes/orders/order_pricing_v1.vsp", by_hand.order_pricing, orders(), _bad_orders(), 4)
W3 = Workload(
    "W3",
    "nodes/numbers/numeric_loop_v1.vsp",
    by_hand.numeric_loop,
    [{"seed": 42, "n": 10_000}],
    [{"seed": 42, "n": -1}],
)
WORKLOADS = {each.title: each for each in (W1, W2, W3)}


# -- the forms in which rivals take their inputs --------------------------------------------------


def as_given(value: Any) -> Any:
    return value


def with_floats(value: Any) -> Any:
    """For rivals that have no decimals."""
    return _changed(value, float)


def in_cents(value: Any) -> Any:
    """What a careful person does who must be quick: whole hundredths."""
    return _changed(value, lambda number: int(number * 100))


def _changed(value: Any, change: Callable[[Decimal], Any]) -> Any:
    match value:
        case Decimal():
            return change(value)
        case dict():
            return {name: _changed(each, change) for name, each in value.items()}
        case list():
            return [_changed(each, change) for each in value]
        case _:
            return value


# -- who may take part ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Contestant:
    """One way to compute a workload."""

    name: str
    workload: str
    call: Function
    form: Form = as_given
    numbers: str = "decimal"
    """What it computes with: decimal, float, cents, native (integers and floats of the machine)."""
    contracts: str = "full"
    """`full`: refuses the bad inputs; `none`: does not look."""
    is_ours: bool = False

    @property
    def inputs(self) -> list[Any]:
        return [self.form(each) for each in WORKLOADS[self.workload].inputs]


def judged(contestant: Contestant) -> str:
    """`exact`, or `approx` where only floats are off by their rounding. Raises `Wrong`."""
    workload = WORKLOADS[contestant.workload]
    scale = workload.scale if contestant.form is in_cents else None
    verdicts = []
    for each in workload.inputs:
        answer = contestant.call(contestant.form(each))
        verdicts.append(_compared(answer, workload.reference(each), scale, f"{contestant.name} on {each}"))
    if contestant.contracts == "full":
        for each in workload.bad:
            try:
                contestant.call(contestant.form(each))
            except Exception:  # noqa: BLE001  # any way of refusing will do
                continue
            raise Wrong(f"{contestant.name} takes {each}, which breaks a precondition")
    return "exact" if all(each == "exact" for each in verdicts) else "approx"


def _compared(answer: Any, expected: dict[str, Any], scale: int | None, where: str) -> str:
    verdict = "exact"
    for name, wanted in expected.items():
        if name not in answer:
            raise Wrong(f"{where}: no `{name}` in the answer")
        found = answer[name]
        if scale is not None and isinstance(wanted, Decimal):
            found = Decimal(found).scaleb(-scale)
        if isinstance(found, str) and isinstance(wanted, Decimal):
            found = Decimal(found)
        if found == wanted and isinstance(found, float) == isinstance(wanted, float):
            continue
        if not isinstance(wanted, Decimal | float | int) or isinstance(wanted, bool) or isinstance(found, str):
            raise Wrong(f"{where}: `{name}` is {found!r}, not {wanted!r}")
        if abs(float(found) - float(wanted)) > RELATIVE * max(1.0, abs(float(wanted))):
            raise Wrong(f"{where}: `{name}` is {found!r}, not {wanted!r}")
        verdict = "approx"
    return verdict


def admitted(contestants: Sequence[Contestant]) -> dict[Contestant, str]:
    """Everybody with the verdict; nobody is timed who is wrong."""
    return {each: judged(each) for each in contestants}
