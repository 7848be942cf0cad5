"""Pairs of interesting values of two inputs, each pair once before any is repeated.

Two inputs at their edges at once are rare among independent draws, and most faults need one or two values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import gcd, prod

_STRIDE = 7919
"""Distance of consecutive pairs of values, so that both values change."""


class InputPairs:
    """Rotation through pairs of inputs and their values."""

    def __init__(self, values: Mapping[str, Sequence[object]], seed: int) -> None:
        """Create a rotation over the interesting values of each input; the seed selects where it begins."""
        self._values = {name: found for name, found in values.items() if found}
        self._pairs: list[tuple[str, ...]] = [*combinations(self._values, 2)] or [(name,) for name in self._values]
        self._number = seed % 1000 * len(self._pairs)

    def next(self) -> dict[str, object]:
        """Return the next values of two inputs; of one input if there is only one, of none without any."""
        if not self._pairs:
            return {}
        names = self._pairs[self._number % len(self._pairs)]
        at, self._number = self._number // len(self._pairs), self._number + 1
        sizes = [len(self._values[name]) for name in names]
        total = prod(sizes)
        at = at * (_STRIDE if gcd(_STRIDE, total) == 1 else 1) % total
        chosen = (at % sizes[0], at // sizes[0])
        return {name: self._values[name][index] for name, index in zip(names, chosen, strict=False)}
