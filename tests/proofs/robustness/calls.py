"""The kinds of calls that the proofs of memory and threads make of the Rust engine, good ones and bad ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.bench.workloads import orders, payments
from tests.support.nodes import PAYMENT_DECISION, ROOT, compiled, small_node
from vesper.engines.direct_engine import DirectEngine, DirectProgram
from vesper.engines.outcome import ContractBroken, EngineFault, Failed, Returned
from vesper.kernels import raised
from vesper.verify.inputs.responses import run_case


@dataclass(frozen=True)
class Kind:
    """A kind of call. `make` is given a number, which says which inputs, and gives back what came of it."""

    name: str
    share: int
    """Of a hundred calls."""
    make: Callable[[int], object]


def load(path: str) -> DirectProgram:
    return DirectEngine().load(compiled(ROOT / "nodes" / path))


PAYMENT = DirectEngine().load(compiled(PAYMENT_DECISION))
ORDER = load("orders/order_pricing_v1.vsp")
RELEASE_NODE = compiled(ROOT / "nodes" / "shop" / "stock_release_v1.vsp")
RELEASE = DirectEngine().load(RELEASE_NODE)
LONG = DirectEngine().load(
    small_node(
        "n: integer\nm: integer",
        "- operation: return\n  success: {result: 'SUM(SUM(i - j FOR j IN range(0, m)) FOR i IN range(0, n))'}",
        outputs="result: integer",
    )
)
"""Long enough to let go of Python's lock, for n = 100, m = 100."""

PAYMENTS, ORDERS = payments(), orders()
PAYMENT_TEXTS = [json.dumps(each, default=str).encode() for each in PAYMENTS]
ORDER_TEXTS = [json.dumps(each, default=str).encode() for each in ORDERS]
BAD: list[dict[str, Any]] = [
    {**PAYMENTS[0], "amount": "1.2.3"},
    {**PAYMENTS[0], "amount": 0.5, "zz": 1, "country": "\ud800"},
    {**PAYMENTS[0], "currency": "XXX", "user_age_days": 2**80},
    {**PAYMENTS[0], "amount": -1},
    {**PAYMENTS[0], "balance": None, "flagged": "yes"},
    {"amount": object()},
    {},
]
BAD_ORDERS: list[dict[str, Any]] = [
    {"items": [*ORDERS[0]["items"], {"qty": "x"}]},
    {"items": [{**ORDERS[0]["items"][0], "unknown": 1}]},
    {"items": 7},
]
BAD_TEXTS = [b"", b"[]", b"{", b'{"amount":1e9999}', b'{"amount":"x","zz":{}}', b"\xff", b'{"a":1,"a":2}', b"[" * 500]


def refused(number: int) -> object:
    """Outputs are asked for, and an exception with its notes is what comes."""
    try:
        return PAYMENT.entry(BAD[number % len(BAD)])
    except (raised.Raised, raised.ContractBroken) as problem:
        return type(problem).__name__


def effects(number: int) -> object:
    case = RELEASE_NODE.cases[number % len(RELEASE_NODE.cases)]
    return run_case(RELEASE, case).outcome


def left_waiting(number: int) -> object:
    """An execution that is dropped while it waits for an answer."""
    case = RELEASE_NODE.cases[number % len(RELEASE_NODE.cases)]
    return type(RELEASE.start(dict(case.inputs)).advance(())).__name__


KINDS = (
    Kind("payment, call", 30, lambda number: PAYMENT.call(PAYMENTS[number % 64])),
    Kind("payment, entry", 15, lambda number: PAYMENT.entry(good(number))),
    Kind("payment, run_json", 20, lambda number: PAYMENT.run_json(PAYMENT_TEXTS[number % 64])),
    Kind("order, call", 4, lambda number: ORDER.call(ORDERS[number % 16])),
    Kind("order, run_json", 4, lambda number: ORDER.run_json(ORDER_TEXTS[number % 16])),
    Kind("effects, advanced to the end", 3, effects),
    Kind("effects, left waiting", 2, left_waiting),
    Kind("bad inputs, call", 7, lambda number: PAYMENT.call(BAD[number % len(BAD)])),
    Kind("bad inputs, entry", 2, refused),
    Kind("bad lines, call", 4, lambda number: ORDER.call(BAD_ORDERS[number % len(BAD_ORDERS)])),
    Kind("bad inputs, run_json", 9, lambda number: PAYMENT.run_json(BAD_TEXTS[number % len(BAD_TEXTS)])),
)


def good(number: int) -> dict[str, Any]:
    """Inputs of a payment that ends with outputs."""
    return GOOD[number % len(GOOD)]


GOOD = [each for each in PAYMENTS if isinstance(PAYMENT.call(each), Returned)]


def shown(outcome: object) -> bytes:
    """All of an outcome, as bytes to hash; a fault of the engine is no outcome."""
    match outcome:
        case bytes():
            assert b'"engine_fault"' not in outcome, outcome
            return outcome
        case Returned(value):
            return repr(value).encode()
        case Failed(code, at, problems):
            return repr((str(code), at, [(each.path, each.kind) for each in problems])).encode()
        case ContractBroken(phase, index, values):
            return repr((phase, index, values)).encode()
        case EngineFault(message):
            raise AssertionError(f"an engine fault: {message}")
        case dict() | str():
            return repr(outcome).encode()
        case _:
            raise AssertionError(f"{outcome!r} is not what these calls come to")
