"""Milestones: when each was reached, or what it still needs; modes over time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.dashboard import context_for
from tests.unit.migration.support.remote_answers import MINUTE_US, NOON_US, Told
from vesper.config.settings import default_config
from vesper.dashboard.pages.fleet import milestones
from vesper.dashboard.pages.fleet.milestones import MilestonesPage, read_milestones
from vesper.dashboard.problem import Unavailable
from vesper.dashboard.stores import Stores
from vesper.migration.control.state import Kill
from vesper.migration.stores.store import NodeKey


@pytest.fixture
def told(tmp_path: Path) -> Iterator[Told]:
    found = Told(tmp_path)
    yield found
    found.store.close()


def key(number: int, epoch: str = "a") -> NodeKey:
    return NodeKey(f"n{number}_v1", epoch * 32)


def read(told: Told, folder: Path) -> MilestonesPage:
    stores = Stores(default_config(folder))
    try:
        return read_milestones(context_for(stores, now_us=told.now_us))
    finally:
        stores.close()


def test_ten_nodes_in_the_canary_are_reached_with_the_tenth(told: Told, tmp_path: Path) -> None:
    for number in range(9):
        told.batch(key(number), runs=300)
    canary = read(told, tmp_path).milestones[1]
    assert (canary.now, canary.missing) == (
        "9 nodes in canary_direct or above",
        "1 more node in canary_direct or above",
    )
    assert (canary.is_reached, canary.reached_us, canary.progress) == (False, None, 0.9)
    tenth_us = told.now_us
    told.batch(key(9), runs=300)
    found = read(told, tmp_path)
    assert (found.milestones[1].is_reached, found.milestones[1].reached_us) == (True, tenth_us)
    assert [each.counts[2] for each in found.nodes] == list(range(1, 11))
    told.batch(key(0), Kill("ann", "odd"))
    canary = read(told, tmp_path).milestones[1]
    assert (canary.is_reached, canary.reached_us) == (False, tenth_us), "lost again"
    assert "10 canary_direct" in found.nodes_plot()


def test_agreement_is_that_of_all_compared_runs(told: Told, tmp_path: Path) -> None:
    told.batch(key(0), runs=9_000)
    agreement = read(told, tmp_path).milestones[0]
    assert not agreement.is_reached
    assert agreement.now.endswith("0 of 1 node show it alone")
    told.batch(key(1), runs=9_000)
    reached_us = told.now_us
    agreement = read(told, tmp_path).milestones[0]
    assert agreement.is_reached
    assert agreement.now.startswith("0.99939 from 18,000 distinct runs")
    assert agreement.reached_us is not None
    assert agreement.reached_us <= reached_us
    assert agreement.missing == ""


def test_the_share_of_traffic_is_of_the_last_day(told: Told, tmp_path: Path) -> None:
    assert read_empty(told, tmp_path).milestones[3].now == "no requests"
    told.batch(key(0), runs=1, served={"direct_only/direct": 60, "shadow_direct/python": 40})
    found = read(told, tmp_path)
    traffic = found.milestones[3]
    assert (traffic.now, traffic.is_reached) == ("60.0 % of the requests of the last 24 hours", True)
    assert traffic.reached_us == NOON_US
    assert [each.counts for each in found.traffic] == [(0, 40, 0, 0, 60)]
    assert "60 % direct_only" in found.traffic_plot()
    told.now_us += 25 * 60 * MINUTE_US
    assert read(told, tmp_path).milestones[3].now == "no requests"


def read_empty(told: Told, folder: Path) -> MilestonesPage:
    told.store.versions()
    return read(told, folder)


def test_a_node_counts_with_its_newest_epoch(told: Told, tmp_path: Path) -> None:
    told.batch(key(0), runs=300)
    told.batch(key(0, "b"), Kill("ann", "odd"), runs=1)
    assert [each.counts[:3] for each in read(told, tmp_path).nodes] == [(0, 0, 1), (1, 0, 0)], "one node, not two"


def test_many_changes_are_thinned(told: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(milestones, "MAX_STEPS", 3)
    for number in range(8):
        told.batch(key(number), runs=300)
    found = read(told, tmp_path)
    assert len(found.nodes) <= 4
    assert sum(found.nodes[-1].counts) == 8


def test_without_a_store_there_is_a_remedy(tmp_path: Path) -> None:
    stores = Stores(default_config(tmp_path))
    with pytest.raises(Unavailable) as caught:
        read_milestones(context_for(stores))
    assert "vesper serve" in caught.value.remedy
