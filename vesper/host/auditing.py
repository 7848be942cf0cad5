"""What the audit log says of a run: at `basic` that it happened and how it ended, at `detailed` also with what, and
what it changed on the way.

The log is not encrypted, so it never has the value of a sensitive input: where one appears, in the inputs or in what
was made of them, `<sensitive>` stands in its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from decimal import Decimal, InvalidOperation

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
from vesper.ir.nodes import Node
from vesper.journal.entry import AuditEvent, Entry, Kind
from vesper.journal.errors import TooLarge
from vesper.journal.journal import Run
from vesper.spec.node_id import split_node_id

SENSITIVE = "<sensitive>"
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
        fields["result"] = "success" if entry.kind is Kind.RESULT else str(entry.body["code"])
        self._waiting.append((entry.at_us, request.effect, fields))

    def end(self, inputs: Mapping[str, object], outcome: Outcome, now: datetime) -> None:
        """How it ended; all lines go into the commit that ends the run."""
        if self.level == "none":
            return
        hidden = [inputs[name] for name in self._node.grants.sensitive if name in inputs]
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
        self._line(int(now.timestamp() * 1_000_000), action, fields, hidden)

    def _line(self, at_us: int, action: str, fields: Mapping[str, object], hidden: list[object]) -> None:
        shown = {name: without(value, hidden) for name, value in fields.items()}
        event = AuditEvent(at_us, self._run.execution, self._node.node_id, self.level, action, shown)
        try:
            self._run.audit(event)
        except TooLarge:
            # That it happened must stand there, however much it was about; the rest is in the journal.
            self._run.audit(replace(event, fields={"result": shown["result"], "left_out": "over `max_body`"}))


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


def without(value: object, hidden: list[object]) -> object:
    """The value without those: a text that holds a hidden text is hidden as a whole, a number that is a hidden number
    too, whatever form either came in. What was computed from a hidden value is another value."""
    texts, numbers = _forms(hidden)
    return _without(value, texts, numbers) if texts or numbers else value


def _without(value: object, texts: set[str], numbers: set[Decimal]) -> object:
    if isinstance(value, Mapping):
        return {str(_without(name, texts, numbers)): _without(each, texts, numbers) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_without(each, texts, numbers) for each in value]
    if isinstance(value, frozenset | set):
        return SENSITIVE if any(_without(each, texts, numbers) is SENSITIVE for each in value) else value
    if isinstance(value, bool) or value is None:
        return value  # one that is hidden would hide every other
    text = str(value)
    if any(each == text or (len(each) >= _PART and each in text) for each in texts) or (
        numbers and _number(text) in numbers
    ):
        return SENSITIVE
    return value


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
            if number is None:
                texts.add(str(each))
            else:
                numbers.add(number)
    return texts, numbers


def _number(text: str) -> Decimal | None:
    try:
        found = Decimal(text)
    except InvalidOperation:
        return None
    return found if found.is_finite() else None
