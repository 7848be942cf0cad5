"""The parts of a node's flow to draw: boxes of statements, forks, loops and handlers, with texts from the source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from vesper.compiler import Compiled
from vesper.debug.stops import guarded_by, line_of
from vesper.language.ir import nodes as ir
from vesper.language.ir.statements import expressions_of, handlers_of
from vesper.verify.branches import condition_text, row_texts, written_text

_KINDS = {"database": "database", "http": "http", "event": "event", "file": "file", "state": "state", "cache": "cache"}
"""Kinds of effects with a shape of their own, by the first word of the effect."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a decision table."""

    text: str
    when: int | None
    """Index of its condition; None for the last row, which holds where no other does."""
    line: int


@dataclass(frozen=True, slots=True)
class Box:
    """A statement, a condition of a fork, or a value."""

    number: int | None
    """Position among all statements of the node; None for a box that is only a part of a statement."""
    kind: str
    title: str
    text: str
    line: int
    rows: tuple[Row, ...] = ()
    name: str = ""
    """Name of the statement in the IR."""
    expressions: frozenset[int] = frozenset()
    """Indices of the statement's own expressions."""
    clause: int | None = None
    """Number of a requirement among the validations of the node."""


@dataclass(frozen=True, slots=True)
class Handler:
    number: int
    box: Box
    parts: tuple[Part, ...]
    resumes: bool
    """Whether the flow continues after it. Otherwise the failure is passed on, unless its steps leave the node."""


@dataclass(frozen=True, slots=True)
class Step:
    box: Box
    handlers: tuple[Handler, ...] = ()


@dataclass(frozen=True, slots=True)
class ForkArm:
    """A condition of a fork, and the parts behind it."""

    box: Box
    when: int
    yes: str
    """Label of the way to the parts: `no` where they run because a requirement does not hold."""
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Fork:
    """Conditions from top to bottom; the first that holds decides."""

    box: Box
    """Box of the first condition."""
    rungs: tuple[ForkArm, ...]
    otherwise: tuple[Part, ...]
    handlers: tuple[Handler, ...] = ()


@dataclass(frozen=True, slots=True)
class LoopPart:
    """A loop: its head and the parts of a round."""

    box: Box
    parts: tuple[Part, ...]
    point: int
    """Index of the expression that names the loop in a path."""
    handlers: tuple[Handler, ...] = ()


Part: TypeAlias = Step | Fork | LoopPart


def parts_of(compiled: Compiled) -> tuple[Part, ...]:
    """Return the parts of a node's flow. Numbers of statements and handlers follow program order."""
    return _Reader(compiled).block(compiled.node.body)


def machines_of(compiled: Compiled) -> tuple[Box, ...]:
    """Return a box for each state machine, with a row for each state that has transitions."""
    found: list[Box] = []
    for machine in compiled.node.machines:
        targets: dict[str, list[str]] = {machine.initial: []}
        for state, target in machine.transitions:
            targets.setdefault(state, []).append(target)
        rows = [Row(f"{state} → {', '.join(each) or 'nothing'}", None, 1) for state, each in targets.items()]
        title = f"{machine.name}, starts as {machine.initial}"
        found.append(Box(None, "machine", title, "", _line_with(compiled, f"{machine.name}:"), tuple(rows)))
    return tuple(found)


def _line_with(compiled: Compiled, text: str) -> int:
    lines = compiled.source.text.splitlines()
    start = next((number for number, line in enumerate(lines) if line.startswith("state_machines:")), 0)
    return next((number for number, line in enumerate(lines[start:], start + 1) if line.strip().startswith(text)), 1)


