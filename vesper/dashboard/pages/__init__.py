"""The packages of pages, in the order of the menu."""

from __future__ import annotations

from typing import Final

PACKAGES: Final[tuple[str, ...]] = (
    # One line for each package: its full name.
    "vesper.dashboard.pages.fleet",
    "vesper.dashboard.pages.node",
    "vesper.dashboard.pages.versions",
    "vesper.dashboard.pages.flow",
    "vesper.dashboard.pages.divergences",
    "vesper.dashboard.pages.executions",
    "vesper.dashboard.pages.stepping",
    "vesper.dashboard.pages.waiting",
    "vesper.dashboard.pages.queues",
    "vesper.dashboard.pages.schedules",
    "vesper.dashboard.pages.topics",
    "vesper.dashboard.pages.agents",
    "vesper.dashboard.pages.kernel",
    "vesper.dashboard.pages.journal",
    "vesper.dashboard.pages.audit",
    "vesper.dashboard.pages.batches",
    "vesper.dashboard.pages.verification",
    "vesper.dashboard.pages.alerts",
    "vesper.dashboard.play",
)
"""Packages with `PAGES`, `ACTIONS` and, optionally, `ROUTES`."""
