"""Constructors of z3 terms that fold constants, so that terms stay small."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, TypeAlias

import z3

Term: TypeAlias = Any
"""A z3 expression; z3 has no types of its own for mypy."""

TRUE = z3.BoolVal(True)
FALSE = z3.BoolVal(False)
ZERO = z3.IntVal(0)
_TRUE_ID, _FALSE_ID = TRUE.get_id(), FALSE.get_id()
"""Equal terms are one term to z3: their ids tell them apart with one call."""
_MAX_LEAVES = 64
_MAX_OPPOSITES = 4
"""Parts of a conjunction up to which a term and its negation are looked for."""


def truth(value: bool) -> Term:
    return TRUE if value else FALSE


def integer(value: int) -> Term:
    return z3.IntVal(value)


def real(value: Fraction | int) -> Term:
    exact = Fraction(value)
    return z3.RealVal(f"{exact.numerator}/{exact.denominator}")


def is_true(term: Term) -> bool:
    return bool(term.get_id() == _TRUE_ID)


def is_false(term: Term) -> bool:
    return bool(term.get_id() == _FALSE_ID)


def both(*terms: Term) -> Term:
    """Return the conjunction."""
    distinct = {term.get_id(): term for term in terms}
    if _FALSE_ID in distinct:
        return FALSE
    distinct.pop(_TRUE_ID, None)
    parts = list(distinct.values())
    if 1 < len(parts) <= _MAX_OPPOSITES and any(z3.is_not(part) and part.arg(0).get_id() in distinct for part in parts):
        return FALSE
    return TRUE if not parts else parts[0] if len(parts) == 1 else z3.And(*parts)


def either(*terms: Term) -> Term:
    """Return the disjunction."""
    distinct = {term.get_id(): term for term in terms}
    if _TRUE_ID in distinct:
        return TRUE
    distinct.pop(_FALSE_ID, None)
    parts = list(distinct.values())
    if len(parts) == 2:
        shared = _common_conditions(parts[0], parts[1])
        if shared is not None:
            return shared
    return FALSE if not parts else parts[0] if len(parts) == 1 else z3.Or(*parts)


def _common_conditions(left: Term, right: Term) -> Term | None:
    """Return the common conditions of two conjunctions that end with a condition and with its negation."""
    first, second = conjuncts(left), conjuncts(right)
    if not first or not second or not all(a.eq(b) for a, b in zip(first[:-1], second[:-1], strict=False)):
        return None
    if len(first) == len(second) and negated(first[-1]).eq(second[-1]):
        return both(*first[:-1])
    return None


def conjuncts(term: Term) -> list[Term]:
    return list(term.children()) if z3.is_and(term) else [term]


def negated(term: Term) -> Term:
    if is_true(term):
        return FALSE
    if is_false(term):
        return TRUE
    return term.arg(0) if z3.is_not(term) else z3.Not(term)


def implied(condition: Term, then: Term) -> Term:
    return either(negated(condition), then)


def choose(condition: Term, then: Term, otherwise: Term) -> Term:
    """Return `then` where the condition holds, else `otherwise`."""
    if is_true(condition) or then.eq(otherwise):
        return then
    if is_false(condition):
        return otherwise
    if z3.is_bool(then):
        if is_true(then):
            return either(condition, otherwise)
        if is_false(then):
            return both(negated(condition), otherwise)
        if is_true(otherwise):
            return either(negated(condition), then)
        if is_false(otherwise):
            return both(condition, then)
    return z3.If(condition, then, otherwise)


def is_same(left: Term, right: Term) -> Term:
    """Return whether two terms of one sort are equal, decided at once for numerals."""
    if left.eq(right):
        return TRUE
    if is_number(left) and is_number(right):
        return truth(number(left) == number(right))
    if z3.is_bool(left):
        if is_true(left):
            return right
        if is_true(right):
            return left
        if is_false(left):
            return negated(right)
        if is_false(right):
            return negated(left)
    return left == right


def is_less(left: Term, right: Term) -> Term:
    if is_number(left) and is_number(right):
        return truth(number(left) < number(right))
    return FALSE if left.eq(right) else left < right


def is_at_most(left: Term, right: Term) -> Term:
    if is_number(left) and is_number(right):
        return truth(number(left) <= number(right))
    return TRUE if left.eq(right) else left <= right


def is_number(term: Term) -> bool:
    return bool(z3.is_int_value(term) or z3.is_rational_value(term))


def number(term: Term) -> Fraction:
    """Return the value of a numeral."""
    return Fraction(term.as_long()) if z3.is_int_value(term) else term.as_fraction()


def whole(term: Term) -> int:
    """Return the value of an integer numeral."""
    return int(term.as_long())


def add(left: Term, right: Term) -> Term:
    if is_number(left) and is_number(right):
        return _numeral(left, number(left) + number(right))
    if is_number(left) and number(left) == 0:
        return right
    return left if is_number(right) and number(right) == 0 else left + right


def subtract(left: Term, right: Term) -> Term:
    if is_number(left) and is_number(right):
        return _numeral(left, number(left) - number(right))
    return left if is_number(right) and number(right) == 0 else left - right


def negative(term: Term) -> Term:
    return _numeral(term, -number(term)) if is_number(term) else -term


def larger(left: Term, right: Term) -> Term:
    return choose(is_at_most(right, left), left, right)


def smaller(left: Term, right: Term) -> Term:
    return choose(is_at_most(left, right), left, right)


def magnitude(term: Term) -> Term:
    return choose(is_less(term, _numeral(term, Fraction(0))), negative(term), term)


def _numeral(like: Term, value: Fraction) -> Term:
    return z3.IntVal(int(value)) if z3.is_int(like) else real(value)


def as_real(term: Term) -> Term:
    return real(number(term)) if is_number(term) else z3.ToReal(term) if z3.is_int(term) else term


def linear_product(left: Term, right: Term) -> Term | None:
    """Return the product where one factor is a numeral or a choice of numerals. Returns None otherwise."""
    if is_number(left):
        left, right = right, left
    if is_number(right):
        if is_number(left):
            return _numeral(left, number(left) * number(right))
        factor = number(right)
        return _numeral(left, Fraction(0)) if factor == 0 else left if factor == 1 else left * right
    for first, second in ((left, right), (right, left)):
        if has_number_leaves(second):
            return over_leaves(second, lambda leaf, factor=first: linear_product(factor, leaf))
    return None


def has_number_leaves(term: Term) -> bool:
    """Return whether a term is a choice between few numerals."""
    waiting, leaves = [term], 0
    while waiting:
        each = waiting.pop()
        if z3.is_app_of(each, z3.Z3_OP_ITE):
            waiting += [each.arg(1), each.arg(2)]
        elif is_number(each):
            leaves += 1
        else:
            return False
        if leaves + len(waiting) > _MAX_LEAVES:
            return False
    return True


def over_leaves(term: Term, change: Any) -> Term:
    """Return a choice with each of its leaves changed. It is at most `_MAX_LEAVES` deep."""
    if z3.is_app_of(term, z3.Z3_OP_ITE):
        return choose(term.arg(0), over_leaves(term.arg(1), change), over_leaves(term.arg(2), change))
    return change(term)
