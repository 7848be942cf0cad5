"""The packages of pages, in the order of the menu."""

from __future__ import annotations

from typing import Final

PACKAGES: Final[tuple[str, ...]] = (
    # One line for each package: its full name, such as "vesper.dashboard.pages.fleet".
    "vesper.dashboard.pages.fleet",
    "vesper.dashboard.pages.node",
    "vesper.dashboard.pages.flow",
    "vesper.dashboard.pages.executions",
)
"""Packages with `PAGES`, `ACTIONS` and, optionally, `ROUTES`."""
