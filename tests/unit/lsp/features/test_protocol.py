"""Every feature through the protocol: registered, with results that a client can read."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from tests.unit.lsp.editor import editing
from tests.unit.lsp.features.test_tables import RISK
from tests.unit.lsp.features.workspace import FEE, ORDER, RULES


def test_features_answer_through_the_protocol(tmp_path: Path) -> None:
    for name, text in (("fee_v1", FEE), ("order_v1", ORDER), ("rules_v1", RULES), ("risk_v1", RISK)):
        (tmp_path / f"{name}.vsp").write_text(text)
    line = FEE.splitlines().index("    value: capped(amount * rate, 5) + pieces")
    position, whole = types.Position(line, 20), types.Range(types.Position(0, 0), types.Position(99, 0))

    async def story() -> None:
        async with editing(tmp_path) as (editor, server):
            await server.wait_until_checked()
            document = editor.open("fee_v1.vsp")
            risk = editor.open("risk_v1.vsp")
            hover = await editor.text_document_hover_async(types.HoverParams(document, position))
            assert hover is not None
            found = await editor.text_document_completion_async(types.CompletionParams(document, position))
            assert isinstance(found, types.CompletionList)
            operation = next(each for each in found.items if each.label == "round")
            assert (await editor.completion_item_resolve_async(operation)).documentation is not None
            assert await editor.text_document_signature_help_async(types.SignatureHelpParams(document, position))
            assert await editor.text_document_definition_async(types.DefinitionParams(document, position))
            references = types.ReferenceParams(types.ReferenceContext(True), document, position)
            assert len(await editor.text_document_references_async(references) or ()) == 4
            highlights = types.DocumentHighlightParams(document, position)
            assert await editor.text_document_document_highlight_async(highlights)
            assert await editor.text_document_prepare_rename_async(types.PrepareRenameParams(document, position))
            edit = await editor.text_document_rename_async(types.RenameParams(document, position, "paid"))
            assert edit is not None
            assert len(edit.changes or ()) == 2
            with pytest.raises(JsonRpcException, match="`Paid` is no name of an input"):
                await editor.text_document_rename_async(types.RenameParams(document, position, "Paid"))
            items = await editor.text_document_prepare_call_hierarchy_async(
                types.CallHierarchyPrepareParams(document, types.Position(0, 10))
            )
            (item,) = items or ()
            incoming = types.CallHierarchyIncomingCallsParams(item)
            assert len(await editor.call_hierarchy_incoming_calls_async(incoming) or ()) == 1
            outgoing = types.CallHierarchyOutgoingCallsParams(item)
            assert len(await editor.call_hierarchy_outgoing_calls_async(outgoing) or ()) == 1
            assert await editor.text_document_inlay_hint_async(types.InlayHintParams(document, whole))
            tokens = types.SemanticTokensParams(document)
            assert await editor.text_document_semantic_tokens_full_async(tokens)
            part = types.SemanticTokensRangeParams(document, types.Range(position, position))
            few = await editor.text_document_semantic_tokens_range_async(part)
            assert few is not None
            assert len(few.data) == 5
            row = RISK.splitlines().index('      - {in: {amount: "> 5000"}, then: high}')
            context = types.CodeActionContext([], [types.CodeActionKind.RefactorRewrite])
            at = types.Range(types.Position(row, 10), types.Position(row, 10))
            actions = await editor.text_document_code_action_async(types.CodeActionParams(risk, at, context))
            assert [each.title for each in actions or ()] == ["Align the table"]

    asyncio.run(story())
