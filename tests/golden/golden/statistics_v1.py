# AUTO-GENERATED - DO NOT EDIT
# statistics_v1, from nodes/data/statistics_v1.vsp
# semantic hash 264a7e8657452524aaaadbafb102172b66abb061d04ca4834379103838272f2a
"""Describe a sample of measurements by mean, spread, median and outliers."""

from typing import Any, Final, TypedDict

from vesper.kernels.array import at as array_at, sort as array_sort
from vesper.kernels.decimal import exact_decimals, exact_entry
from vesper.kernels.float import (
    abs as float_abs,
    avg as float_avg,
    divide as float_divide,
    is_finite as float_is_finite,
    is_nan as float_is_nan,
    sqrt as float_sqrt,
    sum as float_sum,
    text as float_text,
)
from vesper.kernels.integer import (
    checked,
    quot as integer_quot,
    rem as integer_rem,
    to_float as integer_to_float,
)
from vesper.kernels.raised import ContractBroken
from vesper.kernels.runtime.entry import (
    NOT_PLAIN,
    Inputs,
    NotPlain,
    new_objects,
    read_inputs,
    read_value,
    undecorated,
)
from vesper.kernels.runtime.source import Source
from vesper.kernels.text import concat as text_concat


class Success(TypedDict):
    count: int
    mean: float
    variance: float
    deviation: float
    smallest: float
    largest: float
    median: float
    outliers: list[float]
    unlike_mean: int
    summary: str


@exact_decimals
def statistics_v1(values: list[float], width: float = 3.0) -> Success:
    """Describe a sample of measurements by mean, spread, median and outliers."""

    # constraint, line 7: width > 0.0
    if not width > 0.0:
        raise ContractBroken("constraint", 0, {"width": width})

    # constraint, line 7: width <= 100.0
    if not width <= 100.0:
        raise ContractBroken("constraint", 1, {"width": width})

    # precondition, line 24: length(values) > 0
    if not len(values) > 0:
        raise ContractBroken("precondition", 0, {"values": values})

    # precondition, line 25: FORALL x IN values SATISFIES is_finite(x) AND abs(x) <= 1e150
    for x in values:
        if not (float_is_finite(x) and float_abs(x) <= 1e150):
            raise ContractBroken("precondition", 1, {"values": values})

    # step count, line 34
    count = len(values)

    # step mean, line 35
    mean = float_avg(values)

    # step squares, line 37
    squares = [(x - mean) * (x - mean) for x in values]

    # step variance, line 38
    variance = (
        0.0
        if count == 1
        else float_divide(float_sum(squares), integer_to_float(checked(count - 1)))
    )

    # step deviation, line 39
    deviation = float_sqrt(variance)

    # step ordered, line 40
    ordered = array_sort(values, "ascending")

    # step smallest, line 41
    smallest_ = array_at(ordered, 0)

    # step largest, line 42
    largest_ = array_at(ordered, checked(count - 1))

    # step middle, line 43
    middle = integer_quot(count, 2)

    # step median, line 44
    median = (
        array_at(ordered, middle)
        if integer_rem(count, 2) == 1
        else float_divide(array_at(ordered, checked(middle - 1)) + array_at(ordered, middle), 2.0)
    )

    # step outliers, line 45
    outliers = [x for x in values if float_abs(x - mean) > deviation * width]

    # step unlike_mean, line 46
    unlike_mean = len([x for x in values if x != mean and (x < mean or x > mean)])

    # output summary, line 59
    summary = text_concat(text_concat(float_text(mean), " ± "), float_text(deviation))

    # postcondition, line 27: smallest <= median AND median <= largest
    if not (smallest_ <= median and median <= largest_):
        raise ContractBroken(
            "postcondition", 0, {"smallest": smallest_, "median": median, "largest": largest_}
        )

    # postcondition, line 28: variance >= 0e0 AND NOT is_nan(deviation)
    if not (variance >= 0.0 and not float_is_nan(deviation)):
        raise ContractBroken("postcondition", 1, {"variance": variance, "deviation": deviation})

    # postcondition, line 29: length(outliers) < count OR variance == 0e0 OR count > 1
    if not (len(outliers) < count or variance == 0.0 or count > 1):
        raise ContractBroken(
            "postcondition", 2, {"outliers": outliers, "count": count, "variance": variance}
        )

    return {
        "count": count,
        "mean": mean,
        "variance": variance,
        "deviation": deviation,
        "smallest": smallest_,
        "largest": largest_,
        "median": median,
        "outliers": outliers,
        "unlike_mean": unlike_mean,
        "summary": summary,
    }


INPUTS: Final = Inputs({"values": "array<float>", "width": "float"}, {"width": 3.0})
RUN: Final = undecorated(statistics_v1)


@exact_entry
def call(inputs: dict[str, Any]) -> Success:
    """The same for a caller's own objects: each is checked and made a value first."""
    try:
        if type(inputs) is not dict:
            raise NotPlain
        for name in inputs:
            if type(name) is not str:
                raise NotPlain
        if len(inputs) != 1 + ("width" in inputs):
            raise NotPlain
        values = inputs["values"]
        values = read_value("array<float>", values)
        width = inputs["width"] if "width" in inputs else 3.0
        if type(width) is not float:
            raise NotPlain
    except NOT_PLAIN:
        values, width = read_inputs(INPUTS, inputs)
    return new_objects(RUN(values, width))


SOURCE: Final = Source(
    "nodes/data/statistics_v1.vsp",
    lines={
        59: 7, 63: 7, 67: 24, 72: 25, 78: 35, 87: 38, 97: 41, 100: 42, 103: 43, 107: 44, 108: 44,
        109: 44, 119: 59, 123: 27, 129: 28, 133: 29,
    },
    clauses={
        "constraint": [
            "width > 0.0",
            "width <= 100.0",
        ],
        "precondition": [
            "length(values) > 0",
            "FORALL x IN values SATISFIES is_finite(x) AND abs(x) <= 1e150",
        ],
        "postcondition": [
            "smallest <= median AND median <= largest",
            "variance >= 0e0 AND NOT is_nan(deviation)",
            "length(outliers) < count OR variance == 0e0 OR count > 1",
        ],
    },
)  # fmt: skip
