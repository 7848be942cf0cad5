"""What was found of a node and could not be written down: nothing but this process knows of it until its store does."""

from __future__ import annotations

import logging

from vesper.migration.compare.divergence import Divergence
from vesper.values.model import printable

_log = logging.getLogger("vesper.migration")


class Nowhere:
    """Of one node, in one process. Whoever adds or takes out has a lock; a signal handler may strike him."""

    def __init__(self, node: str) -> None:
        self._node = node
        self._numbers: set[int] = set()
        """Of batches that are in no file, and not in the store yet."""
        self._count = 0
        self._kinds: set[str] = set()

    def __len__(self) -> int:
        return len(self._numbers)

    def add(self, number: int) -> None:
        self._numbers.add(number)

    def told(self, number: int) -> bool:
        """The store has all up to this number. True where that leaves nothing of what there was."""
        before = len(self._numbers)
        # In its place: what a signal handler adds meanwhile has a higher number, and stays.
        self._numbers.difference_update([each for each in tuple(self._numbers) if each <= number])
        return before > 0 and not self._numbers

    def say(self, kept: Divergence | None, error: OSError) -> None:
        """For each kind once, and at the first, the tenth, the hundredth…: a log that is flooded is not read. Where the
        two differ is said, and no value."""
        kind = "a lost run" if kept is None else f"divergence {kept.fingerprint} ({kept.kind} at {kept.where})"
        self._count += 1
        is_new = kind not in self._kinds
        self._kinds.add(kind)
        if is_new or str(self._count).strip("0") == "1":
            _log.error(
                "%s: %s cannot be spooled (%s). Until the store has it Python runs alone in this process; if it ends "
                "before that, it is lost. Found and not spooled so far: %s",
                self._node, printable(kind), error, f"{self._count:,}",
            )  # fmt: skip

    def say_what_is_lost(self) -> None:
        """The process ends."""
        if count := len(self._numbers):
            words = "divergence of %s was" if count == 1 else "divergences of %s were"
            _log.error(f"%s {words} lost: neither store nor spool could be written", f"{count:,}", self._node)
