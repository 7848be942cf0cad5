"""Clients of the dashboard, for tests of pages and actions."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from pathlib import Path

from vesper.config.settings import Config, default_config
from vesper.dashboard.access.caller import Caller, Role
from vesper.dashboard.access.guard import Access
from vesper.dashboard.app import Site, make_app
from vesper.dashboard.page import Context
from vesper.dashboard.stores import Stores

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # Starlette prefers a successor of httpx that nothing else needs
    from starlette.testclient import TestClient


def client_of(
    config: Config | Path, site: Site | None = None, roles: Iterable[Role] = Role, name: str = "ann"
) -> TestClient:
    """Return a client with these roles; `with` it closes the stores. A folder stands for its default settings."""
    if isinstance(config, Path):
        config = default_config(config)
    access = Access(Caller(name, frozenset(roles), "Ask for a key."))
    app = make_app(Stores(config), access, site)
    headers = {"x-csrf": access.local_session.token()}
    return TestClient(app, base_url="http://127.0.0.1:8001", headers=headers)


def context_for(
    stores: Stores, query: dict[str, str] | None = None, now_us: int = 0, roles: Iterable[Role] = Role, **path: str
) -> Context:
    """Return a context as a page's `read` gets it."""
    caller = Caller("ann", frozenset(roles))
    return Context(stores, path, query or {}, caller, now_us) if now_us else Context(stores, path, query or {}, caller)


__all__ = ["TestClient", "client_of", "context_for"]
