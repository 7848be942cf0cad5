"""Definition, references, highlights and rename: text with a cursor, and the places that are found."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from lsprotocol import types

from tests.unit.lsp.features.workspace import FEE, ORDER, RULES, marked, open_at
from vesper.lsp.features.navigation import CannotRename, definition, highlights, prepare_rename, references, rename
from vesper.lsp.view import View

AMOUNT = "fee_v1: amount: {type: decimal, constraints: [{min: 0}, {max: 1000}]}"
DOUBLED = "rules_v1: doubled: {params: {value: decimal}, returns: decimal, value: value * 2}"
FILES = {"fee_v1": FEE, "rules_v1": RULES, "order_v1": ORDER}


def opened(node_id: str, text: str, cursor: str) -> tuple[View, types.Position]:
    others = {name: each for name, each in FILES.items() if name != node_id}
    return open_at(marked(text, cursor, FILES[node_id]), node_id, **others)


def words(view: View, locations: list[types.Location]) -> list[str]:
    """Return each location as the name of its file and its line without margins."""
    found = []
    for each in locations:
        name = Path(each.uri).stem
        found.append(f"{name}: {FILES[name].splitlines()[each.range.start.line].strip()}")
    return found


@pytest.mark.parametrize(
    "node_id, text, cursor, expected",
    [
        ("fee_v1", "amount * rate", "amo|unt * rate", AMOUNT),
        ("fee_v1", "line.qty", "line.q|ty", "fee_v1: fields: {sku: string, qty: integer}"),
        ("fee_v1", "line.qty", "li|ne.qty", "fee_v1: value: SUM(line.qty FOR line IN lines)"),
        ("fee_v1", "capped(amount", "ca|pped(amount", "fee_v1: capped:"),
        ("fee_v1", "array<Line>", "array<Li|ne>", "fee_v1: Line:"),
        ("fee_v1", "+ pieces", "+ pie|ces", "fee_v1: - step: pieces"),
        ("fee_v1", "inputs: {amount: 10", "inputs: {am|ount: 10", AMOUNT),
        ("order_v1", "node: fee", "node: fe|e", "fee_v1: node_id: fee_v1"),
        ("order_v1", "{amount: total", "{am|ount: total", AMOUNT),
        ("order_v1", "priced.fee", "priced.f|ee", "fee_v1: success: {fee: decimal}"),
        ("order_v1", "doubled(", "dou|bled(", DOUBLED),
        ("order_v1", "* discount", "* disc|ount", "rules_v1: discount: {type: decimal, value: 0.9}"),
        ("order_v1", "[rules_v1]", "[rules|_v1]", "rules_v1: library_id: rules_v1"),
    ],
)
def test_definition(node_id: str, text: str, cursor: str, expected: str) -> None:
    view, position = opened(node_id, text, cursor)
    assert words(view, definition(view, position)) == [expected]


def test_references_in_all_files() -> None:
    view, position = opened("rules_v1", "discount:", "disc|ount:")
    assert words(view, references(view, position, has_declaration=False)) == [
        "order_v1: value: doubled(priced.fee) + total * discount"
    ]
    view, position = opened("fee_v1", "amount: {", "amo|unt: {")
    files = [each.partition(":")[0] for each in words(view, references(view, position))]
    assert files == ["fee_v1", "fee_v1", "fee_v1", "order_v1"]


def test_highlights_tell_declarations_from_uses() -> None:
    found = highlights(*opened("fee_v1", "+ pieces", "+ pie|ces"))
    assert [each.kind for each in found] == [types.DocumentHighlightKind.Write, types.DocumentHighlightKind.Read]


def edited(edit: types.WorkspaceEdit) -> dict[str, list[str]]:
    """Return the changed lines of each file after an edit."""
    listed = edit.changes or {
        each.text_document.uri: [one for one in each.edits if isinstance(one, types.TextEdit)]
        for each in edit.document_changes or ()
        if isinstance(each, types.TextDocumentEdit)
    }
    changed: dict[str, list[str]] = {}
    for uri, edits in listed.items():
        name = Path(uri).stem
        lines = FILES[name].splitlines()
        touched = set()
        for each in sorted(edits, key=lambda one: -one.range.start.character):
            start, end = each.range.start, each.range.end
            lines[start.line] = (
                lines[start.line][: start.character] + each.new_text + lines[start.line][end.character :]
            )
            touched.add(start.line)
        changed[name] = [lines[line].strip() for line in sorted(touched)]
    return changed


def test_rename_of_an_input_edits_callers() -> None:
    assert edited(rename(*opened("fee_v1", "amount * rate", "amo|unt * rate"), "paid")) == {
        "fee_v1": [
            "paid: {type: decimal, constraints: [{min: 0}, {max: 1000}]}",
            "value: capped(paid * rate, 5) + pieces",
            "inputs: {paid: 10, country: DE, lines: []}",
        ],
        "order_v1": ['inputs: {paid: total, country: DE, lines: "[]"}'],
    }


def test_rename_of_a_step_renames_its_output() -> None:
    assert edited(rename(*opened("fee_v1", "step: fee", "step: fe|e"), "charge")) == {
        "fee_v1": ["success: {charge: decimal}", "- step: charge", "- return: [charge]", "expect: {charge: 0.20}"],
        "order_v1": ["value: doubled(priced.charge) + total * discount"],
    }


def test_rename_of_a_function_of_a_library() -> None:
    assert edited(rename(*opened("order_v1", "doubled(", "dou|bled("), "twice")) == {
        "order_v1": ["value: twice(priced.fee) + total * discount"],
        "rules_v1": ["twice: {params: {value: decimal}, returns: decimal, value: value * 2}"],
    }


def test_rename_of_a_node_edits_callers_and_moves_the_file() -> None:
    edit = rename(*opened("fee_v1", "fee_v1", "fe|e_v1"), "charge_v1")
    assert edited(edit) == {"fee_v1": ["node_id: charge_v1"], "order_v1": ["node: charge"]}
    moved = [each for each in edit.document_changes or () if isinstance(each, types.RenameFile)]
    assert [Path(each.new_uri).name for each in moved] == ["charge_v1.vsp"]


@pytest.mark.parametrize(
    "node_id, text, cursor, new_name, message",
    [
        ("fee_v1", "min(value", "m|in(value", "least", "it is an operation of the language"),
        ("fee_v1", "sku:", "s|ku:", "article", "it is a field of a record"),
        ("fee_v1", "amount * rate", "amo|unt * rate", "rate", "line 14 of fee_v1.vsp would be wrong: this constant"),
        ("fee_v1", "amount * rate", "amo|unt * rate", "Amount", "`Amount` is no name of an input"),
        ("fee_v1", "intent: Work", "intent: W|ork", "x", "there is no name here"),
        ("fee_v1", "fee_v1", "fe|e_v1", "fee", "`fee` is no id: write a name and a version"),
        ("fee_v1", "fee_v1", "fe|e_v1", "order_v1", "there is a node or library `order_v1` already"),
        ("order_v1", "request: [cost]", "request: [co|st]", "sum", None),
    ],
)
def test_refused_renames_say_why(node_id: str, text: str, cursor: str, new_name: str, message: str | None) -> None:
    view, position = opened(node_id, text, cursor)
    if message is None:
        assert prepare_rename(view, position).placeholder == "cost"
        return
    with pytest.raises(CannotRename, match=re.escape(message)):
        rename(view, position, new_name)
