"""Ids of nodes: a name and a version, such as `payment_decision_v1`."""

from __future__ import annotations

import re

MAX_NAME = 64
NODE_ID_HELP = "write a name and a version, such as `payment_decision_v1`"
_NODE_ID = re.compile(r"(?P<name>[a-z][a-z0-9_]*)_v(?P<version>[1-9][0-9]*)", re.ASCII)


def split_node_id(text: str) -> tuple[str, int] | None:
    """Return the name and version of an id; None for other texts."""
    match = _NODE_ID.fullmatch(text) if len(text) <= MAX_NAME else None
    return None if match is None else (match["name"], int(match["version"]))


def is_of_node(node_id: str, wanted: str) -> bool:
    """Return whether the id is the one wanted, or a version of the name wanted."""
    parts = split_node_id(node_id)
    return node_id == wanted or (parts is not None and parts[0] == wanted)
