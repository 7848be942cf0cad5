"""Enumeration: nodes with few possible inputs are run on all of them.

A node without effects is enumerable where each of its inputs is an enum, a boolean, an integer between two bounds that
its contracts set, an optional or a record of those, and there are at most a million inputs in all. They are numbered
without being built: input *n* is the same on every machine, so that an enumeration resumes where it stopped.

Integers beyond the bounds are refused, and are too many to run: the nearest and the farthest on each side are part of
the domain.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from itertools import chain
from math import ceil, floor, prod
from pathlib import Path
from typing import TypeAlias

from vesper.compiler import Compiled
from vesper.engines.engine import Done
from vesper.engines.outcome import Outcome
from vesper.engines.path import conditions_of, conditions_of_marks
from vesper.language.ir.nodes import Call, Expression, Field, Literal, Logical, Node, Now, Ref
from vesper.migration.compare.comparator import Incomparable, Same
from vesper.migration.compare.reports import Difference, Disagreement, Fault, Lost, PartAgreed, Report
from vesper.migration.compare.transcript import Transcript
from vesper.migration.control.state import Enumerated
from vesper.migration.shadow.guarded_direct import Broke, DirectSide, PathNoteBuilder
from vesper.migration.statistics.evidence import MAX_ENUMERATED
from vesper.migration.workers.rerun import Pair
from vesper.storage.file_access import make_private_folder
from vesper.values.model import MAX_INTEGER, MIN_INTEGER
from vesper.values.types import BOOLEAN, INTEGER, Enum, OptionalOf, Record, Type

_log = logging.getLogger("vesper.migration")
PART_SIZE = 2000
"""Inputs between two writes of the position."""
_DEPTH = 8
_FORMAT = 2
_ARBITRARY_NOW = datetime(2000, 1, 1, tzinfo=UTC)
"""Start time for a node that could read it, and does not."""


_MALFORMED_VALUES: tuple[object, ...] = (None, "no such member", 0.5, 1 << 70, [], {})


class NotEnumerable(Exception):
    """A node whose inputs cannot all be run; the message contains the reason."""


# -- the domain -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _ListedValues:
    """A few listed values."""

    values: tuple[object, ...]

    @property
    def size(self) -> int:
        return len(self.values)

    def at(self, number: int) -> object:
        return self.values[number]


@dataclass(frozen=True, slots=True)
class _IntegerRange:
    """The integers from `low` to `high`, and a few beyond."""

    low: int
    high: int
    beyond: tuple[int, ...]

    @property
    def size(self) -> int:
        return max(0, self.high - self.low + 1) + len(self.beyond)

    def at(self, number: int) -> object:
        count = len(self.beyond)
        return self.beyond[number] if number < count else self.low + number - count


@dataclass(frozen=True, slots=True)
class _OptionalValues:
    inner: _Values

    @property
    def size(self) -> int:
        return self.inner.size + 1

    def at(self, number: int) -> object:
        return None if number == 0 else self.inner.at(number - 1)


@dataclass(frozen=True, slots=True)
class _RecordValues:
    fields: tuple[tuple[str, _Values], ...]

    @property
    def size(self) -> int:
        return prod(each.size for _, each in self.fields)

    def at(self, number: int) -> dict[str, object]:
        found: dict[str, object] = {}
        for name, each in reversed(self.fields):
            number, rest = divmod(number, each.size)
            found[name] = each.at(rest)
        return {name: found[name] for name, _ in self.fields}


_Values: TypeAlias = _ListedValues | _IntegerRange | _OptionalValues | _RecordValues


@dataclass(frozen=True, slots=True)
class Domain:
    """All inputs of a node."""

    inputs: _RecordValues

    @property
    def size(self) -> int:
        return self.inputs.size

    def at(self, number: int) -> dict[str, object]:
        return self.inputs.at(number)

    def refused(self) -> Iterator[dict[str, object]]:
        """Yield malformed inputs, which both engines must refuse alike. They are no part of the domain.

        Omitting an input is included, even where that is allowed.
        """
        usual = self.at(self.size - 1) if self.size else {}
        yield {**usual, "no such input": 1}
        for name in usual:
            yield {other: value for other, value in usual.items() if other != name}
            for wrong in _MALFORMED_VALUES:
                yield {**usual, name: wrong}


def domain_of(compiled: Compiled) -> Domain:
    """Return the domain of a node. Raises `NotEnumerable`."""
    node = compiled.node
    if not node.is_pure():
        raise NotEnumerable(f"{node.node_id} may request effects, whose completions cannot all be listed")
    if _reads_now(node):
        raise NotEnumerable(f"{node.node_id} may read when its execution began, and there is no end of moments")
    bounds = _contract_bounds(node)
    fields = tuple((each.name, _values(each.type, (each.name,), bounds)) for each in node.inputs)
    domain = Domain(_RecordValues(fields))
    if domain.size > MAX_ENUMERATED:
        raise NotEnumerable(f"{node.node_id} has {domain.size:,} inputs, more than the {MAX_ENUMERATED:,} that are run")
    return domain


def _reads_now(node: Node) -> bool:
    return node.type != "function" and (bool(node.calls) or any(isinstance(each, Now) for each in node.expressions()))


_Path: TypeAlias = tuple[str, ...]
_Bounds: TypeAlias = Mapping[_Path, tuple[int | None, int | None]]


def _values(type_: Type, path: _Path, bounds: _Bounds) -> _Values:
    match type_:
        case Enum(members):
            return _ListedValues(members)
        case OptionalOf(inner):
            return _OptionalValues(_values(inner, path, bounds))
        case Record(fields) if len(path) < _DEPTH:
            return _RecordValues(tuple((name, _values(of, (*path, name), bounds)) for name, of in fields))
        case _ if type_ is BOOLEAN:
            return _ListedValues((False, True))
        case _ if type_ is INTEGER:
            return _whole_numbers(path, bounds)
        case _:
            raise NotEnumerable(f"`{'.'.join(path)}` is a {type_}, and there is no end of those")


def _whole_numbers(path: _Path, bounds: _Bounds) -> _IntegerRange:
    low, high = bounds.get(path, (None, None))
    if low is None or high is None:
        side = "lower" if low is None else "upper"
        raise NotEnumerable(f"`{'.'.join(path)}` is a whole number to which no contract sets a {side} bound")
    low, high = max(low, MIN_INTEGER), min(high, MAX_INTEGER)
    beyond = {each for each in (MIN_INTEGER, low - 1) if MIN_INTEGER <= each < low}
    beyond |= {each for each in (high + 1, MAX_INTEGER) if high < each <= MAX_INTEGER}
    if low > high:  # contradictory bounds: every number is refused
        beyond |= {MIN_INTEGER, MAX_INTEGER, 0}
    return _IntegerRange(low, high, tuple(sorted(beyond)))


# -- bounds that hold -----------------------------------------------------------------------------


_MIRRORED = {
    "less": "greater",
    "less_or_equal": "greater_or_equal",
    "greater": "less",
    "greater_or_equal": "less_or_equal",
    "equal": "equal",
}


def _contract_bounds(node: Node) -> _Bounds:
    """Return the bounds that the contracts set for single integers.

    Unlike the hints of `verify.bounds`, every execution must refuse a number beyond them.
    """
    found: dict[_Path, tuple[int | None, int | None]] = {}
    for clause in (*node.constraints, *node.preconditions):
        for path, verb, value in _implied_comparisons(clause.holds):
            low, high = _limits(verb, value)
            known_low, known_high = found.get(path, (None, None))
            found[path] = (_pick_known(max, known_low, low), _pick_known(min, known_high, high))
    return found


def _implied_comparisons(condition: Expression) -> Iterator[tuple[_Path, str, Fraction]]:
    """Yield the comparisons of an input with a number that the condition implies."""
    match condition:
        case Logical(kind="and", left=left, right=right):
            yield from _implied_comparisons(left)
            yield from _implied_comparisons(right)
        case Call(op=op, args=(left, right)) if op.partition(".")[2] in _MIRRORED:
            verb = op.partition(".")[2]
            if (path := _input_path(left)) is not None and (value := _literal_number(right)) is not None:
                yield path, verb, value
            elif (path := _input_path(right)) is not None and (value := _literal_number(left)) is not None:
                yield path, _MIRRORED[verb], value
        case _:
            return


def _input_path(expression: Expression) -> _Path | None:
    match expression:
        case Ref(kind="input", name=name):
            return (name,)
        case Field(of=of, name=name):
            above = _input_path(of)
            return None if above is None else (*above, name)
        case _:
            return None


def _literal_number(expression: Expression) -> Fraction | None:
    if isinstance(expression, Literal) and type(expression.value) is int:
        return Fraction(expression.value)
    return None


def _limits(verb: str, value: Fraction) -> tuple[int | None, int | None]:
    match verb:
        case "greater":
            return floor(value) + 1, None
        case "greater_or_equal":
            return ceil(value), None
        case "less":
            return None, ceil(value) - 1
        case "less_or_equal":
            return None, floor(value)
        case _:
            return ceil(value), floor(value)


def _pick_known(pick: Callable[[int, int], int], one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return one if other is None else other
    return pick(one, other)


# -- running it -----------------------------------------------------------------------------------


def run_part(pair: Pair, domain: Domain, start: int, count: int, key: bytes) -> Report:
    """Run `count` inputs from `start` on both engines.

    Returns `PartAgreed`, or the report of the first input on which they differ. Python is traced and the direct engine
    runs untraced, as in production: outcomes and branch results are compared.
    """
    ran = 0
    inputs: Iterator[dict[str, object]] = map(domain.at, range(start, min(start + count, domain.size)))
    for each in chain(domain.refused() if start == 0 else (), inputs):
        found = _run(pair, each, key)
        if found is not None:
            return found
        ran += 1
    return PartAgreed.on(ran)


def _has_agreed(domain: Domain, start: int, count: int, report: Report | None) -> bool:
    """Return True where the report covers every input of the part. The absence of a difference is not enough."""
    refused = sum(1 for _ in domain.refused()) if start == 0 else 0
    return isinstance(report, PartAgreed) and report.count == refused + min(count, domain.size - start)


def _run(pair: Pair, inputs: dict[str, object], key: bytes) -> Report | None:
    now = None if pair.compiled.node.type == "function" else _ARBITRARY_NOW
    python = pair.python.start(inputs, now).advance(())
    side = DirectSide(pair.direct, key, inputs, now, None)
    direct = side.call()
    assert isinstance(python, Done)
    transcript = Transcript(inputs, now, (), python.outcome)
    if isinstance(direct, Broke):
        return Fault(direct.what, transcript) if direct.is_fault else Lost(direct.what)
    match pair.comparator.compare_outcomes(python.outcome, direct.outcome):
        case Incomparable(why):
            return Lost(why)
        case Difference() as difference:
            return _disagreement(side, difference, transcript, direct.outcome)
        case Same():
            pass
    ours = conditions_of_marks(python.marks, pair.compiled.node)
    theirs = conditions_of(side.points, pair.points)
    if ours == theirs:
        return None
    where = pair.steps.get(min(ours ^ theirs)[0], "contract")
    difference = Difference("path", where, f"{len(ours)} conditions", f"{len(theirs)} conditions")
    return _disagreement(side, difference, transcript, direct.outcome)


def _disagreement(side: DirectSide, how: Difference, transcript: Transcript, outcome: Outcome) -> Disagreement:
    return Disagreement(how, PathNoteBuilder().note(side.points, outcome), side.fingerprint, transcript, outcome)


RunPart: TypeAlias = Callable[[int, int], Report | None]
"""Function that runs a number of inputs from a position: `run_part`, or the helper. Only `PartAgreed` on all of them is
agreement."""


def enumerate_all(
    domain: Domain,
    epoch: str,
    run: RunPart,
    position: Position,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
    is_stopped: Callable[[], bool] = lambda: False,
) -> Enumerated | Report | None:
    """Run all inputs of a domain from the saved position.

    Returns `Enumerated` where all agreed, the report of the first that did not, or None where it was stopped; then the
    position is kept.
    """
    done = position.read(epoch, domain.size)
    while done < domain.size:
        progress(done, domain.size)
        if is_stopped():
            return None
        report = run(done, PART_SIZE)
        if isinstance(report, Disagreement | Fault):
            position.clear()  # a later enumeration must run all inputs again
            return report
        if isinstance(report, Lost):
            return report
        if not _has_agreed(domain, done, PART_SIZE, report):
            return Lost("the report does not cover all inputs of the part")
        done = min(done + PART_SIZE, domain.size)
        position.write(epoch, domain.size, done)
    progress(done, domain.size)
    position.clear()  # a later enumeration, after a divergence, starts from zero
    return Enumerated(domain.size)


class Position:
    """The saved position of an enumeration. An unreadable file counts as none."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self, epoch: str, size: int) -> int:
        try:
            found = json.loads(self._path.read_bytes())
            is_ours = [found["format"], found["epoch"], found["size"]] == [_FORMAT, epoch, size]
            done = found["done"]
            if (
                not is_ours
                or type(done) is not int
                or not 0 <= done <= size
                or found["check"] != _checksum(epoch, done)
            ):
                return 0
        except FileNotFoundError:
            return 0
        except (OSError, ValueError, KeyError, TypeError) as error:
            _log.warning("how far an enumeration got cannot be read in %s: %s; it begins again", self._path, error)
            return 0
        return done

    def write(self, epoch: str, size: int, done: int) -> None:
        make_private_folder(self._path.parent)
        beside = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        document = {"format": _FORMAT, "epoch": epoch, "size": size, "done": done, "check": _checksum(epoch, done)}
        beside.write_text(json.dumps(document), encoding="utf-8")
        beside.replace(self._path)

    def clear(self) -> None:
        self._path.unlink(missing_ok=True)


def _checksum(epoch: str, done: int) -> str:
    """Return a checksum against torn or edited files; it is no protection against an attacker."""
    return hashlib.sha256(f"{epoch} {done}".encode()).hexdigest()[:16]
