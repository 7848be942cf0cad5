"""Entry type of the generated table of fields."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shape:
    """The fields of one kind of mapping. `later` lists fields of the language that this version does not support."""

    where: str
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    later: tuple[str, ...] = ()
