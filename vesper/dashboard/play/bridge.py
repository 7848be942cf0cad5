"""The bridge between a page's editor and a language server in a process of its own."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import anyio
from starlette.websockets import WebSocket, WebSocketDisconnect

from vesper.dashboard.access.caller import Role
from vesper.dashboard.play.editor_text import path_in

MAX_PAGES = 8
"""Language servers at once."""
MAX_MESSAGE_BYTES = 4 << 20
_REFUSED, _TOO_LARGE, _TRY_LATER = 1008, 1009, 1013
_DOCUMENT_METHODS = (
    "didOpen", "didChange", "didClose", "hover", "completion", "signatureHelp", "definition", "references",
    "prepareRename", "rename", "formatting", "codeAction", "inlayHint", "semanticTokens/full", "documentSymbol",
)  # fmt: skip
METHODS = frozenset(
    ("initialize", "initialized", "shutdown", "exit", "completionItem/resolve",
     "workspace/didChangeWatchedFiles", *(f"textDocument/{each}" for each in _DOCUMENT_METHODS))
)  # fmt: skip
"""Messages that a page may send."""
_open_pages = 0


async def language_server(websocket: WebSocket) -> None:
    """Connect one page with a language server over the folder of nodes, until either ends.

    The guard has checked the origin and the session.
    """
    global _open_pages  # noqa: PLW0603  # the number of processes is bounded for the whole process
    if not websocket.state.caller.can(Role.AUTHOR):
        await websocket.close(_REFUSED)
        return
    await websocket.accept()
    if _open_pages >= MAX_PAGES:
        await websocket.close(_TRY_LATER, f"{MAX_PAGES} pages are open: close one, then reload")
        return
    _open_pages += 1
    try:
        await _connect(websocket, websocket.app.state.stores.nodes.folder.resolve())
    finally:
        _open_pages -= 1


async def _connect(websocket: WebSocket, folder: Path) -> None:
    pipe = asyncio.subprocess.PIPE
    command = (sys.executable, "-P", "-m", "vesper", "lsp")  # -P: no module is imported from the folder of nodes
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=pipe,
        stdout=pipe,
        stderr=asyncio.subprocess.DEVNULL,  # defects reach the page as messages; the rest is refusals with tracebacks
        cwd=folder,
        limit=MAX_MESSAGE_BYTES,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_send_to_server, websocket, process.stdin, folder)
            group.start_soon(_send_to_page, process.stdout, websocket)
    except* _Refused as refusals:
        refusal = refusals.exceptions[0]
        assert isinstance(refusal, _Refused)
        await websocket.close(refusal.code, str(refusal))
    except* (WebSocketDisconnect, ConnectionError, asyncio.IncompleteReadError):
        pass  # either side has ended
    finally:
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                process.kill()  # it holds no state
            await process.wait()


class _Refused(Exception):
    """A message that ends the connection."""

    def __init__(self, why: str, code: int = _REFUSED) -> None:
        super().__init__(why)
        self.code = code


async def _send_to_server(websocket: WebSocket, server: asyncio.StreamWriter, folder: Path) -> None:
    while True:
        text = await websocket.receive_text()
        if len(text) > MAX_MESSAGE_BYTES:
            raise _Refused("the message is too large", _TOO_LARGE)
        data = json.dumps(_check_message(text, folder)).encode()
        server.write(b"Content-Length: %d\r\n\r\n%b" % (len(data), data))
        await server.drain()


async def _send_to_page(server: asyncio.StreamReader, websocket: WebSocket) -> None:
    while True:
        header = await server.readuntil(b"\r\n\r\n")
        sizes = [line.partition(b":")[2] for line in header.splitlines() if line.lower().startswith(b"content-length")]
        await websocket.send_text((await server.readexactly(int(sizes[0]))).decode())


def _check_message(text: str, folder: Path) -> dict[str, Any]:
    """Return a message of the page about files of the folder; its workspace is the folder. Raises `_Refused`."""
    try:
        message = json.loads(text)
        method, parameters = message.get("method"), message.get("params") or {}
        if method is not None and method not in METHODS:
            raise _Refused(f"{method} is not bridged")
        uris = [parameters.get("textDocument", {}).get("uri", folder.as_uri())]
        uris += [each.get("uri") for each in parameters.get("changes", ())]
    except (ValueError, AttributeError, TypeError, RecursionError):
        raise _Refused("the message is no request of an editor") from None
    if not all(isinstance(each, str) and path_in(folder, each) is not None for each in uris):
        raise _Refused("the document is outside the folder of nodes")
    if method == "initialize":
        workspace = {"uri": folder.as_uri(), "name": folder.name}
        message["params"] |= {"processId": None, "rootUri": folder.as_uri(), "workspaceFolders": [workspace]}
    found: dict[str, Any] = message
    return found
