"""Which cases say something about Vesper's decimals, and what they say: `Case` in, checks or a reason out.

The rules, on one page:

- Operands must be finite and within our limits (1,000 digits, 1,000 places) once a positive exponent is written out.
- What a case expects is taken from its own result, never computed here. Only the scale of an exact result comes from
  the tables of docs/spec/numbers.md, because a number here has no negative scale; zero has no sign.
- A result that is not inexact is compared with our operation as it is.
- A result that was rounded to the precision of the case is compared with `round(operation, scale, mode)`, with the
  scale that the case's result has, in the case's mode: `+ - *` are exact, so that is one rounding. A quotient is
  compared with `div(a, b, scale, mode)` likewise, and with `/` where the case has 34 digits and rounds half to even,
  or where the quotient is exact in 34 digits.
- What is exact but over our limits must fail with `decimal_overflow`; a division by zero with `division_by_zero`; a
  text that is no number with `bad_format`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from tests.proofs.decimal_cases.dectest import Case, Number, number

MAX_DIGITS = 1000
MAX_PLACES = 1000
SIGNIFICANT = 34
MODES = frozenset({"half_even", "half_up", "half_down", "up", "down", "floor", "ceiling"})
_MAX_POWER_DIGITS = 1_000_000
_SHORT_POWER = 20_000
"""Digits of a power that is still computed here, to see whether it has at most 34."""


class LeftOut(StrEnum):
    """Why a case says nothing about Vesper. There are no other reasons."""

    NO_COUNTERPART = "Vesper has no such operation on decimals"
    NOT_FINITE = "an operand or the result is a NaN or an infinity, or the operation is invalid"
    NOT_A_TEXT = "an operand or the result is an encoding (#…) or is not said (?)"
    NO_SUCH_MODE = "rounded in a mode that Vesper does not have (05up)"
    OUTSIDE_LIMITS = "an operand or the place of rounding is beyond 1,000 digits or places"
    CASE_OVERFLOWS = "beyond the exponents of the case, which Vesper does not have"
    CASE_PRECISION = "refused for the precision of the case, which Vesper does not have"
    TENS_OF_A_QUOTIENT = "a quotient rounded to tens or above, which `div` does not do"
    ROUNDED_POWER = "a power with a fraction as exponent, or rounded otherwise than to 34 digits half to even"
    ROUNDED_FIRST = "rounded before trailing zeros are taken off: the place of rounding does not show"
    NEGATIVE_SCALE = "asks for the exponent of a number that Vesper writes out"


@dataclass(frozen=True, slots=True)
class Decimal:
    """What must come back: the number, and by its scale the text."""

    coefficient: int
    scale: int

    @property
    def text(self) -> str:
        digits = str(abs(self.coefficient)).rjust(self.scale + 1, "0")
        sign = "-" if self.coefficient < 0 else ""
        return (
            f"{sign}{digits[: len(digits) - self.scale]}{'.' if self.scale else ''}{digits[len(digits) - self.scale :]}"
        )


@dataclass(frozen=True, slots=True)
class Fails:
    code: str


Expected = Decimal | Fails | bool | int | tuple[bool, ...]
Argument = Decimal | int | str


@dataclass(frozen=True, slots=True)
class Check:
    """One call: a form of `forms.py`, its arguments by name, what must come of it."""

    form: str
    arguments: dict[str, Argument]
    expected: Expected


def checks_of(case: Case) -> list[Check] | LeftOut:
    rule = _RULES.get(case.operation)
    if rule is None:
        return LeftOut.NO_COUNTERPART
    if case.result == "?" or any(text.startswith("#") for text in (*case.operands, case.result)):
        return LeftOut.NOT_A_TEXT
    if case.operation in _OF_TEXTS:
        return _of_text(case)
    operands = [number(text) for text in case.operands]
    finite = [each for each in operands if each is not None]
    if len(finite) != len(operands):
        return LeftOut.NOT_FINITE
    if "overflow" in case.conditions:
        return LeftOut.CASE_OVERFLOWS
    # The second operand of these two is no number to compute with: an exponent, or a number whose exponent counts.
    taken = finite[:1] if case.operation in ("rescale", "quantize") else finite
    written = [_written(each) for each in taken]
    if any(each is None for each in written):
        return LeftOut.OUTSIDE_LIMITS
    return rule(case, finite, [each for each in written if each is not None])


def _written(value: Number) -> Decimal | None:
    """A number as Vesper has it, or None where it is over a limit."""
    if value.exponent > 0 and not value.coefficient:
        return Decimal(0, 0)
    if value.digits + max(value.exponent, 0) > MAX_DIGITS or -value.exponent > MAX_PLACES:
        return None
    if value.exponent >= 0:
        return Decimal(value.coefficient * 10**value.exponent, 0)
    return Decimal(value.coefficient, -value.exponent)


def _at_scale(value: Number, scale: int) -> Expected:
    """The number of a case with the scale that our tables give its exact result."""
    if not value.coefficient:
        return Decimal(0, scale) if scale <= MAX_PLACES else Fails("decimal_overflow")
    shift = value.exponent + scale
    if scale > MAX_PLACES or value.digits + shift > MAX_DIGITS:
        return Fails("decimal_overflow")
    if shift >= 0:
        return Decimal(value.coefficient * 10**shift, scale)
    coefficient, rest = divmod(abs(value.coefficient), 10**-shift)
    assert rest == 0, f"{value} has more than {scale} places"
    return Decimal(-coefficient if value.coefficient < 0 else coefficient, scale)


def _smallest_scale(value: Number) -> int:
    coefficient, exponent = value.coefficient, value.exponent
    while coefficient and coefficient % 10 == 0 and exponent < 0:
        coefficient, exponent = coefficient // 10, exponent + 1
    return max(-exponent, 0) if coefficient else 0


def _significant(value: Number) -> int:
    """Digits without the zeros at the end."""
    return len(str(abs(value.coefficient)).rstrip("0")) or 1


# ----------------------------------------------------------------------------------------------------- what is exact

_Exact = Callable[[list[Decimal]], Decimal]
"""The exact coefficient and scale: only to see whether our limits hold on the way to a rounded result."""


def _sum(left: Decimal, right: Decimal, sign: int = 1) -> Decimal:
    scale = max(left.scale, right.scale)
    return Decimal(
        left.coefficient * 10 ** (scale - left.scale) + sign * right.coefficient * 10 ** (scale - right.scale), scale
    )


def _product(left: Decimal, right: Decimal) -> Decimal:
    return Decimal(left.coefficient * right.coefficient, left.scale + right.scale)


def _over_limits(value: Decimal) -> bool:
    return value.scale > MAX_PLACES or len(str(abs(value.coefficient))) > MAX_DIGITS


def _exactly(form: str, *parts: _Exact) -> _Rule:
    """An exact operation, made of these parts: any of them over a limit fails."""

    def rule(case: Case, _: list[Number], operands: list[Decimal]) -> list[Check] | LeftOut:
        result = number(case.result)
        if result is None:
            return LeftOut.NOT_FINITE
        arguments: dict[str, Argument] = dict(zip("abc", operands, strict=False))
        values = [part(operands) for part in parts]
        if any(_over_limits(value) for value in values):
            return [Check(form, arguments, Fails("decimal_overflow"))]
        return _exact_and_rounded(case, form, arguments, result, values[-1].scale)

    return rule


def _exact_and_rounded(
    case: Case, form: str, arguments: dict[str, Argument], result: Number, scale: int
) -> list[Check] | LeftOut:
    checks: list[Check] = []
    if not case.is_inexact:
        checks.append(Check(form, arguments, _at_scale(result, scale)))
    if case.is_rounded:
        if case.settings.rounding not in MODES:
            return checks or LeftOut.NO_SUCH_MODE
        if not -MAX_PLACES <= -result.exponent <= MAX_PLACES:
            return checks or LeftOut.OUTSIDE_LIMITS
        rounding: dict[str, Argument] = {"s": -result.exponent, "mode": case.settings.rounding}
        checks.append(Check(f"rounded {form}", arguments | rounding, _at_scale(result, max(-result.exponent, 0))))
    return checks


def _quantize(case: Case, finite: list[Number], operands: list[Decimal]) -> list[Check] | LeftOut:
    result = number(case.result)
    if result is None:
        return LeftOut.CASE_PRECISION
    if case.is_rounded and case.settings.rounding not in MODES:
        return LeftOut.NO_SUCH_MODE
    mode = case.settings.rounding if case.settings.rounding in MODES else "half_even"
    # `rescale` is given the exponent itself, `quantize` a number that has it.
    exponent = finite[1].exponent if case.operation == "quantize" else _whole(finite[1])
    if exponent is None:
        return LeftOut.NOT_FINITE  # an exponent with a fraction is invalid
    if not -MAX_PLACES <= -exponent <= MAX_PLACES:
        return LeftOut.OUTSIDE_LIMITS
    arguments: dict[str, Argument] = {"a": operands[0], "s": -exponent, "mode": mode}
    return [Check("rounded a", arguments, _at_scale(result, max(-exponent, 0)))]


def _whole(value: Number) -> int | None:
    """The integer that a number is, or None. Zero first: its exponent may be anything."""
    if not value.coefficient:
        return 0
    if value.exponent >= 0:
        return value.coefficient * int(10**value.exponent)
    coefficient, rest = divmod(value.coefficient, int(10**-value.exponent))
    return None if rest else coefficient


def _to_integral(case: Case, finite: list[Number], operands: list[Decimal]) -> list[Check] | LeftOut:
    result = number(case.result)
    if result is None:
        return LeftOut.NOT_FINITE
    if case.settings.rounding not in MODES:
        return LeftOut.NO_SUCH_MODE
    expected = _at_scale(result, 0)
    mode = case.settings.rounding
    checks = [Check("rounded a", {"a": operands[0], "s": 0, "mode": mode}, expected)]
    to_integer = {"floor": "floor(a)", "ceiling": "ceil(a)", "down": "trunc(a)"}.get(mode)
    if to_integer is not None and isinstance(expected, Decimal):
        checks.append(Check(to_integer, {"a": operands[0]}, _as_integer(expected.coefficient)))
    return checks


def _as_integer(value: int) -> Expected:
    return value if -(2**63) <= value < 2**63 else Fails("integer_overflow")


def _compare(case: Case, finite: list[Number], operands: list[Decimal]) -> list[Check] | LeftOut:
    order = int(case.result)
    six = (order == 0, order != 0, order < 0, order <= 0, order > 0, order >= 0)
    return [Check("comparisons", {"a": operands[0], "b": operands[1]}, six)]


def _extreme(form: str) -> _Rule:
    def rule(case: Case, finite: list[Number], operands: list[Decimal]) -> list[Check] | LeftOut:
        result = number(case.result)
        if result is None:
            return LeftOut.NOT_FINITE
        left, right = operands
        arguments: dict[str, Argument] = {"a": left, "b": right}
        difference = _sum(left, right, -1).coefficient
        # Of two equal ones GDA looks at signs of zero and exponents; here it is the first, as it is.
        first = difference == 0 or (difference < 0) == (form == "min(a, b)")
        return _exact_and_rounded(case, form, arguments, result, (left if first else right).scale)

    return rule


def _reduce(case: Case, finite: list[Number], operands: list[Decimal]) -> list[Check] | LeftOut:
    result = number(case.result)
    if result is None:
        return LeftOut.NOT_FINITE
    if case.is_inexact:
        return LeftOut.ROUNDED_FIRST
    return [Check("normalize(a)", {"a": operands[0]}, _at_scale(result, _smallest_scale(result)))]


def _same_quantum(case: Case, finite: list[Number], operands: list[Decimal]) -> list[Check] | LeftOut:
    if any(each.exponent > 0 for each in finite):
        return LeftOut.NEGATIVE_SCALE
    return [Check("scale(a) == scale(b)", {"a": operands[0], "b": operands[1]}, case.result == "1")]


def _is_zero(case: Case, finite: list[Number], operands: list[Decimal]) -> list[Check] | LeftOut:
    return [Check("a == 0", {"a": operands[0]}, case.result == "1")]


# --------------------------------------------------------------------------------------------- quotients and powers


def _divide(case: Case, finite: list[Number], operands: list[Decimal]) -> list[Check] | LeftOut:
    left, right = operands
    arguments: dict[str, Argument] = {"a": left, "b": right}
    if not right.coefficient:
        by_zero = Fails("division_by_zero")
        return [Check("a / b", arguments, by_zero), Check("div", arguments | {"s": 0, "mode": "down"}, by_zero)]
    result = number(case.result)
    if result is None:
        return LeftOut.NOT_FINITE
    checks: list[Check] = []
    mode = case.settings.rounding
    if not case.is_inexact and _significant(result) <= SIGNIFICANT:
        scale = max(left.scale - right.scale, 0, _smallest_scale(result))
        checks.append(Check("a / b", arguments, _within_34(result, scale)))
    elif _rounds_as_we_do(case):
        checks.append(Check("a / b", arguments, _at_scale(result, max(-result.exponent, 0))))
    if result.exponent > 0:
        return checks or LeftOut.TENS_OF_A_QUOTIENT
    if -result.exponent > MAX_PLACES:
        return checks or LeftOut.OUTSIDE_LIMITS
    if mode in MODES:
        rounding: dict[str, Argument] = {"s": -result.exponent, "mode": mode}
        checks.append(Check("div", arguments | rounding, _at_scale(result, -result.exponent)))
    return checks or LeftOut.NO_SUCH_MODE


def _within_34(value: Number, scale: int) -> Expected:
    """An exact quotient or power: with this scale, or the largest one with 34 digits, but not below 0."""
    digits = value.digits + value.exponent + scale
    if value.coefficient and digits > SIGNIFICANT:
        scale = max(scale - (digits - SIGNIFICANT), 0)
    return _at_scale(value, scale)


def _rounds_as_we_do(case: Case) -> bool:
    settings = case.settings
    # A subnormal result is rounded at the smallest exponent of the case, which has fewer than 34 digits.
    return settings.precision == SIGNIFICANT and settings.rounding == "half_even" and not case.conditions & _SUBNORMAL


_SUBNORMAL = {"subnormal", "underflow"}


def _whole_quotient(case: Case, finite: list[Number], operands: list[Decimal]) -> list[Check] | LeftOut:
    """divideint, remainder and remaindernear; on integers of 64 bits also `quot` and `rem`."""
    left, right = operands
    arguments: dict[str, Argument] = {"a": left, "b": right}
    form = _WHOLE[case.operation]
    is_whole = left.scale == right.scale == 0 and all(abs(each.coefficient) < 2**63 for each in operands)
    integers: dict[str, Argument] = {"m": left.coefficient, "n": right.coefficient}
    on_integers = {"divideint": "quot(m, n)", "remainder": "rem(m, n)"}.get(case.operation) if is_whole else None
    if not right.coefficient:
        by_zero = Fails("division_by_zero")
        return [Check(form, arguments, by_zero)] + ([Check(on_integers, integers, by_zero)] if on_integers else [])
    result = number(case.result)
    if result is None:
        return LeftOut.CASE_PRECISION
    if case.operation == "divideint":
        expected = _at_scale(result, 0)
        quotients = [Check(form, arguments, expected)]
        if on_integers and isinstance(expected, Decimal):
            quotients.append(Check(on_integers, integers, expected.coefficient))
        return quotients
    checks = _exact_and_rounded(case, form, arguments, result, max(left.scale, right.scale))
    if isinstance(checks, list) and on_integers and not case.is_inexact:
        whole = _whole(result)
        assert whole is not None, "what is left of an integer divided by an integer"
        checks.append(Check(on_integers, integers, whole))
    return checks


_WHOLE = {
    "divideint": "div(a, b, 0, down)",
    "remainder": "a - b * div(a, b, 0, down)",
    "remaindernear": "a - b * div(a, b, 0, half_even)",
}


def _power(case: Case, finite: list[Number], operands: list[Decimal]) -> list[Check] | LeftOut:
    if len(operands) != 2:
        return LeftOut.NO_COUNTERPART  # a power modulo a number: an extension of CPython's
    base, exponent = operands
    result = number(case.result)
    if result is None:
        return LeftOut.NOT_FINITE
    times, rest = divmod(exponent.coefficient, 10**exponent.scale)
    if rest or not -(2**63) <= times < 2**63:
        return LeftOut.ROUNDED_POWER
    arguments: dict[str, Argument] = {"a": base, "n": times}
    digits = len(str(abs(base.coefficient)))
    if digits * abs(times) > _MAX_POWER_DIGITS:
        return [Check("pow(a, n)", arguments, Fails("decimal_overflow"))]
    if not case.is_inexact:
        if _significant(result) > SIGNIFICANT:
            return LeftOut.ROUNDED_POWER
        scale = base.scale * times if times > 0 else _smallest_scale(result) if times else 0
        return [Check("pow(a, n)", arguments, _within_34(result, scale))]
    if _rounds_as_we_do(case):
        return [Check("pow(a, n)", arguments, _at_scale(result, max(-result.exponent, 0)))]
    if times > 0 and digits * times <= _SHORT_POWER and abs(base.coefficient) ** times < 10**SIGNIFICANT:
        # Our power is exact, so rounding it afterwards is one rounding.
        return _exact_and_rounded(case, "pow(a, n)", arguments, result, 0)
    return LeftOut.ROUNDED_POWER


# ------------------------------------------------------------------------------------------------------------- texts

_OF_TEXTS = frozenset({"tosci", "toeng", "apply"})


def _of_text(case: Case) -> list[Check] | LeftOut:
    (text,) = case.operands
    if "conversion_syntax" in case.conditions:
        return [Check("parse_decimal(t)", {"t": text}, Fails("bad_format"))]
    operand, result = number(text), number(case.result)
    if operand is None or (result is None and "overflow" not in case.conditions):
        return LeftOut.NOT_FINITE
    written = _written(operand)
    if written is None:
        return [Check("parse_decimal(t)", {"t": text}, Fails("decimal_overflow"))]
    if result is None or "overflow" in case.conditions:
        return LeftOut.CASE_OVERFLOWS
    return _exact_and_rounded(case, "parse_decimal(t)", {"t": text}, result, written.scale)


_Rule = Callable[[Case, list[Number], list[Decimal]], list[Check] | LeftOut]
_same = _exactly("a", lambda of: of[0])
_RULES: dict[str, _Rule] = {
    "abs": _exactly("abs(a)", lambda of: of[0]),
    "add": _exactly("a + b", lambda of: _sum(of[0], of[1])),
    "apply": _same,
    "canonical": _same,
    "compare": _compare,
    "comparesig": _compare,
    "copy": _same,
    "copyabs": _exactly("abs(a)", lambda of: of[0]),
    "copynegate": _exactly("-a", lambda of: of[0]),
    "divide": _divide,
    "divideint": _whole_quotient,
    "fma": _exactly("a * b + c", lambda of: _product(of[0], of[1]), lambda of: _sum(_product(of[0], of[1]), of[2])),
    "iszero": _is_zero,
    "max": _extreme("max(a, b)"),
    "min": _extreme("min(a, b)"),
    "minus": _exactly("-a", lambda of: of[0]),
    "multiply": _exactly("a * b", lambda of: _product(of[0], of[1])),
    "plus": _same,
    "power": _power,
    "quantize": _quantize,
    "reduce": _reduce,
    "remainder": _whole_quotient,
    "remaindernear": _whole_quotient,
    "rescale": _quantize,
    "samequantum": _same_quantum,
    "subtract": _exactly("a - b", lambda of: _sum(of[0], of[1], -1)),
    "toeng": _same,
    "tointegral": _to_integral,
    "tointegralx": _to_integral,
    "tosci": _same,
}
