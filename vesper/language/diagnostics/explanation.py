"""Row type of the generated explanations of diagnostics."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Explanation of a diagnostic, with an example and its repair."""

    text: str
    """Meaning, reason of the rule, and remedy."""
    bad: str | None = None
    """A complete node with this diagnostic; None only with a reason in `no_example`."""
    good: str | None = None
    """The same node, repaired."""
    no_example: str | None = None
