"""What the generated table of effects is made of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ArgumentSpec:
    name: str
    type: str
    """A type, `any`, `record`, or several with `|` between them."""
    optional: bool


@dataclass(frozen=True, slots=True)
class EffectSpec:
    name: str
    operations: tuple[str, ...]
    capability: str
    """With a hole for the target: a fixed field, or `{table}` for each table of the SQL."""
    classes: tuple[str, ...]
    """Those a step may choose; the first is the default."""
    fixed: tuple[str, ...]
    arguments: tuple[ArgumentSpec, ...]
    gives: str
    """A type, `declared` where the step says it, or `states` for those of the machine."""
    fails: tuple[str, ...]

    def codes(self) -> tuple[str, ...]:
        """All that a request can fail with."""
        return ("timeout", "unavailable", *self.fails)
