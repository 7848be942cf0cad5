"""The pages of work: what the commands show, what an operator changes, what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.dashboard import TestClient, client_of
from tests.support.journalled import invoke
from tests.support.work.estate import MESSAGE_ID, make_work
from vesper.config.settings import Config
from vesper.dashboard.access.caller import Role
from vesper.dashboard.app import whole_site

NAMES = ("waiting", "queues", "schedules", "topics", "agents")
SITE = whole_site([f"vesper.dashboard.pages.{name}" for name in (*NAMES, "journal")])
REASON = {"reason": "as agreed"}
HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Config:
    return make_work(tmp_path_factory.mktemp("work"))


@pytest.fixture
def client(config: Config, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    assert config.path is not None
    monkeypatch.chdir(Path(config.path).parent)
    with client_of(config, SITE) as found:
        yield found


def done(client: TestClient, path: str, **fields: str) -> str:
    found = client.post(f"/api{path}", json={**REASON, **fields})
    assert found.status_code == 200, found.text
    return str(found.json()["message"])


def test_every_page_is_shown_and_escapes_what_nodes_say(client: TestClient) -> None:
    (first, second) = client.get("/api/workload").json()["runs"]
    assert (first["kind"], first["message"]) == ("interrupt", "Refund 310.00 EUR to bob?")
    paths = [
        "/workload",
        "/workload?kind=signal",
        "/workload?kind=sleep",
        f"/workload/runs/{second['execution']}",
        "/workload/queues",
    ]
    paths += [
        "/workload/queues/invoices",
        "/workload/queues/none",
        "/workload/schedules",
        "/workload/schedules/report_v1",
    ]
    paths += ["/workload/topics", "/workload/topics/orders/invoice_v1", "/workload/agents"]
    for path in paths:
        found = client.get(path)
        assert found.status_code == 200, path
        assert HOSTILE not in found.text
    assert "Refund 1250.00 EUR to &lt;script&gt;" in client.get(f"/workload/runs/{second['execution']}").text
    for path in ("/workload/runs/none", "/workload/schedules/none_v1", "/workload/topics/orders/none"):
        assert client.get(path).status_code == 404


def test_an_interrupt_is_answered_once_with_a_value_of_its_type(client: TestClient) -> None:
    run = client.get("/api/workload").json()["runs"][0]
    path = f"/workload/runs/{run['execution']}"
    fields = client.get(f"/api{path}").json()["fields"]
    assert [each["name"] for each in fields] == ["answer.approved", "answer.level", "answer.note"]
    given = {"answer.approved": "yes", "answer.level": "full", "answer.note": "ok"}
    refused = client.post(f"/api{path}/answer", json={**REASON, **given, "answer.level": "all"})
    assert (refused.status_code, "level" in refused.json()["detail"]) == (409, True)
    assert "Answered approval of refund_v1" in done(client, f"{path}/answer", **given)
    assert client.post(f"/api{path}/answer", json={**REASON, **given}).status_code in (404, 409)
    shown = json.loads(invoke("interrupts", "show", run["execution"], "--format", "json").stdout)
    assert "resolved" in json.dumps(shown)


def test_a_wait_is_cancelled_by_operators(client: TestClient, config: Config) -> None:
    run = client.get("/api/workload?kind=sleep").json()["runs"][0]
    path = f"/workload/runs/{run['execution']}/cancel"
    with client_of(config, SITE, roles=[Role.VIEWER]) as viewer:
        assert viewer.post(f"/api{path}", json=REASON).status_code == 403
    assert "Cancelled the wait pause of reminder_v1" in done(client, path)
    assert client.get("/api/workload?kind=sleep").json()["sleeps"] == 0


def test_agents_are_those_of_the_command_and_are_changed(client: TestClient) -> None:
    lines = client.get("/api/workload/agents").json()["lines"]
    assert lines == json.loads(invoke("agents", "tree", "--format", "json").output)
    assert [(each["address"], each["status"]) for each in lines] == [
        ("desk", "mixed"),
        ("desk/ann", "running"),
        ("desk/bob", "stopped"),
    ]
    assert 'href="/workload/queues/agent%3Adesk%3Aann"' in client.get("/workload/agents").text
    assert "<h1>agent:desk/ann</h1>" in client.get("/workload/queues/agent%3Adesk%3Aann").text
    assert "1 started" in done(client, "/workload/agents/start", address="desk/bob")
    assert "2 stopped" in done(client, "/workload/agents/stop", address="desk")
    assert client.post("/api/workload/agents/stop", json={**REASON, "address": "desk"}).status_code == 409
    unknown = client.post("/api/workload/agents/stop", json={**REASON, "address": "nothing"})
    assert unknown.status_code == 409
    assert "no agent" in unknown.text


def test_queues_are_those_of_the_command_and_are_changed(client: TestClient) -> None:
    (line,) = client.get("/api/workload/queues").json()["lines"]
    (told,) = json.loads(invoke("queue", "list", "--format", "json").stdout)
    assert {name: line[name] for name in ("queue", "waiting", "delayed", "dead")} == {
        name: told[name] for name in ("queue", "waiting", "delayed", "dead")
    }
    assert (line["waiting"], line["delayed"], line["dead"]) == (2, 2, 1)
    assert "is paused" in done(client, "/workload/queues/invoices/pause")
    assert client.post("/api/workload/queues/invoices/pause", json=REASON).status_code == 409
    assert client.get("/api/workload/queues").json()["lines"][0]["paused_by"] == "ann"
    assert "again" in done(client, "/workload/queues/invoices/resume")
    letter = client.get("/api/workload/queues/invoices").json()["letters"][0]
    assert (letter["code"], letter["lane"]) == ("not_found", "acme")
    assert "queued again" in done(client, "/workload/queues/invoices/requeue", execution=letter["execution"])
    again = client.post("/api/workload/queues/invoices/drop", json={**REASON, "execution": letter["execution"]})
    assert again.status_code == 409
    assert client.get("/api/workload/queues").json()["lines"][0]["waiting"] == 3


def test_a_schedule_is_paused_resumed_and_run(client: TestClient) -> None:
    (line,) = client.get("/api/workload/schedules").json()["lines"]
    assert (line["node_id"], line["state"], line["row"]["zone"]) == ("report_v1", "scheduled", "Europe/Berlin")
    assert len(client.get("/api/workload/schedules/report_v1").json()["times_us"]) == 5
    done(client, "/workload/schedules/report_v1/pause")
    assert client.get("/api/workload/schedules").json()["lines"][0]["state"] == "paused"
    done(client, "/workload/schedules/report_v1/resume")
    assert "is queued" in done(client, "/workload/schedules/report_v1/run")


def test_a_group_is_paused_and_its_dead_letter_dropped(client: TestClient) -> None:
    path = "/workload/topics/orders/invoice_v1"
    done(client, f"{path}/pause")
    assert client.get(f"/api{path}").json()["line"]["paused_by"] == "ann"
    assert "takes messages" in done(client, f"{path}/resume")
    assert client.post(f"/api{path}/resume", json=REASON).status_code == 409
    assert client.get(f"/api{path}").json()["letters"][0]["id"] == MESSAGE_ID
    assert MESSAGE_ID in done(client, f"{path}/drop", message=MESSAGE_ID)
    assert client.get(f"/api{path}").json()["line"]["dead"] == 0
    changes = [each for each in json.loads(invoke("audit", "list", "--format", "json").stdout) if "orders" in str(each)]
    assert [REASON["reason"] in str(each) and "ann" in str(each) for each in changes] == [True] * 3
