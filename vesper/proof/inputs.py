"""The inputs of one or two nodes as symbolic values, and their concrete values in a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import z3

from vesper.language.ir.nodes import Literal, Node
from vesper.proof.constants import NoValue, Reading, constant
from vesper.proof.context import Context
from vesper.proof.equality import same
from vesper.proof.symbols import (
    ArrayTerm,
    DecimalTerm,
    MapTerm,
    OptionalTerm,
    RecordTerm,
    Scalar,
    SetTerm,
    Symbolic,
    symbol,
)
from vesper.proof.terms import Term, either, integer, is_same
from vesper.values.model import Value
from vesper.values.types import DURATION, INTEGER, STRING, TIMESTAMP, Type

if TYPE_CHECKING:
    from vesper.proof.run import SymbolicRun

_MAX_PLACES = 6
_SMALL = 10**12
_SMALL_LENGTH = 40
_COMPLETED = 0


@dataclass(frozen=True, slots=True)
class ReadCompletion:
    """The concrete completion of one request: its value, or the code with which it fails."""

    path: str
    occurrence: int
    value: Value
    failure: str | None


class SymbolicInputs:
    """The inputs of a node, or the union of those of two versions by name."""

    def __init__(self, context: Context, *nodes: Node) -> None:
        self.context = context
        self.values: dict[str, Symbolic] = {}
        self.types: dict[str, Type] = {}
        self.domain: list[Term] = []
        """What holds for every input that is not refused."""
        self.small: list[Term] = []
        """Wishes for an input that is easy to find and to read."""
        for node in nodes:
            for each in node.inputs:
                known = self.types.get(each.name)
                if known is None:
                    self.types[each.name] = each.type
                    self.values[each.name] = symbol(context, each.type, each.name, sink=self.domain)
                elif known != each.type:  # a type of its own: another input of the same name
                    self.types[f"{each.name} of {node.node_id}"] = each.type
                    self.values[f"{each.name} of {node.node_id}"] = symbol(
                        context, each.type, f"{each.name} of {node.node_id}", sink=self.domain
                    )
        now = symbol(context, TIMESTAMP, "now", sink=self.domain)
        assert isinstance(now, Scalar)
        self.now = now
        self.small += [now.term > 946_684_800_000_000, now.term < 4_102_444_800_000_000]
        self._places = min(_MAX_PLACES, max((_places_of(node) for node in nodes), default=2))
        for name, value in self.values.items():
            self._prefer_small(name, value)

    def of(self, node: Node) -> dict[str, Symbolic]:
        """Return the inputs of one of the nodes."""
        return {
            each.name: self.values[each.name]
            if self.types[each.name] == each.type
            else self.values[f"{each.name} of {node.node_id}"]
            for each in node.inputs
        }

    def _prefer_small(self, name: str, value: Symbolic) -> None:
        match value:
            case DecimalTerm(number, scale):
                self.small += [self._has_few_places(name, number, scale), number <= _SMALL, number >= -_SMALL]
            case Scalar(type_, term) if type_ in (INTEGER, DURATION):
                self.small += [term <= _SMALL, term >= -_SMALL]
            case Scalar(type_, term) if type_ == STRING:
                length = self.context.apply("length of text", (term,), z3.IntSort())
                self.small += [length <= _SMALL_LENGTH, length >= 0]
            case OptionalTerm(_, _, inner):
                self._prefer_small(name, inner)
            case RecordTerm(_, fields):
                for own_name, own in fields.items():
                    self._prefer_small(f"{name}.{own_name}", own)
            case ArrayTerm(items=None):
                self.small.append(value.length <= self.context.bounds.max_items)
            case ArrayTerm(items=items):
                for index, item in enumerate(items or ()):
                    self._prefer_small(f"{name}[{index}]", item)
            case SetTerm(_, _, members):
                for index, (_, member) in enumerate(members or ()):
                    self._prefer_small(f"{name} key {index}", member)
            case MapTerm(_, _, entries):
                for index, (_, key, held) in enumerate(entries or ()):
                    self._prefer_small(f"{name} key {index}", key)
                    self._prefer_small(f"{name} value {index}", held)
            case _:
                pass

    def _has_few_places(self, name: str, number: Term, scale: Term) -> Term:
        """Return the term that a decimal has few places: a whole number of units of one of the first scales."""
        ways = []
        for places in range(self._places + 1):
            units = z3.Const(f"{name} units of scale {places}", z3.IntSort())
            ways.append(z3.And(is_same(scale, integer(places)), number * 10**places == z3.ToReal(units)))
        return either(*ways)

    # -- concrete values ---------------------------------------------------------------------------

    def read(self, model: Any) -> dict[str, Value] | None:
        """Return the inputs of a model. Returns None where one has no concrete value."""
        reading = Reading(self.context, model)
        try:
            return {name: reading.value(value) for name, value in self.values.items() if " of " not in name}
        except NoValue:
            return None

    def read_now(self, model: Any) -> datetime:
        found = Reading(self.context, model).value(self.now)
        assert isinstance(found, datetime)
        return found

    def read_completions(self, model: Any, run: SymbolicRun) -> list[ReadCompletion] | None:
        """Return the completions of the requests that a run makes in a model, in order."""
        reading = Reading(self.context, model)
        found = []
        try:
            for request in run.requests:
                if not reading.truth(request.guard):
                    continue
                failure = reading.code(request.failure)
                if failure == _COMPLETED:
                    found.append(
                        ReadCompletion(request.path, request.occurrence, reading.value(request.completion), None)
                    )
                else:
                    code = self.context.code_text(failure)
                    found.append(ReadCompletion(request.path, request.occurrence, None, code))
        except (NoValue, IndexError):
            return None
        return found

    def equals(self, given: Mapping[str, Value], now: datetime | None = None) -> list[Term]:
        """Return terms that fix the inputs to concrete values, and the time."""
        found = [
            same(self.context, self.values[name], constant(self.context, self.types[name], value))
            for name, value in given.items()
        ]
        if now is not None:
            found.append(same(self.context, self.now, constant(self.context, TIMESTAMP, now)))
        return found


def _places_of(node: Node) -> int:
    """Return the largest scale of a literal of the node, and one more for values between."""
    scales = [
        -int(each.value.as_tuple().exponent)
        for each in node.expressions()
        if isinstance(each, Literal) and isinstance(each.value, Decimal)
    ]
    scales += [_scale_in(constant_.value) for constant_ in node.constants]
    return max([2, *(scale + 1 for scale in scales)])


def _scale_in(value: Value | Iterable[Value]) -> int:
    match value:
        case Decimal():
            return -int(value.as_tuple().exponent)
        case dict():
            return max(map(_scale_in, value.values()), default=0)
        case list():
            return max(map(_scale_in, value), default=0)
        case _:
            return 0
