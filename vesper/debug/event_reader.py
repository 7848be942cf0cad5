"""What an engine told, read one after the other: marks, requests, answers, the end; and the values that they stand for.

The walk through the statements of a node (`vesper/debug/statement_walk.py`) asks here for what comes next, and waits
where
nothing has come yet: what waits is a generator, which goes on when there is more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias

from vesper.debug.stops import Ended, Event, Marked, Stop
from vesper.engines.engine import Engine
from vesper.engines.outcome import DeclaredError, Failed, Returned
from vesper.language.ir import nodes as ir
from vesper.trace.expressions import NOW, Expressions, Name
from vesper.values.inputs import accept_inputs
from vesper.values.model import Value, plain
from vesper.values.types import TIMESTAMP


class Failure(Exception):
    """A statement failed with this code."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class Over(Exception):
    """The execution ends here."""


class Left(Exception):
    """The body returned, or raised."""


class Lost(Exception):
    """The engine told of something that cannot come here."""


Walking: TypeAlias = Generator[None, None, None]
Computing: TypeAlias = Generator[None, None, Value]


class Reading:
    """The events of one execution on one engine, and what is known by them."""

    def __init__(
        self, node: ir.Node, engine: Engine, expressions: Expressions, inputs: Mapping[str, object], now: datetime
    ) -> None:
        self._node = node
        self._engine = engine
        self._expressions = expressions
        self._waiting: deque[Event] = deque()
        self._low = {root.index: root.index - len(ir.walk(root)) + 1 for root in self._node.roots()}
        self._mark_count = 0
        self.stops: list[Stop] = []
        self.owners: list[int] = []
        """The stop to which each mark belongs."""
        values, _ = accept_inputs([(each.name, each.type, each.default) for each in self._node.inputs], inputs)
        self._names: dict[tuple[str, str], Name] = {NOW: Name("now", TIMESTAMP, now)}
        self._names |= {
            ("constant", each.name): Name(each.name, each.type, plain(each.value)) for each in self._node.constants
        }
        for each in self._node.inputs:
            if each.name in values:
                self._names["input", each.name] = Name(each.name, each.type, plain(values[each.name]))

    # -- values -----------------------------------------------------------------------------------

    def _marked(self, root: ir.Expression) -> Computing:
        """The value of an expression that is marked; conditions inside it come first."""
        low = self._low_of(root)
        while True:
            event = yield from self._peek()
            if not (isinstance(event, Marked) and low <= event.index <= root.index):
                raise self._failure((root,))
            self._waiting.popleft()
            self._note(event)
            if event.index == root.index:
                return event.value

    def _unmarked(self, root: ir.Expression) -> Walking:
        """Conditions inside an expression that has no mark itself."""
        low = self._low_of(root)
        if low == root.index:
            return
        while isinstance((event := (yield from self._peek())), Marked) and low <= event.index < root.index:
            self._waiting.popleft()
            self._note(event)

    def _low_of(self, root: ir.Expression) -> int:
        return self._low[root.index]

    def _note(self, event: Marked) -> None:
        self.stops[-1].marks.append((self._mark_count, event.index, event.value))
        self.owners.append(len(self.stops) - 1)
        self._mark_count += 1

    def _computed(self, root: ir.Expression) -> Value:
        """What an expression without a mark came to; or that it failed."""
        known = self._read_off(root)
        if known is not None:
            return known.value
        outcome = self._expressions.of_node(root).ask(self._engine, self._names)
        if isinstance(outcome, Returned):
            return outcome.value["value"]
        raise self._failure((root,))

    def _read_off(self, expression: ir.Expression) -> Name | None:
        """What is a name or a literal, or made of such, needs no engine; None where it does."""
        match expression:
            case ir.Literal(type_, literal):
                return Name("", type_, plain(literal))
            case ir.Ref(kind, name):
                return self._names.get((kind, name))
            case ir.Local(number):
                return self._names.get(("local", str(number)))
            case ir.Call("optional.some", _, (inner,)):
                return self._read_off(inner)
            case ir.Field(of, name, type_):
                found = self._read_off(of)
                record: Any = None if found is None else found.value
                return Name("", type_, record[name]) if isinstance(record, dict) else None
            case ir.RecordValue(fields):
                parts = [(name, self._read_off(value)) for name, value in fields]
                if any(part is None for _, part in parts):
                    return None
                made: Any = {name: part.value for name, part in parts if part is not None}
                return Name("", expression.type, made)
            case _:
                return None

    def _failure(self, roots: Sequence[ir.Expression]) -> Exception:
        """How one of these failed, where what was to come of them did not come."""
        event = self._waiting[0] if self._waiting else None
        if isinstance(event, Ended) and isinstance(event.outcome, Failed):
            return Failure(str(event.outcome.code))
        if isinstance(event, Ended) and not isinstance(event.outcome, Returned | DeclaredError):
            return Over()
        for root in roots:
            outcome = self._expressions.of_node(root).ask(self._engine, self._names)
            if isinstance(outcome, Failed):
                return Failure(str(outcome.code))
        return Lost()

    def _is_inside(self, event: Ended, values: Iterable[tuple[str, ir.Expression]]) -> bool:
        at = event.outcome.at if isinstance(event.outcome, Failed) else None
        return at is not None and any(self._low_of(each) <= at <= each.index for _, each in values)

    # -- events -----------------------------------------------------------------------------------

    def _stop(self, path: str, operation: str, line: int, depth: int = 0) -> Stop:
        stop = Stop(path, operation, line, depth, self._names)
        self.stops.append(stop)
        return stop

    def _peek(self) -> Generator[None, None, Event]:
        while not self._waiting:
            yield
        return self._waiting[0]

    def _take(self) -> Generator[None, None, Event]:
        event = yield from self._peek()
        self._waiting.popleft()
        if isinstance(event, Marked):
            self._note(event)
        return event
