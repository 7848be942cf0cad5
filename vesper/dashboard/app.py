"""The application: pages, actions and raw routes of all packages behind the guard."""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware

from vesper.dashboard.access.guard import Access, Guard
from vesper.dashboard.access.login import login_routes
from vesper.dashboard.pages import PACKAGES
from vesper.dashboard.stores import Stores
from vesper.dashboard.views import Site, Views
from vesper.values.vesper_error import VesperError

_GZIP_LEVEL = 5


def whole_site(packages: Sequence[str] = PACKAGES) -> Site:
    """Return the pages, actions and raw routes of all packages."""
    modules = [importlib.import_module(each) for each in packages]
    return Site(
        tuple(page for each in modules for page in getattr(each, "PAGES", ())),
        tuple(action for each in modules for action in getattr(each, "ACTIONS", ())),
        tuple(route for each in modules for route in getattr(each, "ROUTES", ())),
    )


def make_app(stores: Stores, access: Access, site: Site | None = None) -> Starlette:
    """Return the application; it closes the stores when it ends."""
    views = Views(stores, whole_site() if site is None else site, has_logins=access.credentials is not None)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        yield
        views.live.close()
        stores.close()

    app = Starlette(
        routes=[*views.routes(), *login_routes(access, views.login)],
        lifespan=lifespan,
        middleware=[
            Middleware(GZipMiddleware, compresslevel=_GZIP_LEVEL),
            Middleware(Guard, access=access, show=views.problem),
        ],
        exception_handlers={VesperError: views.problem, HTTPException: views.http_problem},
    )
    app.state.stores = stores
    app.state.live = views.live
    return app


__all__ = ["Site", "make_app", "whole_site"]
