"""Diagnostics while typing, through the protocol."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from tests.unit.lsp.editor import editing
from tests.unit.lsp.nodes import FEE, RULES, write_shop
from vesper.compiler.check_result import Checked, check_bytes
from vesper.language.diagnostics.codes import Code
from vesper.lsp import collection
from vesper.lsp.positions import uri_of

UNKNOWN_NAME, UNKNOWN_NODE = Code.UNKNOWN_NAME.number, Code.UNKNOWN_NODE.number
WRONG_CALLEE, DUPLICATE_NODE = Code.WRONG_CALLEE.number, Code.DUPLICATE_NODE.number


def test_diagnostics_follow_the_text(tmp_path: Path) -> None:
    async def story() -> None:
        async with editing(write_shop(tmp_path)) as (editor, _):
            editor.open("fee_v1.vsp")
            assert await editor.codes("fee_v1.vsp") == []
            editor.change("fee_v1.vsp", FEE.replace("amount * ", "amont * "))
            assert await editor.codes("fee_v1.vsp") == [UNKNOWN_NAME]
            (shown,) = editor.diagnostics[editor.path("fee_v1.vsp")]
            line = FEE.splitlines().index("    value: amount * rate")
            assert shown.range == types.Range(types.Position(line, 11), types.Position(line, 16))
            assert "did you mean `amount`?" in shown.message
            editor.change("fee_v1.vsp", FEE)
            assert await editor.codes("fee_v1.vsp") == []

    asyncio.run(story())


def test_files_that_depend_on_a_changed_text_are_checked_again(tmp_path: Path) -> None:
    async def story() -> None:
        async with editing(write_shop(tmp_path)) as (editor, _):
            assert editor.diagnostics == {}
            editor.open("rules_v1.vsp")
            editor.change("rules_v1.vsp", RULES.replace("rate:", "ratio:"))
            assert await editor.codes("rules_v1.vsp") == []
            assert await editor.told("fee_v1.vsp") == [UNKNOWN_NAME]
            assert await editor.told("order_v1.vsp") == [WRONG_CALLEE]
            editor.change("rules_v1.vsp", RULES)
            assert await editor.told("order_v1.vsp") == []
            assert await editor.told("fee_v1.vsp") == []

    asyncio.run(story())


def test_a_defect_of_the_front_end_ends_no_other_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def defective(shown: str, data: bytes, *rest: Any) -> Checked:
        if b"defect" in data:
            raise AssertionError("planted")
        return check_bytes(shown, data, *rest)

    monkeypatch.setattr(collection, "check_bytes", defective)

    async def story() -> None:
        async with editing(write_shop(tmp_path)) as (editor, _):
            editor.open("fee_v1.vsp", FEE.replace("Work out", "defect"))
            message = await editor.message()
            assert "planted" in message
            assert "a bug in Vesper, not in fee_v1.vsp" in message
            editor.change("fee_v1.vsp", FEE)
            assert await editor.codes("fee_v1.vsp") == []

    asyncio.run(story())


def test_files_appear_and_disappear(tmp_path: Path) -> None:
    nodes = write_shop(tmp_path)

    async def story() -> None:
        async with editing(nodes) as (editor, _):

            def tell(name: str, kind: types.FileChangeType) -> None:
                change = types.FileEvent(uri_of(nodes / name), kind)
                editor.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([change]))

            (nodes / "fee_v1.vsp").unlink()
            tell("fee_v1.vsp", types.FileChangeType.Deleted)
            assert await editor.told("fee_v1.vsp") == []
            assert await editor.told("order_v1.vsp") == [UNKNOWN_NODE]
            (nodes / "fee_v1.vsp").write_text(FEE)
            (nodes / "copy_v1.vsp").write_text(FEE)
            tell("fee_v1.vsp", types.FileChangeType.Created)
            tell("copy_v1.vsp", types.FileChangeType.Created)
            assert await editor.told("order_v1.vsp") == []
            assert await editor.told("fee_v1.vsp") == [DUPLICATE_NODE]

    asyncio.run(story())
