"""Conditions of the IR as boxes: sets of values by name.

A box maps the key of a name to the values for which the condition can hold. AND, OR and NOT of exact conditions are
exact; any other condition is an upper bound without restriction.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TypeAlias

from vesper.language.ir import nodes as ir
from vesper.language.tables.axis import NULL_RANGE, Ranges, axis_of, complement, intersection, union
from vesper.language.tables.cell_values import has_literals
from vesper.language.tables.model import Interval, ValueSet
from vesper.values.model import Scalar
from vesper.values.types import BOOLEAN, OptionalOf, Type, without_null

MAX_BOXES = 64
"""Maximum number of boxes of one condition; a condition with more has no restriction."""
Key: TypeAlias = Hashable
Sets: TypeAlias = dict[Key, Ranges]
_OPERATORS = {
    "equal": "==",
    "not_equal": "!=",
    "less": "<",
    "less_or_equal": "<=",
    "greater": ">",
    "greater_or_equal": ">=",
}
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_FAMILIES = ("integer", "decimal", "float", "text", "date", "timestamp", "duration", "enum", "boolean", "optional")


@dataclass(slots=True)
class Boxes:
    """A union of boxes that contains every value for which a condition holds.

    With `is_exact` it contains no other value.
    """

    boxes: list[Sets]
    is_exact: bool = True


@dataclass(slots=True)
class ConditionReader:
    """Reads conditions and collects the types of the names in them."""

    types: dict[Key, Type] = field(default_factory=dict)
    _aliases: dict[int, Key] = field(default_factory=dict)

    def alias(self, number: int, value: ir.Expression) -> None:
        """Identify a local with the name that it is bound to, if any."""
        if isinstance(value, ir.Call) and value.op == "table.allowed":
            value = value.args[0]
        key = self._key(value)
        if key is not None and not isinstance(value, ir.Call):
            self._aliases[number] = key

    def read(self, condition: ir.Expression) -> Boxes:
        """Return the boxes of a condition."""
        return self._read(condition, True)

    def _read(self, condition: ir.Expression, holds: bool) -> Boxes:
        match condition:
            case ir.Literal(value=bool(value)):
                return Boxes([{}] if value == holds else [])
            case ir.Logical(kind=kind, left=left, right=right):
                first, second = self._read(left, holds), self._read(right, holds)
                return _intersect(first, second) if (kind == "and") == holds else _unite(first, second)
            case ir.Call(op="boolean.not", args=(inner,)):
                return self._read(inner, not holds)
            case ir.Call(op="optional.is_null" | "optional.is_not_null" as op, args=(operand,)):
                return self._null(operand, (op == "optional.is_null") == holds)
            case ir.Call(op="array.is_item" | "set.is_member", args=(operand, items)):
                return self._member(operand, items, holds)
            case ir.Call(op=op, args=(left, right)):
                return self._comparison(op, left, right, holds)
            case _:
                key = self.key(condition)
                if key is None or condition.type != BOOLEAN:
                    return Boxes([{}], is_exact=False)
                return self._box(key, condition, axis_of(BOOLEAN).ranges(ValueSet((Interval(holds, holds),))))

    def key(self, expression: ir.Expression) -> Key | None:
        """Return the key of a name or of its field, and record its type. None for other expressions."""
        found = self._key(expression)
        if found is not None:
            inner = expression.args[0] if isinstance(expression, ir.Call) else expression
            self.types.setdefault(found, inner.type)
        return found

    def _key(self, expression: ir.Expression) -> Key | None:
        match expression:
            case ir.Ref(kind=kind, name=name):
                return kind, name
            case ir.Local(number=number):
                return self._aliases.get(number, ("local", number))
            case ir.Field(of=of, name=name):
                inner = self._key(of)
                return None if inner is None else (inner, name)
            case ir.Call(op="optional.unwrap", args=(operand,)):
                return self._key(operand)
            case _:
                return None

    def _null(self, operand: ir.Expression, is_null: bool) -> Boxes:
        key = self.key(operand)
        if key is None:
            return Boxes([{}], is_exact=False)
        domain = axis_of(operand.type).domain
        return Boxes([{key: (NULL_RANGE,) if is_null else complement((NULL_RANGE,), domain)}])

    def _comparison(self, op: str, left: ir.Expression, right: ir.Expression, holds: bool) -> Boxes:
        family, _, name = op.partition(".")
        operator = _OPERATORS.get(name)
        if family not in _FAMILIES or operator is None:
            return Boxes([{}], is_exact=False)
        if isinstance(_literal(left), ir.Literal):
            left, right, operator = right, left, _FLIPPED.get(operator, operator)
        literal, key = _literal(right), self.key(left)
        if literal is None or key is None or not has_literals(left.type):
            return Boxes([{}], is_exact=False)
        axis = axis_of(self.types[key])
        if literal.value is None:
            return self._null(left, (operator == "==") == holds)
        value = literal.value
        assert not isinstance(value, list | dict | frozenset)
        return self._box(key, left, _compared_ranges(operator, value, left.type, axis.domain), holds)

    def _member(self, operand: ir.Expression, items: ir.Expression, holds: bool) -> Boxes:
        key = self.key(operand)
        values: list[Scalar | None] = []
        if isinstance(items, ir.Array) and all(isinstance(each, ir.Literal) for each in items.items):
            values = [each.value for each in items.items if isinstance(each, ir.Literal)]  # type: ignore[misc]
        elif isinstance(items, ir.Literal) and isinstance(items.value, frozenset | list):
            values = list(items.value)  # type: ignore[arg-type]
        else:
            return Boxes([{}], is_exact=False)
        if key is None or not has_literals(operand.type) or isinstance(operand.type, OptionalOf) or None in values:
            return Boxes([{}], is_exact=False)
        axis = axis_of(self.types[key])
        points = [each for value in values for each in axis.ranges(ValueSet((Interval(value, value),)))]
        return self._box(key, operand, union(points), holds)

    def _box(self, key: Key, expression: ir.Expression, ranges: Ranges, holds: bool = True) -> Boxes:
        """Return the box of a test. An unwrapped name is not null where the test is evaluated."""
        domain = axis_of(self.types[key]).domain
        if isinstance(expression, ir.Call):
            domain = complement((NULL_RANGE,), domain)
        return Boxes([{key: intersection(ranges if holds else complement(ranges, domain), domain)}])


def _literal(expression: ir.Expression) -> ir.Literal | None:
    if isinstance(expression, ir.Literal):
        return expression
    if isinstance(expression, ir.Call) and expression.op == "optional.some":
        return _literal(expression.args[0])
    return None


def _compared_ranges(operator: str, value: Scalar, type_: Type, domain: Ranges) -> Ranges:
    """Return the values for which a comparison with a literal holds. Null equals no value; NaN satisfies only `!=`."""
    axis = axis_of(without_null(type_))
    match operator:
        case "<" | "<=":
            interval = Interval(None, value, is_high_open=operator == "<")
        case ">" | ">=":
            interval = Interval(value, None, is_low_open=operator == ">")
        case _:
            interval = Interval(value, value)
    ranges = axis.ranges(ValueSet((interval,)))
    return complement(ranges, domain) if operator == "!=" else ranges


def _intersect(left: Boxes, right: Boxes) -> Boxes:
    is_exact = left.is_exact and right.is_exact
    if len(left.boxes) * len(right.boxes) > MAX_BOXES:
        return Boxes([{}], is_exact=False)
    found: list[Sets] = []
    for one in left.boxes:
        for other in right.boxes:
            merged = dict(one)
            for key, ranges in other.items():
                merged[key] = intersection(merged[key], ranges) if key in merged else ranges
            if () not in merged.values():
                found.append(merged)
    return Boxes(found, is_exact)


def _unite(left: Boxes, right: Boxes) -> Boxes:
    is_exact = left.is_exact and right.is_exact
    boxes = left.boxes + right.boxes
    if all(len(box) == 1 for box in boxes) and len({key for box in boxes for key in box}) == 1:
        (key,) = boxes[0]
        return Boxes([{key: union(each for box in boxes for each in box[key])}], is_exact)
    return Boxes(boxes, is_exact) if len(boxes) <= MAX_BOXES else Boxes([{}], is_exact=False)
