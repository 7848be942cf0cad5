"""Check of a whole node: declarations, contracts and flow.

Takes the AST and returns numbered, typed IR with the node's cases.

A step with the name of an output must have that output's type. The same rule makes a bare `approve` a member of an
enum.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from vesper.language.agent_binding import AgentBinding
from vesper.language.check.agents.lowering import agent_policy, lower_agent
from vesper.language.check.audit_fields import check_audit_fields
from vesper.language.check.callees import Callees, Interface, NoCallees
from vesper.language.check.capabilities import check_capabilities
from vesper.language.check.cases import Case, check_cases
from vesper.language.check.constraints import constraint_clause
from vesper.language.check.declarations import Declarations
from vesper.language.check.expressions.checker import place_of
from vesper.language.check.expressions.literals import Unread, read_literal
from vesper.language.check.expressions.narrowing import facts_when
from vesper.language.check.flow.ends import step_leaves
from vesper.language.check.flow.loop_keys import check_loop_keys
from vesper.language.check.flow.machines import check_machine
from vesper.language.check.flow.policies import PolicyReader
from vesper.language.check.flow.requests import RequestChecker
from vesper.language.check.flow.steps import FlowChecker
from vesper.language.check.flow.waves import WaveFinder
from vesper.language.check.http import check_http
from vesper.language.check.node_types import check_errors, check_node_type
from vesper.language.check.outside_names import check_outside, outside_name
from vesper.language.check.properties import Property, check_properties
from vesper.language.check.recursive_types import erase
from vesper.language.check.scope import Scope
from vesper.language.check.tables.lowered import locate_tables
from vesper.language.check.taint import TaintAnalysis
from vesper.language.check.taint_notes import check_releases, report_taint
from vesper.language.check.type_clauses import type_clauses, value_clauses
from vesper.language.check.work_fields import check_work
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.diagnostic import DiagnosticBag
from vesper.language.diagnostics.source import Span
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.language.http_binding import HttpBinding
from vesper.language.ir import nodes as ir
from vesper.language.ir.failures import HTTP_CODE, can_become_declared, possible_codes_in
from vesper.language.ir.lookup_tables import Table
from vesper.language.ir.recursion import MAX_FRAMES, count_frames, reachable_functions
from vesper.language.syntax import ast
from vesper.language.work_bindings import WorkBindings
from vesper.values.model import Value
from vesper.values.types import BOOLEAN, Enum, Type, optional, without_null


@dataclass(frozen=True, slots=True)
class CheckedNode:
    """A node without errors, as IR, with its test cases."""

    node: ir.Node
    cases: tuple[Case, ...]
    silent: tuple[Span, ...] = ()
    """Spans in which a constant condition is no mistake of the node: its functions, and what libraries define."""
    analysed: tuple[Span, ...] = ()
    """Spans of rows and cells of tables, about which the analysis of tables reports."""
    properties: tuple[Property, ...] = ()
    files: tuple[tuple[str, str], ...] = ()
    """Files with rows of tables: path and SHA-256."""
    http: HttpBinding | None = None
    work: WorkBindings | None = None
    declared: tuple[tuple[Type, ...], ...] | None = None
    """Types of inputs, outputs and errors where recursive ones are among them, which the IR has as json."""
    agent: AgentBinding | None = None


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
    node = checker.finish(found)
    whole = checker.with_library_parts(found)
    node = replace(node, tables=locate_tables(checker.tables, whole.expressions()))
    node = replace(node, reasons=_locate_reasons(checker.reasons, whole))
    audited = checker.audit_fields(found)
    node = replace(node, grants=replace(node.grants, audit_fields=audited))
    analysis = TaintAnalysis(node, checker.called)
    node = replace(node, taint=analysis.run())
    report_taint(document, node, analysis.effective, bag)
    cases = check_cases(document.cases, node, checker.called, bag)
    properties = checker.properties(found)
    analysed = tuple(checker.analysed)
    http = check_http(document, node, bag)
    work = check_work(document, node, bag, callees)
    if bag.has_errors:
        return None
    checker.report_unused()
    declared = checker.declared_types(found)
    agent = checker.agent_binding()
    return CheckedNode(node, cases, checker.silent, analysed, properties, checker.files, http, work, declared, agent)


def _locate_reasons(reasons: list[tuple[ir.Expression, str]], node: ir.Node) -> tuple[tuple[int, str], ...]:
    """Return reason codes by the index of their guards. `node` is numbered later, but has the same guards."""
    codes = {id(guard): code for guard, code in reasons}
    if not codes:
        return ()
    return tuple((index, codes[id(each)]) for index, each in enumerate(node.expressions()) if id(each) in codes)


class _NodeChecker:
    def __init__(self, document: ast.Document, bag: DiagnosticBag, callees: Callees) -> None:
        self._document = document
        self._bag = bag
        self._callees = callees
        self._scope = Scope(has_clock=document.type.text != "function")
        self._declared = Declarations(document.types, self._scope, bag, callees, document.node_id.text)
        self._types = self._declared.types
        self._expressions = self._declared.expressions
        self._expressions.callees = callees
        self.called: dict[str, Interface] = {}
        self.tables = self._expressions.tables
        self.analysed = self._expressions.analysed
        self.reasons: list[tuple[ir.Expression, str]] = []
        self._calls: list[tuple[ast.Word, Interface]] = []

    @property
    def silent(self) -> tuple[Span, ...]:
        return (
            *self._generated_spans,
            *(each.value.span for each in self._document.functions),
            *self._expressions.silent,
        )

    @property
    def _generated_spans(self) -> tuple[Span, ...]:
        """Return the span of an agent's generated parts, or nothing for other nodes."""
        return () if self._document.agent is None else (self._document.agent.span,)

    def with_library_parts(self, node: ir.Node) -> ir.Node:
        """Return the node with the library definitions that it refers to."""
        return self._declared.with_library_parts(node)[0]

    def finish(self, node: ir.Node) -> ir.Node:
        """Return the numbered node with the library definitions that it refers to, without recursive types."""
        whole, names = self._declared.with_library_parts(node)
        node = ir.number_expressions(whole, names)
        node = replace(node, lookup_tables=self._used_tables(node))
        return erase(node) if self._types.has_recursive else node

    def audit_fields(self, node: ir.Node) -> str | None:
        """Return the function of the members of the audit line in IR form."""
        if not self._document.security.audited:
            return None
        return check_audit_fields(self._document, node, self._scope, self._expressions, self.finish, self._bag)

    def declared_types(self, node: ir.Node) -> tuple[tuple[Type, ...], ...] | None:
        """Return the types of inputs, outputs and errors as declared.

        None if no type is recursive, because `finish` then changes none.
        """
        if not self._types.has_recursive:
            return None
        parts = (node.inputs, node.outputs, node.errors)
        return tuple(tuple(each.type for each in part) for part in parts)

    def agent_binding(self) -> AgentBinding | None:
        """Return the model and the tools of an agent."""
        agent = self._document.agent
        if agent is None:
            return None
        place = place_of(self._bag.source, agent.span)
        nodes = {word.text: found.node_id for word, found in self._calls}
        tools = tuple((tool.name.text, nodes[tool.node.text]) for tool in agent.tools if tool.mcp is None)
        return AgentBinding(agent.model.text, tools, (place.line, place.column, place.end_line, place.end_column))

    def properties(self, node: ir.Node) -> tuple[Property, ...]:
        """Return the properties of the node. `node` is the checked node before `finish`."""
        declared = self._document.properties
        return check_properties(declared, node, self._scope, self._expressions, self.finish, self._bag)

    @property
    def files(self) -> tuple[tuple[str, str], ...]:
        return tuple(self._expressions.files)

    def _used_tables(self, node: ir.Node) -> tuple[Table, ...]:
        """Return the tables that lookups of the node name.

        Tables of functions without a remaining call are left out.
        """
        lookups = [each for each in node.expressions() if isinstance(each, ir.Call) and each.op.startswith("lookup.")]
        named = {each.args[0].value for each in lookups if isinstance(each.args[0], ir.Literal)}
        return tuple(table for hash_, table in sorted(self._expressions.lookup_tables.items()) if hash_ in named)

    def node(self) -> ir.Node | None:
        document = self._document
        self._declared.use(document.uses)
        self._types.resolve_all()
        if document.agent is not None:
            document = self._document = lower_agent(document, self._types, self._callees, self._bag)
        types = [self._declare_input(each) for each in document.inputs]
        constants = [self._declared.declare_constant(each) for each in document.constants]
        for each in document.parameters:
            self._declared.declare_parameter(each)
        outputs = [self._output(each) for each in document.outputs]
        functions = self._declared.declare_functions(document.functions)
        constraints = [
            clause
            for each, type_ in zip(document.inputs, types, strict=True)
            for clause in self._constraints(each, type_)
        ]
        inputs = [self._input(each, type_) for each, type_ in zip(document.inputs, types, strict=True)]
        preconditions = [self._clause(each) for each in document.preconditions]
        self._expressions.assumptions += [each.holds for each in (*constraints, *preconditions) if each is not None]
        errors = [self._error_field(each) for each in document.errors]
        check_outside("input", list(zip(document.inputs, types, strict=True)), self._bag)
        for what, listed, named in (
            ("output", document.outputs, self._scope.outputs),
            ("error field", document.errors, self._scope.errors),
        ):
            check_outside(what, [(each, named[each.name.text].type) for each in listed], self._bag)
        machines = {each.name.text: check_machine(each, self._bag) for each in document.machines}
        requests = RequestChecker(
            self._scope, self._expressions, self._types, machines, self._callees, document.type.text, self._bag
        )
        flow = FlowChecker(self._scope, self._expressions, self._types, requests, self._bag)
        body = self._flow(flow)
        if document.parallel is not None and not self._bag.has_errors:
            body = WaveFinder(requests.called).block(body)
        if document.agent is not None:  # its flow repeats the postconditions
            self._bag.retract_inside([each.holds.span for each in document.postconditions])
        self.called, self.reasons, self._calls = requests.called, flow.reasons, requests.calls
        self._scope.in_postcondition = True
        postconditions = [
            *(clause for each in document.outputs for clause in self._output_clauses(each)),
            *(self._clause(each) for each in document.postconditions if not flow.is_observed(each)),
        ]
        invariants = self._invariants()
        requests.calls += self._expressions.inlined_calls
        requests.report_conflicts()
        requests.check_dependencies(document.dependencies)
        check_capabilities(requests.needs, document.security, self._bag)
        policy = PolicyReader(self._bag).node_policy(document.node_id.text, document.policies, document.performance)
        if document.agent is not None:
            policy = agent_policy(policy, tuple(document.policies))
        sensitive = self._sensitive()
        check_releases(document, self._scope, self._bag)
        if self._bag.has_errors:
            return None
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
            functions=(*functions, *self._declared.library_functions()),
            grants=ir.Grants(
                tuple(sorted({word.text for word in document.security.required})),
                tuple(sorted({word.text for word in document.security.denied})),
                document.security.audit,
                sensitive,
                policy,
                tuple(sorted((name.text, reason.text) for name, reason in document.security.declassified)),
            ),
        )
        node = self._with_called_functions(node)
        if document.agent is None:
            check_node_type(document, node, requests, self._bag)
            check_loop_keys(node.body, self._bag)
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
        flag = None if declared.flag is None else declared.flag.text
        return ir.Input(declared.name.text, type_, default, outside_name(declared), flag)

    def _with_called_functions(self, node: ir.Node) -> ir.Node:
        """Return the node with the recursive functions that it calls, and report the others."""
        called = reachable_functions(node)
        names = {each.name for each in called}
        declared = {each.name.text: each.name for each in self._document.functions}
        for each in node.functions:
            if each.name not in names and each.name in declared:
                self._bag.warning(Code.UNUSED_VALUE, declared[each.name].span, what="the function", name=each.name)
        if count_frames(called) > MAX_FRAMES:
            help_ = "lower `max_depth`, or put fewer FORs around the calls; each FOR counts as one more call"
            span = declared[called[0].name].span if called[0].name in declared else self._document.node_id.span
            self._bag.error(
                Code.TOO_DEEP, span, limit=f"{MAX_FRAMES:,}", what="active calls and FORs around them", help=help_
            )
        return replace(node, functions=called)

    def _output(self, declared: ast.Output) -> ir.Output | None:
        type_ = self._types.resolve(declared.type)
        self._scope.declare("output", declared.name, type_, self._bag)
        return None if type_ is None else _output(declared, type_)

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
        return None if type_ is None else _output(declared, type_)

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
            self._expressions.add_facts(facts_when(clause.holds, True, self._scope))
        before = flow.observe(self._document.observed, self._document.postconditions)
        body = (*before, *flow.block(self._document.flow))
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

    def report_unused(self) -> None:
        """Report values that nothing reads.

        It comes after properties and audit fields, which may be the only readers of a value.
        """
        self._expressions.report_unused_functions()
        checked = {each.name.text for each in self._document.inputs if self._has_other_use(each)}
        for declared in (*self._scope.names.values(), *self._scope.ended.values()):
            if declared.kind == "input" and declared.name in checked:
                continue
            if declared.span in self._generated_spans:
                continue
            if declared.kind in ("input", "constant", "parameter", "step") and not declared.used:
                help_ = "use it or remove it" if declared.kind == "input" else None
                what = f"the {declared.kind}"
                self._bag.warning(Code.UNUSED_VALUE, declared.span, what=what, name=declared.name, help=help_)

    def _has_other_use(self, declared: ast.Input) -> bool:
        """Return whether an input has a use besides expressions: its check, role or audit."""
        if self._document.security.audit == "detailed":
            return True
        if declared.constraints or self._types.has_constraints(declared.type):
            return True
        type_ = self._scope.names[declared.name.text].type
        is_event = declared.name.text == "event_id" and self._document.type.text == "event_handler"
        is_flag = any(each.flag is not None and each.flag.text == declared.name.text for each in self._document.inputs)
        return is_event or is_flag or (type_ is not None and isinstance(without_null(type_), Enum))


def _output(declared: ast.Output, type_: Type) -> ir.Output:
    flag = None if declared.flag is None else declared.flag.text
    return ir.Output(declared.name.text, type_, outside_name(declared), flag)
