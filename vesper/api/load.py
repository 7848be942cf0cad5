"""From a name to a node that can be called: finds the file, compiles it, loads it on an engine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from vesper.api.errors import NodeError, UnknownNode
from vesper.api.node import Node
from vesper.api.sampled import sample_calls
from vesper.compiler import Compiled, compile_file
from vesper.diagnostics.render_full import render_full
from vesper.engines.direct_engine import TieredEngine
from vesper.engines.engine import EngineUnavailable, Limits
from vesper.engines.registry import ENGINES
from vesper.repository.locate import FOLDER, FOLDER_VARIABLE, NodeNotFound, locate

if TYPE_CHECKING:
    from vesper.engines.engine import Engine, Program
    from vesper.host.host import Host
    from vesper.migration.live.routes import Routes

AUTO = "auto"
"""In the place of an engine: both, as the mode of the node says."""


def load(
    node: str | os.PathLike[str],
    *,
    nodes: str | os.PathLike[str] | None = None,
    engine: str = "python",
    limits: Limits | None = None,
    host: Host | None = None,
    routes: Routes | None = None,
) -> Node:
    """Load a node: by its id, by its name without a version (then the newest), or by the path of its file.

    Names are looked for under `nodes`: by default in the folder that the environment variable VESPER_NODES names, or
    else in `nodes`. The file is read anew each time; what has been loaded does not change. `limits` are what one call
    may use up; without them it has the default fuel, and time without end. `host` performs the effects of a node that
    has any; without one it is that of the nearest `vesper.toml`.

    On the engine `auto` the mode of the node decides for each call: it begins on Python with the direct engine beside
    it, and is moved over as the evidence allows (docs/how-to/move-a-node-over.md). `routes` are what such nodes share:
    the store of their modes above all; without them they are those of the configuration.
    """
    if engine not in ENGINES and engine != AUTO:
        raise ValueError(f"no engine `{engine}`; the engines are {', '.join(ENGINES)}, and `{AUTO}` for both")
    if not isinstance(limits, Limits | None):
        raise TypeError(f"limits are vesper.Limits(fuel=…, seconds=…), not {type(limits).__name__}")
    compiled, path, said = compiled_node(node, nodes)
    try:
        program: Program
        if engine == AUTO:
            from vesper.api.hosting import default_routes

            program = (routes or default_routes(str(path), host)).program(compiled)
        else:
            program = _engine(engine, path, host).load(compiled)
        loaded = Node(compiled, program, engine, limits, said, host)
        sample_calls(loaded, host)
        return loaded
    except EngineUnavailable as problem:
        raise NodeError(f"engine {engine}: {problem}") from None


def _engine(name: str, path: Path, host: Host | None) -> Engine:
    """The engine of this name, as the configuration has it."""
    if name != TieredEngine.name:
        return ENGINES[name]
    if host is not None:
        return TieredEngine(host.config.engine)
    from vesper.api.hosting import engine_settings

    return TieredEngine(engine_settings(str(path)))


def compiled_node(
    node: str | os.PathLike[str], nodes: str | os.PathLike[str] | None
) -> tuple[Compiled, Path, tuple[str, ...]]:
    """The node, its file, and what the checker says of it."""
    path = _path(node, nodes)
    compiled, bag = compile_file(path)
    said = tuple(render_full(bag.source, each) for each in bag.sorted())
    if compiled is None:
        raise NodeError("\n\n".join(said))
    return compiled, path, said


def _path(node: str | os.PathLike[str], nodes: str | os.PathLike[str] | None) -> Path:
    if not isinstance(node, str):
        node = Path(node)
        if not node.is_file():
            raise UnknownNode(f"there is no file `{node}`")
        return node
    folder = os.environ.get(FOLDER_VARIABLE) or FOLDER if nodes is None else nodes
    try:
        return locate(node, Path(folder))
    except NodeNotFound as problem:
        raise UnknownNode(str(problem)) from None
