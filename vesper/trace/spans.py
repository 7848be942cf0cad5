"""Times of a trace's steps: requests with their attempts and waits, and the moments of values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from vesper.trace.model import Exchange, Trace
from vesper.trace.timeline import TimelineStep, timeline

PartKind = Literal["attempt", "wait"]


@dataclass(frozen=True, slots=True)
class Part:
    """One attempt of a request, or a wait before or between attempts."""

    kind: PartKind
    begin_us: int
    end_us: int
    text: str
    """Failure code of an attempt that failed; reason of a wait; empty otherwise."""
    number: int
    """Number of the attempt, from 1; of a wait, that of the attempt after it."""


@dataclass(frozen=True, slots=True)
class StepSpan:
    step: TimelineStep
    begin_us: int
    end_us: int | None
    """End of a request; equal to the begin for a value; None for a request that is still open."""
    parts: tuple[Part, ...] = ()


def spans_of(trace: Trace, now_us: int) -> tuple[StepSpan, ...]:
    """Return the steps with their times, and a last one for the request that an unfinished run waits for."""
    found: list[StepSpan] = []
    at = trace.started_us
    for step in timeline(trace):
        exchange = None if step.exchange is None else trace.exchanges[step.exchange]
        if exchange is None:
            found.append(StepSpan(step, at, at))
            continue
        begin = at if exchange.asked_us is None else exchange.asked_us
        at = begin if exchange.answered_us is None else max(begin, exchange.answered_us)
        found.append(StepSpan(step, begin, at, _parts(exchange, begin, at)))
    if trace.outcome is None and trace.waits_at is not None:
        waiting = TimelineStep(len(found) + 1, trace.waits_at, trace.waits_at, "ok", None, None, None, len(trace.marks))
        found.append(StepSpan(waiting, at, None, (Part("wait", at, max(at, now_us), "no answer yet", 1),)))
    return tuple(found)


def _parts(exchange: Exchange, begin_us: int, end_us: int) -> tuple[Part, ...]:
    """Return attempts and waits from the decisions of policies, in order."""
    found: list[Part] = []
    at, number = begin_us, 1
    for each in exchange.decisions:
        if each.at_us is None:
            continue
        moment = min(max(at, each.at_us), end_us)
        match each.said.get("decision"):
            case "waiting":
                until = each.said.get("until_us")
                end = min(max(moment, until if isinstance(until, int) else moment), end_us)
                found.append(Part("wait", moment, end, f"held back by its {each.said.get('by', 'policy')}", number))
                at = end
            case "retry":
                delay = each.said.get("delay_us")
                end = min(moment + (delay if isinstance(delay, int) else 0), end_us)
                found.append(Part("attempt", at, moment, str(each.said.get("code", "failed")), number))
                number += 1
                found.append(Part("wait", moment, end, "wait before the next attempt", number))
                at = end
            case _:
                pass  # admitted, released, rejected and give_up have no time of their own
    found.append(Part("attempt", at, end_us, exchange.failure or "", number))
    return tuple(found)
