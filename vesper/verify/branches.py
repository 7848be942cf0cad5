"""Branches of a node as its author wrote them, and those that executions covered.

A branch is a result of a condition, a loop that is entered, a handler that runs, and an error code that is returned
(docs/how-to/test-nodes.md). Marks and outcomes show which ones an execution covered.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import TypeAlias

from vesper.compiler import Compiled
from vesper.engines.engine import Done
from vesper.engines.outcome import DeclaredError
from vesper.engines.path import guards
from vesper.language.diagnostics.source import SourceFile
from vesper.language.ir.nodes import (
    Block,
    Branch,
    Call,
    CallNode,
    Expression,
    Handler,
    Literal,
    Logical,
    Loop,
    Node,
    Place,
    Raise,
    Request,
    Require,
    Return,
    Statement,
    Step,
    walk,
)
from vesper.language.ir.statements import all_statements, handlers_of, own_blocks
from vesper.values.types import Enum

BranchKey: TypeAlias = tuple[str, int, bool]
"""Kind, number within the kind (of a condition its index), and result of a condition."""


@dataclass(frozen=True, slots=True)
class NodeBranch:
    """A branch of a node."""

    kind: str
    """`condition`, `loop`, `handler` or `error`."""
    place: Place
    text: str
    """The condition, loop, codes or error code as written, on one line."""
    missing: str
    """What did not happen where nothing covers it: `never true`, `never entered`."""

    def __str__(self) -> str:
        return f"`{self.text}` {self.missing}"


class BranchMap:
    """The branches of one node."""

    def __init__(self, compiled: Compiled) -> None:
        self._compiled = compiled
        agent = compiled.agent
        self._generated = None if agent is None else Place(*agent.place)
        """Place of generated parts, which are no branches of an agent's author."""
        self._conditions = self._written_guards()
        self._witnesses: dict[int, list[BranchKey]] = {}
        """Marked expressions that show that a loop was entered or a handler ran."""
        self._failures: dict[str, list[tuple[tuple[str, ...], BranchKey | None]]] = {}
        """Codes of the handlers that a failed request of a step may run, the nearest first."""
        self._codes: dict[str, list[BranchKey]] = {}
        """Branches that an error code shows."""
        self.branches: dict[BranchKey, NodeBranch] = {}
        self._add_conditions()
        self._add_codes()
        self._add_block(compiled.node.body, [])

    @property
    def has_more(self) -> bool:
        """Return whether there are branches other than conditions."""
        return bool(self._witnesses or self._failures or self._codes)

    def covered_by(self, done: Done) -> frozenset[BranchKey]:
        """Return the branches that an execution covered."""
        conditions, witnesses = self._conditions, self._witnesses
        found = {("condition", index, bool(value)) for index, value in done.marks if index in conditions}
        if witnesses:
            found.update(key for index, _ in done.marks for key in witnesses.get(index, ()))
        for path, code in done.failed:
            key = _handler_of(self._failures.get(path.partition("[")[0], []), code)
            found.update([] if key is None else [key])
        if self._codes and isinstance(done.outcome, DeclaredError):
            found.update(self._codes.get(str(done.outcome.value.get("error_code")), []))
        return frozenset(found)

    def uncovered(self, covered: Collection[BranchKey]) -> list[NodeBranch]:
        """Return the branches that nothing covered, in the order of the file."""
        left = [branch for key, branch in self.branches.items() if key not in covered]
        return sorted(left, key=lambda each: (each.place.line, each.place.column))

    def _written_guards(self) -> set[int]:
        found = guards(self._compiled.node)
        if self._generated is None:
            return found
        node = self._compiled.node
        return found - {each.index for each in node.expressions() if each.place == self._generated}

    def _add_conditions(self) -> None:
        rows = row_texts(self._compiled.node)
        for condition in self._compiled.node.expressions():
            if condition.index not in self._conditions:
                continue
            text = rows.get(condition.index) or condition_text(self._compiled.source, condition)
            for value in (True, False):
                missing = f"is never {'true' if value else 'false'}"
                branch = NodeBranch("condition", condition.place, text, missing)
                self.branches["condition", condition.index, value] = branch

    def _add_codes(self) -> None:
        errors = self._compiled.node.errors
        if errors and isinstance(errors[0].type, Enum) and self._generated is None:
            for number, code in enumerate(errors[0].type.members):
                place = _place_of_code(self._compiled, code)
                self.branches["error", number, True] = NodeBranch("error", place, code, "is never returned")
                self._codes[code] = [("error", number, True)]

    def _add_block(self, block: Block, outer: list[tuple[tuple[str, ...], BranchKey | None]]) -> None:
        for statement in block:
            handlers = [(each.codes, self._add_handler(statement, each)) for each in handlers_of(statement)]
            if isinstance(statement, Loop) and statement.place != self._generated:
                self._add_loop(statement)
            if isinstance(statement, Request):
                self._failures[statement.name] = [*handlers, *outer]
            for inner in own_blocks(statement):
                self._add_block(inner, [*handlers, *outer])
            for handler in handlers_of(statement):
                self._add_block(handler.body, outer)

    def _add_loop(self, loop: Loop) -> None:
        key = ("loop", len(self.branches), True)
        self.branches[key] = NodeBranch("loop", loop.place, f"loop {loop.name.lstrip('_')}", "is never entered")
        for each in (loop.collect, *(value for _, value in loop.next)):
            if each is not None:
                self._witnesses.setdefault(each.index, []).append(key)

    def _add_handler(self, statement: Statement, handler: Handler) -> BranchKey | None:
        """Add a handler, unless neither marks nor requests nor an error code show that it ran."""
        assert not isinstance(statement, Return | Raise | Require)
        if statement.place == self._generated:
            return None
        key = ("handler", len(self.branches), True)
        marked = [] if handler.value is None else [handler.value]
        marked += _expressions_marked_by(handler.body)
        code = self._only_code(handler)
        if not (marked or code or isinstance(statement, Request)):
            return None
        text = f"on_error {', '.join(handler.codes)} of {statement.name.lstrip('_')}"
        self.branches[key] = NodeBranch("handler", statement.place, text, "never runs")
        for root in marked:
            self._witnesses.setdefault(root.index, []).append(key)
        if code is not None:
            self._codes[code].append(key)
        return key

    def _only_code(self, handler: Handler) -> str | None:
        """Return the error code that this handler raises and no other statement does."""
        raised = [_raised_code(each) for each in all_statements(self._compiled.node.body) if isinstance(each, Raise)]
        own = [_raised_code(each) for each in handler.body if isinstance(each, Raise)]
        is_only = len(own) == 1 and own[0] in self._codes and None not in raised and raised.count(own[0]) == 1
        is_failure = is_only and own[0] in handler.codes
        return own[0] if is_only and not is_failure else None


