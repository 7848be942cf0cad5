"""The list of divergences: open ones of current epochs by default, last seen first."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from vesper.dashboard.page import Context, Paging, Parameter
from vesper.dashboard.service import open_configured, unsent_findings
from vesper.engines.registry import engine_label
from vesper.migration.compare.answers import KIND_WORDS
from vesper.migration.stores.configured import short_epoch
from vesper.migration.stores.kept_divergences import StoredDivergence, current_epochs, read_divergences
from vesper.migration.stores.store import NodeKey, keys_of
from vesper.values.node_id import split_node_id

ROWS_PER_PAGE = 100
STATES = ("open", "older", "closed", "all")
_HOUR_US = 3_600_000_000
PERIODS = {"1h": _HOUR_US, "24h": 24 * _HOUR_US, "7d": 7 * 24 * _HOUR_US, "30d": 30 * 24 * _HOUR_US}
PARAMETERS = (
    Parameter("node", "text", "Only this node: an id, or a name without version."),
    Parameter("kind", "text", "Only this kind.", tuple(KIND_WORDS)),
    Parameter("state", "text", "`older`: still open in an epoch that is no longer current. Default: open.", STATES),
    Parameter("since", "text", "Only divergences seen within this time.", tuple(PERIODS)),
    Parameter("page", "integer", "Number of the page, from 1."),
)


@dataclass(frozen=True, slots=True)
class DivergenceRow:
    node: str
    fingerprint: str
    epoch: str
    is_current: bool
    kind: str
    kind_words: str
    where: str
    engines: tuple[str, str]
    """Leader and follower."""
    path: str
    count: int
    first_us: int
    last_us: int
    status: str
    closed_by: str | None
    has_small: bool


@dataclass(frozen=True, slots=True)
class Divergences:
    rows: tuple[DivergenceRow, ...]
    states: dict[str, int]
    """Number of divergences by state, of this node and kind and within this time."""
    nodes: tuple[str, ...]
    """Nodes with a stored divergence, for the filter."""
    node: str | None
    kind: str | None
    state: str
    since: str | None
    warnings: tuple[str, ...]
    """Unreadable divergences, and findings that are not in the store yet."""
    paging: Paging


def read_list(context: Context) -> Divergences:
    node, kind = context.text("node"), context.choice("kind", tuple(KIND_WORDS))
    state, since = context.choice("state", STATES, "open") or "open", context.choice("since", tuple(PERIODS))
    opened = open_configured(context.stores)
    keys = keys_of(opened.store)
    kept, damaged = read_divergences(opened.store)
    from_us = 0 if since is None else context.now_us - PERIODS[since]
    fitting = [
        each
        for each in kept
        if (node is None or _is_of(each.key.node, node))
        and kind in (None, each.divergence.kind)
        and each.divergence.last_us >= from_us
    ]
    several = _nodes_with_epochs(keys) & {each.key.node for each in fitting}
    current = current_epochs(opened.store, [key for key in keys if key.node in several], opened.settings)
    listed = [divergence_row(each, each.key.node not in several or each.key in current) for each in fitting]
    counts = Counter(_state_of(each) for each in listed)
    shown = [each for each in listed if state in ("all", _state_of(each))]
    shown.sort(key=lambda each: (-each.last_us, each.fingerprint))
    first = (context.page_number() - 1) * ROWS_PER_PAGE
    return Divergences(
        tuple(shown[first : first + ROWS_PER_PAGE]),
        {**{each: counts[each] for each in STATES}, "all": len(listed)},
        tuple(sorted({each.key.node for each in kept})),
        node,
        kind,
        state,
        since,
        (*damaged, *unsent_findings(context.stores)),
        context.paging(first + ROWS_PER_PAGE < len(shown), len(shown)),
    )


def _nodes_with_epochs(keys: list[NodeKey]) -> set[str]:
    """Return the nodes with several epochs; the others need no comparison of epochs."""
    return {node for node, count in Counter(key.node for key in keys).items() if count > 1}


def _is_of(node_id: str, wanted: str) -> bool:
    parts = split_node_id(node_id)
    return node_id == wanted or (parts is not None and parts[0] == wanted)


def _state_of(row: DivergenceRow) -> str:
    return row.status if row.status == "closed" or row.is_current else "older"


def divergence_row(each: StoredDivergence, is_current: bool) -> DivergenceRow:
    found = each.divergence
    return DivergenceRow(
        found.node,
        found.fingerprint,
        short_epoch(each.key.epoch),
        is_current,
        found.kind,
        KIND_WORDS[found.kind],
        found.where,
        (engine_label(found.engines[0]), engine_label(found.engines[1])),
        found.path,
        found.count,
        found.first_us,
        found.last_us,
        found.status,
        found.closed_by,
        found.small is not None,
    )
