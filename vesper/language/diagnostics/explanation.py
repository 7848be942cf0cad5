"""What an explanation of a diagnostic consists of; the explanations themselves are generated."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    text: str
    """What it means, why the rule is there, what to do."""
    bad: str | None = None
    """A complete node that has this diagnostic; None only with a reason in `no_example`."""
    good: str | None = None
    """The same node, repaired."""
    no_example: str | None = None
