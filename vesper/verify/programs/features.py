"""Features of one drawn program: which kinds of parts it has, and how often.

Each program leaves out some kinds of steps, forms, operations and types and prefers others. Programs that draw from
everything look alike; a fault that needs several parts of one kind is then rarely reached.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping
from dataclasses import dataclass, field

_ABSENT_SHARES = (0.0, 0.15, 0.3, 0.45, 0.6)
_PREFERRED_SHARE = 0.25
_PREFERENCE = 3.0
_SMALL_SHARE = 0.5
_RISKS = (0.02, 0.02, 0.1, 0.3, 1.0)


@dataclass(frozen=True, slots=True)
class Features:
    """Weights of one program by name; the order of requests does not change them."""

    key: str
    """Selects the weights."""
    absent_share: float
    """Share of the names that have a weight of zero."""
    is_small: bool
    """True for a program of a few steps, which compiles fast."""
    risk: float = 1.0
    """Scale of operations that fail for most values. A failure ends an execution before its later steps."""
    _scales: dict[str, float] = field(default_factory=dict)

    @classmethod
    def draw(cls, source: random.Random) -> Features:
        return cls(
            key=f"{source.getrandbits(64):x}",
            absent_share=source.choice(_ABSENT_SHARES),
            is_small=source.random() < _SMALL_SHARE,
            risk=source.choice(_RISKS),
        )

    def weight(self, name: str, default: float = 1.0) -> float:
        """Return the weight of a kind of part: zero, the default or a multiple of it."""
        scale = self._scales.get(name)
        if scale is None:
            scale = self._scales[name] = self._draw_scale(name)
        return default * scale

    def risky(self, weight: float) -> float:
        """Return the weight of a part that fails for most values, scaled by the program's risk."""
        return weight * self.risk

    def weights(self, defaults: Mapping[str, float]) -> list[float]:
        """Return the weights of alternatives; the defaults if all of them would be zero."""
        found = [self.weight(name, default) for name, default in defaults.items()]
        return found if any(found) else [*defaults.values()]

    def _draw_scale(self, name: str) -> float:
        digest = hashlib.blake2b(f"{self.key} {name}".encode(), digest_size=8).digest()
        place = int.from_bytes(digest, "big") / 2**64
        if place < self.absent_share:
            return 0.0
        return _PREFERENCE if place >= 1 - _PREFERRED_SHARE else 1.0
