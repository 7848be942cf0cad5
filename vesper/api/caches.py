"""Sizes and counters of the caches: machine code (L1), nodes on disk (L2), results (L3).

L2 counts over all processes that have ended, and this one; L1 and the memory of L3 belong to this process. The size of
a shared cache of results takes a scan of its keys.
"""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any

from vesper.cache.entries import open_entries
from vesper.cache.folder import NoCache
from vesper.cache.results import ResultCounters, SharedAway

if TYPE_CHECKING:
    from vesper.config.result_cache import ResultSettings

LEVELS = ("l1", "l2", "l3")


def cache_stats(settings: ResultSettings | None = None) -> dict[str, dict[str, Any]]:
    """Return entries, bytes, bounds and counters of each level; with `settings`, of `[cache.results]` and its Redis
    too.
    """
    return {"l1": _code_stats(), "l2": _node_stats(), "l3": _result_stats(settings)}


def clear_caches(levels: tuple[str, ...], settings: ResultSettings | None = None) -> dict[str, int]:
    """Empty these levels and return how many entries each had. L1 and the memory of L3 are emptied in this process."""
    removed: dict[str, int] = {}
    if "l1" in levels:
        removed["l1"] = 0  # machine code belongs to the programs of a process, and is freed with them
    if "l2" in levels:
        removed["l2"] = 0
        with contextlib.suppress(NoCache):
            removed["l2"] = open_entries().clear()
    if "l3" in levels:
        from vesper.api.default_hosts import results_in_use
        from vesper.host.results import shared_of

        removed["l3"] = sum(each.clear() for each in results_in_use())
        shared = None if settings is None else shared_of(settings)
        if shared is not None:
            removed["l3"] += shared.clear()
    return removed


def _code_stats() -> dict[str, Any]:
    from vesper.engines.direct_engine import code_stats

    return code_stats() or {"why_not": "this build of the direct engine makes no machine code"}


def _node_stats() -> dict[str, Any]:
    try:
        cache = open_entries()
    except NoCache as why:
        return {"why_not": str(why)}
    count, size = cache.size()
    bounds = {"max_bytes": cache.max_bytes, "max_entries": cache.max_entries}
    from vesper.cache.entries import entries

    mine = entries()
    counters = (cache if mine is None or mine.folder != cache.folder else mine).kept.total()
    return {"where": cache.folder, "entries": count, "bytes": size} | bounds | counters


def _result_stats(settings: ResultSettings | None) -> dict[str, Any]:
    hosting = sys.modules.get("vesper.api.default_hosts")
    used = [] if hosting is None else hosting.results_in_use()
    counters = ResultCounters().all()
    found: dict[str, Any] = {"entries": 0, "bytes": 0, "max_bytes": 0}
    for each in used:
        count, size = each.size()
        found["entries"] += count
        found["bytes"] += size
        found["max_bytes"] += each.max_bytes
        counters = {name: counters[name] + number for name, number in each.counters.all().items()}
    found |= counters
    if settings is None:
        return found
    found |= {"nodes": list(settings.nodes), "ttl": settings.ttl, "max_bytes": found["max_bytes"] or settings.max_bytes}
    if settings.address is not None:
        from vesper.host.results import shared_of

        shared = shared_of(settings)
        assert shared is not None
        found["shared"] = str(settings.address)
        try:
            found["shared_entries"] = shared.size()
        except SharedAway as why:
            found["shared_why_not"] = str(why)
    return found
