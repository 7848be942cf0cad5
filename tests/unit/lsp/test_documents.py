"""Features of one document, through the protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from tests.unit.lsp.editor import Editor, editing
from tests.unit.lsp.nodes import FEE, ORDER, write_shop
from tests.unit.migration.support.remote_answers import Told
from vesper.lsp.lenses import DEBUG, RUN, VERIFY
from vesper.lsp.positions import uri_of
from vesper.migration.stores import sqlite_store

Story = Callable[[Editor], Awaitable[None]]


def _edit(root: Path, story: Story, **options: Any) -> None:
    async def run() -> None:
        async with editing(root, **options) as (editor, _):
            await story(editor)

    asyncio.run(run())


def _applied(text: str, edits: list[types.TextEdit]) -> str:
    lines = text.split("\n")
    for edit in sorted(edits, key=lambda each: (each.range.start.line, each.range.start.character), reverse=True):
        start, end = edit.range.start, edit.range.end
        before, after = (
            lines[start.line][: start.character],
            (lines[end.line : end.line + 1] or [""])[0][end.character :],
        )
        lines[start.line : end.line + 1] = (before + edit.new_text + after).split("\n")
    return "\n".join(lines)


def _actions(editor: Editor, document: types.TextDocumentIdentifier, *only: str) -> Any:
    everywhere = types.Range(types.Position(0, 0), types.Position(1000, 0))
    context = types.CodeActionContext([], only or None)
    return editor.text_document_code_action_async(types.CodeActionParams(document, everywhere, context))


def test_fixes_are_quick_fixes_and_safe_ones_can_be_applied_together(tmp_path: Path) -> None:
    nodes = write_shop(tmp_path)
    text = FEE.replace("amount * rate", "amont * rate").replace("fee: decimal", "fee: decimall")
    signs = FEE.replace("amount * rate", "IF amount = 1 && amount = 2 THEN rate ELSE 0")

    async def story(editor: Editor) -> None:
        document = editor.open("fee_v1.vsp", text)
        found = await _actions(editor, document)
        assert [each.title for each in found] == ["Write `decimal`", "Write `amount`"]
        assert {each.kind for each in found} == {types.CodeActionKind.QuickFix}
        assert not any(each.is_preferred for each in found)
        edits = [edit for each in found for edit in each.edit.changes[document.uri]]
        assert _applied(text, edits) == FEE
        editor.change("fee_v1.vsp", signs)
        found = await _actions(editor, document, types.CodeActionKind.SourceFixAll)
        (action,) = found
        repaired = _applied(signs, action.edit.changes[document.uri])
        assert "IF amount == 1 AND amount == 2 THEN" in repaired
        preferred = [each.title for each in await _actions(editor, document) if each.is_preferred]
        assert preferred == ["Write `IF amount == 1 AND amount == 2 THEN rate ELSE 0`"]

    _edit(nodes, story)


def test_formatting_changes_lines_of_the_range_only(tmp_path: Path) -> None:
    nodes = write_shop(tmp_path)
    text = FEE.replace("  amount: decimal", "  amount:   decimal").replace("    fee: decimal", "    fee:   decimal")
    options = types.FormattingOptions(2, insert_spaces=True)

    async def story(editor: Editor) -> None:
        document = editor.open("fee_v1.vsp", text)
        edits = await editor.text_document_formatting_async(types.DocumentFormattingParams(document, options))
        assert edits is not None
        assert _applied(text, list(edits)) == FEE
        line = text.split("\n").index("    fee:   decimal")
        place = types.Range(types.Position(line, 0), types.Position(line, 5))
        params = types.DocumentRangeFormattingParams(document, place, options)
        edits = await editor.text_document_range_formatting_async(params)
        assert edits is not None
        assert _applied(text, list(edits)) == text.replace("fee:   decimal", "fee: decimal")
        editor.change("fee_v1.vsp", text.replace("outputs:", "outputs: ["))
        assert await editor.text_document_formatting_async(types.DocumentFormattingParams(document, options)) is None

    _edit(nodes, story)


def test_symbols_links_and_folding(tmp_path: Path) -> None:
    nodes = write_shop(tmp_path)

    async def story(editor: Editor) -> None:
        fee, order = editor.open("fee_v1.vsp"), editor.open("order_v1.vsp")
        symbols = await editor.text_document_document_symbol_async(types.DocumentSymbolParams(fee))
        sections = [each for each in symbols or () if isinstance(each, types.DocumentSymbol)]
        shown = {each.name: [child.name for child in each.children or ()] for each in sections}
        assert shown["inputs"] == ["amount"]
        assert shown["flow"] == ["fee", "return"]
        assert shown["testing"] == ["test_cases"]
        found = await editor.workspace_symbol_async(types.WorkspaceSymbolParams("RAT"))
        assert [(each.name, each.container_name) for each in found or ()] == [("rate", "rules_v1")]
        links = [
            (each.range.start.line, each.target)
            for document in (fee, order)
            for each in await editor.text_document_document_link_async(types.DocumentLinkParams(document)) or ()
        ]
        assert links == [
            (FEE.split("\n").index("use: [rules_v1]"), uri_of(nodes / "rules_v1.vsp")),
            (ORDER.split("\n").index("    node: fee_v1"), uri_of(nodes / "fee_v1.vsp")),
        ]
        folds = await editor.text_document_folding_range_async(types.FoldingRangeParams(fee))
        start = FEE.split("\n").index("outputs:")
        assert (start, start + 2) in {(each.start_line, each.end_line) for each in folds or ()}

    _edit(nodes, story)


def test_lenses_run_cases(tmp_path: Path) -> None:
    nodes = write_shop(tmp_path)

    async def story(editor: Editor) -> None:
        document = editor.open("fee_v1.vsp")
        lenses = await editor.text_document_code_lens_async(types.CodeLensParams(document))
        commands = [each.command for each in lenses or () if each.command is not None]
        assert [each.command for each in commands] == [RUN, DEBUG, VERIFY, RUN, DEBUG, RUN, DEBUG]
        run_all = commands[0]
        found = await editor.workspace_execute_command_async(types.ExecuteCommandParams(RUN, run_all.arguments))
        assert found == {"a hundred": True, "wrong": False}
        message = await editor.message()
        assert "1 of 2 cases passed" in message
        assert "case `wrong` of fee_v1 is not met" in message
        lenses = await editor.text_document_code_lens_async(types.CodeLensParams(document))
        titles = [each.command.title for each in lenses or () if each.command is not None]
        assert titles[3] == "✓ Run case"
        assert titles[5] == "✗ Run case"

    _edit(nodes, story, commands=[DEBUG])


def test_a_node_with_errors_runs_no_case(tmp_path: Path) -> None:
    nodes = write_shop(tmp_path)

    async def story(editor: Editor) -> None:
        document = editor.open("fee_v1.vsp", FEE.replace("amount * rate", "amont * rate"))
        arguments = types.ExecuteCommandParams(RUN, [document.uri, None])
        assert await editor.workspace_execute_command_async(arguments) == {}
        assert await editor.message() == "fee_v1.vsp has errors: correct them to run its cases"
        assert await editor.workspace_execute_command_async(types.ExecuteCommandParams(VERIFY, [document.uri])) is False
        assert await editor.message() == "save fee_v1.vsp first: the engines are compared on the file"

    _edit(nodes, story)


def test_a_lens_has_the_mode_of_a_routed_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = write_shop(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sqlite_store, "is_volatile", lambda _path: None)

    async def title(editor: Editor, name: str) -> str | None:
        lenses = await editor.text_document_code_lens_async(types.CodeLensParams(editor.open(name)))
        found = [each.command.title for each in lenses or () if each.command is not None and not each.command.command]
        return found[0] if found else None

    async def story(editor: Editor) -> None:
        assert await title(editor, "fee_v1.vsp") is None, "there is no configuration"
        (tmp_path / "vesper.toml").write_text("[migration]\n")
        assert await title(editor, "fee_v1.vsp") is None, "there is no store"
        store = Told(tmp_path)
        store.batch(runs=10)
        store.store.close()
        shown = await title(editor, "fee_v1.vsp")
        assert shown is not None
        assert shown.startswith("shadow_direct, confidence 0.48")
        assert shown.endswith("10 runs agree")
        assert await title(editor, "order_v1.vsp") is None, "it was never routed"
        (tmp_path / "vesper.toml").write_text("[migration]\nstore = 1\n")
        assert await title(editor, "fee_v1.vsp") is None
        assert "no mode of fee_v1" in await editor.message()

    _edit(nodes, story)
