"""Contracts of a node, and how often each clause was broken in recorded runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vesper.compiler import Compiled
from vesper.dashboard.problem import Unavailable
from vesper.dashboard.stores import Stores
from vesper.engines.outcome import ContractBroken, Outcome
from vesper.host.outcomes import recorded_outcome
from vesper.journal.entry import Kind
from vesper.journal.moments import number
from vesper.trace.model import TraceError
from vesper.values.vesper_error import VesperError

MAX_RUNS = 1_000
"""Newest runs of the journal, and newest traces, that are counted."""
MAX_READ = 100
"""Runs with a broken contract that are read for their clause."""
_BROKEN = "contract_broken"


@dataclass(frozen=True, slots=True)
class ContractRow:
    """A clause of the node."""

    phase: str
    text: str
    input: str | None
    """Input to which a constraint belongs."""
    line: int
    broken: int
    """Recorded runs of this definition that broke it."""


@dataclass(frozen=True, slots=True)
class Contracts:
    """All clauses in the order in which they are checked."""

    clauses: Sequence[ContractRow]
    note: str
    """Runs that were counted."""


def read_contracts(stores: Stores, compiled: Compiled) -> Contracts:
    """Count broken clauses in the newest runs of the journal and in the newest traces."""
    node = compiled.node
    broken: Counter[tuple[str, int]] = Counter()
    others = unread = 0
    runs, found = _broken_runs(stores, node.node_id)
    for semantic_hash, outcome in found:
        if outcome is None:
            unread += 1
        elif semantic_hash != compiled.semantic_hash:
            others += 1
        else:
            broken[outcome.phase, outcome.index] += 1
    rows = [
        ContractRow(phase, each.text, each.input, each.holds.place.line, broken[phase, index])
        for phase, clauses in node.phases()
        for index, each in enumerate(clauses)
    ]
    notes = [f"counted in {' and '.join(runs)}" if runs else "no run of this node is recorded, so none is counted"]
    notes += [f"{number(others, 'run')} broke a clause of another definition"] if others else []
    notes += [f"{number(unread, 'run')} with a broken contract could not be read"] if unread else []
    return Contracts(rows, "; ".join(notes))


def _broken_runs(stores: Stores, node: str) -> tuple[list[str], Iterator[tuple[str, ContractBroken | None]]]:
    """Return where runs of the node are recorded, and those that broke a contract."""
    runs, found = [], []
    try:
        journal = stores.journal
        summaries = journal.find(node=node, limit=MAX_RUNS)
    except Unavailable:
        summaries = []
    if summaries:
        runs.append(f"the newest {number(len(summaries), 'run')} of the journal")
        found += [(each.semantic_hash, each.execution, True) for each in summaries if each.outcome == _BROKEN]
    traces = stores.traces.store
    kept = traces.find(node, limit=MAX_RUNS) if traces.exists else []
    if kept:
        runs.append(f"{number(len(kept), 'stored trace')}, which are a sample")
        found += [(each.semantic_hash, each.trace_id, False) for each in kept if each.outcome == _BROKEN]

    def read() -> Iterator[tuple[str, ContractBroken | None]]:
        for semantic_hash, name, is_journalled in found[:MAX_READ]:
            try:
                outcome = _journalled_outcome(stores, name) if is_journalled else traces.read(name).outcome
            except VesperError:
                outcome = None  # erased, or sealed under a key that is not here: counted as unread
            yield semantic_hash, outcome if isinstance(outcome, ContractBroken) else None

    return runs, read()


def _journalled_outcome(stores: Stores, execution: str) -> Outcome | None:
    entries = stores.journal.read(execution).entries
    last = entries[-1]
    if last.is_erased or last.entry.kind is not Kind.END:
        raise TraceError(f"the end of {execution} cannot be read")
    return recorded_outcome(last.entry.body)
