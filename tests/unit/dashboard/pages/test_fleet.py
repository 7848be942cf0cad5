"""The fleet: order, reasons, filters, totals, and how much is read for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.dashboard import client_of, context_for
from tests.unit.migration.support.remote_answers import FEE, MINUTE_US, NOON_US, Told
from vesper.config.settings import default_config
from vesper.dashboard.app import whole_site
from vesper.dashboard.pages.fleet import fleet
from vesper.dashboard.pages.fleet.fleet import FleetPage, read_fleet
from vesper.dashboard.pages.fleet.latency import Times, durations_of, times_of_state
from vesper.dashboard.pages.fleet.needs import NeedKind
from vesper.dashboard.problem import BadRequest
from vesper.dashboard.stores import Stores
from vesper.journal.journal import Journal, Status, Summary
from vesper.migration.control.modes import Engine, Mode
from vesper.migration.control.state import EngineFaulted, Kill, NodeState, Noisy, PinTo, Settings
from vesper.migration.statistics.latency import LatencyState
from vesper.migration.stores import ledger
from vesper.migration.stores.store import NodeKey, Store
from vesper.observe.metrics import BOUNDS_MS, Distribution, Sample
from vesper.values.generated.metrics import EXECUTION_DURATION

CALM, KILLED, FAULTY = (NodeKey(f"{name}_v1", "a" * 32) for name in ("calm", "killed", "faulty"))
SITE = whole_site(("vesper.dashboard.pages.fleet",))
SCRIPT = "<script>alert(1)</script>"


class Doubts:
    """A journal with two runs in doubt of one node."""

    def find(self, *, status: Status, limit: int, node: str | None = None) -> list[Summary]:
        one = Summary("e1", "transfer_v1", "h", status, None, NOON_US, NOON_US, "", 1, "python", False, False)
        return [one, replace(one, execution="e2")]


class StoresWithDoubts(Stores):
    @property
    def journal(self) -> Journal:
        return Doubts()  # type: ignore[return-value]  # the page only searches it


@pytest.fixture
def told(tmp_path: Path) -> Iterator[Told]:
    found = Told(tmp_path)
    yield found
    found.store.close()


def read(told: Told, folder: Path, make: Callable[..., Stores] = Stores, **query: str) -> FleetPage:
    stores = make(default_config(folder))
    try:
        return read_fleet(context_for(stores, query, told.now_us))
    finally:
        stores.close()


def fill(told: Told) -> None:
    """Five nodes: without a need, killed, with a latch, with a divergence, unreadable."""
    told.batch(CALM, runs=300, served={"canary_direct/direct": 10, "canary_direct/python": 30})
    told.batch(KILLED, Kill("bob", "odd answers"), runs=5)
    told.batch(FAULTY, EngineFaulted("it panicked"), runs=5)
    told.batch(runs=100)
    told.diverge()
    told.store.transact(NodeKey("torn_v1", "b" * 32), lambda transaction: transaction.put_state("{}"))


def test_what_needs_a_person_comes_first_with_a_reason_and_a_remedy(told: Told, tmp_path: Path) -> None:
    fill(told)
    found = read(told, tmp_path)
    assert [row.node for row in found.rows] == ["torn_v1", "faulty_v1", "killed_v1", "fee_v1", "calm_v1"]
    torn, faulty, killed, fee, calm = found.rows
    assert [each.kind for row in found.rows for each in row.needs] == [
        NeedKind.UNREADABLE, NeedKind.LATCHED, NeedKind.KILLED, NeedKind.DIVERGENCE,
    ]  # fmt: skip
    assert torn.mode is None
    assert torn.needs[0].why.startswith("its state cannot be read: ")
    assert "engine fault: it panicked" in faulty.needs[0].why
    assert killed.needs[0].why == "killed at 2026-11-15 12:01:00Z by bob: odd answers"
    assert (killed.needs[0].do, killed.needs[0].link) == ("Resume it when the cause is fixed.", "/nodes/killed_v1")
    assert fee.needs[0].why == "1 divergence is open: the engines gave different answers"
    assert fee.needs[0].link == "/divergences?node=fee_v1"
    assert (calm.needs, calm.mode, calm.held) == ([], Mode.CANARY_DIRECT, "")
    assert (calm.confidence, calm.agreed) == ("0.96517", 300)
    assert calm.needed == "10,514 more distinct runs that agree"
    assert (calm.python_requests, calm.direct_requests) == (30, 10)


def test_totals_are_those_of_the_whole_fleet(told: Told, tmp_path: Path) -> None:
    fill(told)
    found = read(told, tmp_path, mode="canary_direct")
    assert [row.node for row in found.rows] == ["calm_v1"]
    assert (found.nodes, found.needing, found.unreadable, found.open_divergences) == (5, 4, 1, 1)
    assert {each.mode: each.nodes for each in found.modes if each.nodes} == {
        Mode.PYTHON_ONLY: 2, Mode.SHADOW_DIRECT: 1, Mode.CANARY_DIRECT: 1,
    }  # fmt: skip
    assert (found.requests, found.direct_requests) == (40, 10)


def test_filters_and_orders(told: Told, tmp_path: Path) -> None:
    fill(told)
    assert {row.node for row in read(told, tmp_path, needs="yes").rows} == {
        "torn_v1", "faulty_v1", "killed_v1", "fee_v1",
    }  # fmt: skip
    assert [row.node for row in read(told, tmp_path, name="CALM").rows] == ["calm_v1"]
    assert read(told, tmp_path, sort="traffic").rows[0].node == "calm_v1"
    assert read(told, tmp_path, sort="confidence").rows[0].node == "calm_v1"
    assert read(told, tmp_path, sort="divergences").rows[0].node == "fee_v1"
    assert read(told, tmp_path, sort="mode").rows[0].node == "torn_v1"
    assert [row.node for row in read(told, tmp_path, sort="name").rows][:2] == ["calm_v1", "faulty_v1"]
    with pytest.raises(BadRequest):
        read(told, tmp_path, sort="luck")


def test_only_the_rows_of_the_page_are_read_one_by_one(
    told: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        told.batch(NodeKey(f"n{number}_v1", "c" * 32), runs=1)
    monkeypatch.setattr(fleet, "PAGE_ROWS", 2)
    reads: list[object] = []
    read_one = type(told.store).read

    def count(store: Store, key: NodeKey) -> str | None:
        reads.append(key)
        return read_one(store, key)

    monkeypatch.setattr(type(told.store), "read", count)
    found = read(told, tmp_path, page="2")
    assert [row.node for row in found.rows] == ["n2_v1", "n3_v1"]
    assert len(reads) == 3, "two nodes and the kill switch"
    assert (found.paging.previous, found.paging.next, found.paging.total) == ("?page=1", "?page=3", 5)


def test_runs_in_doubt_are_most_urgent_also_of_a_node_that_is_not_routed(told: Told, tmp_path: Path) -> None:
    fill(told)
    found = read(told, tmp_path, StoresWithDoubts)
    assert found.in_doubt == 2
    row = found.rows[1]
    assert (row.node, row.mode, row.in_doubt, row.epoch) == ("transfer_v1", None, 2, None)
    assert row.needs[0].why == "2 runs stopped with a request that may or may not have been performed"
    assert row.needs[0].link == "/journal?node=transfer_v1"


def test_an_approval_is_waited_for_only_where_nothing_else_is_missing(tmp_path: Path) -> None:
    told = Told(tmp_path, Settings(frozenset({Mode.CANARY_DIRECT})))
    told.batch(runs=100)
    told.batch(CALM, runs=300)
    config = default_config(tmp_path)
    settings = replace(config.migration_settings(), approvals=("canary_direct",))
    stores = Stores(replace(config, migration=settings))
    first, second = read_fleet(context_for(stores, now_us=told.now_us)).rows
    stores.close()
    told.store.close()
    assert (first.node, first.needs[0].kind) == ("calm_v1", NeedKind.APPROVAL)
    assert first.needs[0].why == "it has the evidence for canary_direct and waits for the approval of a person"
    assert (second.node, second.needs) == ("fee_v1", [])


def test_noise_and_a_pin_are_shown(told: Told, tmp_path: Path) -> None:
    until_us = told.now_us + 90 * MINUTE_US
    told.batch(CALM, Noisy("f" * 16, "charge"), PinTo(Mode.SHADOW_DIRECT, until_us, "ann", "a freeze"), runs=1)
    (row,) = read(told, tmp_path).rows
    assert [each.kind for each in row.needs] == [NeedKind.NOISE]
    assert (row.held, row.pinned_by) == ("pinned for 1 h 29 min", "by ann: a freeze")


def test_without_a_store_the_files_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VESPER_NODES", raising=False)
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / "pay_v1.vsp").write_text("node_id: pay_v1\n", encoding="utf-8")
    with client_of(tmp_path, SITE) as client:
        found = client.get("/api/").json()
        page = client.get("/").text
    assert [(row["node"], row["mode"]) for row in found["rows"]] == [("pay_v1", None)]
    assert found["not_routed"] == 1
    assert "there is no file" in found["warnings"][0]
    assert "Load a node with" in page


def test_an_empty_project_says_what_to_do(tmp_path: Path) -> None:
    with client_of(tmp_path, SITE) as client:
        assert "There is no node yet." in client.get("/").text


def test_names_and_reasons_are_hostile(told: Told, tmp_path: Path) -> None:
    told.batch(NodeKey(SCRIPT, "a" * 32), Kill(SCRIPT, SCRIPT), runs=1)
    ledger.kill_all(told.store, SCRIPT, SCRIPT, told.now_us)
    with client_of(tmp_path, SITE) as client:
        text = client.get("/").text
        assert SCRIPT not in text
        assert text.count("&lt;script&gt;") >= 4
        assert "/nodes/%3Cscript%3E" in text
        milestones = client.get("/milestones").text
        assert SCRIPT not in milestones


def test_times_are_of_the_metrics_or_of_the_guard() -> None:
    state = NodeState("a_v1", "e", latency=LatencyState(tuple(range(1000, 101_000, 1000)), (1000,) * 19))
    assert times_of_state(state, Engine.PYTHON) == Times(51.0, 100.0, 100)
    assert times_of_state(state, Engine.DIRECT) is None, "too few"
    counts = [0] * (len(BOUNDS_MS) + 1)
    counts[2], counts[5] = 90, 10
    samples = [
        Sample(EXECUTION_DURATION, ("a_v1", "direct"), Distribution(tuple(counts), 1.0, None)),
        Sample(EXECUTION_DURATION, ("b_v1", "python"), Distribution((1,) * len(counts), 1.0, None)),
    ]
    found = durations_of(samples)
    assert found["a_v1", Engine.DIRECT] == Times(BOUNDS_MS[2] * 1000, BOUNDS_MS[5] * 1000, 100)


def test_metrics_that_cannot_be_read_are_a_warning(told: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_config: object) -> None:
        raise OSError("the folder is not yours")

    told.batch(runs=1)
    monkeypatch.setattr(fleet, "read_metrics", refuse)
    found = read(told, tmp_path)
    assert "times are not from the metrics of the service: the folder is not yours" in found.warnings
    assert (found.has_metrics, found.rows[0].node) == (False, FEE.node)
    measured = {(FEE.node, Engine.DIRECT): Times(1.0, 2.0, 30)}
    monkeypatch.setattr(fleet, "read_metrics", lambda _config: [])
    monkeypatch.setattr(fleet, "durations_of", lambda _samples: measured)
    found = read(told, tmp_path)
    assert (found.has_metrics, found.rows[0].direct, found.rows[0].python) == (True, Times(1.0, 2.0, 30), None)


def test_a_fleet_of_many_epochs_counts_each_node_once(told: Told, tmp_path: Path) -> None:
    told.batch(NodeKey(FEE.node, "0" * 32), runs=1, served={"shadow_direct/python": 5})
    told.batch(runs=2, served={"shadow_direct/python": 7})
    found = read(told, tmp_path)
    assert [(row.node, row.epoch, row.requests) for row in found.rows] == [(FEE.node, FEE.epoch, 7)]
    assert found.requests == 12, "requests of all epochs"
