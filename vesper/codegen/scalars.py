"""Scalar values as Python writes them: `date(2024, 2, 29)`, `1.5`, `"text"`."""

from __future__ import annotations

import math
from datetime import date, datetime, time, timedelta

import libcst as cst

from vesper.codegen.layout.python_expression import EQUAL, write_string
from vesper.values.model import Json, Value, scalar_text
from vesper.values.numbers import float_text
from vesper.values.period import Period


def write_scalar(value: Value) -> cst.BaseExpression | None:
    """Write the Python expression of a float, bytes, a time or a json. None for any other value."""
    match value:
        case float():
            return _write_float(value)
        case bytes():
            return cst.SimpleString(f"b{_write_bytes(value)}")
        case datetime():
            parts = [value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond]
            while len(parts) > 3 and parts[-1] == 0:
                parts.pop()
            utc = cst.Arg(cst.Name("UTC"), keyword=cst.Name("tzinfo"), equal=EQUAL)
            return cst.Call(cst.Name("datetime"), [*map(_write_number, parts), utc])
        case date():
            return cst.Call(
                cst.Name("date"), [_write_number(value.year), _write_number(value.month), _write_number(value.day)]
            )
        case timedelta():
            return _write_duration(value)
        case time():
            parts = [value.hour, value.minute, value.second, value.microsecond]
            while len(parts) > 1 and parts[-1] == 0:
                parts.pop()
            return cst.Call(cst.Name("time"), list(map(_write_number, parts)))
        case Period():
            return cst.Call(cst.Name("Period"), [_write_number(value.months)])
        case Json():
            return cst.Call(cst.Name("json_literal"), [cst.Arg(cst.SimpleString(write_string(scalar_text(value))))])
        case _:
            return None


def _write_number(value: int) -> cst.Arg:
    digits = cst.Integer(str(abs(value)))
    return cst.Arg(digits if value >= 0 else cst.UnaryOperation(cst.Minus(), digits))


def _write_float(value: float) -> cst.BaseExpression:
    if not math.isfinite(value):
        return cst.Call(cst.Name("float"), [cst.Arg(cst.SimpleString(write_string(float_text(value))))])
    digits = cst.Float(float_text(abs(value)).replace("e+", "e"))
    return cst.UnaryOperation(cst.Minus(), digits) if math.copysign(1, value) < 0 else digits


def _write_bytes(value: bytes) -> str:
    shown = "".join(chr(each) if 32 <= each < 127 and each not in b'"\\' else f"\\x{each:02x}" for each in value)
    return f'"{shown}"'


def _write_duration(value: timedelta) -> cst.Call:
    """Write a duration in days, hours, minutes, seconds and microseconds without zero parts.

    The sign is on each part.
    """
    sign = -1 if value < timedelta(0) else 1
    size = abs(value)
    minutes, seconds = divmod(size.seconds, 60)
    parts = {"days": size.days, "hours": minutes // 60, "minutes": minutes % 60, "seconds": seconds}
    parts["microseconds"] = size.microseconds
    given = {name: sign * count for name, count in parts.items() if count} or {"days": 0}
    arguments = [
        _write_number(count).with_changes(keyword=cst.Name(name), equal=EQUAL) for name, count in given.items()
    ]
    return cst.Call(cst.Name("timedelta"), arguments)
