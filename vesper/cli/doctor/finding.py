"""Findings of `vesper doctor`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """One result: an error stops runs or voids a setting, a warning weakens one, `ok` is for what works."""

    level: str
    where: str
    text: str
    advice: str = ""
