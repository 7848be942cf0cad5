"""A version of a node, for a diff: its texts, its checked form, and the libraries and nodes that it uses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from vesper.compiler import Compiled
from vesper.compiler.callees import Collection, Neighbours, collection_folder
from vesper.compiler.pipeline import compile_file
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.source import SourceFile, Span
from vesper.language.ir import nodes as ir
from vesper.language.ir.encode import semantic_hash
from vesper.language.syntax import ast, library_ast
from vesper.language.syntax.yaml.reader import read_yaml
from vesper.language.syntax.yaml_to_ast import build_library
from vesper.language.tables.files import Sheet, read_sheet
from vesper.values.node_id import split_node_id
from vesper.verify.relations.subject import Subject

_FOLD = re.compile(r"[ \t]*\r?\n\s*")
_NEUTRAL_ID = "compared_v1"


class VersionProblem(Exception):
    """A version that cannot be compared: its file has errors. `bag` has them."""

    def __init__(self, shown: str, bag: DiagnosticBag) -> None:
        super().__init__(f"`{shown}` has errors")
        self.shown = shown
        self.bag = bag


@dataclass(frozen=True, slots=True)
class WrittenLibrary:
    """A used library as written."""

    document: library_ast.Library
    source: SourceFile
    hash: str


@dataclass
class NodeVersion:
    """One version. `shown` is its file for messages, which is another one for a revision."""

    compiled: Compiled
    shown: str
    libraries: tuple[WrittenLibrary, ...] = ()
    inlined: tuple[Compiled, ...] = ()
    """Function nodes that its expressions call."""
    subject: Subject = field(init=False)

    def __post_init__(self) -> None:
        self.subject = Subject(self.compiled)

    @property
    def node(self) -> ir.Node:
        return self.compiled.node

    @property
    def document(self) -> ast.Document:
        return self.subject.document

    @cached_property
    def neutral_hash(self) -> str:
        """The semantic hash under an id that both versions have."""
        return semantic_hash(replace(self.node, node_id=_NEUTRAL_ID))

    def called(self) -> Iterator[Compiled]:
        """Yield the nodes that it calls or whose expressions it contains."""
        yield from self.compiled.callees
        yield from self.inlined


def read_version(path: Path, shown: str | None = None, collection: Path | None = None) -> NodeVersion:
    """Compile a file, or raise `VersionProblem`. `collection` is the folder of the nodes that it calls."""
    shown = path.as_posix() if shown is None else shown
    neighbours = Neighbours(Collection(collection or collection_folder(path)), (path.stem,))
    compiled, bag = compile_file(path, neighbours)
    if compiled is None:
        raise VersionProblem(shown, bag)
    libraries = {
        library_id: used for each in neighbours.libraries.values() for library_id, used in each.closure().items()
    }
    written = tuple(_written(used.library.source, used.hash) for _, used in sorted(libraries.items()))
    called = {each.node.node_id for each in compiled.callees}
    inlined = tuple(each for name, each in sorted(neighbours.called.items()) if name not in called)
    return NodeVersion(compiled, shown, written, inlined)


def _written(source: SourceFile, hash_: str) -> WrittenLibrary:
    bag = DiagnosticBag(source)
    tree = read_yaml(bag)
    document = None if tree is None else build_library(tree, bag)
    assert document is not None, "a checked library has a syntax tree"
    return WrittenLibrary(document, source, hash_)


def base_name(node_id: str) -> str:
    """Return an id without its version."""
    parts = split_node_id(node_id)
    return node_id if parts is None else parts[0]


class Texts:
    """Reads parts of one document: their text on one line, their line, their checked expressions."""

    def __init__(self, source: SourceFile, subject: Subject | None = None) -> None:
        self.source = source
        self._subject = subject

    def text(self, span: Span) -> str:
        """Return the text of a span on one line, without escapes of YAML where it is part of one scalar."""
        found = None if self._subject is None else self._subject.locate(span)
        raw = self.source.slice(span) if found is None else found[1][found[2] : found[3]]
        return _FOLD.sub(" ", raw).strip()

    def line(self, span: Span) -> int:
        return self.source.position(span.start)[0]

    def expression(self, expression: ast.Expression) -> str:
        """Return the text of an expression; that of stages reaches from the first to the last one."""
        spans = [each.span for each in _all_parts(expression)]
        whole = Span(min(each.start for each in spans), max(each.end for each in spans))
        return self.text(whole)

    def checked(self, expression: ast.Expression) -> list[ir.Expression]:
        return [] if self._subject is None else self._subject.checked_at(expression.span)

    def can_fail(self, expression: ast.Expression) -> bool:
        return self._subject is None or self._subject.can_fail(expression.span)

    def sheet(self, file: ast.TableFile) -> Sheet:
        """Return the rows of a file beside the document; raise `FileProblem` if it changed since it was checked."""
        path = Path(self.source.path).parent / file.path.text
        return read_sheet(path, None if file.sheet is None else file.sheet.text)[0]


def _all_parts(expression: ast.Expression) -> Iterator[ast.Expression]:
    waiting = [expression]
    while waiting:
        each = waiting.pop()
        yield each
        waiting += ast.parts(each)
