"""Where two traces differ: in what they were given, in a step, in how they ended. How long anything took is not looked
at, and when they began only where the node asks for it (`now()`): no two executions begin at the same moment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from vesper.engines.compare import Disagree, compare
from vesper.engines.engine import Done
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
from vesper.language.ir import nodes as ir
from vesper.trace.model import Exchange, Trace
from vesper.trace.programs import compiled_of
from vesper.trace.timeline import TimelineStep, timeline
from vesper.values.model import same, show

MISSING = "-"
"""What stands on the side that has no such step."""
NODE, NOW = "node", "now"
"""Where two may differ that hold no value of anybody: they can be shown of sensitive traces too."""


@dataclass(frozen=True, slots=True)
class Difference:
    where: str
    """`inputs.amount`, `call_stripe_api`, `call_stripe_api.body`, `outcome`."""
    left: str
    right: str


def differences(left: Trace, right: Trace) -> list[Difference]:
    """All differences, in the order in which the executions met them."""
    # As they are when they were kept: records do not keep the order of their names.
    return list(_differences(Trace.from_bytes(left.to_bytes()), Trace.from_bytes(right.to_bytes())))


def _differences(left: Trace, right: Trace) -> Iterator[Difference]:
    if left.node_id != right.node_id:
        yield Difference(NODE, left.node_id, right.node_id)
    elif left.semantic_hash != right.semantic_hash:
        yield Difference(NODE, left.semantic_hash[:12], right.semantic_hash[:12])
    yield from _of_mappings("inputs", left.inputs, right.inputs)
    if left.now != right.now and (_reads_now(left) or _reads_now(right)):
        yield Difference(NOW, _moment_text(left), _moment_text(right))
    yield from _of_steps(left, right)
    one, other = outcome_text(left.outcome), outcome_text(right.outcome)
    if one != other:
        yield Difference("outcome", one, other)


def _reads_now(trace: Trace) -> bool:
    compiled = compiled_of(trace.definition)
    return any(isinstance(part, ir.Now) for each in (compiled, *compiled.callees) for part in each.node.expressions())


def _moment_text(trace: Trace) -> str:
    return MISSING if trace.now is None else show(trace.now)


def _of_steps(left: Trace, right: Trace) -> Iterator[Difference]:
    lefts, rights = _by_path(left), _by_path(right)
    # In the order of the left one; steps that only the right one has come where they come there: behind what is
    # before them on that side.
    behind: dict[tuple[str, int] | None, list[tuple[str, int]]] = {}
    last: tuple[str, int] | None = None
    for key in rights:
        if key in lefts:
            last = key
        else:
            behind.setdefault(last, []).append(key)
    order = behind.get(None, [])
    for key in lefts:
        order += [key, *behind.get(key, ())]
    for key in order:
        yield from _of_step(left, lefts.get(key), right, rights.get(key))


def _by_path(trace: Trace) -> dict[tuple[str, int], TimelineStep]:
    found: dict[tuple[str, int], TimelineStep] = {}
    counts: dict[str, int] = {}
    for step in timeline(trace):
        counts[step.path] = counts.get(step.path, 0) + 1
        found[step.path, counts[step.path]] = step
    return found


def _of_step(left: Trace, one: TimelineStep | None, right: Trace, other: TimelineStep | None) -> Iterator[Difference]:
    if one is None or other is None:
        known = one or other
        assert known is not None
        yield Difference(known.path, step_text(one), step_text(other))
        return
    if one.exchange is not None and other.exchange is not None:
        first, second = left.exchanges[one.exchange], right.exchanges[other.exchange]
        yield from _of_mappings(one.path, _asked(first), _asked(second))
        tries = (len(first.decisions), len(second.decisions))
        if tries[0] != tries[1]:
            yield Difference(f"{one.path}, decisions of policies", str(tries[0]), str(tries[1]))
    if step_text(one) != step_text(other):
        yield Difference(one.path, step_text(one), step_text(other))


def _asked(exchange: Exchange) -> dict[str, object]:
    return {"effect": exchange.effect, "key": exchange.key, **exchange.fixed, **exchange.arguments}


def _of_mappings(where: str, left: Mapping[str, object], right: Mapping[str, object]) -> Iterator[Difference]:
    for name in dict.fromkeys((*left, *right)):
        if name not in left or name not in right or not same(left[name], right[name]):
            one = show(left[name]) if name in left else MISSING
            other = show(right[name]) if name in right else MISSING
            yield Difference(f"{where}.{name}", one, other)


def step_text(step: TimelineStep | None) -> str:
    """What a step came to, on one line."""
    if step is None:
        return MISSING
    match step.status:
        case "failed":
            return f"failed: {step.code}"
        case "skipped":
            return "skipped"
        case _:
            return show(step.value)


def outcome_text(outcome: Outcome | None) -> str:
    """An outcome on one line."""
    match outcome:
        case None:
            return "not ended"
        case Returned(value):
            return f"returned {show(dict(value))}"
        case DeclaredError(value):
            return f"error {show(dict(value))}"
        case Failed(code):
            return f"failed: {code}"
        case ContractBroken(phase, index, values):
            return f"{phase} {index + 1} broken: {show(dict(values))}"
        case Denied(capability):
            return f"denied: {capability}"
        case LimitHit(limit):
            return f"limit hit: {limit}"
        case EngineFault(message):
            return f"engine fault: {message}"


def parted(left: Trace, right: Trace) -> str | None:
    """Where two engines part; None where they agree."""
    assert left.outcome is not None
    assert right.outcome is not None
    found = compare(Done(left.outcome, left.raw_marks()), Done(right.outcome, right.raw_marks()))
    if not isinstance(found, Disagree):
        return None
    where = f"mark {found.mark}"
    if found.mark is not None:
        longer = max(left.marks, right.marks, key=len)
        where = longer[found.mark].step or f"expression {longer[found.mark].index}"
    return f"{right.engines[0]} parts from {left.engines[0]} in {found.what}" + (
        f", at {where}" if found.mark is not None else ""
    )
