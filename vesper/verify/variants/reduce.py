"""Greedy reduction of a document's text while a property of it holds.

Whole parts are deleted first, the largest before the others; then expressions are replaced by a literal or by a part of
the same type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from vesper.values.types import BOOLEAN, DECIMAL, FLOAT, INTEGER, STRING, OptionalOf, Type
from vesper.verify.variants.document import (
    Document,
    Leaf,
    Part,
    Site,
    part_at,
    read_document,
    replace_part,
    walk_parts,
    write_document,
)

MAX_TRIES = 300
_WORD = re.compile(r"[A-Za-z_]\w*")
_DECLARATIONS = ("constants", "functions", "types")
_REQUIRED = ("node_id", "type", "intent", "outputs", "flow")
_SIMPLEST: dict[Type, tuple[str, ...]] = {
    BOOLEAN: ("true", "false"),
    INTEGER: ("0", "1"),
    DECIMAL: ("0.0", "1.0"),
    STRING: ("''",),
    FLOAT: ("0e0",),
}


def reduce_document(text: str, node_id: str, holds: Callable[[str], bool], max_tries: int = MAX_TRIES) -> str:
    """Return the smallest text found for which `holds` is true; the text itself if it cannot be rewritten."""
    document = read_document(text, node_id)
    if document is None or not holds(smallest := write_document(document.tree)[0]):
        return text
    tries = position = 0
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for index, candidate in enumerate(_smaller(document)):
            # After a success, continue at the same place: candidates that failed before rarely succeed now.
            if index < position:
                continue
            tries += 1
            if tries > max_tries:
                return smallest
            if holds(candidate):
                found = read_document(candidate, node_id)
                assert found is not None, "what holds for a text includes that it compiles"
                document, smallest, position, is_smaller = found, candidate, index, True
                break
        else:
            is_smaller, position = position > 0, 0
    return smallest


def _smaller(document: Document) -> Iterator[str]:
    unused = _without_unused(document.tree)
    if unused != document.tree:
        yield _written(unused)
    parts = [(path, _size(part)) for path, part in walk_parts(document.tree)]
    for path, _ in sorted(parts, key=lambda each: -each[1]):
        if path and not (len(path) == 1 and path[0] in _REQUIRED):
            yield _written(replace_part(document.tree, path, None))
    for site in document.sites:
        leaf = part_at(document.tree, site.path)
        assert isinstance(leaf, Leaf)
        for text in _simpler(document, site):
            changed = leaf.text[: site.start] + text + leaf.text[site.end :]
            yield _written(replace_part(document.tree, site.path, Leaf(changed, leaf.style, leaf.is_expression)))


def _size(part: Part) -> int:
    return sum(len(each.text) for _, each in walk_parts(part) if isinstance(each, Leaf))


def _without_unused(tree: Part) -> Part:
    """Return the tree without the constants, functions and types that no text mentions."""
    assert isinstance(tree, dict)
    mentioned = {word for _, part in walk_parts(tree) if isinstance(part, Leaf) for word in _WORD.findall(part.text)}
    for section in _DECLARATIONS:
        declared = tree.get(section)
        if isinstance(declared, dict):
            used = {name: value for name, value in declared.items() if name in mentioned}
            tree = {key: used if key == section else value for key, value in tree.items() if key != section or used}
    return tree


def _written(tree: Part) -> str:
    assert isinstance(tree, dict)
    return write_document(tree)[0]


def _simpler(document: Document, site: Site) -> Iterator[str]:
    if site.type is None:
        return
    texts = _SIMPLEST.get(site.type, ("null",) if isinstance(site.type, OptionalOf) else ())
    if site.text not in texts:
        yield from texts
    for part in document.sites:
        is_inside = part.path == site.path and site.start <= part.start and part.end <= site.end
        if is_inside and part.end - part.start < site.end - site.start and part.type == site.type:
            yield part.text
