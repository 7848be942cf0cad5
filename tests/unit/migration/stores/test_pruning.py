"""Pruning deletes the evidence of old definitions, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.journalled import invoke
from tests.unit.migration.support.places import KINDS, fresh_dsn
from tests.unit.migration.support.remote_answers import FEE, NOON_US, NOTE, Told
from tests.unit.migration.support.routed import DECISION, compiled, routes_in
from tests.unit.migration.support.stories import MAIN, at, told
from vesper.migration.control.controller import is_proven
from vesper.migration.control.modes import LADDER, Mode
from vesper.migration.control.state import Agreed, Changed, Diverged, Forget, Forgotten, Kill, NodeState, Settings
from vesper.migration.router.node_state import now_us
from vesper.migration.stores import ledger
from vesper.migration.stores.pruning import DAY_US, old_epochs, prune
from vesper.migration.stores.store import Batch, NodeKey, SeenOnPath, Store, open_store

FORGET = Forget("ann", "tidying up")
EPOCHS = [NodeKey("fee_v1", each * 64) for each in "abcd"]
DAYS = (0, 10, 20, 200)
"""Day of the last write of each epoch."""
TODAY_US = NOON_US + 201 * DAY_US
KEPT_US = 90 * DAY_US
SETTINGS = Settings()


def write(
    store: Store, key: NodeKey, at_us: int, runs: int = 300, number: int = 1, attempt: int | None = None
) -> NodeState:
    batch = Batch(
        "shop-1",
        number,
        agreed={NOTE.name: SeenOnPath(frozenset(range(runs)), runs)},
        paths={NOTE.name: NOTE.to_text()},
        attempt=attempt,
        served={"shadow_direct/python": runs},
    )
    return ledger.apply(store, key, batch, SETTINGS, at_us).state


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    opened = open_store(fresh_dsn(request.param, request, tmp_path))
    for key, day in zip(EPOCHS, DAYS, strict=True):
        write(opened, key, NOON_US + day * DAY_US)
    yield opened
    opened.close()


def kept_of(store: Store, key: NodeKey) -> tuple[int, int, bool, bool]:
    """Return fingerprints of node and path, the note of the path, and whether there are samples."""
    state = ledger.load(store, key, SETTINGS)
    scopes = [f"n{state.attempt}", f"p{NOTE.name}:1", "n1"]
    sizes = store.transact(key, lambda transaction: [transaction.size(each) for each in scopes])
    return max(sizes[0], sizes[2]), sizes[1], bool(store.paths(key)), store.document(key, "samples") is not None


def test_the_two_newest_and_recent_epochs_stay(store: Store) -> None:
    assert [each.key for each in old_epochs(store, SETTINGS, TODAY_US - KEPT_US)] == EPOCHS[:2]
    assert [each.key for each in old_epochs(store, SETTINGS, NOON_US + 5 * DAY_US)] == EPOCHS[:1]
    assert old_epochs(store, SETTINGS, TODAY_US, "other_v1") == []
    gone = prune(store, SETTINGS, TODAY_US, KEPT_US, FORGET)
    assert [(each.key, each.state.clean) for each in gone] == [(each, 300) for each in EPOCHS[:2]]
    for key in EPOCHS[:2]:
        assert kept_of(store, key) == (0, 0, False, False)
        state = ledger.load(store, key, SETTINGS)
        assert (state.mode, state.clean, state.attempt, dict(state.paths)) == (Mode.SHADOW_DIRECT, 0, 2, {})
    for key in EPOCHS[2:]:
        assert kept_of(store, key) == (300, 300, True, True)
    assert list(prune(store, SETTINGS, TODAY_US, KEPT_US, FORGET)) == []


def test_the_history_records_the_deletion_and_verifies(store: Store) -> None:
    before = len(store.history(EPOCHS[0]))
    prune(store, SETTINGS, TODAY_US, KEPT_US, FORGET)
    lines = store.history(EPOCHS[0])
    assert ledger.verify_history(lines) is None
    records = [json.loads(each.text) for each in lines[before:]]
    assert [each["kind"] for each in records] == ["forgotten", "changed"]
    assert (records[0]["who"], records[0]["why"], records[0]["seen"]["clean"]) == ("ann", "tidying up", 300)
    assert (records[1]["before"], records[1]["after"]) == ("canary_direct", "shadow_direct")


def test_a_definition_that_comes_back_begins_afresh(store: Store) -> None:
    prune(store, SETTINGS, TODAY_US, KEPT_US, FORGET)
    late = write(store, EPOCHS[0], TODAY_US, number=2, attempt=1)
    assert late.clean == 0, "gathered before it was forgotten"
    again = write(store, EPOCHS[0], TODAY_US, runs=100, number=3, attempt=2)
    assert (again.clean, again.mode, is_proven(again, NOTE.name)) == (100, Mode.SHADOW_DIRECT, False)


def test_an_epoch_that_comes_into_use_stays(store: Store) -> None:
    (old, *_) = old_epochs(store, SETTINGS, TODAY_US - KEPT_US)
    write(store, old.key, TODAY_US, runs=301, number=2)
    assert ledger.forget(store, old.key, FORGET, SETTINGS, TODAY_US, old.written_us) is None
    assert kept_of(store, old.key) == (301, 301, True, True)


@pytest.mark.parametrize("mode", LADDER, ids=lambda each: each.value)
def test_evidence_is_deleted_and_orders_stay_in_every_mode(mode: Mode) -> None:
    before = at(mode)
    after, decisions = told(before, [FORGET])
    assert isinstance(decisions[0], Forgotten)
    assert decisions[0].seen.clean == before.clean
    is_down = mode.level > Mode.SHADOW_DIRECT.level
    assert [type(each) for each in decisions[1:]] == [Changed] * is_down
    assert (after.mode, after.clean, after.attempt) == (min(mode, Mode.SHADOW_DIRECT, key=LADDER.index), 0, 2)
    assert after.pin == before.pin


def test_divergences_and_latches_survive_pruning() -> None:
    before, _ = told(at(Mode.DIRECT_ONLY), [Diverged("odd", "f1"), Agreed("fine", 5, 5), Kill("ann", "why")])
    after, _ = told(before, [FORGET])
    assert (after.latches, after.open, after.mode) == (before.latches, before.open, Mode.PYTHON_ONLY)
    assert after.paths.keys() == {"odd", "fine", MAIN}, "all of them began afresh at the latch, and keep their price"


# -- from outside ---------------------------------------------------------------------------------


def test_the_command_lists_and_then_deletes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "vesper.toml").write_text('[migration]\nretention = "30d"\n', encoding="utf-8")
    found = Told(tmp_path)
    today = now_us()
    for number, key in enumerate(EPOCHS):
        write(found.store, key, today - (40 - number) * DAY_US)
    write(found.store, FEE, today)
    found.store.close()
    assert json.loads(invoke("migrate", "prune", "--older-than", "366d", "--format", "json").stdout)["epochs"] == []
    said = invoke("migrate", "prune", "fee", "--dry-run").stdout.splitlines()
    assert said[0].startswith("fee_v1, epoch aaaaaaaaaaaa: 300 distinct runs on 1 path, last used 20")
    assert said[-1] == (
        "evidence of 3 old definitions would be removed: unused for 30 days, except the 2 newest of each node"
    )
    gone = json.loads(invoke("migrate", "prune", "--why", "room", "--by", "ann", "--format", "json").stdout)
    assert ([each["epoch"][0] for each in gone["epochs"]], gone["is_dry_run"]) == (["a", "b", "c"], False)
    assert invoke("migrate", "prune").stdout.startswith("evidence of 0 old definitions removed")
    history = invoke("migrate", "history", "fee", "--epoch", "a").stdout
    assert "the evidence was removed (300 distinct runs in 300 comparisons), by ann: room" in history
    for length, shown in (("0s", "0 days"), ("90m", "1 h 30 min"), ("1d", "1 day"), ("3660d", "3,660 days")):
        assert f"unused for {shown}, except the 2 newest" in invoke("migrate", "prune", "--older-than", length).stdout
    too_long = invoke("migrate", "prune", "--older-than", "3661d")
    assert (too_long.exit_code, "not a duration up to 3660 days" in too_long.stderr) == (2, True)
    refused = invoke("migrate", "prune", "feee")
    assert (refused.exit_code, "did you mean" in refused.stderr) == (1, True)


def test_a_retention_of_less_than_a_day_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "vesper.toml").write_text('[migration]\nretention = "3h"\n', encoding="utf-8")
    refused = invoke("migrate", "prune")
    assert refused.exit_code == 1
    assert "from 1d to 3660d is expected" in refused.stderr


def test_a_process_that_begins_with_a_node_prunes_it(tmp_path: Path) -> None:
    node = compiled(DECISION).node.node_id
    old = [NodeKey(node, each * 64) for each in "abc"]
    other = [NodeKey("fee_v1", each * 64) for each in "abc"]
    routes = routes_in(tmp_path, refresh="10s", retention="30d")
    for number, key in enumerate([*old, *other]):
        write(routes.migration.store, key, now_us() - (100 - number) * DAY_US)
    routes.program(compiled(DECISION))
    for tending in routes._tended:
        for thread in tending._threads:
            thread.join(60)
    assert kept_of(routes.migration.store, old[0]) == (0, 0, False, False)
    for key in (*old[1:], *other):
        assert kept_of(routes.migration.store, key) == (300, 300, True, True)
    routes.close()
