"""Nodes as HTTP services: `vesper serve`, and `app` for ASGI servers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vesper.serve.asgi import Application


def app(
    nodes: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    *,
    config: str | os.PathLike[str] | None = None,
    expose: Sequence[str] = (),
    engine: str = "auto",
) -> Application:
    """Return nodes as an ASGI application.

    `nodes` are files and folders, by default `nodes`. Handlers are served at the paths of their `http:`, and nodes that
    match a pattern of `expose` at `POST /nodes/ID`. `config` is the path of a `vesper.toml`, by default the nearest;
    its `[serve]` has authentication, limits and CORS. `engine` is `auto`, `python` or `direct`.
    """
    from vesper.serve.asgi import Application
    from vesper.serve.control import Options

    several = [nodes] if isinstance(nodes, str | os.PathLike) else nodes
    paths = tuple(os.fspath(each) for each in several)
    place = None if config is None else os.fspath(config)
    return Application(Options(nodes=paths, config=place, expose=tuple(expose), engine=engine))
