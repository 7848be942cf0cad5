"""Row types of the generated table of effects."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ArgumentSpec:
    """An argument of an effect."""

    name: str
    type: str
    """A type, `any`, `record`, or several separated by `|`."""
    optional: bool


@dataclass(frozen=True, slots=True)
class EffectSpec:
    """Declaration of one effect."""

    name: str
    operations: tuple[str, ...]
    capability: str
    """Capability with a hole for its target. The target is a fixed field, or `{table}` for each table of the SQL."""
    classes: tuple[str, ...]
    """Effect classes that a step may choose; the first is the default."""
    fixed: tuple[str, ...]
    arguments: tuple[ArgumentSpec, ...]
    gives: str
    """Type of the completion, `declared` where the step declares it, or `states` of the machine."""
    fails: tuple[str, ...]

    def codes(self) -> tuple[str, ...]:
        """Return every code with which a request can fail."""
        return ("timeout", "unavailable", *self.fails)


@dataclass(frozen=True, slots=True)
class InterruptKind:
    """Declaration of one kind of interrupts."""

    ttl_us: int | None
    """Time to live of a step without `ttl`; None never expires."""
    is_answered: bool
    """Whether the step must declare the type of the answer."""
