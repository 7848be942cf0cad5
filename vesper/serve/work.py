"""The background work of a process: keeper, workers of queues, schedules, consumers of topics, agents."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vesper.host.background_work import BackgroundWork, WorkState
from vesper.language.work_bindings import events_of, queue_of, schedule_of, supervisor_of
from vesper.repository.locate import id_of, is_library_file, node_files
from vesper.values.node_id import split_node_id

if TYPE_CHECKING:
    from vesper.api.node import Node
    from vesper.host.host import Host
    from vesper.migration.router.routes import Routes

_MARK = re.compile(rb"scheduled_job|event_handler|supervisor|queue[\"']?\s*:")
"""A node with background work has it: a type, or the key `queue`, which may be quoted."""


def find_work_files(roots: Sequence[Path]) -> list[Path]:
    """Return the files that may declare background work. Raises `NodeNotFound`."""
    files = (each for each in node_files(list(roots)) if not is_library_file(each))
    return [each for each in files if _MARK.search(each.read_bytes())]


def load_files(
    paths: Sequence[Path], roots: Sequence[Path], host: Host, routes: Routes | None, engine: str
) -> list[Node]:
    """Load nodes from files below `roots`.

    All versions of a name with a lead (`[versions]`) become one node: a candidate does not run by itself.
    """
    from vesper.api.load import load, load_name

    versions = host.config.versions
    if not versions:
        return [load(each, engine=engine, host=host, routes=routes) for each in paths]
    names = {each: name for each in paths if (name := name_of(each)) is not None and name in versions}
    found = [load(each, engine=engine, host=host, routes=routes) for each in paths if each not in names]
    for name in dict.fromkeys(names.values()):
        files = {id_of(each): str(each) for each in node_files(list(roots)) if name_of(each) == name}
        found.append(load_name(name, files, engine=engine, host=host, routes=routes))
    return found


def name_of(path: Path) -> str | None:
    """Return the name without a version of the node in a file."""
    split = split_node_id(id_of(path))
    return None if split is None else split[0]


def has_work(node: Node) -> bool:
    """Return whether a node declares a schedule, a topic, a queue or a tree of agents."""
    compiled = node._compiled
    found = schedule_of(compiled), events_of(compiled), queue_of(compiled), supervisor_of(compiled)
    return any(each is not None for each in found)


def _newest(nodes: Sequence[Node]) -> list[Node]:
    """Return the highest version of each node.

    Queues keep all versions, because they may contain runs of older ones.
    """
    found: dict[str, Node] = {}
    for each in sorted(nodes, key=lambda node: node.version):
        found[each.name] = each
    return list(found.values())


class Work:
    """All background work of one Host. `Host.start` starts the keeper, and `stop` stops it with the others."""

    def __init__(self, host: Host, nodes: Sequence[Node]) -> None:
        from vesper.agents.background import Agents
        from vesper.queues.workers import QueueWorkers
        from vesper.schedules.schedules import Schedules
        from vesper.topics.consumers import TopicConsumers

        self._keeper: BackgroundWork = host.keeper
        self._works: tuple[BackgroundWork, ...] = (
            QueueWorkers(host, nodes),
            Schedules(host, _newest([each for each in nodes if schedule_of(each._compiled) is not None])),
            TopicConsumers(host, _newest([each for each in nodes if events_of(each._compiled) is not None])),
            Agents(host, nodes, _newest([each for each in nodes if supervisor_of(each._compiled) is not None])),
        )

    def start(self) -> None:
        for each in self._works:
            each.start()

    def stop(self, seconds: float) -> bool:
        """Take no more work, and wait for the work under way. False if some continues after `seconds`."""
        until = time.monotonic() + seconds
        for each in (*self._works, self._keeper):
            each.stop(0.0)
        stopped = [each.stop(max(0.0, until - time.monotonic())) for each in (*self._works, self._keeper)]
        return all(stopped)

    def states(self) -> list[WorkState]:
        return [each.state() for each in (self._keeper, *self._works)]
