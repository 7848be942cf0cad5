"""Keeping a divergence as a case of its node: the diff first, then the file."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from vesper.dashboard.action import Done
from vesper.dashboard.page import Context
from vesper.dashboard.pages.divergences.stored import detail_address, find_divergence, unchanged_node
from vesper.dashboard.problem import Refused
from vesper.migration.stores.kept_divergences import SMALL_GIVEN, StoredDivergence
from vesper.replay.divergence_case import CannotKeep, text_with_case
from vesper.replay.fixing import yaml_diff
from vesper.storage.write_file import replace_same
from vesper.values.model import printable


@dataclass(frozen=True, slots=True)
class KeptCase:
    """The change of the file that keeps the divergence."""

    node: str
    fingerprint: str
    path: str
    """Path of the file, relative to the folder of the nodes."""
    sha256: str
    """Hash of the present text, which the action checks."""
    diff: str
    is_small: bool
    """Whether the case is the smallest one, not a stored execution."""


def read_case(context: Context) -> KeptCase:
    _, found, _ = find_divergence(context)
    before, after, shown = _texts(context, found, "(the reason)")
    divergence = found.divergence
    return KeptCase(
        divergence.node,
        divergence.fingerprint,
        shown,
        _sha256(before),
        yaml_diff(shown, before, after),
        SMALL_GIVEN in divergence.extra,
    )


def keep_case(context: Context, fields: Mapping[str, str]) -> Done:
    """Write the case of the divergence into the file of its node."""
    _, found, _ = find_divergence(context)
    before, after, shown = _texts(context, found, fields["reason"])
    path, sha256 = context.stores.nodes.path(found.divergence.node), _sha256(before)
    try:
        if fields.get("sha256") != sha256 or not replace_same(path, after, sha256):
            raise Refused(f"{shown} has changed since the diff was shown", "Look at the new diff and write it then.")
    except OSError as problem:
        reason = printable(problem.strerror or str(problem))
        raise Refused(f"{shown} cannot be written: {reason}", "Give the dashboard's user write access.") from None
    return Done(f"Wrote the case to {shown}: `vesper test {found.divergence.node}` runs it", detail_address(found))


def _texts(context: Context, found: StoredDivergence, reason: str) -> tuple[str, str, str]:
    """Return the text of the node before and after, and its path. Raises `Refused`."""
    path, compiled = unchanged_node(context, found)
    divergence = found.divergence
    if divergence.kind == "noise":
        raise Refused("an engine differs from itself here, now and then: no case shows that", "Close it.")
    if any(":" in name for name in divergence.engines):
        raise Refused(
            "a case holds the outcome of the node, and here an adopted function differs from it",
            f"`vesper divergences shrink {divergence.fingerprint} --against MODULE:FUNCTION` writes a case of both.",
        )
    day = datetime.fromtimestamp(context.now_us / 1e6, UTC).date().isoformat()
    comment = f"Kept by {context.caller.name} on {day}: {' '.join(reason.split())}"
    try:
        after = text_with_case(compiled, divergence, comment)
    except CannotKeep as problem:
        execution = next((each.execution for each in divergence.exemplars), "EXECUTION")
        raise Refused(
            printable(str(problem)), f"A journalled run: `vesper traces to-test {printable(execution)}`."
        ) from None
    return compiled.source.text, after, path.relative_to(context.stores.nodes.folder).as_posix()


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
