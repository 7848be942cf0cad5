"""The playground: an editor for nodes, in the dashboard."""

from __future__ import annotations

from vesper.dashboard.play import authoring, routes
from vesper.dashboard.play.page import PAGE

PAGES = (PAGE,)
ROUTES = (*routes.ROUTES, *authoring.ROUTES)

__all__ = ["PAGES", "ROUTES"]
