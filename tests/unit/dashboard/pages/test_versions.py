"""The pages of versions and the command: names, groups with examples, decisions with a reason."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import vesper
from tests.support.dashboard import TestClient, client_of
from tests.support.journalled import invoke
from tests.unit.migration.support.names import NAME, Project, amounts, decision, settle
from vesper.dashboard.access.caller import Role
from vesper.dashboard.app import whole_site

SITE = whole_site([f"vesper.dashboard.pages.{name}" for name in ("versions", "node", "journal")])
REASON = {"reason": "as agreed"}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.chdir(tmp_path)
    found = Project(tmp_path, decision(1), decision(2, middle="2.50"))
    routes = found.routes()
    node = vesper.load(NAME, routes=routes)
    for each in amounts(10, 500, 600):
        node.call(each)
    settle(routes)
    routes.close()
    return found


@pytest.fixture
def client(project: Project) -> Iterator[TestClient]:
    with client_of(project.config, SITE) as found:
        yield found


def test_pages_show_what_the_command_shows(client: TestClient) -> None:
    (line,) = client.get("/api/versions").json()["lines"]
    (told,) = json.loads(invoke("versions", "list", "--format", "json").stdout)
    assert {name: line[name] for name in ("name", "state", "lead", "candidate", "compared", "changed")} == {
        name: told[name] for name in ("name", "state", "lead", "candidate", "compared", "changed")
    }
    assert (line["state"], line["compared"], line["changed"]) == ("following", 3, 2)
    (group,) = client.get(f"/api/versions/{NAME}").json()["groups"]
    assert (group["field"], group["count"]) == ("outputs.fee", 2)
    for path in ("/versions", f"/versions/{NAME}"):
        assert client.get(path).status_code == 200, path
    assert "amount = 500" in client.get(f"/versions/{NAME}").text
    assert client.get("/versions/none").status_code == 404


def test_an_operator_decides_with_a_reason(client: TestClient, project: Project) -> None:
    path = f"/api/versions/{NAME}"
    with client_of(project.config, SITE, roles=[Role.VIEWER]) as viewer:
        assert viewer.post(f"{path}/promote", json=REASON).status_code == 403
    assert client.post(f"{path}/promote", json={}).status_code == 400
    assert "leads fee_of" in client.post(f"{path}/promote", json=REASON).json()["message"]
    assert client.post(f"{path}/promote", json=REASON).status_code == 409
    found = client.get(path).json()
    assert (found["line"]["state"], found["line"]["lead"]) == ("promoted", f"{NAME}_v2")
    assert (found["history"][0]["who"], found["damage"]) == ("ann", None)
    assert "as agreed" in found["history"][0]["texts"][0]


def test_the_command_shows_and_decides(project: Project) -> None:
    assert "outputs.fee" in invoke("versions", "list").stdout
    assert "following" in invoke("status").stdout
    assert json.loads(invoke("status", "--format", "json").stdout)["names"][0]["changed"] == 2
    shown = invoke("versions", "show", NAME).stdout
    assert all(
        each in shown for each in ("3 runs compared: 1 agreed, 2 (66.67 %) changed", "amount = 600", "fee = 2.50")
    )
    assert invoke("versions", "withdraw", NAME, "--why", "too dear").exit_code == 0
    again = invoke("versions", "withdraw", NAME, "--why", "too dear")
    assert (again.exit_code, "is withdrawn already" in again.stderr) == (1, True)
    history = invoke("migrate", "history", NAME).stdout
    assert all(each in history for each in ("fee_of_v2 follows fee_of_v1", "withdrawn", "too dear", "2 changed"))
    assert "did you mean" in invoke("versions", "show", "fee_off").stderr
