"""Locations in the `.vsp` file of a generated module.

A generated module ends with the table `SOURCE`. From the traceback of an exception the frame of generated code is
found, and through its module's table the line of the node. None of this runs before a message is requested.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Source:
    """Source table of a generated module."""

    path: str
    lines: Mapping[int, int] = field(default_factory=dict)
    """Line of the node by line of the module. Only lines that can end the execution are listed."""
    clauses: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Texts of the clauses by phase."""

    def line(self, of_module: int) -> int | None:
        """Return the node's line for a module line that can end the execution. None for other lines."""
        return self.lines.get(of_module)

    def clause(self, phase: str, index: int) -> str | None:
        """Return the text of a clause, or None if it is unknown."""
        texts = self.clauses.get(phase, ())
        return texts[index] if index < len(texts) else None


class Origin(NamedTuple):
    """A location in a node: its source table, and the line if known."""

    source: Source
    line: int | None

    def __str__(self) -> str:
        return self.source.path if self.line is None else f"{self.source.path}:{self.line}"


def origin(traceback: TracebackType | None) -> Origin | None:
    """Return the location of an exception: the innermost frame of generated code, or None."""
    found = None
    while traceback is not None:
        source = traceback.tb_frame.f_globals.get("SOURCE")
        if isinstance(source, Source):
            found = Origin(source, source.line(traceback.tb_lineno))
        traceback = traceback.tb_next
    return found
