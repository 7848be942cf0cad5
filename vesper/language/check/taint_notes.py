"""Diagnostics about sensitive values: masked outputs, and values that the author released."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from vesper.language.check.scope import Scope
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.language.ir import nodes as ir
from vesper.language.ir.taint import Flow, Taint, active_sources
from vesper.language.syntax import ast


def check_releases(document: ast.Document, scope: Scope, bag: DiagnosticBag) -> None:
    """Report names under `declassify` that are not a step, output or error field."""
    steps = [each.name for each in (*scope.names.values(), *scope.ended.values()) if each.kind == "step"]
    known = [*steps, *scope.outputs, *(f"error.{name}" for name in scope.errors)]
    for word, _ in document.security.declassified:
        if word.text not in known:
            help_ = did_you_mean(word.text, known)
            kinds = "no step, output or `error.` field"
            bag.error(Code.UNKNOWN_NAME, word.span, kinds=kinds, name=word.text, help=help_)


def report_taint(document: ast.Document, node: ir.Node, effective: AbstractSet[str], bag: DiagnosticBag) -> None:
    """Note the masked outputs and the releases. Warn of a release whose value has no source."""
    taint = node.taint
    assert taint is not None
    active = active_sources(node, taint)
    for what, declared, flows in (
        ("output", document.outputs, taint.outputs),
        ("error field", document.errors, taint.errors),
    ):
        for each in declared:
            flow = flows.get(each.name.text, Flow()).only(active)
            if flow.sources:
                label = f"computed from {_names(taint, flow.sources)}"
                shown = " and ".join(f"`{path}`" for path in _paths(each.name.text, flow))
                bag.note(Code.SENSITIVE_OUTPUT, each.name.span, label, what=what, names=shown)
    for word, reason in document.security.declassified:
        if word.text in effective:
            bag.note(Code.RELEASED_VALUE, word.span, name=word.text, reason=reason.text)
        else:
            bag.warning(Code.NEEDLESS_RELEASE, word.span, name=word.text)


def _names(taint: Taint, sources: int) -> str:
    found = [f"`{name}`" for place, name in enumerate(taint.sources) if sources >> place & 1]
    return ", ".join(found)


def _paths(name: str, flow: Flow) -> list[str]:
    """Return the tainted parts of a value, such as `person.pin`."""
    if flow.whole:
        return [name]
    return [path for field, inner in flow.fields for path in _paths(f"{name}.{field}", inner)]
