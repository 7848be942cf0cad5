"""Every feature of the language server, used once; each asserts what an editor would show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lsprotocol import types

from tests.proofs.editor.session import Session
from vesper.language.diagnostics.source import SourceFile
from vesper.lsp.lenses import RUN, VERIFY
from vesper.lsp.positions import to_position, uri_of

_PROVIDERS = {
    "call_hierarchy_provider": ("prepareCallHierarchy", "incomingCalls", "outgoingCalls"),
    "code_action_provider": ("codeAction",),
    "code_lens_provider": ("codeLens",),
    "completion_provider": ("completion", "resolve"),
    "definition_provider": ("definition",),
    "document_formatting_provider": ("formatting",),
    "document_highlight_provider": ("documentHighlight",),
    "document_link_provider": ("documentLink",),
    "document_range_formatting_provider": ("rangeFormatting",),
    "document_symbol_provider": ("documentSymbol",),
    "execute_command_provider": ("executeCommand",),
    "folding_range_provider": ("foldingRange",),
    "hover_provider": ("hover",),
    "inlay_hint_provider": ("inlayHint",),
    "references_provider": ("references",),
    "rename_provider": ("prepareRename", "rename"),
    "semantic_tokens_provider": ("full", "range"),
    "signature_help_provider": ("signatureHelp",),
    "workspace_symbol_provider": ("symbol",),
}
"""Requests of each capability, by the last part of their method."""


async def use_features(session: Session, folder: Path) -> int:
    """Use every feature that the server offers; return how many requests were answered."""
    user = _User(session, folder / "nodes" / "part_0")
    await user.read()
    await user.write()
    await user.run()
    offered = {name for name in _PROVIDERS if getattr(session.capabilities, name)}
    assert offered == set(_PROVIDERS), f"not offered: {set(_PROVIDERS) - offered}"
    missing = {part for parts in _PROVIDERS.values() for part in parts} - {each.split("/")[-1] for each in user.used}
    assert not missing, f"not used: {missing}"
    return len(user.used)


class _User:
    def __init__(self, session: Session, nodes: Path) -> None:
        self._session = session
        self._payroll = nodes / "tax" / "payroll_c0_v1.vsp"
        self._rules = nodes / "tax" / "tax_rules_c0_v1.vsp"
        self._wage_tax = nodes / "tax" / "wage_tax_c0_v1.vsp"
        self._checkout = nodes / "orders" / "checkout_c0_v1.vsp"
        self._rates = nodes / "shop" / "shipping_rate_c0_v1.vsp"
        self.used: list[str] = []

    async def _ask(self, method: str, params: object) -> Any:
        self.used.append(method)
        send = self._session.client.protocol.send_request_async
        return await send(method, params)  # type: ignore[no-untyped-call]  # pytest-lsp has no type here

    def _at(self, path: Path, words: str, inside: int = 1) -> tuple[types.TextDocumentIdentifier, types.Position]:
        text = self._session.text(path)
        return types.TextDocumentIdentifier(uri_of(path)), to_position(SourceFile("", text), text.index(words) + inside)

    async def read(self) -> None:
        """Look at nodes without changing them."""
        whole = types.Range(types.Position(0, 0), types.Position(10_000, 0))
        for path in (self._rules, self._checkout, self._rates, self._payroll):
            document = self._session.open(path)
            assert not self._session.has_errors(path), path
            symbols = await self._ask(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL, types.DocumentSymbolParams(document))
            assert symbols[0].name == path.stem
            assert await self._ask(types.TEXT_DOCUMENT_FOLDING_RANGE, types.FoldingRangeParams(document))
            tokens = await self._ask(types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, types.SemanticTokensParams(document))
            assert len(tokens.data) > 100
        payroll = types.TextDocumentIdentifier(uri_of(self._payroll))
        params = types.SemanticTokensRangeParams(payroll, whole)
        assert await self._ask(types.TEXT_DOCUMENT_SEMANTIC_TOKENS_RANGE, params)
        hints = await self._ask(types.TEXT_DOCUMENT_INLAY_HINT, types.InlayHintParams(payroll, whole))
        assert any("decimal" in str(each.label) for each in hints)
        hover = await self._ask(types.TEXT_DOCUMENT_HOVER, types.HoverParams(*self._at(self._payroll, "bonus_rate AT")))
        assert "decimal" in hover.contents.value
        found = await self._ask(types.WORKSPACE_SYMBOL, types.WorkspaceSymbolParams("checkout_c0"))
        assert [each.name for each in found] == ["checkout_c0_v1"]
        await self._follow()

    async def _follow(self) -> None:
        """Go from names to their places, and back."""
        links = {
            each.target
            for path in (self._payroll, self._checkout, self._rates)
            for each in await self._ask(
                types.TEXT_DOCUMENT_DOCUMENT_LINK, types.DocumentLinkParams(types.TextDocumentIdentifier(uri_of(path)))
            )
        }
        rows = self._rates.with_name("shipping_rates.csv")
        assert {uri_of(self._rules), uri_of(rows)} <= links
        assert any("order_pricing_c0_v1" in each for each in links)
        call = self._at(self._payroll, "wage_tax_c0(")
        target = await self._ask(types.TEXT_DOCUMENT_DEFINITION, types.DefinitionParams(*call))
        assert _uris(target) == {uri_of(self._wage_tax)}
        wage = self._at(self._rules, "Wage:")
        context = types.ReferenceContext(include_declaration=True)
        found = await self._ask(types.TEXT_DOCUMENT_REFERENCES, types.ReferenceParams(context, *wage))
        assert {uri_of(self._rules), uri_of(self._payroll)} <= _uris(found)
        assert await self._ask(types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT, types.DocumentHighlightParams(*wage))
        assert await self._ask(types.TEXT_DOCUMENT_PREPARE_RENAME, types.PrepareRenameParams(*wage))
        edit = await self._ask(types.TEXT_DOCUMENT_RENAME, types.RenameParams(*wage, "Salary"))
        changed = edit.changes or {each.text_document.uri: each for each in edit.document_changes}
        assert {uri_of(self._rules), uri_of(self._payroll)} <= set(changed)
        items = await self._ask(
            types.TEXT_DOCUMENT_PREPARE_CALL_HIERARCHY,
            types.CallHierarchyPrepareParams(*self._at(self._checkout, "node_id: checkout", 10)),
        )
        outgoing = await self._ask(
            types.CALL_HIERARCHY_OUTGOING_CALLS, types.CallHierarchyOutgoingCallsParams(items[0])
        )
        pricing = next(each.to for each in outgoing if "order_pricing" in each.to.name)
        incoming = await self._ask(types.CALL_HIERARCHY_INCOMING_CALLS, types.CallHierarchyIncomingCallsParams(pricing))
        assert [each.from_.name for each in incoming] == ["checkout_c0_v1"]

    async def write(self) -> None:
        """Type, complete, repair and format."""
        text = self._session.text(self._payroll)
        document = types.TextDocumentIdentifier(uri_of(self._payroll))
        self._session.change(self._payroll, text.replace("value: gross * bonus_rate AT paid_on", "value: gro"))
        place = self._at(self._payroll, "value: gro\n", len("value: gro"))
        found = await self._ask(types.TEXT_DOCUMENT_COMPLETION, types.CompletionParams(*place))
        items = found.items if isinstance(found, types.CompletionList) else found
        gross = next(each for each in items if each.label == "gross")
        assert await self._ask(types.COMPLETION_ITEM_RESOLVE, gross)
        self._session.change(self._payroll, text.replace("gross * bonus_rate AT paid_on", "round(gross, "))
        place = self._at(self._payroll, "round(gross, ", len("round(gross, "))
        help_ = await self._ask(types.TEXT_DOCUMENT_SIGNATURE_HELP, types.SignatureHelpParams(*place))
        assert help_.signatures
        assert "round" in help_.signatures[0].label
        wrong = text.replace("value: gross * bonus_rate", "value: gross *  bonus_rat").replace(
            "wages == []", "wages = []"
        )
        self._session.change(self._payroll, wrong)
        assert {str(each.code) for each in await self._session.diagnostics(self._payroll)}
        whole = types.Range(types.Position(0, 0), types.Position(10_000, 0))
        context = types.CodeActionContext(self._session.found[self._payroll])
        actions = await self._ask(types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionParams(document, whole, context))
        titles = [each.title for each in actions]
        assert any(each.startswith("Write `IF wages == []") for each in titles), titles
        self._session.change(self._payroll, text.replace("gross:    decimal", "gross:    decimal   "))
        options = types.FormattingOptions(2, insert_spaces=True)
        edits = await self._ask(types.TEXT_DOCUMENT_FORMATTING, types.DocumentFormattingParams(document, options))
        assert [each.new_text for each in edits] == ["    gross:    decimal\n"]
        params = types.DocumentRangeFormattingParams(document, edits[0].range, options)
        assert await self._ask(types.TEXT_DOCUMENT_RANGE_FORMATTING, params)
        self._session.change(self._payroll, text)
        assert not await self._session.diagnostics(self._payroll)

    async def run(self) -> None:
        """Use the lenses."""
        document = types.TextDocumentIdentifier(uri_of(self._payroll))
        lenses = await self._ask(types.TEXT_DOCUMENT_CODE_LENS, types.CodeLensParams(document))
        commands = {each.command.command: each.command for each in reversed(lenses)}
        arguments = types.ExecuteCommandParams(RUN, commands[RUN].arguments)
        found = await self._ask(types.WORKSPACE_EXECUTE_COMMAND, arguments)
        assert found == {"two wages": True, "no wages": True}
        arguments = types.ExecuteCommandParams(VERIFY, commands[VERIFY].arguments)
        assert await self._ask(types.WORKSPACE_EXECUTE_COMMAND, arguments) is True


def _uris(found: Any) -> set[str]:
    listed = found if isinstance(found, list | tuple) else [found]
    return {getattr(each, "uri", None) or each.target_uri for each in listed}
