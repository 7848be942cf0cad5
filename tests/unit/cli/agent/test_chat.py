"""`vesper agent chat` in a real pseudo-terminal: streaming, Ctrl-C, sessions."""

from __future__ import annotations

import os
import pty
import select
import sys
import time
from pathlib import Path

import pytest

from tests.support.models.replies import Asked, Reply
from tests.support.models.server import ModelServer
from vesper.sessions.databases import open_database
from vesper.sessions.store import SessionLimits, SessionStore

ROOT = Path(__file__).parents[4]
HELPER = """
node_id: helper_v1
type: agent
intent: Answer questions, with what was asked before

inputs:
  history: array<json>
  question: {type: string, constraints: [non_empty]}

outputs:
  success: {reply: string}

agent:
  model: main
  messages: ["{history}", "{question}"]
  max_tokens: 500

security:
  capabilities_required: [models.call.main]
"""
SETTINGS = """
[[grants]]
nodes = ["*"]
allow = ["*"]
[models.main]
api = "ollama"
model = "llama3"
base_url = "%s"
allow_private_addresses = true
prices = {input = "3", output = "15"}
[sessions.support]
"""


class Terminal:
    """A command in a pseudo-terminal."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.shown = ""
        self._waited = 0
        self.pid, self._descriptor = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.environ["PYTHONPATH"] = str(ROOT)
            os.execv(sys.executable, [sys.executable, "-m", "vesper", *arguments])

    def type(self, text: str) -> None:
        os.write(self._descriptor, text.encode())

    def wait_for(self, text: str, seconds: float = 90.0) -> None:
        """Read until the text was shown after the last one. Raises `AssertionError`."""
        until = time.monotonic() + seconds
        while text not in self.shown[self._waited :]:
            assert time.monotonic() < until, f"`{text}` was not shown:\n{self.shown}"
            if select.select([self._descriptor], [], [], 0.1)[0]:
                self.shown += os.read(self._descriptor, 4096).decode()
        self._waited = self.shown.index(text, self._waited) + len(text)

    def end(self) -> int:
        self.type("\x04")
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def count_texts(asked: Asked) -> Reply:
    slow = "slow " * 200 if "slow" in asked.texts[-1] else ""
    return Reply(f"You said {len(asked.texts)} things. {slow}", pause=0.01, input_tokens=10, output_tokens=5)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / "helper_v1.vsp").write_text(HELPER.lstrip())
    return tmp_path


def test_a_conversation_survives_a_cancelled_answer_and_a_new_process(project: Path) -> None:
    with ModelServer(count_texts) as server:
        (project / "vesper.toml").write_text(SETTINGS % server.url)
        chat = ("agent", "chat", "helper", "--sessions", "support")
        first = Terminal(project, *chat, "--session", "ada")
        first.wait_for("you> ")
        first.type("hello\n")
        first.wait_for("(10 + 5 tokens, $0.000105)")
        first.wait_for("you> ")
        first.type("slow please\n")
        first.wait_for("slow slow")
        first.type("\x03")
        first.wait_for("(cancelled")
        first.type("again\n")
        first.wait_for("You said 2 things.")
        first.wait_for("you> ")
        assert first.end() == 0
        second = Terminal(project, *chat, "--resume")
        second.wait_for("session ada: 4 messages")
        second.type("last\n")
        second.wait_for("You said 3 things.")
        second.wait_for("you> ")
        assert second.end() == 0
    sessions = SessionStore(open_database(f"sqlite:{project / '.vesper' / 'sessions.db'}"), "support", SessionLimits())
    texts = [each.message["content"] for each in sessions.messages("ada") if each.message["role"] == "user"]
    assert texts == ["hello", "again", "last"]
    assert sessions.show("ada").input_tokens == 30


NOTE = """
node_id: note_v1
type: http_handler
intent: Read a note
inputs: {path: string}
outputs:
  success: {text: string}
  error: {error_code: "enum[no_note]", message: string}
flow:
  - step: text
    operation: file
    action: read
    root: notes
    path: "{path}"
    returns: string
    on_error: {any: {return_error: {error_code: no_note, message: none}}}
  - return: {text: text}
security: {capabilities_required: [filesystem.read.notes]}
"""
ASKING = """
[files.notes]
path = "notes"
[[tool_rules]]
tools = ["filesystem.read.*"]
arguments = {path = ".*[.]key"}
decision = "deny"
[[tool_rules]]
tools = ["filesystem.read.*"]
decision = "ask"
"""


def read_a_note(asked: Asked) -> Reply:
    """Read the note that the message names, and repeat what came of it."""
    if asked.results:
        return Reply(f"It says: {asked.results[-1]}.")
    return Reply("I look.", tools=(("note", {"path": asked.texts[-1]}),))


def test_a_person_allows_and_refuses_calls(project: Path) -> None:
    (project / "notes").mkdir()
    for name in ("today", "door.key"):
        (project / "notes" / name).write_text("feed the cat")
    (project / "nodes" / "note_v1.vsp").write_text(NOTE.lstrip())
    helper = HELPER.lstrip().replace("  max_tokens: 500\n", "  max_tokens: 500\n  tools: [note]\n")
    helper = helper.replace("[models.call.main]", "[models.call.main, filesystem.read.notes]")
    (project / "nodes" / "helper_v1.vsp").write_text(helper)
    with ModelServer(read_a_note) as server:
        (project / "vesper.toml").write_text(SETTINGS % server.url + ASKING)
        chat = Terminal(project, "agent", "chat", "helper")
        chat.wait_for("you> ")
        for answer, shown in (("n", "failed: no_note."), ("y", 'of the tool note: {"text":"feed the cat"}.')):
            chat.type("today\n")
            chat.wait_for("allow this call? [y/N]:")
            assert 'tool_rules[1] asks before `filesystem.read.notes`\r\n  {"path": "today"}' in chat.shown
            chat.type(f"{answer}\n")
            chat.wait_for(shown)
            chat.wait_for("you> ")
        chat.type("door.key\n")
        chat.wait_for("failed: no_note.")
        assert chat.shown.count("allow this call?") == 2
        chat.wait_for("you> ")
        assert chat.end() == 0
