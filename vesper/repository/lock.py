"""`vesper.lock`: the version selected for each name, and the hash of each called node and used library.

TOML with one table per node: `[fee_schedule]`, `id = "fee_schedule_v2"`, `hash = "…"`. Written by `vesper nodes lock`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from vesper.storage.file_access import read_regular
from vesper.values.node_id import split_node_id

LOCK_NAME = "vesper.lock"
_HEAD = "# Which nodes are called, and what they mean. Written by `vesper nodes lock`; do not edit.\n"
_HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)
_MAX_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class PinnedNode:
    """An entry of the lock file."""

    node_id: str
    semantic_hash: str


@dataclass(frozen=True, slots=True)
class Lock:
    """The contents of the lock file."""

    nodes: dict[str, PinnedNode]
    """Entries by node name without version."""

    def differs(self, node_id: str, semantic_hash: str) -> str | None:
        """Return how a node differs from its entry, or None. The text follows `vesper.lock` in a message."""
        parts = split_node_id(node_id)
        pinned = None if parts is None else self.nodes.get(parts[0])
        if pinned is None or pinned.node_id != node_id or pinned.semantic_hash == semantic_hash:
            return None
        return f"pins another `{node_id}`: its meaning has changed"


class LockProblem(Exception):
    """The reason why the lock file cannot be used, to follow `vesper.lock` in a message."""


def read_lock(root: Path) -> Lock | LockProblem:
    """Return the lock of a folder of nodes. It is empty where there is no file."""
    try:
        data = read_regular(root / LOCK_NAME, _MAX_BYTES)
    except FileNotFoundError:
        return Lock({})
    except OSError as error:
        return LockProblem(f"cannot be read: {error.strerror}")
    try:
        table = tomllib.loads(data.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        return LockProblem(f"is no TOML: {error}")
    nodes: dict[str, PinnedNode] = {}
    for name, entry in table.items():
        if not isinstance(entry, dict) or set(entry) != {"id", "hash"}:
            return LockProblem(f"has an entry `{name}` that is not `id` and `hash`")
        node_id, semantic_hash = entry["id"], entry["hash"]
        parts = split_node_id(node_id) if isinstance(node_id, str) else None
        if (
            parts is None
            or parts[0] != name
            or not isinstance(semantic_hash, str)
            or not _HASH.fullmatch(semantic_hash)
        ):
            return LockProblem(f"has an entry `{name}` with an id or a hash that is none")
        nodes[name] = PinnedNode(node_id, semantic_hash)
    return Lock(nodes)


def lock_text(nodes: Iterable[PinnedNode]) -> str:
    """Return the text of the lock file for these nodes, in order of their names."""
    lines = [_HEAD]
    for pinned in sorted(nodes, key=lambda each: each.node_id):
        parts = split_node_id(pinned.node_id)
        assert parts is not None
        lines.append(f'\n[{parts[0]}]\nid = "{pinned.node_id}"\nhash = "{pinned.semantic_hash}"\n')
    return "".join(lines)
