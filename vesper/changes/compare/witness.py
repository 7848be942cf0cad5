"""Witnesses: inputs on which both versions really ran and differ, shrunk, with the places that decide.

A witness keeps its pair of paths and the differing field while it shrinks, so that each one shows another change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from vesper.changes.compare.search import PathPair
from vesper.changes.compare.structure import Forms, changed_expressions
from vesper.changes.compare.versions import Given, RunPair, VersionPair
from vesper.engines.engine import Done, Marks
from vesper.engines.outcome import ContractBroken
from vesper.engines.path import guards
from vesper.engines.version_outcomes import ChangedOutcome
from vesper.language.ir.nodes import Node, Place
from vesper.migration.compare.simpler import simpler_of
from vesper.values.model import show
from vesper.verify.shrink.inputs import shrink, simpler_values


@dataclass(frozen=True, slots=True)
class Witness:
    """One input with both outcomes, as both engines of both versions have them."""

    given: Given
    run: RunPair
    changed: ChangedOutcome
    before: Place | None
    """The condition, cell or expression that decides in the version before, if any. `after` likewise."""
    after: Place | None

    @property
    def size(self) -> tuple[int, str]:
        return witness_size(self.given)


def witness_size(given: Given) -> tuple[int, str]:
    """Order inputs by the length of their texts."""
    text = ", ".join(f"{name}={show(value)}" for name, value in given.inputs.items())
    answers = ", ".join(show(each.value) for each in given.answers)
    return len(text) + len(answers), text


class NotDifferent(ValueError):
    """An input on which the versions do not differ is no witness."""


class WitnessMaker:
    """Shrinks differing inputs of one pair of versions and finds the places that decide."""

    def __init__(self, pair: VersionPair) -> None:
        self._pair = pair
        self._node = pair.union_node(pair.before)
        self._deciding = _Deciding(pair)

    def witness(self, given: Given) -> Witness:
        """Return the smallest form of a differing input. Raises `EnginesDisagree` and `NotDifferent`."""
        small = self.shrink(given)
        ran, observed = self._pair.confirm(small)
        assert isinstance(ran.found, ChangedOutcome), "shrinking keeps the difference"
        before, after = self._deciding.places(*observed)
        return Witness(small, ran, ran.found, before, after)

    def shrink(self, given: Given) -> Given:
        """Return the smallest inputs, completions and start with the same paths and the same differing field."""
        target = path_pair(self._pair.run(given))
        if target is None:
            raise NotDifferent("both versions have the same outcome on this input")

        def is_kept(candidate: Given) -> bool:
            return path_pair(self._pair.run(candidate)) == target

        inputs = shrink(self._node, given.inputs, lambda each: is_kept(replace(given, inputs=each)))
        given = replace(given, inputs=inputs)
        if self._pair.reads_now:
            given = _shrink_now(given, is_kept)
        return self._shrink_answers(given, is_kept) if self._pair.makes_requests else given

    def _shrink_answers(self, given: Given, is_kept: Callable[[Given], bool]) -> Given:
        """State the completions that the executions used, with simpler values where the difference stays."""
        ran = self._pair.run(given)
        used = {(each.path, each.occurrence): each for each in (*ran.before.answers, *ran.after.answers)}
        given = replace(given, answers=tuple(used.values()))
        for number, answer in enumerate(given.answers):
            type_ = self._pair.type_at(answer.path)
            is_shrunk = answer.failure is not None or type_ is None
            while not is_shrunk:
                current = given.answers[number]
                candidates = (
                    replace(given, answers=_with(given.answers, number, replace(current, value=simpler)))
                    for simpler in simpler_of(type_, current.value)
                )
                found = next((each for each in candidates if is_kept(each)), None)
                is_shrunk = found is None
                given = found or given
        return given


def path_pair(run: RunPair) -> PathPair | None:
    """Return the paths and the place of a difference; None where the outcomes are the same."""
    return (*run.paths, run.found.where.partition("[")[0]) if isinstance(run.found, ChangedOutcome) else None


def _with(items: tuple[object, ...], number: int, item: object) -> tuple:  # type: ignore[type-arg]
    return (*items[:number], item, *items[number + 1 :])


def _shrink_now(given: Given, is_kept: Callable[[Given], bool]) -> Given:
    while given.now is not None:
        simpler = (replace(given, now=each) for each in simpler_values(given.now))  # type: ignore[arg-type]
        found = next((each for each in simpler if is_kept(each)), None)
        if found is None:
            break
        given = found
    return given


class _Deciding:
    """The conditions at which two executions of two versions part."""

    def __init__(self, pair: VersionPair) -> None:
        self._sides = [_Side(one.node, other.node) for one, other in (pair.versions, pair.versions[::-1])]

    def places(self, before: Done, after: Done) -> tuple[Place | None, Place | None]:
        """Return the place that decides in each version.

        It is the broken clause, else the first condition with another result in each version, else the first changed
        expression of an evaluated part.
        """
        clauses = [side.clause(done) for side, done in zip(self._sides, (before, after), strict=True)]
        if any(clauses):
            return clauses[0], clauses[1]
        left, right = (side.conditions(done.marks) for side, done in zip(self._sides, (before, after), strict=True))
        for (one, its_value), (other, value) in zip(left, right, strict=False):
            if its_value != value:
                return self._sides[0].place(one), self._sides[1].place(other)
        if len(left) != len(right):
            side = 0 if len(left) > len(right) else 1
            index = (left, right)[side][min(len(left), len(right))][0]
            places = self._sides[0].changed(before), self._sides[1].changed(after)
            own = self._sides[side].place(index)
            return (own, places[1]) if side == 0 else (places[0], own)
        return self._sides[0].changed(before), self._sides[1].changed(after)


class _Side:
    """One version, as far as the search of its deciding place reads it."""

    def __init__(self, node: Node, other: Node) -> None:
        self._node = node
        self._expressions = {each.index: each for each in node.expressions()}
        self._guards = guards(node)
        self._changed = changed_expressions(node, other)
        others = Forms(other).all()
        forms = Forms(node)
        self._is_changed = {index for index in self._expressions if forms.at(index) not in others}

    def conditions(self, marks: Marks) -> list[tuple[int, bool]]:
        return [(index, bool(value)) for index, value in marks if index in self._guards]

    def place(self, index: int) -> Place:
        return self._expressions[index].place

    def clause(self, done: Done) -> Place | None:
        """Return the clause that an execution broke."""
        match done.outcome:
            case ContractBroken(phase, index):
                return dict(self._node.phases())[phase][index].holds.place
            case _:
                return None

    def changed(self, done: Done) -> Place | None:
        """Return the first changed expression of an evaluated part; of any part where none was marked."""
        marked = {index for index, _ in done.marks if index in self._is_changed}
        roots = [self._expressions[index].place for index in sorted(marked)]
        inside = (each.place for each in self._changed if any(_contains(root, each.place) for root in roots))
        first = next(inside, None) or next(iter(roots), None)
        return first or next((each.place for each in self._changed), None)


def _contains(outer: Place, inner: Place) -> bool:
    start, end = (outer.line, outer.column), (outer.end_line, outer.end_column)
    return start <= (inner.line, inner.column) and (inner.end_line, inner.end_column) <= end


def shown_inputs(pair: VersionPair, given: Given) -> Mapping[str, object]:
    """Return the inputs in the declared order."""
    order = [each.name for each in pair.union_node(pair.before).inputs]
    known = {name: given.inputs[name] for name in order if name in given.inputs}
    return known | {name: value for name, value in given.inputs.items() if name not in known}
