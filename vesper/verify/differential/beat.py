"""Beats: reports of the verifier's next action, which a watchdog names after a crash."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

Beat: TypeAlias = Callable[[str, int, str, Mapping[str, object] | None], None]
"""Receives what begins: `draw`, `compile`, `load`, `case`, `run` or `way`, with the number of the input, or of the case
as a negative one, the engine or way, and the inputs."""


def ignore_beat(stage: str, number: int, engine: str, inputs: Mapping[str, object] | None) -> None:
    """Receive a beat that nothing watches."""
