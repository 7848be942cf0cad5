"""Encodings of equality, order, booleans, optionals, enums and records."""

from __future__ import annotations

from vesper.proof.equality import at_most, equal, less
from vesper.proof.operations.operation import Operation, encodes
from vesper.proof.symbols import OptionalTerm, Scalar, Symbolic, boolean, merge
from vesper.proof.terms import FALSE, integer, is_same, negated
from vesper.values.types import Enum, OptionalOf

_ALL = (
    "integer", "decimal", "text", "date", "timestamp", "duration", "time_of_day", "period", "boolean", "enum",
    "optional", "record", "array", "set", "map", "json", "bytes", "float",
)  # fmt: skip
_MAX_MEMBERS = 40
_ORDERED = ("integer", "decimal", "text", "date", "timestamp", "duration", "time_of_day", "period")


@encodes(*(f"{family}.equal" for family in _ALL))
def _equal(operation: Operation) -> Symbolic:
    return boolean(equal(operation.context, *operation.args))


@encodes(*(f"{family}.not_equal" for family in _ALL))
def _not_equal(operation: Operation) -> Symbolic:
    return boolean(negated(equal(operation.context, *operation.args)))


@encodes(*(f"{family}.less" for family in _ORDERED))
def _less(operation: Operation) -> Symbolic | None:
    found = less(operation.context, *operation.args)
    return None if found is None else boolean(found)


@encodes(*(f"{family}.greater" for family in _ORDERED))
def _greater(operation: Operation) -> Symbolic | None:
    left, right = operation.args
    found = less(operation.context, right, left)
    return None if found is None else boolean(found)


@encodes(*(f"{family}.less_or_equal" for family in _ORDERED))
def _less_or_equal(operation: Operation) -> Symbolic | None:
    found = at_most(operation.context, *operation.args)
    return None if found is None else boolean(found)


@encodes(*(f"{family}.greater_or_equal" for family in _ORDERED))
def _greater_or_equal(operation: Operation) -> Symbolic | None:
    left, right = operation.args
    found = at_most(operation.context, right, left)
    return None if found is None else boolean(found)


@encodes("boolean.not")
def _not(operation: Operation) -> Symbolic:
    return boolean(negated(operation.term(0)))


@encodes("optional.is_null")
def _is_null(operation: Operation) -> Symbolic:
    return boolean(operation.optional(0).is_null)


@encodes("optional.is_not_null")
def _is_not_null(operation: Operation) -> Symbolic:
    return boolean(negated(operation.optional(0).is_null))


@encodes("optional.some")
def _some(operation: Operation) -> Symbolic:
    value = operation.args[0]
    if isinstance(value, OptionalTerm):
        return value
    return OptionalTerm(OptionalOf(value.type), FALSE, value)


@encodes("optional.unwrap")
def _unwrap(operation: Operation) -> Symbolic:
    return operation.optional(0).value


@encodes("optional.require")
def _require(operation: Operation) -> Symbolic:
    operation.fail("null_value", operation.optional(0).is_null)
    return operation.optional(0).value


@encodes("optional.in_force")
def _in_force(operation: Operation) -> Symbolic:
    operation.fail("not_in_force", operation.optional(0).is_null)
    return operation.optional(0).value


@encodes("value.min")
def _min(operation: Operation) -> Symbolic | None:
    left, right = operation.args
    found = less(operation.context, right, left)
    return None if found is None else merge(operation.context, found, right, left)


@encodes("value.max")
def _max(operation: Operation) -> Symbolic | None:
    left, right = operation.args
    found = less(operation.context, left, right)
    return None if found is None else merge(operation.context, found, right, left)


@encodes("value.clamp")
def _clamp(operation: Operation) -> Symbolic | None:
    value, low, high = operation.args
    crossed, is_below, is_above = (
        less(operation.context, high, low),
        less(operation.context, value, low),
        less(operation.context, high, value),
    )
    if crossed is None or is_below is None or is_above is None:
        return None
    operation.fail("invalid_argument", crossed)
    return merge(operation.context, is_below, low, merge(operation.context, is_above, high, value))


@encodes("table.allowed")
def _allowed(operation: Operation) -> Symbolic:
    operation.fail("invalid_argument", negated(operation.term(1)))
    return operation.args[0]


@encodes("boolean.text", "enum.text")
def _text(operation: Operation) -> Symbolic | None:
    from vesper.proof.operations.text import text_literal

    value = operation.args[0]
    assert isinstance(value, Scalar)
    if operation.call.op == "boolean.text":
        return merge(
            operation.context,
            value.term,
            text_literal(operation.context, "true"),
            text_literal(operation.context, "false"),
        )
    assert isinstance(value.type, Enum)
    if len(value.type.members) > _MAX_MEMBERS:
        return None
    found: Symbolic | None = None
    for member in value.type.members:
        text = text_literal(operation.context, member)
        is_it = is_same(value.term, integer(operation.context.member(member)))
        found = text if found is None else merge(operation.context, is_it, text, found)
    return found
