"""The language server: it receives texts, and passes questions to the features of `FEATURES`."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Generator
from typing import Any, TypeVar

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol, lsp_method

from vesper import __version__
from vesper.lsp.collection import Collection
from vesper.lsp.positions import path_of
from vesper.lsp.view import View

FEATURES: tuple[str, ...] = ()
"""Modules of features. Each has `register(server)`, which calls `on_document`, `on_position` or `feature`."""

_Result = TypeVar("_Result")


class _Protocol(LanguageServerProtocol):
    @lsp_method(types.INITIALIZE)
    def lsp_initialize(self, params: types.InitializeParams) -> Generator[Any, Any, types.InitializeResult]:
        """Agree on UTF-16, which every client supports, whatever the client prefers."""
        if params.capabilities.general is not None:
            params.capabilities.general.position_encodings = None
        return (yield from super().lsp_initialize(params))


class VesperServer(LanguageServer):
    """Server of one editor; `collection` has all files of its workspace."""

    def __init__(self) -> None:
        # Whole texts: nodes are short, and pygls splits lines at characters that are no line ends for editors.
        super().__init__("vesper", __version__, types.TextDocumentSyncKind.Full, protocol_cls=_Protocol)
        self.collection = Collection()
        for name in FEATURES:
            importlib.import_module(f"vesper.lsp.{name}").register(self)

    def view(self, uri: str) -> View:
        """Return the view of a document."""
        path = path_of(uri)
        view = None if path is None else self.collection.view(path)
        if view is None:
            raise JsonRpcInvalidParams(f"{uri} is no file of this workspace: open it first")
        return view

    def on_document(self, method: str, answer: Callable[[View], _Result], options: object = None) -> None:
        """Register a feature that depends on the document only."""
        self.feature(method, options)(lambda params: answer(self.view(params.text_document.uri)))

    def on_position(
        self, method: str, answer: Callable[[View, types.Position], _Result], options: object = None
    ) -> None:
        """Register a feature that depends on the position in a document."""
        self.feature(method, options)(lambda params: answer(self.view(params.text_document.uri), params.position))
