"""Differences of two traces: in inputs, steps and outcome.

Durations are not compared, and start times only if the node reads `now()`, because no two executions start at the same
time.
"""

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
"""Text for a side that has no such step."""
NODE, NOW = "node", "now"
"""Places of differences that are no steps."""


@dataclass(frozen=True, slots=True)
class Difference:
    where: str
    """Place of the difference: `inputs.amount`, `call_stripe_api`, `call_stripe_api.body`, `outcome`."""
    left: str
    right: str


def differences(left: Trace, right: Trace) -> list[Difference]:
    """Return all differences in execution order."""
    # Compare the stored forms: a stored record does not preserve the order of its fields.
    return list(_differences(Trace.from_bytes(left.to_bytes()), Trace.from_bytes(right.to_bytes())))


def _differences(left: Trace, right: Trace) -> Iterator[Difference]:
    if left.node_id != right.node_id:
        yield Difference(NODE, left.node_id, right.node_id)
    elif left.semantic_hash != right.semantic_hash:
        yield Difference(NODE, left.semantic_hash[:12], right.semantic_hash[:12])
    yield from _mapping_differences("inputs", left.inputs, right.inputs)
    if left.now != right.now and (_reads_now(left) or _reads_now(right)):
        yield Difference(NOW, _moment_text(left), _moment_text(right))
    yield from _step_differences(left, right)
    one, other = outcome_text(left.outcome), outcome_text(right.outcome)
    if one != other:
        yield Difference("outcome", one, other)


def _reads_now(trace: Trace) -> bool:
    compiled = compiled_of(trace.definition)
    return any(isinstance(part, ir.Now) for each in (compiled, *compiled.callees) for part in each.node.expressions())


def _moment_text(trace: Trace) -> str:
    return MISSING if trace.now is None else show(trace.now)


def _step_differences(left: Trace, right: Trace) -> Iterator[Difference]:
    lefts, rights = _by_path(left), _by_path(right)
    # Order of the left trace; a step found only in the right trace follows its predecessor there.
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
        yield from _differences_of_step(left, lefts.get(key), right, rights.get(key))


def _by_path(trace: Trace) -> dict[tuple[str, int], TimelineStep]:
    found: dict[tuple[str, int], TimelineStep] = {}
    counts: dict[str, int] = {}
    for step in timeline(trace):
        counts[step.path] = counts.get(step.path, 0) + 1
        found[step.path, counts[step.path]] = step
    return found


def _differences_of_step(
    left: Trace, one: TimelineStep | None, right: Trace, other: TimelineStep | None
) -> Iterator[Difference]:
    if one is None or other is None:
        known = one or other
        assert known is not None
        yield Difference(known.path, step_text(one), step_text(other))
        return
    if one.exchange is not None and other.exchange is not None:
        first, second = left.exchanges[one.exchange], right.exchanges[other.exchange]
        yield from _mapping_differences(one.path, _request_fields(first), _request_fields(second))
        tries = (len(first.decisions), len(second.decisions))
        if tries[0] != tries[1]:
            yield Difference(f"{one.path}, decisions of policies", str(tries[0]), str(tries[1]))
    if step_text(one) != step_text(other):
        yield Difference(one.path, step_text(one), step_text(other))


def _request_fields(exchange: Exchange) -> dict[str, object]:
    return {"effect": exchange.effect, "key": exchange.key, **exchange.fixed, **exchange.arguments}


def _mapping_differences(where: str, left: Mapping[str, object], right: Mapping[str, object]) -> Iterator[Difference]:
    for name in dict.fromkeys((*left, *right)):
        if name not in left or name not in right or not same(left[name], right[name]):
            one = show(left[name]) if name in left else MISSING
            other = show(right[name]) if name in right else MISSING
            yield Difference(f"{where}.{name}", one, other)


def step_text(step: TimelineStep | None) -> str:
    """Return the result of a step on one line."""
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
    """Return an outcome on one line."""
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
    """Describe where two engines diverge; None if they agree."""
    assert left.outcome is not None
    assert right.outcome is not None
    found = compare(Done(left.outcome, left.raw_marks()), Done(right.outcome, right.raw_marks()))
    if not isinstance(found, Disagree):
        return None
    where = f"mark {found.mark}"
    if found.mark is not None:
        longer = max(left.marks, right.marks, key=len)
        where = longer[found.mark].step or f"expression {longer[found.mark].index}"
    return f"{right.engines[0]} diverges from {left.engines[0]} in {found.what}" + (
        f", at {where}" if found.mark is not None else ""
    )
