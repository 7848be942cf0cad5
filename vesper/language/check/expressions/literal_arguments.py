"""Arguments that are evaluated at check time.

Some operations require a literal, because it is part of the node: the pattern of `matches`. Others accept any value;
where it is a literal they are evaluated here, so that `date('2023-02-30')` is rejected with its location.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from vesper.kernels import bytes as bytes_
from vesper.kernels import date, duration, timestamp
from vesper.kernels.raised import Raised
from vesper.language.check.expressions.patterns import is_pattern
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.ir import nodes as ir
from vesper.language.syntax import ast
from vesper.values.generated.errors import ErrorCode
from vesper.values.generated.operations import OPERATIONS
from vesper.values.model import Scalar

EVALUATED: dict[str, tuple[Callable[[str], Scalar], str]] = {
    "date.parse": (date.parse, "a date: `YYYY-MM-DD`, a day that exists"),
    "timestamp.parse": (timestamp.parse, "a timestamp: `YYYY-MM-DDThh:mm:ssZ`, or with an offset such as `+02:00`"),
    "duration.parse": (duration.parse, "a duration: `P1DT2H3M4.5S` or `1d2h3m4.5s`"),
    "bytes.parse_hex": (bytes_.parse_hex, "bytes: two hexadecimal digits for each"),
}
"""Kernel that parses a string literal, and a description of its text, by operation."""

_TOO_FAR = {
    "timestamp.parse": "a moment in the years 1 to 9999",
    "duration.parse": "a duration of at most 3,652,059 days",
}


def check_literal_arguments(
    call: ir.Call, arguments: Sequence[ast.Expression], bag: DiagnosticBag
) -> ir.Expression | None:
    """Return the call, or its value where that is known already. Returns None after reporting a faulty literal."""
    spec = OPERATIONS[call.op]
    for (name, _), argument in zip(spec.params, arguments, strict=False):
        if name in spec.literals and not _is_readable(call, name, argument, bag):
            return None
    if call.op in EVALUATED and isinstance(arguments[0], ast.String):
        return _evaluate(call, arguments[0], bag)
    return call


def _is_readable(call: ir.Call, name: str, argument: ast.Expression, bag: DiagnosticBag) -> bool:
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
