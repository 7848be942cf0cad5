"""`vesper nodes capabilities` says what the Host does."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.journalled import invoke
from vesper.compiler import compile_file
from vesper.compiler.callees import Collection, Neighbours
from vesper.config.settings import read_config
from vesper.engines.registry import ENGINES
from vesper.host.host import Host

NODES = Path(__file__).parents[3] / "nodes"
PARTS = """
[databases.main]
dsn = "sqlite:shop.db"
[providers.stripe]
base_url = "https://stripe.example"
[providers.mailer]
base_url = "https://mailer.example"
[events]
url = "memory:"
"""
DENIED_INSIDE = """
[[grants]]
nodes = ["checkout"]
allow = ["database.*", "state.*", "network.*", "secrets.*"]
[[grants]]
nodes = ["payment_handler"]
deny = ["network.http_client.stripe"]
"""
PARTICULAR = """
[[grants]]
nodes = ["shipment_notice", "checkout"]
allow = ["database.read.orders", "database.read.customers", "network.*", "events.publish.orders.notified"]
[[grants]]
nodes = ["shipment_*"]
allow = ["events.publish.mail.refused"]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for domain in ("orders", "payments", "shop"):
        shutil.copytree(NODES / domain, tmp_path / "nodes" / domain)
    return tmp_path


def said(folder: Path, grants: str, *names: str) -> dict[str, dict[str, Any]]:
    (folder / "vesper.toml").write_text(grants + PARTS, encoding="utf-8")
    done = invoke("nodes", "capabilities", "--format", "json", *names)
    assert done.exit_code == 0, done.stderr
    found: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("grants", [DENIED_INSIDE, PARTICULAR, ""], ids=["denied-inside", "particular", "none"])
@pytest.mark.parametrize("name", ["checkout_v1", "shipment_notice_v1"])
def test_what_is_said_is_what_a_run_is_held_to(folder: Path, grants: str, name: str) -> None:
    told = said(folder, grants, name)[name]["granted"]
    path = folder / "nodes" / "orders" / f"{name}.vsp"
    compiled, _ = compile_file(path, Neighbours(Collection(folder / "nodes"), (name,)))
    assert compiled is not None
    with Host(read_config(folder / "vesper.toml")) as host:
        prepared = host.prepare(compiled, ENGINES["python"].load(compiled), "python")
    refused = {capability: each["why"] for capability, each in told.items() if not each["allowed"]}
    assert refused == dict(prepared.refused)
    assert {capability for capability, each in told.items() if each["allowed"]} == set(prepared.handles) - set(refused)


def test_what_is_denied_to_a_called_node_is_denied(folder: Path) -> None:
    told = said(folder, DENIED_INSIDE, "checkout")["checkout_v1"]
    assert told["granted"]["network.http_client.stripe"] == {
        "allowed": False,
        "why": "grants[1] denies `network.http_client.stripe` to payment_handler_v1",
    }
    assert told["required"]["network.http_client.stripe"] == ["paid/call_stripe_api", "paid/refund"]


def test_all_topics_need_not_be_granted_where_two_are_used(folder: Path) -> None:
    told = said(folder, PARTICULAR, "shipment_notice")["shipment_notice_v1"]
    assert all(each["allowed"] for each in told["granted"].values())
    assert "events.publish.*" in told["declared"]
    assert "events.publish.*" not in told["required"]


def test_what_is_granted_and_nowhere_is_told(folder: Path) -> None:
    assert said(folder, PARTICULAR, "shipment_notice")["shipment_notice_v1"]["missing"] is None
    (folder / "vesper.toml").write_text(PARTICULAR + PARTS.replace("mailer", "mialer"), encoding="utf-8")
    done = invoke("nodes", "capabilities", "shipment_notice")
    assert (
        "  not configured: shipment_notice_v1 asks for `http_request`, and there is no [providers.mailer]"
        in done.stdout
    )
    assert "did you mean `mialer`" in done.stdout


MACHINE = """\
node_id: {name}_v1
type: event_handler
intent: Move an order
inputs: {{event_id: string}}
outputs:
  success: {{was: string}}
state_machines:
  order:
    initial: {initial}
    transitions:
      fresh: [new]
      new: [paid]
flow:
  - {{step: moved, operation: state_machine_transition, machine: order, entity: event_id, from: new, to: paid}}
{call}  - {{operation: return, success: {{was: "'new'"}}}}
security:
  capabilities_required: [state.write.order]
"""


def test_two_nodes_that_do_not_go_together_are_told(folder: Path) -> None:
    call = "  - {step: inner, operation: call_node, node: inner, inputs: [event_id]}\n"
    for name, initial, calls in (("inner", "new", ""), ("outer", "fresh", call)):
        text = MACHINE.format(name=name, initial=initial, call=calls)
        (folder / "nodes" / f"{name}_v1.vsp").write_text(text, encoding="utf-8")
    (folder / "vesper.toml").write_text('[[grants]]\nnodes = ["*"]\nallow = ["*"]\n' + PARTS, encoding="utf-8")
    conflict = "inner_v1 starts the machine `order` in `new`, and a node that is used with it starts it in `fresh`"
    listed = invoke("nodes", "capabilities").stdout
    assert f"outer_v1  cannot run: {conflict}\n" in listed
    assert "inner_v1\n  state.write.order  moved\n" in listed
    done = invoke("run", "outer", "-i", "event_id=e")
    assert done.exit_code == 1
    assert conflict in done.stderr


def test_a_grant_for_nobody_is_noted(folder: Path) -> None:
    (folder / "vesper.toml").write_text('[[grants]]\nnodes = ["chekout"]\nallow = ["*"]\n', encoding="utf-8")
    done = invoke("nodes", "capabilities", "payment_decision")
    assert done.exit_code == 0
    first, *_, last = done.stdout.splitlines()
    assert first == "payment_decision_v1  none"
    assert last.startswith("note: grants[0] is for `chekout`, which does not exist here; did you mean `checkout`")


def test_a_node_that_is_not_there_is_told(folder: Path) -> None:
    done = invoke("nodes", "capabilities", "chekout")
    assert done.exit_code == 2
    assert "no node `chekout`; did you mean `checkout`" in done.stderr
