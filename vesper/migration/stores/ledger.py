"""Application of batches to the state of a node, the same for every store.

In one transaction, fingerprints become counts of new ones, the controller is stepped with every event, and each
decision becomes a line of the history, except for repetitions (`controller.has_line`). Names of the sets of
fingerprints:

    n3          inputs that agreed, of the node's third attempt (path and fingerprint mixed)
    p7f…:2      inputs that agreed on a path, of its second attempt
    g7f…:2      generated inputs that agreed on a path
    d           inputs that ever diverged
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from enum import Enum
from itertools import islice
from typing import Any

from vesper.migration.compare.divergence import Divergence
from vesper.migration.compare.paths import PathNote
from vesper.migration.control.controller import add_times, has_line, step
from vesper.migration.control.state import (
    Agreed,
    Changed,
    Close,
    Closed,
    Decision,
    Diverged,
    Event,
    Forget,
    Generated,
    NodeState,
    PathDemoted,
    PathState,
    Settings,
    Tick,
    Timed,
)
from vesper.migration.statistics.evidence import MAX_FINGERPRINTS, MAX_PATHS
from vesper.migration.stores import codec, traffic
from vesper.migration.stores.store import WHOLE, Batch, Happened, Line, NodeKey, SeenOnPath, Store, Transaction

_NEW = PathState()
_MAX_PREFIXES = 1000
"""Maximum number of prefixes of one path. A request with any further prefix is compared, which is always safe."""


@dataclass(frozen=True, slots=True)
class Applied:
    state: NodeState
    decisions: tuple[Decision, ...]
    is_repeat: bool = False
    """True where the batch had been applied before, and nothing changed."""


def load(store: Store, key: NodeKey, settings: Settings) -> NodeState:
    """Return the state of a node, or a fresh one if the store has none."""
    text = store.read(key)
    return NodeState(key.node, key.epoch, settings) if text is None else codec.state_from_text(text, settings)


def apply(store: Store, key: NodeKey, batch: Batch, settings: Settings, now_us: int, is_in_use: bool = True) -> Applied:
    """Apply the batch of a process, at most once. `is_in_use` is True where that process still runs the node."""
    return store.transact(key, lambda transaction: _apply_batch(transaction, key, batch, settings, now_us, is_in_use))


def apply_event(store: Store, key: NodeKey, event: Event, settings: Settings, now_us: int) -> Applied:
    """Apply an order of a person, or a finding about an ended process.

    It has no number, so that a repetition is applied again.
    """

    def work(transaction: Transaction) -> Applied:
        ledger = _NodeUpdate(transaction, key, settings, now_us)
        ledger.apply_event(Happened(event))
        traffic.keep(transaction, ledger.state, {}, now_us, is_in_use=False)
        return ledger.finish()

    return store.transact(key, work)


def forget(
    store: Store, key: NodeKey, event: Forget, settings: Settings, now_us: int, written_us: int
) -> Applied | None:
    """Delete the evidence of an old definition: fingerprints, paths, samples, kept executions.

    The history stays and records the deletion; so do divergences and the time of the last write. Returns None, without
    a change, where another process deleted it or wrote to it since `written_us`.
    """

    def work(transaction: Transaction) -> Applied | None:
        ledger = _NodeUpdate(transaction, key, settings, now_us)
        written = transaction.document(traffic.TRAFFIC)
        if written is None or traffic.traffic_of(written, key.node).written_us != written_us:
            return None
        if transaction.document(traffic.SAMPLES) is None and not ledger.state.compared:
            return None
        ledger.apply_event(Happened(event))
        transaction.clear()
        transaction.put_document(traffic.TRAFFIC, written)
        return ledger.finish()

    return store.transact(key, work)


def _apply_batch(
    transaction: Transaction, key: NodeKey, batch: Batch, settings: Settings, now_us: int, is_in_use: bool
) -> Applied:
    ledger = _NodeUpdate(transaction, key, settings, now_us)
    if batch.number <= transaction.applied(batch.process):
        return Applied(ledger.state, (), is_repeat=True)
    transaction.put_applied(batch.process, batch.number)
    for path, text in batch.paths.items():
        if len(ledger.state.paths) < MAX_PATHS or transaction.path(path) is not None:
            _note_path(transaction, path, text)
    ledger.apply_events(batch.happened)
    if batch.attempt is None or batch.attempt >= ledger.state.attempt:
        for path, seen in batch.agreed.items():
            ledger.agree(path, seen)
        for path, fingerprints in batch.generated.items():
            ledger.generate(path, fingerprints)
    ledger.apply_event(Happened(Tick()))  # applies a pending promotion, and ends an expired pin
    traffic.keep(transaction, ledger.state, batch.served, now_us, is_in_use)
    return ledger.finish()


def _note_path(transaction: Transaction, path: str, text: str) -> None:
    """Store the note of a path, merged with the prefixes that other processes reported."""
    known = transaction.path(path)
    if known is not None:
        seen, more = PathNote.from_text(known), PathNote.from_text(text)
        prefixes = tuple(dict.fromkeys((*seen.prefixes, *more.prefixes)))[:_MAX_PREFIXES]
        if prefixes == seen.prefixes:
            return
        text = replace(seen, prefixes=prefixes).to_text()
    transaction.put_path(path, text)


class _NodeUpdate:
    """One transaction on one node."""

    def __init__(self, transaction: Transaction, key: NodeKey, settings: Settings, now_us: int) -> None:
        self._transaction = transaction
        self._key = key
        self._now_us = now_us
        text = transaction.state()
        self._before = text
        self.state = NodeState(key.node, key.epoch, settings) if text is None else codec.state_from_text(text, settings)
        self._paths_before = self.state.paths
        """Paths at the start of the transaction. The batch was gathered before."""
        self._decisions: list[Decision] = []
        self._recorded: list[Decision] = []
        """Decisions that become lines of the history."""

    def agree(self, path: str, seen: SeenOnPath) -> None:
        wanted = seen.fingerprints - self._transaction.known("d", seen.fingerprints)
        mixed = {mix(path, each): each for each in wanted}
        node_scope, path_scope = self._node_scope(), self._path_scope("p", path)
        for_node = set(mixed) - self._transaction.known(node_scope, mixed)
        for_path: set[int] = set()
        if not self._has_restarted(path, seen.attempt):
            for_path = set(wanted) - self._transaction.known(path_scope, wanted)
        for_node = self._limit_to_room(node_scope, for_node)
        for_path = self._limit_to_room(path_scope, for_path)
        compared = max(seen.compared, len(for_node), len(for_path))
        attempt, path_attempt = self.state.attempt, self._path(path).attempt
        is_counted = self.state.mode.level > 0
        self._step(Agreed(path, len(for_node), compared, len(for_path)))
        # A restart of the evidence here would also have started new sets. A path beyond the maximum is not counted,
        # and its inputs are not stored.
        is_kept = path in self.state.paths
        if is_counted and is_kept and (attempt, path_attempt) == (self.state.attempt, self._path(path).attempt):
            self._transaction.add(node_scope, for_node)
            self._transaction.add(path_scope, for_path)

    def generate(self, path: str, fingerprints: frozenset[int]) -> None:
        """Count generated inputs that neither traffic nor an earlier generation brought."""
        if self._has_restarted(path, None):
            return
        scope = self._path_scope("g", path)
        new = set(fingerprints) - self._transaction.known("d", fingerprints)
        new -= self._transaction.known(self._path_scope("p", path), new)
        new -= self._transaction.known(scope, new)
        new = self._limit_to_room(scope, new)
        if new and self.state.mode.level > 0:
            self._step(Generated(path, len(new)))
            if path in self.state.paths:
                self._transaction.add(scope, new)

    def apply_events(self, happened: Sequence[Happened]) -> None:
        """Apply events in order. Times of runs are the bulk, and are applied together while they decide nothing."""
        place = 0
        while place < len(happened):
            times: list[Timed] = []
            for each in islice(happened, place, None):
                if not isinstance(each.event, Timed):
                    break
                times.append(each.event)
            self.state, count = add_times(self.state, times)
            place += count
            if place < len(happened):
                self.apply_event(happened[place])
                place += 1

    def apply_event(self, happened: Happened) -> None:
        event = happened.event
        if happened.divergence is not None:
            self._put_divergence(happened.divergence)
        if isinstance(event, Diverged):
            event = self._remove_agreement(event, happened.input)
        elif isinstance(event, Close) and self._close(event):
            return
        self._step(event)

    def finish(self) -> Applied:
        """Write the state where it changed, and the lines of the history."""
        text = codec.state_text(self.state)
        if text != self._before:
            self._transaction.put_state(text)
        count, last = self._transaction.head()
        for decision in self._recorded:
            line = _chain(count, last, self._key, decision, self._now_us)
            self._transaction.append(line)
            count, last = line.number, line.hash
        return Applied(self.state, tuple(self._decisions))

    def _step(self, event: Event) -> None:
        before = self.state
        self.state, decisions = step(before, event, self._now_us)
        self._decisions += decisions
        self._recorded += [each for each in decisions if has_line(before, each)]
        if self.state.attempt != before.attempt:
            self._transaction.drop("n")
            self._transaction.drop("p")
            self._transaction.drop("g")
        for decision in decisions:
            if isinstance(decision, PathDemoted):
                self._transaction.drop(f"p{decision.path}:")
                self._transaction.drop(f"g{decision.path}:")

    def _put_divergence(self, seen: Divergence) -> None:
        text = self._transaction.divergence(seen.fingerprint)
        if text is not None:
            seen = Divergence.from_text(text).merge(seen)
        self._transaction.put_divergence(seen.fingerprint, seen.to_text())

    def _remove_agreement(self, event: Diverged, input_: int | None) -> Diverged:
        """Remove a diverged input from the agreements for good, and mark the event accordingly."""
        if input_ is None:
            return event
        mixed = mix(event.path, input_)
        scope = self._node_scope()
        was_clean = bool(self._transaction.known(scope, [mixed]))
        if was_clean:
            self._transaction.remove(scope, mixed)
        self._transaction.add("d", self._limit_to_room("d", {input_}))
        return replace(event, was_clean=was_clean)

    def _close(self, event: Close) -> bool:
        """Close the stored divergence. Returns True where nothing else is left to do.

        A fault latches the node and is not among the open divergences.
        """
        text = self._transaction.divergence(event.fingerprint)
        if text is None:
            return False
        known = Divergence.from_text(text)
        is_fault = known.kind == "fault" and known.status == "open"
        if event.fingerprint in self.state.open or event.fingerprint in self.state.noise or is_fault:
            closed = replace(known, status="closed", closed_by=event.who, closed_why=event.why)
            self._transaction.put_divergence(event.fingerprint, closed.to_text())
        if is_fault and event.fingerprint not in self.state.open:
            closed_fault = Closed(event.fingerprint, known.path, event.who, event.why)
            self._decisions.append(closed_fault)
            self._recorded.append(closed_fault)
            return True
        return False

    def _limit_to_room(self, scope: str, fingerprints: set[int]) -> set[int]:
        """Return as many fingerprints as the set has room for."""
        room = max(0, MAX_FINGERPRINTS - self._transaction.size(scope)) if fingerprints else 0
        return fingerprints if len(fingerprints) <= room else set(sorted(fingerprints)[:room])

    def _has_restarted(self, path: str, attempt: int | None) -> bool:
        """Return True where the path restarted its evidence after these inputs were gathered.

        This may have happened in the same batch, or before the process knew. Agreements beside a divergence do not
        outweigh it: a path that is wrong for one input in ten agrees on the other nine, in every batch.
        """
        begun = self._paths_before.get(path, _NEW).attempt
        return (begun if attempt is None else min(begun, attempt)) < self._path(path).attempt

    def _path(self, path: str) -> PathState:
        return self.state.paths.get(path, _NEW)

    def _node_scope(self) -> str:
        return f"n{self.state.attempt}"

    def _path_scope(self, kind: str, path: str) -> str:
        return f"{kind}{path}:{self._path(path).attempt}"


def mix(path: str, fingerprint: int) -> int:
    """Return a fingerprint that includes the path. Equal inputs on two paths are two pieces of evidence."""
    text = f"{path}:{fingerprint:x}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8, person=b"vesper.path.mix1").digest(), "big")


# -- all nodes at once ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KillSwitch:
    """The kill switch of all nodes that share the store."""

    who: str
    why: str
    at_us: int


def kill_all(store: Store, who: str, why: str, now_us: int) -> None:
    """Turn the kill switch on: every node runs on Python alone once its process polls. Modes stay."""
    _put_kill_switch(store, KillSwitch(who, why, now_us), {"kind": "killed_all", "who": who, "why": why}, now_us)


def resume_all(store: Store, who: str, why: str, now_us: int) -> None:
    """Turn the kill switch off: every node returns to its mode."""
    _put_kill_switch(store, None, {"kind": "resumed_all", "who": who, "why": why}, now_us)


def read_kill_switch(store: Store) -> KillSwitch | None:
    text = store.read(WHOLE)
    try:
        found = None if text is None else json.loads(text)["killed"]
        return None if found is None else KillSwitch(**found)
    except (ValueError, KeyError, TypeError) as error:
        raise codec.BadState(f"the switch for all nodes: {error}") from None


def _put_kill_switch(store: Store, switch: KillSwitch | None, record: dict[str, Any], now_us: int) -> None:
    """Write the switch, and a line with its author into the history of the whole store."""
    text = json.dumps({"killed": None if switch is None else asdict(switch)}, sort_keys=True)

    def work(transaction: Transaction) -> None:
        transaction.put_state(text)
        append_record(transaction, WHOLE, record, now_us)

    store.transact(WHOLE, work)


# -- history --------------------------------------------------------------------------------------


def _chain(count: int, previous: str, key: NodeKey, decision: Decision, now_us: int) -> Line:
    return _line(count, previous, key, record_of(decision), now_us)


def record_of(decision: Decision) -> dict[str, Any]:
    """Return a decision as the history stores it."""
    return {"kind": _kind(decision), **_record(decision)}


def append_record(transaction: Transaction, key: NodeKey, record: dict[str, Any], now_us: int) -> None:
    """Append a record to the history of a key."""
    transaction.append(_line(*transaction.head(), key, record, now_us))


def _line(count: int, previous: str, key: NodeKey, record: dict[str, Any], now_us: int) -> Line:
    """Return the line that follows `count` lines, the last of which has the hash `previous`."""
    record = {"node": key.node, "epoch": key.epoch, "at_us": now_us, **record}
    text = json.dumps(record, sort_keys=True, separators=(",", ":"))
    return Line(count + 1, text, line_hash(count + 1, previous, text))


def line_hash(number: int, previous: str, text: str) -> str:
    return hashlib.sha256(f"{number}\n{previous}\n{text}".encode()).hexdigest()


def verify_history(lines: Iterable[Line]) -> str | None:
    """Return the first defect of a history; None where every line follows from the one before."""
    previous = ""
    for number, line in enumerate(lines, start=1):
        if line.number != number:
            return f"line {number} is missing: the next one says that it is {line.number}"
        if line.hash != line_hash(number, previous, line.text):
            return f"line {number} is not what was written, or the one before it is not"
        previous = line.hash
    return None


def _kind(decision: Decision) -> str:
    name = type(decision).__name__
    return "".join(f"_{each.lower()}" if each.isupper() and at else each.lower() for at, each in enumerate(name))


def _record(decision: Decision) -> dict[str, Any]:
    if isinstance(decision, Changed):
        return decision.to_record()
    if isinstance(decision, Closed):
        return asdict(decision)
    return {each.name: _plain(getattr(decision, each.name)) for each in fields(decision)}


def _plain(value: object) -> Any:
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return value
