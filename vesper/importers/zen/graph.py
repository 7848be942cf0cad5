"""Translation of the graph of a model: every node becomes steps, in an order in which all parents come first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from vesper.importers.writer import node_name
from vesper.importers.zen.context import Contribution, Merger
from vesper.importers.zen.core import Scope
from vesper.importers.zen.expressions import Expressions
from vesper.importers.zen.flow import Flow, Problem, Step
from vesper.importers.zen.model import (
    Endpoint,
    ExpressionList,
    Foreign,
    GraphNode,
    Model,
    ModelError,
    SubModel,
    Switch,
    Table,
    Transform,
)
from vesper.importers.zen.parser import parse_expression
from vesper.importers.zen.syntax import Node, ZenSyntaxError
from vesper.importers.zen.tables import Tables
from vesper.importers.zen.terms import NULL, OR, Leaf, Term, Tree, Untranslatable, Value, set_path
from vesper.importers.zen.types import BOOLEAN, NOTHING, ArrayOf, Slot, Variable, resolve

MAX_SUB_MODELS = 8
Condition = frozenset[str] | None
"""Branches of switches, one of which is taken where a node runs; None: it always runs."""


class Graph:
    """Translates one model into steps of a flow."""

    def __init__(self, flow: Flow, read_key: Callable[[str], Model | None]) -> None:
        self.flow = flow
        self.expressions = Expressions(flow.taken.__contains__)
        self.tables = Tables(self.expressions, flow)
        self.merger = Merger(self.expressions, self._keep)
        self.read_key = read_key
        self.complete: list[tuple[frozenset[str], Condition]] = []
        """Branches of switches one of which is always taken, and the condition of the switch."""
        self.reached: dict[frozenset[str], str] = {}
        self.depth = 0

    def translate(self, model: Model, context: Value, condition: Condition = None) -> Value:
        """Add the steps of a model whose input is `context`, and return its result."""
        self.depth += 1
        if self.depth > MAX_SUB_MODELS:
            raise Untranslatable(f"models that contain each other more than {MAX_SUB_MODELS} deep")
        conditions: dict[str, Condition] = {}
        results: dict[str, Value] = {}
        branches: dict[tuple[str, str], Condition] = {}
        nodes = Tree()
        for node in _in_order(model):
            parents = self._parents(model, node, conditions, results, branches)
            if isinstance(node.content, Endpoint) and node.content.is_input:
                conditions[node.id], results[node.id] = condition, context
                nodes.fields[node.name] = context
                continue
            if not parents:
                continue
            own = self._any([when for _, when in parents])
            conditions[node.id] = own
            when = self._text(own)
            contributions: list[Contribution] = [(value, self._text(each)) for value, each in parents]
            incoming = self._gather_contexts(contributions, when, node.name)
            self.expressions.scope = Scope(incoming, nodes=nodes)
            results[node.id] = self._node(node, incoming, own, branches)
            nodes.fields[node.name] = results[node.id]
        self.depth -= 1
        sources = {edge.source for edge in model.edges}
        last = [node for node in model.nodes.values() if node.id not in sources and node.id in results]
        ends: list[Contribution] = [(results[node.id], self._text(conditions[node.id])) for node in last]
        if ends and self._any([conditions[node.id] for node in last]) != condition:
            # Where no last node runs, the result is an empty object.
            ends.insert(0, (Tree(), ""))
        return self._gather_contexts(ends, self._text(condition), "the result") if ends else Tree()

    def _gather_contexts(self, parts: list[Contribution], when: str, name: str) -> Value:
        """Return the merge of contexts; one without translation ends the node with an error."""
        try:
            return self.merger.gather(parts, when)
        except Untranslatable as error:
            self._raise(name, f"its input merges {error}", when, ())
            return parts[0][0] or Tree()

    def _parents(
        self,
        model: Model,
        node: GraphNode,
        conditions: dict[str, Condition],
        results: dict[str, Value],
        branches: dict[tuple[str, str], Condition],
    ) -> list[tuple[Value, Condition]]:
        """Return the contexts that reach a node; zen merges the edge that was added last first."""
        found: list[tuple[Value, Condition]] = []
        for edge in reversed(model.edges):
            if edge.target != node.id or edge.source not in results:
                continue
            if isinstance(model.nodes[edge.source].content, Switch):
                if (edge.source, edge.handle) in branches:
                    found.append((results[edge.source], branches[edge.source, edge.handle]))
            else:
                found.append((results[edge.source], conditions[edge.source]))
        return found

    # Conditions

    def _any(self, conditions: list[Condition]) -> Condition:
        """Return the condition that one of several holds."""
        if any(each is None for each in conditions):
            return None
        union: Condition = frozenset().union(*(each for each in conditions if each is not None))
        for branches, outer in reversed(self.complete):
            if union is not None and branches <= union:
                union = None if outer is None else (union - branches) | outer
        return union

    def _text(self, condition: Condition) -> str:
        """Return the text of a condition, which is the name of a step; empty where it always holds."""
        if condition is None:
            return ""
        if len(condition) == 1:
            return next(iter(condition))
        if condition not in self.reached:
            term = Term(" OR ".join(sorted(condition)), BOOLEAN, OR)
            self.reached[condition] = self.flow.compute("reached", term, is_helper=True).text
        return self.reached[condition]

    def _keep(self, key: str, term: Term) -> Term:
        return self.flow.compute(key, term, is_helper=True)

    # Nodes

    def _node(
        self, node: GraphNode, incoming: Value, own: Condition, branches: dict[tuple[str, str], Condition]
    ) -> Value:
        content, when = node.content, self._text(own)
        marks = len(self.flow.steps), set(self.flow.taken)
        try:
            match content:
                case Endpoint():
                    return incoming
                case Switch():
                    self._switch(node, content, own, branches)
                    return incoming
                case Table():
                    return self._apply_transform(
                        content.transform,
                        incoming,
                        node,
                        when,
                        lambda at: self.tables.translate(content, node.name, at),
                    )
                case ExpressionList():
                    return self._apply_transform(
                        content.transform, incoming, node, when, lambda at: self._entries(content, at)
                    )
                case SubModel():
                    return self._apply_transform(
                        content.transform, incoming, node, when, lambda _: self._sub_model(content, own)
                    )
                case Foreign(kind):
                    language = "JavaScript" if kind == "functionNode" else f"a node of type `{kind}`"
                    raise Untranslatable(f"{language} has no translation", is_fault=False)
        except (Untranslatable, ZenSyntaxError) as error:
            del self.flow.steps[marks[0] :]
            return self._refuse(node, str(error), incoming, when)
        raise AssertionError(content)

    def _refuse(self, node: GraphNode, reason: str, incoming: Value, when: str) -> Value:
        """Add a step that ends the node with a declared error in place of a part without translation."""
        source = node.content.text if isinstance(node.content, Foreign) else ""
        self._raise(node.name, reason, when, tuple(line.rstrip() for line in source.splitlines()))
        passes = not isinstance(node.content, Foreign | Switch | Endpoint) and node.content.transform.passes_through
        return incoming if passes or isinstance(node.content, Switch) else Tree()

    def _raise(self, name: str, reason: str, when: str, source: tuple[str, ...]) -> None:
        """Add a step that ends the node with `not_translated`, until its constant `…_is_translated` is true."""
        self.flow.problems.append(Problem(f"node `{name}`", reason))
        constant = self.flow.fresh(f"{name}_is_translated")
        self.flow.untranslated.append(constant)
        test = f"{when} AND NOT {constant}" if when else f"NOT {constant}"
        message = f"{name}: {reason}".replace("{", "{{").replace("}", "}}")
        fields = {"operation": "raise", "when": test, "error": {"error_code": "not_translated", "message": message}}
        self.flow.steps.append(Step("", fields, note=(f"not translated: {reason}", *source)))

    def _switch(
        self, node: GraphNode, switch: Switch, own: Condition, branches: dict[tuple[str, str], Condition]
    ) -> None:
        """Add a step for every branch of a switch: whether it is taken."""
        when = self._text(own)
        earlier: list[str] = []
        for at, (id_, text) in enumerate(switch.statements, 1):
            facts = self.flow.facts(when)
            conjuncts = [when] if when else []
            try:
                if text:
                    conjuncts += self.expressions.condition(parse_expression(text), facts)
            except Untranslatable as error:
                if not error.is_fault:
                    raise
                conjuncts = ["false"]
            except ZenSyntaxError:
                conjuncts = ["false"]
            if not switch.is_collect:
                conjuncts += [f"NOT {name}" for name in earlier]
            if not conjuncts:
                conjuncts = ["true"]
            name = self.flow.fresh(f"{node.name}_{at}")
            note = (f"switch {node.name}",) if at == 1 else ()
            fields = {"step": name, "operation": "compute", "value": " AND ".join(dict.fromkeys(conjuncts))}
            self.flow.steps.append(Step(name, fields, note=note))
            earlier.append(name)
            branches[node.id, id_] = frozenset({name})
            if not text and not switch.is_collect:
                self.complete.append((frozenset(earlier), own))
                break

    def _apply_transform(
        self, transform: Transform, incoming: Value, node: GraphNode, when: str, run: Callable[[str], Value]
    ) -> Value:
        """Return the output of a node: its input field, its loop, its output path and what it passes through."""
        scope = self.expressions.scope
        inner: Value = incoming
        if transform.input_field:
            tree = parse_expression(transform.input_field)
            inner = self._input(tree, transform)
        if transform.is_loop:
            output = self._loop(transform, inner, node, when, run)
        else:
            self.expressions.scope = replace(scope, context=inner)
            output = run(when)
            self.expressions.scope = scope
        if transform.output_path:
            wrapped = Tree()
            set_path(wrapped, transform.output_path, output)
            output = wrapped
        return self._passed(incoming, output) if transform.passes_through else output

    def _passed(self, incoming: Value, output: Value) -> Value:
        if isinstance(output, Leaf) and output.term.type == NOTHING:
            return incoming
        return self.merger.patch(incoming, output)

    def _input(self, tree: Node, transform: Transform) -> Value:
        value = self.expressions.base(tree)
        if isinstance(value, Leaf) and not value.term.is_path and value.term.type != NOTHING:
            return Leaf(self.flow.compute(transform.input_field, self.expressions.value(tree), is_helper=True))
        return value

    def _loop(
        self, transform: Transform, inner: Value, node: GraphNode, when: str, run: Callable[[str], Value]
    ) -> Value:
        """Add a loop over the items of the input field."""
        items = self.expressions.from_context(inner)
        type_ = resolve(items.type)
        if isinstance(type_, Variable):
            type_.bound = ArrayOf(Slot(Variable()))
            type_ = type_.bound
        if not isinstance(type_, ArrayOf):
            raise Untranslatable("a loop over a value that is no array")
        self.expressions.facts = self.flow.facts(when)
        source = self.expressions.need(replace(items, type=type_))
        self.expressions.facts = set()
        name = self.flow.fresh(node.name)
        item = self.flow.fresh(f"{node_name(transform.input_field)}_item")
        step = Step(name, {"step": name, "operation": "loop"}, note=(f"loop of {node.name}",))
        if when:
            step.fields["when"] = when
        step.fields["over"] = f"{item} IN {source.text}"
        checks = (item,) if type_.item.is_optional else ()
        leaf = Leaf(Term(item, resolve(type_.item.type), checks=checks, is_path=True))
        scope = self.expressions.scope
        with self.flow.inside(step):
            self.expressions.scope = replace(scope, context=leaf)
            result = run("")
            self.expressions.scope = scope
            if transform.passes_through:
                result = self._passed(leaf, result)
            value = self.expressions.as_value(self.expressions.from_context(result))
            if value.type == NOTHING:
                raise Untranslatable("a loop whose rounds output nothing")
            collected = self.flow.compute(f"{node.name}_output", value)
        step.fields["steps"] = step.inner
        step.fields["collect"] = collected.text
        self.flow.steps.append(step)
        path = f"{name}.collected"
        return Leaf(
            Term(path, ArrayOf(Slot(value.type, value.is_nullable)), checks=(name,) if when else (), is_path=True),
            when,
            is_absent_if_null=bool(when),
        )

    def _entries(self, content: ExpressionList, when: str) -> Value:
        """Add a step for every expression; `$` holds the results so far."""
        output = Tree()
        scope = self.expressions.scope
        before, scope.column = scope.column, output
        for key, text in content.entries:
            if not key or not text.strip():
                continue
            try:
                term = self.expressions.value(parse_expression(text), self.flow.facts(when))
            except (Untranslatable, ZenSyntaxError) as error:
                raise Untranslatable(f"expression `{key}`: {error}") from error
            set_path(output, key, self._stored(key, term, when))
        scope.column = before
        return output

    def _stored(self, key: str, term: Term, when: str) -> Leaf:
        if term.type == NOTHING:
            return Leaf(NULL)
        value = self.expressions.as_value(term)
        if term.is_path and not when:
            return Leaf(term)
        path = self.flow.compute(key.rsplit(".", 1)[-1], value, when)
        return Leaf(path, when, is_absent_if_null=bool(when) and not value.is_nullable)

    def _sub_model(self, content: SubModel, own: Condition) -> Value:
        model = self.read_key(content.key)
        if model is None:
            raise Untranslatable(f"the model `{content.key}` that it evaluates is not beside this one")
        scope = self.expressions.scope
        result = self.translate(model, scope.context, own)
        self.expressions.scope = scope
        return result


def _in_order(model: Model) -> list[GraphNode]:
    """Return the nodes that the input reaches, parents first. Raises `ModelError` for a cycle."""
    children: dict[str, list[str]] = {}
    for edge in model.edges:
        children.setdefault(edge.source, []).append(edge.target)
    reached = {model.input_node().id}
    stack = [model.input_node().id]
    while stack:
        for child in children.get(stack.pop(), []):
            if child not in reached:
                reached.add(child)
                stack.append(child)
    waiting = {node: sum(edge.target == node and edge.source in reached for edge in model.edges) for node in reached}
    ready = [node for node in model.nodes if node in reached and waiting[node] == 0]
    ordered: list[GraphNode] = []
    while ready:
        node = ready.pop(0)
        ordered.append(model.nodes[node])
        for child in children.get(node, []):
            waiting[child] -= 1
            if waiting[child] == 0:
                ready.append(child)
    if len(ordered) < len(reached):
        raise ModelError("the graph of the model has a cycle")
    return ordered
