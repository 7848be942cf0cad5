"""Questions about tables whose decimals have a scale that machine code knows, and about their short texts.

A column has one scale for all its rows, and there is code for just those scales. Each table is one of them; among its
rows are the ends of what 64 bits hold, on either side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from tests.support.nodes import small_node

SUMS = small_node(
    "v: decimal\nu: decimal",
    "- {operation: compute, step: w, value: v * 1.5 + u - 0.25}\n"
    "- {operation: compute, step: m, value: '(IF v < u THEN 1 ELSE 0) + (IF u <= 1.5 THEN 2 ELSE 0) + "
    "(IF -v == u THEN 4 ELSE 0)'}\n"
    "- {operation: return, success: [m, w]}",
    "m: integer\nw: decimal",
)
WAYS = small_node(
    "v: decimal\nu: decimal\nn: integer",
    "- step: w\n  operation: decision_table\n  rows:\n"
    "    - {when: n > 10, then: v * 2}\n    - {when: n > 5, then: v * u}\n    - {otherwise: u}\n"
    "- {operation: compute, step: x, value: w + 1}\n"
    "- {operation: compute, step: m, value: '(IF w > 3 THEN 1 ELSE 0) + (IF x == v THEN 2 ELSE 0)'}\n"
    "- {operation: return, success: [m, w]}",
    "m: integer\nw: decimal",
)
RATES = small_node(
    "v: decimal\nt: string",
    "- {operation: compute, step: w, value: 'v * rates[t] + round(v, 1)'}\n"
    "- {operation: compute, step: m, value: 'IF w > 0.5 THEN 1 ELSE 0'}\n"
    "- {operation: return, success: [m, w]}",
    "m: integer\nw: decimal",
    'constants:\n  rates: {type: "map<string, decimal>", value: {a: 0.1, b: 0.25, c: 3, dd: 0.125}}\n'
    "contracts:\n  preconditions:\n    - t IN rates",
)
TEXTS = small_node(
    "s: string\nt: string",
    "- {operation: compute, step: m, value: 'length(t) * 100 + length(s)'}\n"
    "- {operation: compute, step: b, value: t IN few}\n"
    "- {operation: compute, step: c, value: s IN few}\n"
    "- {operation: return, success: [m, b, c]}",
    "m: integer\nb: boolean\nc: boolean",
    "constants:\n  few: {type: set<string>, value: [NG, RU, KP, seven_b, é]}",
)

_COEFFICIENTS = (
    0, 1, -1, 149, 150, 151, -150, 10**15, 2**61, -(2**61), 2**62, 2**63 - 1, -(2**63), 2**63, 10**25, 3, -3, 7,
)  # fmt: skip
SCALES: Sequence[tuple[int, int]] = ((0, 0), (2, 2), (2, 5), (5, 0), (0, 18), (1, 19), (38, 0), (38, 38), (-2, 3))


def decimals(scales: Sequence[int]) -> Mapping[str, pa.DataType]:
    return {name: pa.decimal128(38, scale) for name, scale in zip("vu", scales, strict=False)}


def _number(coefficient: int, scale: int) -> Decimal:
    # A column of a negative scale has whole numbers.
    return Decimal(coefficient).scaleb(-scale) if scale >= 0 else Decimal(coefficient * 10**-scale)


def pairs(scales: tuple[int, int]) -> list[dict[str, Any]]:
    """Every coefficient beside the next but one: long ones are in between, so that blocks are not given up."""
    turned = _COEFFICIENTS[2:] + _COEFFICIENTS[:2]
    rows = zip(_COEFFICIENTS, turned, strict=True)
    ends = [{"v": _number(v, scales[0]), "u": _number(u, scales[1])} for v, u in rows]
    fine = [{"v": _number(n, scales[0]), "u": _number(2 * n, scales[1])} for n in range(1, 120)]
    return fine + ends + fine


def numbered(scales: tuple[int, int]) -> list[dict[str, Any]]:
    return [{**row, "n": place % 13} for place, row in enumerate(pairs(scales))]


def rated(scale: int) -> list[dict[str, Any]]:
    keys = ("a", "b", "c", "dd", "b", "e")
    return [{"v": _number(place * 7 - 30, scale), "t": keys[place % (5 if place % 40 else 6)]} for place in range(200)]


def texts() -> list[dict[str, Any]]:
    found = (
        "NG", "RU", "KP", "N", "", "NGN", "seven_b", "seven_by", "é", "éé", "日本", "日本語", "eight_by", "nine_byte",
        "a\0", "\0", "ng", "KP\0", "ß", "NG",
    )  # fmt: skip
    return [{"s": found[place % len(found)], "t": found[(place * 7 + 3) % len(found)]} for place in range(150)]
