"""Transactions that Ctrl-C interrupts at any moment."""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import TracebackType

from vesper.storage.transaction import Transaction


class Ending:
    """Leaves a context manager that Ctrl-C interrupted while it was entered or left.

    `contextmanager` enters and leaves in Python. An interrupt there would leave its lock held until the traceback is
    collected, perhaps by a thread that does not own the lock. So a writer uses

        with Ending(file.writing()) as writing, writing as transaction:

    What was interrupted is left once more, in the frame that entered it; what was left before is not left again.
    """

    __slots__ = ("_entered",)

    def __init__(self, entered: AbstractContextManager[Transaction]) -> None:
        self._entered = entered

    def __enter__(self) -> AbstractContextManager[Transaction]:
        return self._entered

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._entered.__exit__(kind, error, trace)
