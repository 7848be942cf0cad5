"""The nodes that a server offers: found, loaded and warmed with the Host and the routes of one configuration."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from vesper.api.load import AUTO, load
from vesper.config.grants import matches_node
from vesper.config.settings import Config
from vesper.effects.settings import ConfigError
from vesper.engines.engine import FastEntry
from vesper.engines.registry import TIERED
from vesper.host.host import Host
from vesper.host.plans import plans_of
from vesper.repository.locate import FOLDER, NodeNotFound, id_of, is_library_file, node_files
from vesper.serve.control import Options
from vesper.values.vesper_error import VesperError

if TYPE_CHECKING:
    from vesper.api.node import Node
    from vesper.migration.router.routes import Routes

_log = logging.getLogger("vesper.serve")
ENGINES = {AUTO: AUTO, "python": "python", "direct": TIERED}
"""Names of the option `--engine`, and of engines."""


class NothingServed(VesperError):
    """No node is to be served."""


def find_served(roots: Sequence[str], expose: Sequence[str]) -> list[Path]:
    """Return the files of nodes that may be served: handlers, and those that `expose` names.

    Raises `NothingServed` for a pattern without a node, and for a folder that does not exist.
    """
    unused = set(expose)
    found = []
    try:
        files = node_files([Path(each) for each in roots or (FOLDER,)])
    except NodeNotFound as problem:
        raise NothingServed(str(problem)) from None
    for path in files:
        if is_library_file(path):
            continue
        node_id = id_of(path)
        matching = {pattern for pattern in expose if matches_node((pattern,), node_id)}
        unused -= matching
        if matching or b"http_handler" in path.read_bytes():
            found.append(path)
    if unused:
        named = ", ".join(f"`{each}`" for each in sorted(unused))
        raise NothingServed(f"there is no node that {named} exposes under {', '.join(roots) or FOLDER}")
    return found


class Service:
    """The nodes of one epoch of a worker, and what they run with."""

    def __init__(self, config: Config, options: Options, old: Routes | None) -> None:
        """Load all nodes. `old` are the routes of the epoch before, which are kept where their settings are the same.

        Raises `VesperError`; nothing stays open then.
        """
        self.config = config
        self.host = Host(config)
        self.routes = old
        self._owns_routes = False
        try:
            if options.engine == AUTO and (old is None or not _has_same_routes(old, config)):
                from vesper.migration.router.routes import Routes

                self.routes, self._owns_routes = Routes(config), True
            expose = (*config.serve.expose, *options.expose)
            self.nodes = self._load(options.nodes, expose, ENGINES[options.engine])
            self._warm()
        except BaseException:
            self.close(0.0)
            raise

    def inherit_routes(self, old: Service) -> None:
        """Own the routes of the service before, if they are the same."""
        if self.routes is old.routes:
            self._owns_routes, old._owns_routes = old._owns_routes, False

    def _load(self, roots: Sequence[str], expose: Sequence[str], engine: str) -> list[Node]:
        loaded = [load(path, engine=engine, host=self.host, routes=self.routes) for path in find_served(roots, expose)]
        found = [each for each in loaded if each._compiled.http is not None or matches_node(expose, each.id)]
        by_route: dict[str, Node] = {}
        for each in found:
            http = each._compiled.http
            route = f"POST /nodes/{each.id}" if http is None else http.route
            other = by_route.setdefault(route, each)
            if other.name != each.name:
                raise ConfigError(each.path, f"`{route}` is answered by {other.path}, too: serve one of them")
            if each.version > other.version:
                by_route[route] = each
        found = list(by_route.values())
        if not found:
            raise NothingServed(
                f"there is nothing to serve under {', '.join(roots) or FOLDER}: "
                "add `http:` to a handler, or name nodes by --expose"
            )
        return found

    def _warm(self) -> None:
        """Prepare all that a first request would wait for. Raises `ConfigError` for a node that cannot run."""
        for node in self.nodes:
            assert callable(node.run_json)  # makes the entry
            if not is_hosted(node):
                continue
            prepared = node._prepare(self.host)
            prepared.compiled.kept.save()
            if prepared.refused:
                _log.warning("no grant allows %s %s: its requests are denied", node.id, ", ".join(prepared.refused))
            else:
                self.host.check_equipped(prepared.compiled.node, prepared.plans)
        if self.has_effects:
            self.host.journal.unfinished(1)
            self.host.start()

    @cached_property
    def openapi(self) -> bytes:
        """The OpenAPI document."""
        from vesper.serve.openapi.document import openapi_json

        return openapi_json([each._compiled for each in self.nodes], self.config.serve)

    @property
    def has_effects(self) -> bool:
        return any(map(is_hosted, self.nodes))

    def close(self, seconds: float) -> None:
        """Wait for runs that are under way, at most `seconds`; recovery finishes the others."""
        self.host.close(seconds)
        if self._owns_routes and self.routes is not None:
            self.routes.close()


def is_hosted(node: Node) -> bool:
    """Return whether runs of a node need the Host."""
    return node._entries is None


def is_sensitive(node: Node) -> bool:
    """Return whether messages about a run of the node may repeat sensitive values."""
    return plans_of(node._compiled).is_sensitive


def native_program(node: Node) -> object | None:
    """Return what the server can run without Python; None where Python has to see each call."""
    entries, program = node._entries, node._program
    if entries is None or entries.sampling is not None or node._limits is not None:
        return None
    return program.native if isinstance(program, FastEntry) else None


def _has_same_routes(routes: Routes, config: Config) -> bool:
    return (routes.config.folder, routes.settings, routes.config.engine) == (
        config.folder,
        config.migrating(),
        config.engine,
    )
