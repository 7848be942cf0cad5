"""Changes of inputs that make a condition true or false."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from itertools import islice
from typing import Any

from vesper.kernels import regex
from vesper.language.ir.nodes import Call, Expression, Field, For, If, Let, Logical, Ref, children
from vesper.values.types import Enum, MapOf, OptionalOf, SetOf, Type, without_null
from vesper.verify.inputs.pattern_texts import draw_text
from vesper.verify.solve.assignment import Assigner
from vesper.verify.solve.distance import OPPOSITES
from vesper.verify.solve.evaluation import FAILURES, Binding, Evaluator, Scope, mentioned_inputs
from vesper.verify.solve.inverses import inverse_of
from vesper.verify.solve.numbers import from_number, to_number

_STEPS = (0, 1, 1, 1, 2, 3, 5, 10, 30, 100, 1000)
_MIRRORED = {"less": "greater", "greater": "less", "less_or_equal": "greater_or_equal"}
_MIRRORED |= {"greater_or_equal": "less_or_equal", "equal": "equal", "not_equal": "not_equal"}
_MEMBERSHIPS = {"array.is_item": (0, 1), "set.is_member": (0, 1), "map.is_key": (0, 1)}
_MEMBERSHIPS |= {"array.contains": (1, 0), "set.contains": (1, 0), "map.contains": (1, 0)}
"""Numbers of the item and of the collection."""
_PATTERN_TRIES = 6


class ConditionSolver:
    """Solver of single conditions of one node; a change may break another condition."""

    def __init__(
        self,
        evaluator: Evaluator,
        source: random.Random,
        draw: Callable[[str, Type], Any],
    ) -> None:
        """Create a solver. `draw` returns a new value of a type for a named input or field."""
        self._evaluator = evaluator
        self._random = source
        self._draw = draw
        self._types = {each.name: each.type for each in evaluator.node.inputs}
        self._assigner = Assigner(evaluator, source, draw)
        self._assigner.force = self.force

    def force(self, condition: Expression, wanted: bool, scope: Scope) -> bool:
        """Change the inputs to give a condition a value; return whether something was changed."""
        try:
            return self._force(condition, wanted, scope)
        except FAILURES:
            return self._make_evaluable(condition, scope)

    def _force(self, condition: Expression, wanted: bool, scope: Scope) -> bool:
        evaluator = self._evaluator
        match condition:
            case Logical(kind=kind, left=left, right=right):
                return self._force_logical(left, right, (kind == "and") == wanted, wanted, scope)
            case Call(op="boolean.not", args=(inner,)):
                return self.force(inner, not wanted, scope)
            case If(condition=test, then=then, otherwise=otherwise):
                is_true = evaluator.value(test, scope)
                taken, other = (then, otherwise) if is_true else (otherwise, then)
                if self._random.random() < 0.7:
                    return self.force(taken, wanted, scope)
                return self.force(test, not is_true, scope) and (
                    evaluator.holds(other, scope) is wanted or self.force(other, wanted, scope)
                )
            case Let(local=local, value=value, body=body):
                given = Binding(evaluator.value(value, scope), value, None, scope)
                return self.force(body, wanted, scope.bind({local: given}))
            case For(kind="forall" | "exists"):
                return self._force_items(condition, wanted, scope)
            case Call(op=op) if op.partition(".")[2] in OPPOSITES and len(condition.args) == 2:
                return self._force_comparison(condition, wanted, scope)
            case Call():
                return self._force_call(condition, wanted, scope)
            case _:
                return self._assigner.assign(condition, wanted, scope)

    def _force_logical(self, left: Expression, right: Expression, is_both: bool, wanted: bool, scope: Scope) -> bool:
        if is_both:
            changed = [
                self.force(each, wanted, scope)
                for each in (left, right)
                if not self._evaluator.is_value(each, wanted, scope)
            ]
            return any(changed)
        sides = [left, right]
        self._random.shuffle(sides)
        if sides[0] is right and not self._has_value(right, scope):
            # The right side has a value only where the left one does not decide.
            sides.reverse()
        return any(self.force(each, wanted, scope) for each in sides)

    def _has_value(self, expression: Expression, scope: Scope) -> bool:
        try:
            self._evaluator.value(expression, scope)
        except FAILURES:
            return False
        return True

    def _force_items(self, loop: For, wanted: bool, scope: Scope) -> bool:
        evaluator = self._evaluator
        items = evaluator.items(loop.over, scope)
        wrong = []
        for place, item in items:
            inner = evaluator.bind_item(loop.locals, loop.over, scope, place, item)
            is_counted = loop.where is None or evaluator.holds(loop.where, inner)
            if not is_counted:
                continue
            if not self._evaluator.is_value(loop.value, wanted, inner):
                wrong.append((place, item))
        if (loop.kind == "forall") == wanted:  # every item must be right
            changed = False
            for place, item in wrong:
                inner = evaluator.bind_item(loop.locals, loop.over, scope, place, item)
                if loop.where is not None and self._random.random() < 0.2:
                    changed = self.force(loop.where, False, inner) or changed
                else:
                    changed = self.force(loop.value, wanted, inner) or changed
            return changed
        if not items:
            return self._assigner.resize(loop.over, self._random.randint(1, 2), scope)
        place, item = self._random.choice(items)
        inner = evaluator.bind_item(loop.locals, loop.over, scope, place, item)
        if loop.where is not None and not evaluator.holds(loop.where, inner):
            self.force(loop.where, True, inner)
        return self.force(loop.value, wanted, inner)

    # -- comparisons -------------------------------------------------------------------------------

    def _force_comparison(self, call: Call, wanted: bool, scope: Scope) -> bool:
        verb = call.op.partition(".")[2]
        verb = verb if wanted else OPPOSITES[verb]
        left, right = call.args
        first, second = (self._evaluator.value(each, scope) for each in call.args)
        pick = self._random.random()
        if pick < 0.15 and verb not in ("equal", "not_equal") and left.type == right.type:
            # Exchanged values satisfy an order, and keep both within their own bounds more often than new ones.
            return self._assigner.assign(left, second, scope) and self._assigner.assign(right, first, scope)
        if pick < 0.3 and self._meet_halfway(call, verb, first, second, scope):
            return True
        sides = [(left, verb, first, second), (right, _MIRRORED[verb], second, first)]
        self._random.shuffle(sides)
        for side, relation, own, other in sides:
            target = self._related_value(relation, side, own, other)
            if target is not None and self._assigner.assign(side, target[0], scope):
                return True
        return False

    def _meet_halfway(self, call: Call, verb: str, first: Any, second: Any, scope: Scope) -> bool:
        """Move both sides to their middle, which satisfies systems of equations that single moves do not."""
        low, high = to_number(first), to_number(second)
        if low is None or high is None or verb == "not_equal":
            return False
        middle = (low + high) / 2
        step = {"less": -1, "greater": 1}.get(verb, 0) * self._unit(first, second)
        targets = (from_number(first, middle + step), from_number(second, middle))
        if targets[0] is None or targets[1] is None:
            return False
        changed = [self._assigner.assign(side, each, scope) for side, each in zip(call.args, targets, strict=True)]
        return any(changed)

    def _unit(self, *values: Any) -> Fraction:
        """Return a step between two values of a type."""
        unit = Fraction(1)
        for value in values:
            exponent = value.as_tuple().exponent if hasattr(value, "as_tuple") else 0
            if isinstance(exponent, int) and exponent < 0:
                unit = min(unit, Fraction(1, 10 ** min(-exponent, 6)))
        return unit if self._random.random() < 0.5 else Fraction(1)

    def _related_value(self, relation: str, side: Expression, own: Any, other: Any) -> tuple[Any] | None:
        """Return a value that has a relation to another; None without one."""
        if relation == "equal":
            return (other,)
        if relation == "not_equal":
            return self._different_value(side, own, other)
        number = to_number(other)
        if number is not None:
            step = self._random.choice(_STEPS) * self._unit(own, other)
            if not isinstance(other, int) and self._random.random() < 0.3:
                step = step * self._random.randint(1, 10**6)
            if relation in ("less", "greater"):
                step = step or self._unit(own, other)
            moved = from_number(own, number + (step if relation.startswith("greater") else -step))
            return None if moved is None else (moved,)
        if isinstance(other, str):
            return self._ordered_text(relation, other)
        if relation.endswith("or_equal"):
            return (other,)
        return None

    def _ordered_text(self, relation: str, other: str) -> tuple[str] | None:
        if relation.startswith("greater"):
            return (self._random.choice((other + "a", other + "0", "zz" + other)),)
        return (other[:-1],) if other else ("",) if relation == "less_or_equal" else None

    def _different_value(self, side: Expression, own: Any, other: Any) -> tuple[Any] | None:
        number = to_number(own)
        if number is not None and self._random.random() < 0.6:
            moved = from_number(own, number + self._random.choice((-1, 1, 2, 10)))
            return None if moved is None else (moved,)
        match side.type:
            case Enum(members):
                return (self._random.choice([each for each in members if each != other] or [own]),)
            case _ if isinstance(own, bool):
                return (not own,)
            case OptionalOf(inner) if other is None:
                return (self._draw(_name_of(side), inner),)
            case _:
                return (self._draw(_name_of(side), side.type),)

    # -- other conditions --------------------------------------------------------------------------

    def _force_call(self, call: Call, wanted: bool, scope: Scope) -> bool:
        assign = self._assigner.assign
        args = call.args
        values = [self._evaluator.value(each, scope) for each in args]
        if call.op in _MEMBERSHIPS:
            return self._force_member(call, values, wanted, scope)
        match call.op:
            case "text.contains" | "text.starts_with" | "text.ends_with":
                return self._force_part(call, values, wanted, scope)
            case "regex.matches":
                return self._force_match(call, values, wanted, scope)
            case "text.is_digits":
                length = len(values[0]) or 1
                digits = "".join(self._random.choice("0123456789") for _ in range(length))
                return assign(args[0], digits if wanted else digits + "x", scope)
            case "optional.is_null" | "optional.is_not_null":
                is_null = (call.op == "optional.is_null") == wanted
                return assign(args[0], None if is_null else self._not_null(args[0]), scope)
            case "set.is_subset":
                inner, outer = values
                if not wanted:
                    return assign(args[0], inner | {self._draw_element(args[0])}, scope)
                pairs = [(0, inner & outer), (1, inner | outer)]
                return self._assign_any(args, pairs, scope)
            case "set.is_disjoint":
                first, second = values
                pairs = [(0, first - second), (1, second - first)] if wanted else [(0, first | second)]
                return self._assign_any(args, pairs, scope)
            case "float.is_finite" | "float.is_nan":
                is_number = (call.op == "float.is_finite") == wanted
                return assign(args[0], 1.0 if is_number else float("nan"), scope)
            case _:
                options = inverse_of(call.op, values, wanted)
                return self._assign_any(args, options, scope) or self._redraw(call, scope)

    def _assign_any(self, args: tuple[Expression, ...], options: list[tuple[int, Any]], scope: Scope) -> bool:
        self._random.shuffle(options)
        return any(self._assigner.assign(args[number], value, scope) for number, value in options)

    def _force_member(self, call: Call, values: list[Any], wanted: bool, scope: Scope) -> bool:
        item_at, whole_at = _MEMBERSHIPS[call.op]
        item, whole = call.args[item_at], call.args[whole_at]
        value, members = values[item_at], values[whole_at]
        assign = self._assigner.assign
        if wanted:
            options = sorted(members, key=repr) if isinstance(members, frozenset) else list(members)
            if options and self._random.random() < 0.8 and assign(item, self._random.choice(options), scope):
                return True
            return assign(whole, self._with_member(whole, members, value), scope) or (
                bool(options) and assign(item, self._random.choice(options), scope)
            )
        if self._random.random() < 0.7:
            for _ in range(_PATTERN_TRIES):
                other = self._different_value(item, value, value)
                if other is not None and other[0] not in members:
                    return assign(item, other[0], scope)
        return assign(whole, _without_member(members, value), scope) or self._redraw(call, scope)

    def _with_member(self, whole: Expression, members: Any, value: Any) -> Any:
        match whole.type:
            case MapOf(_, of):
                return {**members, value: self._draw(_name_of(whole), of)}
            case SetOf():
                return members | {value}
            case _:
                at = self._random.randint(0, len(members))
                if members and self._random.random() < 0.5:  # keeps the length
                    at = self._random.randrange(len(members))
                    return [*members[:at], value, *members[at + 1 :]]
                return [*members[:at], value, *members[at:]]

    def _force_part(self, call: Call, values: list[Any], wanted: bool, scope: Scope) -> bool:
        text, part = values
        if not wanted:
            return self._assigner.assign(call.args[0], text.replace(part, "") if part else text, scope)
        keeps_length = self._random.random() < 0.6 and len(text) >= len(part)
        size = len(part) if keeps_length else 0
        match call.op:
            case "text.starts_with":
                changed = part + text[size:]
            case "text.ends_with":
                changed = text[: len(text) - size] + part
            case _:
                at = self._random.randint(0, len(text) - size)
                changed = text[:at] + part + text[at + size :]
        return self._assigner.assign(call.args[0], changed, scope)

    def _force_match(self, call: Call, values: list[Any], wanted: bool, scope: Scope) -> bool:
        text, pattern = values
        if not wanted:
            found = regex.find(text, pattern)
            changed = text.replace(found, "", 1) if found else text + "\n"
            return self._assigner.assign(call.args[0], changed, scope)
        drawn = (draw_text(pattern, self._random) for _ in range(_PATTERN_TRIES))
        fitting = list(islice((each for each in drawn if regex.matches(each, pattern)), 2))
        # A text of about the old length keeps conditions on the length.
        chosen = min(fitting or [text], key=lambda each: abs(len(each) - len(text)))
        return self._assigner.assign(call.args[0], chosen, scope)

    def _not_null(self, expression: Expression) -> Any:
        return self._draw(_name_of(expression), without_null(expression.type))

    def _draw_element(self, collection: Expression) -> Any:
        assert isinstance(collection.type, SetOf)
        return self._draw(_name_of(collection), collection.type.element)

    # -- conditions without a value ----------------------------------------------------------------

    def _make_evaluable(self, expression: Expression, scope: Scope) -> bool:
        """Change the inputs of the first part that has no value."""
        try:
            part = self._without_value(expression, scope)
            if part is None:
                return self._redraw(expression, scope)
            return self._give_value(part, scope) or self._redraw(part, scope)
        except FAILURES:
            return self._redraw(expression, scope)

    def _without_value(self, expression: Expression, scope: Scope) -> Call | None:
        if self._has_value(expression, scope):
            return None
        for part in children(expression):
            if isinstance(expression, For | Let):
                break  # the parts of a binder have no value outside of it
            found = self._without_value(part, scope)
            if found is not None:
                return found
        return expression if isinstance(expression, Call) else None

    def _give_value(self, call: Call, scope: Scope) -> bool:
        values = [self._evaluator.value(each, scope) for each in call.args]
        assigner, args = self._assigner, call.args
        match call.op:
            case "array.at" | "text.at" | "bytes.at" if values[1] >= 0:
                return assigner.resize(args[0], values[1] + self._random.randint(1, 2), scope)
            case "text.slice" | "array.slice" | "bytes.slice" if 0 <= values[1] <= values[2]:
                return assigner.resize(args[0], values[2] + self._random.randint(0, 2), scope)
            case "array.take" | "array.drop" if values[1] >= 0:
                return assigner.resize(args[0], values[1], scope)
            case "map.at":
                assert isinstance(args[0].type, MapOf)
                drawn = self._draw(_name_of(args[0]), args[0].type.value)
                return assigner.assign(args[0], {**values[0], values[1]: drawn}, scope) or (
                    bool(values[0]) and assigner.assign(args[1], self._random.choice(list(values[0])), scope)
                )
            case "optional.unwrap" | "optional.require" | "optional.in_force":
                return assigner.assign(args[0], self._not_null(args[0]), scope)
            case "array.min" | "array.max":
                return assigner.resize(args[0], self._random.randint(1, 3), scope)
            case "text.code_point":
                return assigner.resize(args[0], 1, scope)
            case op if op.endswith(".parse"):
                return assigner.assign(call, self._draw("", call.type), scope)
            case op if op.partition(".")[2] in ("divide", "div", "mod", "rem", "quot", "div_floor", "ratio"):
                one = from_number(values[1], Fraction(self._random.choice((1, 2, 3, 10))))
                return assigner.assign(args[1], one, scope)
            case _:
                return False

    def _redraw(self, expression: Expression, scope: Scope) -> bool:
        names = [each for each in mentioned_inputs(self._evaluator, expression) if each in self._types]
        if not names:
            return False
        name = self._random.choice(names)
        scope.inputs[name] = self._draw(name, self._types[name])
        scope.steps.clear()
        return True


def _without_member(members: Any, value: Any) -> Any:
    if isinstance(members, frozenset):
        return members - {value}
    if isinstance(members, dict):
        return {each: found for each, found in members.items() if each != value}
    return [each for each in members if each != value]


def _name_of(expression: Expression) -> str:
    """Return the name by which bounds of an expression are known."""
    while isinstance(expression, Call) and expression.args:
        expression = expression.args[0]
    return expression.name if isinstance(expression, Ref | Field) else ""
