"""Links of a document: used libraries, called nodes, and files with the rows of tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lsprotocol import types

from vesper.language.syntax.yaml_tree import Mapping, Scalar, Sequence, Tree
from vesper.lsp.positions import to_range, uri_of
from vesper.lsp.server import VesperServer
from vesper.lsp.view import View


def register(server: VesperServer) -> None:
    server.on_document(types.TEXT_DOCUMENT_DOCUMENT_LINK, document_links)


def document_links(view: View) -> list[types.DocumentLink]:
    """Return the links of the newest text that parses."""
    if view.parsed is None:
        return []
    source = view.parsed.source
    return [
        types.DocumentLink(to_range(source, place.span), uri_of(target))
        for place, target in _targets(view, view.parsed.tree)
    ]


def _targets(view: View, tree: Tree) -> Iterator[tuple[Scalar, Path]]:
    if isinstance(tree, Sequence):
        for item in tree.items:
            yield from _targets(view, item)
    if not isinstance(tree, Mapping):
        return
    for key, value in tree.entries:
        if key.text == "use" and not isinstance(value, Scalar):
            words = [each for each, _ in value.entries] if isinstance(value, Mapping) else value.items
            for word in words:
                if isinstance(word, Scalar) and (path := view.collection.resolve(view.path, word.text, libraries=True)):
                    yield word, path
        elif key.text == "node" and isinstance(value, Scalar):
            if path := view.collection.resolve(view.path, value.text):
                yield value, path
        elif key.text == "rows" and isinstance(value, Mapping):
            for name, file in value.entries:
                if (
                    name.text == "file"
                    and isinstance(file, Scalar)
                    and (found := view.path.parent / file.text).is_file()
                ):
                    yield file, found
        else:
            yield from _targets(view, value)
