"""The libraries of a collection, each found and checked at most once.

They are found as called nodes are: by id, or by a name that `vesper.lock` or the newest version resolves.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from vesper.compiler.reading import NotText, read_bytes, text_of
from vesper.language.check.callees import Interface, NotCallable
from vesper.language.check.libraries import Library
from vesper.language.check.library_check import check_library
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import CheckingStopped, DiagnosticBag
from vesper.language.diagnostics.source import SourceFile
from vesper.language.syntax.yaml.reader import read_yaml
from vesper.language.syntax.yaml_to_ast import build_library
from vesper.language.syntax.yaml_tree import Mapping, Scalar, Tree

if TYPE_CHECKING:
    from vesper.compiler.callees import Collection

MAX_USE_DEPTH = 16
"""Maximum length of a chain of libraries that use each other."""


class CompiledLibrary:
    """A library without errors: its definitions, and the hash that `vesper.lock` pins."""

    def __init__(self, library: Library, intent: str, tree: Tree, used: dict[str, CompiledLibrary]) -> None:
        self.library = library
        self.intent = intent
        self.used = used
        """Used libraries by id."""
        self.hash: str = _hash_of(tree, [*library.lookup_tables, *(each.hash for _, each in sorted(used.items()))])

    @property
    def path(self) -> str:
        return self.library.source.path

    @property
    def sha256(self) -> str:
        return self.library.source.sha256

    def closure(self) -> dict[str, CompiledLibrary]:
        """Return this library and those that it uses, at any depth, by id."""
        found = {self.library.library_id: self}
        for each in self.used.values():
            found |= each.closure()
        return found


class UsedLibraries:
    """The libraries that one document uses; `stack` are the libraries that led to it."""

    def __init__(self, collection: Collection, stack: tuple[str, ...]) -> None:
        self._collection = collection
        self._stack = stack
        self.overlay = collection.overlay
        self.used: dict[str, CompiledLibrary] = {}
        self.is_read = False
        """Whether the check of the document depended on other files."""

    def library(self, wanted: str) -> Library | NotCallable:
        """Return the library with this id, or the one that a name without version selects."""
        self.is_read = True
        library_id = self._collection.resolve(wanted, libraries=True)
        if isinstance(library_id, NotCallable):
            return library_id
        if library_id in self._stack:
            cycle = self._stack[self._stack.index(library_id) :]
            self._collection.cycles |= dict.fromkeys(cycle, cycle)
            return _cycle(library_id, cycle)
        if len(self._stack) >= MAX_USE_DEPTH:
            what = {"limit": str(MAX_USE_DEPTH), "what": "libraries that use one another"}
            return NotCallable(Code.TOO_DEEP, what)
        found = self._collection.compiled_library(library_id, self._stack)
        if found is None and library_id in self._collection.cycles:
            return _cycle(library_id, self._collection.cycles[library_id])
        if found is None:
            path = os.path.relpath(self._collection.files()[library_id])
            return _wrong_library(library_id, "has errors", f"`vesper check {path}` shows them")
        if problem := self._collection.lock_problem(library_id, found.hash):
            return NotCallable(Code.BAD_LOCK, {"problem": problem}, "run `vesper nodes lock` if the change is meant")
        self.used[library_id] = found
        return found.library

    def find(self, wanted: str) -> Interface | NotCallable:
        """Refuse the call of a node: a library has no flow."""
        return NotCallable(Code.UNKNOWN_NODE, {"node": wanted}, "a library calls no nodes")


def _wrong_library(library_id: str, problem: str, help_: str) -> NotCallable:
    return NotCallable(Code.WRONG_LIBRARY, {"library": library_id, "problem": problem}, help_)


def _cycle(library_id: str, cycle: tuple[str, ...]) -> NotCallable:
    start = cycle.index(library_id)
    path = " → ".join((*cycle[start:], *cycle[:start], library_id))
    return _wrong_library(library_id, f"uses itself: {path}", "move what both need into a library of its own")


def compile_library(
    source: SourceFile, collection: Collection, stack: tuple[str, ...] = ()
) -> tuple[CompiledLibrary | None, DiagnosticBag]:
    """Check the text of a library; return its definitions and its diagnostics."""
    bag = DiagnosticBag(source)
    uses = UsedLibraries(collection, stack)
    try:
        tree = read_yaml(bag)
        document = None if tree is None else build_library(tree, bag)
        if tree is None or document is None:
            return None, bag
        uses = UsedLibraries(collection, (*stack, document.library_id.text))
        library = check_library(document, bag, uses)
    except CheckingStopped:
        return None, bag
    finally:
        bag.reads_others |= uses.is_read
    return None if library is None else CompiledLibrary(library, document.intent.text, tree, uses.used), bag


def read_library(path: Path) -> SourceFile | None:
    """Return the text of a library's file; None where it cannot be read."""
    try:
        return SourceFile(path.as_posix(), text_of(read_bytes(path)))
    except (OSError, NotText):
        return None


def _hash_of(tree: Tree, others: list[str]) -> str:
    """Return the hash of a library, of its rows and of the libraries it uses.

    Intent, comments and layout are no part of it.
    """
    fields = [entry for entry in (tree.entries if isinstance(tree, Mapping) else ()) if entry[0].text != "intent"]
    form = [[[key.text, _form(value)] for key, value in fields], others]
    return hashlib.sha256(json.dumps(form).encode("ascii")).hexdigest()


def _form(tree: Tree) -> object:
    if isinstance(tree, Scalar):
        # Quotes distinguish the text `null` from no value.
        return [tree.text, tree.style in ("'", '"')]
    if isinstance(tree, Mapping):
        return {"entries": [[key.text, _form(value)] for key, value in tree.entries]}
    return {"items": [_form(item) for item in tree.items]}
