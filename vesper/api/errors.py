"""What the API raises besides what ends an execution (`vesper.kernels.raised`). All of it is a `VesperError`."""

from __future__ import annotations

from vesper.engines.outcome import Outcome
from vesper.values.vesper_error import VesperError


class NodeError(VesperError):
    """A node that cannot be used; the message is what `vesper check` prints about it."""


class UnknownNode(NodeError):
    """No node answers to this name, or several do; the message says where was looked and what is close."""


class Stopped(VesperError):
    """The execution did not come to its end: `kind` is `limit_hit`, `denied` or `engine_fault`."""

    def __init__(self, message: str, outcome: Outcome) -> None:
        super().__init__(message)
        self.kind: str = outcome.kind
        self.outcome = outcome
