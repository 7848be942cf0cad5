"""The ways of the public API that apply to a node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vesper.api.description import describe
from vesper.cli.verify.ways.json_texts import RunJson
from vesper.cli.verify.ways.node_calls import Call, KeywordCall, Map, Start, load_node
from vesper.cli.verify.ways.routed import RoutedCalls
from vesper.cli.verify.ways.tables import JsonLines, Tables
from vesper.migration.control.modes import LADDER
from vesper.verify.differential.ways.repeated import repeated_ways
from vesper.verify.differential.ways.way import Subject, Way, WayMaker


def public_ways(subject: Subject) -> Sequence[Way]:
    """Return the ways of the API; a node that needs a Host is only started."""
    loaded = load_node(subject)
    found: list[Way] = [Start(loaded)]
    if describe(subject.compiled).is_hosted:
        return found
    found += [Call(loaded), Map(loaded), RunJson(loaded)]
    # One mode for each random program, because a route starts a thread.
    modes = [LADDER[subject.seed % len(LADDER)]] if subject.is_program else LADDER
    found += [RoutedCalls(loaded, mode) for mode in modes]
    arrow = _arrow()
    if arrow is not None:
        found += [Tables(loaded, arrow), JsonLines(loaded, arrow)]
    # An input of this name hides the start of a call with keywords.
    has_now = any(each.name == "now" for each in subject.compiled.node.inputs)
    return found if has_now and loaded.takes_now else [*found, KeywordCall(loaded)]


def _arrow() -> Any:
    """Return pyarrow, or None where it is not installed: tables are then not compared."""
    try:
        import pyarrow as pa
    except ImportError:
        return None
    return pa


WAYS: tuple[WayMaker, ...] = (repeated_ways, public_ways)
"""Ways that `vesper verify` compares."""
