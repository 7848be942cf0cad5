"""Whether two executions of a node did the same: exact by declared type, within tolerances where somebody gave some.

Values are the same where nobody could tell them apart (`vesper.values.model.same`): the scale of a decimal counts, the
sign of a zero, the order of a map. Only the order of the fields of a record does not, which records do not keep that
were written down. Failures are compared by code and place, broken contracts by clause and values, and
none of them by a message. An engine at fault gave no answer, so it is never the same as anything. When a limit other
than fuel is hit depends on the machine, so that says nothing at all.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Protocol, TypeAlias, TypeVar

from vesper.compiler import Compiled
from vesper.config.migration import Tolerance
from vesper.engines.compare import same_outcome, same_requests
from vesper.engines.engine import Request
from vesper.engines.outcome import (
    ContractBroken,
    DeclaredError,
    Denied,
    EngineFault,
    Failed,
    LimitHit,
    Outcome,
    Returned,
)
from vesper.language.ir.nodes import Node
from vesper.migration.compare.divergence import Kind
from vesper.migration.compare.reports import Difference
from vesper.migration.compare.tolerances import Allowance, allowances_of, is_within
from vesper.values.model import same
from vesper.values.types import JSON, ArrayOf, Enum, MapOf, OptionalOf, Record, Type

T = TypeVar("T")
_RULES = "vesper comparator 1"
"""Raised whenever two executions would be judged otherwise than before: evidence does not outlive that."""
_ROUND = re.compile(r"\[[0-9]+\]")
_CODE = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Same:
    is_within_tolerance: bool = False
    """They differ, by no more than somebody allowed."""


@dataclass(frozen=True, slots=True)
class Incomparable:
    why: str


Verdict: TypeAlias = Same | Difference | Incomparable

_SAME = Same()
_CLOSE = Same(is_within_tolerance=True)


class Comparator:
    """What counts as the same for one node. Any thread may ask."""

    def __init__(
        self, compiled: Compiled, tolerances: Sequence[Tolerance] = (), today: Callable[[], date] | None = None
    ) -> None:
        """Raises `BadTolerance` for a tolerance that means nothing here."""
        self._node = compiled.node
        self._today = _utc_today if today is None else today
        self._allowances = allowances_of(compiled.node, tolerances)

    @property
    def version(self) -> str:
        """What it judges by, as a hash: the rules, and the tolerances that are in force today. One that has expired is
        no part of it, because what was seen while it held would not count without it."""
        lines = [_RULES, *(each.canonical for each in self._in_force().values())]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]

    def expired(self) -> list[Tolerance]:
        """The tolerances whose last day is over: they are as if they were not there."""
        today = self._today()
        return [each.tolerance for each in self._allowances.values() if each.tolerance.until < today]

    def outcomes(self, leader: Outcome, follower: Outcome) -> Verdict:
        faults = [each for each in (leader, follower) if isinstance(each, EngineFault)]
        if faults:
            return self._difference("fault", "engine", leader, follower)
        for outcome in (leader, follower):
            if isinstance(outcome, LimitHit) and outcome.limit != "fuel":
                return Incomparable(
                    f"the limit on {outcome.limit} was hit, and when that happens depends on the machine"
                )
        if same_outcome(leader, follower):
            return _SAME
        if isinstance(leader, Returned) and isinstance(follower, Returned):
            return self._returned(leader, follower)
        where = self._where(leader, follower)
        return _SAME if where is None else self._difference("outcome", where, leader, follower)

    def requests(self, leader: Request | None, follower: Request | None) -> Verdict:
        """What each asks for next; None where it asks for nothing more. There are no tolerances here."""
        if leader is None or follower is None:
            asked = leader or follower
            if asked is None:
                return _SAME
            return Difference("request", asked.path, asking(leader), asking(follower), asked.effect_class != "read")
        if leader is follower or same_requests((leader,), (follower,)):
            return _SAME
        where = _asked_where(leader, follower)
        if where is None:
            return _SAME
        is_effect = not leader.effect_class == follower.effect_class == "read"
        return Difference("request", where, asking(leader), asking(follower), is_effect)

    def _in_force(self) -> Mapping[str, Allowance]:
        today = self._today()
        return {name: each for name, each in self._allowances.items() if today <= each.tolerance.until}

    def _returned(self, leader: Returned, follower: Returned) -> Verdict:
        """Field by field: the first that differs by more than is allowed, if there is one."""
        allowances = self._in_force() if self._allowances else {}
        types = {each.name: each.type for each in self._node.outputs}
        verdict = _SAME
        for place in _parts(types, leader.value, follower.value, "outputs"):
            allowed = allowances.get(folded(place.where).removeprefix("outputs."))
            if allowed is None or not is_within(allowed, place.left, place.right):
                return self._difference("outcome", place.where, leader, follower)
            verdict = _CLOSE
        return verdict

    def _where(self, leader: Outcome, follower: Outcome) -> str | None:
        """Where two that did not both return differ; None where they do not."""
        match leader, follower:
            case DeclaredError(left), DeclaredError(right):
                types = {each.name: each.type for each in self._node.errors}
                return next((each.where for each in _parts(types, left, right, "error")), None)
            case ContractBroken(phase, index), ContractBroken() if (follower.phase, follower.index) == (phase, index):
                name = _first_name(leader.values, follower.values)
                return None if name is None else f"{phase} {index + 1}: {name}"
            case _:
                return "outcome"

    def _difference(self, kind: Kind, where: str, leader: Outcome, follower: Outcome) -> Difference:
        return Difference(kind, where, self.kind_of(leader), self.kind_of(follower))

    def kind_of(self, outcome: Outcome) -> str:
        return kind_of(self._node, outcome)


def _utc_today() -> date:
    return datetime.now(UTC).date()


# -- words without values -------------------------------------------------------------------------


def kind_of(node: Node, outcome: Outcome) -> str:
    """What an execution came to, with its code and place and without any value of it."""
    match outcome:
        case Failed(code, at):
            # What a function of the user's raised has its message in the code.
            name = str(code) if _CODE.fullmatch(str(code)) else "error"
            return f"failed {name} at {'inputs' if at is None else at}"
        case ContractBroken(phase, index):
            return f"broken {phase} {index + 1}"
        case DeclaredError(value):
            listed = next((each.type for each in node.errors if each.name == "error_code"), None)
            found = value.get("error_code")
            return f"error {found}" if isinstance(listed, Enum) and found in listed.members else "error"
        case Denied(capability):
            return f"denied {capability}"
        case LimitHit(limit):
            return f"limit {limit}"
        case EngineFault():
            return "fault"
        case Returned():
            return outcome.kind


def asking(request: Request | None) -> str:
    """What is asked for, without its values."""
    return "asks for nothing" if request is None else f"asks for {request.path} ({request.effect})"


def folded(where: str) -> str:
    """The same place in whatever round of a loop, and for whichever item: `outputs.lines[].total`."""
    return _ROUND.sub("[]", where)


def _asked_where(leader: Request, follower: Request) -> str | None:
    if leader.path != follower.path:
        # In one order, whoever leads: it is the same divergence.
        return " or ".join(sorted((leader.path, follower.path)))
    if (leader.effect, leader.effect_class) != (follower.effect, follower.effect_class):
        return f"{leader.path}: the effect"
    if leader.key != follower.key:
        return f"{leader.path}: key"
    name = _first_name(leader.fixed, follower.fixed) or _first_name(leader.arguments, follower.arguments)
    return None if name is None else f"{leader.path}: {name}"


def _first_name(left: Mapping[str, object], right: Mapping[str, object]) -> str | None:
    """The first name under which two hold something else, or only one holds anything."""
    names = (*left, *(name for name in right if name not in left))
    return next(
        (each for each in names if each not in left or each not in right or not _alike(left[each], right[each])), None
    )


# -- where values differ --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Place:
    where: str
    left: object
    right: object


def _parts(
    types: Mapping[str, Type], left: Mapping[str, object], right: Mapping[str, object], at: str
) -> Iterator[_Place]:
    """The places in which two records differ, in the order in which their fields are declared."""
    if set(left) != set(types) or set(right) != set(types):
        # An engine that makes up fields: their names may be anything, so none is named that the node does not declare.
        missing = next((name for name in types if (name in left) != (name in right)), None)
        yield _Place(at if missing is None else f"{at}.{missing}", left, right)
        return
    for name, type_ in types.items():
        yield from _places(type_, left[name], right[name], f"{at}.{name}")


def _places(type_: Type, left: object, right: object, at: str) -> Iterator[_Place]:
    """The smallest places in which two values differ; those of a map have numbers, because its keys are values."""
    if same(left, right):
        return
    match type_, left, right:
        case OptionalOf(inner), _, _ if left is not None and right is not None:
            yield from _places(inner, left, right, at)
        case ArrayOf(element), list(), list():
            for number, (one, other) in enumerate(zip(left, right, strict=False)):
                yield from _places(element, one, other, f"{at}[{number}]")
            if len(left) != len(right):
                yield _Place(at, left, right)
        case MapOf(_, of), dict(), dict() if same(list(left), list(right)):
            for number, key in enumerate(left):
                yield from _places(of, left[key], right[key], f"{at}[{number}]")
        case Record(fields), dict(), dict():
            yield from _parts(dict(fields), left, right, at)
        case _ if type_ != JSON or not _alike(left, right):
            yield _Place(at, left, right)


def _alike(left: object, right: object) -> bool:
    """As `same`, of values whose type nobody says: a dict may be a record, so the order of its keys does not count."""
    if isinstance(left, dict) and isinstance(right, dict):
        names, others = ({(type(key), key) for key in each} for each in (left, right))
        return names == others and all(_alike(value, right[key]) for key, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(_alike(one, other) for one, other in zip(left, right, strict=True))
    return same(left, right)


# -- three answers --------------------------------------------------------------------------------


class Judge(Protocol):
    """Whatever says whether two outcomes are the same: a `Comparator`, or what holds a function to less."""

    def outcomes(self, leader: Outcome, follower: Outcome) -> Verdict: ...


def odd_one_out(answers: Mapping[str, Outcome], comparator: Judge) -> str | None:
    """The one that stands alone against at least two who agree; None where there is no such one."""
    return odd_of(answers, comparator.outcomes)


def odd_of(answers: Mapping[str, T], judge: Callable[[T, T], Verdict]) -> str | None:
    """As `odd_one_out`, of whatever a judge can compare."""
    if len(answers) < 3:
        return None
    for name, answer in answers.items():
        first, *others = (each for other, each in answers.items() if other != name)
        agree = all(isinstance(judge(first, each), Same) for each in others)
        if agree and isinstance(judge(first, answer), Difference):
            return name
    return None
