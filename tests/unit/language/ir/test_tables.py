"""The place of decision tables in a document: written, read, and refused by name where it is malformed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.nodes import ROOT, compiled
from vesper import _direct
from vesper.language.ir.decode import decode
from vesper.language.ir.encode import canonical_json, encode

NODE = compiled(ROOT / "nodes" / "shop" / "order_discounts_v1.vsp")


def test_tables_survive_decoding() -> None:
    assert [table.name for table in NODE.node.tables] == [
        "discounts", "risk", "duty", "handling", "carrier_of", "points_of", "season_of",
    ]  # fmt: skip
    assert decode(NODE.ir).tables == NODE.node.tables
    assert encode(decode(NODE.ir)) == NODE.ir


def changed(change: dict[str, Any], part: str) -> bytes:
    document = json.loads(NODE.ir)
    table = document["source"]["tables"][0]
    (table if part == "table" else table["rows"][0]).update(change)
    return canonical_json(document)


@pytest.mark.parametrize(
    "part, change, message",
    [
        ("table", {"hit": 1}, "a string"),
        ("table", {"more": 1}, "more"),
        ("row", {"then": 100_000}, "not the index of an expression"),
        ("row", {"when": 9_999}, "a row of a table is at 9999, where no expression is"),
        ("row", {"line": 0}, "lines count from 1"),
        ("row", {"cells": ["a"]}, "an object"),
        ("row", {"reason": None}, "a string"),
    ],
)
def test_malformed_tables_are_refused(part: str, change: dict[str, Any], message: str) -> None:
    with pytest.raises(_direct.IrRejected) as refused:
        _direct.Program.load(changed(change, part), [])
    assert message in str(refused.value), str(refused.value)
