"""Random loops: their ranges and collections, their ends, and the state that they carry between rounds.

Most loops are over small numbers whose rounds are known here, so that `max` can be the number of rounds or one beside
it, an early end can be in a certain round, and a number can outgrow its register in a late one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from vesper.values.types import BOOLEAN, INTEGER, ArrayOf, MapOf, Record, SetOf, Type
from vesper.verify.programs.blocks import MAX_BLOCKS, Blocks, DrawnPart
from vesper.verify.programs.plain_terms import number_literal
from vesper.verify.programs.states import DrawnState, States
from vesper.verify.programs.terms import NotExpressible, Scope, Term, infix, prefix
from vesper.verify.programs.text import Tree, scalar
from vesper.verify.programs.types import type_text

_FEW = (0, 1, 2, 3, 4, 5, 8, 12)
_MANY = (66, 70, 100, 130, 140, 200, 260)
_VERY_MANY = (1000, 1100, 2500, 5000)
_UNKNOWN_ROUNDS = 60
"""Rounds that a loop over a collection may have."""
_MANY_SHARE, _VERY_MANY_SHARE = 0.22, 0.01


@dataclass(slots=True)
class _Rounds:
    """The rounds of a drawn loop, and the scope inside it."""

    inner: Scope
    over: Term | None = None
    item: Term | None = None
    """The name of an integer item."""
    items: list[int] | None = None
    """The items that pass `WHERE`, if they are the same for all inputs."""
    needs_max: bool = False
    most: int = _UNKNOWN_ROUNDS
    states: list[DrawnState] = field(default_factory=list)

    @property
    def count(self) -> int | None:
        return None if self.items is None else len(self.items)


class Loops(Blocks):
    _room = 0
    """Rounds that loops inside of the current one may have; zero outside of loops."""

    def loop(self, scope: Scope) -> tuple[dict[str, Tree], Scope]:
        """Draw a loop; return it with the scope after it."""
        drawn = self._loop(scope)
        return drawn.fields, drawn.after

    def _loop(self, scope: Scope) -> DrawnPart:
        if self._chance(0.15):
            return self._any_loop(scope)
        name = self._name()
        fields: dict[str, Tree] = {"step": name, "operation": "loop"}
        ways = self._features.weights({"loop range": 4.0, "loop collection": 2.0, "loop while": 2.0})
        (draw,) = self.random.choices((self._over_range, self._over_collection, self._counting), ways)
        rounds = draw(scope, name)
        if rounds.over is not None:
            fields["over"] = rounds.over
        self._add_states(rounds, scope, name)
        if rounds.over is None or self._chance(0.2):
            fields["while"] = self._while(rounds)
        has_max = "while" in fields or rounds.needs_max or self._chance(0.5)
        limit = self._max(rounds)
        self._plain.note(limit if rounds.count is None else rounds.count)
        fields |= {"max": str(limit)} if has_max else {}
        fields |= {"state": {each.name: each.first for each in rounds.states}} if rounds.states else {}
        before = rounds.inner
        steps = self._body(rounds)
        fields |= {"steps": steps} if steps else {}
        collected: Type | None = None
        if not rounds.states or self._chance(0.4):
            collected, fields["collect"] = self._collect(rounds)
        changes: dict[str, Tree] = {
            each.name: each.next(rounds.inner) for each in rounds.states if each.is_counter or self._chance(0.93)
        }
        fields |= {"next": changes} if changes else {}
        if self._chance(0.25):
            fields["stop_when"] = self._stop(replace(rounds, inner=replace(rounds.inner, facts=before.facts)))
        type_ = _loop_type({each.name: each.type for each in rounds.states}, collected)
        if self._chance(0.4 if not has_max or (rounds.count or 0) <= limit else 0.9):
            codes = self.random.choice((("loop_limit",), ("loop_limit", "too_large"), ("any",)))
            fields["on_error"] = self._handlers(scope, type_, codes)
        return DrawnPart(fields, scope.declare("step", name, type_))

    # -- rounds -----------------------------------------------------------------------------------

    def _draw_count(self) -> int:
        """Draw a number of rounds; rounds of loops inside of loops multiply."""
        room = self._room or max(_VERY_MANY)
        pick = self.random.random()
        if not self._room and pick < _VERY_MANY_SHARE:
            return self.random.choice(_VERY_MANY)
        if not self._room and pick < _MANY_SHARE:
            return self.random.choice(_MANY)
        return min(self.random.choice(_FEW), room)

    def _over_range(self, scope: Scope, _: str) -> _Rounds:
        """Draw `i IN range(…)`, with bounds that are fixed or depend on the inputs."""
        name, inner = self._draw.bind(scope.in_loop(), INTEGER)
        item = next(each for each in inner.paths if str(each) == name)
        names = [each for each in scope.paths if each.type == INTEGER]
        if names and self._chance(0.4):
            return self._over_computed_range(item, self.random.choice(names), inner)
        count = self._draw_count()
        start = self.random.choice((0, 0, 0, 1, -1, -3, 5, 100))
        step = self.random.choice((1, 1, 1, 1, 2, 3, -1, -2))
        end = start + count * step
        if abs(step) > 1 and count and self._chance(0.5):
            end -= 1 if step > 0 else -1  # the last step goes beyond the end
        if self._chance(0.06):
            start, end = end, start  # empty
        text = f"range({start}, {end}" + (")" if step == 1 and self._chance(0.9) else f", {step})")
        parts: tuple[str | Term, ...] = (f"{name} IN {text}",)
        items = [*range(start, end, step)]
        rounds = _Rounds(inner, Term(BOOLEAN, parts), item, items, most=len(items))
        return self._where(rounds) if self._chance(0.4) else rounds

    def _over_computed_range(self, item: Term, name: Term, inner: Scope) -> _Rounds:
        most = max(1, min(self._draw_count(), 12 if self._room else 260))
        few = self._plain.bounded(name, str(most))
        ends: tuple[tuple[str | Term, ...], ...] = (
            ("0, ", few),
            ("0 - ", few, ", 3"),
            (few, ", 0, -1"),
            (few, f", {most}"),
            (few, ", ", few),
            ("1, ", few, ", 2"),
        )
        if not self._room and self._chance(0.15):
            # Its items are not counted when the loop begins, so only `max` ends it.
            parts: tuple[str | Term, ...] = (f"{item} IN range(0, ", name, ")")
            return _Rounds(inner, Term(BOOLEAN, parts), item, needs_max=True, most=12)
        parts = (f"{item} IN range(", *self.random.choice(ends), ")")
        rounds = _Rounds(inner, Term(BOOLEAN, parts), item, most=most + 3)
        return self._where(rounds) if self._chance(0.4) else rounds

    def _over_collection(self, scope: Scope, name: str) -> _Rounds:
        """Draw a loop over a collection that a name has; over a range if there is none."""
        found = [each for each in scope.paths if isinstance(each.type, ArrayOf | SetOf | MapOf)]
        if not found:
            return self._over_range(scope, name)
        over = self.random.choice(found)
        inner = scope.in_loop()
        match over.type:
            case MapOf(key, value):
                first, inner = self._draw.bind(inner, key)
                names, item_type = first, key
                if self._chance(0.6):
                    second, inner = self._draw.bind(inner, value)
                    names = f"{first}, {second}"
            case ArrayOf(element) | SetOf(element):
                first, inner = self._draw.bind(inner, element)
                names, item_type = first, element
            case _:
                raise NotExpressible
        item = next(each for each in inner.paths if str(each) == first)
        rounds = _Rounds(inner, Term(BOOLEAN, (f"{names} IN ", over)), item if item_type == INTEGER else None)
        return self._where(rounds) if self._chance(0.35) else rounds

    def _where(self, rounds: _Rounds) -> _Rounds:
        assert rounds.over is not None
        if rounds.item is None or self._chance(0.3):
            where = self.condition(rounds.inner)  # may be the same in every round
            over = Term(BOOLEAN, (*rounds.over.parts, " WHERE ", where))
            return replace(rounds, over=over, items=None, inner=rounds.inner.assuming(where.when_true))
        where, passes = self._item_test(rounds.item, rounds.items or [0, 1, 2])
        items = None if rounds.items is None else [each for each in rounds.items if passes(each)]
        return replace(rounds, over=Term(BOOLEAN, (*rounds.over.parts, " WHERE ", where)), items=items)

    def _item_test(self, item: Term, items: list[int]) -> tuple[Term, Callable[[int], bool]]:
        """Draw a test of an integer item; return it with a function that computes it for a number."""
        bound = self.random.choice(items) if items else 0
        literal = number_literal(INTEGER, str(bound))
        match self.random.choice(("mod", "not", "from", "to", "left", "negated")):
            case "mod":
                modulus = self.random.choice((2, 3))
                left = self._plain.bounded(item, str(modulus))
                return infix("==", left, number_literal(INTEGER, "0"), BOOLEAN), lambda each: each % modulus == 0
            case "not":
                return infix("!=", item, literal, BOOLEAN), lambda each: each != bound
            case "from":
                return infix(">=", item, literal, BOOLEAN), lambda each: each >= bound
            case "to":
                return infix("<", item, literal, BOOLEAN), lambda each: each < bound
            case "left":
                return infix("<=", literal, item, BOOLEAN), lambda each: each >= bound
            case _:
                test = prefix("NOT", infix("==", item, literal, BOOLEAN), BOOLEAN)
                return test, lambda each: each != bound

    def _counting(self, scope: Scope, name: str) -> _Rounds:
        """Draw a loop that only `while` ends, with a counter as its first state."""
        count = max(1, self._draw_count())
        rounds = _Rounds(scope.in_loop(), items=[*range(count)], most=count)
        rounds.states.append(States(self.drawing, rounds.most, None).counter(f"{name}_n"))
        return rounds

    # -- ends of loops ----------------------------------------------------------------------------

    def _while(self, rounds: _Rounds) -> Term:
        counters = [each for each in rounds.states if each.is_counter]
        if rounds.over is not None or not counters:
            return self._plain.test(rounds.inner) if self._chance(0.6) else self._plain_condition(rounds.inner)
        counter = Term(INTEGER, (counters[0].name,))
        last = number_literal(INTEGER, str(rounds.most))
        return self.random.choice((infix("<", counter, last, BOOLEAN), infix(">", last, counter, BOOLEAN)))

    def _max(self, rounds: _Rounds) -> int:
        """Draw `max`: the number of rounds, one beside it, one, or far more."""
        if rounds.count is None:
            return rounds.most if rounds.needs_max else self.random.choice((1, 2, 3, 6, 60, 1000))
        count = rounds.count
        return max(1, self.random.choice((1, count // 2, count - 1, count, count, count + 1, count + 1, 1000 + count)))

    def _stop(self, rounds: _Rounds) -> Term:
        counted = [each for each in rounds.states if each.type == INTEGER]
        if rounds.item is not None and self._chance(0.4):
            return self._item_test(rounds.item, rounds.items or [0, 1, 2])[0]
        if counted and self._chance(0.6):
            state, bound = Term(INTEGER, (self.random.choice(counted).name,)), self._plain.literal(INTEGER)
            return self.random.choice((infix(">=", state, bound, BOOLEAN), infix("<=", bound, state, BOOLEAN)))
        return self._plain.test(rounds.inner)

    # -- rounds' contents -------------------------------------------------------------------------

    def _add_states(self, rounds: _Rounds, scope: Scope, name: str) -> None:
        states = States(self.drawing, rounds.most, rounds.item)
        for number in range(self.random.choice((0, 1, 1, 1, 2, 2, 3))):
            rounds.states.append(states.draw(f"{name}_s{number}", scope))
        for each in rounds.states:
            self._draw.bound += 1
            rounds.inner = rounds.inner.bind(each.name, each.type, self._draw.bound)

    def _body(self, rounds: _Rounds) -> list[Tree]:
        """Draw the steps of a round: cheap ones where there are many rounds."""
        found: list[Tree] = []
        if self._chance(0.3):  # what no round changes
            fields: dict[str, Tree] = {"step": self._name(), "operation": "compute"}
            fields["value"] = self._plain.number(INTEGER, rounds.inner)
            rounds.inner = rounds.inner.declare("step", str(fields["step"]), INTEGER)
            found.append(fields)
        if self._chance(0.25):
            found.append(self._end(rounds.inner, {"when": self._round_test(rounds)}))
        if rounds.most > max(_FEW) or self._blocks >= MAX_BLOCKS + 1:
            return found
        depth = self._blocks
        outer, self._room = self._room, max(1, (self._room or 400) // max(1, rounds.most))
        try:
            steps, rounds.inner = self._draw_inner(rounds.inner, (0, 0, 0, 1, 1))
            if self._chance(0.25) and self._blocks < MAX_BLOCKS:
                self._blocks += 1
                nested = self._loop(rounds.inner)
                steps, rounds.inner = [*steps, nested.fields], nested.after
        finally:
            self._room, self._blocks = outer, depth
        return [*found, *steps]

    def _round_test(self, rounds: _Rounds) -> Term:
        """Draw a condition that holds in a certain round."""
        if rounds.item is not None and rounds.items:
            place = self.random.choice((0, len(rounds.items) // 2, len(rounds.items) - 1))
            return infix("==", rounds.item, number_literal(INTEGER, str(rounds.items[place])), BOOLEAN)
        return self._plain.test(rounds.inner)

    def _collect(self, rounds: _Rounds) -> tuple[Type, Tree]:
        if rounds.item is not None and self._chance(0.3):
            return INTEGER, rounds.item
        if rounds.most > max(_FEW) or self._chance(0.4):
            return INTEGER, self._plain.number(INTEGER, rounds.inner)
        type_ = self._type()
        return type_, self._steady.expression(type_, rounds.inner, 2)

    # -- loops of any expressions -----------------------------------------------------------------

    def _any_loop(self, scope: Scope) -> DrawnPart:
        """Draw a loop of any expressions."""
        fields: dict[str, Tree] = {"step": self._name(), "operation": "loop"}
        inner = scope.in_loop()
        goes_over = self._chance(0.6)
        if goes_over:
            parts, inner = self._draw.binding(scope, 1)
            fields["over"] = Term(BOOLEAN, parts)
        counts = not goes_over and self._chance(0.7)
        state: dict[str, Type] = {}
        first: dict[str, Tree] = {}
        for number in range(self.random.choice((0, 1, 1, 2))):
            name, type_ = f"{fields['step']}_s{number}", self._type()
            if self._chance(0.5):
                first[name] = self._steady.expression(type_, scope, 1)
            else:
                first[name] = {
                    "type": scalar(type_text(type_), in_flow=True),
                    "value": self._steady.assignable(type_, scope, 1),
                }
            state[name] = type_
        counter = f"{fields['step']}_n"
        if counts:
            first[counter], state[counter] = Term(INTEGER, ("0",)), INTEGER
        for name, type_ in state.items():
            self._draw.bound += 1
            inner = inner.bind(name, type_, self._draw.bound)
        if counts:
            fields["while"] = Term(BOOLEAN, (f"{counter} < {self.random.randint(1, 4)}",))
            fields["max"] = "5"
        elif not goes_over or self._chance(0.2):
            condition = self._plain_condition(inner)
            fields["while"] = condition
            fields["max"] = str(self.random.choice((1, 2, 6)))
        fields |= {"state": first} if first else {}
        before = inner
        steps, inner = self._draw_inner(inner, (0, 0, 1, 2))
        fields |= {"steps": steps} if steps else {}
        collected: Type | None = None
        if not state or self._chance(0.5):
            collected = self._type()
            fields["collect"] = self._steady.expression(collected, inner, 2)
        changes: dict[str, Tree] = {
            name: self._steady.assignable(type_, inner, 2)
            for name, type_ in state.items()
            if name != counter and self._chance(0.85)
        }
        changes |= {counter: Term(INTEGER, (f"{counter} + 1",))} if counts else {}
        fields |= {"next": changes} if changes else {}
        if self._chance(0.3):
            fields["stop_when"] = self._steady.expression(BOOLEAN, replace(inner, facts=before.facts), 1, BOOLEAN)
        if self._chance(0.3):
            type_ = _loop_type(state, collected)
            codes = ("loop_limit", "too_large")
            fields["on_error"] = self._handlers(scope, None, codes)
            return DrawnPart(fields, scope.declare("step", str(fields["step"]), type_))
        return DrawnPart(fields, scope.declare("step", str(fields["step"]), _loop_type(state, collected)))


def _loop_type(state: dict[str, Type], collected: Type | None) -> Record:
    fields = tuple(state.items())
    return Record(fields if collected is None else (*fields, ("collected", ArrayOf(collected))))
