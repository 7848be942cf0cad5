"""The bridge passes an editor's messages to a language server over the folder of nodes, and refuses others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from starlette.websockets import WebSocketDisconnect

from tests.support.dashboard import client_of
from vesper.dashboard.access.caller import Role
from vesper.dashboard.play import bridge
from vesper.repository.starter import starter

ORIGIN = {"origin": "http://127.0.0.1:8001"}
ADDRESS = "ws://127.0.0.1:8001/play/lsp"


@pytest.fixture
def nodes(tmp_path: Path) -> Path:
    folder = tmp_path / "nodes"
    folder.mkdir()
    (folder / "fee_v1.vsp").write_text(starter("fee_v1", "function"))
    return folder


def message(method: str, params: object, number: int | None = None) -> str:
    found = {"jsonrpc": "2.0", "method": method, "params": params}
    return json.dumps(found if number is None else {**found, "id": number})


def answer(socket: Any, wanted: object) -> dict[str, Any]:
    """Return the answer with this id, or the first notification of this method."""
    while True:
        found: dict[str, Any] = json.loads(socket.receive_text())
        if found.get("id") == wanted or found.get("method") == wanted:
            return found


def test_an_editor_gets_diagnostics_and_hovers(tmp_path: Path, nodes: Path) -> None:
    uri = (nodes / "fee_v1.vsp").as_uri()
    text = starter("fee_v1", "function")
    document = {
        "uri": uri,
        "languageId": "vesper",
        "version": 1,
        "text": text.replace("amount * rate", "amount * rates"),
    }
    with client_of(tmp_path) as client, client.websocket_connect(ADDRESS, headers=ORIGIN) as socket:
        socket.send_text(message("initialize", {"rootUri": "file:///etc", "capabilities": {}}, 1))
        assert answer(socket, 1)["result"]["capabilities"]["hoverProvider"]
        socket.send_text(message("initialized", {}))
        socket.send_text(message("textDocument/didOpen", {"textDocument": document}))
        (problem,) = answer(socket, "textDocument/publishDiagnostics")["params"]["diagnostics"]
        line = text.splitlines().index("    value: amount * rate")
        assert problem["range"]["start"]["line"] == line
        position = {"line": line, "character": len("    value: am")}
        socket.send_text(message("textDocument/hover", {"textDocument": {"uri": uri}, "position": position}, 2))
        assert "decimal" in str(answer(socket, 2)["result"]["contents"])


@pytest.mark.parametrize(
    "headers,roles",
    [({"origin": "http://evil.example"}, tuple(Role)), ({}, tuple(Role)), (ORIGIN, (Role.VIEWER,))],
    ids=["another site", "no origin", "a viewer"],
)
def test_others_are_refused_before_the_socket_opens(
    tmp_path: Path, headers: dict[str, str], roles: tuple[Role, ...]
) -> None:
    client = client_of(tmp_path, roles=roles)
    with pytest.raises(WebSocketDisconnect), client.websocket_connect(ADDRESS, headers=headers):
        pass


def test_a_page_beyond_the_maximum_is_told_why(tmp_path: Path, nodes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bridge, "MAX_PAGES", 0)
    assert nodes.is_dir()
    client = client_of(tmp_path)
    with client.websocket_connect(ADDRESS, headers=ORIGIN) as socket, pytest.raises(WebSocketDisconnect) as closed:
        socket.receive_text()
    assert (closed.value.code, "close one" in closed.value.reason) == (1013, True)


@pytest.mark.parametrize(
    "text",
    [
        "no JSON",
        "[]",
        message("workspace/executeCommand", {"command": "x"}, 1),
        message("textDocument/didOpen", {"textDocument": {"uri": "file:///etc/passwd", "text": ""}}),
        message("textDocument/hover", {"textDocument": {"uri": "FOLDER/../../x_v1.vsp"}}, 1),
        message("textDocument/hover", {"textDocument": {"uri": 5}}, 1),
        message("textDocument/hover", {"textDocument": {"uri": "FOLDER/link_v1.vsp"}}, 1),
        message("textDocument/hover", {"textDocument": {"uri": "FOLDER/%00_v1.vsp"}}, 1),
        message("textDocument/hover", {"textDocument": {"uri": "file://[/x_v1.vsp"}}, 1),
        message(
            "workspace/didChangeWatchedFiles", {"changes": [{"uri": "FOLDER/fee_v1.vsp"}, {"uri": "file:///x.vsp"}]}
        ),
        message("workspace/didChangeWatchedFiles", {"changes": [{"type": 1}]}),
    ],
)
def test_other_messages_are_refused(nodes: Path, text: str) -> None:
    (nodes / "link_v1.vsp").symlink_to(nodes.parent / "outside_v1.vsp")
    with pytest.raises(bridge._Refused):
        bridge._check_message(text.replace("FOLDER", nodes.as_uri()), nodes)


def test_changes_of_files_in_the_folder_are_passed(nodes: Path) -> None:
    sent = message(
        "workspace/didChangeWatchedFiles", {"changes": [{"uri": (nodes / "new_v1.vsp").as_uri(), "type": 1}]}
    )
    assert bridge._check_message(sent, nodes) == json.loads(sent)


def test_the_workspace_is_the_folder_of_nodes(nodes: Path) -> None:
    sent = bridge._check_message(message("initialize", {"rootUri": "file:///", "processId": 5}, 1), nodes)
    assert sent["params"]["rootUri"] == nodes.as_uri()
    assert sent["params"]["workspaceFolders"] == [{"uri": nodes.as_uri(), "name": "nodes"}]
