"""Text output of replay: the timeline in the founding document's format, and step details."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from vesper.trace.difference import Difference, outcome_text
from vesper.trace.model import Exchange, MarkKind, Trace
from vesper.trace.timeline import SIGNS, TimelineStep, timeline
from vesper.values.model import printable, show


def header_lines(trace: Trace) -> list[str]:
    moment = datetime.fromtimestamp(trace.started_us / 1_000_000, UTC)
    lines = [f"Replaying execution: {printable(trace.trace_id)}", f"Timestamp: {moment:%Y-%m-%d %H:%M:%S}"]
    if trace.origin is not None:
        lines.append(f"Made from: {printable(trace.origin.trace_id)}")
    return lines


def timeline_lines(trace: Trace, current: int | None = None) -> list[str]:
    """Return lines such as `Step 3: call_stripe_api ✗ (timeout)`, with `> ` before the current step."""
    return [_step_line(each, each.number == current) for each in timeline(trace)]


def _step_line(step: TimelineStep, is_current: bool) -> str:
    told = f" ({step.code})" if step.status == "failed" else " (skipped)" if step.status == "skipped" else ""
    mark = "> " if is_current else ""
    return f"{mark}Step {step.number}: {printable(step.title)} {SIGNS[step.status]}{printable(told)}"


def outcome_line(trace: Trace) -> str:
    if trace.outcome is None:
        return "Outcome: not ended" + (f", waits at {printable(trace.waits_at)}" if trace.waits_at else "")
    return f"Outcome: {printable(outcome_text(trace.outcome))}"


def duration_text(us: int) -> str:
    """Return a duration such as `45s`, `1.5s` or `225ms`."""
    if us >= 10_000_000:
        return f"{round(us / 1_000_000)}s"
    if us >= 1_000_000:
        return f"{us / 1_000_000:.1f}s"
    return f"{max(1, round(us / 1000))}ms"


def step_lines(trace: Trace, step: TimelineStep) -> Iterator[str]:
    """Yield the details of a step: request, policy decisions, answer and known values."""
    yield _step_line(step, False)
    exchange = None if step.exchange is None else trace.exchanges[step.exchange]
    if exchange is not None:
        yield from _exchange_lines(exchange)
    elif step.status == "ok":
        yield f"  value: {printable(show(step.value))}"
    known = known_values(trace, step)
    if known:
        yield "  known here:"
        for name, value in known.items():
            yield f"    {name}: {printable(show(value))}"


def _exchange_lines(exchange: Exchange) -> Iterator[str]:
    key = "" if exchange.key is None else f", key {show(exchange.key)}"
    yield f"  request: {exchange.effect} ({exchange.effect_class}{printable(key)})"
    for name, value in (*exchange.fixed.items(), *exchange.arguments.items()):
        yield f"    {name}: {printable(show(value))}"
    for each in exchange.decisions:
        said = ", ".join(f"{name} {value}" for name, value in each.said.items() if name != "decision")
        yield f"  attempt {each.attempt}: {printable(str(each.said.get('decision', '')))}" + (
            f" ({said})" if said else ""
        )
    took = "" if exchange.took_us is None else f" ({duration_text(exchange.took_us)})"
    if exchange.failure is None:
        yield f"  answer: {printable(show(exchange.value))}{took}"
    else:
        told = f": {exchange.message}" if exchange.message else ""
        yield f"  failed: {exchange.failure}{took}{printable(told)}"


def known_values(trace: Trace, step: TimelineStep) -> dict[str, object]:
    """Return the inputs and the values of the steps up to this one."""
    found: dict[str, object] = {f"input.{name}": value for name, value in trace.inputs.items()}
    for each in trace.marks[: step.marks]:
        if each.kind is MarkKind.VALUE and each.step:
            found[each.step] = each.value
    return found


def difference_lines(found: list[Difference]) -> list[str]:
    lines: list[str] = []
    for each in found:
        lines.append(printable(each.where))
        lines.append(f"  original  {printable(each.left)}")
        lines.append(f"  now       {printable(each.right)}")
    return lines
