"""Load a node: find its file, compile it, and load it on an engine."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Literal

from vesper.api.call_entry import entries_of
from vesper.api.description import describe
from vesper.api.errors import NodeError, UnknownNode
from vesper.api.node import Node
from vesper.compiler.load_cache import compile_cached, distrust_node
from vesper.config.locate import may_have_table
from vesper.engines.engine import LIMIT_NAMES, EngineUnavailable, Limits, limits_of_node
from vesper.engines.registry import NAMES, TIERED, engine_named

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vesper.api.names.led_node import Wrap
    from vesper.compiler import Compiled
    from vesper.config.versions import VersionSettings
    from vesper.engines.engine import Engine, Program
    from vesper.host.host import Host
    from vesper.language.diagnostics.diagnostic import DiagnosticBag
    from vesper.migration.router.routes import Routes
    from vesper.observe.settings import ObserveSettings

AUTO = "auto"
"""In place of an engine: the mode of the node selects the engine of each call."""


def load(
    node: str | os.PathLike[str],
    *,
    nodes: str | os.PathLike[str] | None = None,
    engine: str | None = None,
    limits: Limits | None = None,
    host: Host | None = None,
    routes: Routes | None = None,
    results: bool | None = None,
    isolation: Literal["none", "sandbox"] = "none",
    overlay: str | os.PathLike[str] | None = None,
) -> Node:
    """Load a node: by its id, by its name without a version (then the newest), or by the path of its file.

    Names are searched under `nodes`: by default in the folder of the environment variable VESPER_NODES, or else in
    `nodes`. The file is read each time; a loaded node does not change. `limits` apply to each call; by default it has
    the default fuel and memory, and unlimited time. A node may declare less (`performance`). `host` performs the
    effects of the node; by default it is the Host of the nearest `vesper.toml`.

    Without an `engine`, calls run on `python`, and `run_batch` and long lists of `map` on the direct engine where it is
    available.

    On the engine `auto`, the mode of the node selects the engine of each call: Python leads and the direct engine
    follows, until the evidence promotes it (docs/how-to/roll-out-a-node.md). `routes` hold the objects
    that these nodes share, such as the store of their modes; by default they are those of the configuration.

    `results=True` caches the results of a node that is a function of its inputs, with the settings of
    `[cache.results]`; False caches nothing; by default the nodes that the configuration names are cached
    (docs/how-to/use-caches.md). The engine `auto` caches nothing: it compares two engines.

    `isolation="sandbox"` is for an untrusted node: the direct engine's interpreter runs it in a confined worker
    process (docs/how-to/run-untrusted-nodes.md), and an execution has ten seconds by default.

    A name that `[versions]` of the configuration lists is its lead, and its candidate follows
    (docs/how-to/try-a-candidate.md).

    `overlay` is a file with other values of parameters (docs/how-to/use-values-that-change-with-time.md). The node has
    another semantic hash then, and the engine `auto` refuses it: evidence is about the node as written.
    """
    named, engine = engine, engine or "python"
    if engine not in NAMES and engine != AUTO:
        raise ValueError(f"no engine `{engine}`; the engines are {', '.join(NAMES)}, and `{AUTO}` for both")
    if results and engine == AUTO:
        raise ValueError(
            "results=True needs one engine: `auto` compares what two come to, and a kept result is neither"
        )
    if not isinstance(limits, Limits | None):
        raise TypeError(f"limits are vesper.Limits(fuel=…, seconds=…, memory=…), not {type(limits).__name__}")
    if isolation not in ("none", "sandbox"):
        raise ValueError(f"no isolation `{isolation}`; there are none and sandbox")
    if isolation == "sandbox" and (engine not in ("python", "interp") or results):
        raise ValueError(
            'isolation="sandbox" runs on the direct engine\'s interpreter and caches nothing: omit engine and results'
        )
    if overlay is not None and engine == AUTO:
        raise ValueError("an overlay needs one engine: evidence of `auto` is about the node as written")
    path = _path(node, nodes)

    def load_file(path: str, wrap: Wrap | None = None) -> Node:
        return _load_file(path, overlay, engine, named, limits, host, routes, results, isolation, wrap)

    settings = _version_settings(node, path, host)
    if settings is None:
        return load_file(path)
    if overlay is not None:
        raise ValueError(f"an overlay needs one version: `{node}` has a lead and a candidate; name the version")
    return _load_led(str(node), settings, lambda version: _path(version, nodes), load_file, host, routes)


def load_name(name: str, files: Mapping[str, str], *, engine: str, host: Host, routes: Routes | None = None) -> Node:
    """Load a name that `[versions]` of the Host's configuration lists. `files` are those of its versions, by id."""

    def find(version: str) -> str:
        if version not in files:
            raise UnknownNode(f"[versions.{name}] names `{version}`, and no file declares it")
        return files[version]

    def load_file(path: str, wrap: Wrap | None = None) -> Node:
        return _load_file(path, None, engine, engine, None, host, routes, None, "none", wrap)

    return _load_led(name, host.config.versions[name], find, load_file, host, routes)


