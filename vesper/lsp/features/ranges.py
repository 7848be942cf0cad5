"""Values that an expression can have, from constraints, preconditions and the steps above it."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from vesper.language.check.reachability.evaluate import Evaluator
from vesper.language.check.reachability.intervals import (
    Choice,
    Interval,
    Known,
    Nullable,
    Number,
    Sized,
    Texts,
    join,
)
from vesper.language.check.reachability.statements import FlowWalk
from vesper.language.check.reachability.terms import Facts
from vesper.language.ir import nodes as ir
from vesper.values.types import Enum, OptionalOf, Type

_MAX_DEPTH = 160
_MAX_SHOWN = 8
_LARGE = 2**62


class _Noting(Evaluator):
    """Evaluates expressions and keeps the values of each place."""

    def __init__(self, node: ir.Node) -> None:
        super().__init__(node)
        self.at: dict[ir.Place, Known] = {}

    def value(self, expression: ir.Expression, facts: Facts) -> Known | None:
        found = super().value(expression, facts)
        if found is not None:
            before = self.at.get(expression.place)
            is_same_kind = before is not None and type(before) is type(found)
            self.at[expression.place] = join(before, found) if before is not None and is_same_kind else found
        return found


class Ranges:
    """Possible values of the expressions and inputs of one node."""

    def __init__(self, node: ir.Node) -> None:
        self.at: dict[ir.Place, Known] = {}
        self.inputs: dict[str, Known] = {}
        if any(ir.depth(root) > _MAX_DEPTH for root in node.roots()):
            return
        evaluator = _Noting(node)
        facts: Facts | None = Facts()
        for clause in (*node.constraints, *node.preconditions):
            evaluator.terms.add(clause.holds)
            facts = None if facts is None else evaluator.branch(clause.holds, facts)[0]
        self.at = evaluator.at
        if facts is None:
            return
        FlowWalk(evaluator).body(node.body, facts)
        for each in node.expressions():
            if isinstance(each, ir.Ref) and each.kind == "input" and each.index in evaluator.terms.by_index:
                self.inputs[each.name] = evaluator.terms.known(evaluator.terms.by_index[each.index], facts)


def show_range(known: Known | None, type_: Type | None) -> str | None:
    """Return the possible values in words; None where they are all those of the type."""
    match known:
        case Interval():
            return _interval(known, "")
        case Texts(length=length, values=values):
            if values is not None and len(values) <= _MAX_SHOWN:
                return "one of " + ", ".join(f"`'{each}'`" for each in sorted(values))
            return _interval(length, "length ")
        case Sized(length=length):
            return _interval(length, "length ")
        case Choice(values=values):
            inner = type_.inner if isinstance(type_, OptionalOf) else type_
            members = inner.members if isinstance(inner, Enum) else (True, False)
            shown = [str(each).lower() if isinstance(each, bool) else each for each in members if each in values]
            if len(shown) == len(members) or len(shown) > _MAX_SHOWN:
                return None
            return ("always " if len(shown) == 1 else "one of ") + ", ".join(f"`{each}`" for each in shown)
        case Nullable(has_null=has_null, value=value):
            if value is None:
                return "always null"
            found = show_range(value, type_)
            return f"{found}, or null" if found is not None and has_null else found if found else None
        case _:
            return None


def _interval(known: Interval, what: str) -> str | None:
    low, high = _number(known.low), _number(known.high)
    if low is not None and low == high:
        return f"always {what}`{low}`"
    if low is not None and high is not None and not known.low_is_open and not known.high_is_open:
        return f"{what}`{low}` to `{high}`"
    ends = []
    if low is not None and not (what and low == "0"):
        ends.append(f"{'more than' if known.low_is_open else 'at least'} `{low}`")
    if high is not None:
        ends.append(f"{'less than' if known.high_is_open else 'at most'} `{high}`")
    return what + " and ".join(ends) if ends else None


def _number(number: Number | None) -> str | None:
    """Return an end in digits; None for one that says little: without a short decimal, or near the 64-bit limits."""
    if number is None or not -_LARGE < number < _LARGE:
        return None
    if isinstance(number, Fraction) and number.denominator != 1:
        found = Decimal(number.numerator) / Decimal(number.denominator)
        return format(found, "f") if Fraction(found) == number else None
    return str(int(number))
