"""Nodes that agents of a Host run in this process."""

from __future__ import annotations

from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from vesper.api.errors import UnknownNode
from vesper.api.load import load
from vesper.host.host import Host
from vesper.host.prepared import Prepared

if TYPE_CHECKING:
    from vesper.api.node import Node

_lock = Lock()
_tables: WeakKeyDictionary[Host, NodeTable] = WeakKeyDictionary()


class NodeTable:
    """Nodes of a process by id and name; others are loaded when a message first needs them."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._nodes: dict[str, Node] = {}
        self._folders: list[Path | None] = [None]
        """Folders in which nodes are searched; None is the folder of `vesper.load`."""

    def add(self, node: Node) -> None:
        """Add a loaded node; its name means the highest version that was added."""
        self._nodes[node.id] = node
        known = self._nodes.get(node.name)
        if known is None or known.version <= node.version:
            self._nodes[node.name] = node

    def search(self, folder: Path) -> None:
        """Search a folder before those that were named earlier."""
        if folder not in self._folders:
            self._folders.insert(0, folder)

    def __call__(self, name: str) -> Prepared:
        found = self._nodes.get(name)
        if found is None:
            found = self._nodes[name] = self._load(name)
        return found._prepare(self._host)

    def _load(self, name: str) -> Node:
        for folder in self._folders[:-1]:
            try:
                return load(name, nodes=folder, host=self._host)
            except UnknownNode:
                continue
        return load(name, host=self._host)


def node_table(host: Host) -> NodeTable:
    """Return the table of a Host."""
    with _lock:
        if host not in _tables:
            _tables[host] = NodeTable(host)
        return _tables[host]
