"""After a change of the node, or of what runs or compares it: what was seen before, seen again.

A new epoch has no evidence. But the store has executions of the old one, written down (`reservoir`), which are traffic
that really came. Both engines run each of them again under the new definition. Where they agree, that is a piece of
evidence like any other, on the path that it takes now. Where the records do not fit any more (the node refuses these
inputs now, or asks for something else than was answered) it is none. Where the engines disagree, it is a divergence.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from vesper.journal.errors import JournalError
from vesper.migration.compare.paths import ending_of
from vesper.migration.compare.reports import Agreement, Disagreement, Fault, Lost, Report
from vesper.migration.compare.transcript import Transcript
from vesper.migration.stores.reservoir import last_kept_us, transcripts
from vesper.migration.stores.store import WHOLE, NodeKey, SeenOnPath, Store, Transaction

_CARRIED = "carried"
_LEFT = "{}"
MOST_DISAGREEMENTS = 20
"""After so many it is clear that the new definition does not run alike, and the rest is left."""

Rerun: TypeAlias = Callable[[Transcript], Report | None]
"""Runs an execution again under the new definition: `rerun.rerun`, or in the helper process, with `is_recorded` off."""


@dataclass(slots=True)
class Carried:
    """What came of it."""

    source: NodeKey
    agreed: dict[str, set[int]] = field(default_factory=dict)
    """Fingerprints, by the names of the paths in the new epoch."""
    paths: dict[str, str] = field(default_factory=dict)
    disagreements: list[Disagreement | Fault] = field(default_factory=list)
    unfit: int = 0
    """Those that do not apply any more, or that nobody can read."""
    lost: int = 0

    @property
    def count(self) -> int:
        return sum(map(len, self.agreed.values()))

    def seen(self) -> Mapping[str, SeenOnPath]:
        """For a batch, with `paths`; the disagreements are reported as those of traffic are, the lost as unknown."""
        return {path: SeenOnPath(frozenset(each), len(each)) for path, each in self.agreed.items()}


def older_epoch(store: Store, key: NodeKey) -> NodeKey | None:
    """The epoch of the same node in which something was kept last; None where there is none."""
    others = [each for each in store.versions() if each.node == key.node and each not in (key, WHOLE)]
    dated = [(last_kept_us(store, each), each) for each in others]
    return max(((at, each) for at, each in dated if at), default=(0, None))[1]


def claim(store: Store, key: NodeKey, process: str, source: NodeKey) -> bool:
    """Whether this process is the one to do it: of all that start with a new definition, one does, once. Where it is
    killed on the way, nobody does: evidence comes with the traffic as well."""

    def work(transaction: Transaction) -> bool:
        if transaction.document(_CARRIED) not in (None, _LEFT):
            return False
        transaction.put_document(_CARRIED, json.dumps({"by": process, "from": source.epoch}, sort_keys=True))
        return True

    return store.transact(key, work)


def leave(store: Store, key: NodeKey) -> None:
    """The process ends before it is done: the next one that starts may claim it. What agreed before counts once."""
    store.transact(key, lambda transaction: transaction.put_document(_CARRIED, _LEFT))


def carry(
    store: Store,
    source: NodeKey,
    rerun: Rerun,
    progress: Callable[[int], None] = lambda _: None,
    is_stopped: Callable[[], bool] = lambda: False,
) -> Carried:
    """Runs all that was kept in the older epoch again."""
    found = Carried(source)
    done = 0
    for kept in transcripts(store, source).values():
        for text in kept.values():
            if is_stopped() or len(found.disagreements) >= MOST_DISAGREEMENTS:
                return found
            _judge(found, text, rerun)
            done += 1
            progress(done)
    return found


def _judge(found: Carried, text: str, rerun: Rerun) -> None:
    try:
        transcript = Transcript.from_text(text)
    except (JournalError, ValueError, KeyError, TypeError):
        found.unfit += 1  # of another version of Vesper
        return
    match rerun(transcript):
        case None:
            found.unfit += 1
        case Lost():
            found.lost += 1
        case Agreement(note, fingerprint):
            if _is_refusal(note.ending) and not _is_refusal(ending_of(transcript.outcome)):
                found.unfit += 1
                return
            found.agreed.setdefault(note.name, set()).add(fingerprint)
            found.paths[note.name] = note.to_text()
        case Disagreement() | Fault() as report:
            found.disagreements.append(report)


def _is_refusal(ending: str) -> bool:
    """True where the inputs were not taken: then the execution never got to what it was kept for."""
    return ending.startswith(("failed bad_input at inputs", "broken constraint", "broken precondition"))
