from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.journalled import compiled_node, node_text
from tests.support.nodes import small_node
from tests.unit.migration.support.memory_store import MemoryStore
from vesper.compiler import Compiled
from vesper.engines.direct_engine import DirectEngine
from vesper.engines.engine import Blocked
from vesper.engines.outcome import Returned
from vesper.engines.python_engine import PythonEngine
from vesper.migration.compare.comparator import Comparator
from vesper.migration.compare.reports import Disagreement, Lost
from vesper.migration.compare.transcript import Exchange, Transcript
from vesper.migration.control.state import Settings
from vesper.migration.router.epoch import epoch_of
from vesper.migration.router.evidence_replay import (
    EvidenceReplayResult,
    claim,
    older_epoch,
    release_claim,
    replay_evidence,
)
from vesper.migration.stores import ledger, reservoir
from vesper.migration.stores.reservoir import MAX_PER_NODE, MAX_PER_PATH, MAX_TEXT, Reservoir, keep, transcripts
from vesper.migration.stores.sqlite_store import SqliteMigrationStore
from vesper.migration.stores.store import Batch, NodeKey, Store, StoreAway
from vesper.migration.workers.rerun import Pair, rerun

KEY = bytes(range(16))
NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
OLD, NEW = NodeKey("small_v1", "old"), NodeKey("small_v1", "new")


def node_over(limit: int, rest: str = "") -> Compiled:
    flow = f"- operation: return\n  success: {{result: 'IF n > {limit} THEN 1 ELSE 0'}}"
    return small_node("n: integer", flow, "result: integer", rest)


def said(number: int) -> Transcript:
    return Transcript({"n": number}, None, (), Returned({"result": int(number > 10)}))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = SqliteMigrationStore(str(tmp_path / "migration.db"))
    yield made
    made.close()


def gathered(store: Store, numbers: range, key: NodeKey = OLD, at_us: int = 1) -> None:
    """Return the executions that traffic of the old definition left."""
    kept = Reservoir(key, is_sensitive=False)
    direct = DirectEngine().load(node_over(10))
    for number in numbers:
        _, path, fingerprint = direct.call_pathed({"n": number}, KEY)
        assert kept.offer(path.hex(), fingerprint, said(number))
    assert kept.flush(store, at_us) == len(numbers)
    ledger.apply(store, key, Batch("p", 1), Settings(), at_us)


def carried(store: Store, node: Compiled, direct: Any = None) -> EvidenceReplayResult:
    pair = Pair(node, Comparator(node), direct)
    return replay_evidence(store, OLD, lambda transcript: rerun(pair, transcript, KEY, is_recorded=False))


# -- what is kept ----------------------------------------------------------------------------------


def test_of_each_path_those_with_the_smallest_fingerprints_stay() -> None:
    store = MemoryStore()
    one, other = Reservoir(OLD, is_sensitive=False), Reservoir(OLD, is_sensitive=False)
    for number in range(400):
        (one if number % 2 else other).offer("a", number * 7919 % 1000, said(number))
    one.offer("b", 5, said(5))
    assert one.flush(store, 1) == 201
    assert other.flush(store, 2) == 200
    found = transcripts(store, OLD)
    assert list(found["a"]) == sorted(number * 7919 % 1000 for number in range(400))[:MAX_PER_PATH]
    assert Transcript.from_text(found["b"][5]) == said(5)
    assert not other.offer("a", 999, said(1)), "it is known not to be wanted"
    assert other.offer("a", 0, said(1))
    assert one.flush(store, 3) == 0


