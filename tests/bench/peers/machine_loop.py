"""W3 with the integers of the machine, for mypyc: `int` of Python there costs five times as much."""

from __future__ import annotations

from typing import Any

from mypy_extensions import i64


def numeric_loop(inputs: dict[str, Any]) -> dict[str, Any]:
    state: i64 = inputs["seed"]
    rounds: i64 = inputs["n"]
    if rounds < 0:
        raise ValueError("n >= 0")
    score: float = 0.0
    hits: i64 = 0
    for _ in range(rounds):
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF
        x: float = float(state) / 2147483648.0
        y: float = ((0.5 * x - 1.25) * x + 0.75) * x + 0.1
        if y > 0.2:
            score += y
            hits += 1
        else:
            score -= 0.5 * x
    if not 0 <= hits <= rounds:
        raise ValueError("hits")
    return {"score": score, "hits": hits, "state": state}
