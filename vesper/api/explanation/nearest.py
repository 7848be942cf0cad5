"""Search for the nearest input with another outcome.

One part of the inputs is changed at a time: numbers to the boundaries of comparisons and then by bisection, enums,
booleans, texts and collections by their neighbours. Where no single change helps, inputs are solved for the branches
that the execution did not take, and pairs of parts are changed. Every result was executed. The search is bounded and
uses no randomness of the process, so every engine gives the same result.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import cache, cached_property
from itertools import combinations
from typing import Any

from vesper.api.explanation.input_parts import (
    Part,
    near_numbers,
    number_like,
    other_values,
    parts_of,
    replace_part,
    unit_of,
    value_at,
)
from vesper.api.explanation.model import Change, Nearest
from vesper.engines.compare import same_outcome
from vesper.engines.engine import Done
from vesper.engines.outcome import ContractBroken, DeclaredError, Failed, Outcome, Returned
from vesper.engines.path import Conditions, guards
from vesper.language.ir.nodes import Node
from vesper.values.inputs import accept_inputs
from vesper.values.model import plain, same
from vesper.values.types import BOOLEAN, Enum, OptionalOf, Type
from vesper.verify.inputs.boundaries import BoundarySeeker
from vesper.verify.inputs.edges import find_edges
from vesper.verify.inputs.generator import InputGenerator
from vesper.verify.solve.goals import branch_goals
from vesper.verify.solve.numbers import to_number
from vesper.verify.solve.search import InputSolver

MAX_TRIES = 2_000
"""Default maximum of executions of one search."""
_KINDS = ("decision", "path", "value")
"""What changes, the most telling first: an enum, a boolean or the kind of outcome; conditions; only values."""
_MAX_GOALS = 20
_ROUNDS = 5
"""Rounds in which the solver changes inputs for one branch."""
_MAX_REPAIRS = 120
"""Changes of inputs that the solver tries for all branches together."""
_MAX_PAIRED_VALUES = 4

Execute = Callable[[dict[str, Any]], Done | None]
"""Runs the node on inputs; None where the execution has no outcome, such as a request without an answer."""


class _TriesUsed(Exception):
    """The maximum of executions is reached."""


def find_nearest(
    node: Node, inputs: Mapping[str, object], execute: Execute, max_tries: int = MAX_TRIES
) -> Nearest | None:
    """Search the nearest input with another outcome.

    The result states the number of tries, also if none was found. None where the inputs are no values of their types.
    """
    declared = [(each.name, each.type, each.default) for each in node.inputs]
    values, problems = accept_inputs(declared, dict(inputs))
    if problems:
        return None
    search = _Search(node, {name: plain(value) for name, value in values.items()}, execute, max_tries)
    return search.run()


class _Search:
    def __init__(self, node: Node, inputs: dict[str, Any], execute: Execute, max_tries: int) -> None:
        self._node = node
        self._inputs = inputs
        self._execute = execute
        self._left = max_tries
        self._max_tries = max_tries
        self._types = {each.name: each.type for each in node.inputs}
        self._edges = find_edges(node)
        self._guards = guards(node)
        self._parts = parts_of(self._types, inputs)
        self._units = {part.path: unit_of(part, self._edges) for part in self._parts if _is_number(part.value)}
        self._best: tuple[tuple[int, int, Fraction], dict[str, Any], Outcome] | None = None
        self._base: tuple[Outcome, Conditions] | None = None
        self._discrete = [each.name for each in node.outputs if _is_discrete(each.type)]
        self._wanted = 0 if self._discrete or node.errors else 1

    def run(self) -> Nearest | None:
        first = self._execute(self._inputs)
        if first is None:
            return None
        self._base = first.outcome, self._conditions(first)
        try:
            self._change_single_parts()
            if not self._is_found():
                self._solve_branches()
            if not self._is_found():
                self._change_pairs()
        except _TriesUsed:
            pass
        tries = self._max_tries - self._left
        if self._best is None:
            return Nearest(tries)
        score, inputs, outcome = self._best
        return Nearest(tries, tuple(self._changes(inputs)), inputs, outcome, _KINDS[score[0]])

    def _is_found(self) -> bool:
        return self._best is not None and self._best[0][0] <= self._wanted

    # -- phases -----------------------------------------------------------------------------------

    def _change_single_parts(self) -> None:
        for part in self._parts:
            if _is_number(part.value):
                self._move_number(part, self._inputs)
            for value in other_values(part, self._edges):
                self._try(replace_part(self._inputs, part.path, value))

    def _move_number(self, part: Part, inputs: dict[str, Any]) -> None:
        """Try numbers, nearest first, until one is wanted; then approach the boundary by bisection."""
        unit, start = self._units[part.path], to_number(part.value)
        assert start is not None
        for number in near_numbers(part, unit, self._edges, self._boundaries(part)):
            if self._best is not None and self._best[0] <= (self._wanted, 1, _distance(start, number)):
                return  # further numbers are farther away than a change that is known
            value = number_like(part.value, number)
            if value is not None and self._try(replace_part(inputs, part.path, value)):
                self._bisect(part, inputs, start, number, unit)
                return

    def _bisect(self, part: Part, inputs: dict[str, Any], low: Fraction, high: Fraction, unit: Fraction) -> None:
        """Halve the steps between a number that is not wanted and one that is."""
        steps = abs(high - low) / unit
        near, far = 0, int(steps)
        sign = 1 if high > low else -1
        while far - near > 1:
            middle = (near + far) // 2
            value = number_like(part.value, low + sign * middle * unit)
            if value is not None and self._try(replace_part(inputs, part.path, value)):
                far = middle
            else:
                near = middle

    def _boundaries(self, part: Part) -> list[Fraction]:
        """Return the numbers at which comparisons of the node have equal sides, for an input that is a number."""
        if len(part.path) > 1:
            return []
        seeker = BoundarySeeker(self._solver.evaluator, random.Random(0))
        return seeker.boundaries(self._inputs, str(part.path[0]))

    def _solve_branches(self) -> None:
        """Solve for conditions that the execution did not meet, and undo every change that is not needed."""
        assert self._base is not None
        passed = self._base[1]
        goals = branch_goals(self._node)
        missed = [key for key in goals if key not in passed]
        # Results opposite to those that occurred are nearest.
        missed.sort(key=lambda key: ((key[0], not key[1]) not in passed, key))
        work = 0
        for key in missed[:_MAX_GOALS]:
            if work > _MAX_REPAIRS:
                return
            repaired = self._solver.repair(self._inputs, goals[key], _ROUNDS)
            work += repaired.tried
            values, problems = accept_inputs([(n, t, None) for n, t in self._types.items()], repaired.inputs)
            if problems:
                continue
            candidate = {name: plain(values.get(name)) for name in self._types}
            if self._try(candidate):
                self._minimise(candidate)

    def _minimise(self, candidate: dict[str, Any]) -> None:
        for part in self._parts:
            try:
                now = value_at(candidate, part.path)
            except LookupError:
                continue
            if same(now, part.value):
                continue
            restored = replace_part(candidate, part.path, part.value)
            if self._try(restored):
                candidate = restored
            elif _is_number(now) and _is_number(part.value):
                start, end = to_number(part.value), to_number(now)
                assert start is not None and end is not None
                self._bisect(part, candidate, start, end, self._units[part.path])
                found = self._best[1] if self._best is not None else candidate
                if all(same(found[name], candidate[name]) for name in candidate if name != part.path[0]):
                    candidate = found

    def _change_pairs(self) -> None:
        for left, right in combinations(self._parts, 2):
            if left.path == right.path[: len(left.path)]:
                continue
            for value in self._values_to_pair(left):
                changed = replace_part(self._inputs, left.path, value)
                for other in self._values_to_pair(right):
                    self._try(replace_part(changed, right.path, other))

    def _values_to_pair(self, part: Part) -> Iterator[object]:
        found = other_values(part, self._edges)
        if _is_number(part.value):
            numbers = near_numbers(part, self._units[part.path], self._edges, self._boundaries(part))
            known = [number_like(part.value, each) for each in numbers]
            found += [each for each in known if each is not None]
        yield from found[:_MAX_PAIRED_VALUES]

    @cached_property
    def _solver(self) -> InputSolver:
        generator = InputGenerator(self._node, 0)

        @cache  # a solver draws every item of a long array
        def draw(name: str, type_: Type) -> object:
            return generator.draw_value(type_, f"0 {name}")

        return InputSolver(self._node, random.Random(0), draw)

    # -- one try ----------------------------------------------------------------------------------

    def _try(self, candidate: dict[str, Any]) -> bool:
        """Run a candidate and keep the nearest. Returns whether it differs as wanted."""
        if self._left <= 0:
            raise _TriesUsed
        self._left -= 1
        done = self._execute(candidate)
        assert self._base is not None
        outcome, conditions = self._base
        if done is None or not _is_answer(done.outcome) or not _is_other(outcome, done.outcome):
            return False
        changes = list(self._changes(candidate))
        rank = self._rank(outcome, conditions, done)
        score = (rank, len(changes), sum((_size_of(each) for each in changes), Fraction(0)))
        if self._best is None or score < self._best[0]:
            self._best = score, candidate, done.outcome
        return rank <= self._wanted

    def _rank(self, outcome: Outcome, conditions: Conditions, done: Done) -> int:
        """Return the index in `_KINDS` of a difference."""
        match outcome, done.outcome:
            case Returned(before), Returned(after):
                if any(before[name] != after[name] for name in self._discrete):
                    return 0
            case DeclaredError(before), DeclaredError(after):
                if before["error_code"] != after["error_code"]:
                    return 0
            case _:
                return 0
        return 2 - int(self._conditions(done) != conditions)

    def _conditions(self, done: Done) -> Conditions:
        return frozenset((index, bool(value)) for index, value in done.marks if index in self._guards)

    def _changes(self, candidate: dict[str, Any]) -> Iterator[Change]:
        for part in self._parts:
            try:
                now = value_at(candidate, part.path)
            except LookupError:
                continue
            if isinstance(now, list | dict) and isinstance(part.value, type(now)) and len(now) == len(part.value):
                continue  # its items are parts of their own
            if not same(now, part.value):
                yield Change(part.text, part.value, now, part.type)


def _is_discrete(type_: Type) -> bool:
    inner = type_.inner if isinstance(type_, OptionalOf) else type_
    return inner == BOOLEAN or isinstance(inner, Enum)


def _is_number(value: object) -> bool:
    return to_number(value) is not None


def _is_answer(outcome: Outcome) -> bool:
    """Return whether an execution ran: its inputs met the contract, and no limit ended it."""
    match outcome:
        case Returned() | DeclaredError():
            return True
        case Failed(_, at_):
            return at_ is not None
        case ContractBroken(phase):
            return phase not in ("constraint", "precondition")
        case _:
            return False


def _is_other(left: Outcome, right: Outcome) -> bool:
    """Return whether outcomes differ in more than the places of a number."""
    if type(left) is type(right) and isinstance(left, Returned | DeclaredError):
        assert isinstance(right, Returned | DeclaredError)
        return bool(left.value != right.value)
    return not same_outcome(left, right)


def _distance(left: Fraction, right: Fraction) -> Fraction:
    """Return the size of a change relative to the number."""
    return abs(right - left) / (abs(left) + 1)  # no float: numbers have up to 1,000 digits


def _size_of(change: Change) -> Fraction:
    before, after = to_number(change.before), to_number(change.after)
    return Fraction(1) if before is None or after is None else _distance(before, after)
