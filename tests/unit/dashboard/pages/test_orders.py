"""Orders from pages: the same as those of `vesper migrate`, with the person and the reason in the history."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.dashboard import TestClient, client_of
from tests.support.journalled import invoke
from tests.unit.migration.support.remote_answers import FEE, Told
from vesper.dashboard.access.caller import Role
from vesper.dashboard.app import whole_site
from vesper.migration.control.modes import Mode
from vesper.migration.control.state import NodeState, Settings
from vesper.migration.stores import ledger
from vesper.migration.stores.store import WHOLE, NodeKey

SITE = whole_site(("vesper.dashboard.pages.fleet", "vesper.dashboard.pages.node"))
OLD = NodeKey(FEE.node, "e" * 32)


@pytest.fixture
def told(tmp_path: Path) -> Iterator[Told]:
    found = Told(tmp_path)
    yield found
    found.store.close()


@pytest.fixture
def client(told: Told, tmp_path: Path) -> Iterator[TestClient]:
    with client_of(tmp_path, SITE) as found:
        yield found


def order(client: TestClient, path: str, code: int = 200, **fields: str) -> str:
    done = client.post(f"/api{path}", json={"reason": "a reason", **fields})
    assert done.status_code == code, done.text
    found: dict[str, str] = done.json()
    return found["message" if code == 200 else "detail"]


def state(told: Told, key: NodeKey = FEE) -> NodeState:
    return ledger.load(told.store, key, Settings())


def last(told: Told, key: NodeKey = FEE) -> dict[str, str]:
    found: dict[str, str] = json.loads(told.store.history(key)[-1].text)
    return found


def test_a_kill_reaches_every_epoch_and_a_resume_names_what_still_holds(told: Told, client: TestClient) -> None:
    told.batch(OLD, runs=1)
    told.batch(runs=300)
    message = order(client, "/nodes/fee_v1/kill", reason="odd answers")
    assert f"fee_v1 ({FEE.epoch[:12]}): canary_direct → python_only; evidence restarts, attempt 2" in message
    assert [each.why for key in (FEE, OLD) for each in state(told, key).latches] == ["odd answers"] * 2
    assert (last(told)["who"], last(told)["why"]) == ("ann", "odd answers")
    message = order(client, "/nodes/fee_v1/resume", reason="mended")
    assert message == (
        "fee_v1: released: kill; fee_v1: python_only → shadow_direct; "
        f"other epochs are still latched: {OLD.epoch[:12]}; select one with --epoch"
    )
    assert (last(told)["who"], last(told)["why"]) == ("ann", "mended")
    assert order(client, "/nodes/fee_v1/resume", epoch=OLD.epoch).startswith("fee_v1: released: kill")


def test_a_refusal_is_that_of_the_command(
    told: Told, client: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told.batch(runs=10)
    monkeypatch.chdir(tmp_path)
    for name, fields, options in (
        ("promote", {}, []),
        ("demote", {"mode": "canary_direct"}, ["--to", "canary_direct"]),
        ("demote", {}, []),
        ("unpin", {}, []),
        ("resume", {}, []),
    ):
        command = invoke("migrate", name, "fee", *options, "--why", "a reason")
        assert command.exit_code == 1
        assert f"Error: {order(client, f'/nodes/fee_v1/{name}', 409, **fields)}" in command.stderr.replace("\n", " ")
    assert not told.store.history(FEE)


def test_a_pin_and_its_end(told: Told, client: TestClient) -> None:
    told.batch(runs=300)
    message = order(client, "/nodes/fee_v1/pin", mode="shadow_direct", duration="7d")
    assert message.endswith("fee_v1: canary_direct → shadow_direct")
    pin = state(told).pin
    assert pin is not None
    assert (pin.mode, pin.who, pin.why) == (Mode.SHADOW_DIRECT, "ann", "a reason")
    assert "Unpin" in client.get("/nodes/fee_v1").text
    assert order(client, "/nodes/fee_v1/unpin").startswith("fee_v1: the pin to shadow_direct is removed")
    assert "is not a duration" in order(client, "/nodes/fee_v1/pin", 400, mode="shadow_direct", duration="soon")
    assert "names no mode" in order(client, "/nodes/fee_v1/pin", 400, mode="luck", duration="1h")


def test_a_demotion_by_one_mode(told: Told, client: TestClient) -> None:
    told.batch(runs=300)
    assert (
        order(client, "/nodes/fee_v1/demote") == "fee_v1: canary_direct → shadow_direct; evidence restarts, attempt 2"
    )


def test_all_nodes_are_stopped_and_resumed(told: Told, client: TestClient) -> None:
    told.batch(runs=1)
    assert "the nodes are not stopped" in order(client, "/resume", 409)
    assert order(client, "/kill", reason="an incident").startswith("every node runs on Python only")
    switch = ledger.read_kill_switch(told.store)
    assert switch is not None
    assert (switch.who, switch.why) == ("ann", "an incident")
    assert "All nodes are stopped." in client.get("/").text
    assert "All nodes are stopped." in client.get("/nodes/fee_v1").text
    assert "no change: the nodes were already stopped" in order(client, "/kill")
    assert order(client, "/resume", reason="over").startswith("every node is in its former mode")
    assert (last(told, WHOLE)["kind"], last(told, WHOLE)["who"]) == ("resumed_all", "ann")


def test_orders_need_a_node_a_role_and_a_reason(told: Told, client: TestClient, tmp_path: Path) -> None:
    told.batch(runs=300)
    assert "was routed with this store" in order(client, "/nodes/fees_v1/kill", 404)
    assert "has no epoch" in order(client, "/nodes/fee_v1/resume", 404, epoch="f")
    assert "needs a reason" in order(client, "/nodes/fee_v1/kill", 400, reason="")
    with client_of(tmp_path, SITE, roles=[Role.VIEWER]) as viewer:
        for path in ("/kill", "/resume", *(f"/nodes/fee_v1/{each.name}" for each in SITE.actions[:6])):
            assert "lacks the role `operator`" in order(viewer, path, 403)
        page = viewer.get("/nodes/fee_v1").text
    assert "needs the role operator" in page
    assert 'action="/nodes/fee_v1/' not in page
    assert state(told).mode is Mode.CANARY_DIRECT
