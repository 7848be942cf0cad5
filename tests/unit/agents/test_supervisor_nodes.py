"""Supervisors declared in nodes, steps to agents in flows, `vesper agents`, and the background work of a process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import vesper
from tests.support.journalled import invoke
from vesper.agents import messages as agents
from vesper.host.host import Host
from vesper.language.work_bindings import Backoff, SupervisorField, WorkBindings, supervisor_of
from vesper.repository.locate import node_files
from vesper.serve.work import Work, load_files

UPPER = """\
node_id: upper_v1
type: function
intent: Answer in capitals
inputs:
  text: string
  agent_self: {type: string, default: none}
outputs:
  success: {text: string, by: string}
flow:
  - operation: return
    success: {text: upper(text), by: agent_self}
"""
DIVIDE = """\
node_id: divide_v1
type: function
intent: Divide, and break where that is impossible
inputs:
  by: integer
outputs:
  success: {part: integer}
contracts:
  postconditions:
    - part < 100
flow:
  - operation: return
    success: {part: by * 2}
"""
TREE = """\
node_id: support_v1
type: supervisor
intent: Answer customers
strategy: rest_for_one
max_restarts: 5
window: 30s
backoff: {base: 1ms, factor: 1, max: 1ms}
children:
  - {name: triage, node: upper}
  - name: writers
    strategy: one_for_all
    on_failure: escalate
    children:
      - {name: a, node: upper_v1}
      - {name: b, node: divide_v1, on_failure: stop}
"""
FRONT = """\
node_id: front_v1
type: event_handler
intent: Ask agents
inputs:
  event_id: string
  agent: string
outputs:
  success: {text: string, sent: string}
flow:
  - step: told
    operation: broadcast
    agent: agent
    message: {text: "'all'"}
    priority: 3
  - step: answer
    operation: ask
    agent: agent
    message: {text: event_id}
    timeout: 1m
    returns: {text: string, by: string}
  - step: part
    operation: ask
    agent: "'support/writers/b'"
    message: {by: 1000}
    returns: {part: integer}
    on_error:
      cancelled: {value: "{part: -1}"}
  - operation: return
    success: {text: answer.text + answer.by + text(part.part), sent: told}
security:
  capabilities_required: [effect.call.agent_send, signals.receive.agent_reply]
"""
EXIT = """\
node_id: leaving_v1
type: event_handler
intent: End the agent
inputs:
  event_id: string
  reason: string
outputs:
  success: {reason: string}
flow:
  - {step: ended, operation: exit, reason: reason}
  - operation: return
    success: {reason: ended}
security:
  capabilities_required: [effect.call.agent_exit]
