"""What a debugger stops at: a statement that was reached, or a phase around them, with all that is known of it."""

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
"""Stops that are no statement: what is asked of callers, what is promised to them, how it ended; and where the engine
is where the node does not lead."""


@dataclass(frozen=True, slots=True)
class Marked:
    index: int
    value: Value


@dataclass(frozen=True, slots=True)
class Asked:
    request: Request


@dataclass(frozen=True, slots=True)
class Answered:
    completion: Completion


@dataclass(frozen=True, slots=True)
class Ended:
    outcome: Outcome


Event: TypeAlias = Marked | Asked | Answered | Ended


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause of a contract that was evaluated, and what it came to."""

    phase: str
    index: int
    text: str
    holds: bool
    values: Mapping[str, Value]
    """What it mentions."""


@dataclass(slots=True)
class Stop:
    """One statement that was reached, or one phase around them. Filled while the engine goes on."""

    path: str
    operation: str
    line: int
    depth: int
    names: Names
    statement: ir.Statement | None = None
    marks: list[tuple[int, int, Value]] = field(default_factory=list)
    """Position among all marks, index and value."""
    request: Request | None = None
    """What it asks for."""
    completion: Completion | None = None
    inside: list[tuple[Request, Completion | None]] = field(default_factory=list)
    """What a called node asks for."""
    given: Mapping[str, Value] | None = None
    """What a called node is given."""
    clauses: list[Clause] = field(default_factory=list)
    gives: Name | None = None
    """The value of the statement, once there is one."""
    fails: str | None = None
    """The code with which it failed, whatever became of that."""
    is_resumed: bool = False
    """True where a block inside the statement has ended, and the statement goes on: a round of a loop, an arm."""
    is_skipped: bool = False
    """True where its `when:` is false."""
    outcome: Outcome | None = None
    """Of the last stop."""

    @property
    def step(self) -> str:
        """The path without iterations: `pay/charge[2]` is `pay/charge`."""
        return "/".join(part.partition("[")[0] for part in self.path.split("/"))


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """Where a session stands."""

    stop: int
    is_after: bool = False
    """True once the statement of the stop was executed."""


def guarded_by(statement: ir.Statement) -> ir.Statement | None:
    """The one statement that a `when:` stands before; a validation that raises is one, too."""
    if not isinstance(statement, ir.Branch) or not statement.name.startswith("_"):
        return None
    has_one = len(statement.arms) == 1 and len(statement.arms[0].body) == 1 and not statement.otherwise
    return statement.arms[0].body[0] if has_one else None


def label(statement: ir.Statement) -> str:
    """What people call it: its name, or what it does and where."""
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
