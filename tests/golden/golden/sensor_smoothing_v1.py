# AUTO-GENERATED - DO NOT EDIT
# sensor_smoothing_v1, from nodes/data/sensor_smoothing_v1.vsp
# semantic hash 184bae4a78eda7238fa8e5b1451a24d8d3a2fc2aa5de1de4f44533794f497712
"""Smooth the readings of a sensor, leave out those it lost, and scale them for a display."""

from decimal import Decimal
from typing import Any, Final, TypedDict

from vesper.kernels.array import (
    at as array_at,
    first as array_first,
    last as array_last,
    range as array_range,
    slice as array_slice,
    sort as array_sort,
)
from vesper.kernels.decimal import exact_decimals, exact_entry, round as decimal_round
from vesper.kernels.float import (
    abs as float_abs,
    avg as float_avg,
    ceil as float_ceil,
    divide as float_divide,
    floor as float_floor,
    is_finite as float_is_finite,
    is_nan as float_is_nan,
    parse as float_parse,
    to_decimal as float_to_decimal,
    to_integer as float_to_integer,
    trunc as float_trunc,
)
from vesper.kernels.integer import checked, to_float as integer_to_float
from vesper.kernels.map import map_of
from vesper.kernels.raised import ContractBroken
from vesper.kernels.regex import matches as regex_matches
from vesper.kernels.runtime.entry import (
    MAX_ENTRIES,
    MAX_INTEGER,
    MIN_INTEGER,
    NOT_PLAIN,
    Inputs,
    NotPlain,
    new_objects,
    read_inputs,
    read_text,
    undecorated,
)
from vesper.kernels.runtime.source import Source
from vesper.kernels.value import clamp as value_clamp, max as value_max


class Range(TypedDict):
    low: float
    high: float


class Success(TypedDict):
    readings: list[float]
    lost: int
    smooth: list[float]
    bars: list[int]
    peak: Decimal | None
    jumps: int
    first_whole: int | None
    levels: dict[str, int]


@exact_decimals
def sensor_smoothing_v1(
    lines: list[str],
    range: Range,
    window: int = 3,
    steps: int = 10,
) -> Success:
    """Smooth the readings of a sensor, leave out those it lost, and scale them for a display."""

    # constraint, line 10: is_finite(low)
    if not float_is_finite(range["low"]):
        raise ContractBroken("constraint", 0, {"range": range})

    # constraint, line 10: is_finite(high)
    if not float_is_finite(range["high"]):
        raise ContractBroken("constraint", 1, {"range": range})

    # constraint, line 10: low < high
    if not range["low"] < range["high"]:
        raise ContractBroken("constraint", 2, {"range": range})

    # constraint, line 15: window >= 1
    if not window >= 1:
        raise ContractBroken("constraint", 3, {"window": window})

    # constraint, line 15: window <= 25
    if not window <= 25:
        raise ContractBroken("constraint", 4, {"window": window})

    # constraint, line 16: steps >= 1
    if not steps >= 1:
        raise ContractBroken("constraint", 5, {"steps": steps})

    # constraint, line 16: steps <= 1000
    if not steps <= 1000:
        raise ContractBroken("constraint", 6, {"steps": steps})

    # precondition, line 31: FORALL line IN lines SATISFIES matches(line,
    #   '^(-?[0-9]{1,6}(\.[0-9]{1,6})?|NaN|-?Infinity)$')
    for line in lines:
        if not regex_matches(line, "^(-?[0-9]{1,6}(\\.[0-9]{1,6})?|NaN|-?Infinity)$"):
            raise ContractBroken("precondition", 0, {"lines": lines})

    # precondition, line 32: abs(range.low) <= 1e9 AND abs(range.high) <= 1e9
    if not (float_abs(range["low"]) <= 1000000000.0 and float_abs(range["high"]) <= 1000000000.0):
        raise ContractBroken("precondition", 1, {"range": range})

    # step parsed, line 41
    parsed = [float_parse(line) for line in lines]

    # step readings, line 43
    readings = [value_clamp(x, range["low"], range["high"]) for x in parsed if not float_is_nan(x)]

    # step smooth, line 44
    smooth = [
        float_avg(
            array_slice(readings, value_max(0, checked(checked(i - window) + 1)), checked(i + 1))
        )
        for i in array_range(0, len(readings), 1)
    ]

    # step span, line 45
    span = range["high"] - range["low"]

    # step shares, line 46
    shares = [float_divide(x - range["low"], span) * integer_to_float(steps) for x in smooth]

    # step bars, line 47
    bars = [value_clamp(float_trunc(share), 0, steps) for share in shares]

    # step highest, line 48
    highest = array_last(array_sort(smooth, "ascending"))

    # step jumps, line 50
    jumps = len(
        [
            i
            for i in array_range(1, len(readings), 1)
            if float_abs(array_at(readings, i) - array_at(readings, checked(i - 1))) >= span * 0.1
        ]
    )

    # step whole, line 51
    whole = array_first([x for x in readings if x == integer_to_float(float_floor(x))])

    # output lost, line 56
    lost = len([x for x in parsed if float_is_nan(x)])

    # output peak, line 59
    peak: Decimal | None = (
        None if highest is None else decimal_round(float_to_decimal(highest), 2, "half_up")
    )

    # output first_whole, line 61
    first_whole: int | None = None if whole is None else float_to_integer(whole)

    # output levels, line 62
    levels: dict[str, int] = map_of(
        [
            ("floor", 0 if highest is None else float_floor(highest)),
            ("ceil", 0 if highest is None else float_ceil(highest)),
            ("zero", checked(-float_trunc(-span))),
        ]
    )

    # postcondition, line 34: length(smooth) == length(readings) AND length(readings) + lost ==
    #   length(lines)
    if not (len(smooth) == len(readings) and checked(len(readings) + lost) == len(lines)):
        raise ContractBroken(
            "postcondition",
            0,
            {"smooth": smooth, "readings": readings, "lost": lost, "lines": lines},
        )

    # postcondition, line 35: FORALL bar IN bars SATISFIES bar >= 0 AND bar <= steps
    for bar in bars:
        if not (bar >= 0 and bar <= steps):
            raise ContractBroken("postcondition", 1, {"bars": bars, "steps": steps})

    # postcondition, line 36: peak IS NULL => length(readings) == 0
    if not (peak is not None or len(readings) == 0):
        raise ContractBroken("postcondition", 2, {"peak": peak, "readings": readings})

    return {
        "readings": readings,
        "lost": lost,
        "smooth": smooth,
        "bars": bars,
        "peak": peak,
        "jumps": jumps,
        "first_whole": first_whole,
        "levels": levels,
    }


