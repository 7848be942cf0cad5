"""Check of `security.audit`: the members of the audit line become one function.

The function reads inputs and outputs of a run.

The Host evaluates it at the end of a run. It is a part of the IR as text, without places, so that its layout does not
change the semantic hash.
"""

from __future__ import annotations

import json

from vesper.language.check.expressions.checker import ExpressionChecker
from vesper.language.check.properties import Finish, RunChecker
from vesper.language.check.scope import Scope
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.ir import nodes as ir
from vesper.language.ir.encode import canonical_json, encode
from vesper.language.syntax import ast
from vesper.values.types import STRING, OptionalOf, optional

_TEXT = OptionalOf(STRING)


def check_audit_fields(
    document: ast.Document,
    node: ir.Node,
    scope: Scope,
    expressions: ExpressionChecker,
    finish: Finish,
    bag: DiagnosticBag,
) -> str | None:
    """Return the function in IR form, or None after reporting errors."""
    declared = document.security.audited
    if document.security.audit == "none":
        help_ = "add `audit_level: basic` or `audit_level: detailed`"
        expected, found = "absent from a node without `audit_level`", "given"
        bag.error(Code.WRONG_KIND, declared[0][0].span, key="audit", expected=expected, found=found, help=help_)
        return None
    checker = RunChecker(node, scope, expressions, finish, bag)
    inputs = {f"input_{each.name}": each.type for each in node.inputs}
    inputs |= {f"output_{each.name}": optional(each.type) for each in node.outputs}
    with checker.names(inputs, is_single=True):
        values = [(name.text, expressions.check(value, _TEXT)) for name, value in declared]
    known = tuple((name, value) for name, value in values if value is not None)
    if len(known) < len(values):
        return None
    sensitive = {f"input_{name}" for name in node.grants.sensitive}
    for (word, _), (name, value) in zip(declared, known, strict=True):
        if any(isinstance(each, ir.Ref) and each.name in sensitive for each in ir.walk(value)):
            reason = "the audit line shows it"
            bag.note(Code.RELEASED_VALUE, word.span, name=f"security.audit.{name}", reason=reason)
    outputs = tuple(ir.Output(name, _TEXT) for name, _ in known)
    return _without_places(encode(checker.function("audit_v1", inputs, outputs, (ir.Return(known),))))


def _without_places(encoded: bytes) -> str:
    form = json.loads(encoded)
    source = form["source"]
    source |= {"path": "audit", "sha256": "0" * 64, "intent": "Members of an audit line"}
    source["spans"] = [[1, 1, 1, 1]] * len(source["spans"])
    return canonical_json(form).decode()
