"""Diagnostics while typing, through the protocol."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.support.editor import editing

FEE = """node_id: fee_v1
type: function
intent: Work out a fee

inputs:
  amount: decimal

outputs:
  success:
    fee: decimal

flow:
  - step: fee
    operation: compute
    value: amount * 0.02

  - operation: return
    success: [fee]
"""


def test_diagnostics_follow_the_text(tmp_path: Path) -> None:
    (tmp_path / "fee_v1.vsp").write_text(FEE)

    async def story() -> None:
        async with editing(tmp_path) as (editor, _):
            editor.open("fee_v1.vsp")
            assert await editor.codes("fee_v1.vsp") == []
            editor.change("fee_v1.vsp", FEE.replace("amount * ", "amont * "))
            assert await editor.codes("fee_v1.vsp") == ["VSP1102"]
            editor.change("fee_v1.vsp", FEE)
            assert await editor.codes("fee_v1.vsp") == []

    asyncio.run(story())
