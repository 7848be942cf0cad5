"""Draw variants of nodes: one to three changes of a document, the same for one seed everywhere."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import lru_cache

from vesper.verify.variants.document import Document, Leaf, Part, part_at, read_document, replace_part, write_document
from vesper.verify.variants.expressions import EXPRESSION_EDITS, Change, Drawing
from vesper.verify.variants.steps import STRUCTURE_EDITS

MAX_ATTEMPTS = 20
_DONORS = 3


class NoVariants(ValueError):
    """None of the documents compiles on its own."""


def variant_id(seed: int) -> str:
    return f"variant_{seed}_v1"


def draw_variant(documents: Sequence[str], seed: int) -> str:
    """Return the text of a variant of one of the documents; the checker may refuse it.

    Raises `NoVariants` if none of the documents compiles on its own.
    """
    found = _read(tuple(documents))
    if not found:
        raise NoVariants("no document compiles on its own")
    source = random.Random(f"variant {seed}")
    document = source.choice(found)
    drawing = Drawing(document, [source.choice(found) for _ in range(_DONORS)], source)
    tree: Part = {**document.tree, "node_id": Leaf(variant_id(seed))}
    expressions = source.choice((0, 1, 1, 1, 2, 2, 3))
    tree = _change_expressions(tree, drawing, expressions)
    for _ in range(source.choice((0, 0, 1)) if expressions else 1):
        tree = _change_structure(tree, drawing)
    assert isinstance(tree, dict)
    return write_document(tree)[0]


@lru_cache(maxsize=4)
def _read(documents: tuple[str, ...]) -> tuple[Document, ...]:
    found = (read_document(text) for text in documents)
    return tuple(each for each in found if each is not None)


def _change_expressions(tree: Part, drawing: Drawing, count: int) -> Part:
    """Apply changes of expressions that do not overlap."""
    edits, weights = tuple(EXPRESSION_EDITS), tuple(EXPRESSION_EDITS.values())
    changes: list[Change] = []
    for _ in range(MAX_ATTEMPTS):
        if len(changes) == count:
            break
        (edit,) = drawing.random.choices(edits, weights)
        change = edit(drawing)
        if change is not None and not any(_overlap(change, other) for other in changes):
            changes.append(change)
    # From the end of each scalar, so that the places of the others stay.
    for change in sorted(changes, key=lambda each: -each.start):
        leaf = part_at(tree, change.path)
        assert isinstance(leaf, Leaf)
        text = leaf.text[: change.start] + change.text + leaf.text[change.end :]
        tree = replace_part(tree, change.path, Leaf(text, leaf.style, leaf.is_expression))
    return tree


def _overlap(one: Change, other: Change) -> bool:
    return one.path == other.path and one.start < other.end and other.start < one.end


def _change_structure(tree: Part, drawing: Drawing) -> Part:
    edits, weights = tuple(STRUCTURE_EDITS), tuple(STRUCTURE_EDITS.values())
    for _ in range(MAX_ATTEMPTS):
        (edit,) = drawing.random.choices(edits, weights)
        changed = edit(tree, drawing)
        if changed is not None and changed != tree:
            return changed
    return tree
