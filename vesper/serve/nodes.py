"""The nodes that a server offers: found, loaded and warmed with the Host and the routes of one configuration."""

from __future__ import annotations

import logging
import time
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
from vesper.serve.work import Work, find_work_files, has_work, load_files, name_of
from vesper.values.vesper_error import VesperError

if TYPE_CHECKING:
    from vesper.api.node import Node
    from vesper.migration.router.routes import Routes
    from vesper.serve.runs.operations import Runs

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
        files = node_files(_folders(roots))
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


def _folders(roots: Sequence[str]) -> list[Path]:
    return [Path(each) for each in roots or (FOLDER,)]


class Service:
    """The nodes of one epoch of a worker, with their Host and routes."""

    def __init__(self, config: Config, options: Options, old: Routes | None) -> None:
        """Load all nodes. Raises `VesperError`, after closing everything.

        `old` are the routes of the previous epoch, which are kept if their settings are unchanged.
        """
        self.config = config
        self.host = Host(config)
        self.routes = old
        self.work: Work | None = None
        self.work_problems: dict[str, str] = {}
        """Errors of nodes that are left out of the background work, by id."""
        self._owns_routes = False
        try:
            if options.engine == AUTO and (old is None or not _has_same_routes(old, config)):
                from vesper.migration.router.routes import Routes

                self.routes, self._owns_routes = Routes(config), True
            expose = (*config.serve.expose, *options.expose)
            self.nodes = self._load(options.nodes, expose, ENGINES[options.engine])
            self.background = self._load_background(options.nodes, ENGINES[options.engine])
            self._warm()
            self._leads = [(each, each.id) for each in dict.fromkeys((*self.nodes, *self.background))]
        except BaseException:
            self.close(0.0)
            raise

    def inherit_routes(self, old: Service) -> None:
        """Own the routes of the previous service if they are the same object."""
        if self.routes is old.routes:
            self._owns_routes, old._owns_routes = old._owns_routes, False

    def _load(self, roots: Sequence[str], expose: Sequence[str], engine: str) -> list[Node]:
        paths = find_served(roots, expose)
        loaded = load_files(paths, _folders(roots), self.host, self.routes, engine)
        led = {each.name for each in loaded if each.served_as != each.id}
        functions = {each.name for each in loaded if each.name in led and each._compiled.http is None}
        for path in paths:  # a version of a function keeps the address with its id beside that of the name
            if name_of(path) in functions and matches_node(expose, id_of(path)):
                loaded.append(load(path, engine=engine, host=self.host, routes=self.routes))
        found = [
            each
            for each in loaded
            if each._compiled.http is not None or each.name in led or matches_node(expose, each.id)
        ]
        by_route: dict[str, Node] = {}
        for each in found:
            http = each._compiled.http
            route = f"POST /nodes/{each.served_as}" if http is None else http.route
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

    def _load_background(self, roots: Sequence[str], engine: str) -> list[Node]:
        """Load the nodes with a schedule, a topic or a queue. Served ones are used as they are.

        A file that is not served and cannot run is left out, so that requests are answered without it.
        """
        served = {Path(each.path).resolve(): each for each in self.nodes}
        led = {each.name: each for each in self.nodes if each.name in self.config.versions}
        paths = find_work_files(_folders(roots))
        found = []
        for path in paths:
            node = served.get(path.resolve()) or led.get(name_of(path) or "")
            try:
                if node is None:
                    (node,) = load_files([path], _folders(roots), self.host, self.routes, engine)
                    if has_work(node):
                        self._warm_node(node)
                    if node.name in self.config.versions:
                        led[node.name] = node
            except VesperError as problem:
                text = self.host.redact(str(problem))
                _log.error("%s is left out of the background work: %s", path, text)
                self.work_problems[id_of(path)] = text
                continue
            if has_work(node) and node not in found:
                found.append(node)
        return found

    @property
    def has_new_lead(self) -> bool:
        """Return whether another version became the lead of a name since the service was loaded."""
        return any(node.id != lead for node, lead in self._leads)

    def start_work(self) -> None:
        """Start keeper, queues, schedules and topics, if any node has effects."""
        if self.has_effects and self.work is None:
            self.work = Work(self.host, list(dict.fromkeys([*self.nodes, *self.background])))
            self.work.start()

    def _warm(self) -> None:
        """Prepare everything that a first request would wait for. Raises `ConfigError` for a node that cannot run."""
        for node in self.nodes:
            self._warm_node(node)
        if self.has_effects:
            self.host.journal.unfinished(1)
            self.host.start()

    def _warm_node(self, node: Node) -> None:
        assert callable(node.run_json)  # makes the entry
        if not is_hosted(node):
            return
        prepared = node._prepare(self.host)
        prepared.compiled.kept.save()
        if prepared.refused:
            _log.warning("no grant allows %s %s: its requests are denied", node.id, ", ".join(prepared.refused))
        else:
            self.host.check_equipped(prepared.compiled.node, prepared.plans)

    @cached_property
    def openapi(self) -> bytes:
        """Return the OpenAPI document."""
        from vesper.serve.openapi.document import openapi_json

        return openapi_json(
            [each._compiled for each in self.nodes if not _is_alias(each)], self.config.serve, has_runs=self.has_runs
        )

    @property
    def has_effects(self) -> bool:
        return any(map(is_hosted, (*self.nodes, *self.background)))

    @property
    def has_runs(self) -> bool:
        """Return whether `/runs` has endpoints: they are configured, and a served node has effects."""
        return self.config.serve.has_runs and any(map(is_hosted, self.nodes))

    @cached_property
    def runs(self) -> Runs:
        """Return the operations of `/runs`."""
        from vesper.serve.runs.operations import Runs

        return Runs(self)

    def close(self, seconds: float) -> None:
        """Wait for runs that are under way, at most `seconds`. Recovery finishes the others."""
        until = time.monotonic() + seconds
        if self.work is not None and not self.work.stop(seconds):
            _log.warning("background work has not ended within %g s; recovery finishes its runs", seconds)
        self.host.close(max(0.0, until - time.monotonic()))
        if self._owns_routes and self.routes is not None:
            self.routes.close()


def _is_alias(node: Node) -> bool:
    """Return whether a function is served at a name, whose versions the document describes at their ids."""
    return node._compiled.http is None and node.served_as != node.id


def is_hosted(node: Node) -> bool:
    """Return whether runs of a node need the Host."""
    return node._entries is None


def is_sensitive(node: Node) -> bool:
    """Return whether messages about a run of the node may repeat sensitive values."""
    return plans_of(node._compiled).is_sensitive


def native_program(node: Node) -> object | None:
    """Return the program that the server can execute without Python. None if Python must see each call."""
    entries, program = node._entries, node._program
    if entries is None or entries.sampling is not None or node._limits is not None:
        return None
    return program.native if isinstance(program, FastEntry) else None


def _has_same_routes(routes: Routes, config: Config) -> bool:
    return (routes.config.folder, routes.settings, routes.config.engine) == (
        config.folder,
        config.migration_settings(),
        config.engine,
    )
