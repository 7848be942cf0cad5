"""What the audit log says of a run: at `basic` that it happened and how it ended, at `detailed` also with what, and
what it changed on the way.

The log is not encrypted, so it never has the value of a sensitive input: where one appears, in the inputs or in what
was made of them, `<sensitive>` stands in its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation
from time import time_ns

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
from vesper.journal.entry import AuditEvent, Entry, Kind
from vesper.journal.journal import JournalError, Run
from vesper.language.ir.nodes import Node
from vesper.values.node_id import split_node_id

SENSITIVE = "<sensitive>"
_ALWAYS = ("step", "result", "outcome", "said_by")
"""What a line has however large the rest is."""
_MOST = 1000
"""So many hidden values are looked for one by one; where there are more, everything that may hold one is hidden."""
_DIGITS = 6
"""A shorter number is hidden where it is the whole value only: 100 is part of many a time."""
_PART = 3
"""A shorter text is hidden where it is the whole value only: one letter is part of every other text."""


class Auditing:
    """Writes the lines of one run, with its commits."""

    def __init__(self, node: Node, run: Run) -> None:
        self.level = node.grants.audit
        self._node = node
        self._run = run
        self._waiting: list[tuple[int, str, dict[str, object]]] = []

    def effect(self, request: Request, entry: Entry) -> None:
        """A request that changed something, or failed to."""
        fields: dict[str, object] = {"step": request.path, **request.fixed, "arguments": dict(request.arguments)}
        if request.key is not None:
            fields["key"] = request.key
        code = entry.body.get("code")
        fields["result"] = "success" if code is None else str(code)
        if entry.kind is Kind.RESOLVED:
            fields["said_by"] = str(entry.body.get("by", ""))
        self._waiting.append((entry.at_us, request.effect, fields))

    def end(self, inputs: Mapping[str, object], outcome: Outcome) -> None:
        """How it ended; all lines go into the commit that ends the run. The times are those at which things happened,
        whatever start the caller gave the execution."""
        if self.level == "none":
            return
        hidden = Hidden(inputs[name] for name in self._node.grants.sensitive if name in inputs)
        parts = split_node_id(self._node.node_id)
        fields: dict[str, object] = {"result": result_of(outcome), "outcome": outcome.kind}
        if self.level == "detailed":
            fields["inputs"] = {
                name: SENSITIVE if name in self._node.grants.sensitive else value for name, value in inputs.items()
            }
            if isinstance(outcome, Returned | DeclaredError):
                fields["outputs"] = dict(outcome.value)
        action = self._node.node_id if parts is None else parts[0]
        for at_us, name, effect in self._waiting:
            self._line(at_us, name, effect, hidden)
        self._line(time_ns() // 1000, action, fields, hidden)

    def _line(self, at_us: int, action: str, fields: Mapping[str, object], hidden: Hidden) -> None:
        shown = {name: hidden.without(value) for name, value in fields.items()}
        try:
            self._run.audit(self._event(at_us, action, shown))
        except JournalError as error:
            # It is too large. That it happened, and how it ended, is written all the same.
            short = {name: shown[name] for name in _ALWAYS if name in shown}
            self._run.audit(self._event(at_us, action, {**short, "left_out": str(error)}))

    def _event(self, at_us: int, action: str, fields: Mapping[str, object]) -> AuditEvent:
        return AuditEvent(at_us, self._run.execution, self._node.node_id, self.level, action, fields)


def result_of(outcome: Outcome) -> str:
    """`success`, or what stood in its way."""
    match outcome:
        case Returned():
            return "success"
        case DeclaredError(value):
            return str(value["error_code"])
        case Failed(code):
            return str(code)
        case ContractBroken(phase):
            return f"broken {phase}"
        case Denied(capability):
            return f"denied {capability}"
        case LimitHit(limit):
            return f"limit {limit}"
        case EngineFault():
            return "engine fault"


class Hidden:
    """Values that nobody may see."""

    def __init__(self, values: Iterable[object]) -> None:
        self._texts, self._numbers = _forms(list(values))

    def without(self, value: object) -> object:
        """The value without those: a text that holds a hidden text is hidden as a whole, a number that is a hidden
        number too, whatever form either came in. What was computed from a hidden value is another value."""
        if not self._texts and not self._numbers:
            return value
        if len(self._texts) > _MOST and isinstance(value, Mapping | list | tuple | set | frozenset):
            return SENSITIVE
        return self._without(value)

    def _without(self, value: object) -> object:
        if isinstance(value, Mapping):
            return {str(self._without(name)): self._without(each) for name, each in value.items()}
        if isinstance(value, list | tuple):
            return [self._without(each) for each in value]
        if isinstance(value, frozenset | set):
            return SENSITIVE if any(self._without(each) is SENSITIVE for each in value) else value
        if isinstance(value, bool) or value is None:
            return value  # one that is hidden would hide every other
        text = str(value)
        if any(each == text or (len(each) >= _PART and each in text) for each in self._texts):
            return SENSITIVE
        return SENSITIVE if self._numbers and _number(text) in self._numbers else value


def _forms(hidden: list[object]) -> tuple[set[str], set[Decimal]]:
    """The texts and the numbers in these values, however deep."""
    texts: set[str] = set()
    numbers: set[Decimal] = set()
    waiting = list(hidden)
    while waiting:
        each = waiting.pop()
        if isinstance(each, Mapping):
            waiting += each.values()
        elif isinstance(each, list | tuple | frozenset | set):
            waiting += each
        elif not isinstance(each, bool) and each is not None and str(each):
            number = _number(str(each))
            if number is not None:
                numbers.add(number)
            # The number of a card is a text of digits: it is looked for in longer texts too. A short number is not.
            if number is None or len(str(each)) >= _DIGITS:
                texts.add(str(each))
    return texts, numbers


def _number(text: str) -> Decimal | None:
    try:
        found = Decimal(text)
    except InvalidOperation:
        return None
    return found if found.is_finite() else None
