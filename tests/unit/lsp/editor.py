"""A client of the language server in the same process, over a pair of sockets."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.io_ import run_async
from pygls.lsp.client import LanguageClient

from vesper.cli.test.failure_text import case_failure_text
from vesper.lsp.positions import uri_of
from vesper.lsp.server import VesperServer

DEADLINE_SECONDS = 30.0


class Editor(LanguageClient):
    """An editor with one workspace; `diagnostics` are those published last, by path."""

    def __init__(self, root: Path) -> None:
        super().__init__("editor", "1")
        self.root = root
        self.diagnostics: dict[Path, Sequence[types.Diagnostic]] = {}
        self.messages: list[str] = []
        self._arrived = asyncio.Condition()
        self._versions: dict[Path, int] = {}
        self._seen: dict[Path, int | None] = {}
        self._new: set[Path] = set()
        self.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(partial(self._publish))
        self.feature(types.WINDOW_SHOW_MESSAGE)(partial(self._hear))
        self.feature(types.WINDOW_LOG_MESSAGE)(partial(self._hear))
        self.feature(types.CLIENT_REGISTER_CAPABILITY)(lambda _: None)
        self.feature(types.WORKSPACE_CODE_LENS_REFRESH)(lambda *_: None)

    async def _publish(self, params: types.PublishDiagnosticsParams) -> None:
        path = Path(params.uri.removeprefix("file://"))
        async with self._arrived:
            self.diagnostics[path] = params.diagnostics
            self._seen[path] = params.version
            self._new.add(path)
            self._arrived.notify_all()

    async def _hear(self, params: types.ShowMessageParams | types.LogMessageParams) -> None:
        async with self._arrived:
            self.messages.append(params.message)
            self._arrived.notify_all()

    async def message(self) -> str:
        """Wait for the next message, and return it."""
        async with asyncio.timeout(DEADLINE_SECONDS), self._arrived:
            await self._arrived.wait_for(lambda: self.messages)
            return self.messages.pop(0)

    def path(self, name: str) -> Path:
        return self.root / name

    def open(self, name: str, text: str | None = None) -> types.TextDocumentIdentifier:
        """Open a file, with another text than that on disk where one is given."""
        path = self.path(name)
        self._versions[path] = 1
        shown = path.read_text("utf-8") if text is None else text
        item = types.TextDocumentItem(uri_of(path), "vesper", 1, shown)
        self.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return types.TextDocumentIdentifier(item.uri)

    def change(self, name: str, text: str) -> None:
        """Replace the text of an open file."""
        path = self.path(name)
        self._versions[path] += 1
        document = types.VersionedTextDocumentIdentifier(self._versions[path], uri_of(path))
        change = types.TextDocumentContentChangeWholeDocument(text)
        self.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))

    async def codes(self, name: str) -> list[str]:
        """Return the codes of the diagnostics of the newest text of an open file."""
        path = self.path(name)
        async with asyncio.timeout(DEADLINE_SECONDS), self._arrived:
            await self._arrived.wait_for(lambda: self._seen.get(path) == self._versions[path])
        return self.known(name)

    async def told(self, name: str) -> list[str]:
        """Wait for the next diagnostics of a file since the last call, and return their codes."""
        async with asyncio.timeout(DEADLINE_SECONDS), self._arrived:
            await self._arrived.wait_for(lambda: self.path(name) in self._new)
            self._new.discard(self.path(name))
        return self.known(name)

    def known(self, name: str) -> list[str]:
        """Return the codes of the diagnostics that were published last."""
        return [str(each.code) for each in self.diagnostics.get(self.path(name), ())]


@asynccontextmanager
async def editing(root: Path, **options: Any) -> AsyncIterator[tuple[Editor, VesperServer]]:
    """Start a server for a folder, and wait until it has checked all files."""
    server, editor = VesperServer(case_failure_text), Editor(root)
    stop = threading.Event()
    ends = [await asyncio.open_connection(sock=each) for each in socket.socketpair()]
    tasks = []
    for (reader, writer), protocol in zip(ends, (server.protocol, editor.protocol), strict=True):
        protocol.set_writer(writer)
        tasks.append(asyncio.create_task(run_async(stop, reader, protocol)))
    folder = types.WorkspaceFolder(uri_of(root), root.name)
    capabilities = types.ClientCapabilities()
    await editor.initialize_async(
        types.InitializeParams(capabilities, workspace_folders=[folder], initialization_options=options)
    )
    editor.initialized(types.InitializedParams())
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            await server.wait_until_checked()
        yield editor, server
    finally:
        await editor.shutdown_async(None)
        stop.set()
        for _, writer in ends:
            writer.close()
        await asyncio.gather(*tasks, return_exceptions=True)
        for _, writer in ends:
            await writer.wait_closed()
