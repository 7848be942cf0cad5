"""Single edits and rewritings of real nodes: each is named as what it is, and nothing else is."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.unit.changes.diff.planted import edits_of, plain_text, version_at
from vesper.changes.diff.differences import diff_nodes
from vesper.changes.diff.version import NodeVersion, read_version
from vesper.changes.diff.words import diff_json
from vesper.verify.relations.catalog import ALL_RELATIONS

NODES = Path(__file__).parents[4] / "nodes"
SAMPLE = (
    "payments/payment_decision_v1",
    "orders/order_settlement_v1",
    "shop/shipping_v1",
    "tax/tax_credit_v1",
    "rules/risk_priority_v1",
)
"""Nodes with effects, tables, libraries, parameters and hit policies."""
UNSEEN = ("formatted", "block_style", "flow_style", "commented", "requoted", "parenthesised", "renamed_locals")
"""Rewritings that leave no difference."""
ACTIONS = {
    "renamed_inputs": "renamed",
    "renamed_outputs": "renamed",
    "renamed_steps": "renamed",
    "renamed_constants": "renamed",
    "renamed_functions": "renamed",
    "reordered_steps": "moved",
}
"""The only action that a rewriting leaves."""


def _read(name: str) -> tuple[NodeVersion, NodeVersion]:
    """Return a node, and its text without cases in block style."""
    version = read_version(next(NODES.rglob(f"{name.rpartition('/')[2]}.vsp")))
    base = version_at(version, plain_text(version.subject))
    assert base is not None
    return version, base


@pytest.mark.parametrize("name", SAMPLE)
def test_every_edit_is_one_difference(name: str) -> None:
    version, base = _read(name)
    assert diff_nodes(base, base).changes == ()
    for edit in edits_of(version.subject, random.Random(name)):
        edited = version_at(version, edit.text)
        if edited is None or (edited.neutral_hash == base.neutral_hash and edit.name != "intent"):
            continue  # it has errors, or the same meaning
        found = diff_nodes(base, edited)
        assert [each.action for each in found.changes] == [edit.action], (edit.name, diff_json(found)["changes"])
        assert found.changes[0].kind.startswith(edit.kinds), (edit.name, found.changes)
        assert diff_nodes(edited, base).mirrored() == found


@pytest.mark.parametrize("name", SAMPLE)
def test_rewritings_show_no_wrong_difference(name: str) -> None:
    version, base = _read(name)
    for relation in ALL_RELATIONS:
        if relation.name not in (*UNSEEN, *ACTIONS):
            continue
        version.subject.prepare(3)
        rewriting = relation.rewrite(version.subject, random.Random(name))
        rewritten = None if rewriting is None else version_at(version, rewriting.text)
        if rewriting is None or rewritten is None:
            continue
        before = version if rewritten.document.cases else base
        actions = {each.action for each in diff_nodes(before, rewritten).changes}
        assert actions <= ({ACTIONS[relation.name]} if relation.name in ACTIONS else set()), relation.name
