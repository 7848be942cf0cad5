"""Exceptions of the API besides those of `vesper.kernels.raised`. Each is a `VesperError`."""

from __future__ import annotations

from vesper.engines.outcome import Outcome
from vesper.values.vesper_error import VesperError


class NodeError(VesperError):
    """A node that cannot be used; the message is the report of `vesper check`."""


class UnknownNode(NodeError):
    """No node has this name, or several have; the message lists the searched places and close names."""


class Stopped(VesperError):
    """The execution was stopped: `kind` is `limit_hit`, `denied` or `engine_fault`."""

    def __init__(self, message: str, outcome: Outcome) -> None:
        super().__init__(message)
        self.kind: str = outcome.kind
        self.outcome = outcome
