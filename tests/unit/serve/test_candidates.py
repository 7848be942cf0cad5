"""A name with a candidate on a server: the lead answers, the candidate follows, a promotion needs no restart."""

from __future__ import annotations

import http.client
import json
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.support.journalled import invoke
from tests.support.serving import Serving
from tests.support.waiting import eventually
from tests.unit.migration.support.names import NAME, Project, decision
from tests.unit.serve.test_work import TICK
from vesper.config.settings import config_from
from vesper.serve.control import Options
from vesper.serve.nodes import Service
from vesper.serve.work import Work


def ask(port: int, amount: str) -> Any:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
        body = json.dumps({"amount": amount})
        connection.request("POST", f"/nodes/{NAME}", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return json.loads(answer.read())["fee"] if answer.status == 200 else answer.status


def test_a_promotion_reaches_a_running_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = f'[serve]\nexpose = ["{NAME}"]\n'
    Project(tmp_path, decision(1), decision(2, middle="2.50"), settings)
    command = [sys.executable, "-m", "vesper", "serve", "nodes", "--port", "{port}", "--workers", "1"]
    with Serving(command, "/healthz", tmp_path) as serving:
        assert ask(serving.port, "500") == "2.00", serving.log.read_text()
        eventually(lambda: "following" in invoke("versions", "list").stdout)
        eventually(lambda: json.loads(invoke("versions", "list", "--format", "json").stdout)[0]["changed"] == 1)
        assert invoke("versions", "promote", NAME, "--why", "agreed").exit_code == 0
        eventually(lambda: ask(serving.port, "500") == "2.50")


def test_the_lead_is_scheduled_and_the_candidate_is_not(tmp_path: Path) -> None:
    for version in (1, 2):
        (tmp_path / f"tick_v{version}.vsp").write_text(TICK.format(version=version))
    (tmp_path / "shown_v1.vsp").write_text(decision(1).replace(f"{NAME}_v1", "shown_v1"))
    values = {"versions": {"tick": {"lead": "tick_v1", "candidate": "tick_v2"}}, "serve": {"expose": ["shown"]}}
    service = Service(config_from(values, tmp_path), Options((str(tmp_path),), engine="python"), None)
    try:
        assert [each.id for each in service.background] == ["tick_v1"]
        work = Work(service.host, service.background)
        work.start()
        eventually(lambda: [each.name for each in service.host.journal.due("schedule")] == ["tick_v1"], 20)
        assert work.stop(5)
    finally:
        service.close(1.0)
