"""What the two sides of the Debug Adapter Protocol agree on: what this adapter can do, and how it says no."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vesper.debug.responses import Unanswered
from vesper.engines.engine import EngineUnavailable
from vesper.values.vesper_error import VesperError

Message = dict[str, Any]
THREADS = {"python": "python", "interp": "direct"}
"""What the threads are called, by engine."""
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
    """A request that cannot be done; the message is for the person at the editor."""


REFUSALS = (
    Refused, VesperError, EngineUnavailable, Unanswered, OSError,
    # What is no argument of the protocol: a text for a number, a number for an object, a number without end.
    KeyError, TypeError, ValueError, AttributeError, OverflowError, IndexError,
)  # fmt: skip
"""What is answered as a failed request. `BadBreakpoint` and `BadExpression` are among the `ValueError`s."""


def names_trace(arguments: Mapping[str, Any]) -> bool:
    """Whether a launch is about a recorded run. Editors have a word `trace` too, for logs of their own: that is a truth
    value, or an object."""
    return not isinstance(arguments.get("trace"), bool | dict | None)
