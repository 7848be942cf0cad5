"""Scalar values as Python writes them: `date(2024, 2, 29)`, `1.5`, `"text"`."""

from __future__ import annotations

import math
from datetime import date, datetime, timedelta

import libcst as cst

from vesper.codegen.layout.python_expression import EQUAL, string_literal
from vesper.values.model import Json, Value, scalar_text
from vesper.values.numbers import float_text


def scalar_literal(value: Value) -> cst.BaseExpression | None:
    """The Python expression of a float, bytes, a time or a json; None for anything else."""
    match value:
        case float():
            return _float(value)
        case bytes():
            return cst.SimpleString(f"b{_bytes_text(value)}")
        case datetime():
            parts = [value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond]
            while len(parts) > 3 and parts[-1] == 0:
                parts.pop()
            utc = cst.Arg(cst.Name("UTC"), keyword=cst.Name("tzinfo"), equal=EQUAL)
            return cst.Call(cst.Name("datetime"), [*map(_number, parts), utc])
        case date():
            return cst.Call(cst.Name("date"), [_number(value.year), _number(value.month), _number(value.day)])
        case timedelta():
            return _duration(value)
        case Json():
            return cst.Call(cst.Name("json_literal"), [cst.Arg(cst.SimpleString(string_literal(scalar_text(value))))])
        case _:
            return None


def _number(value: int) -> cst.Arg:
    digits = cst.Integer(str(abs(value)))
    return cst.Arg(digits if value >= 0 else cst.UnaryOperation(cst.Minus(), digits))


def _float(value: float) -> cst.BaseExpression:
    if not math.isfinite(value):
        return cst.Call(cst.Name("float"), [cst.Arg(cst.SimpleString(string_literal(float_text(value))))])
    digits = cst.Float(float_text(abs(value)).replace("e+", "e"))
    return cst.UnaryOperation(cst.Minus(), digits) if math.copysign(1, value) < 0 else digits


def _bytes_text(value: bytes) -> str:
    shown = "".join(chr(each) if 32 <= each < 127 and each not in b'"\\' else f"\\x{each:02x}" for each in value)
    return f'"{shown}"'


def _duration(value: timedelta) -> cst.Call:
    """The length in days, seconds and microseconds, without those that are 0; the sign on each of them."""
    sign = -1 if value < timedelta(0) else 1
    size = abs(value)
    parts = {"days": size.days, "seconds": size.seconds, "microseconds": size.microseconds}
    given = {name: sign * count for name, count in parts.items() if count} or {"days": 0}
    arguments = [_number(count).with_changes(keyword=cst.Name(name), equal=EQUAL) for name, count in given.items()]
    return cst.Call(cst.Name("timedelta"), arguments)
