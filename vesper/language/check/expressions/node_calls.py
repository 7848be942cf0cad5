"""Calls of function nodes in expressions: `price_order(items: xs).total`.

A call that every execution of its step evaluates is a `call` statement before the step, which the flow checker makes.
Any other call is inlined, which needs a node of computed steps and one return, without contracts: an expression cannot
break a clause.
"""

from __future__ import annotations

from abc import abstractmethod

from vesper.language.check.callees import Callees, Interface
from vesper.language.check.expressions.checker_part import CheckerPart
from vesper.language.check.expressions.functions import NodeFunction
from vesper.language.check.expressions.relocate import Relocation
from vesper.language.diagnostics.codes import Code
from vesper.language.diagnostics.source import Span
from vesper.language.diagnostics.suggest import did_you_mean
from vesper.language.ir import nodes as ir
from vesper.language.syntax import ast


class NodeCalls(CheckerPart):
    """The part of the expression checker for calls of function nodes."""

    callees: Callees
    functions: dict[str, NodeFunction | None]
    hoisted: dict[int, ir.Expression | None]
    """Results of calls that precede the step, by `id` of their syntax; None for a faulty call."""
    inlined_calls: list[tuple[ast.Word, Interface]]
    """Calls that are inlined, with the node of each."""
    silent: list[Span]

    @abstractmethod
    def count_inlined(self, size: int, span: Span) -> None: ...

    def node_call(self, call: ast.NodeCall) -> ir.Expression | None:
        """Return the outputs of a called node, as a record."""
        if id(call) in self.hoisted:
            return self.hoisted[id(call)]
        if call.node.text in self.functions:
            found_name = f"the name `{call.inputs[0][0].text}`"
            help_ = "only calls of nodes name their inputs"
            span = call.inputs[0][0].span
            self.bag.error(Code.EXPRESSION_SYNTAX, span, expected="a value", found=found_name, help=help_)
            return None
        found = self.callees.find(call.node.text)
        if not isinstance(found, Interface):
            for _, value in call.inputs:
                self.infer(value, None)
            self.bag.report(found.code, call.node.span, found.holes, found.help)
            return None
        self.inlined_calls.append((call.node, found))
        inputs = self._inputs(call, found)
        reason = not_inlinable(found.node)
        if reason is not None:
            what = f"a call of `{found.node_id}` here, because {reason}"
            help_ = "call it in a step of its own (`operation: call_node`) and use the step's outputs"
            self.bag.error(Code.NOT_INLINED, call.node.span, what=what, help=help_)
            return None
        return None if inputs is None or found.node is None else self._inline(call, found.node, inputs)

    def is_function_node(self, word: ast.Word) -> bool:
        """Return whether a word names a node that expressions may call."""
        if word.text in self.functions:
            return False
        found = self.callees.find(word.text)
        return isinstance(found, Interface) and found.type == "function"

    def _inputs(self, call: ast.NodeCall, found: Interface) -> list[tuple[str, ir.Expression]] | None:
        """Return the given inputs in written order, or None after reporting an error."""
        types = {name: type_ for name, type_, _ in found.inputs}
        given: list[tuple[str, ir.Expression]] = []
        is_sound = True
        for word, value in call.inputs:
            if word.text not in types or word.text in dict(given):
                help_ = did_you_mean(word.text, [*types])
                self.bag.error(Code.UNKNOWN_KEY, word.span, where=f"`{found.node_id}`", key=word.text, help=help_)
                is_sound = False
            elif (checked := self.check(value, types[word.text])) is None:
                is_sound = False
            else:
                given.append((word.text, checked))
        written = {word.text for word, _ in call.inputs}
        for name, _, may_miss in found.inputs:
            if name not in written and not may_miss:
                where = f"a call of `{found.node_id}`"
                self.bag.error(Code.MISSING_KEY, call.node.span, where=where, key=name)
                is_sound = False
        return given if is_sound else None

    def _inline(self, call: ast.NodeCall, node: ir.Node, inputs: list[tuple[str, ir.Expression]]) -> ir.Expression:
        place = self.place(call.span)
        expressions = node.expressions()
        self.count_inlined(len(expressions), call.span)
        self.silent.append(call.span)
        names: dict[tuple[str, str], ir.Expression] = {
            ("constant", each.name): ir.Literal(each.type, each.value, place) for each in node.constants
        }
        names |= {("input", each.name): ir.Literal(each.type, each.default, place) for each in node.inputs}
        lets: list[tuple[int, str, ir.Expression]] = []

        def bind(kind: str, name: str, value: ir.Expression) -> None:
            number = self.fresh_local()
            lets.append((number, name.lstrip("_"), value))
            names[kind, name] = ir.Local(number, name.lstrip("_"), value.type, place)

        for name, value in inputs:
            bind("input", name, value)
        shift = self.scope.local_count
        self.scope.local_count += 3 * len(expressions)  # none binds more
        body: ir.Expression | None = None
        for statement in node.body:
            relocation = Relocation(place, names, shift)
            if isinstance(statement, ir.Step):
                bind("step", statement.name, relocation.move(statement.value))
            elif isinstance(statement, ir.Return):
                outputs = tuple((name, relocation.move(value)) for name, value in statement.values)
                body = ir.RecordValue(outputs, place)
        assert body is not None, "a chain of steps ends with a return"
        for number, name, value in reversed(lets):
            body = ir.Let(number, name, value, body, place)
        return body


def not_inlinable(node: ir.Node | None) -> str | None:
    """Return why a node cannot be inlined, or None. The text follows "because"."""
    if node is None or node.type != "function":
        return "only function nodes are called in expressions"
    if node.constraints or node.preconditions or node.postconditions or node.invariants:
        return "it has contracts, and the place is not always evaluated"
    *steps, last = node.body
    is_chain = all(isinstance(each, ir.Step) and not each.handlers for each in steps)
    if not is_chain or not isinstance(last, ir.Return) or node.errors:
        return "its flow is more than computed steps and one return, and the place is not always evaluated"
    if node.functions or node.lookup_tables:
        return "it has recursive functions or rows of a file, and the place is not always evaluated"
    if node.grants.sensitive or node.grants.declassified or node.grants.policy:
        return "it declares sensitive data or limits, and the place is not always evaluated"
    return None


def strict_calls(expression: ast.Expression) -> list[ast.NodeCall]:
    """Return the calls of nodes that are evaluated whenever the expression is, inner ones first."""
    match expression:
        case ast.NodeCall(inputs=inputs):
            return [*(each for _, value in inputs for each in strict_calls(value)), expression]
        case ast.If(condition=first) | ast.Infix(left=first, operator=ast.Word(text="AND" | "OR" | "=>" | "??")):
            return strict_calls(first)
        case ast.Let(value=value):
            return strict_calls(value)
        case ast.Call(binding=None) | ast.Prefix() | ast.Infix() | ast.IsNull() | ast.Field() | ast.Index():
            return [each for part in ast.parts(expression) for each in strict_calls(part)]
        case ast.ArrayLiteral() | ast.RecordLiteral() | ast.MapLiteral() | ast.With() | ast.Cast() | ast.Ascription():
            return [each for part in ast.parts(expression) for each in strict_calls(part)]
        case ast.AtDate():
            return strict_calls(expression.date)
        case _:
            return []
