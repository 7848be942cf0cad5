"""The outcomes of two versions of a node: same, changed at a place, or not comparable.

Two versions may differ in text, steps, clauses and interface, so nothing of these takes part: no place, step, clause
text or message. Same are two returned outcomes whose common outputs are equal by declared type, two declared errors
whose common fields are, two failures with one code, two broken contracts of one phase, and two refused inputs. A limit
or a fault is no answer of a version, so an outcome with one is not comparable. See docs/spec/changes.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from vesper.engines.compare import Agree, NotComparable
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
from vesper.language.ir.nodes import Input, Node, Output
from vesper.values.generated.errors import ErrorCode
from vesper.values.model import Value, same, show
from vesper.values.types import STRING, ArrayOf, Enum, MapOf, OptionalOf, Record, Type

_AGREE = Agree()


@dataclass(frozen=True, slots=True)
class ChangedOutcome:
    """The first place where the outcomes of two versions differ, with the value of each."""

    where: str
    """`outcome` where they end differently, else a field: `outputs.lines[2].total`, `error.reason`."""
    before: object
    """A value of the field, or the `ending` as text. `after` likewise."""
    after: object

    @property
    def is_ending(self) -> bool:
        """Whether the versions end differently, so that there is no common field."""
        return self.where == OUTCOME


OUTCOME = "outcome"
Comparison: TypeAlias = Agree | ChangedOutcome | NotComparable


@dataclass(frozen=True, slots=True)
class InterfaceChange:
    """A changed input, output or error field of two versions. Only one version has it, or its types differ."""

    kind: Literal["input", "output", "error"]
    name: str
    before: Type | None
    """None where the version lacks the field. `after` likewise."""
    after: Type | None
    is_compared: bool
    """Whether values of both versions are still compared."""

    @property
    def text(self) -> str:
        if self.before is None:
            return f"{self.kind} `{self.name}` added ({self.after})"
        if self.after is None:
            return f"{self.kind} `{self.name}` removed (was {self.before})"
        return f"{self.kind} `{self.name}` is {self.after}, was {self.before}"


class VersionOutcomes:
    """The rule of sameness for two versions of a node. Threads may share it."""

    def __init__(self, before: Node, after: Node) -> None:
        self._outputs = _CommonFields(before.outputs, after.outputs)
        self._errors = _CommonFields(before.errors, after.errors)
        self.interface = interface_changes(before, after)

    @property
    def outputs(self) -> Mapping[str, Type]:
        """The outputs that are compared, with their common type."""
        return self._outputs.types

    def compare(self, before: Outcome, after: Outcome) -> Comparison:
        """Compare the outcomes of both versions on one input."""
        if type(before) is Returned and type(after) is Returned:  # the usual case
            return self._outputs.compare(before.value, after.value, "outputs")
        for outcome in (before, after):
            if isinstance(outcome, LimitHit):
                return NotComparable(f"the limit on {outcome.limit} was hit")
            if isinstance(outcome, EngineFault):
                return NotComparable("an engine is at fault")
        if isinstance(before, DeclaredError) and isinstance(after, DeclaredError):
            return self._errors.compare(before.value, after.value, "error")
        one, other = ending(before), ending(after)
        return _AGREE if one == other else ChangedOutcome(OUTCOME, one, other)


def ending(outcome: Outcome) -> str:
    """Return how an execution ended, in words that do not depend on places, clauses or values."""
    match outcome:
        case Returned():
            return "returned"
        case DeclaredError():
            return "declared error"
        case Failed(code, at):
            return "inputs refused" if at is None and code == ErrorCode.BAD_INPUT else f"failed: {code}"
        case ContractBroken(phase):
            return f"{phase} broken"
        case Denied(capability):
            return f"denied: {capability}"
        case LimitHit(limit):
            return f"limit hit: {limit}"
        case EngineFault():
            return "engine fault"


def compare_requests(before: Sequence[Request], after: Sequence[Request]) -> ChangedOutcome | None:
    """Return the first request that differs; None where both versions request the same in the same order.

    The path of a request is the name of its step, so it takes no part.
    """
    for number in range(max(len(before), len(after))):
        one = before[number] if number < len(before) else None
        other = after[number] if number < len(after) else None
        at = f"requests[{number}]"
        if one is None or other is None or (one.effect, one.effect_class) != (other.effect, other.effect_class):
            return ChangedOutcome(at, request_text(one), request_text(other))
        left, right = _request_parts(one), _request_parts(other)
        for name in dict.fromkeys((*left, *right)):
            if name not in left or name not in right or not is_alike(left[name], right[name]):
                return ChangedOutcome(f"{at}.{name}", left.get(name), right.get(name))
    return None


def request_text(request: Request | None) -> str:
    """Return a request on one line."""
    if request is None:
        return "no request"
    parts = ", ".join(f"{name}={show(value)}" for name, value in _request_parts(request).items())
    return f"{request.effect}({parts})"


def _request_parts(request: Request) -> dict[str, object]:
    key = {} if request.key is None else {"key": request.key}
    return {**request.fixed, **request.arguments, **key}


# -- the common interface -------------------------------------------------------------------------


class _CommonFields:
    """Output or error fields of both versions, with a type for the values of both."""

    def __init__(self, before: Sequence[Output], after: Sequence[Output]) -> None:
        others = {each.name: each.type for each in after}
        self.types: dict[str, Type] = {}
        self._is_plain = True
        for each in before:
            common = None if each.name not in others else common_type(each.type, others[each.name])
            if common is not None:
                self.types[each.name] = common
                self._is_plain = self._is_plain and each.type == others[each.name]

    def compare(self, before: Mapping[str, Value], after: Mapping[str, Value], at: str) -> Agree | ChangedOutcome:
        types = self.types
        for name in types:
            if not (name in before and name in after and same(before[name], after[name])):
                break
        else:
            return _AGREE
        left, right = (self._values(each) for each in (before, after))
        found = next(differing_fields(types, left, right, at), None)
        return _AGREE if found is None else ChangedOutcome(found.where, found.left, found.right)

    def _values(self, values: Mapping[str, Value]) -> dict[str, Value]:
        found = {name: values[name] for name in self.types if name in values}
        return (
            found if self._is_plain else {name: _common_part(self.types[name], value) for name, value in found.items()}
        )


def common_type(left: Type, right: Type) -> Type | None:
    """Return the type over which values of both types are compared; None where the two have nothing in common.

    Records are compared over their common fields, enums by the names of members, optionals as their values.
    """
    if left == right:
        return left
    match left, right:
        case (OptionalOf(), _) | (_, OptionalOf()):
            inner = common_type(*(each.inner if isinstance(each, OptionalOf) else each for each in (left, right)))
            return None if inner is None else OptionalOf(inner)
        case Enum(members), Enum(others):
            return Enum(tuple(dict.fromkeys((*members, *others))))
        case (Enum(), _) | (_, Enum()) if STRING in (left, right):
            return STRING
        case ArrayOf(element), ArrayOf(other):
            inner = common_type(element, other)
            return None if inner is None else ArrayOf(inner)
        case MapOf(key, value), MapOf(other_key, other) if key == other_key:
            inner = common_type(value, other)
            return None if inner is None else MapOf(key, inner)
        case Record(fields), Record(others):
            types = ((name, common_type(own, dict(others)[name])) for name, own in fields if name in dict(others))
            common = tuple((name, each) for name, each in types if each is not None)
            return Record(common) if common else None
        case _:
            return None


def _common_part(type_: Type, value: Value) -> Value:
    """Return the part of a value that the common type of two versions has."""
    match type_, value:
        case OptionalOf(inner), _ if value is not None:
            return _common_part(inner, value)
        case ArrayOf(element), list():
            return [_common_part(element, each) for each in value]
        case MapOf(_, of), dict():
            return {key: _common_part(of, each) for key, each in value.items()}
        case Record(fields), dict():
            return {name: _common_part(of, value[name]) for name, of in fields if name in value}
        case _:
            return value


def interface_changes(before: Node, after: Node) -> tuple[InterfaceChange, ...]:
    """Return the inputs, outputs and error fields that differ between the versions."""
    return (
        *_changed_fields("input", before.inputs, after.inputs),
        *_changed_fields("output", before.outputs, after.outputs),
        *_changed_fields("error", before.errors, after.errors),
    )


def _changed_fields(
    kind: Literal["input", "output", "error"], before: Sequence[Input | Output], after: Sequence[Input | Output]
) -> list[InterfaceChange]:
    left, right = ({each.name: each.type for each in side} for side in (before, after))
    found = []
    for name in dict.fromkeys((*left, *right)):
        one, other = left.get(name), right.get(name)
        if one != other:
            is_compared = one is not None and other is not None and common_type(one, other) is not None
            found.append(InterfaceChange(kind, name, one, other, is_compared))
    return found
