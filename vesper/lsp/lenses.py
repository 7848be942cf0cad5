"""Code lenses: run cases, debug, verify; mode and confidence of the node from the migration store."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from lsprotocol import types

from vesper.compiler.compiled import Compiled
from vesper.config.locate import config_for, nearest_config
from vesper.effects.settings import ConfigError
from vesper.engines.engine import EngineUnavailable
from vesper.engines.registry import REFERENCE, engine_named
from vesper.language.diagnostics.source import Span
from vesper.language.syntax.yaml_tree import Mapping, Scalar, Tree
from vesper.lsp.collection import read_file
from vesper.lsp.outline import named_entries
from vesper.lsp.positions import to_range
from vesper.lsp.server import VesperServer
from vesper.lsp.view import View
from vesper.migration.control.modes import Mode
from vesper.migration.stores.codec import BadState
from vesper.migration.stores.overview import confidence_text, read_overview, running_mode
from vesper.migration.stores.store import Settings, StoreError, open_store
from vesper.values.model import printable
from vesper.verify.node_tests import CaseResult, NodeTester

RUN, VERIFY = "vesper.runCases", "vesper.verify"
"""Commands that the server executes: a URI, and for `RUN` the name of a case or null for all."""
DEBUG = "vesper.debug"
"""Command of the client with the same arguments, offered where `initializationOptions.commands` names it."""
_VERIFY_EXAMPLES = 300


def register(server: VesperServer) -> None:
    lenses = _Lenses(server)

    @server.feature(types.TEXT_DOCUMENT_CODE_LENS, types.CodeLensOptions())
    async def _(params: types.CodeLensParams) -> list[types.CodeLens]:
        view = server.view(params.text_document.uri)
        return [*lenses.of_cases(view, params.text_document.uri), *await lenses.of_store(view)]

    @server.command(RUN)
    async def _(uri: str, case: str | None = None) -> dict[str, bool]:
        return await lenses.run(uri, case)

    @server.command(VERIFY)
    async def _(uri: str) -> bool:
        return await lenses.verify(uri)


class _Lenses:
    def __init__(self, server: VesperServer) -> None:
        self._server = server
        self._results: dict[Path, tuple[str, dict[str, bool]]] = {}
        """Text and results of the cases that ran last, by path."""

    # -- lenses -----------------------------------------------------------------------------------

    def of_cases(self, view: View, uri: str) -> list[types.CodeLens]:
        """Return the lenses of the id and of each case."""
        if view.parsed is None:
            return []
        source = view.parsed.source
        node_id, cases = _field(view.parsed.tree, "node_id"), _field(view.parsed.tree, "testing", "test_cases")
        if node_id is None:
            return []
        named = [] if cases is None else [(name, span) for name, span in named_entries(cases)]
        text, results = self._results.get(view.path, ("", {}))
        results = results if text == view.source.text else {}

        def lens(span: Span, title: str, command: str, *arguments: object) -> types.CodeLens:
            return types.CodeLens(to_range(source, span), types.Command(title, command, arguments=[uri, *arguments]))

        has_debug = self._client_has(DEBUG)
        found = [lens(node_id.span, f"Run {len(named)} cases", RUN, None)] if named else []
        found += [lens(node_id.span, "Debug", DEBUG, None)] if has_debug else []
        found.append(lens(node_id.span, "Verify engines", VERIFY))
        for name, span in named:
            verdict = ("✓ " if results[name.text] else "✗ ") if name.text in results else ""
            found.append(lens(span, f"{verdict}Run case", RUN, name.text))
            found += [lens(span, "Debug case", DEBUG, name.text)] if has_debug else []
        return found

    def _client_has(self, command: str) -> bool:
        options = self._server.initialization_options
        return isinstance(options, dict) and command in options.get("commands", ())

    async def of_store(self, view: View) -> list[types.CodeLens]:
        """Return the lens of the node's mode; none without a configuration or before its first routed call."""
        node_id = None if view.parsed is None else _field(view.parsed.tree, "node_id")
        if view.parsed is None or not isinstance(node_id, Scalar) or nearest_config(view.path) is None:
            return []
        try:
            title = await asyncio.to_thread(_status, view.path, node_id.text)
        except (ConfigError, StoreError, BadState) as problem:
            message = f"no mode of {node_id.text}: {problem}"
            self._server.window_log_message(types.LogMessageParams(types.MessageType.Warning, printable(message)))
            return []
        range_ = to_range(view.parsed.source, node_id.span)
        return [] if title is None else [types.CodeLens(range_, types.Command(title, ""))]

    # -- commands ---------------------------------------------------------------------------------

    async def run(self, uri: str, wanted: str | None) -> dict[str, bool]:
        """Run one case of a node or all, and show which of them pass."""
        view = self._server.view(uri)
        compiled = await asyncio.to_thread(view.collection.compiled, view.path)
        if not isinstance(compiled, Compiled):
            self._show(False, f"{view.path.name} has errors: correct them to run its cases")
            return {}
        try:
            results = await asyncio.to_thread(_run_cases, compiled, wanted)
        except EngineUnavailable as problem:
            self._show(False, str(problem))
            return {}
        found = {each.case.name: each.passed for each in results}
        text, before = self._results.get(view.path, ("", {}))
        self._results[view.path] = (view.source.text, (before if text == view.source.text else {}) | found)
        failed = [self._server.case_text(compiled, each) for each in results if not each.passed]
        summary = f"{compiled.node.node_id}: {len(found) - len(failed)} of {len(found)} cases passed"
        self._show(not failed, "\n".join([summary, *failed]))
        capabilities = self._server.client_capabilities.workspace
        if capabilities and capabilities.code_lens and capabilities.code_lens.refresh_support:
            self._server.workspace_code_lens_refresh(None)
        return found

    async def verify(self, uri: str) -> bool:
        """Compare the engines on generated inputs of the saved node, in a process of its own."""
        view = self._server.view(uri)
        if read_file(view.path) != view.source.text.encode("utf-8"):
            self._show(False, f"save {view.path.name} first: the engines are compared on the file")
            return False
        arguments = ["-m", "vesper", "verify", str(view.path), "--max-examples", str(_VERIFY_EXAMPLES), "--jobs", "1"]
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *arguments,
            cwd=view.path.parent,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
        self._show(process.returncode == 0, output.decode("utf-8", "replace").strip())
        return process.returncode == 0

    def _show(self, is_good: bool, text: str) -> None:
        kind = types.MessageType.Info if is_good else types.MessageType.Error
        self._server.window_show_message(types.ShowMessageParams(kind, text))


