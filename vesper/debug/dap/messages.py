"""Constants of the Debug Adapter Protocol: capabilities, filters and refusals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vesper.debug.responses import Unanswered
from vesper.engines.engine import EngineUnavailable
from vesper.values.vesper_error import VesperError

Message = dict[str, Any]
THREADS = {"python": "python", "interp": "direct"}
"""Names of the threads, by engine."""
FILTERS = {
    "contract_violation": "Contract violations",
    "divergence": "Divergences of the engines",
}
CAPABILITIES = {
    "supportsConfigurationDoneRequest": True,
    "supportsFunctionBreakpoints": True,
    "supportsConditionalBreakpoints": True,
    "supportsEvaluateForHovers": True,
    "supportsStepBack": True,
    "supportsSetVariable": True,
    "supportsExceptionInfoRequest": True,
    "supportsTerminateRequest": True,
    "supportsExceptionFilterOptions": True,
    "exceptionBreakpointFilters": [
        {"filter": name, "label": label, "default": True, "supportsCondition": True} for name, label in FILTERS.items()
    ],
}


class Refused(ValueError):
    """A request that cannot be carried out; the message is shown in the editor."""


REFUSALS = (
    Refused, VesperError, EngineUnavailable, Unanswered, OSError,
    # Invalid protocol arguments: a text for a number, a number for an object, an infinite number.
    KeyError, TypeError, ValueError, AttributeError, OverflowError, IndexError,
)  # fmt: skip
"""Exceptions reported as a failed request. `BadBreakpoint` and `BadExpression` are `ValueError`s."""


def names_trace(arguments: Mapping[str, Any]) -> bool:
    """Return whether a launch names a recorded run.

    Some editors send `trace` as a boolean or an object for their own logs.
    """
    return not isinstance(arguments.get("trace"), bool | dict | None)