def _load_led(
    name: str,
    settings: VersionSettings,
    find: Callable[[str], str],
    load_file: Callable[[str, Wrap | None], Node],
    host: Host | None,
    routes: Routes | None,
) -> Node:
    from vesper.api.names.led_node import load_led

    return load_led(
        name,
        settings,
        lambda version, wrap: load_file(find(version), wrap),
        lambda version: _compiled_file(find(version))[0],
        lambda path: routes or _default_routes(path, host),
    )


def _version_settings(node: str | os.PathLike[str], path: str, host: Host | None) -> VersionSettings | None:
    """Return the settings of a name without a version; None where the configuration does not list it."""
    if not isinstance(node, str) or (host is None and not may_have_table(path, "versions")):
        return None
    if host is not None:
        return host.config.versions.get(node)
    from vesper.config.locate import config_for

    return config_for(path).versions.get(node)


def _load_file(
    path: str,
    overlay: str | os.PathLike[str] | None,
    engine: str,
    named: str | None,
    limits: Limits | None,
    host: Host | None,
    routes: Routes | None,
    results: bool | None,
    isolation: str,
    wrap: Wrap | None,
) -> Node:
    """Load one version. `wrap` combines the program of a lead with that of its candidate."""
    compiled, messages = _compiled_file(path, overlay)
    limits = limits_of_node(limits, compiled.kept.fact("limits", lambda: _declared_limits(compiled)))
    name: str = engine
    direct = None
    try:
        program: Program
        if isolation == "sandbox":
            from vesper.migration.workers.sandboxed import SandboxEngine

            name = SandboxEngine.name
            program = SandboxEngine().load(compiled)
        elif engine == AUTO:
            program = (routes or _default_routes(path, host)).program(compiled)
        else:
            program = reference = _engine(engine, path, host).load(compiled)
            if results or (results is None and may_have_table(path, "cache")):
                from vesper.api.default_hosts import with_results

                program = with_results(compiled, program, engine, host, results)
            if named is None and program is reference:
                direct = partial(_load_direct, compiled, path, host)
        if wrap is not None:
            program = wrap(compiled, program)
        loaded = _node(compiled, program, name, limits, messages, host, direct)
    except EngineUnavailable as problem:
        raise NodeError(f"engine {engine}: {problem}") from None
    compiled.kept.save()
    return loaded


def _node(
    compiled: Compiled,
    program: Program,
    engine: str,
    limits: Limits | None,
    warnings: tuple[str, ...],
    host: Host | None,
    direct: Callable[[], Program] | None,
) -> Node:
    """Compose a node: its entries, the sampling of its calls, and the hooks of its Host."""
    about = describe(compiled)
    if about.is_hosted:
        if host is not None:
            from vesper.api.run_captures import attach_captures

            attach_captures(host)
        return Node(compiled, program, engine, limits, warnings, host)
    entries = entries_of(compiled, program, limits, about.takes_now)
    if host is not None or may_have_table(compiled.path, "traces"):
        from vesper.api.observed.trace_sampling import nearest_settings, with_sampling

        config = nearest_settings(compiled.path) if host is None else host.config
        entries = with_sampling(entries, compiled, engine, limits, config)
    observe = _observe_settings(compiled.path, host)
    if (observe is not None and observe.otlp is not None) or _has_tracer_provider():
        from vesper.api.observed.call_spans import with_spans

        entries = with_spans(entries, compiled, program, engine, observe, about.takes_now)
    return Node(compiled, program, engine, limits, warnings, host, entries, direct)


