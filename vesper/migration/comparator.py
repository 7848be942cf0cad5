"""Whether two executions of a node did the same: exact by declared type, within tolerances where somebody gave some."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from vesper.migration.reports import Difference


@dataclass(frozen=True, slots=True)
class Same:
    is_within_tolerance: bool = False
    """They differ, by no more than somebody allowed."""


@dataclass(frozen=True, slots=True)
class Incomparable:
    why: str


Verdict: TypeAlias = Same | Difference | Incomparable
