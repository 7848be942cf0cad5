"""A node of type `supervisor`, read as a function that returns its declaration as JSON.

So the tree is part of the semantic hash, and engines, tests and comparisons need no code for it. The checked tree is
stored beside the node, as `queue` and `schedule` are.
"""

from __future__ import annotations

import json
from typing import Any, Final

from vesper.language.diagnostics.source import SourceFile
from vesper.language.syntax import ast
from vesper.language.syntax.fields import Fields
from vesper.language.syntax.yaml_tree import Mapping, Scalar, Tree

SUPERVISOR: Final = "supervisor"
OUTPUT: Final = "declaration"
_ABOUT: Final = ("node_id", "type", "intent", "metadata")


def is_supervisor(root: Mapping) -> bool:
    """Return whether the document declares a supervisor."""
    return any(k.text == "type" and isinstance(value, Scalar) and value.text == SUPERVISOR for k, value in root.entries)


def supervisor_document(source: SourceFile, node_id: ast.Word, intent: ast.Word, node: Fields) -> ast.Document:
    """Return the document of a supervisor. The check reads its fields from `work`."""
    span = node.span
    declared = {key: _to_json(tree) for key in sorted(node.names()) if key not in _ABOUT and (tree := node.get(key))}
    text = ast.String(json.dumps(declared, sort_keys=True), span)
    output = ast.Word(OUTPUT, span)
    step = ast.Step(None, ast.Word("return", span), (), ast.Return(((output, text),), span), ())
    return ast.Document(
        source=source,
        node_id=node_id,
        type=ast.Word("function", node_id.span),
        intent=intent,
        inputs=(),
        types=(),
        outputs=(ast.Output(output, ast.TypeName(ast.Word("string", span), span)),),
        constants=(),
        functions=(),
        preconditions=(),
        postconditions=(),
        flow=(step,),
        flow_span=span,
        cases=(),
        work={SUPERVISOR: node},
    )


def _to_json(tree: Tree) -> Any:
    """Return a tree as JSON values. Scalars become texts as written."""
    if isinstance(tree, Scalar):
        return tree.text
    if isinstance(tree, Mapping):
        return {key.text: _to_json(value) for key, value in tree.entries}
    return [_to_json(each) for each in tree.items]
