"""Columns whose scale machine code knows: their rows beside the same rows run one by one as values."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import vesper
from tests.unit.batch.given import payments
from tests.unit.batch.test_express import Load, Pair, load, ran, written
from vesper.engines.direct_engine import DirectProgram

__all__ = ["load"]

ENDS = (0, 1, -1, 99, 2**31 - 1, -(2**31), 2**62, 2**63 - 1, -(2**63))
LONG = (2**63, -(2**63) - 1, 10**30)


def code_bytes(node: vesper.Node) -> int:
    assert isinstance(node._program, DirectProgram)
    return next(iter(node._program.tier().plain.values())).bytes


def column(coefficients: Sequence[int | None], type_: pa.DataType) -> pa.Array:
    scale = max(type_.scale, 0)
    tens = 10 ** max(-type_.scale, 0)
    numbers = [None if each is None else Decimal(each * tens).scaleb(-scale) for each in coefficients]
    return pa.array(numbers, type_)


@pytest.fixture
def prices(load: Load, tmp_path: Path) -> Pair:
    return load(
        written(
            tmp_path, "price: decimal, rebate: decimal, pieces: integer", "total: decimal, band: integer",
            "  - {operation: compute, step: due, value: (price - rebate) * 1.25}\n"
            "  - step: total\n"
            "    operation: decision_table\n"
            "    rows:\n"
            "      - {when: pieces > 100, then: due * 0.9}\n"
            "      - {when: due <= 0, then: 0}\n"
            "      - {otherwise: due + 0.005}\n"
            "  - {operation: compute, step: band, value: '(IF price > 10 THEN 1 ELSE 0)"
            " + (IF rebate < price THEN 2 ELSE 0)'}",
        )
    )  # fmt: skip


def table(price: pa.Array, rebate: pa.Array) -> pa.Table:
    pieces = pa.array([number * 7 % 150 for number in range(len(price))])
    return pa.table({"price": price, "rebate": rebate, "pieces": pieces})


def mixed(ends: Sequence[int]) -> list[int]:
    """Rows that are fine, with those at the ends between them."""
    return [*range(1, 130), *(number for end in ends for number in (end, 5, 7, 11)), *range(200, 330)]


@pytest.mark.parametrize("scale", [0, 2, 5, 38, -2])
@pytest.mark.parametrize("other", [0, 3, 20])
def test_every_pair_of_scales_gives_what_values_give(prices: Pair, scale: int, other: int) -> None:
    numbers = mixed(ENDS if scale >= 0 else [0, 1, -1, 10**15])
    price = column(numbers, pa.decimal128(38, scale))
    rebate = column([number // 3 for number in numbers], pa.decimal128(38, other))
    _, swiftly = ran(prices, table(price, rebate), decimals="text")
    # A column of a negative scale is read cell by cell; numbers that are 17 places apart mostly do not fit 64 bits.
    assert swiftly > 0 or scale in (-2, 38) or other == 20


@pytest.mark.parametrize("scale", [0, 2])
def test_coefficients_of_more_than_64_bits_go_the_ordinary_way(prices: Pair, scale: int) -> None:
    numbers = mixed(LONG)
    answer, swiftly = ran(
        prices,
        table(column(numbers, pa.decimal128(38, scale)), column([1] * len(numbers), pa.decimal128(38, 2))),
        decimals="text",
    )
    assert len(numbers) - 2 * len(LONG) <= swiftly < len(numbers)
    assert answer["error"].null_count == len(numbers)


@pytest.mark.parametrize(
    "price, rebate",
    [
        (pa.decimal32(9, 2), pa.decimal64(18, 4)),
        (pa.decimal64(18, 0), pa.decimal32(9, 9)),
        (pa.decimal128(38, 1), pa.decimal128(5, 1)),
    ],
    ids=str,
)
def test_columns_of_any_width_have_a_known_scale(prices: Pair, price: pa.DataType, rebate: pa.DataType) -> None:
    before = code_bytes(prices[0])
    numbers = list(range(-100, 200))
    ran(prices, table(column(numbers, price), column([7, *numbers[1:]], rebate)), decimals="text")
    assert code_bytes(prices[0]) > before


def test_columns_beside_those_of_decimals_do_not_matter(prices: Pair) -> None:
    numbers = list(range(-100, 200))
    whole = pa.array(numbers, pa.int32())
    keyed = column(numbers, pa.decimal128(10, 3)).dictionary_encode()
    absent = column([None if number % 9 == 0 else number for number in numbers], pa.decimal128(10, 3))
    before = code_bytes(prices[0])
    ran(prices, table(whole, absent), decimals="text")
    ran(prices, table(keyed, whole), decimals="text")
    assert code_bytes(prices[0]) > before


def test_few_vectors_of_scales_have_code_of_their_own(prices: Pair) -> None:
    numbers = list(range(1, 200))
    sizes = []
    for scale in (2, 3, 2, 4, 5, 6, 7, 2):
        given = table(column(numbers, pa.decimal128(20, scale)), column(numbers, pa.decimal128(20, 2)))
        _, swiftly = ran(prices, given, decimals="text")
        assert swiftly == len(numbers)
        sizes.append(code_bytes(prices[0]))
    grown = [now > before for before, now in pairwise(sizes)]
    assert grown == [True, False, True, True, False, False, False]


def test_a_value_of_an_input_that_no_column_has_is_known_too(load: Load, tmp_path: Path) -> None:
    pair = load(
        written(
            tmp_path, "v: decimal, rate: {type: decimal, default: 0.1250}", "w: decimal",
            "  - {operation: compute, step: w, value: v * rate + rate}",
        )
    )  # fmt: skip
    answer, swiftly = ran(pair, pa.table({"v": column(range(100), pa.decimal128(10, 1))}), decimals="text")
    assert swiftly == 100
    assert answer["w"][8].as_py() == "0.22500"


def test_an_answer_stays_what_it_is_while_others_come_and_go(load: Load) -> None:
    """Memory of columns is used again, and never while somebody reads it."""
    node, _ = load("payment_decision")
    tables = [payments(2_000, seed, is_fine=True) for seed in range(3)]
    first = node.run_batch(tables[0])
    shown = first.to_pylist()
    part = first.slice(100, 50)["new_balance"]
    parts: list[Any] = part.to_pylist()
    for _ in range(3):
        for given in tables[1:]:
            node.run_batch(given)
    assert first.to_pylist() == shown
    del first
    for given in tables[1:] * 2:
        node.run_batch(given)
    assert part.to_pylist() == parts