INPUTS: Final = Inputs(
    {
        "lines": "array<string>",
        "range": "{low: float, high: float}",
        "window": "integer",
        "steps": "integer",
    },
    {"window": 3, "steps": 10},
)
RUN: Final = undecorated(sensor_smoothing_v1)


def read_range(given: Any) -> Range:
    """What is a Range already, field by field."""
    if type(given) is not dict:
        raise NotPlain
    for name in given:
        if type(name) is not str:
            raise NotPlain
    if len(given) != 2:
        raise NotPlain
    low = given["low"]
    if type(low) is not float:
        raise NotPlain
    high = given["high"]
    if type(high) is not float:
        raise NotPlain
    return {"low": low, "high": high}


@exact_entry
def call(inputs: dict[str, Any]) -> Success:
    """The same for a caller's own objects: each is checked and made a value first."""
    try:
        if type(inputs) is not dict:
            raise NotPlain
        for name in inputs:
            if type(name) is not str:
                raise NotPlain
        if len(inputs) != 2 + ("window" in inputs) + ("steps" in inputs):
            raise NotPlain
        lines = inputs["lines"]
        if type(lines) is not list or len(lines) > MAX_ENTRIES:
            raise NotPlain
        lines = [read_text(item) for item in lines]
        range = inputs["range"]
        range = read_range(range)
        window = inputs["window"] if "window" in inputs else 3
        if type(window) is not int or window < MIN_INTEGER or window > MAX_INTEGER:
            raise NotPlain
        steps = inputs["steps"] if "steps" in inputs else 10
        if type(steps) is not int or steps < MIN_INTEGER or steps > MAX_INTEGER:
            raise NotPlain
    except NOT_PLAIN:
        lines, range, window, steps = read_inputs(INPUTS, inputs)
    return new_objects(RUN(lines, range, window, steps))


SOURCE: Final = Source(
    "nodes/data/sensor_smoothing_v1.vsp",
    lines={
        78: 10, 82: 10, 86: 10, 90: 15, 94: 15, 98: 16, 102: 16, 108: 31, 112: 32, 115: 41, 118: 43,
        122: 44, 123: 44, 125: 44, 135: 47, 144: 50, 145: 50, 150: 51, 157: 59, 161: 61, 164: 62,
        166: 62, 167: 62, 168: 62, 174: 34, 175: 34, 184: 35, 188: 36,
    },
    clauses={
        "constraint": [
            "is_finite(low)",
            "is_finite(high)",
            "low < high",
            "window >= 1",
            "window <= 25",
            "steps >= 1",
            "steps <= 1000",
        ],
        "precondition": [
            "FORALL line IN lines SATISFIES matches(line, '^(-?[0-9]{1,6}(\\.[0-9]{1,6})?|NaN|-?Infinity)$')",
            "abs(range.low) <= 1e9 AND abs(range.high) <= 1e9",
        ],
        "postcondition": [
            "length(smooth) == length(readings) AND length(readings) + lost == length(lines)",
            "FORALL bar IN bars SATISFIES bar >= 0 AND bar <= steps",
            "peak IS NULL => length(readings) == 0",
        ],
    },
)  # fmt: skip
