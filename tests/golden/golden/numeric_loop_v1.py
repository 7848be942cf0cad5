# AUTO-GENERATED - DO NOT EDIT
# numeric_loop_v1, from nodes/numbers/numeric_loop_v1.vsp
# semantic hash 074018e02a54cd22c57a1a66b415140830bf646f6f4dc2cb45733ae1a19a0b4d
"""Score a stream of pseudo-random numbers with a polynomial, the numeric workload of the
benchmarks."""

from typing import Any, Final, TypedDict

from vesper.kernels.array import range as array_range
from vesper.kernels.decimal import exact_decimals, exact_entry
from vesper.kernels.float import divide as float_divide
from vesper.kernels.integer import checked, to_float as integer_to_float
from vesper.kernels.raised import ContractBroken
from vesper.kernels.runtime.entry import (
    MAX_INTEGER,
    MIN_INTEGER,
    NOT_PLAIN,
    Inputs,
    NotPlain,
    read_inputs,
    undecorated,
)
from vesper.kernels.runtime.source import Source


class Run(TypedDict):
    random: int
    sum: float
    found: int


class Success(TypedDict):
    score: float
    hits: int
    state: int


@exact_decimals
def numeric_loop_v1(seed: int = 42, n: int = 10000) -> Success:
    """Score a stream of pseudo-random numbers with a polynomial, the numeric workload of the
    benchmarks."""

    # constraint, line 6: seed >= 0
    if not seed >= 0:
        raise ContractBroken("constraint", 0, {"seed": seed})

    # constraint, line 6: seed <= 2147483647
    if not seed <= 2147483647:
        raise ContractBroken("constraint", 1, {"seed": seed})

    # constraint, line 7: n <= 10000
    if not n <= 10000:
        raise ContractBroken("constraint", 2, {"n": n})

    # precondition, line 17: n >= 0
    if not n >= 0:
        raise ContractBroken("precondition", 0, {"n": n})

    # step run, line 22
    items = array_range(0, n, 1)
    random = seed
    sum_ = 0.0
    found = 0
    for _i in items:
        # step drawn, line 33
        drawn = checked(checked(random * 1103515245) + 12345) & 2147483647

        # step x, line 34
        x = float_divide(integer_to_float(drawn), 2147483648.0)

        # step y, line 35
        y = ((0.5 * x - 1.25) * x + 0.75) * x + 0.1
        random, sum_, found = (
            drawn,
            sum_ + y if y > 0.2 else sum_ - 0.5 * x,
            checked(found + 1) if y > 0.2 else found,
        )
    run = Run(random=random, sum=sum_, found=found)

    # output score, line 42
    score = run["sum"]

    # output hits, line 42
    hits = run["found"]

    # output state, line 42
    state = run["random"]

    # postcondition, line 19: hits >= 0 AND hits <= n
    if not (hits >= 0 and hits <= n):
        raise ContractBroken("postcondition", 0, {"hits": hits, "n": n})

    return {"score": score, "hits": hits, "state": state}


INPUTS: Final = Inputs({"seed": "integer", "n": "integer"}, {"seed": 42, "n": 10000})
RUN: Final = undecorated(numeric_loop_v1)


@exact_entry
def call(inputs: dict[str, Any]) -> Success:
    """The same for a caller's own objects: each is checked and made a value first."""
    try:
        if type(inputs) is not dict:
            raise NotPlain
        for name in inputs:
            if type(name) is not str:
                raise NotPlain
        if len(inputs) != 0 + ("seed" in inputs) + ("n" in inputs):
            raise NotPlain
        seed = inputs["seed"] if "seed" in inputs else 42
        if type(seed) is not int or seed < MIN_INTEGER or seed > MAX_INTEGER:
            raise NotPlain
        n = inputs["n"] if "n" in inputs else 10000
        if type(n) is not int or n < MIN_INTEGER or n > MAX_INTEGER:
            raise NotPlain
    except NOT_PLAIN:
        seed, n = read_inputs(INPUTS, inputs)
    return RUN(seed, n)


SOURCE: Final = Source(
    "nodes/numbers/numeric_loop_v1.vsp",
    lines={
        45: 6, 49: 6, 53: 7, 57: 17, 60: 24, 66: 33, 76: 39, 91: 19,
    },
    clauses={
        "constraint": [
            "seed >= 0",
            "seed <= 2147483647",
            "n <= 10000",
        ],
        "precondition": [
            "n >= 0",
        ],
        "postcondition": [
            "hits >= 0 AND hits <= n",
        ],
    },
)  # fmt: skip