"""
SETTINGS = """\
[journal]
dsn = "sqlite:journal.db"
[queues.agents]
poll = "10ms"
[[grants]]
nodes = ["*"]
allow = ["*"]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for text in (UPPER, DIVIDE, TREE, FRONT, EXIT):
        name = text.splitlines()[0].removeprefix("node_id: ")
        (tmp_path / "nodes").mkdir(exist_ok=True)
        (tmp_path / "nodes" / f"{name}.vsp").write_text(text)
    (tmp_path / "vesper.toml").write_text(SETTINGS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@contextmanager
def working(folder: Path) -> Iterator[Host]:
    """Do the background work of the folder, as `vesper work` does."""
    with Host.from_file(folder / "vesper.toml") as host:
        work = Work(host, load_files(node_files([folder / "nodes"]), [folder / "nodes"], host, None, "python"))
        host.start()
        work.start()
        yield host
        work.stop(20)
        assert all(each.problem is None for each in work.states())


def test_a_flow_asks_the_agents_of_a_declared_tree(folder: Path) -> None:
    with working(folder) as host:
        front = vesper.load("front", engine="python", host=host)
        handle = front.start_run({"event_id": "e1", "agent": "support/triage"})
        assert handle.wait(30).unwrap() == {"text": "E1support/triage-1", "sent": "1"}
        assert agents.mailboxes_of(host).trees.agent("support/writers/b")[2].status == "failed"
    shown = invoke("agents", "tree")
    assert shown.exit_code == 0
    assert "contract_broken" in shown.output
    lines = {each["address"]: each for each in json.loads(invoke("agents", "tree", "--format", "json").output)}
    assert lines["support/writers"]["status"] == "mixed"
    assert [lines[f"support/{each}"]["depth"] for each in ("triage", "writers", "writers/a")] == [1, 1, 2]


def test_exit_ends_the_agent_of_the_run(folder: Path) -> None:
    with working(folder) as host:
        node = vesper.load("leaving", engine="python", host=host)
        agents.spawn(node, name="one", backoff=Backoff(1000, 1, 1000))
        found = agents.ask("one", {"event_id": "1", "reason": "tired"}, timeout=30, host=host)
        assert found == {"reason": "tired"}
        agent = agents.mailboxes_of(host).trees.agent("one")[2]
        assert (agent.status, agent.incarnation, agent.reason) == ("running", 2, "tired")
        agents.ask("one", {"event_id": "2", "reason": "normal"}, timeout=30, host=host)
        assert agents.mailboxes_of(host).trees.agent("one")[2].status == "stopped"


def test_the_commands_send_stop_and_start(folder: Path) -> None:
    with working(folder):
        sent = invoke("agents", "send", "support/triage", "-i", "text=hi", "--wait", "30", "--format", "json")
        assert sent.exit_code == 0
        assert "HI" in sent.output
        stopped = invoke("agents", "stop", "support/writers", "--why", "holiday")
        assert "stopped 2 agents" in stopped.output
        assert "not running already" in invoke("agents", "stop", "support/writers").output
        waiting = invoke("agents", "send", "support/writers/a", "-i", "text=later", "--key", "k")
        again = invoke("agents", "send", "support/writers/a", "-i", "text=later", "--key", "k")
        assert waiting.output == again.output
        shown = invoke("agents", "tree", "support/writers/a", "--format", "json").output
        assert (json.loads(shown)[0]["waiting"], json.loads(shown)[0]["reason"]) == (1, "holiday")
        assert "started 2 agents" in invoke("agents", "start", "support").output
        handle = vesper.run_handle(waiting.output.split()[-1])
        assert handle.wait(30).unwrap()["text"] == "LATER"
    actions = [each["action"] for each in json.loads(invoke("audit", "list", "--format", "json").output)]
    assert "agent_stop" in actions
    assert "agent_start" in actions
    for wrong, message in (
        (("tree", "nothing"), "no agent `nothing`"),
        (("send", "support/triage", "-i", "txt=1"), "text is missing"),
        (("stop", "support/x"), "no agent `support/x`"),
    ):
        refused = invoke("agents", *wrong)
        assert refused.exit_code == 1
        assert message in refused.output


def problems(text: str, folder: Path) -> list[str]:
    from vesper.compiler.callees import Collection, Neighbours
    from vesper.compiler.pipeline import compile_file

    path = folder / "nodes" / "wrong_v1.vsp"
    path.write_text(text.replace("support_v1", "wrong_v1"))
    _, bag = compile_file(path, Neighbours(Collection(folder / "nodes"), ()))
    return [each.headline for each in bag.sorted()]


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("strategy: rest_for_one", "strategy: one_for_two", "must be `one_for_one`"),
        ("max_restarts: 5", "max_restarts: -1", "`-1` is not a number from 0 to 10,000"),
        ("node: upper}", "node: uper}", "there is no node `uper`"),
        ("name: a,", "name: b,", "`b` is given twice"),
        ("name: a,", "name: dead,", "`dead`"),
        ("name: triage, node: upper", "name: triage", "`node` or `children`"),
        ("name: triage, ", "name: triage, attempts: 2, ", "no field `attempts`"),
        ("window: 30s", "window: soon", "not a value of type duration"),
        ("window: 30s", "flow: []", "no field `flow`"),
    ],
)
def test_a_wrong_tree_is_reported(folder: Path, old: str, new: str, message: str) -> None:
    assert old in TREE
    found = problems(TREE.replace(old, new, 1), folder)
    assert any(message in each for each in found), found


def test_a_tree_is_part_of_the_hash_and_survives_the_cache(folder: Path) -> None:
    first, other = (vesper.load(folder / "nodes" / "support_v1.vsp") for _ in range(2))
    tree = supervisor_of(first._compiled)
    assert tree is not None
    assert supervisor_of(other._compiled) == tree
    assert SupervisorField.from_json(json.loads(json.dumps(tree.to_json()))) == tree
    bindings = WorkBindings(supervisor=tree)
    assert WorkBindings.from_data(bindings.to_data()) == bindings
    assert json.loads(first()["declaration"])["max_restarts"] == "5"
    before = first._compiled.semantic_hash
    path = folder / "nodes" / "support_v1.vsp"
    path.write_text(TREE.replace("max_restarts: 5", "max_restarts: 6"))
    assert vesper.load(path)._compiled.semantic_hash != before
