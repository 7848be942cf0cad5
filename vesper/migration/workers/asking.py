"""What a worker is asked, and what may be taken from what it answers: a process that went wrong may say anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from vesper.engines.engine import Completion, Limits
from vesper.engines.outcome import EngineFault, Outcome
from vesper.engines.path import Point
from vesper.migration.shadow.guarded_direct import NotAsked
from vesper.migration.workers import wire_values as packed
from vesper.migration.workers.child import MAX_MESSAGE


class Unavailable(NotAsked):
    """The direct engine was not asked; Python leads. It says nothing about the engine."""


class Busy(Unavailable):
    """Every worker has an execution, or none is up yet."""


def question(
    do: str,
    program: str,
    inputs: object,
    now: datetime | None,
    limits: Limits | None,
    key: bytes | None = None,
    **more: object,
) -> bytes:
    try:
        given = packed.pack(packed.as_inputs(inputs))
    except packed.Unsendable as error:
        raise Unavailable(str(error)) from None
    fuel, seconds = (None, None) if limits is None else (limits.fuel, limits.seconds)
    return sent(
        {
            "do": do,
            "program": program,
            "inputs": given,
            "now": now,
            "fuel": fuel,
            "seconds": seconds,
            "key": key,
            **more,
        }
    )


def completing(completions: Sequence[Completion]) -> bytes:
    try:
        told = [packed.pack_completion(each) for each in completions]
    except packed.Unsendable as error:
        raise Unavailable(str(error)) from None
    return sent({"do": "advance", "completions": told})


def sent(question: Mapping[str, object]) -> bytes:
    try:
        message = packed.message(question)
    except packed.Unsendable as error:
        raise Unavailable(f"the direct engine's process cannot be given this: {error}") from None
    if len(message) > MAX_MESSAGE:
        raise Unavailable(f"the direct engine's process is given at most {MAX_MESSAGE:,} bytes, not {len(message):,}")
    return message


# -- answers --------------------------------------------------------------------------------------


MISUSE: dict[str, type[Exception]] = {
    "ValueError": ValueError,
    "TypeError": TypeError,
    "NowMissing": ValueError,
    "NotInputs": TypeError,
}
"""What a program raises to who calls it wrongly: no fault of the engine."""


def outcome_of(answer: Mapping[str, Any]) -> Outcome:
    if "fault" in answer:
        return EngineFault(str(answer["fault"]))
    if "raised" in answer:
        raise MISUSE[answer["raised"]](answer["message"])
    return packed.unpack_outcome(answer["outcome"])


def point_of(told: Any) -> Point:
    kind, expression, outcome = told
    if kind not in ("condition", "loop", "handler") or type(expression) is not int or not isinstance(outcome, str):
        raise ValueError("no point")
    return Point(kind, expression, outcome)


def fingerprint_of(answer: Mapping[str, Any], otherwise: int) -> int:
    found = answer.get("fingerprint", otherwise)
    if type(found) is not int or not 0 <= found < 1 << 64:
        raise ValueError("no fingerprint")
    return found


def computed(answer: Mapping[str, Any], waited: float) -> float:
    """The seconds that the worker says it computed, which are no more than were waited."""
    found = answer.get("cpu")
    if type(found) is not int or found < 0:
        raise ValueError("it does not say how long it computed")
    return min(found, int(waited * 1_000_000)) / 1_000_000