def _default_routes(path: str, host: Host | None) -> Routes:
    from vesper.api.default_hosts import default_routes

    return default_routes(path, host)


def _load_direct(compiled: Compiled, path: str, host: Host | None) -> Program:
    return _engine(TIERED, path, host).load(compiled)


def _observe_settings(path: str, host: Host | None) -> ObserveSettings | None:
    """Return the settings of telemetry of the Host or of the nearest configuration; None where it has none."""
    if host is not None:
        return host.config.observe
    if not may_have_table(path, "observe"):
        return None
    from vesper.api.observed.trace_sampling import nearest_settings

    config = nearest_settings(path)
    return None if config is None else config.observe


def _has_tracer_provider() -> bool:
    """Return whether the application has set a TracerProvider by now."""
    if "opentelemetry.trace" not in sys.modules:
        return False
    from vesper.observe.spans import application_tracer

    return application_tracer() is not None


def _declared_limits(compiled: Compiled) -> dict[str, int]:
    """Return the limits that the node declares: plain data, so that a warm process need not read the node."""
    policy = compiled.node.grants.policy
    return {name: value for name in LIMIT_NAMES if isinstance(value := policy.get(name), int)}


def _engine(name: str, path: str, host: Host | None) -> Engine:
    """Return the engine of this name, with the settings of the configuration."""
    if name != TIERED or (host is None and not may_have_table(path, "engine")):
        return engine_named(name)
    from vesper.api.default_hosts import engine_settings
    from vesper.engines.direct_engine import TieredEngine

    return TieredEngine(engine_settings(path) if host is None else host.config.engine)


def compiled_node(
    node: str | os.PathLike[str],
    nodes: str | os.PathLike[str] | None,
    overlay: str | os.PathLike[str] | None = None,
) -> tuple[Compiled, str, tuple[str, ...]]:
    """Return the node, its file, and the messages of the checker."""
    path = _path(node, nodes)
    compiled, messages = _compiled_file(path, overlay)
    return compiled, path, messages


def _compiled_file(path: str, overlay: str | os.PathLike[str] | None = None) -> tuple[Compiled, tuple[str, ...]]:
    if overlay is None:
        compiled, messages = compile_cached(path, _render)
    else:
        from pathlib import Path

        from vesper.compiler.overlay import compile_with_overlay

        compiled, bag = compile_with_overlay(Path(path), Path(overlay))
        messages = _render(bag)
    if compiled is None:
        raise NodeError("\n\n".join(messages))
    if (reason := distrust_node(compiled)) is not None:
        raise NodeError(reason)
    return compiled, messages


def _render(bag: DiagnosticBag) -> tuple[str, ...]:
    from vesper.language.diagnostics.render.full import render_full

    return tuple(render_full(bag.source, each) for each in bag.sorted())


def _path(node: str | os.PathLike[str], nodes: str | os.PathLike[str] | None) -> str:
    """Return the file of a node, as messages name it.

    For a path, as in a warm start, it imports neither `pathlib` nor the repository.
    """
    is_name = isinstance(node, str) and not node.endswith(".vsp") and "/" not in node
    if not is_name:
        file = _normal(os.fspath(node))
        if not os.path.isfile(file):  # noqa: PTH113
            raise UnknownNode(f"there is no file `{node if isinstance(node, str) else file}`")
        return file
    from pathlib import Path

    from vesper.repository.locate import FOLDER, FOLDER_VARIABLE, NodeNotFound, locate

    folder = os.environ.get(FOLDER_VARIABLE) or FOLDER if nodes is None else nodes
    try:
        return locate(str(node), Path(folder)).as_posix()
    except NodeNotFound as problem:
        raise UnknownNode(str(problem)) from None


def _normal(path: str) -> str:
    """Return the path as `pathlib` writes it: without doubled slashes and `.` parts."""
    parts = [each for each in path.split("/") if each not in ("", ".")]
    return ("/" if path.startswith("/") else "") + "/".join(parts) or "."
