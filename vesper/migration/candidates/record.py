"""The stored state of a name: pairs of lead and candidate, decision, counts and history.

A pair is a lead and a candidate by semantic hash. A decision belongs to one pair: after a change of either definition
it does not apply any more. Counts arrive in numbered batches, each applied once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

from vesper.compiler import Compiled
from vesper.migration.candidates.counts import Counts, Group, examples_text, read_examples
from vesper.migration.stores.ledger import append_record
from vesper.migration.stores.store import NodeKey, Store, StoreError, Transaction, name_key

MAX_PAIRS = 4
"""Pairs of a name whose counts are kept; the next one takes the place of the one that started first."""
_FORMAT = 1
DecisionKind: TypeAlias = Literal["promoted", "withdrawn", "resumed"]
KINDS: tuple[DecisionKind, ...] = get_args(DecisionKind)


@dataclass(frozen=True, slots=True)
class Pair:
    """A lead and its candidate."""

    lead: str
    candidate: str
    lead_hash: str
    candidate_hash: str

    @property
    def id(self) -> str:
        return hashlib.sha256(f"{self.lead_hash} {self.candidate_hash}".encode()).hexdigest()[:16]

    @staticmethod
    def of(lead: Compiled, candidate: Compiled) -> Pair:
        return Pair(lead.node.node_id, candidate.node.node_id, lead.semantic_hash, candidate.semantic_hash)


@dataclass(frozen=True, slots=True)
class Started:
    """A pair with its beginning, and the place of its counts."""

    pair: Pair
    at_us: int
    who: str
    slot: int


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision of a person about one pair."""

    kind: DecisionKind
    pair: str
    who: str
    why: str
    at_us: int


@dataclass(frozen=True, slots=True)
class NameRecord:
    """The stored state of a name."""

    pairs: tuple[Started, ...] = ()
    """In the order of their start."""
    decision: Decision | None = None

    def started(self, pair: str) -> Started | None:
        return next((each for each in self.pairs if each.pair.id == pair), None)

    def decision_on(self, pair: str) -> Decision | None:
        """Return the decision that applies to a pair."""
        return self.decision if self.decision is not None and self.decision.pair == pair else None

    def start(self, pair: Pair, who: str, now_us: int) -> NameRecord:
        """Return the record with a new pair."""
        kept = self.pairs[-(MAX_PAIRS - 1) :] if len(self.pairs) >= MAX_PAIRS else self.pairs
        slot = next(each for each in range(MAX_PAIRS) if all(each != other.slot for other in kept))
        return replace(self, pairs=(*kept, Started(pair, now_us, who, slot)))

    def to_text(self) -> str:
        return json.dumps({"format": _FORMAT, **asdict(self)}, sort_keys=True, separators=(",", ":"))

    @staticmethod
    def from_text(text: str | None) -> NameRecord:
        """Raises `StoreError` for a text of another version, or a damaged one."""
        if text is None:
            return NameRecord()
        try:
            found: dict[str, Any] = json.loads(text)
            if found["format"] != _FORMAT:
                raise StoreError(f"versions of a name have the format {found['format']!r}; this Vesper reads {_FORMAT}")
            pairs = tuple(Started(**{**each, "pair": Pair(**each["pair"])}) for each in found["pairs"])
            decision = None if found["decision"] is None else Decision(**found["decision"])
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise StoreError(f"the stored versions of a name cannot be read: {type(error).__name__}: {error}") from None
        if decision is not None and decision.kind not in KINDS:
            raise StoreError(f"the stored decision on a candidate is unknown: {decision.kind[:40]!r}")
        return NameRecord(pairs, decision)


def read_record(store: Store, name: str) -> NameRecord:
    return NameRecord.from_text(store.read(name_key(name)))


