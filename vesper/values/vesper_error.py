"""Base class of every exception that Vesper raises for users to catch."""

from __future__ import annotations


class VesperError(Exception):
    """An error reported by Vesper. Misuse of the API raises `TypeError` or `ValueError` instead."""
