"""The label `error` of executions without outputs: a failure code or the kind of outcome."""

from __future__ import annotations

from vesper.engines.outcome import Failed, Outcome
from vesper.kernels import raised
from vesper.values.inputs import NotInputs


def outcome_label(outcome: Outcome) -> str:
    """Return the label of an outcome without outputs."""
    return str(outcome.code) if isinstance(outcome, Failed) else outcome.kind


def error_label(error: BaseException) -> str:
    """Return the label of an exception of a call. The extension calls this."""
    match error:
        case raised.BadInput() | NotInputs():
            return "bad_input"
        case raised.Raised():
            return error.code
        case raised.ContractBroken() | raised.ClauseFailed():
            return "contract_broken"
        case raised.DeclaredError():
            return "declared_error"
    outcome = getattr(error, "outcome", None)  # `vesper.Stopped` has one
    return "engine_fault" if outcome is None else outcome_label(outcome)
