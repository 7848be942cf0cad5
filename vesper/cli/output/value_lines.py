"""Values as text in the width of the terminal."""

from __future__ import annotations

from collections.abc import Mapping

from vesper.cli.output.terminal import columns
from vesper.journal.value_layout import lay_out, pad

__all__ = ["pad", "value_lines"]


def value_lines(rows: Mapping[str, object], indent: str = "  ") -> list[str]:
    """Align names and values; a value that does not fit on the line follows below its name."""
    return lay_out(rows, columns(), indent)
