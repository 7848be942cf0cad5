"""The exception of a run that waits for a person."""

from __future__ import annotations

from vesper.values.vesper_error import VesperError


class InDoubt(VesperError):
    """It is unknown whether the request at this path was performed, so the run cannot continue."""

    def __init__(self, path: str, why: str, execution: str) -> None:
        super().__init__(f"{path}: {why} (execution {execution})")
        self.path = path
        self.why = f"{path}: {why}"
        self.execution = execution
        """The id in the journal, for `vesper journal resolve`."""
