"""Back from generated Python to the `.vsp` file that it was made from.

A generated module ends with a table, `SOURCE`. Whoever has an exception finds the frame of generated code in its
traceback, and by the table in that frame's module the line of the node. Nothing of this runs before somebody asks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Source:
    path: str
    lines: Mapping[int, int] = field(default_factory=dict)
    """Lines of the module where something can end it, each with the line of the node."""
    clauses: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The texts of the clauses by phase."""

    def line(self, of_module: int) -> int | None:
        """The line of the node that a line of the module was written for, where something can end it."""
        return self.lines.get(of_module)

    def clause(self, phase: str, index: int) -> str | None:
        texts = self.clauses.get(phase, ())
        return texts[index] if index < len(texts) else None


class Origin(NamedTuple):
    """A place in a node: its table, and the line where it is known."""

    source: Source
    line: int | None

    def __str__(self) -> str:
        return self.source.path if self.line is None else f"{self.source.path}:{self.line}"


def origin(traceback: TracebackType | None) -> Origin | None:
    """Where in a node an exception was raised: the innermost frame of generated code; None if there is none."""
    found = None
    while traceback is not None:
        source = traceback.tb_frame.f_globals.get("SOURCE")
        if isinstance(source, Source):
            found = Origin(source, source.line(traceback.tb_lineno))
        traceback = traceback.tb_next
    return found
