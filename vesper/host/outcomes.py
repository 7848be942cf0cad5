"""Outcomes in the form in which the journal stores them, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
from vesper.journal.entry import Entry, Kind
from vesper.values.generated.errors import ErrorCode

_CODES = frozenset(code.value for code in ErrorCode)


def outcome_record(outcome: Outcome) -> dict[str, object]:
    """Return the members of END that describe the outcome."""
    match outcome:
        case Returned(value) | DeclaredError(value):
            return {"outcome": outcome.kind, "value": dict(value)}
        case Failed(code, at):
            return {"outcome": outcome.kind, "code": str(code), "at": at}
        case ContractBroken(phase, index, values):
            return {"outcome": outcome.kind, "phase": phase, "index": index, "values": dict(values)}
        case Denied(capability, why):
            return {"outcome": outcome.kind, "capability": capability, "why": why}
        case LimitHit(limit):
            return {"outcome": outcome.kind, "limit": limit}
        case EngineFault(message):
            return {"outcome": outcome.kind, "message": message}


def recorded_outcome(body: Mapping[str, Any]) -> Outcome:
    """Return the outcome that END describes."""
    match body["outcome"]:
        case "returned":
            return Returned(body["value"])
        case "declared_error":
            return DeclaredError(body["value"])
        case "failed":
            code = body["code"]
            return Failed(ErrorCode(code) if code in _CODES else code, body["at"])
        case "contract_broken":
            return ContractBroken(body["phase"], body["index"], body["values"])
        case "denied":
            return Denied(body["capability"], body["why"])
        case "limit_hit":
            return LimitHit(body["limit"])
        case "engine_fault":
            return EngineFault(body["message"])
        case other:
            raise ValueError(f"no outcome is called `{other}`")


def says_not_done(entry: Entry) -> bool:
    """Return whether a person resolved that a request in doubt certainly did not happen."""
    return entry.kind is Kind.RESOLVED and entry.body.get("not_done") is True


def never_began(outcome: Outcome) -> bool:
    """Return whether the inputs were refused, so that no part of the node was executed."""
    return isinstance(outcome, Failed) and outcome.code == ErrorCode.BAD_INPUT and outcome.at is None
