"""The list of runs and the page of one say what the commands say, and what to do where they cannot."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.dashboard import TestClient, client_of
from tests.support.journal_file import run_statement
from tests.support.journalled import Place, a_place, invoke, node_text
from vesper.cli.traces.open_traces import traces_of
from vesper.dashboard.app import whole_site
from vesper.dashboard.draw.timeline import TimelineRow, draw_timeline
from vesper.trace.model import Decision, Exchange
from vesper.trace.spans import Part, spans_of

RETRIED = node_text(effect_class="keyed", policy="key: event_id\n    retry: {attempts: 3, on: [effect_failed]}")
SITE = ("vesper.dashboard.pages.executions", "vesper.dashboard.pages.stepping")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Place, TestClient]]:
    """Yield one journal and one client for all tests: making them takes longer than a test."""
    folder = tmp_path_factory.mktemp("runs")
    with a_place(folder, f"sqlite:{folder}/journal.db") as place, client_of(place.config, whole_site(SITE)) as client:
        yield place, client


@pytest.fixture
def place(shared: tuple[Place, TestClient]) -> Place:
    found, _ = shared
    found.charged, found.failures = [], []
    return found


@pytest.fixture
def client(shared: tuple[Place, TestClient]) -> TestClient:
    return shared[1]


def test_the_list_filters_and_pages(place: Place, client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    done = [place.run(node_text("listed_v1")), place.run(node_text("listed_v2"))]
    doubtful = place.in_doubt(node_text("listed_v1"))
    found = client.get("/api/executions?node=listed").json()
    assert [each["execution"] for each in found["runs"]] == [doubtful, *reversed(done)]
    assert [each["result"] for each in found["runs"]] == ["in doubt", "success", "success"]
    page = client.get("/executions?node=listed_v2&result=success").text
    assert done[1][:18] in page
    assert done[0][:18] not in page
    monkeypatch.setattr("vesper.dashboard.pages.executions.listing._PAGE_RUNS", 2)
    first = client.get("/api/executions?since=1h&node=listed").json()
    second = client.get(f"/api/executions{first['next']}").json()
    assert [each["execution"] for each in second["runs"]] == [done[0]]
    assert (second["next"], second["first"]) == (None, "?since=1h&node=listed")
    assert "did you mean `listed_v2`" in client.get("/api/executions?node=lsted_v2").json()["note"]
    for wrong in ("since=soon", "result=x", "id=../etc", "before=x"):
        assert client.get(f"/api/executions?{wrong}").status_code == 400


def test_a_project_without_runs_says_how_to_record_one(tmp_path: Path) -> None:
    with client_of(tmp_path, whole_site(SITE)) as client:
        assert "No run is recorded yet." in client.get("/executions").text
        assert client.get("/executions/01a1").status_code == 404


def show(place: Place, execution: str) -> str:
    return invoke("traces", "show", execution, "--config", str(place.folder / "vesper.toml")).output


def test_a_run_has_its_attempts_and_waits_in_the_drawing_and_in_the_table(place: Place, client: TestClient) -> None:
    place.failures = ["effect_failed"]
    execution = place.run(RETRIED)
    run = client.get(f"/api/executions/{execution}").json()
    assert [(each["path"], each["status"], each["attempts"]) for each in run["steps"]] == [
        ("known", "ok", 1),
        ("charge", "ok", 1),
    ]
    charge = run["steps"][1]
    assert [(each["kind"], each["text"]) for each in charge["parts"]] == [
        ("attempt", "effect_failed"),
        ("wait", "wait before the next attempt"),
        ("attempt", ""),
    ]
    assert run["outcome"] in show(place, execution)
    page = client.get(f"/executions/{execution}").text
    assert page.count('class="attempt') == 3
    assert page.count('class="wait"') == 1
    assert f"vesper replay {execution}" in page


def test_sensitive_values_are_masked_as_in_the_command(place: Place, client: TestClient) -> None:
    execution = place.run(node_text(sensitive=True), customer="zoe")
    page, run = client.get(f"/executions/{execution}").text, client.get(f"/api/executions/{execution}").text
    shown = show(place, execution)
    for text in (page, run, shown):
        assert "zoe" not in text
        assert "sensitive&gt;" in text or "<sensitive>" in text
    assert "10.00" in page


def test_an_open_run_waits_and_one_without_its_definition_says_what_to_do(place: Place, client: TestClient) -> None:
    doubtful = place.in_doubt(node_text())
    run = client.get(f"/api/executions/{doubtful}").json()
    assert (run["result"], run["waits_at"]) == ("in doubt", "charge")
    assert run["steps"][-1]["status"] == "open"
    gone = place.run(node_text("gone_v1"))
    run_statement(place.folder / "journal.db", "UPDATE vesper_definitions SET ir = x'7b7d' WHERE node_id = 'gone_v1'")
    lost = client.get(f"/api/executions/{gone}").json()
    assert lost["problem"]
    assert lost["steps"] == []
    page = client.get(f"/executions/{gone}").text
    assert f'href="/journal/{gone}"' in page
    assert client.get(f"/executions/{gone}/step").status_code == 404


def test_an_address_names_no_file(
    place: Place, client: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    execution = place.run(node_text())
    monkeypatch.chdir(tmp_path)
    config = ("--config", str(place.folder / "vesper.toml"))
    assert invoke("traces", "export", execution, *config, "-o", "kept.json").exit_code == 0
    for wrong in ("kept.json", "0000", "%2e%2e", "a%20b"):
        assert client.get(f"/executions/{wrong}").status_code in (400, 404)


def test_spans_keep_waits_inside_the_request(place: Place) -> None:
    execution = place.run(RETRIED)
    with traces_of(place.config) as traces:
        trace = traces.find(execution)
    known, charge = trace.exchanges
    begin = trace.started_us
    held = {"decision": "waiting", "by": "rate_limit", "until_us": begin + 700}
    again = {"decision": "retry", "attempt": 2, "code": "timeout", "delay_us": 90_000}
    decisions = (Decision(1, held, begin + 100), Decision(1, again, begin + 900), Decision(1, {"decision": "x"}))
    changed: tuple[Exchange, ...] = (
        known,
        replace(charge, decisions=decisions, asked_us=begin, answered_us=begin + 1_000),
    )
    spans = spans_of(replace(trace, exchanges=changed), begin)
    assert [(each.kind, each.begin_us - begin, each.end_us - begin, each.number) for each in spans[1].parts] == [
        ("wait", 100, 700, 1),
        ("attempt", 700, 900, 1),
        ("wait", 900, 1_000, 2),
        ("attempt", 1_000, 1_000, 2),
    ]


def test_a_drawing_escapes_its_texts() -> None:
    row = TimelineRow('<script>"', "✓", "ok", "</title><b>", 0, (Part("attempt", 0, 5, "", 1),))
    text = str(draw_timeline([row] * 200, 0, 1_000_000))
    assert "<script" not in text
    assert "<b>" not in text
    assert text.count('class="label"') == 120
    assert re.findall(r'text-anchor="middle">([^<]+)', text)[:2] == ["0", "200 ms"]
