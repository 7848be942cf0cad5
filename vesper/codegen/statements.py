"""Statements of the flow as Python statements: what a person would write for a branch, a loop, a request, a handler."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal

import libcst as cst
import libcst.matchers as matchers

from vesper.codegen.expressions import ExpressionWriter
from vesper.codegen.handler_codes import taken_when, takes_the_rest
from vesper.codegen.layout.python_expression import ATOM, EQUAL, OR, PRODUCT, Written, negated, string_literal
from vesper.codegen.loops import is_every_item, loop_target
from vesper.codegen.naming import Naming
from vesper.codegen.types import TypeWriter, needs_annotation
from vesper.language.ir import nodes as ir
from vesper.language.ir.statements import all_statements, leaves, value_type
from vesper.values.types import DECIMAL, ArrayOf, MapOf, OptionalOf, Primitive, SetOf, Type
from vesper.values.unicode import is_printable

_BLANK = cst.EmptyLine(indent=False)
_NO_BOUND = 1_000_000
"""No collection has more items, so a loop over one needs no counting for it."""

Lines = list[cst.BaseStatement]
End = Callable[[ir.Return | ir.Raise, bool], Lines]
"""Writes how the node ends, inside of another statement or not."""


def comment(text: str) -> cst.EmptyLine:
    """A comment line; what cannot be seen is shown, so that nothing in a node can end the line."""
    shown = "".join(c if is_printable(c) else c.encode("unicode_escape").decode() for c in text)
    return cst.EmptyLine(comment=cst.Comment(f"# {shown}"))


def indented(lines: Lines) -> cst.IndentedBlock:
    """Statements inside of another one, which begin without a blank line."""
    if not lines:  # a loop may have state and no steps
        return cst.IndentedBlock([cst.SimpleStatementLine([cst.Pass()])])
    first = lines[0]
    heading = list(getattr(first, "leading_lines", ()))
    if heading and heading[0] is _BLANK:
        first = first.with_changes(leading_lines=heading[1:])
    return cst.IndentedBlock([first, *lines[1:]])


class BlockWriter:
    def __init__(
        self, node: ir.Node, naming: Naming, expressions: ExpressionWriter, types: TypeWriter, end: End
    ) -> None:
        self._node = node
        self._naming = naming
        self._expressions = expressions
        self._types = types
        self._end = end
        self._counters: list[str] = []
        """Of the loops around, those that count: their iterations are part of the path of a request."""
        self._requires = 0
        self._nesting = 0
        read = [each for each in node.expressions() if isinstance(each, ir.Ref | ir.Local)]
        self._steps_read = {each.name for each in read if isinstance(each, ir.Ref) and each.kind == "step"}
        self._locals_read = {each.number for each in read if isinstance(each, ir.Local)}
        self._names_outside = {
            *(each.name for each in node.inputs),
            *(each.name for each in (*node.outputs, *node.errors)),
            *(name for each in all_statements(node.body) for name in _bound_by(each)),
        }
        """The names that are bound outside of expressions."""
        self._loop_types: dict[str, Type] = {}
        """The names that loops of clauses bind."""
        self._failures: list[str] = []
        """The names of the failures whose handlers are being written, outermost first."""
        self._skipped_values: dict[str, ir.Expression] = {}
        """Of requests that may be skipped: what their value becomes outside."""

    def block(self, block: ir.Block) -> Lines:
        lines: Lines = []
        for statement in block:
            self._naming.begin_statement()
            lines += self._statement(statement)
        return lines

    def cause(self) -> cst.From | None:
        """What an end of the node inside of a handler comes from."""
        return cst.From(cst.Name(self._failures[-1])) if self._failures else None

    def _inner(self, block: ir.Block, after: Callable[[], Lines] = list) -> cst.IndentedBlock:
        """A block, and what comes after it, which is written then: only the block says what its steps are called."""
        self._nesting += 1
        lines = [*self.block(block), *after()]
        self._nesting -= 1
        return indented(lines)

    def _statement(self, statement: ir.Statement) -> Lines:
        match statement:
            case ir.Step():
                return self._handled(statement.handlers, statement, lambda: self._step(statement))
            case ir.Return() | ir.Raise():
                return self._end(statement, self._nesting > 0)
            case ir.Require(clause):
                number = self._requires
                self._requires += 1
                return self.clause("validation", number, clause)
            case ir.Branch():
                if (skipped := _skipped_step(statement)) is not None:
                    return self._skipped(statement, skipped)
                return self._handled(statement.handlers, statement, lambda: self._branch(statement))
            case ir.Loop():
                return self._handled(statement.handlers, statement, lambda: self._loop(statement))
            case ir.Request():
                return self._handled(statement.handlers, statement, lambda: self._request(statement))
            case ir.CallNode():
                return self._handled(statement.handlers, statement, lambda: self._call(statement))

    # -- clauses ----------------------------------------------------------------------------------

    def clause(self, phase: str, index: int, clause: ir.Clause) -> Lines:
        self._naming.begin_statement()
        heading = [_BLANK, comment(f"{phase}, line {clause.holds.place.line}: {clause.text}")]
        names = self._names_of_loop(clause.holds, "forall")
        if names is not None:
            assert isinstance(clause.holds, ir.For)
            return self._clause_for_each(clause.holds, names, self._broken(phase, index, clause), heading)
        broken_if = self._expressions.opposite(self._expressions.condition(clause.holds)).node
        broken = self._broken(phase, index, clause)
        return [cst.If(broken_if, cst.IndentedBlock([broken]), leading_lines=heading)]

    def _broken(self, phase: str, index: int, clause: ir.Clause) -> cst.SimpleStatementLine:
        shown = self._expressions.record(
            [(ref.name.lstrip("_"), self._expressions.write(ref)) for ref in ir.mentioned_refs(clause)]
        )
        arguments = [cst.SimpleString(string_literal(phase)), cst.Integer(str(index)), shown]
        broken = cst.Call(cst.Name("ContractBroken"), [cst.Arg(each) for each in arguments])
        self._expressions.ends[broken] = clause.holds.place.line
        return cst.SimpleStatementLine([cst.Raise(broken, cause=self.cause())])

    def _names_of_loop(self, loop: ir.Expression, kind: str) -> list[str] | None:
        """What a loop over all the items would call them; None where it is better an expression.

        Python remembers the names of such a loop, so they must be nobody else's, and always of one type.
        """
        if (
            not isinstance(loop, ir.For)
            or loop.kind != kind
            or loop.where is not None
            or isinstance(loop.value, ir.Let)
        ):
            return None
        types = dict(zip(loop.names, ir.item_types(loop.over.type), strict=False))
        if any(name in self._names_outside or self._loop_types.get(name, types[name]) != types[name] for name in types):
            return None
        names = [self._naming.local(number, name) for number, name in zip(loop.locals, loop.names, strict=True)]
        if names != list(loop.names):
            return None
        self._loop_types |= types
        return names

    def _clause_for_each(
        self, holds: ir.For, names: Sequence[str], broken: cst.SimpleStatementLine, heading: list[cst.EmptyLine]
    ) -> Lines:
        """A clause about every item, as a person writes it: a loop that ends with the first one that breaks it."""
        over = self._expressions.items(holds.over, len(names))
        broken_if = self._expressions.opposite(self._expressions.write(holds.value)).node
        end = [*self._noted(holds, "False"), broken]
        target = loop_target([cst.Name(name) for name in names], parentheses=False)
        body = cst.IndentedBlock([cst.If(broken_if, cst.IndentedBlock(end))])
        return [cst.For(target, over, body, leading_lines=heading), *self._noted(holds, "True")]

    def _noted(self, clause: ir.Expression, came_to: str) -> list[cst.SimpleStatementLine]:
        """In the traced form, the mark of a clause that has no expression of its own."""
        if not self._expressions.traced:
            return []
        marked = self._expressions.marked(clause, Written(cst.Name(came_to), ATOM)).node
        return [cst.SimpleStatementLine([cst.Expr(marked)])]

    # -- values -----------------------------------------------------------------------------------

    def _heading(self, name: str, place: ir.Place) -> list[cst.EmptyLine]:
        shown = name.lstrip("_")
        return [_BLANK, comment(f"{'step ' if not name.startswith('_') else ''}{shown}, line {place.line}")]

    def _step(self, step: ir.Step) -> Lines:
        heading = self._heading(step.name, step.place)
        before: Lines = []
        value = step.value
        while isinstance(value, ir.Let):
            # What a step binds outermost is a statement of its own; nothing is evaluated before it.
            if not self._expressions.is_atom(value):
                local = self._naming.local(value.local, value.name)
                before.append(self.assign(local, value.value, heading))
                heading = []
            value = value.body
        if isinstance(value, ir.For) and value.kind == "fold" and _starts_at_once(value):
            return [*before, *self._fold(step, value, heading)]
        if isinstance(value, ir.For) and value.type == DECIMAL and not is_every_item(value):
            names = self._names_of_loop(value, "sum")
            if names is not None:
                return [*before, *self._sum(step, value, names, heading)]
        target = self._naming.name("step", step.name)
        is_chain = isinstance(value, ir.If) and isinstance(value.otherwise, ir.If)
        # Without it a type checker takes members of an enum for any string, and a record for any dict.
        annotation = self._types.annotation(value.type) if needs_annotation(value.type) else None
        if is_chain and annotation is not None:
            before.append(self._declare(target, annotation, heading))
            heading = []
        if isinstance(value, ir.If) and isinstance(value.otherwise, ir.If):
            # Two conditions or more: a person would write statements, not nested conditional expressions.
            return [*before, self._chain(target, value, step.value).with_changes(leading_lines=heading)]
        return [*before, self.assign(target, value, heading, mark_as=step.value, annotation=annotation)]

    def _fold(self, step: ir.Step, fold: ir.For, heading: Sequence[cst.EmptyLine]) -> Lines:
        """A fold that is a whole step is a loop: the value so far has a name, and each item changes it."""
        assert fold.with_ is not None
        read = {each.number for each in ir.walk(fold) if isinstance(each, ir.Local)} | {fold.locals[-1]}
        names = [
            self._naming.kept_local(number, name if number in read else f"_{name}")
            for number, name in zip(fold.locals, fold.names, strict=True)
        ]
        state = names.pop()
        annotation = None if isinstance(fold.type, Primitive) else self._types.annotation(fold.type)
        start = self.assign(state, fold.with_, heading, annotation=annotation)
        over = self._expressions.items(fold.over, len(names))
        change: cst.BaseStatement = self.assign(state, fold.value)
        if fold.where is not None:
            test = self._expressions.condition(fold.where).node
            change = cst.If(test=test, body=cst.IndentedBlock([change]))
        targets = loop_target([cst.Name(name) for name in names], parentheses=False)
        loop = cst.For(target=targets, iter=over, body=cst.IndentedBlock([change]))
        result = ir.Local(fold.locals[-1], fold.names[-1], fold.type, fold.place)
        declared = self._types.annotation(fold.type) if needs_annotation(fold.type) else None
        target = self._naming.name("step", step.name)
        return [start, loop, self.assign(target, result, mark_as=step.value, annotation=declared)]

    def _sum(self, step: ir.Step, total: ir.For, names: Sequence[str], heading: Sequence[cst.EmptyLine]) -> Lines:
        """A sum of decimals that is a whole step: a loop that adds, as a person would write it and Python runs best."""
        over = self._expressions.items(total.over, len(names))
        target = self._naming.name("step", step.name)
        zero = self._expressions.literal(DECIMAL, Decimal(0)).node
        # A sum starts from a zero without sign, and adding to that never gives one with it.
        more = cst.BinaryOperation(cst.Name(target), cst.Add(), self._expressions.inside(total.value, PRODUCT))
        self._expressions.sites[more] = total.index
        loop = cst.For(
            loop_target([cst.Name(name) for name in names], parentheses=False),
            over,
            cst.IndentedBlock([self._assigned(target, more)]),
        )
        lines: Lines = [self._assigned(target, zero, heading), loop]
        if self._expressions.traced:
            lines.append(
                self._assigned(target, self._expressions.marked(step.value, Written(cst.Name(target), ATOM)).node)
            )
        return lines

    def _declare(
        self, target: str, annotation: cst.BaseExpression, heading: Sequence[cst.EmptyLine]
    ) -> cst.SimpleStatementLine:
        declared = cst.AnnAssign(cst.Name(target), cst.Annotation(annotation))
        return cst.SimpleStatementLine([declared], leading_lines=heading)

    def _chain(self, target: str, chained: ir.If, whole: ir.Expression) -> cst.If:
        """A chain of conditions as `if`, `elif`, `else`, each branch giving the value of the whole."""
        test = self._expressions.condition(chained.condition).node
        body = cst.IndentedBlock([self.assign(target, chained.then, mark_as=whole)])
        orelse: cst.If | cst.Else
        if isinstance(chained.otherwise, ir.If):
            orelse = self._chain(target, chained.otherwise, whole)
        else:
            orelse = cst.Else(cst.IndentedBlock([self.assign(target, chained.otherwise, mark_as=whole)]))
        return cst.If(test=test, body=body, orelse=orelse)

    def assign(
        self, target: str, value: ir.Expression, heading: Sequence[cst.EmptyLine] = (),
        mark_as: ir.Expression | None = None, annotation: cst.BaseExpression | None = None,
    ) -> cst.SimpleStatementLine:  # fmt: skip
        written = self._expressions.stored(value)
        if annotation is not None and _shows_its_type(written.node, annotation):
            annotation = None
        if mark_as is not None:
            written = self._expressions.marked(mark_as, written)
        return self._assigned(target, written.node, heading, annotation)

    def _assigned(
        self, target: str, node: cst.BaseExpression, heading: Sequence[cst.EmptyLine] = (),
        annotation: cst.BaseExpression | None = None,
    ) -> cst.SimpleStatementLine:  # fmt: skip
        assignment: cst.Assign | cst.AnnAssign = cst.Assign([cst.AssignTarget(cst.Name(target))], node)
        if annotation is not None:
            assignment = cst.AnnAssign(cst.Name(target), cst.Annotation(annotation), node)
        return cst.SimpleStatementLine([assignment], leading_lines=heading)

    def annotation(self, type_: Type) -> cst.BaseExpression | None:
        is_composed = isinstance(type_, OptionalOf | ArrayOf | MapOf | SetOf)
        return self._types.annotation(type_) if is_composed or needs_annotation(type_) else None

    def _state_annotation(self, value: ir.Expression) -> cst.BaseExpression | None:
        """The same for what a loop starts with: of nothing a type checker cannot see what it will hold."""
        is_empty = isinstance(value, ir.Array) and not value.items
        if is_empty or (isinstance(value, ir.Literal) and value.value == {}):
            return self._types.annotation(value.type)
        return self.annotation(value.type)

    # -- branches ---------------------------------------------------------------------------------

    def _branch(self, branch: ir.Branch) -> Lines:
        heading = self._heading(branch.name, branch.place)
        type_ = value_type(branch)
        before: Lines = []
        if type_ is not None and (annotation := self.annotation(type_)) is not None:
            before = [self._declare(self._naming.name("step", branch.name), annotation, heading)]
            heading = []
        return [*before, self._arms(branch, 0).with_changes(leading_lines=heading)]

    def _arms(self, branch: ir.Branch, first: int) -> cst.If:
        arm = branch.arms[first]
        test = self._expressions.condition(arm.when).node
        body = self._inner(arm.body, lambda: self._branch_value(branch, arm.value))
        orelse: cst.If | cst.Else | None = None
        if first + 1 < len(branch.arms):
            self._naming.begin_statement()
            orelse = self._arms(branch, first + 1)
        elif branch.otherwise or branch.otherwise_value is not None:
            value = branch.otherwise_value
            orelse = cst.Else(self._inner(branch.otherwise, lambda: self._branch_value(branch, value)))
        return cst.If(test=test, body=body, orelse=orelse)

    def _branch_value(self, branch: ir.Branch, value: ir.Expression | None) -> Lines:
        if value is None:
            return []
        return [self.assign(self._naming.name("step", branch.name), value, mark_as=value)]

    def _skipped(self, branch: ir.Branch, inner: ir.Request | ir.CallNode) -> Lines:
        """A request that may be skipped: null, unless the condition holds."""
        target = self._naming.name("step", inner.name)
        self._naming.alias("step", branch.name, target)
        type_ = value_type(branch)
        assert type_ is not None
        assert branch.otherwise_value is not None
        arm = branch.arms[0]
        assert arm.value is not None
        before = self._declare(target, self._types.annotation(type_), self._heading(inner.name, branch.place))
        test = self._expressions.condition(arm.when).node
        self._skipped_values[inner.name] = arm.value
        body = self._inner(arm.body)
        null = self._expressions.marked(branch.otherwise_value, Written(cst.Name("None"), ATOM))
        orelse = cst.Else(cst.IndentedBlock([self._assigned(target, null.node)]))
        return [before, cst.If(test=test, body=body, orelse=orelse)]

    # -- loops ------------------------------------------------------------------------------------

    def _loop(self, loop: ir.Loop) -> Lines:
        lines: Lines = []
        heading = self._heading(loop.name, loop.place)
        over = None if loop.over is None else self._expressions.items(loop.over, len(loop.names))
        if over is not None and loop.state and not isinstance(loop.over, ir.Ref | ir.Local):
            # What the loop goes over is computed before its state.
            items = self._naming.fresh("items")
            lines.append(self._assigned(items, over, heading))
            heading, over = [], cst.Name(items)
        states = {each.local: self._naming.hold(each.local, each.name) for each in loop.state}
        for each in loop.state:
            annotation = self._state_annotation(each.value)
            if annotation is not None:  # mypy lets a name be declared once: none after the loop is called so
                self._naming.kept_local(each.local, each.name)
            lines.append(self.assign(states[each.local], each.value, heading, annotation=annotation))
            heading = []
        collected = self._naming.fresh("collected") if loop.collect is not None else None
        if collected is not None and loop.collect is not None:
            of = cst.Subscript(
                cst.Name("list"), [cst.SubscriptElement(cst.Index(self._types.annotation(loop.collect.type)))]
            )
            lines.append(self._assigned(collected, cst.List([]), heading, of))
            heading = []
        is_counted = loop.max < _NO_BOUND or loop.over is None or _asks(loop.body)
        counter = self._naming.fresh("iterations") if is_counted else None
        if counter is not None:
            lines.append(self._assigned(counter, cst.Integer("0"), heading))
            heading = []
        names = [
            self._naming.hold(number, name if number in self._locals_read else f"_{name}")
            for number, name in zip(loop.locals, loop.names, strict=True)
        ]
        with self._counting(counter):
            body = self._iteration(loop, states, collected, counter)
        statement: cst.For | cst.While
        if over is not None:
            target: cst.Name | cst.Tuple = cst.Name(names[0])
            if len(names) > 1:
                target = cst.Tuple([cst.Element(cst.Name(name)) for name in names], lpar=[], rpar=[])
            statement = cst.For(target=target, iter=over, body=indented(body), leading_lines=heading)
        else:
            assert loop.condition is not None
            test = self._expressions.condition(loop.condition).node
            statement = cst.While(test=test, body=indented(body), leading_lines=heading)
        lines.append(statement)
        fields = [(each.name, Written(cst.Name(states[each.local]), ATOM)) for each in loop.state]
        if collected is not None:
            fields.append(("collected", Written(cst.Name(collected), ATOM)))
        result = self._expressions.made(loop.type, fields).node
        lines.append(self._assigned(self._naming.name("step", loop.name), result))
        for number, name in (*zip(loop.locals, loop.names, strict=True), *((s.local, s.name) for s in loop.state)):
            self._naming.let_go(number, name)
        return lines

    def _iteration(self, loop: ir.Loop, states: dict[int, str], collected: str | None, counter: str | None) -> Lines:
        lines: Lines = []
        for condition, leaving in ((loop.where, cst.Continue()), (loop.condition, cst.Break())):
            if condition is None or (condition is loop.condition and loop.over is None):
                continue
            test = self._expressions.opposite(self._expressions.condition(condition)).node
            lines.append(cst.If(test, cst.IndentedBlock([cst.SimpleStatementLine([leaving])])))
        if counter is not None:
            count = cst.Call(cst.Name("counted"), [cst.Arg(cst.Name(counter)), cst.Arg(cst.Integer(str(loop.max)))])
            at = loop.condition if loop.condition is not None else loop.over
            assert at is not None
            self._expressions.sites[count] = at.index
            lines.append(self._assigned(counter, count))
        if loop.over is None:
            lines += self._expressions.metering.round()
        lines += self.block(loop.body)
        self._naming.begin_statement()
        if collected is not None and loop.collect is not None:
            value = self._expressions.marked(loop.collect, self._expressions.stored(loop.collect)).node
            kept = cst.Call(cst.Name("keep"), [cst.Arg(cst.Name(collected)), cst.Arg(value)])
            self._expressions.sites[kept] = loop.collect.index
            lines.append(cst.SimpleStatementLine([cst.Expr(kept)]))
        lines += self._next(loop, states)
        if loop.stop_when is not None:
            stop = self._expressions.condition(loop.stop_when).node
            lines.append(cst.If(stop, cst.IndentedBlock([cst.SimpleStatementLine([cst.Break()])])))
        return lines

    def _next(self, loop: ir.Loop, states: dict[int, str]) -> Lines:
        values = [
            (states[local], self._expressions.marked(value, self._expressions.stored(value)).node)
            for local, value in loop.next
        ]
        if len(values) < 2:
            return [self._assigned(name, value) for name, value in values]
        # All of them are computed from the old state.
        targets = cst.Tuple([cst.Element(cst.Name(name)) for name, _ in values], lpar=[], rpar=[])
        together = cst.Tuple([cst.Element(value) for _, value in values], lpar=[], rpar=[])
        return [cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(targets)], together)])]

    @contextmanager
    def _counting(self, counter: str | None) -> Iterator[None]:
        if counter is None:
            yield
            return
        self._counters.append(counter)
        try:
            yield
        finally:
            self._counters.pop()

    # -- what leaves the node ---------------------------------------------------------------------

    def _path(self, name: str) -> cst.BaseExpression:
        shown = cst.SimpleString(string_literal(name))
        if not self._counters:
            return shown
        return cst.Call(cst.Name("path"), [cst.Arg(shown), *(cst.Arg(cst.Name(each)) for each in self._counters)])

    def _request(self, request: ir.Request) -> Lines:
        arguments = [
            cst.Arg(self._path(request.name)),
            cst.Arg(cst.SimpleString(string_literal(request.effect))),
            cst.Arg(cst.SimpleString(string_literal(request.effect_class))),
        ]
        key = None if request.key is None else self._expressions.stored(request.key).node
        fixed = self._expressions.record(
            [(name, Written(cst.SimpleString(string_literal(text)), ATOM)) for name, text in request.fixed.items()]
        )
        given = self._expressions.record([(name, self._expressions.plain(value)) for name, value in request.arguments])
        arguments.append(cst.Arg(fixed))
        if key is None:
            arguments.append(cst.Arg(given))
        else:  # SEMANTICS: the key is evaluated before the arguments
            arguments.append(cst.Arg(key, keyword=cst.Name("key"), equal=EQUAL))
            arguments.append(cst.Arg(given, keyword=cst.Name("arguments"), equal=EQUAL))
        call = cst.Call(cst.Name("Request"), arguments)
        return self._answered(request, cst.Yield(call))

    def _call(self, call: ir.CallNode) -> Lines:
        given = [
            cst.Arg(self._expressions.stored(value).node, keyword=cst.Name(name), equal=EQUAL)
            for name, value in call.inputs
        ]
        asked: cst.BaseExpression
        callee = self._expressions.metering.node(call.node)
        if self._node.type == "function":
            asked = cst.Call(cst.Name("called"), [cst.Arg(callee), *given])
        else:
            arguments = [cst.Arg(self._path(call.name)), cst.Arg(callee), cst.Arg(cst.Name("now")), *given]
            asked = cst.Yield(cst.From(cst.Call(cst.Name("call_node"), arguments)))
        return self._answered(call, asked)

    def _answered(self, statement: ir.Request | ir.CallNode, asked: cst.BaseExpression) -> Lines:
        """What came of it, under the name of the step; where nobody can ask for it, the request alone."""
        heading = self._heading(statement.name, statement.place)
        self._expressions.sites[asked] = statement.result.index
        skipped = self._skipped_values.get(statement.name)
        if self._expressions.traced:
            if isinstance(asked, cst.Yield):
                in_parentheses = asked.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
                self._expressions.moved(asked, in_parentheses)
                asked = in_parentheses
            asked = self._expressions.marked(statement.result, Written(asked, ATOM)).node
            if skipped is not None:
                asked = self._expressions.marked(skipped, Written(asked, ATOM)).node
        if statement.name.startswith("_") or not self._is_asked_for(statement):
            return [cst.SimpleStatementLine([cst.Expr(asked)], leading_lines=heading)]
        target = self._naming.name("step", statement.name)
        if skipped is not None:
            return [self._assigned(target, asked)]
        annotation = self._types.annotation(statement.result.type)
        line = cst.AnnAssign(cst.Name(target), cst.Annotation(annotation), asked)
        return [cst.SimpleStatementLine([line], leading_lines=heading)]

    def _is_asked_for(self, statement: ir.Request | ir.CallNode) -> bool:
        """True where a name is needed for what came: for what reads it, or for a handler that gives another value."""
        return (
            statement.name in self._steps_read
            or statement.name in self._skipped_values
            or any(handler.value is not None for handler in statement.handlers)
        )

    # -- handlers ---------------------------------------------------------------------------------

    def _handled(self, handlers: tuple[ir.Handler, ...], statement: ir.Statement, write: Callable[[], Lines]) -> Lines:
        if not handlers:
            return write()
        lines = write()
        first = lines[0]
        heading = list(getattr(first, "leading_lines", ()))
        lines[0] = first.with_changes(leading_lines=[])
        failure = self._failure_name()
        self._failures.append(failure)
        rest = next((handler for handler in handlers if takes_the_rest(handler)), None)
        again = cst.IndentedBlock([cst.SimpleStatementLine([cst.Raise()])])
        named = [handler for handler in handlers if handler is not rest]
        # In written order, so that names are given out in the order in which a reader meets them.
        bodies = [self._handler(handler, statement) for handler in named]
        orelse: cst.If | cst.Else = cst.Else(again if rest is None else self._handler(rest, statement))
        for handler, body in reversed(list(zip(named, bodies, strict=True))):
            orelse = cst.If(test=taken_when(handler, handlers, failure), body=body, orelse=orelse)
        self._failures.pop()
        inside = orelse.body if isinstance(orelse, cst.Else) else cst.IndentedBlock([orelse])
        if rest is None and len(named) == 1:
            # One handler: any other failure goes on at once.
            others = negated(Written(taken_when(named[0], handlers, failure), OR)).node
            inside = cst.IndentedBlock([cst.If(others, again), *bodies[0].body])
        name = cst.AsName(cst.Name(failure)) if mentions_name(inside, failure) else None
        caught = cst.ExceptHandler(body=inside, type=cst.Name("FAILURES"), name=name)
        return [cst.Try(body=cst.IndentedBlock(lines), handlers=[caught], leading_lines=heading)]

    def _failure_name(self) -> str:
        """What a failure is called: Python forgets the name at the end of its handler, so one inside has another."""
        return "failure" if not self._failures else self._naming.fresh("failure")

    def _handler(self, handler: ir.Handler, statement: ir.Statement) -> cst.IndentedBlock:
        return self._inner(handler.body, lambda: self._handled_value(handler, statement))

    def _handled_value(self, handler: ir.Handler, statement: ir.Statement) -> Lines:
        if handler.value is not None:
            assert not isinstance(statement, ir.Return | ir.Raise | ir.Require)
            target = self._naming.name("step", statement.name)
            written = self._expressions.marked(handler.value, self._expressions.stored(handler.value))
            skipped = self._skipped_values.get(statement.name)
            if skipped is not None:
                written = self._expressions.marked(skipped, written)
            return [self._assigned(target, written.node)]
        return [] if leaves(handler.body) else [cst.SimpleStatementLine([cst.Raise()])]


def mentions_name(node: cst.CSTNode, name: str) -> bool:
    return bool(matchers.findall(node, matchers.Name(name)))


def _bound_by(statement: ir.Statement) -> tuple[str, ...]:
    match statement:
        case ir.Loop():
            return statement.name, *statement.names, *(each.name for each in statement.state)
        case ir.Return() | ir.Raise() | ir.Require():
            return ()
        case _:
            return (statement.name,)


def _starts_at_once(fold: ir.For) -> bool:
    """True where what a fold starts with cannot fail, so that it may be evaluated before the collection."""
    initial = fold.with_
    return isinstance(initial, ir.Literal | ir.Ref | ir.Local) or (isinstance(initial, ir.Array) and not initial.items)


def _shows_its_type(node: cst.BaseExpression, annotation: cst.BaseExpression) -> bool:
    """True for a record that is made by its class."""
    return (
        isinstance(node, cst.Call)
        and isinstance(node.func, cst.Name)
        and isinstance(annotation, cst.Name)
        and node.func.value == annotation.value
    )


def _asks(block: ir.Block) -> bool:
    return any(isinstance(each, ir.Request | ir.CallNode) for each in all_statements(block))


def _skipped_step(branch: ir.Branch) -> ir.Request | ir.CallNode | None:
    """The one request that a branch is about, if it is the form of a step with `when`."""
    if len(branch.arms) != 1 or branch.otherwise or branch.otherwise_value is None or branch.handlers:
        return None
    body = branch.arms[0].body
    if len(body) != 1 or not isinstance(body[0], ir.Request | ir.CallNode) or f"_{body[0].name}" != branch.name:
        return None
    return body[0]
