"""The one class under which everything stands that Vesper raises for its users to catch."""

from __future__ import annotations


class VesperError(Exception):
    """Something that Vesper has to say. Misuse of the API itself is a `TypeError` or `ValueError`, as everywhere."""
