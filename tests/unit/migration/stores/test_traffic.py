"""Requests by hour and samples of the evidence: counting, bounds, and restarts."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from tests.unit.migration.support.remote_answers import FEE, MINUTE_US, NOON_US, Told
from vesper.migration.control.controller import Missing
from vesper.migration.control.modes import Engine, Mode
from vesper.migration.control.state import EngineFaulted, Kill, RunLost, Settings
from vesper.migration.statistics import wilson
from vesper.migration.stores import ledger
from vesper.migration.stores.overview import path_letter
from vesper.migration.stores.series import Band, read_series, series
from vesper.migration.stores.store import Batch, Happened, NodeKey
from vesper.migration.stores.traffic import (
    HOUR_US,
    MAX_HOURS,
    MAX_SAMPLES,
    SAMPLES,
    TRAFFIC,
    Sample,
    Traffic,
    samples_from_text,
    samples_text,
    served_key,
    thin,
)

PYTHON = served_key(Mode.SHADOW_DIRECT, Engine.PYTHON)
DIRECT = served_key(Mode.DIRECT_ONLY, Engine.DIRECT)


def test_requests_are_counted_by_the_hour() -> None:
    found = Traffic().add_served({PYTHON: 3}, NOON_US).add_served({PYTHON: 4, DIRECT: 0}, NOON_US + 1)
    found = found.add_served({DIRECT: 5}, NOON_US + HOUR_US)
    hour = NOON_US // HOUR_US
    assert found.hours == {hour: {PYTHON: 7}, hour + 1: {DIRECT: 5}}
    assert found.since(NOON_US, 1) == {PYTHON: 7}
    assert found.since(NOON_US + HOUR_US, 1) == {DIRECT: 5}
    assert found.since(NOON_US + HOUR_US, 2) == {PYTHON: 7, DIRECT: 5}
    assert found.since(NOON_US + 30 * HOUR_US, 24) == {}
    assert Traffic.from_text(found.to_text()) == found


def test_the_newest_hours_are_kept() -> None:
    found = Traffic()
    for hour in range(MAX_HOURS + 5):
        found = found.add_served({PYTHON: 1}, NOON_US + hour * HOUR_US)
    assert len(found.hours) == MAX_HOURS
    assert min(found.hours) == NOON_US // HOUR_US + 5


@pytest.mark.parametrize("served", [{"python": 1}, {"direct_only/rust": 1}, {PYTHON: -1}])
def test_invalid_counts_are_refused(served: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"is no (count|mode and engine)"):
        Traffic().add_served(served, NOON_US)


def test_samples_are_thinned_and_keep_their_ends() -> None:
    samples = tuple(Sample(at, at, 0, Mode.SHADOW_DIRECT) for at in range(MAX_SAMPLES + 1))
    kept = thin(samples)
    assert len(kept) <= MAX_SAMPLES // 2 + 1
    assert (kept[0], kept[-1]) == (samples[0], samples[-1])
    assert kept[1].at_us == 2
    assert samples_from_text(samples_text(kept)) == kept


def test_samples_never_grow_over_their_bound() -> None:
    samples: tuple[Sample, ...] = ()
    for at in range(3 * MAX_SAMPLES):
        samples = thin((*samples, Sample(at, at, 0, Mode.SHADOW_DIRECT)))
        assert len(samples) <= MAX_SAMPLES
    assert [each.at_us for each in samples] == sorted(each.at_us for each in samples)
    assert samples[-1].at_us == 3 * MAX_SAMPLES - 1


def test_a_batch_counts_once_and_samples_once_a_minute(tmp_path: Path) -> None:
    told = Told(tmp_path)
    store = told.store
    batch = Batch("shop-1", 1, served={PYTHON: 5})
    for _ in range(2):
        ledger.apply(store, FEE, batch, Settings(), NOON_US)
    ledger.apply(store, FEE, Batch("shop-1", 2, served={PYTHON: 2}), Settings(), NOON_US + MINUTE_US - 1)
    found = Traffic.from_text(store.document(FEE, TRAFFIC) or "")
    assert found.since(NOON_US, 1) == {PYTHON: 7}
    assert found.written_us == NOON_US + MINUTE_US - 1
    assert len(samples_from_text(store.document(FEE, SAMPLES) or "")) == 1
    version = store.versions()[FEE]
    ledger.apply(store, FEE, Batch("shop-1", 3, served={PYTHON: 1}), Settings(), NOON_US + MINUTE_US)
    assert len(samples_from_text(store.document(FEE, SAMPLES) or "")) == 2
    assert store.versions()[FEE] == version  # nobody needs to look again for that
    # A clock that was put back far is followed.
    ledger.apply(store, FEE, Batch("shop-1", 4), Settings(), NOON_US - HOUR_US)
    assert len(samples_from_text(store.document(FEE, SAMPLES) or "")) == 3
    store.close()


def test_only_running_processes_mark_an_epoch_as_used(tmp_path: Path) -> None:
    told = Told(tmp_path)
    later = NOON_US + HOUR_US

    def written(key: NodeKey) -> int | None:
        return Traffic.from_text(told.store.document(key, TRAFFIC) or "").written_us

    told.batch(runs=5)
    ledger.apply_event(told.store, FEE, Kill("ann", "fire"), Settings(), later)
    ledger.apply(told.store, FEE, Batch("gone", 1, (Happened(RunLost("r")),)), Settings(), later, is_in_use=False)
    assert written(FEE) == NOON_US
    never = NodeKey("fee_v1", "0" * 64)  # nobody knows better: otherwise its evidence would stay for ever
    ledger.apply(told.store, never, Batch("gone", 1, (Happened(RunLost("r")),)), Settings(), later, is_in_use=False)
    assert written(never) == later
    told.store.close()


@pytest.mark.parametrize(
    "name, text",
    [
        (TRAFFIC, "no json"),
        (TRAFFIC, '{"format": 2}'),
        (TRAFFIC, '{"format": 1, "hours": {"1": {"x/y": 1}}, "written_us": null, "sampled_us": null}'),
        (TRAFFIC, '{"format": 1, "hours": [], "written_us": "x", "sampled_us": null}'),
        (SAMPLES, "[" * 100_000),
        (SAMPLES, '{"format": 1, "samples": [[1, 2, 3, 9]]}'),
        (SAMPLES, '{"format": 1, "samples": [[1, -2, 3, 1]]}'),
    ],
)
def test_unreadable_documents_are_restarted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, text: str
) -> None:
    told = Told(tmp_path)
    told.batch(runs=3)
    told.store.transact(FEE, lambda transaction: transaction.put_document(name, text))
    with caplog.at_level(logging.WARNING, "vesper.migration"):
        told.batch(runs=4, served={PYTHON: 2})
    assert "cannot be read, and are begun anew" in caplog.text
    assert ledger.load(told.store, FEE, Settings()).clean == 7
    assert Traffic.from_text(told.store.document(FEE, TRAFFIC) or "").sampled_us is not None
    told.store.close()


def test_the_course_of_a_node(tmp_path: Path) -> None:
    told = Told(tmp_path)
    told.batch(runs=100)
    told.batch(runs=200)
    told.diverge()
    told.batch(FEE, EngineFaulted("it broke"))
    found = read_series(told.store, FEE, NOON_US + 10 * MINUTE_US)
    assert found is not None
    assert found.bands == [
        Band(Mode.SHADOW_DIRECT, NOON_US, NOON_US + MINUTE_US),
        Band(Mode.CANARY_DIRECT, NOON_US + MINUTE_US, NOON_US + 3 * MINUTE_US),
        Band(Mode.PYTHON_ONLY, NOON_US + 3 * MINUTE_US, NOON_US + 10 * MINUTE_US),
    ]
    assert [each.at_us for each in found.divergences] == [NOON_US + 2 * MINUTE_US]
    assert [round(each.lower_bound, 3) for each in found.points] == [0.902, 0.965, 0.965, 0.959, 0.959]
    assert found.start_us == NOON_US
    told.store.close()


def test_the_last_point_is_now(tmp_path: Path) -> None:
    """Samples are a minute apart; the last point covers the time since then."""
    told = Told(tmp_path)
    told.batch(runs=1)
    told.now_us = NOON_US + MINUTE_US // 2
    told.batch(runs=150)
    found = read_series(told.store, FEE, NOON_US + MINUTE_US // 2)
    assert found is not None
    assert [each.at_us for each in found.points] == [NOON_US, NOON_US + MINUTE_US // 2]
    assert found.points[-1].lower_bound == wilson.lower_bound(151, 0)
    told.store.close()


def test_there_is_nothing_to_draw() -> None:
    assert series(FEE, (), (), NOON_US) is None


def test_letters_and_words() -> None:
    assert [path_letter(at) for at in (0, 1, 25, 26, 27, 701, 702)] == ["A", "B", "Z", "AA", "AB", "ZZ", "AAA"]
    assert str(Missing("open divergences to be closed", 1)) == "1 open divergence to be closed"
    assert str(Missing("more distinct runs that agree", 7412)) == "7,412 more distinct runs that agree"
    assert str(Missing("the end of its pin")) == "the end of its pin"
