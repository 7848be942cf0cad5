"""Check of a whole node: declarations, contracts and flow.

Takes the AST and returns numbered, typed IR with the node's cases.

A step with the name of an output must have that output's type. The same rule makes a bare `approve` a member of an
enum.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from vesper.language.check.callees import Callees, Interface, NoCallees
from vesper.language.check.capabilities import check_capabilities
from vesper.language.check.cases import Case, check_cases
from vesper.language.check.constraints import constraint_clause
from vesper.language.check.expressions.checker import ExpressionChecker, place_of
from vesper.language.check.expressions.literals import UNREAD, Unread, read_literal
from vesper.language.check.expressions.narrowing import facts_when
from vesper.language.check.flow.ends import step_leaves
from vesper.language.check.flow.machines import check_machine
from vesper.language.check.flow.policies import PolicyReader
from vesper.language.check.flow.requests import RequestChecker
from vesper.language.check.flow.steps import FlowChecker
from vesper.language.check.named_types import TypeResolver
from vesper.language.check.node_types import check_errors, check_node_type
from vesper.language.check.scope import Scope
from vesper.language.check.taint import TaintAnalysis
from vesper.language.check.taint_notes import check_releases, report_taint
from vesper.language.check.type_clauses import type_clauses, value_clauses
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.language.ir import nodes as ir
from vesper.language.ir.failures import HTTP_CODE, can_become_declared, possible_codes_in
from vesper.language.syntax import ast
from vesper.values.model import Value
from vesper.values.types import BOOLEAN, Enum, Type, optional


@dataclass(frozen=True, slots=True)
class CheckedNode:
    """A node without errors, as IR, with its test cases."""

    node: ir.Node
    cases: tuple[Case, ...]


def check_document(
    document: ast.Document,
    bag: DiagnosticBag,
    callees: Callees = NoCallees(),  # noqa: B008  # it has no state
) -> CheckedNode | None:
    """Return the checked node, or None when the bag has errors."""
    checker = _NodeChecker(document, bag, callees)
    found = checker.node()
    if found is None:
        return None
    node = ir.number_expressions(found)
    analysis = TaintAnalysis(node, checker.called)
    node = replace(node, taint=analysis.run())
    report_taint(document, node, analysis.effective, bag)
    cases = check_cases(document.cases, node, checker.called, bag)
    return None if bag.has_errors else CheckedNode(node, cases)


class _NodeChecker:
    def __init__(self, document: ast.Document, bag: DiagnosticBag, callees: Callees) -> None:
        self._document = document
        self._bag = bag
        self._callees = callees
        self._scope = Scope(has_clock=document.type.text != "function")
        self._types = TypeResolver(document.types, bag)
        self._expressions = ExpressionChecker(self._scope, bag, self._types)
        self.called: dict[str, Interface] = {}

    def node(self) -> ir.Node | None:
        document = self._document
        self._types.resolve_all()
        types = [self._declare_input(each) for each in document.inputs]
        constants = [self._constant(each) for each in document.constants]
        outputs = [self._output(each) for each in document.outputs]
        self._functions()
        constraints = [
            clause
            for each, type_ in zip(document.inputs, types, strict=True)
            for clause in self._constraints(each, type_)
        ]
        inputs = [self._input(each, type_) for each, type_ in zip(document.inputs, types, strict=True)]
        preconditions = [self._clause(each) for each in document.preconditions]
        errors = [self._error_field(each) for each in document.errors]
        machines = {each.name.text: check_machine(each, self._bag) for each in document.machines}
        requests = RequestChecker(
            self._scope, self._expressions, self._types, machines, self._callees, document.type.text, self._bag
        )
        flow = FlowChecker(self._scope, self._expressions, self._types, requests, self._bag)
        body = self._flow(flow)
        self.called = requests.called
        self._scope.in_postcondition = True
        postconditions = [
            *(clause for each in document.outputs for clause in self._output_clauses(each)),
            *(self._clause(each) for each in document.postconditions),
        ]
        invariants = self._invariants()
        requests.report_conflicts()
        requests.check_dependencies(document.dependencies)
        check_capabilities(requests.needs, document.security, self._bag)
        policy = PolicyReader(self._bag).of_node(document.policies, document.performance)
        sensitive = self._sensitive()
        check_releases(document, self._scope, self._bag)
        if self._bag.has_errors:
            return None
        self._report_unused()
        node = ir.Node(
            node_id=document.node_id.text,
            type=document.type.text,
            inputs=tuple(each for each in inputs if each),
            outputs=tuple(output for output in outputs if output),
            constants=tuple(constant for constant in constants if constant),
            constraints=tuple(constraints),
            preconditions=tuple(clause for clause in preconditions if clause),
            body=body,
            postconditions=tuple(clause for clause in postconditions if clause),
            source=ir.Source(document.source.path, document.source.sha256, document.intent.text),
            errors=tuple(error for error in errors if error),
            machines=tuple(machines.values()),
            calls=tuple(requests.called[name].callee() for name in sorted(requests.called)),
            invariants=tuple(clause for clause in invariants if clause),
            grants=ir.Grants(
                tuple(sorted({word.text for word in document.security.required})),
                tuple(sorted({word.text for word in document.security.denied})),
                document.security.audit,
                sensitive,
                policy,
                tuple(sorted((name.text, reason.text) for name, reason in document.security.declassified)),
            ),
        )
        check_node_type(document, node, requests, self._bag)
        self._report_errors(node, flow, requests)
        return node

    # -- declarations -----------------------------------------------------------------------------

    def _declare_input(self, declared: ast.Input) -> Type | None:
        type_ = self._types.resolve(declared.type)
        if type_ is not None and not declared.is_required:
            type_ = optional(type_)
        self._scope.declare("input", declared.name, type_, self._bag)
        return type_

    def _constraints(self, declared: ast.Input, type_: Type | None) -> list[ir.Clause]:
        """Return the clauses that every value of an input must satisfy. Its own come before those of its types."""
        if type_ is None:
            return []
        name = declared.name.text
        found: list[ir.Clause | None] = []
        for each in declared.constraints:
            subject = ir.Ref("input", name, type_, place_of(self._bag.source, each.span))
            clause = constraint_clause(each, subject, name, self._bag)
            found.append(None if clause is None else replace(clause, input=name))
        found += type_clauses(declared, type_, self._types, self._expressions)
        return [clause for clause in found if clause]

    def _input(self, declared: ast.Input, type_: Type | None) -> ir.Input | None:
        default: Value | Unread = None
        if type_ is not None and declared.default is not None:
            default = read_literal(type_, declared.default, "default", self._bag)
        if type_ is None or isinstance(default, Unread):
            return None
        return ir.Input(declared.name.text, type_, default)

    def _functions(self) -> None:
        functions = self._document.functions
        self._expressions.functions_below = {each.name.text: each.name for each in functions}
        for each in functions:
            parameters = [(part.name, self._types.resolve(part.type)) for part in each.parameters]
            self._expressions.declare_function(each, parameters, self._types.resolve(each.returns))

    def _constant(self, declared: ast.Constant) -> ir.Constant | None:
        type_ = self._types.resolve(declared.type)
        self._scope.declare("constant", declared.name, type_, self._bag)
        value = UNREAD if type_ is None else read_literal(type_, declared.value, "value", self._bag)
        return None if type_ is None or isinstance(value, Unread) else ir.Constant(declared.name.text, type_, value)

    def _output(self, declared: ast.Output) -> ir.Output | None:
        type_ = self._types.resolve(declared.type)
        self._scope.declare("output", declared.name, type_, self._bag)
        return None if type_ is None else ir.Output(declared.name.text, type_)

    def _output_clauses(self, declared: ast.Output) -> list[ir.Clause | None]:
        """Return the postconditions that follow from the types of an output."""
        type_ = self._scope.outputs[declared.name.text].type
        if type_ is None:
            return []
        value = ir.Ref("output", declared.name.text, type_, place_of(self._bag.source, declared.name.span))
        return value_clauses(value, declared.name.text, declared.type, self._types, self._expressions)

    def _error_field(self, declared: ast.Output) -> ir.Output | None:
        type_ = self._types.resolve(declared.type)
        self._scope.declare("error", declared.name, type_, self._bag)
        return None if type_ is None else ir.Output(declared.name.text, type_)

    def _sensitive(self) -> tuple[str, ...]:
        security = self._document.security
        names = [each.name.text for each in self._document.inputs]
        for word in security.sensitive:
            if word.text not in names:
                help_ = did_you_mean(word.text, names)
                self._bag.error(Code.UNKNOWN_NAME, word.span, kinds="no input", name=word.text, help=help_)
        return tuple(names) if security.is_all_sensitive else tuple(word.text for word in security.sensitive)

    # -- contracts and flow -----------------------------------------------------------------------

    def _clause(self, clause: ast.Clause) -> ir.Clause | None:
        holds = self._expressions.check(clause.holds, BOOLEAN)
        return None if holds is None else ir.Clause(holds, clause.text)

    def _flow(self, flow: FlowChecker) -> ir.Block:
        for clause in self._document.preconditions:
            self._expressions.know(facts_when(clause.holds, True, self._scope))
        body = flow.block(self._document.flow)
        if not any(step_leaves(step) for step in self._document.flow):
            span = self._document.flow_span
            first = self._bag.source.text[span.start :].partition("\n")[0]
            help_ = f"end with `- operation: return` and `success: [{', '.join(self._scope.outputs)}]`"
            self._bag.error(Code.NO_RETURN, type(span)(span.start, span.start + max(1, len(first))), help=help_)
        return body

    def _invariants(self) -> list[ir.Clause | None]:
        """Check the invariants, which use full names such as `output.x`.

        In a node with declared errors either side may be missing, so every output and error field is optional.
        """
        self._scope.in_invariant = True
        if self._document.errors:
            for declared in (*self._scope.outputs.values(), *self._scope.errors.values()):
                declared.type = None if declared.type is None else optional(declared.type)
        return [self._clause(each) for each in self._document.invariants]

    def _report_errors(self, node: ir.Node, flow: FlowChecker, requests: RequestChecker) -> None:
        """Report declared errors that no step, failure or called node can raise."""
        check_errors(self._document, node, self._bag)
        if not node.errors or not isinstance(node.errors[0].type, Enum):
            return
        raised = {code for code, _ in flow.ends.raised}
        possible = possible_codes_in(node.body, requests.callee_codes())
        by_themselves = possible if can_become_declared(node) else set()
        for found in requests.called.values():
            # A called node's declared errors leave this node under the same name.
            by_themselves |= found.codes & possible
        declared = self._document.errors[0]
        words = declared.type.members if isinstance(declared.type, ast.TypeEnum) else ()
        for member in node.errors[0].type.members:
            if (
                member in raised
                or member in by_themselves
                or (HTTP_CODE.fullmatch(member) and "http_error" in possible)
            ):
                continue
            span = next((word.span for word in words if word.text == member), declared.name.span)
            self._bag.error(Code.ERROR_NEVER_RAISED, span, failure=member)

    def _report_unused(self) -> None:
        self._expressions.report_unused_functions()
        for declared in (*self._scope.names.values(), *self._scope.ended.values()):
            if declared.kind in ("constant", "step") and not declared.used:
                self._bag.warning(Code.UNUSED_VALUE, declared.span, what=f"the {declared.kind}", name=declared.name)
