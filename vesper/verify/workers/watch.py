"""Shared memory in which a worker publishes its activity, so that its parent can name it after a crash."""

from __future__ import annotations

import mmap
import pickle
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass

_HEAD = struct.Struct("=Qdq16s192sQ")
"""Number of beats, seconds until the next one, number, stage, engine, bytes of the inputs."""
_BYTES = 16 << 20
"""Room for the head and the inputs. Pages that nothing writes cost nothing."""
_TIMES_REFERENCE = 20
"""An engine may take this many times as long as the reference took on the same input."""


@dataclass(frozen=True, slots=True)
class Activity:
    """The last activity that a worker began."""

    stage: str
    """`draw`, `compile`, `load`, `case`, `run` or `way`; empty before the first beat."""
    number: int
    """Number of the input; of a case its negative number."""
    engine: str
    inputs: dict[str, object] | None
    """None where there are none yet, or where they are too large to be published."""


class Watch:
    """One worker's activity. The worker calls `beat` before everything that may not end."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _BYTES)
        self._beats = 0
        self._seconds = 0.0
        self._shown: Mapping[str, object] | None = None
        self._size = 0
        self._input: tuple[str, int] | None = None
        self._begun = 0.0
        self._reference_seconds: float | None = None

    def begin(self, seconds: float) -> None:
        """Begin a task whose every part must end within `seconds`."""
        self._seconds = seconds
        self._input = None
        self.beat("", 0, "", None)

    def beat(self, stage: str, number: int, engine: str, inputs: Mapping[str, object] | None) -> None:
        """Publish the activity that begins now."""
        if inputs is not self._shown or inputs is None:
            self._publish(inputs)
        self._beats += 1
        named = (stage.encode()[:16], engine.encode()[:192])
        _HEAD.pack_into(self._memory, 0, self._beats, self._allowed_seconds(stage, number), number, *named, self._size)

    def position(self) -> tuple[int, float]:
        """Return the number of beats, and the seconds that may pass until the next."""
        beats, seconds, *_ = _HEAD.unpack_from(self._memory)
        return beats, seconds

    def activity(self) -> Activity:
        _, _, number, stage, engine, size = _HEAD.unpack_from(self._memory)
        inputs = None
        if 0 < size <= _BYTES - _HEAD.size:
            try:
                # Written by a fork of this process.
                inputs = pickle.loads(self._memory[_HEAD.size : _HEAD.size + size])  # noqa: S301
            except Exception:  # noqa: BLE001  # a crash may leave anything in the memory
                inputs = None
        names = (each.rstrip(b"\0").decode(errors="replace") for each in (stage, engine))
        return Activity(next(names), number, next(names), inputs)

    def close(self) -> None:
        self._memory.close()

    def _publish(self, inputs: Mapping[str, object] | None) -> None:
        self._shown, self._size = inputs, 0
        if inputs is None:
            return
        content = pickle.dumps(dict(inputs))
        if len(content) <= _BYTES - _HEAD.size:
            self._memory[_HEAD.size : _HEAD.size + len(content)] = content
            self._size = len(content)

    def _allowed_seconds(self, stage: str, number: int) -> float:
        """Return the time limit of an activity. The time of the first engine on an input extends that of the others."""
        now = time.monotonic()
        if self._input != (stage, number):
            self._input, self._begun, self._reference_seconds = (stage, number), now, None
        elif self._reference_seconds is None:
            self._reference_seconds = now - self._begun
        return max(self._seconds, _TIMES_REFERENCE * (self._reference_seconds or 0.0))