def _expressions_marked_by(block: Block) -> list[Expression]:
    """Return the expressions that an execution of the whole block marks."""
    found: list[Expression] = []
    for statement in block:
        match statement:
            case Step(value=value):
                found.append(value)
            case Request(result=result) | CallNode(result=result):
                found.append(result)
            case Branch(arms=arms):
                found.append(arms[0].when)
            case Require(clause):
                found.append(clause.holds)
            case _:
                pass
    return found


def _handler_of(handlers: list[tuple[tuple[str, ...], BranchKey | None]], code: str) -> BranchKey | None:
    """Return the handler of a code (docs/spec/ir.md): the code itself, then its class, then `any`."""
    # The nearest statement decides; its handlers come first in the list and have distinct codes.
    names = [code]
    if code.startswith("http_"):
        names += [f"{code[:6]}xx", "http_error"]
    for name in (*names, "any"):
        for codes, key in handlers:
            if name in codes:
                return key
    return None


def _raised_code(statement: Raise) -> str | None:
    value = dict(statement.values)["error_code"]
    return value.value if isinstance(value, Literal) and isinstance(value.value, str) else None


def percent(covered: int, total: int) -> float:
    """Return the covered share in percent; a node without branches is covered."""
    return 100.0 if total == 0 else 100.0 * covered / total


def row_texts(node: Node) -> dict[int, str]:
    """Return the cells of rows of decision tables as one text, by the index of the row's condition."""
    rows = [row for table in node.tables for row in table.rows]
    return {
        row.when: ", ".join(f"{column} {cell}" for column, cell in row.cells)
        for row in rows
        if row.when is not None and row.cells
    }


def condition_text(source: SourceFile, condition: Expression) -> str:
    """Return a condition as written, on one line. Conditions that the checker joined have an AND or OR between them."""
    if isinstance(condition, Logical) and condition.place == condition.left.place:
        left, right = (condition_text(source, each) for each in (condition.left, condition.right))
        return f"{left} {condition.kind.upper()} {right}"
    text = written_text(source, condition.place)
    if isinstance(condition, Call) and condition.op == "optional.is_null" and "null" not in text.casefold():
        return f"{text} IS NULL"  # written as `??`
    return text


def written_text(source: SourceFile, place: Place) -> str:
    """Return a part of the file on one line."""
    start, end = source.offset(place.line, place.column), source.offset(place.end_line, place.end_column)
    return " ".join(source.text[start:end].split())


def _place_of_code(compiled: Compiled, code: str) -> Place:
    """Return where an error code is raised, else where it is first written."""
    for statement in all_statements(compiled.node.body):
        if isinstance(statement, Raise):
            value = dict(statement.values)["error_code"]
            if any(isinstance(part, Literal) and part.value == code for part in walk(value)):
                return value.place
    found = re.search(rf"\b{re.escape(code)}\b", compiled.source.text)
    line, column = compiled.source.position(found.start() if found else 0)
    return Place(line, column, line, column + len(code))
