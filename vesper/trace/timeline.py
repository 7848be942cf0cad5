"""The numbered steps of a trace, as replay and `vesper traces show` print them.

Each request is a step, and so is each value of a named step. Skipped steps are listed too, so that the flow stays
recognisable. Steps are in the order in which they ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from vesper.engines.outcome import ContractBroken, Failed
from vesper.host.stub_answers import plain_step
from vesper.language.ir import nodes as ir
from vesper.language.ir.statements import all_statements, handlers_of
from vesper.trace.model import Exchange, Trace
from vesper.trace.places import steps_by_expression
from vesper.trace.programs import LeastRecentlyUsed, compiled_of
from vesper.values.model import show

Status = Literal["ok", "failed", "skipped"]
SIGNS = {"ok": "✓", "failed": "✗", "skipped": "–"}


@dataclass(frozen=True, slots=True)
class TimelineStep:
    number: int
    """Number of the step, from 1."""
    path: str
    """Path of the step with loop rounds and calling steps: `charge[2]`, `pay/charge`."""
    title: str
    """Display text: the path, or the states of a transition."""
    status: Status
    code: str | None
    """Failure code of a failed step."""
    exchange: int | None
    """Index of its exchange; None for a step without a request."""
    value: object
    """Value of the step."""
    marks: int
    """Number of marks up to its end, which bounds the values known at this point."""

    @property
    def name(self) -> str:
        """The step's name without loop rounds and calling steps."""
        return self.path.rpartition("/")[2].partition("[")[0]


@dataclass(frozen=True, slots=True)
class _Role:
    """Meaning of an expression's mark for a statement."""

    name: str
    kind: Literal["value", "call", "skipped", "branch", "none"]


_known_roles: LeastRecentlyUsed[dict[int, _Role]] = LeastRecentlyUsed()


def timeline(trace: Trace) -> tuple[TimelineStep, ...]:
    """Return the steps of a trace in the order in which they ended."""
    node = compiled_of(trace.definition).node
    roles = _known_roles.get(trace.semantic_hash, lambda: _roles(node))
    found: list[TimelineStep] = []

    def add(
        path: str,
        title: str,
        status: Status,
        marks: int,
        *,
        code: str | None = None,
        exchange: int | None = None,
        value: object = None,
    ) -> None:
        found.append(TimelineStep(len(found) + 1, path, title, status, code, exchange, value, marks))

    position = 0
    for number in range(len(trace.exchanges) + 1):
        if number:
            exchange = trace.exchanges[number - 1]
            status: Status = "ok" if exchange.failure is None else "failed"
            add(
                plain_step(exchange.path), title_of(exchange), status, position,
                code=exchange.failure, exchange=number - 1, value=exchange.value,
            )  # fmt: skip
        while position < len(trace.marks) and trace.marks[position].after == number:
            mark = trace.marks[position]
            position += 1
            role = roles.get(mark.index)
            if role is not None and role.kind != "none":
                skipped = role.kind == "skipped"
                add(role.name, role.name, "skipped" if skipped else "ok", position, value=mark.value)
            elif found and found[-1].exchange == number - 1:
                # The mark of a request's result belongs to the request.
                found[-1] = replace(found[-1], marks=position)
    failed = _failed_step(trace, node)
    if failed is not None and not (found and found[-1].status == "failed" and found[-1].path == failed[0]):
        add(failed[0], failed[0], "failed", len(trace.marks), code=failed[1])
    return tuple(found)


def title_of(exchange: Exchange) -> str:
    """Return the display text of a request: its step, or the states of a transition."""
    if exchange.effect != "state_transition":
        return plain_step(exchange.path)
    before = str(exchange.value) if exchange.failure is None else exchange.fixed.get("from", "?")
    return f"state_transition: {before} -> {exchange.fixed.get('to', '?')}"


def effect_text(exchange: Exchange) -> str:
    """Return the request of a step on one line: its effect and target, or the states of a transition."""
    fixed = exchange.fixed
    if exchange.effect == "state_transition":
        before = show(exchange.value).strip('"') if exchange.failure is None else fixed.get("from", "?")
        return f"{fixed.get('machine', 'state')}: {before} -> {fixed.get('to', '?')}"
    target = " ".join(str(each) for each in (fixed.get("provider"), fixed.get("method"), fixed.get("database")) if each)
    return f"{exchange.effect} {target}".rstrip()


def step_of(steps: Sequence[TimelineStep], wanted: str) -> TimelineStep | None:
    """Return the first step with this number, path or name."""
    if wanted.isdecimal():
        number = int(wanted)
        return steps[number - 1] if 1 <= number <= len(steps) else None
    for attribute in ("path", "name"):
        for each in steps:
            if getattr(each, attribute) == wanted:
                return each
    return None


def _failed_step(trace: Trace, node: ir.Node) -> tuple[str, str] | None:
    """Return the step and code of a failure outside requests."""
    match trace.outcome:
        case Failed(code, at) if at is not None:
            return steps_by_expression(node).get(at) or "contracts", str(code)
        case ContractBroken(phase, index):
            return f"{phase} {index + 1}", "contract_broken"
        case _:
            return None


def _roles(node: ir.Node) -> dict[int, _Role]:
    found: dict[int, _Role] = {}
    for statement in all_statements(node.body):
        if isinstance(statement, ir.Return | ir.Raise | ir.Require):
            continue
        name = statement.name.lstrip("_")
        match statement:
            case ir.Step(value=value):
                found[value.index] = _Role(name, "value")
            case ir.CallNode(result=result):
                found[result.index] = _Role(name, "call")
            case ir.Branch():
                found |= _roles_of_branch(statement, name)
            case _:
                pass  # a request's value is its exchange; a loop is shown by its inner steps
        if isinstance(statement, ir.Step):
            for handler in handlers_of(statement):
                if handler.value is not None:
                    found[handler.value.index] = _Role(name, "value")
    return found


def _roles_of_branch(branch: ir.Branch, name: str) -> dict[int, _Role]:
    inner = {getattr(each, "name", "") for arm in branch.arms for each in all_statements(arm.body)}
    is_when = branch.name != name and name in inner
    values = [arm.value for arm in branch.arms]
    found = {value.index: _Role(name, "none" if is_when else "branch") for value in values if value is not None}
    if branch.otherwise_value is not None:
        found[branch.otherwise_value.index] = _Role(name, "skipped" if is_when else "branch")
    return found
