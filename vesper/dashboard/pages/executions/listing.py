"""The list of recorded runs with its filters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from vesper.dashboard.page import BadRequest, Context
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.trace.model import TraceError
from vesper.trace.search import Cursor, FoundRun, Result, RunQuery, node_ids_of, search
from vesper.values.model import printable

_PAGE_RUNS: Final = 50


@dataclass(frozen=True, slots=True)
class Executions:
    """One page of runs."""

    runs: tuple[FoundRun, ...]
    next: str | None
    """Address of the next, older page."""
    first: str | None
    """Address of the newest page; None on it."""
    searched_us: int | None
    """Time down to which runs were searched, where the filters left the page incomplete."""
    read: int
    """Journalled runs that were read for this page."""
    unread: int
    """Journalled runs that could not be read."""
    note: str
    """Why the list is empty, where a filter explains it."""
    has_filters: bool


def read_runs(context: Context) -> Executions:
    """Return the runs that match the filters of the address."""
    traces = context.stores.traces
    node, result = context.text("node"), context.choice("result", tuple(Result))
    query = {name: each for name, each in context.query.items() if each.strip() and name != "before"}
    before = context.text("before", most=300)
    first = None if before is None else "?" + urlencode(query)
    nodes = None if node is None else node_ids_of(traces, node)
    if node is not None and not nodes:
        known = traces.node_ids()
        hint = did_you_mean(node, known) or "The filter takes an id such as `charge_v1`, or a name without its version."
        return Executions(
            (), None, first, None, 0, 0, f"No run of a node `{printable(node)}` is recorded. {hint}", True
        )
    try:
        wanted = RunQuery(
            nodes,
            None if result is None else Result(result),
            context.moment("since"),
            context.moment("until"),
            context.text("key"),
            (context.text("id") or "").lower(),
            Cursor() if before is None else Cursor.read(before),
        )
        found = search(traces, wanted, _PAGE_RUNS)
    except TraceError as problem:
        raise BadRequest(str(problem), "Change the filters of the list.") from None
    following = None if found.next is None else "?" + urlencode({**query, "before": str(found.next)})
    return Executions(found.runs, following, first, found.searched_us, found.read, found.unread, "", bool(query))
