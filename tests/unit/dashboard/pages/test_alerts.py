"""The page of alerts: states from the stores, from the metrics directory, and of Prometheus alone."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.dashboard import client_of, context_for
from tests.support.journalled import Place, a_place, node_text
from vesper.config.settings import Config, config_from, default_config
from vesper.dashboard import service
from vesper.dashboard.app import whole_site
from vesper.dashboard.pages.alerts import Alerts, read, state
from vesper.dashboard.pages.alerts.state import Alert, AlertState
from vesper.dashboard.pages.fleet.fleet import read_fleet
from vesper.dashboard.stores import Stores
from vesper.journal.journal import JournalError
from vesper.migration.stores.ledger import kill_all
from vesper.migration.stores.store import open_store
from vesper.observe.metrics import Sample
from vesper.serve.supervisor import VARIABLE
from vesper.values.generated.alert_rules import ALERT_RULES
from vesper.values.generated.metrics import BREAKER_STATE, OUTBOX_AGE

SITE = whole_site(["vesper.dashboard.pages.alerts"])


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(VARIABLE, raising=False)
    with a_place(tmp_path, "sqlite:journal.db") as found:
        yield found


def model(config: Config) -> Alerts:
    stores = Stores(config)
    try:
        return read(context_for(stores))
    finally:
        stores.close()


def alert(config: Config, name: str) -> Alert:
    return next(each for each in model(config).known if each.name == name)


def test_every_shipped_rule_is_listed() -> None:
    declared = tomllib.loads((Path(__file__).parents[4] / "schemas" / "dashboards.toml").read_text())["alert"]
    assert [each.name for each in ALERT_RULES] == list(declared)
    assert set(state._RULES) <= set(declared)


def test_without_any_store_nothing_is_called_quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    found = model(default_config(tmp_path))
    assert {each.state for each in found.known} == {AlertState.UNKNOWN}
    assert "Run a node with effects" in next(each.now for each in found.known if each.name == "VesperInDoubt")
    assert {each.name for each in found.left_to_prometheus} == {
        "VesperJournalSlow", "VesperErrors", "VesperServerErrors", "VesperWorkerDeaths", "VesperCandidateChanged",
        "VesperCandidateFaults",
    }  # fmt: skip


def test_what_the_stores_know_fires_first(place: Place) -> None:
    place.in_doubt(node_text())
    place.left(node_text())
    store = open_store(place.config.migration_settings().store)
    kill_all(store, "zoe", "<b>rates</b> doubled", 1_700_000_000_000_000)
    store.close()
    found = model(place.config)
    firing = [each.name for each in found.known if each.state is AlertState.FIRING]
    assert firing[:2] == ["VesperInDoubt", "Kill switch"]
    assert "Unfinished runs" in firing
    assert found.firing == len(firing)
    assert alert(place.config, "VesperInDoubt").now == "1 run of charge_v1"
    assert alert(place.config, "VesperJournalErrors").state is AlertState.QUIET
    assert alert(place.config, "VesperDivergence").state is AlertState.QUIET
    with client_of(place.config, SITE) as client:
        page = client.get("/alerts").text
        assert client.get("/api/alerts").json()["firing"] == found.firing
    assert "by zoe at 2023-11-14 22:13:20Z: &lt;b&gt;rates" in page
    assert "NODE" in page


def test_a_journal_that_cannot_be_written(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.run(node_text())

    def refuse(_: object) -> None:
        raise JournalError("the disk is full")

    from vesper.journal.store_journal import StoreJournal

    monkeypatch.setattr(StoreJournal, "check_writable", refuse)
    found = alert(place.config, "VesperJournalErrors")
    assert (found.state, found.now, found.link) == (AlertState.FIRING, "the disk is full", "/journal")


def test_gauges_of_the_metrics_directory(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "VESPER_METRICS_DIR" in alert(place.config, "VesperBreakerOpen").now
    used: list[Path] = []
    monkeypatch.setattr(service, "use_directory", used.append)
    monkeypatch.setenv(VARIABLE, str(place.folder))
    samples = [Sample(BREAKER_STATE, ("charge_v1", "stripe"), 2), Sample(OUTBOX_AGE, ("main",), 12_000.0)]
    monkeypatch.setattr(service, "snapshot", lambda: samples)
    assert alert(place.config, "VesperBreakerOpen").now == "stripe of charge_v1"
    outbox = alert(place.config, "VesperOutboxStuck")
    assert (outbox.state, outbox.now) == (AlertState.QUIET, "the oldest event has waited 12 s")
    samples[1] = Sample(OUTBOX_AGE, ("main",), 301_000.0)
    assert alert(place.config, "VesperOutboxStuck").now == "main for 301 s"
    assert set(used) == {place.folder}


def test_the_folder_of_the_settings_comes_before_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[Path] = []
    monkeypatch.setattr(service, "use_directory", used.append)
    monkeypatch.setattr(service, "snapshot", lambda: [Sample(OUTBOX_AGE, ("main",), 301_000.0)])
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    config = config_from({"observe": {"directory": "counts"}}, tmp_path)
    assert alert(config, "VesperOutboxStuck").state is AlertState.UNKNOWN, "the service has not made it"
    (tmp_path / "counts").mkdir()
    assert alert(config, "VesperOutboxStuck").state is AlertState.FIRING
    assert set(used) == {tmp_path / "counts"}
    used.clear()
    stores = Stores(default_config(tmp_path))
    assert read_fleet(context_for(stores)).has_metrics
    assert used == [tmp_path]
