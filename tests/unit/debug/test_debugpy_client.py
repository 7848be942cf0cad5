"""The adapter driven by an independent client: debugpy, with its own framing and matching.

`make proof-dap` repeats this with Microsoft's test client if npm is available.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any

import pytest
from debugpy.common.messaging import JsonIOStream, JsonMessageChannel, MessageHandlingError

from tests.unit.debug.subjects import DRAWN, PAYMENT, ROOT

PYTHON, DIRECT = 1, 2
PATIENCE = 60
"""Seconds until a missing event fails a test."""


class Client:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._events: SimpleQueue[Any] = SimpleQueue()
        self.channel = JsonMessageChannel(JsonIOStream.from_process(process), handlers=self)
        self.channel.start()

    def event(self, event: Any) -> None:
        """Store an event; called by the channel in its own thread."""
        self._events.put(event)

    def disconnect(self) -> None:
        """Note the end of the adapter; called by the channel."""

    def next(self, name: str) -> dict[str, Any]:
        """Return the body of the next event of this name and skip others."""
        while True:
            found = self._events.get(timeout=PATIENCE)
            if found.event == name:
                return dict(found.body)

    def ask(self, command: str, **arguments: Any) -> Any:
        return self.channel.request(command, arguments)

    def move(self, command: str, thread: int = PYTHON) -> dict[str, Any]:
        self.ask(command, threadId=thread)
        return self.next("stopped")

    def frame(self, thread: int = PYTHON) -> Any:
        return self.ask("stackTrace", threadId=thread)["stackFrames"][0]

    def variables(self, scope: str, thread: int = PYTHON) -> dict[str, str]:
        for found in self.ask("scopes", frameId=self.frame(thread)["id"])["scopes"]:
            if found["name"] == scope:
                listed = self.ask("variables", variablesReference=found["variablesReference"])["variables"]
                return {each["name"]: each["value"] for each in listed}
        return {}


@contextmanager
def debugging() -> Iterator[Client]:
    command = [sys.executable, "-m", "vesper", "debug", "--dap"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        client = Client(process)
        client.ask("initialize", adapterID="vesper")
        yield client
        client.ask("disconnect")
        client.channel.wait()
        assert process.wait(timeout=PATIENCE) == 0


def test_debugpy_goes_through_a_payment_forth_and_back_on_both_engines() -> None:
    path = str(ROOT / PAYMENT)
    with debugging() as client:
        client.ask("launch", node=path)
        client.next("initialized")
        lines = [{"line": 86}, {"line": 110, "condition": "amount > 1000"}]
        answered = client.ask("setBreakpoints", source={"path": path}, breakpoints=lines)["breakpoints"]
        assert [each["verified"] for each in answered] == [True, True]
        client.ask("configurationDone")
        assert client.next("stopped")["reason"] == "entry"
        assert [each["name"] for each in client.ask("threads")["threads"]] == ["python", "direct"]
        assert client.move("continue")["reason"] == "breakpoint"
        seen = []
        for thread in (PYTHON, DIRECT):
            assert client.frame(thread)["line"] == 85
            assert client.variables("Inputs", thread)["amount"] == "99.99"
            assert client.variables("About to call", thread)["request"] == "stripe POST /v1/charges"
            seen.append(client.variables("Steps", thread))
        assert seen[0] == seen[1]
        client.move("stepBack")
        assert client.frame(DIRECT)["name"] == "payment_handler_v1: begin (line 75)"
        client.move("next", DIRECT)
        client.move("stepIn")
        assert client.frame()["name"] == "payment_handler_v1: record (line 110)", "its condition does not hold"
        client.move("reverseContinue")
        assert [client.variables("Steps", thread) for thread in (PYTHON, DIRECT)] == seen


def test_debugpy_stops_at_steps_and_contracts_and_gets_refusals() -> None:
    with debugging() as client:
        with pytest.raises(MessageHandlingError, match="launch needs `node`"):
            client.ask("launch")
        client.ask("launch", node=str(ROOT / DRAWN), inputs={"amount": 600.25}, stopOnEntry=False)
        client.next("initialized")
        named = [{"name": "call_stripe_api"}, {"name": "step:call_strip_api"}]
        answered = client.ask("setFunctionBreakpoints", breakpoints=named)["breakpoints"]
        assert [each["verified"] for each in answered] == [True, False]
        client.ask("setExceptionBreakpoints", filters=["contract_violation"])
        client.ask("configurationDone")
        assert client.next("stopped")["reason"] == "breakpoint"
        assert client.move("continue")["reason"] == "exception"
        assert client.ask("exceptionInfo", threadId=PYTHON)["exceptionId"] == "contract_violation"
        assert client.variables("Contract", DIRECT)["postcondition 1"] == "✗ left >= 0  (left: -100.25)"
        with pytest.raises(MessageHandlingError, match="amont"):
            client.ask("evaluate", expression="amont", frameId=client.frame()["id"])
