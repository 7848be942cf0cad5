"""A candidate of a node with effects: fed by the lead's completions, it performs nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import vesper
from tests.proofs.kills.outside import Outside
from tests.unit.migration.support.names import NOTICE, Project, charge, settle
from vesper.engines.outcome import Returned
from vesper.host.host import Host
from vesper.migration.candidates.overview import NameOverview

SETTINGS = """
[[grants]]
nodes = ["charge"]
allow = ["network.*"]

[providers.outside]
base_url = "http://127.0.0.1:{port}"
allow_private_addresses = true
key_header = "Idempotency-Key"

[journal]
dsn = "sqlite:journal.db"

[recovery]
enabled = false
"""


class Here:
    def __init__(self, folder: Path, outside: Outside, candidate: str, engine: str = "python") -> None:
        self.outside = outside
        settings = SETTINGS.format(port=outside.port)
        self.project = Project(folder, charge(1), candidate, settings, "charge")
        self.routes = self.project.routes()
        self.host = Host(self.project.config)
        self.node = vesper.load("charge", nodes=self.project.nodes, engine=engine, host=self.host, routes=self.routes)

    def pay(self, event: str) -> Any:
        return self.node(event_id=event, card="4242-4242")

    def found(self) -> NameOverview:
        return self.project.found(self.routes)

    def close(self) -> None:
        self.host.close(5)
        self.routes.close()


@pytest.fixture
def outside() -> Iterator[Outside]:
    with Outside() as found:
        yield found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("engine", ["python", "interp", "auto"])
def test_a_change_is_performed_once_and_is_the_leads(folder: Path, outside: Outside, engine: str) -> None:
    here = Here(folder, outside, charge(2, steps=2), engine)
    try:
        for number in range(3):
            assert here.pay(f"e{number}").unwrap()["steps"] == 1
        counts = here.found().counts
        (group,) = counts.top_groups()
        assert (group.field, group.count) == ("outputs.steps", 3)
        assert outside.done == {f"/charge e{number}": 1 for number in range(3)}
        assert len(group.examples) == 3
        assert group.examples[0].execution in {each.execution for each in here.host.journal.find(limit=10)}
        assert "card = <sensitive>" in group.examples[0].inputs
        assert "4242" not in repr(group)
    finally:
        here.close()


def test_a_new_request_is_a_difference_and_never_performed(folder: Path, outside: Outside) -> None:
    here = Here(folder, outside, charge(2, more=NOTICE))
    try:
        here.pay("e1").unwrap()
        (group,) = here.found().counts.top_groups()
        assert group.field.startswith("new request: notice (")
        assert outside.done == {"/charge e1": 1}
    finally:
        here.close()


def test_a_change_that_is_gone_is_a_difference(folder: Path, outside: Outside) -> None:
    silent = (
        charge(2).replace("effect: keyed", "effect: read").replace("    key: event_id\n", "").replace("POST", "GET")
    )
    silent = silent.replace('    body: {event: "{event_id}"}\n', "")
    here = Here(folder, outside, silent)
    try:
        here.pay("e1").unwrap()
        (group,) = here.found().counts.top_groups()
        assert group.field.startswith("new request: charge (")
        assert outside.done == {"/charge e1": 1}
    finally:
        here.close()


def test_a_renamed_step_asks_for_the_same(folder: Path, outside: Outside) -> None:
    renamed = charge(2).replace("step: charge", "step: payment").replace("charge.id", "payment.id")
    here = Here(folder, outside, renamed)
    try:
        here.pay("e1").unwrap()
        assert here.found().counts.results["agreed"] == 1
    finally:
        here.close()


def test_queued_runs_of_a_name_are_followed(folder: Path, outside: Outside) -> None:
    here = Here(folder, outside, charge(2, steps=2))
    try:
        handle = here.node.start_run({"event_id": "e1", "card": "1"})
        assert isinstance(here.host.resume(handle.execution).outcome, Returned)
        settle(here.routes)
        assert here.found().counts.results["changed"] == 1
        assert outside.done == {"/charge e1": 1}
    finally:
        here.close()
