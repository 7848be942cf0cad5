"""The playground: an editor for nodes, in the dashboard."""

from __future__ import annotations

from vesper.dashboard.play.page import PAGE
from vesper.dashboard.play.routes import ROUTES

PAGES = (PAGE,)

__all__ = ["PAGES", "ROUTES"]
