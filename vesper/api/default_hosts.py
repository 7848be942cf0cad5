"""Default Hosts, routes and result caches: one of each per configuration and process."""

from __future__ import annotations

import atexit
import os
import threading
from typing import TYPE_CHECKING

from vesper.storage.per_process import PerProcess

if TYPE_CHECKING:
    from vesper.cache.results import Results
    from vesper.compiler import Compiled
    from vesper.engines.engine import Program
    from vesper.engines.tiering import Tiering
    from vesper.host.host import Host
    from vesper.migration.router.routes import Routes

_hosts: dict[tuple[int, str | None], Host] = {}
_routes: dict[str, Routes] = {}
"""`Routes` handle forks themselves."""
_results: dict[str, Results] = {}
"""`Results` handle forks themselves."""
_lock = PerProcess(threading.Lock)


def default_host(node_path: str | None) -> Host:
    """Return the Host of the `vesper.toml` nearest to a node.

    The search begins in the working directory if `node_path` is None. Without a file, nothing is granted.
    """
    from vesper.api.run_captures import attach_captures
    from vesper.config.locate import nearest_config
    from vesper.config.settings import read_config
    from vesper.host.host import Host

    found = nearest_config(node_path)
    name = (os.getpid(), None if found is None else str(found.resolve()))
    with _lock.get():
        host = _hosts.get(name)
        if host is None or host.is_closed:
            host = Host(None if found is None else read_config(found))
            attach_captures(host)
            _hosts[name] = host
        return host


def default_routes(node_path: str, host: Host | None) -> Routes:
    """Return the routes of the Host's configuration, or else of the nearest `vesper.toml`."""
    from vesper.config.locate import config_for
    from vesper.migration.router.routes import Routes

    config = config_for(node_path) if host is None else host.config
    name = f"{config.path}|{config.folder}|{config.migration_settings().store}"
    with _lock.get():
        routes = _routes.get(name)
        if routes is None or routes.is_closed:
            routes = _routes[name] = Routes(config)
        return routes


def engine_settings(node_path: str) -> Tiering | None:
    """Return the `[engine]` settings of the nearest `vesper.toml`."""
    from vesper.config.locate import config_for

    return config_for(node_path).engine


def with_results(
    compiled: Compiled, program: Program, engine: str, host: Host | None, is_wanted: bool | None
) -> Program:
    """Return the program with a cache of results, if the caller or the configuration requests it.

    Raises `ConfigError` where the configuration names a node whose results cannot be cached.
    """
    from vesper.config.locate import config_for
    from vesper.effects.settings import ConfigError
    from vesper.host.results import CachedProgram, NotKept, results_of

    config = config_for(compiled.path) if host is None else host.config
    if not is_wanted and not config.results.names(compiled.node.node_id):
        return program
    with _lock.get():
        results = _results.get(name := f"{config.path}|{config.results}")
        if results is None:
            results = _results[name] = results_of(config.results)
    try:
        return CachedProgram(compiled, program, engine, results, config.results.shares_sensitive)
    except NotKept as problem:
        if is_wanted:
            raise
        raise ConfigError("cache.results.nodes", str(problem)) from None


def results_in_use() -> list[Results]:
    """Return the caches of results of this process."""
    return list(_results.values())


@atexit.register
def close_routes() -> None:
    """Flush pending evidence to the stores."""
    for routes in list(_routes.values()):
        routes.close()
    _routes.clear()


@atexit.register
def close_hosts() -> None:
    """Close the Hosts of this process. Runs that take longer than a lease are left to recovery."""
    for (pid, _), host in list(_hosts.items()):
        if pid == os.getpid():
            host.close(timeout=host.config.journal.lease)
    _hosts.clear()
