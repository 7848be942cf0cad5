"""Inputs that meet a node's contracts, at a bounded cost for each.

A repair tries tens of changes, which costs more than an execution. The first inputs are repaired in full. Most later
inputs are known ones with as many drawn parts as the contracts allow, or with one varied part and a short repair.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from copy import deepcopy

from vesper.values.model import Value
from vesper.verify.solve.search import InputSolver

_FIRST_BUDGET = 1_000
"""Changes that may be tried for the first inputs."""
_BUDGET_PER_INPUT = 0.25
_BUDGET_OF_A_MISS = 12
"""Further changes after an input that was not met, because contracts may leave little to vary."""
_MAX_KNOWN = 200
_GRAFTS = 2
_VARIATIONS = 3
_ROUNDS_OF_A_VARIATION = 6
"""Rounds of a repair after one part of a known input changed: often another part has to follow it."""


class InputPool:
    """Known inputs that meet the contracts of one node."""

    def __init__(
        self,
        solver: InputSolver,
        source: random.Random,
        vary: Callable[[Mapping[str, object]], dict[str, object]],
    ) -> None:
        """Create a pool. `vary` returns inputs similar to others."""
        self._solver = solver
        self._random = source
        self._vary = vary
        self._known: list[tuple[dict[str, object], dict[str, Value]]] = []
        """Inputs as a caller gives them, and their values."""
        self._budget: float = _FIRST_BUDGET

    def meet(self, inputs: dict[str, object]) -> dict[str, object]:
        """Return inputs that meet the contracts, as similar to the given ones as is cheap."""
        self._budget += _BUDGET_PER_INPUT
        if self._budget <= 0 and self._known:
            values = self._solver.read(inputs)
            if values is not None and self._solver.meets(values):
                return self._keep(inputs, values)
            return self._graft(inputs, values or {})
        repaired = self._solver.repair(inputs)
        self._budget -= repaired.tried
        values = self._solver.read(repaired.inputs)
        if repaired.is_met and values is not None:
            return self._keep(repaired.inputs, values)
        return self._graft(inputs, values or {}) if self._known else repaired.inputs

    def _keep(self, inputs: dict[str, object], values: dict[str, Value]) -> dict[str, object]:
        at = len(self._known) if len(self._known) < _MAX_KNOWN else self._random.randrange(_MAX_KNOWN)
        self._known[at : at + 1] = [(deepcopy(inputs), values)]
        return inputs

    def _graft(self, inputs: Mapping[str, object], values: Mapping[str, Value]) -> dict[str, object]:
        """Return a known input with parts of another one, fewer at each try."""
        kept, its_values = self._random.choice(self._known)
        known = deepcopy(kept)  # a caller may change what it gets
        names = [name for name in inputs if name in values]
        for _ in range(_GRAFTS if len(names) > 1 else 0):
            names = self._random.sample(names, max(1, len(names) // 2))
            if self._solver.meets(its_values | {name: values[name] for name in names}):
                return known | {name: inputs[name] for name in names}
        varied = known
        for _ in range(_VARIATIONS):
            varied = self._vary(known)
            its_own = self._solver.read(varied)
            if its_own is not None and its_own != its_values and self._solver.meets(its_own):
                return varied
        repaired = self._solver.repair(varied, max_rounds=_ROUNDS_OF_A_VARIATION)
        its_own = self._solver.read(repaired.inputs) if repaired.is_met else None
        if its_own is not None and its_own != its_values:
            return self._keep(repaired.inputs, its_own)
        self._budget += _BUDGET_OF_A_MISS
        return dict(inputs)  # a known input again would show nothing new
