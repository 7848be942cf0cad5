"""Functions of FEEL on numbers and booleans."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vesper.importers.dmn.code import ADD, COMPARE, MULTIPLY, Code
from vesper.importers.dmn.functions.registry import feel_function
from vesper.importers.dmn.operators import negation
from vesper.importers.dmn.types import BOOLEAN, DURATION, NUMBER, PERIOD, STRING, type_error, unsupported

if TYPE_CHECKING:
    from vesper.importers.dmn.translate import Translator

_LIMITS = (-6111, 6176)
"""Scales of a number of FEEL."""


@feel_function("not", "negand", [None], BOOLEAN)
def _not(build: Translator, value: Code) -> Code:
    return negation(build, value)


@feel_function("abs", "n", [NUMBER], NUMBER)
def _abs(build: Translator, value: Code) -> Code:
    return build.function("abs", [value], NUMBER)


@feel_function("abs", "n", [DURATION], DURATION)
def _abs_duration(build: Translator, value: Code) -> Code:
    return build.function("abs", [value], DURATION)


@feel_function("abs", "n", [PERIOD], PERIOD)
def _abs_period(build: Translator, value: Code) -> Code:
    return build.function("abs", [value], PERIOD)


@feel_function("sqrt", "number", [NUMBER], NUMBER)
def _sqrt(build: Translator, value: Code) -> Code:
    value = build.core(build.strict(value, "number"), "number")
    value = build.guarded(value, f"{value.text} < 0")
    return build.function("sqrt", [value], NUMBER)


@feel_function("log", "number", [NUMBER], NUMBER)
def _log(build: Translator, value: Code) -> Code:
    value = build.core(build.strict(value, "number"), "number")
    value = build.guarded(value, f"{value.text} <= 0")
    return build.function("ln", [value], NUMBER)


@feel_function("exp", "number", [NUMBER], NUMBER)
def _exp(build: Translator, value: Code) -> Code:
    return build.function("exp", [value], NUMBER)


def _parity(build: Translator, value: Code, remainder: str) -> Code:
    if value.is_literal and "." in value.text:
        raise unsupported("`odd` and `even` of a number with a fraction, which FEEL does not define")
    value = build.core(build.strict(value, "number"), "number")
    value = build.guarded(value, f"trunc({value.text}) != {value.text}") if not value.is_literal else value
    half = f"{value.at(ADD)} - 2 * round({value.text} / 2, 0, floor)"
    return build.combine([value], f"{half} == {remainder}", BOOLEAN, COMPARE)


@feel_function("even", "number", [NUMBER], BOOLEAN)
def _even(build: Translator, value: Code) -> Code:
    return _parity(build, value, "0")


@feel_function("odd", "number", [NUMBER], BOOLEAN)
def _odd(build: Translator, value: Code) -> Code:
    return _parity(build, value, "1")


@feel_function("modulo", "dividend, divisor", [NUMBER, NUMBER], NUMBER)
def _modulo(build: Translator, dividend: Code, divisor: Code) -> Code:
    left = build.core(build.strict(dividend, "dividend"), "dividend")
    right = build.core(build.strict(divisor, "divisor"), "divisor")
    right = build.guarded(right, f"{right.at(ADD)} == 0")
    text = f"{left.at(ADD)} - {right.at(MULTIPLY)} * div({left.text}, {right.text}, 0, floor)"
    return build.combine([left, right], text, NUMBER, ADD)


def _rounded(build: Translator, value: Code, scale: Code | None, mode: str) -> Code:
    value = build.decimal(build.strict(value, "number"))
    if scale is None:
        return build.combine([value], f"round({value.text}, 0, {mode})", NUMBER)
    scale = build.strict(scale, "scale")
    if scale.is_literal and scale.text.lstrip("-").isdigit():
        if not _LIMITS[0] <= int(scale.text) <= _LIMITS[1]:
            from vesper.importers.dmn.code import null

            return null(NUMBER, build.records)
        return build.combine([value], f"round({value.text}, {scale.text}, {mode})", NUMBER)
    scale = build.core(scale, "scale")
    scale = build.guarded(scale, f"{scale.text} < {_LIMITS[0]}", f"{scale.text} > {_LIMITS[1]}")
    return build.combine([value, scale], f"round({value.text}, to_integer(trunc({scale.text})), {mode})", NUMBER)


@feel_function("decimal", "n, scale", [NUMBER, NUMBER], NUMBER)
def _decimal(build: Translator, value: Code, scale: Code) -> Code:
    return _rounded(build, value, scale, "half_even")


@feel_function("floor", "n, scale?", [NUMBER, NUMBER], NUMBER)
def _floor(build: Translator, value: Code, scale: Code | None = None) -> Code:
    return _rounded(build, value, scale, "floor")


@feel_function("ceiling", "n, scale?", [NUMBER, NUMBER], NUMBER)
def _ceiling(build: Translator, value: Code, scale: Code | None = None) -> Code:
    return _rounded(build, value, scale, "ceiling")


@feel_function("round up", "n, scale", [NUMBER, NUMBER], NUMBER)
def _round_up(build: Translator, value: Code, scale: Code) -> Code:
    return _rounded(build, value, scale, "up")


@feel_function("round down", "n, scale", [NUMBER, NUMBER], NUMBER)
def _round_down(build: Translator, value: Code, scale: Code) -> Code:
    return _rounded(build, value, scale, "down")


@feel_function("round half up", "n, scale", [NUMBER, NUMBER], NUMBER)
def _round_half_up(build: Translator, value: Code, scale: Code) -> Code:
    return _rounded(build, value, scale, "half_up")


@feel_function("round half down", "n, scale", [NUMBER, NUMBER], NUMBER)
def _round_half_down(build: Translator, value: Code, scale: Code) -> Code:
    return _rounded(build, value, scale, "half_down")


@feel_function("number", "from", [NUMBER], NUMBER)
def _number_of_number(_: Translator, value: Code) -> Code:
    return value


@feel_function("number", "from, grouping separator~, decimal separator~", [STRING, STRING, STRING], NUMBER)
def _number(build: Translator, value: Code, grouping: Code | None = None, point: Code | None = None) -> Code:
    for each in (grouping, point):
        if each is not None and not each.is_literal:
            raise unsupported("`number` with a separator that is known at run time only")
    group = "" if grouping is None else grouping.text[1:-1]
    decimal = "." if point is None else point.text[1:-1]
    if group not in ("", " ", ",", ".") or decimal not in (".", ",") or group == decimal:
        raise type_error("the separators of `number` are a space, a comma or a point, and differ")
    text = build.core(build.strict(value, "text"), "text")
    escaped = {"": "", " ": " ", ",": ",", ".": "."}[group]
    digits = f"[0-9{escaped}]" if escaped else "[0-9]"
    pattern = f"^-?({digits}+([{decimal}][0-9]*)?|[{decimal}][0-9]+)$"
    text = build.guarded(text, f"NOT matches({text.text}, '{pattern}')")
    plain = text.text
    if group:
        plain = f"replace({plain}, '{group}', '')"
    if decimal == ",":
        plain = f"replace({plain}, ',', '.')"
    return build.combine([text], f"parse_decimal({plain})", NUMBER)
