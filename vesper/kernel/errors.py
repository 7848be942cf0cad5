"""Errors of clients of the kernel, readable without gRPC."""

from __future__ import annotations

from vesper.values.vesper_error import VesperError


class KernelError(VesperError):
    """The kernel refused or failed a call, or cannot be reached."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        """The status code of gRPC: `NOT_FOUND`, `FAILED_PRECONDITION`, `UNAVAILABLE`, …."""
        self.message = message


class KernelNotStarted(VesperError):
    """The kernel's program is missing, refuses its settings, or does not begin to listen."""
