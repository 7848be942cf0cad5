"""One node on drawn inputs: monotone outputs, and the range of an output.

Inputs are drawn as for a comparison. Where the inputs are few, all of them are run, which proves the answer; otherwise
it is what was observed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from vesper.changes.compare.search import InputSource, SearchLimits
from vesper.changes.compare.versions import Given, Version, VersionPair
from vesper.compiler import Compiled
from vesper.engines.outcome import Returned
from vesper.migration.workers.enumeration import Domain, NotEnumerable, domain_of
from vesper.values.inputs import accept_inputs
from vesper.values.model import plain
from vesper.values.types import DATE, DECIMAL, DURATION, FLOAT, INTEGER, TIMESTAMP, OptionalOf, Type
from vesper.values.vesper_error import VesperError
from vesper.verify.shrink.inputs import shrink

ORDERED = (INTEGER, DECIMAL, FLOAT, DATE, TIMESTAMP, DURATION)
_CLOCK_INTERVAL = 16


class NotOrdered(VesperError):
    """The question is about an input or output that the node lacks, or whose values have no order."""


@dataclass(frozen=True, slots=True)
class Fall:
    """Two executions that differ in one input: it grows, and an output falls."""

    given: Given
    """The inputs with the smaller value."""
    larger: object
    output: str
    before: object
    after: object


@dataclass(frozen=True, slots=True)
class MonotoneResult:
    version: Version
    input: str
    outputs: tuple[str, ...]
    fall: Fall | None
    tried: int
    is_proven: bool


@dataclass(frozen=True, slots=True)
class Extreme:
    value: object
    given: Given


@dataclass(frozen=True, slots=True)
class RangeResult:
    """The smallest and the largest value of an output; None where no execution returned one."""

    version: Version
    output: str
    low: Extreme | None
    high: Extreme | None
    tried: int
    is_proven: bool


class SingleSearch:
    """Drawn or enumerated inputs of one node."""

    def __init__(self, compiled: Compiled, seed: int, limits: SearchLimits) -> None:
        self.pair = VersionPair(compiled, compiled)
        self.version = self.pair.before
        self._source = InputSource(self.pair, self.version, seed)
        self._seed = seed
        self._limits = limits
        self._domain = _small_domain(compiled, limits.max_inputs)
        self.tried = 0
        self.is_complete = False
        """Whether all inputs were run."""

    def monotone(self, name: str, outputs: tuple[str, ...]) -> MonotoneResult:
        """Search two inputs that differ in one value, where an output falls as the value grows."""
        type_ = _ordered_type({each.name: each.type for each in self.version.node.inputs}, name, "input")
        types = {each.name: each.type for each in self.version.node.outputs}
        if not outputs:
            outputs = tuple(each for each, its_type in types.items() if _present(its_type) in ORDERED)
        for each in outputs:
            _ordered_type(types, each, "output")
        if not outputs:
            raise NotOrdered(f"{self.version.node.node_id} has no output whose values have an order")
        known: dict[str, list[tuple[Any, Mapping[str, Any], Given]]] = {}
        fall = None
        for given in self._inputs():
            fall = next((each for each in self._falls(given, name, type_, outputs, known) if each is not None), None)
            if fall is not None:
                fall = self._shrink_fall(fall, name)
                break
        return MonotoneResult(self.version, name, outputs, fall, self.tried, self.is_complete and fall is None)

    def range(self, output: str) -> RangeResult:
        """Return the smallest and the largest value of an output."""
        _ordered_type({each.name: each.type for each in self.version.node.outputs}, output, "output")
        low: Extreme | None = None
        high: Extreme | None = None
        for given in self._inputs():
            found = self._returned(given)
            value: Any = None if found is None else found[output]
            if value is None or value != value:  # NaN has no order
                continue
            is_low, is_high = low is None or value < low.value, high is None or value > high.value
            if is_low or is_high:
                self._source.learn(given.inputs)
            low = Extreme(value, given) if is_low else low
            high = Extreme(value, given) if is_high else high
        shrunk = [None if each is None else self._shrink_extreme(each, output) for each in (low, high)]
        return RangeResult(self.version, output, shrunk[0], shrunk[1], self.tried, self.is_complete)

    def _inputs(self) -> Iterator[Given]:
        """Yield all inputs where they are few, else drawn ones until a limit."""
        if self._domain is not None:
            for number in range(self._domain.size):
                yield self._make_given(self._domain.at(number), number)
                if self._is_over():
                    break
            self.is_complete = self.tried == self._domain.size
            return
        for number in count():
            if self._is_over():
                return
            yield self._make_given(self._source.next(), number)

    def _make_given(self, inputs: Mapping[str, object], number: int) -> Given:
        self.tried += 1
        return self.pair.make_given(inputs, f"{self._seed} {number}")

    def _is_over(self) -> bool:
        is_late = self.tried % _CLOCK_INTERVAL == 0 and time.monotonic() >= self._limits.until
        return is_late or (self._domain is None and self.tried >= self._limits.max_inputs)

    def _returned(self, given: Given) -> Mapping[str, Any] | None:
        """Return the outputs; None where the execution did not return."""
        outcome = self.pair.run_before(given).outcome
        return outcome.value if isinstance(outcome, Returned) else None

    def _falls(
        self,
        given: Given,
        name: str,
        type_: Type,
        outputs: tuple[str, ...],
        known: dict[str, list[tuple[Any, Mapping[str, Any], Given]]],
    ) -> Iterator[Fall | None]:
        """Compare an input with those that differ in one value, known ones and new ones near the boundaries."""
        values, problems = accept_inputs(self.version.node.declared_inputs, dict(given.inputs))
        found = None if problems or values[name] is None else self._returned(given)
        if found is None:
            return
        if self._domain is not None:
            key = repr(sorted((each, repr(value)) for each, value in values.items() if each != name))
            others = known.setdefault(key, [])
            for value, its_outputs, its_given in others:
                yield _fall((value, its_outputs, its_given), (values[name], found, given), outputs)
            others.append((values[name], found, given))
            return
        for other in self._source.values_near(given.inputs, name, type_):
            its_given = replace(given, inputs={**given.inputs, name: plain(other)})
            returned = self._returned(its_given)
            self.tried += 1
            if returned is not None:
                yield _fall((values[name], found, given), (other, returned, its_given), outputs)

    def _shrink_fall(self, fall: Fall, name: str) -> Fall:
        def fall_of(candidate: Mapping[str, object]) -> Fall | None:
            if name not in candidate or _LARGER not in candidate:
                return None
            inputs = {each: value for each, value in candidate.items() if each != _LARGER}
            given = replace(fall.given, inputs=inputs)
            other = replace(fall.given, inputs={**inputs, name: candidate[_LARGER]})
            values = []
            for each in (given, other):
                read, problems = accept_inputs(self.version.node.declared_inputs, dict(each.inputs))
                outputs = None if problems or read[name] is None else self._returned(each)
                if outputs is None:
                    return None
                values.append((read[name], outputs, each))
            found = _fall(values[0], values[1], (fall.output,))
            return found if found is not None and found.given is given else None

        small = shrink(
            self.version.node,
            {**fall.given.inputs, _LARGER: fall.larger},
            lambda candidate: fall_of(candidate) is not None,
        )
        found = fall_of(small) or fall
        self._confirm(found.given)
        self._confirm(replace(found.given, inputs={**found.given.inputs, name: found.larger}))
        return found

    def _shrink_extreme(self, extreme: Extreme, output: str) -> Extreme:
        def is_kept(candidate: Mapping[str, object]) -> bool:
            found = self._returned(replace(extreme.given, inputs=candidate))
            return found is not None and bool(found[output] == extreme.value)

        small = replace(extreme.given, inputs=shrink(self.version.node, extreme.given.inputs, is_kept))
        self._confirm(small)
        found = self._returned(small)
        assert found is not None, "shrinking keeps the value"
        return Extreme(found[output], small)

    def _confirm(self, given: Given) -> None:
        """Run on both engines. Raises `EnginesDisagree`."""
        self.pair.confirm(given)


_LARGER = "the larger value"
"""Name of the second value while a pair of inputs is shrunk; no input has a space in its name."""


def _fall(
    one: tuple[Any, Mapping[str, Any], Given], other: tuple[Any, Mapping[str, Any], Given], outputs: tuple[str, ...]
) -> Fall | None:
    """Return the first output that falls from the smaller to the larger value."""
    if one[0] == other[0] or one[0] != one[0] or other[0] != other[0]:
        return None
    small, large = (one, other) if one[0] < other[0] else (other, one)
    for name in outputs:
        before, after = small[1][name], large[1][name]
        if before is not None and after is not None and after < before:
            return Fall(small[2], plain(large[0]), name, before, after)
    return None


def _small_domain(compiled: Compiled, max_inputs: int) -> Domain | None:
    """Return all inputs of a node, where they are few."""
    try:
        domain = domain_of(compiled)
    except NotEnumerable:
        return None
    return domain if domain.size <= max_inputs else None


def _present(type_: Type) -> Type:
    return type_.inner if isinstance(type_, OptionalOf) else type_


def _ordered_type(types: Mapping[str, Type], name: str, kind: str) -> Type:
    if name not in types:
        raise NotOrdered(f"there is no {kind} `{name}`: choose one of {', '.join(types) or 'none'}")
    if _present(types[name]) not in ORDERED:
        raise NotOrdered(f"{kind} `{name}` is a {types[name]}: its values have no order that numbers and times have")
    return _present(types[name])
