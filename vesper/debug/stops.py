"""Stops of the debugger: a statement that was reached, or a phase before or after the body."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from vesper.engines.engine import Completion, Request
from vesper.engines.outcome import Outcome
from vesper.language.ir import nodes as ir
from vesper.trace.expressions import Name, Names
from vesper.values.model import Value

BEGINNING, PROMISES, END, LOST = "preconditions", "postconditions", "end", "lost"
"""Stops that are no statement: preconditions, promises, the outcome, and a lost walk."""


@dataclass(frozen=True, slots=True)
class MarkEvent:
    index: int
    value: Value


@dataclass(frozen=True, slots=True)
class RequestEvent:
    request: Request


@dataclass(frozen=True, slots=True)
class CompletionEvent:
    completion: Completion


@dataclass(frozen=True, slots=True)
class EndEvent:
    outcome: Outcome


Event: TypeAlias = MarkEvent | RequestEvent | CompletionEvent | EndEvent


@dataclass(frozen=True, slots=True)
class Clause:
    """One evaluated contract clause and its result."""

    phase: str
    index: int
    text: str
    holds: bool
    values: Mapping[str, Value]
    """Values of the names that the clause mentions."""


@dataclass(slots=True)
class Stop:
    """One statement that was reached, or one phase. Filled while the engine advances."""

    path: str
    operation: str
    line: int
    depth: int
    names: Names
    statement: ir.Statement | None = None
    marks: list[tuple[int, int, Value]] = field(default_factory=list)
    """Position among all marks, expression index and value."""
    request: Request | None = None
    """Request of the statement."""
    completion: Completion | None = None
    inside: list[tuple[Request, Completion | None]] = field(default_factory=list)
    """Requests of a called node, with their completions."""
    given: Mapping[str, Value] | None = None
    """Inputs of a called node."""
    clauses: list[Clause] = field(default_factory=list)
    gives: Name | None = None
    """Value of the statement, once computed."""
    fails: str | None = None
    """Failure code of the statement, even if a handler caught it."""
    is_resumed: bool = False
    """True after a block inside the statement has ended, such as a loop round or an arm."""
    is_skipped: bool = False
    """True if the statement's `when:` is false."""
    outcome: Outcome | None = None
    """Outcome of the execution, at the last stop only."""

    @property
    def step(self) -> str:
        """The path without loop rounds: `pay/charge[2]` becomes `pay/charge`."""
        return "/".join(part.partition("[")[0] for part in self.path.split("/"))


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A position in a session: a stop, before or after its statement."""

    stop: int
    is_after: bool = False
    """True once the statement of the stop was executed."""


def guarded_by(statement: ir.Statement) -> ir.Statement | None:
    """Return the single statement behind a `when:`, including a validation that raises; else None."""
    if not isinstance(statement, ir.Branch) or not statement.name.startswith("_"):
        return None
    has_one = len(statement.arms) == 1 and len(statement.arms[0].body) == 1 and not statement.otherwise
    return statement.arms[0].body[0] if has_one else None


def label(statement: ir.Statement) -> str:
    """Return the author's name of a statement, or its operation and line."""
    guarded = guarded_by(statement)
    name = "" if isinstance(statement, ir.Return | ir.Raise | ir.Require) else statement.name
    if guarded is not None and not isinstance(guarded, ir.Return | ir.Raise | ir.Require):
        name = guarded.name
    is_named = bool(name) and not name.startswith("_")
    return name if is_named else f"{operation(statement)}:{line_of(statement)}"


def operation(statement: ir.Statement) -> str:
    guarded = guarded_by(statement)
    match statement:
        case ir.Branch(name=name) if name.startswith("_validation"):
            return "validation"
        case _ if guarded is not None:
            return operation(guarded)
        case ir.Step():
            return "compute"
        case ir.Request(effect=effect):
            return effect
        case ir.CallNode(node=node):
            return f"call_node {node}"
        case ir.Branch():
            return "conditional"
        case ir.Require():
            return "validation"
        case _:
            return type(statement).__name__.lower()


def line_of(statement: ir.Statement) -> int:
    match statement:
        case ir.Return(values) | ir.Raise(values):
            return values[0][1].place.line if values else 1
        case ir.Require(clause):
            return clause.holds.place.line
        case _:
            return statement.place.line
