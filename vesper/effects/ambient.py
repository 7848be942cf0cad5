"""What every machine has: the time, randomness, and names that nobody else has.

The completions are recorded like those of any other effect, so a replay sees the same ones.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import Final

from vesper.effects.performer import Ask, EffectFailed
from vesper.storage.per_process import PerProcess

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Clock:
    """The time in UTC, to the microsecond. It never goes back within a process, whatever is done to the machine's
    clock: it stands still until the machine has caught up."""

    def __init__(self, time_ns: Callable[[], int] = time.time_ns) -> None:
        self._time_ns = time_ns
        self._lock = PerProcess(Lock)
        self._last_us = 0

    def now(self) -> datetime:
        with self._lock.get():
            self._last_us = max(self._last_us, self._time_ns() // 1000)
            return _EPOCH + timedelta(microseconds=self._last_us)


SYSTEM_CLOCK: Final = Clock()
"""One for the process: two performers must not disagree about what comes first."""


class AmbientPerformer:
    """Performs `clock_now`, `random_integer` and `uuid_new`. The randomness is the operating system's: nobody can
    guess it from what came before, and a forked process does not repeat its parent's."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._random = random.SystemRandom()

    def perform(self, ask: Ask) -> object:
        match ask.effect:
            case "clock_now":
                return self._clock.now()
            case "random_integer":
                least, most = ask.arguments["min"], ask.arguments["max"]
                assert isinstance(least, int)
                assert isinstance(most, int)
                if least > most:
                    raise EffectFailed("invalid_argument", f"no integer is at least {least:,} and at most {most:,}")
                return self._random.randint(least, most)
            case "uuid_new":
                return str(uuid.uuid4())
            case _:
                raise ValueError(f"the machine does not perform {ask.effect}")

    def probe(self, ask: Ask) -> object:
        raise EffectFailed("unavailable", f"{ask.effect} is of class `read`: it is done again, and never probed")

    def close(self) -> None:
        """Nothing is held."""