class _Reader:
    def __init__(self, compiled: Compiled) -> None:
        self._source = compiled.source
        self._node = compiled.node
        self._rows = row_texts(compiled.node)
        self._expressions = compiled.node.expressions()
        self._clauses = self._statements = self._handlers = 0

    def block(self, block: ir.Block) -> tuple[Part, ...]:
        return tuple([part for statement in block for part in self._parts(statement)])

    def _parts(self, statement: ir.Statement) -> tuple[Part, ...]:
        if isinstance(statement, ir.Branch) and not statement.arms:
            return self._budget(statement)
        if not isinstance(statement, ir.Parallel):
            return (self._part(statement),)
        number, self._statements = self._statements, self._statements + 1
        box = self._box(statement, number, "compute", "parallel", f"{len(statement.members)} strands together")
        inside = [part for member in statement.members for part in self.block(member)]
        return (Step(box, self._read_handlers(statement)), *inside)

    def _budget(self, branch: ir.Branch) -> tuple[Part, ...]:
        number, self._statements = self._statements, self._statements + 1
        box = self._box(branch, number, "compute", branch.name, "within a budget")
        return (Step(box, self._read_handlers(branch)), *self.block(branch.otherwise))

    def _part(self, statement: ir.Statement) -> Part:
        number, self._statements = self._statements, self._statements + 1
        match statement:
            case ir.Branch():
                return self._fork(statement, number)
            case ir.Loop():
                box = self._box(statement, number, "loop", statement.name, self._loop_text(statement))
                point = next((each.index for each in (statement.over, statement.condition) if each is not None), -1)
                body = self.block(statement.body)
                return LoopPart(box, body, point, self._read_handlers(statement))
            case _:
                return Step(self._simple(statement, number), self._read_handlers(statement))

    def _fork(self, branch: ir.Branch, number: int) -> Fork:
        is_named = not branch.name.startswith("_")
        is_requirement = branch.name.startswith("_validation") and guarded_by(branch) is not None
        rungs: list[ForkArm] = []
        for arm in branch.arms:
            title = branch.name if is_named and not rungs else ""
            box = self._box(branch, None if rungs else number, "condition", title, self._condition(arm.when), arm.when)
            value = self._value(arm.value) if is_named else ()
            yes = "no" if is_requirement else "yes"
            rungs.append(ForkArm(box, arm.when.index, yes, (*self.block(arm.body), *value)))
        value = self._value(branch.otherwise_value) if is_named else ()
        otherwise = (*self.block(branch.otherwise), *value)
        return Fork(rungs[0].box, tuple(rungs), otherwise, self._read_handlers(branch))

    def _read_handlers(self, statement: ir.Statement) -> tuple[Handler, ...]:
        found: list[Handler] = []
        for each in handlers_of(statement):
            number, self._handlers = self._handlers, self._handlers + 1
            line = line_of(each.body[0]) if each.body else line_of(statement)
            box = Box(None, "handler", f"on {', '.join(each.codes)}", "", line)
            body = self.block(each.body)
            found.append(Handler(number, box, (*body, *self._value(each.value)), each.value is not None))
        return tuple(found)

    def _value(self, value: ir.Expression | None) -> tuple[Part, ...]:
        if value is None:
            return ()
        return (Step(Box(None, "value", "", f"= {self._text(value)}", value.place.line)),)

    # -- texts ------------------------------------------------------------------------------------

    def _box(
        self, statement: ir.Statement, number: int | None, kind: str, title: str, text: str,
        at: ir.Expression | None = None,
    ) -> Box:  # fmt: skip
        name = getattr(statement, "name", "")
        line = line_of(statement) if at is None or number is not None else at.place.line
        shown = title.lstrip("_")
        return Box(number, kind, shown, text, line, self._table_rows(statement), name, _own_expressions(statement))

    def _simple(self, statement: ir.Statement, number: int) -> Box:
        match statement:
            case ir.Step(name=name, value=value):
                kind = "table" if self._table_rows(statement) else "compute"
                return self._box(statement, number, kind, name, self._step_text(value))
            case ir.Return(values):
                return self._box(statement, number, "return", "return", self._named(values))
            case ir.Raise(values):
                code = dict(values).get("error_code")
                title = f"error {code.value}" if isinstance(code, ir.Literal) else "error"
                rest = [each for each in values if each[0] != "error_code" or not isinstance(code, ir.Literal)]
                return self._box(statement, number, "raise", title, self._named(rest))
            case ir.Require(clause):
                clause_number, self._clauses = self._clauses, self._clauses + 1
                box = self._box(statement, number, "require", "require", clause.text)
                return replace(box, clause=clause_number)
            case ir.CallNode(name=name, node=node, inputs=inputs):
                return self._box(statement, number, "call", f"{name} ⟶ {node}", self._named(inputs))
            case ir.Request(name=name, effect=effect, fixed=fixed, arguments=arguments):
                kind = _KINDS.get(effect.partition("_")[0], "effect")
                if effect == "state_transition":
                    text = f"{fixed['machine']}: {fixed['from']} → {fixed['to']}"
                else:
                    words = [each for key, each in fixed.items() if key != "from"]
                    text = " ".join([*words, self._named(arguments)])
                return self._box(statement, number, kind, f"{name}: {effect}", " ".join(text.split()))
            case _:
                raise AssertionError(f"{type(statement).__name__} is no simple statement")

    def _step_text(self, value: ir.Expression) -> str:
        if isinstance(value, ir.If) and value.place == value.condition.place:  # behind a `when:`
            return f"{self._text(value.then)} when {self._text(value.condition)}"
        return self._text(value)

    def _table_rows(self, statement: ir.Statement) -> tuple[Row, ...]:
        if not isinstance(statement, ir.Step):
            return ()
        inside = {part.index for part in ir.walk(statement.value)}
        table = next((t for t in self._node.tables if t.name == statement.name and t.rows[0].then in inside), None)
        rows: list[Row] = []
        for row in () if table is None else table.rows:
            when = None if row.when is None else self._expressions[row.when]
            tests = ", ".join(f"{column} {cell}" for column, cell in row.cells)
            test = tests or ("otherwise" if when is None else self._condition(when))
            rows.append(Row(f"{test} → {self._text(self._expressions[row.then])}", row.when, row.line))
        return tuple(rows)

    def _loop_text(self, loop: ir.Loop) -> str:
        parts: list[str] = []
        if loop.over is not None:
            parts.append(f"for {', '.join(loop.names)} in {self._text(loop.over)}")
        for word, each in (("where", loop.where), ("while", loop.condition)):
            parts += [] if each is None else [f"{word} {self._text(each)}"]
        names = {each.local: each.name for each in loop.state}
        parts += [f"{names[local]} = {self._text(each)}" for local, each in loop.next]
        for word, each in (("collect", loop.collect), ("until", loop.stop_when)):
            parts += [] if each is None else [f"{word} {self._text(each)}"]
        return "; ".join(parts)

    def _condition(self, condition: ir.Expression) -> str:
        """Return a condition as written. A case of a `match` has only its literal there."""
        text = self._rows.get(condition.index) or condition_text(self._source, condition)
        first = condition
        while isinstance(first, ir.Logical):
            first = first.left
        if (
            isinstance(first, ir.Call)
            and len(first.args) == 2
            and first.place == first.args[1].place != first.args[0].place
        ):
            return f"{self._text(first.args[0])} is {text}"
        return text

    def _named(self, values: Sequence[tuple[str, ir.Expression]]) -> str:
        # A field that the author left out is null, at the place of the whole.
        left_out = {name for name, each in values if getattr(each, "value", 0) is None and self._text(each) != "null"}
        texts = [(name, self._text(value)) for name, value in values if name not in left_out]
        return ", ".join(name if name == text else f"{name} = {text}" for name, text in texts)

    def _text(self, expression: ir.Expression) -> str:
        return written_text(self._source, expression.place)


def _own_expressions(statement: ir.Statement) -> frozenset[int]:
    """Return the expressions whose failure ends a statement.

    Handlers are left out, the rounds of a loop are included.
    """
    if isinstance(statement, ir.Branch):
        return frozenset()
    own = statement if isinstance(statement, ir.Return | ir.Raise | ir.Require) else replace(statement, handlers=())
    return frozenset(part.index for root in expressions_of((own,)) for part in ir.walk(root))
