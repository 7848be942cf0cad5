"""What the generated table of fields is made of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shape:
    """The fields of one kind of mapping. `later` are fields of the language that this version refuses by name."""

    where: str
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    later: tuple[str, ...] = ()
