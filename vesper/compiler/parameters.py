"""The parameters that the files of a collection declare."""

from __future__ import annotations

from pathlib import Path

from vesper.compiler.callees import Collection, Neighbours
from vesper.compiler.libraries import compile_library, read_library
from vesper.language.check.declarations import Declarations
from vesper.language.check.expressions.parameters import Parameter
from vesper.language.check.scope import Scope
from vesper.language.diagnostics.diagnostic import CheckingStopped, DiagnosticBag
from vesper.language.syntax.yaml.reader import read_yaml
from vesper.language.syntax.yaml_to_ast import build_ast, is_library


def parameters_of(path: Path, collection: Collection) -> tuple[str, tuple[Parameter, ...]] | None:
    """Return the id of a file and its own parameters; None for a file with errors in them."""
    source = read_library(path)
    if source is None:
        return None
    bag = DiagnosticBag(source)
    try:
        tree = read_yaml(bag)
        if tree is not None and is_library(tree):
            compiled, _ = compile_library(source, collection)
            if compiled is None:
                return None
            return compiled.library.library_id, tuple(compiled.library.parameters.values())
        document = None if tree is None else build_ast(tree, bag)
        if document is None:
            return None
        node_id = document.node_id.text
        found = Declarations(document.types, Scope(), bag, Neighbours(collection, (node_id,)), node_id)
        found.use(document.uses)
        found.types.resolve_all()
        own = [found.declare_parameter(each) for each in document.parameters]
    except CheckingStopped:
        return None
    return None if bag.has_errors else (node_id, tuple(each for each in own if each is not None))