def start_pair(store: Store, name: str, pair: Pair, who: str, now_us: int) -> NameRecord:
    """Store a new pair with a line in the history, and return the record. A known pair is left unchanged."""

    def work(transaction: Transaction) -> NameRecord:
        return _start(transaction, name_key(name), pair, who, now_us)

    return store.transact(name_key(name), work)


def _start(transaction: Transaction, key: NodeKey, pair: Pair, who: str, now_us: int) -> NameRecord:
    record = NameRecord.from_text(transaction.state())
    if record.started(pair.id) is None:
        record = record.start(pair, who, now_us)
        transaction.put_state(record.to_text())
        append_record(transaction, key, {"kind": "candidate_started", "who": who, **_names_of(pair)}, now_us)
    return record


def apply_counts(
    store: Store, name: str, started: tuple[Pair, str], process: str, number: int, counts: Counts, now_us: int
) -> bool:
    """Add a batch of a process, at most once; False where it had been added before.

    `started` is the pair and who started it here: the store may have been replaced since.
    """
    key, (pair, who) = name_key(name), started

    def work(transaction: Transaction) -> bool:
        if number <= transaction.applied(process):
            return False
        transaction.put_applied(process, number)
        record = _start(transaction, key, pair, who, now_us)
        place = record.started(pair.id)
        assert place is not None
        stored = _read_counts(transaction.document, place)
        stored.merge(counts)
        transaction.put_document(_counts_name(place), stored.to_text(pair.id))
        for group in counts.groups.values():
            if group.examples and group.id in stored.groups:
                _put_examples(transaction, place, stored, group)
        transaction.put_state(record.to_text())  # increments the version that pages poll
        return True

    return store.transact(key, work)


def _put_examples(transaction: Transaction, place: Started, stored: Counts, new: Group) -> None:
    name, owner = _examples_place(place, stored, new.id)
    before = read_examples(transaction.document(name), owner)
    after = replace(new, examples=before).merge(new).examples
    if after != before:
        transaction.put_document(name, examples_text(owner, after))


def read_counts(store: Store, name: str, place: Started, with_examples: int = 0) -> Counts:
    """Return the counts of a pair, with the examples of its largest groups. Raises `StoreError`."""
    key = name_key(name)
    counts = _read_counts(lambda document: store.document(key, document), place)
    for group in counts.top_groups(with_examples):
        document, owner = _examples_place(place, counts, group.id)
        counts.groups[group.id] = replace(group, examples=read_examples(store.document(key, document), owner))
    return counts


def _read_counts(document: Callable[[str], str | None], place: Started) -> Counts:
    try:
        return Counts.from_text(document(_counts_name(place)), place.pair.id)
    except ValueError as error:
        raise StoreError(str(error)) from None


def decide(store: Store, name: str, decision: Decision, evidence: Mapping[str, object]) -> NameRecord:
    """Store a decision, with a line in the history. Raises `StoreError`."""
    key = name_key(name)

    def work(transaction: Transaction) -> NameRecord:
        record = NameRecord.from_text(transaction.state())
        place = record.started(decision.pair)
        if place is None:
            raise StoreError(f"{name}: the store has no such pair of lead and candidate any more")
        record = replace(record, decision=decision)
        transaction.put_state(record.to_text())
        line = {
            "kind": f"candidate_{decision.kind}",
            "who": decision.who,
            "why": decision.why,
            **_names_of(place.pair),
            "seen": dict(evidence),
        }
        append_record(transaction, key, line, decision.at_us)
        return record

    return store.transact(key, work)


def _names_of(pair: Pair) -> dict[str, object]:
    return {"pair": pair.id, **asdict(pair)}


def _counts_name(place: Started) -> str:
    return f"pair-{place.slot}"


def _examples_place(place: Started, stored: Counts, group: str) -> tuple[str, str]:
    """Return the name of the document with the examples of a group, and its owner.

    Another group may have used the document before, so the owner is checked.
    """
    return f"examples-{place.slot}-{[*stored.groups].index(group)}", f"{place.pair.id} {group}"
