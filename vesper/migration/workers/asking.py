"""Messages to a worker, and the decoding of its replies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from vesper.engines.engine import Completion, Limits
from vesper.engines.outcome import EngineFault, Outcome
from vesper.migration.shadow.guarded_direct import NotAsked
from vesper.migration.workers import wire_values as packed
from vesper.migration.workers.child import MAX_MESSAGE_BYTES


class Unavailable(NotAsked):
    """The direct engine did not run, and Python leads. Not an engine fault."""


class Busy(Unavailable):
    """Every worker has an execution, or none has started yet."""


class Misuse(Exception):
    """A program called with wrong arguments. `error` is the exception that the direct engine raises for that."""

    def __init__(self, answer: Mapping[str, Any]) -> None:
        super().__init__()
        self.error = MISUSE[answer["raised"]](answer["message"])


MISUSE: dict[str, type[Exception]] = {
    "ValueError": ValueError,
    "TypeError": TypeError,
    "NowMissing": ValueError,
    "NotInputs": TypeError,
}
"""Exceptions for wrong arguments, by name. They are no engine faults."""


def encode_run(
    do: str,
    program: str,
    inputs: object,
    now: datetime | None,
    limits: Limits | None,
    key: bytes | None = None,
    **more: object,
) -> bytes:
    """Encode the message that begins an execution. Raises `Unavailable`."""
    try:
        given = packed.pack(packed.as_inputs(inputs))
    except packed.Unsendable as error:
        raise Unavailable(str(error)) from None
    return _encode(
        {
            "do": do,
            "program": program,
            "inputs": given,
            "now": now,
            "limits": None if limits is None else (limits.fuel, limits.seconds, limits.memory),
            "key": key,
            **more,
        }
    )


def encode_advance(completions: Sequence[Completion]) -> bytes:
    """Encode the message that advances an execution. Raises `Unavailable`."""
    try:
        packed_completions = [packed.pack_completion(each) for each in completions]
    except packed.Unsendable as error:
        raise Unavailable(str(error)) from None
    return _encode({"do": "advance", "completions": packed_completions})


def _encode(question: Mapping[str, object]) -> bytes:
    try:
        message = packed.message(question)
    except packed.Unsendable as error:
        raise Unavailable(f"no worker can receive this: {error}") from None
    if len(message) > MAX_MESSAGE_BYTES:
        raise Unavailable(f"a message to a worker has at most {MAX_MESSAGE_BYTES:,} bytes, not {len(message):,}")
    return message


def decode_outcome(answer: Mapping[str, Any]) -> Outcome:
    if "fault" in answer:
        return EngineFault(answer["fault"])
    return packed.unpack_outcome(answer["outcome"])
