"""Rules of the seven node types: what each requires and forbids (docs/spec/nodes.md)."""

from __future__ import annotations

from vesper.language.check.flow.requests import RequestChecker
from vesper.language.check.work_fields import is_required, scheduled_names
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.source import Span
from vesper.language.ir import nodes as ir
from vesper.language.ir.statements import all_statements, is_strand_statement
from vesper.language.syntax import ast
from vesper.values.types import STRING, ArrayOf, Enum, MapOf, SetOf

_DIRECT = ("database_query", "database_write", "http_request")


def check_node_type(document: ast.Document, node: ir.Node, requests: RequestChecker, bag: DiagnosticBag) -> None:
    """Report each violation of the rules of the node's type."""
    span = document.type.span

    def report(problem: str, where: Span = span, help_: str | None = None) -> None:
        bag.error(Code.NODE_TYPE_RULE, where, type=node.type, problem=problem, help=help_)

    match node.type:
        case "function":
            for spec, _, where in requests.made[:1]:
                report(f"has no effects, and this is one: {spec.name}", where, "choose another `type` for the node")
            for word, found in requests.calls:
                if found.type != "function":
                    report(f"calls functions alone, and `{found.node_id}` is a {found.type}", word.span)
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
            if names[:1] != ["error_code"] or "message" not in names:
                report("needs `outputs.error` with `error_code` and `message`")
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
