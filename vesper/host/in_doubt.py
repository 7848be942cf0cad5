"""The exception of a run that cannot continue until a person resolves a request."""

from __future__ import annotations

from vesper.values.vesper_error import VesperError


class InDoubt(VesperError):
    """The request at this path may or may not have been performed, so the run cannot continue."""

    def __init__(self, path: str, why: str, execution: str) -> None:
        super().__init__(f"{path}: {why} (execution {execution})")
        self.path = path
        self.why = f"{path}: {why}"
        self.execution = execution
        """The id in the journal, for `vesper journal resolve`."""
