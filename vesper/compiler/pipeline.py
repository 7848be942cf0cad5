"""The pipeline on one screen: `.vsp` text → YAML tree → AST → checked IR."""

from __future__ import annotations

from pathlib import Path

from vesper.compiler.callees import Collection, Neighbours, collection_folder
from vesper.compiler.compiled import Compiled
from vesper.compiler.reading import NotANode, NotText, read_bytes, shown_path, text_of
from vesper.language.check.ast_to_ir import check_document
from vesper.language.check.callees import NoCallees
from vesper.language.check.reachability.clauses import report_constants
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import CheckingStopped, DiagnosticBag
from vesper.language.diagnostics.source import SourceFile, Span
from vesper.language.ir.encode import MAX_EXPRESSIONS, encode_and_hash
from vesper.language.syntax.advice import with_advice
from vesper.language.syntax.declared_id import declared_id
from vesper.language.syntax.yaml.reader import read_yaml
from vesper.language.syntax.yaml_to_ast import build_ast, is_library

__all__ = ["Compiled", "compile_bytes", "compile_file", "compile_source", "unreadable"]


def compile_source(
    source: SourceFile, neighbours: Neighbours | None = None, judge_contracts: bool = True
) -> tuple[Compiled | None, DiagnosticBag]:
    """Compile a text, and return the node and its diagnostics.

    A phase runs only where the one before found no errors; what a faulty file has besides its faults is reported too.

    Without `judge_contracts` a node with unsatisfiable preconditions compiles: a random program may be one.
    """
    bag = DiagnosticBag(source)
    compiled = _compile(source, bag, neighbours, judge_contracts)
    if bag.has_errors:
        bag.improve(with_advice)
    return compiled, bag


def _compile(
    source: SourceFile, bag: DiagnosticBag, neighbours: Neighbours | None, judge_contracts: bool
) -> Compiled | None:
    try:
        tree = read_yaml(bag)
        if tree is not None and is_library(tree):
            library_id = declared_id(source.text) or ("", Span(0, 0))
            help_ = "name a node; `vesper check` checks libraries too"
            bag.error(Code.IS_A_LIBRARY, library_id[1], id=library_id[0], help=help_)
            return None
        document = None if tree is None else build_ast(tree, bag)
        if neighbours is None and (document is not None or bag.has_errors):
            collection = Collection(collection_folder(Path(source.path)))
            neighbours = Neighbours(collection, () if document is None else (document.node_id.text,))
        if document is None:
            from vesper.language.check.remainder import check_remainder  # for a faulty file only

            check_remainder(bag, neighbours or NoCallees())
        checked = None if document is None else check_document(document, bag, neighbours or NoCallees())
        if document is not None and checked is not None and judge_contracts:
            report_constants(checked.node, bag, [*checked.silent, *checked.analysed])
    except CheckingStopped:
        return None
    finally:
        bag.reads_others |= neighbours is not None and neighbours.is_read
    if document is None or checked is None or bag.has_errors:
        return None
    if len(checked.node.expressions()) > MAX_EXPRESSIONS:
        limit, what = f"{MAX_EXPRESSIONS:,}", "expressions in the IR of this node"
        bag.error(Code.TOO_LARGE, document.node_id.span, limit=limit, what=what)
        return None
    written = encode_and_hash(checked.node)
    if written is None:
        bag.error(Code.TOO_LARGE, document.node_id.span, limit="8 MiB", what="of IR for this node")
        return None
    callees = () if neighbours is None else tuple(neighbours.called[call.node] for call in checked.node.calls)
    libraries = {} if neighbours is None else neighbours.libraries
    files = {used.path: used.sha256 for each in libraries.values() for used in each.closure().values()}
    for each in () if neighbours is None else neighbours.called.values():
        if each not in callees:  # inlined
            files |= {each.path: each.source.sha256, **dict(each.files)}
    files |= dict(checked.files)
    return Compiled(
        source,
        checked.node,
        checked.cases,
        *written,
        callees,
        files=tuple(sorted(files.items())),
        properties=checked.properties,
        http=checked.http,
        work=checked.work,
        agent=checked.agent,
        declared=checked.declared,
    )


def compile_file(path: Path, neighbours: Neighbours | None = None) -> tuple[Compiled | None, DiagnosticBag]:
    """Compile a file. An unreadable file is a diagnostic."""
    try:
        data = read_bytes(path)
    except OSError as error:
        return unreadable(path.as_posix(), error.strerror or type(error).__name__)
    return compile_bytes(path.as_posix(), data, neighbours)


def compile_bytes(
    shown: str, data: bytes, neighbours: Neighbours | None = None
) -> tuple[Compiled | None, DiagnosticBag]:
    """Compile the bytes of a file; `shown` is its name in messages."""
    try:
        text = text_of(data)
    except NotANode:
        bag = DiagnosticBag(SourceFile(shown_path(shown), ""))
        help_ = "a node begins with `node_id:`; `vesper new NAME` writes one to start from"
        bag.error(Code.NOT_A_NODE, Span(0, 0), help=help_)
        return None, bag
    except NotText as reason:
        return unreadable(shown, str(reason))
    return compile_source(SourceFile(shown, text), neighbours)


def unreadable(path: str, reason: str) -> tuple[None, DiagnosticBag]:
    """Return the diagnostic of a file without text."""
    bag = DiagnosticBag(SourceFile(shown_path(path), ""))
    bag.error(Code.UNREADABLE_FILE, Span(0, 0), reason=reason)
    bag.improve(with_advice)
    return None, bag
