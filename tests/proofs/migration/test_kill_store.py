"""The kill campaign finds losses, and its proof names its sources."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.proofs.migration import kill_store
from tests.proofs.migration.kill_store import NAME, difference, step, tell
from tests.proofs.robustness.proof import PROOFS, read_json, store_hash
from tests.unit.migration.support.places import KEY
from tests.unit.migration.support.plain_store import PlainStore, PlainTransaction
from vesper.migration.stores.store import open_store
from vesper.migration.stores.traffic import TRAFFIC

STEPS = 30


def test_a_step_is_the_same_again() -> None:
    assert [step(1, 2, number) for number in range(1, STEPS)] == [step(1, 2, number) for number in range(1, STEPS)]
    assert step(1, 2, 3) != step(1, 3, 3)


def _lose_a_line(node: PlainTransaction) -> None:
    node.lines.append(node.lines[-1])


def _count_twice(node: PlainTransaction) -> None:
    node.text = str(node.text).replace('"compared":', '"compared":1', 1)


def _lose_a_divergence(node: PlainTransaction) -> None:
    node.divergences["one more"] = "{}"


def _lose_a_member(node: PlainTransaction) -> None:
    next(each for each in node.sets.values() if each).add(4711)


def _forget_a_batch(node: PlainTransaction) -> None:
    node.batches = {name: number + 1 for name, number in node.batches.items()}


def _lose_requests(node: PlainTransaction) -> None:
    node.documents[TRAFFIC] = "{}"


@pytest.mark.parametrize(
    "change,what",
    [(_lose_a_line, "history"), (_count_twice, "state"), (_lose_a_divergence, "divergences"),
     (_lose_a_member, "the set"), (_forget_a_batch, "the last batch"), (_lose_requests, TRAFFIC)],
)  # fmt: skip
def test_lost_and_repeated_batches_are_named(
    tmp_path: Path, change: Callable[[PlainTransaction], None], what: str
) -> None:
    store, plain = open_store(f"sqlite:{tmp_path / 'migration.db'}"), PlainStore()
    for number in range(1, STEPS):
        for each in (store, plain):
            tell(each, step(7, 1, number), 1, number)
    assert difference(store, plain) is None
    change(plain.nodes[KEY])
    assert str(difference(store, plain)).startswith(what)
    store.close()


def test_the_proof_says_whether_it_is_of_these_sources(capsys: pytest.CaptureFixture[str]) -> None:
    proof = read_json(PROOFS / f"{NAME}.json")
    assert proof is not None, "make proof-migration-kills writes it"
    assert proof["kills"] >= kill_store.KILLS
    assert proof["lost_or_counted_twice"] == 0
    assert proof["control_that_acknowledges_too_early_is_found"] is True
    assert set(proof["by_store"]) == set(kill_store.KINDS)
    if proof["source_hash"] != store_hash():
        with capsys.disabled():
            print(f"\ndocs/proofs/{NAME}.json is of other sources; `make proof-migration-kills` renews it")
