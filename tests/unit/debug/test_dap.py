"""The Debug Adapter Protocol over a real wire, validated by the protocol's own schema."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
from io import BytesIO
from statistics import median
from typing import Any

import pytest

from tests.unit.debug.dap_client import Client, adapter, adapter_process
from tests.unit.debug.subjects import DRAWN, PAYMENT, ROOT
from vesper.cli.debug import dap_server as debug_dap
from vesper.debug.dap.wire import WireError, read_message

MOST_SECONDS = 0.5
"""Ten times the bar of a step (docs/spec/debugger.md), because tests run on busy machines."""


def test_an_editor_goes_through_a_payment_on_both_engines() -> None:
    path = str(ROOT / PAYMENT)
    with adapter_process(ROOT) as client:
        stopped = client.launch({path: [{"line": 86}, {"line": 110, "condition": "amount > 1000"}]}, node=path)
        assert stopped["reason"] == "entry"
        assert [each["name"] for each in client.ask("threads")["threads"]] == ["python", "direct"]
        stopped = client.move("continue", threadId=1)
        assert (stopped["reason"], stopped["hitBreakpointIds"]) == ("breakpoint", [3001])
        assert client.frame()["line"] == client.frame(2)["line"] == 85
        for thread in (1, 2):
            assert client.variables("Inputs", thread)["amount"] == "99.99"
            assert client.variables("Steps", thread)["begin"] == '"pending"'
            assert client.variables("About to call", thread)["request"] == "stripe POST /v1/charges"
        assert client.variables("differs") == {}
        client.move("stepBack", threadId=1)
        assert client.frame()["name"] == "payment_handler_v1: begin (line 75)"
        client.move("next", threadId=2)
        client.move("stepIn", threadId=1)
        assert client.frame()["name"] == "payment_handler_v1: record (line 110)", "its condition does not hold"
        client.move("reverseContinue", threadId=1)
        assert client.frame()["line"] == 85
        assert client.ask("evaluate", expression="amount * 2", frameId=client.frame(2)["id"])["result"] == "199.98"
        client.ask("setVariable", variablesReference=client.reference("Inputs"), name="amount", value="12.50")
        client.event("stopped")
        assert client.frame()["line"] == 85, "it came to the same place again"
        assert client.variables("About to call", 2)["body.amount"] == "1250"
        client.move("continue", threadId=1)
        assert client.variables("Gives", 2)["amount_charged"] == "12.50"
        client.move("stepBack", threadId=1)
        client.move("continue", threadId=1)
        client.ask("continue", threadId=1)
        client.event("terminated")
        assert median(client.took) <= MOST_SECONDS, client.took
        client.ask("disconnect")


def test_function_and_exception_breakpoints_and_what_is_wrong_with_one() -> None:
    path = str(ROOT / DRAWN)
    with adapter(ROOT) as client:
        client.ask("initialize", adapterID="vesper")
        client.ask("launch", node=path, inputs={"amount": 600.25}, stopOnEntry=False)
        client.event("initialized")
        answered = client.ask(
            "setFunctionBreakpoints",
            breakpoints=[
                {"name": "call_stripe_api"},
                {"name": "effect:http", "condition": "amount > 'x'"},
                {"name": "step:call_strip_api"},
            ],
        )["breakpoints"]
        assert [each["verified"] for each in answered] == [True, False, False]
        assert "^" in answered[1]["message"]
        assert "did you mean" in answered[2]["message"]
        assert not client.ask("setBreakpoints", source={"path": path}, breakpoints=[{"line": 1}])["breakpoints"][0][
            "verified"
        ]
        client.ask("setExceptionBreakpoints", filters=["contract_violation"])
        client.ask("configurationDone")
        assert client.event("stopped")["reason"] == "breakpoint"
        stopped = client.move("continue", threadId=1)
        assert stopped["reason"] == "exception"
        assert client.ask("exceptionInfo", threadId=1)["exceptionId"] == "contract_violation"
        assert client.variables("Contract", 2)["postcondition 1"] == "✗ left >= 0  (left: -100.25)"
        refused = client.try_("setVariable", variablesReference=client.reference("Steps"), name="x", value="1")
        assert not refused["success"]
        assert not client.try_("evaluate", expression="amont", frameId=client.frame()["id"])["success"]
        assert not client.try_("stackTrace", threadId=9)["success"]
        client.ask("disconnect")


def test_a_launch_that_is_wrong_is_refused_and_the_adapter_stays() -> None:
    with adapter(ROOT) as client:
        client.ask("initialize", adapterID="vesper")
        for arguments, told in (
            ({}, "launch needs `node`"),
            ({"node": "x", "input": {}}, "did you mean `inputs`?"),
            ({"node": "payment_handlr"}, "payment_handlr"),
            ({"node": str(ROOT / DRAWN), "inputs": {"amont": 1}}, "has no input `amont`"),
            ({"node": str(ROOT / DRAWN), "engine": "jit"}, "unknown engine `jit`"),
            ({"node": str(ROOT / DRAWN), "breakOn": ["step:nobody"]}, "no step `nobody`"),
        ):
            refused = client.try_("launch", **arguments)
            assert not refused["success"]
            assert told in refused["body"]["error"]["format"], refused
        assert not client.try_("stackTrace", threadId=1)["success"]
        assert client.launch(node=str(ROOT / DRAWN))["reason"] == "entry"
        client.ask("disconnect")


def test_the_port_serves_one_client_after_the_other_until_it_is_interrupted() -> None:
    command = [sys.executable, "-m", "vesper", "debug", "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        port = int(process.stderr.readline().rpartition(":")[2])
        for ending in (b"Content-Length: 1000\r\n\r\n{", b"Content-Length: x\r\n\r\n", None):
            with (
                socket.create_connection(("127.0.0.1", port)) as connection,
                connection.makefile("rb") as reading,
                connection.makefile("wb") as writing,
            ):
                client = Client(reading, writing)
                assert client.launch(node=str(ROOT / DRAWN))["reason"] == "entry"
                if ending is None:
                    client.ask("disconnect")
                else:
                    writing.write(ending)
                    writing.flush()
        assert process.stderr.readline() == "the client disconnected; no effect was performed\n"
        assert "a number of bytes" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 0
        assert process.stderr.read() == ""


def test_what_is_sent_to_an_editor_does_not_wait_for_what_it_acknowledges() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()),
        debug_dap.accept_client(server) as connection,
    ):
        assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.parametrize(
    "text, told",
    [
        (b"hello\r\n\r\n", "Content-Length"),
        (b"Content-Length: x\r\n\r\n", "a number of bytes"),
        (b"Content-Length: 99999999999\r\n\r\n", "too large"),
        (b"Content-Length: 2\r\n\r\n{]", "not JSON"),
        (b"Content-Length: 2\r\n\r\n[]", "a JSON object"),
    ],
)
def test_an_invalid_message_ends_the_adapter_with_a_reason(text: bytes, told: str) -> None:
    with pytest.raises(WireError, match=told):
        read_message(BytesIO(text))


OF_EDITORS = {
    "__workspaceFolder": "/w", "__configurationTarget": 6, "args": [], "console": "internalConsole", "cwd": "/w",
    "env": {}, "outputCapture": "console", "program": "", "restart": False, "runtimeArgs": [], "skipFiles": [],
    "smartStep": True, "sourceMaps": True, "timeout": 10000, "trace": False, "noDebug": False,
}  # fmt: skip
"""Settings that VS Code and its Node.js extension add to a launch configuration."""


@pytest.mark.parametrize("added", [{}, OF_EDITORS, {"trace": {"stdio": False}}], ids=["bare", "vs code", "logs"])
def test_the_launch_configuration_of_the_docs_is_launched_as_it_is_written(added: dict[str, Any]) -> None:
    page = (ROOT / "docs/how-to/debug-a-node.md").read_text(encoding="utf-8")
    block = page.partition("```json\n")[2].partition("```")[0]
    (configuration,) = json.loads(block)["configurations"]
    # An editor sends its own settings as well.
    assert {"type", "request", "name", "debugServer"} < set(configuration)
    *documented, port = ["vesper", "debug", "--port", "4711"]
    assert f"`{' '.join([*documented, port])}`" in page
    assert configuration["debugServer"] == int(port)
    command = [sys.executable, "-m", *documented, "0"]  # any free port
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        with (
            socket.create_connection(("127.0.0.1", int(process.stderr.readline().rpartition(":")[2]))) as connection,
            connection.makefile("rb") as reading,
            connection.makefile("wb") as writing,
        ):
            client = Client(reading, writing)
            assert client.launch(**(configuration | added))["reason"] == "entry"
            (frame,) = client.ask("stackTrace", threadId=2)["stackFrames"]
            assert frame["name"].startswith("payment_handler_v1: ")
            client.ask("disconnect")
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 0


def test_an_unverified_breakpoint_does_not_shift_the_ids_of_those_after_it() -> None:
    path = str(ROOT / PAYMENT)
    with adapter(ROOT) as client:
        client.ask("initialize", adapterID="vesper")
        client.ask("launch", node=path, stopOnEntry=False, breakOn=["step:begin"])
        client.event("initialized")
        lines = [{"line": 1}, {"line": 86, "condition": "amount > 'x'"}, {"line": 86}]
        answered = client.ask("setBreakpoints", source={"path": path}, breakpoints=lines)["breakpoints"]
        assert [each["verified"] for each in answered] == [False, False, True]
        client.ask("configurationDone")
        assert "hitBreakpointIds" not in client.event("stopped"), "the client set no breakpoint at `begin`"
        assert client.move("continue", threadId=1)["hitBreakpointIds"] == [answered[2]["id"]]
        client.ask("disconnect")


def test_every_argument_that_the_docs_name_is_one_and_every_one_is_named() -> None:
    page = (ROOT / "docs/how-to/debug-a-node.md").read_text(encoding="utf-8")
    section = page.partition("## In an editor\n")[2].partition("\n## ")[0]
    block, rest = section.partition("```json\n")[2].split("```", 1)
    (configuration,) = json.loads(block)["configurations"]
    others = rest.partition("Other arguments: ")[2].partition("\n")[0]
    named = {each.partition(":")[0] for each in re.findall(r"`([^`]+)`", others)}
    assert (set(configuration) - {"type", "request", "name", "debugServer"}) | named == debug_dap._LAUNCH_ARGUMENTS
