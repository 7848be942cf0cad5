"""Reader of an engine's events: marks, requests, completions and the end, with their values.

The walk over the statements (`vesper/debug/statement_walk.py`) takes the next event from here. Reading is a generator:
it suspends while no event is available.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias

from vesper.debug.stops import EndEvent, Event, MarkEvent, Stop
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


class ExecutionOver(Exception):
    """The execution ended here."""


class BodyLeft(Exception):
    """The body returned or raised. The argument is true if it returned."""


class WalkLost(Exception):
    """The engine reported an event that is impossible at this statement."""


Walking: TypeAlias = Generator[None, None, None]
Computing: TypeAlias = Generator[None, None, Value]


class EventReader:
    """The events of one execution on one engine, and the values derived from them."""

    def __init__(
        self, node: ir.Node, engine: Engine, expressions: Expressions, inputs: Mapping[str, object], now: datetime
    ) -> None:
        self._node = node
        self._engine = engine
        self._expressions = expressions
        self._waiting: deque[Event] = deque()
        self._low = {root.index: root.index - len(ir.walk(root)) + 1 for root in self._node.roots()}
        self._calling = {
            root.index for root in node.roots() if any(isinstance(part, ir.Apply) for part in ir.walk(root))
        }
        """Roots that call recursive functions, whose conditions then are inside them too."""
        self._functions_end = max((each.value.index for each in node.functions), default=-1)
        self._mark_count = 0
        self.stops: list[Stop] = []
        self.owners: list[int] = []
        """Index of the stop that owns each mark."""
        values, _ = accept_inputs(self._node.declared_inputs, inputs)
        self._names: dict[tuple[str, str], Name] = {NOW: Name("now", TIMESTAMP, now)}
        self._names |= {
            ("constant", each.name): Name(each.name, each.type, plain(each.value)) for each in self._node.constants
        }
        for each in self._node.inputs:
            if each.name in values:
                self._names["input", each.name] = Name(each.name, each.type, plain(values[each.name]))

    # -- values -----------------------------------------------------------------------------------

    def _read_marked(self, root: ir.Expression) -> Computing:
        """Read the value of a marked expression, after the conditions inside it."""
        while True:
            event = yield from self._peek()
            if not (isinstance(event, MarkEvent) and self._is_part(event.index, root)):
                raise self._failure((root,))
            self._waiting.popleft()
            self._note(event)
            if event.index == root.index:
                return event.value

    def _read_conditions(self, root: ir.Expression) -> Walking:
        """Read the conditions inside an expression that has no mark of its own."""
        if self._low_of(root) == root.index and root.index not in self._calling:
            return
        while (
            isinstance((event := (yield from self._peek())), MarkEvent)
            and event.index != root.index
            and self._is_part(event.index, root)
        ):
            self._waiting.popleft()
            self._note(event)

    def _is_part(self, index: int, root: ir.Expression) -> bool:
        """Return whether an expression is evaluated for a root."""
        is_in_function = index <= self._functions_end and root.index in self._calling
        return is_in_function or self._low_of(root) <= index <= root.index

    def _low_of(self, root: ir.Expression) -> int:
        return self._low[root.index]

    def _note(self, event: MarkEvent) -> None:
        self.stops[-1].marks.append((self._mark_count, event.index, event.value))
        self.owners.append(len(self.stops) - 1)
        self._mark_count += 1

    def _compute(self, root: ir.Expression) -> Value:
        """Compute an expression that has no mark, or raise its failure."""
        known = self._resolve_without_engine(root)
        if known is not None:
            return known.value
        outcome = self._expressions.of_node(root).ask(self._engine, self._names)
        if isinstance(outcome, Returned):
            return outcome.value["value"]
        raise self._failure((root,))

    def _resolve_without_engine(self, expression: ir.Expression) -> Name | None:
        """Return a name or literal, or a value built from them, without an engine; None otherwise."""
        match expression:
            case ir.Literal(type_, literal):
                return Name("", type_, plain(literal))
            case ir.Ref(kind, name):
                return self._names.get((kind, name))
            case ir.Local(number):
                return self._names.get(("local", str(number)))
            case ir.Call("optional.some", _, (inner,)):
                return self._resolve_without_engine(inner)
            case ir.Field(of, name, type_):
                found = self._resolve_without_engine(of)
                record: Any = None if found is None else found.value
                return Name("", type_, record[name]) if isinstance(record, dict) else None
            case ir.RecordValue(fields):
                parts = [(name, self._resolve_without_engine(value)) for name, value in fields]
                if any(part is None for _, part in parts):
                    return None
                made: Any = {name: part.value for name, part in parts if part is not None}
                return Name("", expression.type, made)
            case _:
                return None

    def _failure(self, roots: Sequence[ir.Expression]) -> Exception:
        """Return the failure of one of these expressions, after their expected event did not come."""
        event = self._waiting[0] if self._waiting else None
        if isinstance(event, EndEvent) and isinstance(event.outcome, Failed):
            return Failure(str(event.outcome.code))
        if isinstance(event, EndEvent) and not isinstance(event.outcome, Returned | DeclaredError):
            return ExecutionOver()
        for root in roots:
            outcome = self._expressions.of_node(root).ask(self._engine, self._names)
            if isinstance(outcome, Failed):
                return Failure(str(outcome.code))
        return WalkLost()

    def _is_inside(self, event: EndEvent, values: Iterable[tuple[str, ir.Expression]]) -> bool:
        at = event.outcome.at if isinstance(event.outcome, Failed) else None
        return at is not None and any(self._is_part(at, each) for _, each in values)

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
        if isinstance(event, MarkEvent):
            self._note(event)
        return event
