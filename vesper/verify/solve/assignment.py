"""Inputs that give an expression a wanted value.

`assign` inverts the operations of an expression from the outside to an input: `length(s) := 3` cuts or extends `s`,
`a + b := 10` moves `a`, `b` or both. An inverse may be approximate or have side effects on other conditions; the search
evaluates the result.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from vesper.language.ir.nodes import (
    Array,
    Branch,
    Call,
    Expression,
    Field,
    For,
    If,
    Let,
    Literal,
    Local,
    RecordValue,
    Ref,
    Step,
)
from vesper.values.model import same
from vesper.values.types import ArrayOf, MapOf, OptionalOf, SetOf, Type
from vesper.verify.inputs.pattern_texts import draw_text
from vesper.verify.solve.evaluation import Binding, Evaluator, Scope
from vesper.verify.solve.inverses import inverse_of
from vesper.verify.solve.linear import coefficients
from vesper.verify.solve.numbers import from_number, to_number

MAX_LENGTH = 2_000
"""Longest text or collection that is built to meet a length."""
_MAX_MISSES = 30
"""Draws without a new key after which no more are expected."""


class Assigner:
    """Assignment of values to the expressions of one node."""

    def __init__(self, evaluator: Evaluator, source: random.Random, draw: Callable[[str, Type], Any]) -> None:
        """Create an assigner. `draw` returns a new value of a type for a named input or field."""
        self.evaluator = evaluator
        self.random = source
        self.draw = draw
        self.force: Callable[[Expression, bool, Scope], bool]
        """Makes a condition true or false; set by the solver of conditions."""
        self._types = {each.name: each.type for each in evaluator.node.inputs}

    def assign(self, expression: Expression, target: Any, scope: Scope) -> bool:
        """Change the inputs so that an expression gets a value; return whether something could be changed."""
        if target is None and not isinstance(expression.type, OptionalOf):
            return False
        match expression:
            case Ref(kind="input", name=name):
                scope.inputs[name] = target
                scope.steps.clear()
                return True
            case Ref(kind="step", name=name) if name in self.evaluator.steps:
                return self._assign_step(self.evaluator.steps[name], target, scope)
            case Local(number=number):
                return self._assign_local(scope.locals[number], target)
            case Field(of=of, name=name):
                return self.assign(of, {**self.evaluator.value(of, scope), name: target}, scope)
            case Let(local=local, value=value, body=body):
                given = Binding(self.evaluator.value(value, scope), value, None, scope)
                return self.assign(body, target, scope.bind({local: given}))
            case If():
                return self._assign_if(expression, target, scope)
            case Array(items=items):
                return len(items) == len(target) and self._assign_all(zip(items, target, strict=True), scope)
            case RecordValue(fields=fields):
                return self._assign_all(((each, target[name]) for name, each in fields), scope)
            case For():
                return self._assign_for(expression, target, scope)
            case Call():
                return self._assign_call(expression, target, scope)
            case Literal(value=value):
                return same(value, target)
            case _:
                return False

    def resize(self, collection: Expression, count: int, scope: Scope) -> bool:
        """Give a text or collection another length, with as few changes as possible."""
        if not 0 <= count <= MAX_LENGTH:
            return False
        value = self.evaluator.value(collection, scope)
        name = collection.name if isinstance(collection, Ref | Field) else ""
        if isinstance(value, str):
            filler = value or "a"
            while len(value) < count:
                value += self.random.choice(filler)
            return self.assign(collection, value[:count], scope)
        match collection.type:
            case ArrayOf(element):
                value = [*value[:count], *(self.draw(name, element) for _ in range(count - len(value)))]
            case SetOf(element):
                members = sorted(value)[:count]
                value = frozenset([*members, *self._new_keys(name, element, count - len(members), members)])
            case MapOf(key, of):
                entries = dict(list(value.items())[:count])
                more = self._new_keys(name, key, count - len(entries), entries)
                value = entries | {each: self.draw(name, of) for each in more}
            case _:
                value = (value * (count // max(1, len(value)) + 1))[:count] if value else b"\0" * count
        return self.assign(collection, value, scope)

    def shift_value(self, expression: Expression, by: Fraction, scope: Scope) -> bool:
        """Add a number to an expression."""
        value = self.evaluator.value(expression, scope)
        number = to_number(value)
        target = None if number is None else from_number(value, number + by)
        return target is not None and self.assign(expression, target, scope)

    def _new_keys(self, name: str, type_: Type, count: int, known: Any) -> list[Any]:
        """Draw keys that are not known; fewer if the type seems to have no more."""
        found: dict[Any, None] = {}
        misses = 0
        while len(found) < count and misses < _MAX_MISSES:
            drawn = self.draw(name, type_)
            is_new = drawn not in known and drawn not in found
            misses = 0 if is_new else misses + 1
            if is_new:
                found[drawn] = None
        return list(found)

    def _assign_all(self, pairs: Any, scope: Scope) -> bool:
        has_changed = False
        for part, target in pairs:
            if not same(self.evaluator.value(part, scope), target):
                has_changed = self.assign(part, target, scope) or has_changed
        return has_changed

    def _assign_step(self, statement: Step | Branch, target: Any, scope: Scope) -> bool:
        if isinstance(statement, Step):
            return self.assign(statement.value, target, scope)
        equal = [
            number
            for number, value in enumerate([*(arm.value for arm in statement.arms), statement.otherwise_value])
            if isinstance(value, Literal) and same(value.value, target)
        ]
        if equal:
            return self.take_arm(statement, self.random.choice(equal), scope)
        taken = self.evaluator.taken_value(statement, scope)
        return taken is not None and self.assign(taken, target, scope)

    def take_arm(self, branch: Branch, number: int, scope: Scope) -> bool:
        """Make the conditions before an arm false, and that of the arm true."""
        wanted = [(arm.when, False) for arm in branch.arms[:number]]
        wanted += [(arm.when, True) for arm in branch.arms[number : number + 1]]
        changed = [self.force(when, value, scope) for when, value in wanted]
        return any(changed)

    def _assign_local(self, binding: Binding, target: Any) -> bool:
        binding.value = target
        scope = binding.scope
        if scope is None:
            return False
        if binding.index is None:
            return self.assign(binding.source, target, scope)
        kind, key = binding.index
        whole = self.evaluator.value(binding.source, scope)
        match kind:
            case "item" if key < len(whole):
                return self.assign(binding.source, [*whole[:key], target, *whole[key + 1 :]], scope)
            case "member":
                binding.index = (kind, target)
                return self.assign(binding.source, (whole - {key}) | {target}, scope)
            case "map_value":
                return self.assign(binding.source, {**whole, key: target}, scope)
            case "map_key":
                binding.index = (kind, target)
                renamed = {target if each == key else each: value for each, value in whole.items()}
                return self.assign(binding.source, renamed, scope)
            case _:
                return False

    def _assign_if(self, expression: If, target: Any, scope: Scope) -> bool:
        is_true = self.evaluator.value(expression.condition, scope)
        taken, other = expression.then, expression.otherwise
        if not is_true:
            taken, other = other, taken
        if self.random.random() < 0.8 and self.assign(taken, target, scope):
            return True
        return self.force(expression.condition, not is_true, scope) and self.assign(other, target, scope)

    def _assign_for(self, loop: For, target: Any, scope: Scope) -> bool:
        evaluator = self.evaluator
        scopes = []
        for place, item in evaluator.items(loop.over, scope):
            inner = evaluator.bind_item(loop.locals, loop.over, scope, place, item)
            if loop.where is None or evaluator.value(loop.where, inner):
                scopes.append(inner)
        match loop.kind:
            case "count":
                return self.resize(loop.over, len(evaluator.items(loop.over, scope)) + target - len(scopes), scope)
            case "sum" | "avg":
                return self._move_sum(loop, scopes, target, scope)
            case "min" | "max":
                return self._move_extreme(loop, scopes, target)
            case "array" | "set":
                if len(target) != len(scopes):
                    return self.resize(loop.over, len(target), scope)
                pairs = zip(scopes, list(target), strict=True)
                changed = [self.assign(loop.value, each, inner) for inner, each in pairs]
                return any(changed)
            case "sort_by" | "distinct_by":
                return self.assign(loop.over, target, scope)
            case _:
                return False

    def _move_sum(self, loop: For, scopes: list[Scope], target: Any, scope: Scope) -> bool:
        if not scopes:
            return self.resize(loop.over, self.random.randint(1, 3), scope)
        goal, current = to_number(target), to_number(self.evaluator.value(loop, scope))
        if goal is None or current is None:
            return False
        gap = (goal - current) * (len(scopes) if loop.kind == "avg" else 1)
        if self.random.random() < 0.5 and len(scopes) > 1:
            moved = [self.shift_value(loop.value, gap / len(scopes), each) for each in scopes[1:]]
            gap -= (gap / len(scopes)) * (len(scopes) - 1)
            return self.shift_value(loop.value, gap, scopes[0]) or any(moved)
        return self.shift_value(loop.value, gap, self.random.choice(scopes))

    def _move_extreme(self, loop: For, scopes: list[Scope], target: Any) -> bool:
        values = [self.evaluator.value(loop.value, each) for each in scopes]
        beyond = [
            each
            for each, value in zip(scopes, values, strict=True)
            if (value < target if loop.kind == "min" else value > target)
        ]
        changed = [self.assign(loop.value, target, each) for each in beyond]
        if not beyond and scopes:
            changed.append(self.assign(loop.value, target, self.random.choice(scopes)))
        return any(changed)

    def _assign_call(self, call: Call, target: Any, scope: Scope) -> bool:
        evaluator = self.evaluator
        values = [evaluator.value(each, scope) for each in call.args]
        if call.op.endswith((".length", ".count")) and isinstance(target, int):
            return self.resize(call.args[0], target, scope)
        linear = coefficients(call.op, values)
        if linear is not None:
            return self._assign_linear(call, values, linear, target, scope)
        options = inverse_of(call.op, values, target)
        if not options and call.op in ("regex.find", "regex.groups"):
            options = [(0, draw_text(values[1], self.random))]
        self.random.shuffle(options)
        # A literal argument cannot be assigned, that of another option may be.
        return any(self.assign(call.args[number], value, scope) for number, value in options)

    def _assign_linear(
        self, call: Call, values: list[Any], linear: Mapping[int, Fraction], target: Any, scope: Scope
    ) -> bool:
        goal, current = to_number(target), to_number(self.evaluator.value(call, scope))
        if goal is None or current is None:
            return False
        movable = [each for each in linear if linear[each] != 0]
        self.random.shuffle(movable)
        gap = goal - current
        if len(movable) == 2 and self.random.random() < 0.3:
            first, second = movable
            share = gap * Fraction(self.random.choice((1, 1, 2, 3)), self.random.choice((2, 2, 4)))
            if self.shift_value(call.args[first], share / linear[first], scope):
                moved = to_number(self.evaluator.value(call, scope))
                return moved is None or self.shift_value(call.args[second], (goal - moved) / linear[second], scope)
        return any(self.shift_value(call.args[each], gap / linear[each], scope) for each in movable)