def test_of_a_node_with_many_paths_fewer_of_each_stay() -> None:
    kept = MemoryStore()
    for path in range(20):
        offered = {f"{path:02}": {number * 20 + path: "{}" for number in range(300)}}
        kept.transact(OLD, lambda transaction, offered=offered: keep(transaction, offered, 1))  # type: ignore[misc]
    counts = [len(each) for each in transcripts(kept, OLD).values()]
    assert counts == [100] * 20
    assert all(min(each) < 20 for each in transcripts(kept, OLD).values())
    many = {f"n{path:05}": {path: "{}"} for path in range(MAX_PER_NODE + 10)}
    kept.transact(OLD, lambda transaction: keep(transaction, many, 1))
    assert sum(len(each) for each in transcripts(kept, OLD).values()) == MAX_PER_NODE


def test_executions_that_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = Reservoir(OLD, is_sensitive=True)
    assert not secret.offer("a", 1, said(1))
    kept = Reservoir(OLD, is_sensitive=False, redact=lambda text: text.replace("hunter2", "secret:password"))
    assert not kept.offer("a", 1, Transcript({"s": "x" * MAX_TEXT}, None, (), Returned({})))
    assert not kept.offer("a", 1, Transcript({"s": object()}, None, (), Returned({})))
    assert not kept.offer("a", 1, Transcript({"s": "\ud800"}, None, (), Returned({})))
    assert kept.offer("a", 1, Transcript({"s": "hunter2"}, None, (), Returned({})))
    assert not kept.offer("a", 1, Transcript({"s": "again"}, None, (), Returned({})))
    monkeypatch.setattr(reservoir, "_MAX_WAITING", 1)
    assert not kept.offer("a", 2, said(2))
    store = MemoryStore()
    kept.flush(store, 1)
    assert "hunter2" not in transcripts(store, OLD)["a"][1]


def test_executions_wait_while_the_store_is_away() -> None:
    class Away(MemoryStore):
        def transact(self, key: NodeKey, work: Any) -> Any:
            raise StoreAway("away")

    kept = Reservoir(OLD, is_sensitive=False)
    kept.offer("a", 1, said(1))
    with pytest.raises(StoreAway):
        kept.flush(Away(), 1)
    assert kept.flush(MemoryStore(), 1) == 1


@pytest.mark.parametrize("text", ["{", "[]", '{"format": 2}', '{"format": 1, "at_us": 1, "counts": {"a": 2}}'])
def test_documents_that_cannot_be_read_are_begun_anew(text: str, caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore()
    store.transact(OLD, lambda transaction: transaction.put_document("transcripts", text))
    store.transact(OLD, lambda transaction: transaction.put_document("transcripts:a", "["))
    kept = Reservoir(OLD, is_sensitive=False)
    kept.offer("a", 1, said(1))
    kept.flush(store, 1)
    assert list(transcripts(store, OLD)["a"]) == [1]
    assert "gathered anew" in caplog.text


# -- seen again ------------------------------------------------------------------------------------


def test_repeated_agreements_count_on_their_new_paths(store: Store) -> None:
    gathered(store, range(30))
    found = carried(store, node_over(20))
    assert (found.count, found.unfit, found.lost, found.disagreements) == (30, 0, 0, [])
    assert sorted(len(each) for each in found.agreed.values()) == [9, 21]  # at 20, where it was 10
    batch = Batch("process", 1, agreed=found.seen(), paths=found.paths)
    state = ledger.apply(store, NEW, batch, Settings(), 2).state
    assert (state.clean, state.compared) == (30, 30)
    assert sorted(each.clean for each in state.paths.values()) == [9, 21]
    again = carried(store, node_over(20))
    repeated = Batch("process", 2, agreed=again.seen(), paths=again.paths)
    assert ledger.apply(store, NEW, repeated, Settings(), 3).state.clean == 30
    # Traffic that brings the same inputs later is nothing new either.
    path, seen = next(iter(found.seen().items()))
    assert ledger.apply(store, NEW, Batch("other", 1, agreed={path: seen}), Settings(), 4).state.clean == 30


def test_inputs_that_are_refused_now_do_not_count(store: Store) -> None:
    gathered(store, range(30))
    found = carried(store, node_over(10, "contracts:\n  preconditions: ['n >= 10']"))
    assert (found.count, found.unfit) == (20, 10)
    text = small_node("m: integer", "- operation: return\n  success: {result: m}", "result: integer")
    other = carried(store, text)
    assert (other.count, other.unfit) == (0, 30)


def test_disagreements_are_reported_and_many_end_the_replay(store: Store) -> None:
    gathered(store, range(-19, 11))
    node = node_over(10)

    class Lies:
        def __init__(self) -> None:
            self._program = DirectEngine().load(node)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._program, name)

        def start(self, inputs: Any, *rest: Any, **more: Any) -> Any:
            return self._program.start({"n": 99} if inputs["n"] in self.wrong else inputs, *rest, **more)

        wrong: range = range(7, 8)

    found = carried(store, node, Lies())
    (wrong,) = found.disagreements
    assert isinstance(wrong, Disagreement)
    assert wrong.transcript.inputs == {"n": 7}
    assert found.count == 29
    Lies.wrong = range(-19, 11)
    assert len(carried(store, node, Lies()).disagreements) == 20


