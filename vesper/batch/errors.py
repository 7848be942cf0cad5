"""The exception for a table that cannot be run. Problems of a row are in the row."""

from __future__ import annotations

from vesper.values.vesper_error import VesperError


class BatchError(VesperError):
    """A table that does not fit the node, or a file that cannot be read or written. Not all rows were run."""
