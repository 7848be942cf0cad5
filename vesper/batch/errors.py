"""What is raised where a table cannot be run at all. What is wrong with a row stands in the row."""

from __future__ import annotations

from vesper.values.vesper_error import VesperError


class BatchError(VesperError):
    """A table that does not go with the node, or a file that cannot be read or written; nothing was run, or not all."""
