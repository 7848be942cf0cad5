"""The comparison of two executions: exact by declared type, or within configured tolerances.

Values are equal where `vesper.values.model.same` holds: the scale of a decimal counts, as do the sign of a zero and the
order of a map. Only the order of a record's fields does not, which records lose when they are stored. Failures are
compared by code and location, broken contracts by clause and values, never by message. An engine fault is no outcome of
the node, so it never equals anything. Limits other than fuel depend on the machine, so an execution that hit one is
incomparable.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Protocol, TypeAlias, TypeVar

from vesper.compiler import Compiled
from vesper.config.migration import Tolerance
from vesper.engines.compare import same_outcome, same_requests
from vesper.engines.differing_values import differing_fields, is_alike
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
from vesper.language.ir.taint import hides_error_code
from vesper.migration.compare.divergence import Kind
from vesper.migration.compare.reports import Difference
from vesper.migration.compare.request_difference import (
    Names,
    Place,
    first_place,
    names_in,
    request_kind,
    request_texts,
)
from vesper.migration.compare.tolerances import Allowance, allowances_of, is_within
from vesper.values.types import Enum

T = TypeVar("T")
_RULES = "vesper comparator 1"
"""Version of the rules. It changes whenever a verdict on any two executions changes, which starts a new epoch."""
_ROUND = re.compile(r"\[[0-9]+\]")
_CODE = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Same:
    is_within_tolerance: bool = False
    """True where the executions differ within a tolerance."""


@dataclass(frozen=True, slots=True)
class Incomparable:
    why: str


Verdict: TypeAlias = Same | Difference | Incomparable

_SAME = Same()
_WITHIN_TOLERANCE = Same(is_within_tolerance=True)


class Comparator:
    """The rules of equality for one node. Threads may share it."""

    def __init__(
        self, compiled: Compiled, tolerances: Sequence[Tolerance] = (), today: Callable[[], date] | None = None
    ) -> None:
        """Raises `BadTolerance` for a tolerance that does not fit the node."""
        self._node = compiled.node
        self._names: Names | None = None
        """Names in the source, computed at the first difference."""
        self._today = _utc_today if today is None else today
        self._allowances = allowances_of(compiled.node, tolerances)

    @property
    def version(self) -> str:
        """The hash of the rules and of the tolerances in force today.

        An expired tolerance is left out, because evidence gathered under it does not count without it.
        """
        lines = [_RULES, *(each.canonical for each in self._allowances_in_force().values())]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]

    def expired(self) -> list[Tolerance]:
        """Return the tolerances whose last day is over. They have no effect."""
        today = self._today()
        return [each.tolerance for each in self._allowances.values() if each.tolerance.until < today]

    def compare_outcomes(self, leader: Outcome, follower: Outcome) -> Verdict:
        faults = [each for each in (leader, follower) if isinstance(each, EngineFault)]
        if faults:
            return self._difference("fault", "engine", leader, follower)
        for outcome in (leader, follower):
            if isinstance(outcome, LimitHit) and not outcome.is_counted:
                return Incomparable(
                    f"the limit on {outcome.limit} was hit, and when that happens depends on the machine"
                )
        if same_outcome(leader, follower):
            return _SAME
        if isinstance(leader, Returned) and isinstance(follower, Returned):
            return self._compare_returned(leader, follower)
        where = self._location(leader, follower)
        return _SAME if where is None else self._difference("outcome", where, leader, follower)

    def compare_requests(self, leader: Request | None, follower: Request | None) -> Verdict:
        """Compare the next request of each execution; None means that it makes none. Tolerances do not apply."""
        if leader is None or follower is None:
            asked = leader or follower
            if asked is None:
                return _SAME
            return self._request_difference(asked.path, leader, follower, asked.effect_class != "read", None)
        if leader is follower or same_requests((leader,), (follower,)):
            return _SAME
        if self._names is None:
            self._names = names_in(self._node)
        place = _request_place(leader, follower, self._names)
        if place is None:
            return _SAME
        is_effect = not leader.effect_class == follower.effect_class == "read"
        where = place.where if leader.path != follower.path else f"{leader.path}: {place.where}"
        return self._request_difference(where, leader, follower, is_effect, place)

    def _request_difference(
        self, where: str, leader: Request | None, follower: Request | None, is_effect: bool, place: Place | None
    ) -> Difference:
        texts = request_texts(leader, follower, place)
        return Difference("request", where, request_kind(leader), request_kind(follower), is_effect, texts)

    def _allowances_in_force(self) -> Mapping[str, Allowance]:
        today = self._today()
        return {name: each for name, each in self._allowances.items() if today <= each.tolerance.until}

    def _compare_returned(self, leader: Returned, follower: Returned) -> Verdict:
        """Compare field by field; report the first that differs by more than its tolerance."""
        allowances = self._allowances_in_force() if self._allowances else {}
        types = {each.name: each.type for each in self._node.outputs}
        verdict = _SAME
        for place in differing_fields(types, leader.value, follower.value, "outputs"):
            allowed = allowances.get(fold_rounds(place.where).removeprefix("outputs."))
            if allowed is None or not is_within(allowed, place.left, place.right):
                return self._difference("outcome", place.where, leader, follower)
            verdict = _WITHIN_TOLERANCE
        return verdict

    def _location(self, leader: Outcome, follower: Outcome) -> str | None:
        """Return the location of a difference, or None if there is none.

        At least one of the outcomes is not a returned one.
        """
        match leader, follower:
            case DeclaredError(left), DeclaredError(right):
                types = {each.name: each.type for each in self._node.errors}
                return next((each.where for each in differing_fields(types, left, right, "error")), None)
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
    """Return the kind of an outcome with its code and location, without any value."""
    match outcome:
        case Failed(code, at):
            # The code of a user function's exception contains its message.
            name = str(code) if _CODE.fullmatch(str(code)) else "error"
            return f"failed {name} at {'inputs' if at is None else at}"
        case ContractBroken(phase, index):
            return f"broken {phase} {index + 1}"
        case DeclaredError(value):
            listed = next((each.type for each in node.errors if each.name == "error_code"), None)
            found = value.get("error_code")
            is_shown = isinstance(listed, Enum) and found in listed.members and not hides_error_code(node)
            return f"error {found!s}" if is_shown else "error"
        case Denied(capability):
            return f"denied {capability}"
        case LimitHit(limit):
            return f"limit {limit}"
        case EngineFault():
            return "fault"
        case Returned():
            return outcome.kind


def fold_rounds(where: str) -> str:
    """Return the location without loop rounds and item numbers: `outputs.lines[].total`."""
    return _ROUND.sub("[]", where)


def _request_place(leader: Request, follower: Request, names: Names) -> Place | None:
    """Return the first differing part of two requests.

    The order is path, effect, key, fixed parts, fields of arguments.
    """
    if leader.path != follower.path:
        # Sorted, so that the divergence has the same identity whichever engine leads.
        return Place(" or ".join(sorted((leader.path, follower.path))), leader.path, follower.path)
    if (leader.effect, leader.effect_class) != (follower.effect, follower.effect_class):
        return Place("the effect", leader.effect, follower.effect)
    if leader.key != follower.key:
        return Place("key", leader.key, follower.key)
    return first_place(leader.fixed, follower.fixed, names) or first_place(leader.arguments, follower.arguments, names)


def _first_name(left: Mapping[str, object], right: Mapping[str, object]) -> str | None:
    """Return the first name whose values differ, or that only one of the two has."""
    names = (*left, *(name for name in right if name not in left))
    return next(
        (each for each in names if each not in left or each not in right or not is_alike(left[each], right[each])),
        None,
    )


# -- three answers --------------------------------------------------------------------------------


class Judge(Protocol):
    """A comparison of two outcomes: a `Comparator`, or a weaker one for functions."""

    def compare_outcomes(self, leader: Outcome, follower: Outcome) -> Verdict: ...


def odd_one_out(answers: Mapping[str, Outcome], comparator: Judge) -> str | None:
    """Return the name of the outcome that differs from at least two equal ones; None where there is none."""
    return odd_one_of(answers, comparator.compare_outcomes)


def odd_one_of(answers: Mapping[str, T], judge: Callable[[T, T], Verdict]) -> str | None:
    """Return the name of the odd one among any values that a judge compares. See `odd_one_out`."""
    if len(answers) < 3:
        return None
    for name, answer in answers.items():
        first, *others = (each for other, each in answers.items() if other != name)
        agree = all(isinstance(judge(first, each), Same) for each in others)
        if agree and isinstance(judge(first, answer), Difference):
            return name
    return None
