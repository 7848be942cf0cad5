"""Repetition of an older epoch's stored executions under the present definition.

A new epoch has no evidence, but the store holds executions of the old one (`reservoir`) from real traffic. Both engines
repeat each of them under the new definition. Agreement counts as evidence on the present path. Records that do not fit
any more (the node refuses the inputs, or makes other requests) count as nothing. A disagreement is a divergence.
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
MAX_DISAGREEMENTS = 20
"""Number of disagreements after which the rest is skipped."""

Rerun: TypeAlias = Callable[[Transcript], Report | None]
"""Function that repeats an execution: `rerun.rerun`, or in the helper, with `is_recorded` off."""


@dataclass(slots=True)
class EvidenceReplayResult:
    """The results of a replay."""

    source: NodeKey
    agreed: dict[str, set[int]] = field(default_factory=dict)
    """Fingerprints by the names of paths in the new epoch."""
    paths: dict[str, str] = field(default_factory=dict)
    disagreements: list[Disagreement | Fault] = field(default_factory=list)
    unfit: int = 0
    """Number of records that do not apply any more, or cannot be read."""
    lost: int = 0

    @property
    def count(self) -> int:
        return sum(map(len, self.agreed.values()))

    def seen(self) -> Mapping[str, SeenOnPath]:
        """Return the agreements for a batch, together with `paths`."""
        return {path: SeenOnPath(frozenset(each), len(each)) for path, each in self.agreed.items()}


def older_epoch(store: Store, key: NodeKey) -> NodeKey | None:
    """Return the epoch of the node with the latest stored execution; None where there is none."""
    others = [each for each in store.versions() if each.node == key.node and each not in (key, WHOLE)]
    dated = [(last_kept_us(store, each), each) for each in others]
    return max(((at, each) for at, each in dated if at), default=(0, None))[1]


def claim(store: Store, key: NodeKey, process: str, source: NodeKey) -> bool:
    """Claim the replay of an epoch for this process; False where another one has it.

    If the process is killed on the way, the replay is not repeated: traffic brings evidence too.
    """

    def work(transaction: Transaction) -> bool:
        if transaction.document(_CARRIED) not in (None, _LEFT):
            return False
        transaction.put_document(_CARRIED, json.dumps({"by": process, "from": source.epoch}, sort_keys=True))
        return True

    return store.transact(key, work)


def release_claim(store: Store, key: NodeKey) -> None:
    """Release the claim of a process that ends early.

    A new claim repeats executions, but repeated agreements count once.
    """
    store.transact(key, lambda transaction: transaction.put_document(_CARRIED, _LEFT))


def replay_evidence(
    store: Store,
    source: NodeKey,
    rerun: Rerun,
    progress: Callable[[int], None] = lambda _: None,
    is_stopped: Callable[[], bool] = lambda: False,
) -> EvidenceReplayResult:
    """Repeat all stored executions of the older epoch."""
    found = EvidenceReplayResult(source)
    done = 0
    for kept in transcripts(store, source).values():
        for text in kept.values():
            if is_stopped() or len(found.disagreements) >= MAX_DISAGREEMENTS:
                return found
            _classify(found, text, rerun)
            done += 1
            progress(done)
    return found


def _classify(found: EvidenceReplayResult, text: str, rerun: Rerun) -> None:
    try:
        transcript = Transcript.from_text(text)
    except (JournalError, ValueError, KeyError, TypeError):
        found.unfit += 1  # of another Vesper version
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
    """Return True where the inputs were refused. Such an execution does not reach its former path."""
    return ending.startswith(("failed bad_input at inputs", "broken constraint", "broken precondition"))
