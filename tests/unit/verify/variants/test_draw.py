"""Variants: seeded, mostly accepted, and of every kind."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from vesper.compiler import compile_source
from vesper.language.diagnostics.source import SourceFile
from vesper.verify.variants import expressions, steps
from vesper.verify.variants.document import (
    Document,
    Keys,
    Leaf,
    Part,
    part_at,
    read_document,
    replace_part,
    write_document,
)
from vesper.verify.variants.draw import NoVariants, draw_variant
from vesper.verify.variants.expressions import Drawing, other_number

ROOT = Path(__file__).parents[4]
DRAWN = 60
NODE = """\
node_id: shares_v1
type: function
intent: Share points among items
types:
  Item: {fields: {qty: integer, price: decimal}}
inputs:
  items: array<Item>
  limit: {type: integer, constraints: [{min: 0}, {max: 100}]}
  name: string
outputs:
  success: {total: integer, word: string}
contracts:
  preconditions: [limit >= 1]
  postconditions: [total >= 0 OR limit > 5]
flow:
  - step: run
    operation: loop
    over: item IN items
    state: {sum: 0}
    steps:
      - {step: part, operation: compute, value: item.qty * 2}
    next: {sum: IF part > limit THEN sum + limit ELSE sum + part}
  - step: word
    operation: conditional
    condition: length(name) > 3 AND run.sum > 0
    then: {value: "lower(name)"}
    else: {value: "'short'"}
  - step: unused
    operation: compute
    value: limit + 1
  - operation: return
    success: {total: run.sum, word: word}
"""


@cache
def nodes() -> tuple[str, ...]:
    return tuple(path.read_text(encoding="utf-8") for path in sorted((ROOT / "nodes").rglob("*.vsp"))[::6])


@cache
def document() -> Document:
    found = read_document(NODE)
    assert found is not None
    return found


def is_accepted(text: str) -> bool:
    return compile_source(SourceFile("variant.vsp", text), judge_contracts=False)[0] is not None


def test_a_third_of_the_variants_is_accepted_and_none_is_the_node() -> None:
    texts = [draw_variant(nodes(), seed) for seed in range(DRAWN)]
    assert len(set(texts)) == DRAWN
    assert sum(map(is_accepted, texts)) >= DRAWN / 3


def test_the_same_seed_draws_the_same_variant() -> None:
    state = random.getstate()
    assert draw_variant(nodes(), 5) == draw_variant(nodes(), 5)
    assert random.getstate() == state
    assert "node_id: variant_5_v1\n" in draw_variant(nodes(), 5)


def test_documents_that_do_not_compile_have_no_variants() -> None:
    with pytest.raises(NoVariants):
        draw_variant(["node_id: x_v1"], 1)


@pytest.mark.parametrize("edit", expressions.EXPRESSION_EDITS, ids=lambda edit: edit.__name__)
def test_every_change_of_an_expression_is_accepted_for_some_seed(
    edit: Callable[[Drawing], expressions.Change | None],
) -> None:
    for seed in range(40):
        change = edit(Drawing(document(), [document()], random.Random(seed)))
        if change is None:
            continue
        leaf = part_at(document().tree, change.path)
        assert isinstance(leaf, Leaf)
        text = leaf.text[: change.start] + change.text + leaf.text[change.end :]
        if text != leaf.text and is_accepted(replaced(change.path, Leaf(text, is_expression=True))):
            return
    pytest.fail("no seed makes an accepted change")


def replaced(path: Keys, leaf: Leaf) -> str:
    changed = replace_part(document().tree, path, leaf)
    assert isinstance(changed, dict)
    return write_document(changed)[0]


@pytest.mark.parametrize("edit", steps.STRUCTURE_EDITS, ids=lambda edit: edit.__name__)
def test_every_change_of_structure_is_accepted_for_some_seed(edit: Callable[[Part, Drawing], Part | None]) -> None:
    for seed in range(40):
        changed = edit(document().tree, Drawing(document(), [document()], random.Random(seed)))
        if isinstance(changed, dict) and changed != document().tree and is_accepted(write_document(changed)[0]):
            return
    pytest.fail("no seed makes an accepted change")


def test_loops_get_a_bound_a_filter_and_an_end() -> None:
    drawn = [steps.change_loop(document().tree, Drawing(document(), [], random.Random(seed))) for seed in range(40)]
    written = [write_document(each)[0] for each in drawn if isinstance(each, dict)]
    for word in ("max:", " WHERE ", "stop_when:"):
        assert any(word in text and is_accepted(text) for text in written), word


def test_numbers_change_by_one_unit_of_their_last_place() -> None:
    found = {other_number("1.50", random.Random(seed)) for seed in range(60)}
    assert {"1.49", "1.51"} <= found
    assert "-1" in {other_number("0", random.Random(seed)) for seed in range(60)}
    assert "1e3" in {other_number("2e3", random.Random(seed)) for seed in range(60)}


def test_a_spliced_expression_uses_names_of_its_new_document() -> None:
    donor = read_document(
        NODE.replace("limit", "bound").replace("name: string", "label: string").replace("(name)", "(label)")
    )
    assert donor is not None
    known = {(each.name, each.type) for each in document().variables_at(("flow", 2, "value"))}
    part = next(each for each in donor.sites if each.text == "bound + 1")
    adapted = expressions.adapt(part, donor, Drawing(document(), [donor], random.Random(1)), known)
    assert adapted is not None
    assert adapted.endswith(" + 1")
    assert "bound" not in adapted
