"""The language server: it receives texts, publishes diagnostics, and passes questions to the features of `FEATURES`."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import traceback
from collections.abc import Callable, Generator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol, lsp_method

from vesper import __version__
from vesper.compiler.callees import collection_folder
from vesper.compiler.compiled import Compiled
from vesper.lsp.checker import Checker
from vesper.lsp.collection import Collection, find_files, read_file
from vesper.lsp.diagnostics import to_lsp
from vesper.lsp.positions import path_of, uri_of
from vesper.lsp.view import View
from vesper.repository.locate import SUFFIX
from vesper.verify.node_tests import CaseResult

FEATURES: tuple[str, ...] = (
    "fixes",
    "formatting",
    "lenses",
    "links",
    "outline",
    "features.coloring",
    "features.completion",
    "features.hierarchy",
    "features.hints",
    "features.hover",
    "features.navigation",
    "features.signatures",
)
"""Modules of features. Each has `register(server)`, which calls `on_document`, `on_position` or `feature`."""
_PROGRESS = "vesper-check"
_PROGRESS_SECONDS = 0.5
_WATCHED = "**/*.{vsp,csv,xlsx,lock,toml}"

_Answer = TypeVar("_Answer")


class _Protocol(LanguageServerProtocol):
    @lsp_method(types.INITIALIZE)
    def lsp_initialize(self, params: types.InitializeParams) -> Generator[Any, Any, types.InitializeResult]:
        """Agree on UTF-16, which every client supports, whatever the client prefers."""
        if params.capabilities.general is not None:
            params.capabilities.general.position_encodings = None
        return (yield from super().lsp_initialize(params))


class VesperServer(LanguageServer):
    """Server of one editor; `collection` has all files of its workspace."""

    def __init__(self, case_text: Callable[[Compiled, CaseResult], str]) -> None:
        """`case_text` renders a failed case."""
        # Whole texts: nodes are short, and pygls splits lines at characters that are no line ends for editors.
        super().__init__("vesper", __version__, types.TextDocumentSyncKind.Full, protocol_cls=_Protocol)
        self.case_text = case_text
        self.initialization_options: object = None
        self.collection = Collection()
        self._checker = Checker(self.collection, self._publish, self._report_defect)
        self._published: dict[Path, list[types.Diagnostic]] = {}
        self._reporting: asyncio.Task[None] | None = None
        self._uris: dict[Path, str] = {}
        """URIs as the client spells them, of documents that it has opened."""
        for method, handler in (
            (types.INITIALIZE, self._initialize),
            (types.INITIALIZED, self._start),
            (types.SHUTDOWN, self._stop),
            (types.TEXT_DOCUMENT_DID_OPEN, self._open),
            (types.TEXT_DOCUMENT_DID_CHANGE, self._change),
            (types.TEXT_DOCUMENT_DID_CLOSE, self._close),
            (types.WORKSPACE_DID_CHANGE_WATCHED_FILES, self._change_files),
            (types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS, self._change_folders),
        ):
            self.feature(method)(partial(handler))  # pygls writes attributes, which a method has not
        for name in FEATURES:
            importlib.import_module(f"vesper.lsp.{name}").register(self)

    # -- for features -----------------------------------------------------------------------------

    def view(self, uri: str) -> View:
        """Return the view of a document."""
        path = path_of(uri)
        view = None if path is None else self.collection.view(path)
        if view is None:
            raise JsonRpcInvalidParams(f"{uri} is no file of this workspace: open it first")
        return view

    def uri_of(self, path: Path) -> str:
        """Return the URI of a file, as the client spells it."""
        return self._uris.get(path) or uri_of(path)

    def on_document(self, method: str, answer: Callable[[View], _Answer], options: object = None) -> None:
        """Register a feature that depends on the document only."""
        self.feature(method, options)(lambda params: answer(self.view(params.text_document.uri)))

    def on_position(
        self, method: str, answer: Callable[[View, types.Position], _Answer], options: object = None
    ) -> None:
        """Register a feature that depends on the position in a document."""
        self.feature(method, options)(lambda params: answer(self.view(params.text_document.uri), params.position))

    async def wait_until_checked(self) -> None:
        """Wait until no file is pending."""
        await self._checker.is_idle.wait()

    # -- files ------------------------------------------------------------------------------------

    def _initialize(self, params: types.InitializeParams) -> None:
        self.initialization_options = params.initialization_options

    async def _start(self, _: types.InitializedParams) -> None:
        uris = [each.uri for each in self.workspace.folders.values()] or [self.workspace.root_uri or ""]
        await self._load([path for each in uris if (path := path_of(each)) is not None])
        self._checker.start()
        self._reporting = asyncio.create_task(self._report_progress())
        watches = self.client_capabilities.workspace and self.client_capabilities.workspace.did_change_watched_files
        if watches and watches.dynamic_registration:
            options = types.DidChangeWatchedFilesRegistrationOptions([types.FileSystemWatcher(_WATCHED)])
            method = types.WORKSPACE_DID_CHANGE_WATCHED_FILES
            await self.client_register_capability_async(
                types.RegistrationParams([types.Registration("vesper-files", method, options)])
            )

    async def _report_progress(self) -> None:
        """Show how many files are left until all have been checked once."""
        window = self.client_capabilities.window
        if not window or not window.work_done_progress:
            return
        total = len(self.collection.pending)
        await self.work_done_progress.create_async(_PROGRESS)
        self.work_done_progress.begin(_PROGRESS, types.WorkDoneProgressBegin("Checking nodes", percentage=0))
        while not self._checker.is_idle.is_set():
            done = total - min(total, len(self.collection.pending))
            report = types.WorkDoneProgressReport(message=f"{done}/{total}", percentage=100 * done // max(1, total))
            self.work_done_progress.report(_PROGRESS, report)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._checker.is_idle.wait(), _PROGRESS_SECONDS)
        self.work_done_progress.end(_PROGRESS, types.WorkDoneProgressEnd())

    async def _load(self, folders: list[Path]) -> None:
        """Add all files below folders that are not open."""
        for path, data in await asyncio.to_thread(lambda: [(each, read_file(each)) for each in find_files(folders)]):
            if path not in self.collection.entries:
                self.collection.put(path, data)
        self._checker.changed()

    def _stop(self, _: None) -> None:
        self._checker.stop()
        if self._reporting is not None:
            self._reporting.cancel()

    def _open(self, params: types.DidOpenTextDocumentParams) -> None:
        path = path_of(params.text_document.uri)
        if path is None:
            return
        self._uris[path] = params.text_document.uri
        if path not in self.collection.entries:
            # Outside of the workspace, or new: the files that it can call may be unknown.
            root = collection_folder(path)
            for each in path.parent.glob(f"*{SUFFIX}") if root == path.parent else find_files([root]):
                if each not in self.collection.entries:
                    self.collection.put(each, read_file(each))
        self.collection.put(path, params.text_document.text.encode("utf-8", "replace"), is_open=True)
        self._checker.changed()

    def _change(self, params: types.DidChangeTextDocumentParams) -> None:
        path = path_of(params.text_document.uri)
        if path is not None:
            text = self.workspace.get_text_document(params.text_document.uri).source
            self.collection.put(path, text.encode("utf-8", "replace"), is_open=True)
            self._checker.changed(path)

    def _close(self, params: types.DidCloseTextDocumentParams) -> None:
        path = path_of(params.text_document.uri)
        if path is not None:
            self._reload(path)
            self._checker.changed()

    def _reload(self, path: Path) -> None:
        """Take over the file on disk."""
        data = read_file(path)
        if isinstance(data, FileNotFoundError):
            self.collection.remove(path)
            self._send(path, [])
        else:
            self.collection.put(path, data)

    def _change_files(self, params: types.DidChangeWatchedFilesParams) -> None:
        for change in params.changes:
            path = path_of(change.uri)
            if path is None:
                continue
            if path.suffix != SUFFIX:
                self.collection.refresh(path)
            elif (entry := self.collection.entries.get(path)) is None or not entry.is_open:
                self._reload(path)
        self._checker.changed()

    async def _change_folders(self, params: types.DidChangeWorkspaceFoldersParams) -> None:
        for each in params.event.removed:
            folder = path_of(each.uri)
            for path, entry in list(self.collection.entries.items()):
                if folder is not None and path.is_relative_to(folder) and not entry.is_open:
                    self.collection.remove(path)
                    self._send(path, [])
        added = [path_of(each.uri) for each in params.event.added]
        await self._load([each for each in added if each is not None])

    # -- diagnostics ------------------------------------------------------------------------------

    def _publish(self, paths: set[Path]) -> None:
        for path in paths:
            entry = self.collection.entries.get(path)
            if entry is None or entry.settled is None:
                continue
            uri, source = self.uri_of(path), entry.settled.checked.source
            found = [to_lsp(source, uri, each) for each in entry.diagnostics]
            if entry.is_open or found != self._published.get(path, []):
                self._send(path, found)

    def _report_defect(self, path: Path, error: Exception) -> None:
        trace = "".join(traceback.format_exception(error))
        message = f"{trace}\nThis is a bug in Vesper, not in {path.name}. Please report it with the lines above."
        self.window_log_message(types.LogMessageParams(types.MessageType.Error, message))

    def _send(self, path: Path, found: list[types.Diagnostic]) -> None:
        entry, uri = self.collection.entries.get(path), self.uri_of(path)
        version = self.workspace.get_text_document(uri).version if entry is not None and entry.is_open else None
        self._published[path] = found
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, found, version))
