"""Arguments that are evaluated at check time.

Some operations require a literal, because it is part of the node: the pattern of `matches`. Others accept any value;
where it is a literal they are evaluated here, so that `date('2023-02-30')` is rejected with its location.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from vesper.kernels import bytes as bytes_
from vesper.kernels import date, duration, period, time_of_day, timestamp
from vesper.kernels.calendar import patterns
from vesper.kernels.calendar.zones import is_zone, zone_names
from vesper.kernels.raised import Raised
from vesper.language.check.expressions.patterns import is_pattern
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.language.ir import nodes as ir
from vesper.language.syntax import ast
from vesper.values.generated.errors import ErrorCode
from vesper.values.generated.operations import OPERATIONS
from vesper.values.model import Scalar

EVALUATED: dict[str, tuple[Callable[[str], Scalar], str]] = {
    "date.parse": (date.parse, "a date: `YYYY-MM-DD`, a day that exists"),
    "timestamp.parse": (timestamp.parse, "a timestamp: `YYYY-MM-DDThh:mm:ssZ`, or with an offset such as `+02:00`"),
    "duration.parse": (duration.parse, "a duration: `P1DT2H3M4.5S` or `1d2h3m4.5s`"),
    "time_of_day.parse": (time_of_day.parse, "a time of day: `hh:mm:ss`, or with a fraction"),
    "period.parse": (period.parse, "a period: `P1Y2M`, `P14M` or `-P1Y`"),
    "bytes.parse_hex": (bytes_.parse_hex, "bytes: two hexadecimal digits for each"),
}
"""Kernel that parses a string literal, and a description of its text, by operation."""

_TOO_FAR = {
    "timestamp.parse": "a moment in the years 1 to 9999",
    "duration.parse": "a duration of at most 3,652,059 days",
    "period.parse": "a period of at most 9,999 years",
}
_ZONE = "a time zone of the IANA database, such as `Europe/Berlin`"
CHECKED: dict[str, tuple[int, Callable[[str], bool], str]] = {
    "timestamp.local_date": (1, is_zone, _ZONE),
    "timestamp.local_time": (1, is_zone, _ZONE),
    "timestamp.utc_offset": (1, is_zone, _ZONE),
    "date.at_zone": (2, is_zone, _ZONE),
    "date.parse_pattern": (
        1, lambda text: patterns.is_readable(text, has_time=False), "a pattern with year, month and day, each once"
    ),
    "date.format_pattern": (1, lambda text: patterns.is_writable(text, has_time=False), "a pattern of dates"),
    "timestamp.parse_pattern": (
        1, lambda text: patterns.is_readable(text, has_time=True),
        "a pattern with year, month and day, each part once, and `h` only with `a`",
    ),
    "timestamp.format_pattern": (1, lambda text: patterns.is_writable(text, has_time=True), "a pattern of timestamps"),
}  # fmt: skip
"""Test of a string literal that is an argument, its place, and a description of what it must be, by operation."""


def check_literal_arguments(
    call: ir.Call, arguments: Sequence[ast.Expression], bag: DiagnosticBag
) -> ir.Expression | None:
    """Return the call, or its value if that is already known. Returns None after reporting a faulty literal."""
    spec = OPERATIONS[call.op]
    for (name, _), argument in zip(spec.params, arguments, strict=False):
        if name in spec.literals and not _check_readable(call, name, argument, bag):
            return None
    if call.op in EVALUATED and isinstance(arguments[0], ast.String):
        return _evaluate(call, arguments[0], bag)
    if call.op in CHECKED:
        place, is_valid, expected = CHECKED[call.op]
        literal = arguments[place] if place < len(arguments) else None
        if isinstance(literal, ast.String) and not is_valid(literal.text):
            is_zone_ = expected is _ZONE
            help_ = did_you_mean(literal.text, zone_names()) if is_zone_ else _pattern_help(literal.text, is_valid)
            bag.error(Code.BAD_LITERAL, literal.span, text=literal.text, expected=expected, help=help_)
            return None
    return call


def _pattern_help(text: str, is_valid: Callable[[str], bool]) -> str:
    from vesper.language.syntax.habits.date_patterns import meant_pattern  # for a faulty file only

    meant, fields = meant_pattern(text), "`yyyy` is the year, `MM` the month, `dd` the day"
    if meant != text and is_valid(meant):
        return f"write `'{meant}'`: {fields}" if "'" not in meant else f'write `"{meant}"`: {fields}'
    return f"{fields}, `HH:mm:ss` the time, as in `'dd.MM.yyyy'`; other letters are put in quotes"


def _check_readable(call: ir.Call, name: str, argument: ast.Expression, bag: DiagnosticBag) -> bool:
    if not isinstance(argument, ast.String):
        bag.error(Code.NOT_A_LITERAL, argument.span, parameter=name, function=OPERATIONS[call.op].function)
        return False
    assert name == "pattern", f"{call.op}: nothing reads the literal `{name}`"
    return is_pattern(argument.text, argument.part, bag)


def _evaluate(call: ir.Call, argument: ast.String, bag: DiagnosticBag) -> ir.Expression | None:
    kernel, expected = EVALUATED[call.op]
    try:
        return ir.Literal(call.type, kernel(argument.text), call.place)
    except Raised as raised:
        if raised.code == ErrorCode.TIME_OVERFLOW:
            expected = _TOO_FAR[call.op]
        help_ = f"it would fail with {raised.code} whenever it is evaluated"
        bag.error(Code.BAD_LITERAL, argument.span, text=argument.text, expected=expected, help=help_)
        return None
