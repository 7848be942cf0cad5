"""Named places at which a process kills itself, for tests of recovery (docs/how-to/test-recovery.md)."""

from __future__ import annotations

import os
import signal
from functools import lru_cache
from itertools import count

_VARIABLE = "VESPER_DIE_AT"


class _KillSetting:
    """The place, and the number of the passage there, at which this process kills itself."""

    def __init__(self, text: str) -> None:
        place, colon, passage = text.rpartition(":")
        self.place, self._passage = (place, int(passage)) if colon else (text, 1)
        self._passages = count(1)

    def note_passage(self) -> None:
        if next(self._passages) == self._passage:
            # SIGKILL leaves no way back: nothing is flushed, closed or rolled back.
            os.kill(os.getpid(), signal.SIGKILL)


def kill_point(place: str) -> None:
    """Kill the process if `VESPER_DIE_AT` names this place (`PLACE`, or `PLACE:N` for the N-th passage)."""
    death = _read_setting()
    if death is not None and death.place == place:
        death.note_passage()


@lru_cache(maxsize=1)
def _read_setting() -> _KillSetting | None:
    """Return the setting of the variable, read at the first passage. A forked child may set it before that."""
    text = os.environ.get(_VARIABLE)
    return None if text is None else _KillSetting(text)
