"""Rules of the seven node types: what each requires and forbids (docs/spec/nodes.md)."""

from __future__ import annotations

from vesper.language.check.flow.requests import RequestChecker
from vesper.language.check.work_fields import is_required, scheduled_names
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.source import Span
from vesper.language.ir import nodes as ir
from vesper.language.ir.failures import possible_codes_in
from vesper.language.ir.statements import all_statements, is_strand_statement
from vesper.language.syntax import ast
from vesper.values.types import STRING, ArrayOf, Enum, MapOf, SetOf

_DIRECT = ("database_query", "database_write", "http_request")


_TYPES = ("function", "data_transform", "http_handler", "event_handler", "scheduled_job", "workflow", "state_machine")
_ADDS = {
    "http_handler": "declares `outputs.error`",
    "event_handler": "has an input `event_id: string`",
    "scheduled_job": "has a default for every input",
}
"""What a node needs for a type with effects."""
_LIKELY_FAILURES = ("unavailable", "not_found")
"""Failures to propose first as declared errors."""


def check_node_type(document: ast.Document, node: ir.Node, requests: RequestChecker, bag: DiagnosticBag) -> None:
    """Report each violation of the rules of the node's type."""
    for problem, where, help_ in _violations(node.type, document, node, requests):
        help_ = help_ or _other_type(document, node, requests)
        bag.error(Code.NODE_TYPE_RULE, where, type=node.type, problem=problem, help=help_)


def _other_type(document: ast.Document, node: ir.Node, requests: RequestChecker) -> str:
    """Return help that names the types whose rules the node keeps, or what it needs for one."""
    fitting = [
        f"`type: {each}`" for each in _TYPES if each != node.type and not _violations(each, document, node, requests)
    ]
    if fitting:
        return f"write {' or '.join(fitting)}, whose rules it keeps"
    needs = [f"a{'n' if each[0] in 'eh' else ''} `{each}` {what}" for each, what in _ADDS.items() if each != node.type]
    return f"choose another type: {'; '.join(needs)}"


def _handler_help(document: ast.Document, node: ir.Node, requests: RequestChecker, codes: set[str]) -> str:
    """Return help for a handler without errors: a failure of its steps to declare, or another type."""
    code = next((each for each in _LIKELY_FAILURES if each in codes), min(codes))
    declared = f'declare a failure of its steps: `error: {{error_code: "enum[{code}]", message: string}}`'
    if node.errors:
        return "an error begins with `error_code`, an enum, and has a `message: string`"
    if document.http is not None:
        return declared
    return f"{declared}; or {_other_type(document, node, requests)}: `vesper serve --expose` serves a node of any type"


def _violations(
    type_: str, document: ast.Document, node: ir.Node, requests: RequestChecker
) -> list[tuple[str, Span, str | None]]:
    """Return each violation of the rules of a type: problem, place, and its own help."""
    span = document.type.span
    found: list[tuple[str, Span, str | None]] = []

    def report(problem: str, where: Span = span, help_: str | None = None) -> None:
        found.append((problem, where, help_))

    match type_:
        case "function":
            for spec, _, where in requests.made[:1]:
                report(f"has no effects, and this is one: {spec.name}", where)
            for word, callee in requests.calls:
                if callee.type != "function":
                    report(f"calls functions alone, and `{callee.node_id}` is a {callee.type}", word.span)
            if node.machines:
                report("has no state machines", document.machines[0].name.span)
            if document.parallel is not None or any(map(is_strand_statement, all_statements(node.body))):
                where = span if document.parallel is None else document.parallel.span
                report("runs nothing in parallel: it makes no requests", where)
        case "data_transform":
            if not any(isinstance(each.type, ArrayOf | SetOf | MapOf) for each in node.inputs):
                report("needs an input that is an array, a set or a map")
            for spec, effect_class, where in requests.made:
                if effect_class != "read":
                    report(f"only reads, and {spec.name} is `{effect_class}` here", where)
        case "http_handler":
            names = [each.name for each in node.errors]
            codes = possible_codes_in(node.body, requests.callee_codes())
            if (names[:1] != ["error_code"] or "message" not in names) and (codes or names):
                help_ = _handler_help(document, node, requests, codes) if type_ == node.type else None
                report("needs `outputs.error` with `error_code` and `message`", span, help_)
        case "event_handler":
            if not any(each.name == "event_id" and each.type == STRING for each in node.inputs):
                report("needs an input `event_id: string`")
        case "scheduled_job":
            given = scheduled_names(document)
            for each, declared in zip(node.inputs, document.inputs, strict=True):
                if is_required(each) and each.name not in (*node.flagged, *given):
                    report(f"runs without a caller: `{each.name}` needs a default", declared.name.span)
        case "workflow":
            if not requests.calls:
                report("needs a `call_node`")
            for spec, _, where in requests.made:
                if spec.name in _DIRECT:
                    report(
                        f"has no SQL and no HTTP of its own, and this is {spec.name}", where, "call a node that does it"
                    )
        case _:
            if len(node.machines) != 1:
                report(f"needs one machine, and has {len(node.machines)}")
            elif not any(spec.name == "state_transition" for spec, _, _ in requests.made):
                report("needs a step that makes a transition")
            for spec, _, where in requests.made:
                if spec.name in ("http_request", "file_read", "file_write", "file_append"):
                    report(f"has no HTTP calls and no files, and this is {spec.name}", where)
    return found


def check_errors(document: ast.Document, node: ir.Node, bag: DiagnosticBag) -> None:
    """Report an error declaration whose first field is not `error_code` with an enum type."""
    if not node.errors:
        if document.errors_span is not None and not document.errors:
            bag.error(Code.WRONG_KIND, document.errors_span, key="error", expected="at least one field", found="none")
        return
    first = node.errors[0]
    if first.name != "error_code" or not isinstance(first.type, Enum):
        word = document.errors[0].name
        expected, found = "`error_code`, an enum, first", f"`{first.name}: {first.type}`"
        bag.error(Code.WRONG_KIND, word.span, key="error", expected=expected, found=found)
