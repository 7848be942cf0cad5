"""Operators of FEEL over typed expressions: logic of three values, equality, order, arithmetic."""

from __future__ import annotations

import re
from dataclasses import replace

from vesper.importers.dmn.code import ADD, AND, COMPARE, LOOSE, MULTIPLY, NEGATE, NOT, OR, Builder, Code, Guard, null
from vesper.importers.dmn.temporal import add_temporal, same_clock, subtract_temporal
from vesper.importers.dmn.types import (
    ANY,
    BOOLEAN,
    DURATION,
    NULL,
    NUMBER,
    PERIOD,
    STRING,
    Ty,
    fits_json,
    type_error,
    unify,
    unsupported,
)

ORDERED = ("number", "string", "date", "time", "datetime", "duration", "period")
_FINE_FRACTION = re.compile(r":\d\dS?\.\d{3}0*[1-9]|\d\.\d{3}0*[1-9]\d*S")
_SYMBOLS = {"=": "==", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


def truth(build: Builder, code: Code) -> Code:
    """Return a condition that is true where the value is true, and false for false and null."""
    if code.ty.kind == "any":
        code = build.from_any(code, BOOLEAN)
    if code.ty.kind == "null":
        return Code("false", BOOLEAN)
    if code.ty.kind != "boolean":
        raise type_error(f"a condition is a boolean, and this is a {code.ty.describe()}")
    if code.steps and not code.ty.is_nullable and all(isinstance(step, Guard) for step in code.steps):
        guards = [_opposite(step.condition) for step in code.steps if isinstance(step, Guard)]
        return Code(" AND ".join([*guards, code.at(NOT)]), BOOLEAN, AND)
    closed = build.close(code)
    if not closed.ty.is_nullable:
        return closed
    return Code(f"{closed.at(ADD)} == true", BOOLEAN, COMPARE)


def _opposite(condition: str) -> str:
    """Return the negation of a guard."""
    if re.fullmatch(r"[\w.]+ IS NULL", condition):
        return condition.replace(" IS NULL", " IS NOT NULL")
    return f"NOT ({condition})"


def _as_boolean(build: Builder, code: Code) -> Code:
    """Return an operand of `and` or `or`; a value of another type counts as null."""
    if code.ty.kind == "any":
        return build.close(build.from_any(code, BOOLEAN))
    if code.ty.kind == "null":
        return null(BOOLEAN, build.records)
    if code.ty.kind != "boolean":
        raise type_error(f"`and`, `or` and `not` need booleans, and this is a {code.ty.describe()}")
    return build.close(code)


def both(build: Builder, left: Code, right: Code) -> Code:
    """Return `and` in three-valued logic."""
    if _has_same_guards(left, right):
        return build.combine([left, right], f"{left.at(AND)} AND {right.at(NOT)}", BOOLEAN, AND)
    left, right = _as_boolean(build, left), _as_boolean(build, right)
    if not left.ty.is_nullable and not right.ty.is_nullable:
        return Code(f"{left.at(AND)} AND {right.at(NOT)}", BOOLEAN, AND)
    return _combine_three_valued(build, left, right, "false", "true")


def _has_same_guards(left: Code, right: Code) -> bool:
    """Return whether two conditions are null in the same cases. Their combination is then null in these cases."""
    kinds = {left.ty.kind, right.ty.kind}
    return kinds == {"boolean"} and left.steps == right.steps and not left.ty.is_nullable and not right.ty.is_nullable


def either(build: Builder, left: Code, right: Code) -> Code:
    """Return `or` in three-valued logic."""
    if _has_same_guards(left, right):
        return build.combine([left, right], f"{left.at(OR)} OR {right.at(AND)}", BOOLEAN, OR)
    left, right = _as_boolean(build, left), _as_boolean(build, right)
    if not left.ty.is_nullable and not right.ty.is_nullable:
        return Code(f"{left.at(OR)} OR {right.at(AND)}", BOOLEAN, OR)
    return _combine_three_valued(build, left, right, "true", "false")


def _combine_three_valued(build: Builder, left: Code, right: Code, decisive: str, other: str) -> Code:
    left, right = build.named(left, "left"), build.named(right, "right")
    unknown = " OR ".join(f"{each.text} IS NULL" for each in (left, right) if each.ty.is_nullable)
    known = f"{left.text} == {decisive} OR {right.text} == {decisive}"
    text = f"IF {known} THEN {decisive} ELSE IF {unknown} THEN null ELSE {other}"
    return build.close(replace(build.combine([left, right], text, BOOLEAN.optional(), LOOSE)))


def negation(build: Builder, code: Code) -> Code:
    """Return `not` in three-valued logic."""
    if code.ty.kind == "null":
        return null(BOOLEAN, build.records)
    if code.ty.kind == "any":
        code = build.from_any(code, BOOLEAN)
    if code.ty.kind != "boolean":
        raise type_error(f"`not` needs a boolean, and this is a {code.ty.describe()}")
    value = build.strict(code, "condition")
    return build.combine([value], f"NOT {value.at(NOT)}", BOOLEAN, NOT)


def equality(build: Builder, left: Code, right: Code, is_negated: bool = False) -> Code:
    """Return `=` or `!=`. Null equals null only; values of two types are no operands."""
    symbol = "!=" if is_negated else "=="
    if left.ty.kind == "null" or right.ty.kind == "null":
        return _equals_null(build, left, right, is_negated)
    if left.range is not None or right.range is not None:
        return _equal_ranges(build, left, right, is_negated)
    if left.closure is not None or right.closure is not None:
        raise unsupported("functions have no equality")
    if left.fields is not None or right.fields is not None:
        return _equal_static(left, right, is_negated)
    if left.ty.kind == right.ty.kind and left.ty.kind in ("time", "datetime"):
        if _FINE_FRACTION.search(left.text) or _FINE_FRACTION.search(right.text):
            raise unsupported("equality of fractions of a second below a millisecond, which FEEL does not define")
        left, right = same_clock(build, left, right)
    ty = unify(left.value_type, right.value_type)
    if ty is None:
        return _equal_other_types(build, left, right, is_negated)
    if ty.kind == "list" and "never" in (left.ty.item.kind, right.ty.item.kind):
        return _equals_empty(build, left, right, is_negated)
    one, other = build.convert(left, ty), build.convert(right, ty)
    if one is None or other is None:
        raise unsupported("these two values have no equality")
    return Code(f"{one.at(ADD)} {symbol} {other.at(ADD)}", BOOLEAN, COMPARE)


def _equals_null(build: Builder, left: Code, right: Code, is_negated: bool) -> Code:
    value = right if left.ty.kind == "null" else left
    if value.ty.kind == "null":
        return Code("false" if is_negated else "true", BOOLEAN)
    if value.closure is not None or value.range is not None:
        return Code("true" if is_negated else "false", BOOLEAN)
    closed = build.close(value)
    if closed.ty.kind == "any":
        path = build.named(closed)
        symbol = "!=" if is_negated else "=="
        return build.close(build.combine([path], f"kind({path.text}) {symbol} 'null'", BOOLEAN, COMPARE))
    if not closed.ty.is_nullable:
        return Code("true" if is_negated else "false", BOOLEAN)
    return Code(f"{closed.at(ADD)} IS {'NOT ' if is_negated else ''}NULL", BOOLEAN, COMPARE)


def _equals_empty(build: Builder, left: Code, right: Code, is_negated: bool) -> Code:
    value = right if left.ty.item.kind == "never" else left
    if value.ty.item.kind == "never":
        return Code("false" if is_negated else "true", BOOLEAN)
    closed = build.close(value)
    symbol = "!=" if is_negated else "=="
    if closed.ty.is_nullable:
        path = build.named(closed, "items")
        joined = "OR" if is_negated else "AND"
        test = f"{path.text} IS {'' if is_negated else 'NOT '}NULL {joined} length({path.text}) {symbol} 0"
        return build.close(build.combine([path], test, BOOLEAN, OR if is_negated else AND))
    return Code(f"length({closed.text}) {symbol} 0", BOOLEAN, COMPARE)


def _equal_ranges(build: Builder, left: Code, right: Code, is_negated: bool) -> Code:
    if left.range is None or right.range is None:
        raise type_error("a range and a value of another type have no equality")
    one, other = left.range, right.range
    same_shape = (
        (one.is_low_closed, one.is_high_closed, one.is_comparison)
        == (other.is_low_closed, other.is_high_closed, other.is_comparison)
        and (one.low is None) == (other.low is None)
        and (one.high is None) == (other.high is None)
    )
    if not same_shape:
        return Code("true" if is_negated else "false", BOOLEAN)
    found = Code("true", BOOLEAN)
    for mine, theirs in ((one.low, other.low), (one.high, other.high)):
        if mine is not None and theirs is not None:
            test = equality(build, mine, theirs)
            found = test if found.text == "true" else both(build, found, test)
    return negation(build, found) if is_negated else found


def _equal_static(left: Code, right: Code, is_negated: bool) -> Code:
    """Return the equality of contexts without entries. Contexts with functions have no equality."""
    if left.ty.kind != "context" or right.ty.kind != "context":
        raise type_error(f"a {left.ty.describe()} and a {right.ty.describe()} have no equality")
    if left.fields or right.fields:
        raise unsupported("contexts with functions have no equality")
    is_equal = not left.ty.names and not right.ty.names
    return Code("true" if is_equal != is_negated else "false", BOOLEAN)


def _equal_other_types(build: Builder, left: Code, right: Code, is_negated: bool) -> Code:
    """Return the equality of two types without a common one.

    Contexts with other keys are unequal, the rest is a type error.
    """
    kinds = {left.ty.kind, right.ty.kind}
    symbol = "!=" if is_negated else "=="
    if "any" in kinds and fits_json(left.ty) and fits_json(right.ty):
        one, other = build.to_any(left), build.to_any(right)
        return Code(f"{one.at(ADD)} {symbol} {other.at(ADD)}", BOOLEAN, COMPARE)
    if kinds == {"context"} and set(left.ty.names) != set(right.ty.names):
        return Code("true" if is_negated else "false", BOOLEAN)
    if (kinds in ({"list"}, {"context"})) and fits_json(left.ty) and fits_json(right.ty):
        one, other = build.to_any(left), build.to_any(right)
        return Code(f"{one.at(ADD)} {symbol} {other.at(ADD)}", BOOLEAN, COMPARE)
    raise type_error(f"a {left.ty.describe()} and a {right.ty.describe()} have no equality")


def order(build: Builder, operator: str, left: Code, right: Code) -> Code:
    """Return `<`, `<=`, `>` or `>=` of two values."""
    if "null" in (left.ty.kind, right.ty.kind):
        return null(BOOLEAN, build.records)
    if left.ty.kind == "any" and right.ty.kind in ("number", "string"):
        left = build.from_any(left, right.ty)
    if right.ty.kind == "any" and left.ty.kind in ("number", "string"):
        right = build.from_any(right, left.ty)
    if left.ty.kind != right.ty.kind or left.ty.kind not in ORDERED:
        raise type_error(f"`{operator}` compares no {left.ty.describe()} with a {right.ty.describe()}")
    if left.ty.kind in ("time", "datetime"):
        left, right = same_clock(build, left, right)
    left, right = build.strict(left, "left"), build.strict(right, "right")
    if left.is_literal and right.is_literal:
        left = build.decimal(left)
    return build.combine([left, right], f"{left.at(ADD)} {_SYMBOLS[operator]} {right.at(ADD)}", BOOLEAN, COMPARE)


def negative(build: Builder, code: Code) -> Code:
    """Return the arithmetic negation."""
    if code.ty.kind == "null":
        return Code("null", NULL)
    if code.ty.kind == "any":
        code = build.from_any(code, NUMBER)
    if code.ty.kind not in ("number", "duration", "period"):
        raise type_error(f"a {code.ty.describe()} has no negative")
    if code.is_literal and not code.text.startswith("-"):
        return Code(f"-{code.text}", NUMBER, NEGATE, is_literal=True)
    value = build.strict(code, "operand")
    return build.combine([value], f"-{value.at(NEGATE + 1)}", value.ty, NEGATE)


def arithmetic(build: Builder, operator: str, left: Code, right: Code) -> Code:
    """Return `+ - * / **` of two values, by their types."""
    left, right = _convert_any_operands(build, operator, left, right)
    kinds = (left.ty.kind, right.ty.kind)
    if "null" in kinds:
        other = right.ty if kinds[0] == "null" else left.ty
        return null(other if other.kind in (*ORDERED, "null") else NUMBER, build.records)
    if kinds == ("number", "number"):
        return _numbers(build, operator, left, right)
    if kinds == ("string", "string") and operator == "+":
        left, right = build.strict(left, "left"), build.strict(right, "right")
        return build.combine([left, right], f"{left.at(ADD)} + {right.at(MULTIPLY)}", STRING, ADD)
    found = None
    if operator == "+":
        found = add_temporal(build, left, right)
    elif operator == "-":
        found = subtract_temporal(build, left, right)
    elif operator in ("*", "/"):
        found = _scale(build, operator, left, right)
    if found is None:
        raise type_error(f"`{operator}` takes no {left.ty.describe()} and {right.ty.describe()}")
    return found


def _convert_any_operands(build: Builder, operator: str, left: Code, right: Code) -> tuple[Code, Code]:
    def read(code: Code, other: Code) -> Code:
        if code.ty.kind != "any":
            return code
        if operator == "+" and other.ty.kind == "string":
            return build.from_any(code, STRING)
        if other.ty.kind == "number" or (operator != "+" and other.ty.kind == "any"):
            return build.from_any(code, NUMBER)
        raise unsupported(f"`{operator}` on a value of any type")

    return read(left, right), read(right, left)


def _numbers(build: Builder, operator: str, left: Code, right: Code) -> Code:
    left, right = build.strict(left, "left"), build.strict(right, "right")
    if operator == "**":
        return power(build, left, right)
    if left.is_literal and right.is_literal:
        left = build.decimal(left)
    if operator == "/":
        if not (right.is_literal and right.text.strip("-0.")):
            right = _divisor(build, right)
        return build.combine([left, right], f"{left.at(MULTIPLY)} / {right.at(NEGATE)}", NUMBER, MULTIPLY)
    level = MULTIPLY if operator == "*" else ADD
    return build.combine([left, right], f"{left.at(level)} {operator} {right.at(level + 1)}", NUMBER, level)


def _divisor(build: Builder, code: Code) -> Code:
    """Return a divisor with the guard against 0."""
    if not code.is_path and not code.is_literal:
        code = build.core(code, "divisor")
    return build.guarded(code, f"{code.at(ADD)} == 0")


def power(build: Builder, base: Code, exponent: Code) -> Code:
    """Return `base ** exponent`. A whole literal exponent needs no conversion."""
    base = build.decimal(base)
    text = exponent.text
    if exponent.is_literal and "." not in text:
        if text.startswith("-"):
            base = _divisor(build, base)
        return build.combine([base], f"pow({base.text}, {text})", NUMBER)
    exponent = build.decimal(exponent)
    base, exponent = build.core(base, "base"), build.core(exponent, "exponent")
    both_ = build.combine([base, exponent], f"pow({base.text}, {exponent.text})", NUMBER)
    is_root = f"{base.text} < 0 AND trunc({exponent.text}) != {exponent.text}"
    return build.guarded(both_, f"{base.text} == 0 AND {exponent.text} < 0", is_root)


def _scale(build: Builder, operator: str, left: Code, right: Code) -> Code | None:
    """Return a duration times or divided by a number, or the ratio of two durations; None for other types."""
    kinds = (left.ty.kind, right.ty.kind)
    if operator == "*" and kinds in (("number", "duration"), ("number", "period")):
        left, right = right, left
        kinds = (left.ty.kind, right.ty.kind)
    if kinds not in (("duration", "number"), ("period", "number"), ("duration", "duration"), ("period", "period")):
        return None
    if operator == "*" and kinds[1] != "number":
        return None
    left, right = build.strict(left, "duration"), build.strict(right, "factor")
    if operator == "/":
        if kinds[1] == "duration":
            right = build.core(right, "divisor")
            right = build.guarded(right, f"total_microseconds({right.text}) == 0")
            return build.combine([left, right], f"{left.at(MULTIPLY)} / {right.at(NEGATE)}", NUMBER, MULTIPLY)
        right = _divisor(build, right)
        if kinds[1] == "period":
            return build.combine([left, right], f"{left.at(MULTIPLY)} / {right.at(NEGATE)}", NUMBER, MULTIPLY)
    right = build.decimal(right)
    if left.ty.kind == "period":
        text = f"to_integer(trunc(({left.text} AS decimal) {operator} {right.at(NEGATE)}))"
        return build.combine([left, right], text, PERIOD)
    text = (
        f"microseconds(to_integer(trunc((total_microseconds({left.text}) AS decimal) {operator} {right.at(NEGATE)})))"
    )
    return build.combine([left, right], text, DURATION)


def join_types(build: Builder, codes: list[Code]) -> tuple[Ty, list[Code]]:
    """Return one type for several values, and the values converted to it; a json where no other type holds them."""
    ty: Ty | None = None
    for code in codes:
        if code.closure is not None or code.range is not None:
            raise unsupported("a function or a range among values")
        ty = code.value_type if ty is None else unify(ty, code.value_type)
        if ty is None:
            break
    if ty is not None:
        converted = [build.convert(code, ty) for code in codes]
        if all(each is not None for each in converted):
            return ty, [each for each in converted if each is not None]
    return ANY, [build.to_any(code) for code in codes]
