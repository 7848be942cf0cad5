"""One file as the features of the editor see it: its newest text, and what the front end knows about it."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from vesper.language.diagnostics.diagnostic import CheckingStopped, DiagnosticBag
from vesper.language.diagnostics.source import SourceFile
from vesper.language.syntax import ast, library_ast
from vesper.language.syntax.yaml.reader import read_yaml
from vesper.language.syntax.yaml_to_ast import build_ast, build_library, is_library
from vesper.language.syntax.yaml_tree import Tree

if TYPE_CHECKING:
    from vesper.compiler.check_result import Checked
    from vesper.compiler.compiled import Compiled
    from vesper.compiler.libraries import CompiledLibrary
    from vesper.lsp.collection import Collection

Document: TypeAlias = ast.Document | library_ast.Library


@dataclass(frozen=True)
class Parsed:
    """A text with its tree; spans are those of `source`."""

    source: SourceFile
    tree: Tree
    document: Document | None
    """The AST; None where fields have the wrong shape."""


@dataclass(frozen=True)
class View:
    """One open or stored file as the features see it."""

    path: Path
    source: SourceFile
    """The newest text."""
    parsed: Parsed | None
    """The newest text that parses as YAML, maybe an older one than `source`."""
    built: Parsed | None
    """The newest text that has an AST, maybe an older one than `parsed`."""
    checked: Checked | None
    """The latest result of the front end, maybe of an older text (`checked.source`); None before the first check."""
    compiled: Compiled | CompiledLibrary | None
    """The latest node or library without errors, maybe of an older text."""
    collection: Collection

    @property
    def tree(self) -> Tree | None:
        """The tree of the newest text that parses."""
        return None if self.parsed is None else self.parsed.tree

    @property
    def document(self) -> Document | None:
        """The AST of the newest text that has one."""
        return None if self.built is None else self.built.document


def parse(source: SourceFile) -> Parsed | None:
    """Return the tree of a text and its AST; None for a text that is no YAML."""
    bag = DiagnosticBag(source)
    tree: Tree | None = None
    document: Document | None = None
    with contextlib.suppress(CheckingStopped):
        tree = read_yaml(bag)
        if tree is not None:
            document = build_library(tree, bag) if is_library(tree) else build_ast(tree, bag)
    return None if tree is None else Parsed(source, tree, document)
