"""The nodes of a worker, loaded with its Host."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vesper.api.load import load
from vesper.engines.registry import TIERED

if TYPE_CHECKING:
    from vesper.api.node import Node
    from vesper.host.host import Host
    from vesper.migration.router.routes import Routes


def load_nodes(files: Sequence[Path], engine: str, host: Host, routes: Routes | None) -> list[Node]:
    """Load files on an engine: `auto`, `python` or `direct`. Raises `VesperError`."""
    name = TIERED if engine == "direct" else engine
    loaded = [load(each, engine=name, host=host, routes=routes) for each in files]
    for each in loaded:
        if each._entries is None:  # it has effects
            prepared = each._prepare(host)
            host.check_equipped(prepared.compiled.node, prepared.plans)
    return loaded
