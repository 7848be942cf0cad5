"""Inputs at the boundary of a comparison.

`new_balance < 0` differs from `new_balance <= 0` only if balance, amount and fee cancel exactly, which random inputs
never do. Each comparison of numbers therefore has a probe, a small program that returns both sides. From an input and a
neighbour, one step of the secant method finds an input with equal sides.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from math import isfinite

from vesper.compiler import Compiled
from vesper.engines.engine import Program
from vesper.engines.outcome import Returned
from vesper.engines.python_engine import PythonEngine
from vesper.language.diagnostics.source import SourceFile
from vesper.language.ir.encode import encode, semantic_hash
from vesper.language.ir.nodes import (
    Call,
    Expression,
    For,
    If,
    Let,
    Local,
    Logical,
    Node,
    Output,
    Ref,
    Require,
    Return,
    Statement,
    Step,
    children,
    number_expressions,
    walk,
)
from vesper.language.ir.statements import expressions_of
from vesper.values.model import MAX_INTEGER, MIN_INTEGER
from vesper.values.types import DATE, DECIMAL, DURATION, FLOAT, INTEGER, TIMESTAMP

_COMPARISONS = frozenset({"equal", "not_equal", "less", "less_or_equal", "greater", "greater_or_equal"})
_MOVABLE = (INTEGER, DECIMAL, FLOAT, DATE, TIMESTAMP, DURATION)
_MAX_TRIES = 4
_EXTRA_PLACES = 12


@dataclass(frozen=True, slots=True)
class Probe:
    """A program that returns the two sides of a comparison as `left` and `right`."""

    program: Program
    inputs: tuple[str, ...]
    """Inputs that the sides depend on and that can be moved like numbers."""


class BoundarySeeker:
    def __init__(self, node: Node, source: random.Random) -> None:
        self._random = source
        self._probes = [probe for comparison in _comparisons(node) if (probe := _probe(node, comparison))]

    def seek(self, inputs: dict[str, object]) -> dict[str, object] | None:
        """Return inputs with one number moved to the boundary of a comparison; None without success."""
        for _ in range(_MAX_TRIES if self._probes else 0):
            probe = self._random.choice(self._probes)
            name = self._random.choice(probe.inputs)
            moved = self._to_edge(probe, name, inputs)
            if moved is not None:
                return inputs | {name: moved}
        return None

    @staticmethod
    def _to_edge(probe: Probe, name: str, inputs: dict[str, object]) -> object | None:
        given = inputs.get(name)
        number = _number(given)
        if number is None:
            return None
        here = _gap(probe.program, inputs)
        there = _gap(probe.program, inputs | {name: _like(given, number + 1)})
        if here is None or there is None or here == there:
            return None
        return _like(given, number - here / (there - here))


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def _number(value: object) -> Fraction | None:
    """Return a value as a number: times as days or microseconds. None for other types."""
    match value:
        case bool():
            return None
        case int() | Decimal():
            return Fraction(value)
        case float():
            return Fraction(value) if isfinite(value) else None
        case datetime():
            return Fraction((value - _EPOCH) // _MICROSECOND)
        case date():
            return Fraction(value.toordinal())
        case timedelta():
            return Fraction(value // _MICROSECOND)
        case _:
            return None


def _like(given: object, number: Fraction) -> object | None:
    """Return a number in the form of another value; None if that form cannot hold it."""
    try:
        match given:
            case int():
                rounded = round(number)
                return rounded if MIN_INTEGER <= rounded <= MAX_INTEGER else None
            case Decimal():
                return _decimal_like(given, number)
            case float():
                return float(number)
            case datetime():
                return _EPOCH + round(number) * _MICROSECOND
            case date():
                return date.fromordinal(round(number))
            case _:
                return round(number) * _MICROSECOND
    except (OverflowError, ValueError):
        return None


def _decimal_like(given: Decimal, number: Fraction) -> Decimal:
    """Return a decimal equal to the number if a few more places suffice, else close to it."""
    exponent = given.as_tuple().exponent
    assert isinstance(exponent, int)
    for places in range(-exponent, -exponent + _EXTRA_PLACES):
        scaled = number * 10**places
        if scaled.denominator == 1:
            break
    # Built from digits: arithmetic would round to the current context.
    coefficient = round(number * 10**places)
    return Decimal((int(coefficient < 0), tuple(int(digit) for digit in str(abs(coefficient))), -places))


def _gap(program: Program, inputs: Mapping[str, object]) -> Fraction | None:
    outcome = program.call(inputs)
    if not isinstance(outcome, Returned):
        return None
    left, right = _number(outcome.value["left"]), _number(outcome.value["right"])
    return None if left is None or right is None else left - right


def _comparisons(node: Node) -> list[Call]:
    return [
        each
        for each in node.expressions()
        if isinstance(each, Call) and each.op.partition(".")[2] in _COMPARISONS and each.args[0].type in _MOVABLE
    ]


def _probe(node: Node, comparison: Call) -> Probe | None:
    """Return a program of the steps above the comparison that computes only its two sides."""
    steps: list[Step] = []
    returned: dict[str, Expression] = {}
    for statement in node.body:
        if isinstance(statement, Return):
            returned = dict(statement.values)
        elif any(part is comparison for root in expressions_of((statement,)) for part in walk(root)):
            if not isinstance(statement, Step):
                return None  # inside a block, whose steps are not visible outside
            break
        elif isinstance(statement, Step):
            steps.append(statement)
        elif not isinstance(statement, Require):
            return None  # what follows a block depends on its execution
    if any(_free_locals(side) for side in comparison.args):
        return None  # inside a loop: its locals cannot be returned
    sides = [_without_outputs(side, returned) for side in comparison.args]
    if not all(_is_self_contained(side) for side in sides):
        return None
    used = _inputs_of(sides, steps)
    numeric = tuple(i.name for i in node.inputs if i.name in used and i.type in _MOVABLE)
    if not numeric:
        return None
    outputs = (Output("left", sides[0].type), Output("right", sides[1].type))
    body: tuple[Statement, ...] = (*steps, Return((("left", sides[0]), ("right", sides[1]))))
    probe = number_expressions(
        replace(node, outputs=outputs, constraints=(), preconditions=(), body=body, postconditions=())
    )
    compiled = Compiled(SourceFile(node.source.path, ""), probe, (), encode(probe), semantic_hash(probe))
    return Probe(PythonEngine().load(compiled), numeric)


def _free_locals(expression: Expression) -> set[int]:
    """Return the locals of an expression that are bound outside it."""
    parts = walk(expression)
    used = {part.number for part in parts if isinstance(part, Local)}
    bound = {part.local for part in parts if isinstance(part, Let)}
    return used - bound - {number for part in parts if isinstance(part, For) for number in part.locals}


def _without_outputs(expression: Expression, returned: Mapping[str, Expression]) -> Expression:
    """Return a postcondition's expression over steps and inputs instead of outputs."""
    match expression:
        case Ref(kind="output", name=name):
            return returned[name]
        case Call():
            return replace(expression, args=tuple(_without_outputs(each, returned) for each in expression.args))
        case If():
            condition, then, otherwise = (_without_outputs(each, returned) for each in children(expression))
            return replace(expression, condition=condition, then=then, otherwise=otherwise)
        case Logical():
            left, right = (_without_outputs(each, returned) for each in children(expression))
            return replace(expression, left=left, right=right)
        case _:
            return expression


def _is_self_contained(side: Expression) -> bool:
    """Return whether an expression needs no surrounding name: no loop item, `let` value or output."""
    parts = walk(side)
    bound = {local for each in parts if isinstance(each, For) for local in each.locals}
    bound |= {each.local for each in parts if isinstance(each, Let)}
    is_free = any(isinstance(each, Local) and each.number not in bound for each in parts)
    return not is_free and not any(isinstance(each, Ref) and each.kind == "output" for each in parts)


def _inputs_of(sides: list[Expression], steps: list[Step]) -> set[str]:
    """Return the inputs that the sides depend on, directly or through steps."""
    values = {step.name: step.value for step in steps}
    found: set[str] = set()
    waiting = list(sides)
    seen: set[str] = set()
    while waiting:
        for part in walk(waiting.pop()):
            if isinstance(part, Ref) and part.kind == "input":
                found.add(part.name)
            elif isinstance(part, Ref) and part.kind == "step" and part.name not in seen:
                seen.add(part.name)
                waiting.append(values[part.name])
    return found
