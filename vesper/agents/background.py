"""Agents of a process that serves or works: its supervisors' trees are started, and mailboxes are handled."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vesper.agents.node_table import node_table
from vesper.compiler.callees import collection_folder
from vesper.host.background_work import WorkState
from vesper.language.work_bindings import supervisor_of
from vesper.supervision.trees import Trees
from vesper.supervision.workers import AgentWorkers

if TYPE_CHECKING:
    from vesper.api.node import Node
    from vesper.host.host import Host


class Agents:
    """Background work of one Host (`vesper.host.background_work`)."""

    def __init__(self, host: Host, nodes: Sequence[Node], supervisors: Sequence[Node]) -> None:
        """`supervisors` have the highest version of each tree; agents are among `nodes` or beside their supervisor."""
        table = node_table(host)
        for each in nodes:
            table.add(each)
        for each in supervisors:
            table.search(collection_folder(Path(each._compiled.source.path)))
        self._trees = Trees(host.journal)
        self._supervisors = supervisors
        self._workers = AgentWorkers(host, table)

    def start(self) -> None:
        for each in self._supervisors:
            field = supervisor_of(each._compiled)
            assert field is not None  # selected by it
            self._trees.start(each.name, field, each.id)
        self._workers.start()

    def stop(self, timeout: float | None = None) -> bool:
        return self._workers.stop(timeout)

    def state(self) -> WorkState:
        return self._workers.state()
