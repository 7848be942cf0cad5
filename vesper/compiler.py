"""The pipeline on one screen: `.vsp` text → YAML tree → AST → checked IR."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from vesper.check.ast_to_ir import check_document
from vesper.check.cases import Case
from vesper.diagnostics.codes import Code
from vesper.diagnostics.diagnostic import DiagnosticBag
from vesper.diagnostics.source import SourceFile, Span
from vesper.ir.encode import encode, semantic_hash
from vesper.ir.nodes import Node
from vesper.syntax.yaml_to_ast import build_ast
from vesper.syntax.yaml_tree import read_yaml

MAX_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Compiled:
    """A node that passed every check."""

    source: SourceFile
    node: Node
    cases: tuple[Case, ...]
    ir: bytes
    semantic_hash: str


def compile_source(source: SourceFile) -> tuple[Compiled | None, DiagnosticBag]:
    """The compiled node and what there is to say about it. Each phase reports all it finds; the next needs it clean."""
    bag = DiagnosticBag(source)
    tree = read_yaml(bag)
    document = None if tree is None else build_ast(tree, bag)
    checked = None if document is None else check_document(document, bag)
    if checked is None:
        return None, bag
    node = checked.node
    return Compiled(source, node, checked.cases, encode(node), semantic_hash(node)), bag


def compile_file(path: Path) -> tuple[Compiled | None, DiagnosticBag]:
    """Read a file and compile it; a file that cannot be read is a diagnostic like any other."""
    shown = path.as_posix()
    try:
        data = path.read_bytes()
        if len(data) > MAX_BYTES:
            return _unreadable(shown, "it is larger than 1 MiB")
        if data.startswith(b"\xef\xbb\xbf"):
            return _unreadable(shown, "it starts with a byte order mark")
        text = data.decode("utf-8")
    except OSError as error:
        return _unreadable(shown, error.strerror or type(error).__name__)
    except UnicodeDecodeError as error:
        return _unreadable(shown, f"byte {error.start} is not UTF-8")
    return compile_source(SourceFile(shown, text))


def _unreadable(path: str, reason: str) -> tuple[None, DiagnosticBag]:
    bag = DiagnosticBag(SourceFile(path, ""))
    bag.error(Code.UNREADABLE_FILE, Span(0, 0), reason=reason)
    return None, bag
