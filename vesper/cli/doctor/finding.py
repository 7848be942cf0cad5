"""Findings of `vesper doctor`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """One result of a check.

    An error stops runs or voids a setting, a warning weakens one, `ok` is for parts that work.
    """

    level: str
    where: str
    text: str
    advice: str = ""
