"""Stored divergences by their address: node and fingerprint."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vesper.dashboard.page import Context, filled
from vesper.dashboard.problem import NotFound, Problem, Refused
from vesper.dashboard.service import open_configured
from vesper.dashboard.stores import require_trusted
from vesper.migration.stores.configured import OpenStore
from vesper.migration.stores.kept_divergences import (
    ChangedNode,
    StoredDivergence,
    check_definition,
    current_epochs,
    newest_of,
    read_divergences,
)
from vesper.migration.stores.store import keys_of
from vesper.values.model import printable

if TYPE_CHECKING:
    from pathlib import Path

    from vesper.compiler import Compiled

DETAIL = "/divergences/{node}/{fingerprint}"


def find_divergence(context: Context) -> tuple[OpenStore, StoredDivergence, bool]:
    """Return the divergence of the address in its newest epoch, and whether that is the current one."""
    opened = open_configured(context.stores)
    node, fingerprint = context.path["node"], context.path["fingerprint"]
    keys = [key for key in keys_of(opened.store) if key.node == node]
    kept, _ = read_divergences(opened.store, keys)
    found = [each for each in kept if each.divergence.fingerprint == fingerprint]
    if not found:
        raise NotFound(
            f"the store has no divergence `{printable(fingerprint[:80])}` of `{printable(node[:80])}`",
            "It may have been removed with an old epoch: see the list of all divergences.",
        )
    current = current_epochs(opened.store, keys, opened.settings)
    newest = newest_of(found, current)
    return opened, newest, newest.key in current


def unchanged_node(context: Context, found: StoredDivergence) -> tuple[Path, Compiled]:
    """Return the file of the node and the node, if trusted and as it was at the divergence. Raises `Refused`."""
    node = found.divergence.node
    try:
        path = context.stores.nodes.path(node)
        compiled, _ = context.stores.nodes.compiled(node)
    except Problem as problem:
        raise Refused(problem.what, problem.remedy) from None
    if compiled is None:
        raise Refused(f"{path.name} has errors", f"`vesper check {path.name}` shows them.")
    try:
        check_definition(compiled, found.divergence, path.name)
    except ChangedNode as problem:
        command = f"vesper divergences shrink {printable(found.divergence.fingerprint)} --node-file FILE"
        raise Refused(str(problem), f"With the former file: `{command}`.") from None
    require_trusted(compiled)
    return path, compiled


def detail_address(found: StoredDivergence, suffix: str = "") -> str:
    """Return the address of the page of a divergence."""
    return filled(DETAIL, {"node": found.divergence.node, "fingerprint": found.divergence.fingerprint}) + suffix