def _run_cases(compiled: Compiled, wanted: str | None) -> list[CaseResult]:
    tester = NodeTester(compiled, {REFERENCE: engine_named(REFERENCE)})
    return [tester.run_case(each) for each in compiled.cases if wanted in (None, each.name)]


def _field(tree: Tree, *keys: str) -> Tree | None:
    """Return the value below keys of mappings."""
    found: Tree | None = tree
    for key in keys:
        entries = found.entries if isinstance(found, Mapping) else ()
        found = next((value for name, value in entries if name.text == key), None)
    return found


def _status(path: Path, node_id: str) -> str | None:
    """Return mode and confidence of a node; None for one that was never routed."""
    migration = config_for(path).migration_settings()
    if migration.store.startswith("sqlite:") and not Path(migration.store.removeprefix("sqlite:")).exists():
        return None  # reading must not create it
    store = open_store(migration.store)
    try:
        settings = Settings(frozenset(map(Mode, migration.approvals)))
        nodes = read_overview(store, settings, node=node_id).nodes
    finally:
        store.close()
    state = nodes[0].state if nodes else None
    if state is None:
        return None
    named = migration.of(node_id).max_mode
    mode = running_mode(state, None if named is None else Mode(named))
    return f"{mode.value}, confidence {confidence_text(state)}, {state.clean:,} runs agree"