def test_completions_serve_equal_requests() -> None:
    store = MemoryStore()
    node = compiled_node(node_text())
    inputs: dict[str, object] = {"event_id": "e", "customer": "ann", "amount": "10.00"}
    transcript = written_down(node, inputs)
    kept = Reservoir(OLD, is_sensitive=False)
    kept.offer("a", 1, transcript)
    kept.flush(store, 1)
    # It computes something else of what comes back: that is what it is tried for.
    after = compiled_node(node_text().replace("fee: charge.fee", "fee: charge.fee + charge.fee"))
    assert carried(store, after).count == 1
    # It asks for something else: what was answered says nothing about that.
    asks = compiled_node(node_text().replace("amount: amount}", "amount: amount + amount}"))
    found = carried(store, asks)
    assert (found.count, found.unfit) == (0, 1)


def written_down(node: Compiled, inputs: dict[str, object]) -> Transcript:
    execution = PythonEngine().load(node).start(inputs, NOON, is_traced=False)
    exchanges = []
    step = execution.advance(())
    while isinstance(step, Blocked):
        (request,) = step.requests
        value = 3 if request.path == "known" else {"id": "ch_1", "fee": "0.10", "note": None}
        exchanges.append(Exchange(request, value))
        step = execution.advance((exchanges[-1].completion(),))
    return Transcript(inputs, NOON, tuple(exchanges), step.outcome)


def test_one_process_replays_the_newest_older_epoch(store: Store) -> None:
    assert older_epoch(store, NEW) is None
    gathered(store, range(3), NodeKey("small_v1", "older"), at_us=1)
    gathered(store, range(3), OLD, at_us=2)
    gathered(store, range(3), NodeKey("other_v1", "newest"), at_us=3)
    assert older_epoch(store, NEW) == OLD
    assert claim(store, NEW, "one", OLD)
    assert not claim(store, NEW, "two", OLD)
    release_claim(store, NEW)
    assert claim(store, NEW, "two", OLD), "who was ended before it was done leaves it to the next"
    assert not claim(store, NEW, "three", OLD)


def test_lost_replays_are_counted_and_stopping_ends_the_replay(store: Store) -> None:
    gathered(store, range(20))
    assert replay_evidence(store, OLD, lambda _: Lost("the helper process is gone")).lost == 20
    seen: list[int] = []
    replay_evidence(store, OLD, lambda _: None, seen.append, lambda: len(seen) == 5)
    assert seen == [1, 2, 3, 4, 5]


def test_the_epoch_depends_on_semantics_and_comparator() -> None:
    node = node_over(10)
    assert epoch_of(node, "1") == epoch_of(node_over(10), "1")
    assert len({epoch_of(node, "1"), epoch_of(node, "2"), epoch_of(node_over(11), "1")}) == 3
