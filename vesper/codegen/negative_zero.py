"""Detection of expressions for which Python's `decimal` could return a negative zero, which Vesper does not have.

Only a product can be one: zero times a negative number. Values are normalised where they are stored, so that every name
and every part of a collection or record holds an unsigned zero, and each expression can be judged alone.
"""

from __future__ import annotations

from decimal import Decimal

from vesper.language.ir.nodes import Call, Expression, If, Let, Literal


def may_be_negative_zero(expression: Expression) -> bool:
    match expression:
        case If(then=then, otherwise=otherwise):
            return may_be_negative_zero(then) or may_be_negative_zero(otherwise)
        case Call(op="decimal.multiply", args=(left, right)):
            if _is_positive_literal(left):
                return may_be_negative_zero(right)
            return not _is_positive_literal(right) or may_be_negative_zero(left)
        case Call(op="decimal.add", args=(left, right)):
            return may_be_negative_zero(left) and may_be_negative_zero(right)
        case Call(op="decimal.subtract", args=(left, _)):
            return may_be_negative_zero(left)
        case Call(op="optional.some", args=(value,)):
            return may_be_negative_zero(value)
        case Let(body=body):
            return may_be_negative_zero(body)
        case _:
            return False  # a name, a literal, a conversion, or unary minus: `decimal` gives +0 for minus zero


def _is_positive_literal(expression: Expression) -> bool:
    return isinstance(expression, Literal) and isinstance(expression.value, Decimal) and expression.value > 0
