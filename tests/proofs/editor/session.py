"""A session of pytest-lsp's client with `vesper lsp`, over standard input and output."""

from __future__ import annotations

import asyncio
import os
import sys
import time
import warnings
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from lsprotocol import types
from pytest_lsp import ClientServerConfig, LanguageClient, LspSpecificationWarning, client_capabilities

from vesper.lsp.lenses import DEBUG
from vesper.lsp.positions import path_of, uri_of

DEADLINE_SECONDS = 300.0


class Session:
    """The client, its open documents, and the diagnostics that arrived last."""

    def __init__(self, client: LanguageClient) -> None:
        self.client = client
        self.found: dict[Path, Sequence[types.Diagnostic]] = {}
        self.arrived: dict[Path, float] = {}
        """Time of the last diagnostics, by path."""
        self._seen: dict[Path, int | None] = {}
        self._versions: dict[Path, int] = {}
        self._texts: dict[Path, str] = {}
        self.capabilities = types.ServerCapabilities()
        self._changed = asyncio.Event()
        self._is_checked = asyncio.Event()
        features = client.protocol.fm.features
        features[types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS] = self._publish
        features[types.PROGRESS] = self._progress
        client.feature(types.CLIENT_REGISTER_CAPABILITY)(lambda _: None)
        client.feature(types.WORKSPACE_CODE_LENS_REFRESH)(lambda _: None)

    def _publish(self, params: types.PublishDiagnosticsParams) -> None:
        path = path_of(params.uri)
        assert path is not None
        self.arrived[path] = time.perf_counter()
        self.found[path], self._seen[path] = params.diagnostics, params.version
        self._changed.set()

    def _progress(self, params: types.ProgressParams) -> None:
        value = params.value
        if isinstance(value, dict) and value.get("kind") == "end":
            self._is_checked.set()

    async def wait_until_checked(self) -> None:
        """Wait until the server has checked all files once."""
        await asyncio.wait_for(self._is_checked.wait(), DEADLINE_SECONDS)

    def open(self, path: Path, text: str | None = None) -> types.TextDocumentIdentifier:
        self._versions[path] = self._versions.get(path, 0) + 1
        shown = self._texts[path] = path.read_text("utf-8") if text is None else text
        item = types.TextDocumentItem(uri_of(path), "vesper", self._versions[path], shown)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return types.TextDocumentIdentifier(item.uri)

    def change(self, path: Path, text: str) -> None:
        self._versions[path] += 1
        self._texts[path] = text
        document = types.VersionedTextDocumentIdentifier(self._versions[path], uri_of(path))
        change = types.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))

    def text(self, path: Path) -> str:
        """Return the text of an open file."""
        return self._texts[path]

    def close(self, document: types.TextDocumentIdentifier) -> None:
        self.client.text_document_did_close(types.DidCloseTextDocumentParams(document))

    async def diagnostics(self, path: Path) -> Sequence[types.Diagnostic]:
        """Return the diagnostics of the newest text of an open file."""
        await self.wait_for(lambda: self._seen.get(path) == self._versions[path])
        return self.found[path]

    async def wait_for(self, holds: Callable[[], bool]) -> None:
        """Wait until diagnostics arrive with which the condition holds."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            while not holds():
                self._changed.clear()
                await self._changed.wait()

    def has_errors(self, path: Path) -> bool:
        return any(each.severity == types.DiagnosticSeverity.Error for each in self.found.get(path, ()))


@asynccontextmanager
async def start(folder: Path) -> AsyncIterator[Session]:
    """Start the server for a folder, as Visual Studio Code does."""
    command = [sys.executable, "-m", "vesper", "lsp", "--stdio"]
    with warnings.catch_warnings():
        warnings.simplefilter("error", LspSpecificationWarning)
        client = await ClientServerConfig(command, server_env=dict(os.environ)).start()
        assert isinstance(client, LanguageClient)
        session = Session(client)
        answer = await client.initialize_session(
            types.InitializeParams(
                client_capabilities("visual-studio-code"),
                workspace_folders=[types.WorkspaceFolder(uri_of(folder), folder.name)],
                initialization_options={"commands": [DEBUG]},
            )
        )
        session.capabilities = answer.capabilities
        try:
            yield session
        finally:
            await client.shutdown_session()
            await client.stop()  # type: ignore[no-untyped-call]  # pytest-lsp has no type here
