"""The settings of a journal that are numbers."""

from __future__ import annotations

from dataclasses import dataclass

from vesper.journal.errors import JournalError
from vesper.journal.typed_json import MAX_TEXT


@dataclass(frozen=True, slots=True)
class Limits:
    lease_seconds: float
    """How long a run is ours without a sign of life."""
    max_inline: int
    """Bytes of a body that stands in its line; a larger one stands beside it, once for equal ones."""
    max_body: int
    """Bytes of a body at most."""

    def __post_init__(self) -> None:
        if not 0.01 <= self.lease_seconds <= 86_400:
            raise JournalError(f"a lease is between 10 ms and a day long, not {self.lease_seconds} s")
        if not 0 <= self.max_inline <= 1 << 20:
            raise JournalError(f"bodies of up to 1 MiB can stand in their line, not of {self.max_inline:,} bytes")
        if not 1 <= self.max_body <= MAX_TEXT:
            raise JournalError(f"a body may have up to {MAX_TEXT:,} bytes, not {self.max_body:,}")
