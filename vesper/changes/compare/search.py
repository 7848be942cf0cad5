"""Search of differing inputs: cases, targets from the IR, then inputs drawn near literals of both versions.

An input that takes a new pair of paths is varied later, so that the search spreads over the paths of both versions. It
ends at its limits, or once new inputs no longer show new differing paths.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, TypeAlias

from vesper.changes.compare.structure import targets
from vesper.changes.compare.versions import Given, RunPair, Version, VersionPair
from vesper.engines.compare import NotComparable
from vesper.engines.version_outcomes import ChangedOutcome
from vesper.language.ir.nodes import Node
from vesper.migration.workers.enumeration import NotEnumerable, domain_of
from vesper.values.inputs import accept_inputs
from vesper.values.model import MAX_INTEGER, MIN_INTEGER, plain
from vesper.values.types import DECIMAL, INTEGER, OptionalOf, Type
from vesper.verify.inputs.boundaries import BoundarySeeker
from vesper.verify.inputs.edges import decimal_neighbours
from vesper.verify.inputs.generator import InputGenerator
from vesper.verify.solve.numbers import from_number
from vesper.verify.solve.search import InputSolver, Wanted

PathPair: TypeAlias = tuple[bytes, bytes, str]
"""The paths of both versions, and the place where their outcomes differ."""
MAX_PATHS = 64
"""Differing pairs of paths that are kept; inputs on further ones count."""
_MAX_EXAMPLES = 200
_FIRST_TURNS, _FIRST_INTERVAL, _LATER_INTERVAL = 3, 4, 24
"""Tries of each target that come early, and the draws between two targets, early and later."""
_REPAIR_ROUNDS = 10
_CROSSED_SHARE = 0.25
PLATEAU = 2_000
"""Inputs without a new differing pair of paths after which a search with witnesses ends."""
_CLOCK_INTERVAL = 16


@dataclass(frozen=True, slots=True)
class SearchLimits:
    max_inputs: int = 100_000
    until: float = float("inf")
    """Moment of the monotonic clock."""
    plateau: int = PLATEAU


@dataclass
class SearchResult:
    """What a search found so far."""

    tried: int = 0
    differing: int = 0
    not_comparable: int = 0
    why_not_comparable: str = ""
    found: dict[PathPair, Given] = field(default_factory=dict)
    """The first input of each differing pair of paths."""
    enumerated: int | None = None
    """Number of inputs where these were all."""
    paths: set[tuple[bytes, bytes]] = field(default_factory=set)


class Search:
    """A search over one pair of versions; equal seeds draw equal inputs."""

    def __init__(self, pair: VersionPair, seed: int, progress: Callable[[int], None] = lambda _: None) -> None:
        self.pair = pair
        self.result = SearchResult()
        self._seed = seed
        self._random = random.Random(f"compare {seed}")
        self._progress = progress
        self._sources = [InputSource(pair, version, seed) for version in pair.versions]
        self._last_new = 0

    def run(self, limits: SearchLimits) -> SearchResult:
        """Draw and run inputs until a limit, or until nothing new differs. Can be continued."""
        self._last_new = self.result.tried
        if self.result.tried >= limits.max_inputs:
            return self.result
        for given in self._drawn():
            self._try(given)
            tried = self.result.tried
            is_at_plateau = bool(self.result.found) and tried - self._last_new >= limits.plateau
            if tried >= limits.max_inputs or is_at_plateau:
                break
            if tried % _CLOCK_INTERVAL == 0:
                self._progress(tried)
                if time.monotonic() >= limits.until:
                    break
        return self.result

    def enumerate(self, limits: SearchLimits) -> bool:
        """Run all inputs of both versions where they are few; return whether all were compared."""
        try:
            domains = [domain_of(each.compiled) for each in self.pair.versions]
        except NotEnumerable:
            return False
        if not have_equal_inputs(*(each.node for each in self.pair.versions)):
            return False
        if sum(each.size for each in domains) > limits.max_inputs:
            return False
        for domain in domains:
            for number, inputs in enumerate((*domain.refused(), *map(domain.at, range(domain.size)))):
                self._try(self.pair.make_given(inputs, f"{self._seed} 0"))
                if number % _CLOCK_INTERVAL == 0 and time.monotonic() >= limits.until:
                    return False
            if domains[0] == domains[1]:
                break
        if self.result.not_comparable:
            return False
        self.result.enumerated = self.result.tried
        return True

    def offer(self, given: Given) -> RunPair:
        """Run one input from elsewhere, and keep it where it differs on a new pair of paths."""
        return self._try(given)

    def _try(self, given: Given) -> RunPair:
        result, ran = self.result, self.pair.run(given)
        result.tried += 1
        if ran.paths not in result.paths:
            result.paths.add(ran.paths)
            for source in self._sources:
                source.learn(given.inputs)
        match ran.found:
            case NotComparable(why):
                result.not_comparable += 1
                result.why_not_comparable = result.why_not_comparable or why
            case ChangedOutcome(where=where):
                result.differing += 1
                key = (*ran.paths, where.partition("[")[0])
                if key not in result.found and len(result.found) < MAX_PATHS:
                    result.found[key] = given
                    self._last_new = result.tried
        return ran

    def _drawn(self) -> Iterator[Given]:
        for number in count(self.result.tried):
            seed = f"{self._seed} {number}"
            first, other = self._sources if number % 2 == 0 else reversed(self._sources)
            inputs = first.next()
            if self._random.random() < _CROSSED_SHARE:
                inputs = self._cross_values(inputs, other.next())
            yield self.pair.make_given(inputs, seed)

    def _cross_values(self, inputs: dict[str, object], others: Mapping[str, object]) -> dict[str, object]:
        """Return inputs with some values of others, so that literals of both versions meet."""
        names = [name for name in inputs if name in others]
        taken = self._random.sample(names, self._random.randint(0, len(names)))
        return inputs | {name: others[name] for name in taken}


class InputSource:
    """Inputs drawn by the types, literals, contracts and cases of one version."""

    def __init__(self, pair: VersionPair, version: Version, seed: int) -> None:
        self._node = pair.union_node(version)
        other = pair.after if version is pair.before else pair.before
        cases: list[dict[str, object]] = [dict(each.inputs) for one in pair.versions for each in one.compiled.cases]
        self._generator = InputGenerator(self._node, seed, examples=cases)
        self._waiting: list[dict[str, object]] = [*cases] if version is pair.before else []
        self._random = random.Random(f"targets {seed} {version.node.node_id}")
        self._declared = self._node.declared_inputs
        self._goals = targets(version.node, other.node)
        self._drawing = InputGenerator(self._node, seed, seeks_boundaries=False)
        self._solver = self._free_solver()
        self._seeker = BoundarySeeker(self._generator.solver.evaluator, self._random)
        self._turn = 0
        self._draws = 0
        self._known = 0

    def next(self) -> dict[str, object]:
        """Return the next inputs: cases first, then near a target or drawn freely."""
        self._draws += 1
        if not self._waiting and self._goals and self._is_aimed():
            goal = self._goals[self._turn % len(self._goals)]
            self._turn += 1
            self._waiting = self._near(goal)
        return self._waiting.pop() if self._waiting else self._generator.draw()

    def learn(self, inputs: Mapping[str, object]) -> None:
        """Vary these inputs later."""
        if self._known < _MAX_EXAMPLES:
            self._known += 1
            self._generator.add_example(inputs)

    def _is_aimed(self) -> bool:
        """Return whether the next draws have a target: often until each was tried a few times, later seldom."""
        interval = _FIRST_INTERVAL if self._turn < _FIRST_TURNS * len(self._goals) else _LATER_INTERVAL
        return self._draws % interval == 0

    def _free_solver(self) -> InputSolver:
        """Return a solver without the node's contracts, which a target contains where they did not change."""
        bare = replace(self._node, constraints=(), preconditions=())
        draw = self._drawing.draw_value
        return InputSolver(bare, self._random, lambda name, type_: draw(type_, f"{name} {self._random.random()}"))

    def values_near(self, inputs: Mapping[str, object], name: str, type_: Type) -> list[Any]:
        """Return other values of one input: at the boundaries of comparisons, one unit beside, and drawn ones."""
        values, problems = accept_inputs(self._declared, dict(inputs))
        if problems or values[name] is None:
            return []
        given: Any = values[name]
        numbers = self._seeker.boundaries(inputs, name)
        bases = [given, *(found for each in numbers if (found := from_number(given, each)) is not None)]
        near = [other for each in bases for other in _neighbours(type_, each)]
        self._draws += 1
        drawn = self._drawing.draw_value(type_, f"{name} {self._draws}")
        accepted, wrong = accept_inputs([(name, type_, None)], {name: drawn})
        return [*near, *([] if wrong else [accepted[name]])]

    def _near(self, goal: list[Wanted]) -> list[dict[str, object]]:
        """Return inputs that meet a goal, and the same with one number moved by one unit."""
        repaired = self._solver.repair(self._generator.draw(), goal, _REPAIR_ROUNDS)
        inputs = repaired.inputs
        values, problems = accept_inputs(self._declared, dict(inputs))
        if problems:
            return [inputs]
        found = [inputs]
        for each in self._node.inputs:
            type_ = each.type.inner if isinstance(each.type, OptionalOf) else each.type
            value = values.get(each.name)
            if value is not None and type_ in (INTEGER, DECIMAL):
                found += [{**inputs, each.name: plain(other)} for other in _neighbours(type_, value)]
        self._random.shuffle(found)
        return found


def _neighbours(type_: Type, value: Any) -> list[Any]:
    """Return a value with those beside it, where its type has a unit."""
    if type_ == DECIMAL:
        return list(decimal_neighbours(value))
    if type_ == INTEGER:
        return [value, *(each for each in (value - 1, value + 1) if MIN_INTEGER <= each <= MAX_INTEGER)]
    return [value]


def have_equal_inputs(before: Node, after: Node) -> bool:
    """Return whether two versions declare the same inputs, with equal defaults."""

    def declared(node: Node) -> set[tuple[str, str, str, str | None]]:
        return {(each.name, str(each.type), repr(each.default), each.flag) for each in node.inputs}

    return declared(before) == declared(after)
