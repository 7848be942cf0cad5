"""A small DAP client over pipes or a socket that validates every message.

Messages are checked against Microsoft's `debugProtocol.json`.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from vesper.cli.debug.dap_server import converse, launcher
from vesper.debug.dap.adapter import Adapter
from vesper.debug.dap.wire import read_message, write_message

SCHEMA = Path(__file__).parent / "debugProtocol.json"


@cache
def schema() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(SCHEMA.read_text(encoding="utf-8"))
    return found


def problems(value: Any, of: dict[str, Any], where: str = "") -> Iterator[str]:
    """Yield the violations of a schema, for the JSON Schema subset that the protocol uses."""
    if "$ref" in of:
        yield from problems(value, schema()["definitions"][of["$ref"].rpartition("/")[2]], where)
    for part in of.get("allOf", ()):
        yield from problems(value, part, where)
    kinds = of.get("type", [])
    if kinds and not any(_is_a(value, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds)):
        yield f"{where}: {value!r} is no {kinds}"
    if "enum" in of and value not in of["enum"]:
        yield f"{where}: {value!r} is none of {of['enum']}"
    if isinstance(value, dict):
        yield from (f"{where}: {name} is missing" for name in of.get("required", ()) if name not in value)
        for name, each in of.get("properties", {}).items():
            if name in value:
                yield from problems(value[name], each, f"{where}.{name}")
    if isinstance(value, list) and "items" in of:
        for number, item in enumerate(value):
            yield from problems(item, of["items"], f"{where}[{number}]")


def _is_a(value: Any, kind: str) -> bool:
    types: dict[str, Any] = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
    if kind in ("integer", "number"):
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, types[kind])


def check(message: dict[str, Any]) -> None:
    """Raise if the message violates the protocol."""
    definitions: dict[str, Any] = schema()["definitions"]
    match message["type"]:
        case "request":
            name = message["command"]
            definition = f"{name[0].upper()}{name[1:]}Request"
        case "response":
            name = message["command"]
            definition = "ErrorResponse" if not message["success"] else f"{name[0].upper()}{name[1:]}Response"
        case "event":
            name = message["event"]
            definition = f"{name[0].upper()}{name[1:]}Event"
        case other:
            raise AssertionError(f"a message of type {other}")
    assert definition in definitions, f"the protocol has no {definition}"
    found = list(problems(message, definitions[definition], definition))
    assert not found, found


class Client:
    def __init__(self, reading: Any, writing: Any) -> None:
        self._reading = reading
        self._writing = writing
        self._seq = 0
        self.events: list[dict[str, Any]] = []
        self.took: list[float] = []
        """Seconds of each movement, from the request to `stopped`."""

    def ask(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Return the body of the response; raise if the request fails."""
        response = self.try_(command, **arguments)
        assert response["success"], response
        body: dict[str, Any] = response.get("body", {})
        return body

    def try_(self, command: str, **arguments: Any) -> dict[str, Any]:
        self._seq += 1
        message = {"seq": self._seq, "type": "request", "command": command, "arguments": arguments}
        if command not in ("launch", "attach"):
            check(message)
        write_message(self._writing, message)
        while True:
            found = self._next()
            if found["type"] == "response":
                assert found["request_seq"] == self._seq
                return found

    def move(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Send a movement and return the `stopped` event that ends it."""
        begun = time.perf_counter()
        self.events.clear()
        self.ask(command, **arguments)
        found = self.event("stopped")
        self.took.append(time.perf_counter() - begun)
        return found

    def event(self, name: str) -> dict[str, Any]:
        """Return the body of the next event of this name."""
        while True:
            for number, found in enumerate(self.events):
                if found["event"] == name:
                    del self.events[number]
                    body: dict[str, Any] = found.get("body", {})
                    return body
            self._next()

    def _next(self) -> dict[str, Any]:
        message = read_message(self._reading)
        assert message is not None, "the adapter has gone"
        check(message)
        if message["type"] == "event":
            self.events.append(message)
        return message

    # -- looking ----------------------------------------------------------------------------------

    def frame(self, thread: int = 1) -> dict[str, Any]:
        found: dict[str, Any] = self.ask("stackTrace", threadId=thread)["stackFrames"][0]
        return found

    def variables(self, scope: str, thread: int = 1) -> dict[str, str]:
        """Return the variables of a scope in the top frame; empty without such a scope."""
        for found in self.ask("scopes", frameId=self.frame(thread)["id"])["scopes"]:
            if found["name"] == scope:
                listed = self.ask("variables", variablesReference=found["variablesReference"])["variables"]
                return {each["name"]: each["value"] for each in listed}
        return {}

    def reference(self, scope: str, thread: int = 1) -> int:
        scopes = self.ask("scopes", frameId=self.frame(thread)["id"])["scopes"]
        return next(int(each["variablesReference"]) for each in scopes if each["name"] == scope)

    def launch(self, points: dict[str, list[dict[str, Any]]] | None = None, **arguments: Any) -> dict[str, Any]:
        """Send the requests of an editor from `initialize` to the first `stopped`.

        `points` are breakpoints by source path.
        """
        self.ask("initialize", adapterID="vesper", linesStartAt1=True, columnsStartAt1=True, pathFormat="path")
        self.ask("launch", **arguments)
        self.event("initialized")
        for path, listed in (points or {}).items():
            self.ask("setBreakpoints", source={"path": path}, breakpoints=listed)
        self.ask("setExceptionBreakpoints", filters=["contract_violation", "divergence"])
        self.events.clear()
        self.ask("configurationDone")
        return self.event("stopped")


@contextmanager
def adapter_process(folder: Path, *options: str) -> Iterator[Client]:
    """Start `vesper debug --dap` as an editor does; return a connected client."""
    command = [sys.executable, "-m", "vesper", "debug", "--dap", *options]
    with subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield Client(process.stdout, process.stdin)
        if process.stdin is not None:
            process.stdin.close()
        assert process.wait(timeout=60) == 0


@contextmanager
def adapter(root: Path) -> Iterator[Client]:
    """Run the adapter in a thread of this process over a socket, which starts faster."""
    ours, theirs = socket.socketpair()
    with ours, theirs, theirs.makefile("rb") as reading, theirs.makefile("wb") as writing:
        serving = threading.Thread(target=converse, args=(Adapter(launcher(None, root)), reading, writing))
        serving.start()
        with ours.makefile("rb") as answers, ours.makefile("wb") as requests:
            try:
                yield Client(answers, requests)
            finally:
                ours.shutdown(socket.SHUT_WR)
                serving.join(timeout=60)
