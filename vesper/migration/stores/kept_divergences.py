"""Operations on stored divergences, for `vesper divergences` and the dashboard: read, shrink, close."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from vesper.migration.compare.divergence import Divergence
from vesper.migration.control.state import Close, NodeState, Refused, Settings
from vesper.migration.stores import ledger
from vesper.migration.stores.overview import newest_epochs, read_node
from vesper.migration.stores.store import NodeKey, Store, Transaction
from vesper.values.model import printable
from vesper.values.vesper_error import VesperError

if TYPE_CHECKING:
    from vesper.compiler import Compiled
    from vesper.engines.engine import Program
    from vesper.migration.compare.comparator import Comparator
    from vesper.migration.compare.shrinking import Shrunk
    from vesper.migration.compare.transcript import Transcript

SMALL_GIVEN = "small_given"
"""Key of the smallest inputs and completions in `Divergence.extra`, as `rerun_from_log.Given.to_text`."""


@dataclass(frozen=True, slots=True)
class StoredDivergence:
    key: NodeKey
    divergence: Divergence


class CannotClose(VesperError):
    """The divergence was not closed; the message contains the reason."""


class ChangedNode(VesperError):
    """The node has changed since the divergence; the message names both definitions."""


# -- read -----------------------------------------------------------------------------------------


def read_divergences(store: Store, keys: Iterable[NodeKey] | None = None) -> tuple[list[StoredDivergence], list[str]]:
    """Return the readable divergences of these keys or of all, and the problems of the others."""
    found: list[StoredDivergence] = []
    damaged: list[str] = []
    stored = store.all_divergences() if keys is None else {key: store.divergences(key) for key in keys}
    for key, texts in sorted(stored.items()):
        for text in texts:
            try:
                found.append(StoredDivergence(key, Divergence.from_text(text)))
            except (ValueError, TypeError, KeyError, AttributeError) as problem:
                damaged.append(
                    f"the store has an unreadable divergence of {printable(key.node)}: {printable(str(problem))}"
                )
    return found, damaged


def current_epochs(store: Store, keys: Iterable[NodeKey], settings: Settings) -> set[NodeKey]:
    """Return the epoch of each node that was written last."""
    return {each.key for each in newest_epochs(read_node(store, key, settings) for key in keys)}


def newest_of(found: Iterable[StoredDivergence], current: set[NodeKey]) -> StoredDivergence:
    """Return the divergence of the current epoch, else of the epoch that saw it last."""
    return max(found, key=lambda each: (each.key in current, each.divergence.last_us, each.key.epoch))


# -- shrink ---------------------------------------------------------------------------------------


def check_definition(compiled: Compiled, divergence: Divergence, path: object) -> None:
    """Check that a compiled file is the node of the divergence, unchanged. Raises `ChangedNode`."""
    if compiled.node.node_id != divergence.node:
        raise ChangedNode(f"{path} is {compiled.node.node_id}, but the divergence is of {divergence.node}")
    wanted = divergence.extra.get("semantic_hash")
    if wanted is not None and compiled.semantic_hash != wanted:
        raise ChangedNode(
            f"{path} has changed since the divergence (its semantic hash is {compiled.semantic_hash[:12]}, and was "
            f"{str(wanted)[:12]})"
        )


def is_sensitive(compiled: Compiled) -> bool:
    from vesper.host.plans import plans_of

    return plans_of(compiled).is_sensitive


def shrink_stored(
    store: Store,
    found: StoredDivergence,
    shown: Divergence | Transcript,
    programs: Mapping[str, Program],
    comparator: Comparator,
    compiled: Compiled,
    seconds: float,
    progress: Callable[[int, int], None],
) -> Shrunk:
    """Shrink a stored divergence, and store its smallest case unless the node is sensitive.

    `shown` is the execution to shrink: the divergence itself, or what the journal has of it. Raises `CannotShrink`.
    """
    from vesper.migration.compare.shrinking import shrink_divergence

    others, _ = read_divergences(store, [found.key])
    is_shared = sum(each.divergence.place == found.divergence.place for each in others) > 1
    small = shrink_divergence(compiled, shown, programs, comparator, seconds, progress, keeps_path=is_shared)
    if not is_sensitive(compiled):
        _store_case(store, found, small)
    return small


def _store_case(store: Store, found: StoredDivergence, small: Shrunk) -> None:
    """Add the smallest case to the stored divergence, and keep its other changes."""

    def work(transaction: Transaction) -> None:
        text, state = transaction.divergence(found.divergence.fingerprint), transaction.state()
        if text is not None:
            known = Divergence.from_text(text)
            extra = {**known.extra, SMALL_GIVEN: small.given.to_text()}
            after = replace(known, small=small.case, odd=small.odd or known.odd, extra=extra)
            transaction.put_divergence(known.fingerprint, after.to_text())
            if state is not None:
                transaction.put_state(state)  # increments the version, so that pages that show it refresh

    store.transact(found.key, work)


# -- close ----------------------------------------------------------------------------------------


def close_divergence(
    store: Store, found: StoredDivergence, who: str, why: str, rules: Settings, now_us: int
) -> NodeState:
    """Close a divergence, with a line in the history of its node. Raises `CannotClose`."""
    known = found.divergence
    if known.status == "closed":
        raise CannotClose(
            f"{known.fingerprint} was already closed by {printable(known.closed_by or '?')}: "
            f"{printable(known.closed_why or '')}"
        )
    applied = ledger.apply_event(store, found.key, Close(known.fingerprint, who, why), rules, now_us)
    refused = next((each for each in applied.decisions if isinstance(each, Refused)), None)
    if refused is not None:
        raise CannotClose(printable(refused.why))
    return applied.state
