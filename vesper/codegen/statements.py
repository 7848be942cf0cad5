"""Writer of the statements of a flow as Python: branches, loops, requests, handlers and clauses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal

import libcst as cst
import libcst.matchers as matchers

from vesper.codegen.expressions import ExpressionWriter
from vesper.codegen.handler_codes import is_default_handler, write_handler_condition
from vesper.codegen.item_clauses import NumberedClause, merge_clauses, split_runs
from vesper.codegen.layout.expressions import render_code
from vesper.codegen.layout.policy_comments import describe_policies
from vesper.codegen.layout.python_expression import (
    ATOM,
    EQUAL,
    NOT,
    OR,
    PRODUCT,
    PythonExpression,
    add_parentheses,
    negate,
    write_string,
)
from vesper.codegen.layout.sql_lines import sql_lines
from vesper.codegen.loops import is_every_item, write_target
from vesper.codegen.metering import write_price
from vesper.codegen.naming import Naming
from vesper.codegen.same import is_same_path
from vesper.codegen.strands import StrandWriter
from vesper.codegen.types import TypeWriter, is_annotation_needed
from vesper.language.ir import nodes as ir
from vesper.language.ir.new_values import loop_takes_memory, price_collected, price_states, takes_memory
from vesper.language.ir.statements import all_statements, leaves, value_type
from vesper.values.types import DECIMAL, ArrayOf, MapOf, OptionalOf, Primitive, SetOf, Type
from vesper.values.unicode import is_printable

_BLANK = cst.EmptyLine(indent=False)
_NO_BOUND = 1_000_000
"""No collection has more items, so a loop over one needs no counting for it."""

Lines = list[cst.BaseStatement]
End = Callable[[ir.Return | ir.Raise, bool], Lines]
"""Writes how the node ends, inside of another statement or not."""


def write_comment(text: str) -> cst.EmptyLine:
    """Write a comment line. Invisible characters are escaped, so that no text can end the line."""
    shown = "".join(c if is_printable(c) else c.encode("unicode_escape").decode() for c in text)
    return cst.EmptyLine(comment=cst.Comment(f"# {shown}"))


def indent_block(lines: Lines) -> cst.IndentedBlock:
    """Indent statements inside of another one, without a blank line before the first."""
    if not lines:  # a loop may have state and no steps
        return cst.IndentedBlock([cst.SimpleStatementLine([cst.Pass()])])
    first = lines[0]
    heading = list(getattr(first, "leading_lines", ()))
    if heading and heading[0] is _BLANK:
        first = first.with_changes(leading_lines=heading[1:])
    return cst.IndentedBlock([first, *lines[1:]])


class BlockWriter(StrandWriter):
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
        self._step_reads = Counter(each.name for each in read if isinstance(each, ir.Ref) and each.kind == "step")
        self._steps_read = set(self._step_reads)
        self._locals_read = {each.number for each in read if isinstance(each, ir.Local)}
        self._names_outside = {
            *(each.name for each in node.inputs),
            *(each.name for each in (*node.outputs, *node.errors)),
            *(name for each in all_statements(node.body) for name in _find_bound_names(each)),
        }
        """The names that are bound outside of expressions."""
        naming.avoid(self._names_outside)
        self._loop_types: dict[str, Type] = {}
        """The names that loops of clauses bind."""
        self._failures: list[str] = []
        """The names of the failures whose handlers are being written, outermost first."""
        self._skipped_values: dict[str, ir.Expression] = {}
        """The value of each request that may be skipped, as seen after it."""
        self._unread_skipped: set[str] = set()
        """Those of them whose value nothing reads."""

    def write_block(self, block: ir.Block) -> Lines:
        lines: Lines = []
        for statement in block:
            self._naming.begin_statement()
            lines += self._write_statement(statement)
        return lines

    def write_cause(self) -> cst.From | None:
        """Write the `from` clause of an end inside of a handler."""
        return cst.From(cst.Name(self._failures[-1])) if self._failures else None

    def _write_inner(self, block: ir.Block, after: Callable[[], Lines] = list) -> cst.IndentedBlock:
        """Write a block and the lines after it, which need the names of its steps."""
        self._nesting += 1
        lines = [*self.write_block(block), *after()]
        self._nesting -= 1
        return indent_block(lines)

    def _write_statement(self, statement: ir.Statement) -> Lines:
        match statement:
            case ir.Step():
                return self._write_with_handlers(statement.handlers, statement, lambda: self._write_step(statement))
            case ir.Return() | ir.Raise():
                return self._end(statement, self._nesting > 0)
            case ir.Require(clause):
                number = self._requires
                self._requires += 1
                return self.write_clause("validation", number, clause)
            case ir.Branch():
                if (skipped := _find_skippable(statement)) is not None:
                    return self._write_skippable(statement, skipped)
                return self._write_with_handlers(statement.handlers, statement, lambda: self._write_branch(statement))
            case ir.Loop():
                write = self._write_rounds_in_flight if statement.in_flight is not None else self._write_loop
                return self._write_with_handlers(statement.handlers, statement, lambda: write(statement))
            case ir.Parallel():
                return self._write_with_handlers(statement.handlers, statement, lambda: self._write_parallel(statement))
            case ir.Request():
                return self._write_with_handlers(statement.handlers, statement, lambda: self._write_request(statement))
            case ir.CallNode():
                return self._write_with_handlers(statement.handlers, statement, lambda: self._write_call(statement))

    # -- clauses ----------------------------------------------------------------------------------

    def write_clauses(self, clauses: Sequence[NumberedClause]) -> Lines:
        """Write clauses in order. Neighbours about each item of one collection are tested in one pass over it.

        The outcome is the first broken clause, regardless of the item that breaks it. So the pass only finds out
        whether one is broken, and the clauses after it, one by one, which one. The metered and traced forms have no
        such pass.
        """
        lines: Lines = []
        for run in split_runs(clauses):
            if len(run) == 1:
                lines += self.write_clause(*run[0])
                continue
            guard = self._write_pass(run)  # in every form, so that all of them give out the same names
            checks = [line for each in run for line in self.write_clause(*each, is_expression=True)]
            if self._expressions.is_traced or self._expressions.metering.is_metered:
                lines += checks
            else:
                broken_if = guard.body.body[0]
                assert isinstance(broken_if, cst.If)
                body = cst.IndentedBlock([broken_if.with_changes(body=indent_block(checks))])
                lines.append(guard.with_changes(body=body))
        return lines

    def _write_pass(self, run: Sequence[NumberedClause]) -> cst.For:
        """Write the loop that tests all clauses of a run. Its `if` has no body yet."""
        self._naming.begin_statement()
        atoms = dict(self._expressions.atoms)
        whole = merge_clauses([clause for _, _, clause in run], self._expressions.atoms)
        names = [cst.Name(name) for name in self._choose_pass_names(whole)]
        over = self._expressions.write_plain_items(whole.over, len(names))
        collection = render_code(self._expressions.write(whole.over).node)
        heading = write_comment(
            f"one pass over {collection} tests {len(run)} clauses; where one is broken, the first is named"
        )
        broken_if = self._expressions.write_opposite(self._expressions.write(whole.value)).node
        self._expressions.atoms = atoms
        guard = cst.If(broken_if, cst.IndentedBlock([]))
        target = write_target(names, parentheses=False)
        return cst.For(target, over, cst.IndentedBlock([guard]), leading_lines=[_BLANK, heading])

    def _choose_pass_names(self, loop: ir.For) -> list[str]:
        """Choose the names of the items of a pass. Python keeps them, so each has one type."""
        read = self._expressions.find_locals(loop.value)
        names = []
        for number, name, type_ in zip(loop.locals, loop.names, ir.item_types(loop.over.type), strict=False):
            wanted = name if number in read else f"_{name}"
            while wanted in self._names_outside or self._loop_types.get(wanted, type_) != type_:
                wanted = f"{wanted}_" if number in read else f"_{wanted}"
            identifier = self._naming.name_local_as(number, name, wanted)
            self._loop_types[identifier] = type_
            names.append(identifier)
        return names

    def write_clause(self, phase: str, index: int, clause: ir.Clause, is_expression: bool = False) -> Lines:
        """Write one clause: as an expression, or as a loop where it is about each item of a collection."""
        self._naming.begin_statement()
        heading = [_BLANK, write_comment(f"{phase}, line {clause.holds.place.line}: {clause.text}")]
        names = None if is_expression else self._choose_loop_names(clause.holds, "forall")
        if isinstance(clause.holds, ir.For) and takes_memory(clause.holds.value):
            names = None
        if names is not None:
            assert isinstance(clause.holds, ir.For)
            return self._write_item_clause(clause.holds, names, self._write_broken(phase, index, clause), heading)
        broken_if = self._expressions.write_opposite(self._expressions.write_condition(clause.holds)).node
        broken = self._write_broken(phase, index, clause)
        return [cst.If(broken_if, cst.IndentedBlock([broken]), leading_lines=heading)]

    def _write_broken(self, phase: str, index: int, clause: ir.Clause) -> cst.SimpleStatementLine:
        shown = self._expressions.write_dict(
            [(ref.name.lstrip("_"), self._expressions.write(ref)) for ref in ir.mentioned_refs(clause)]
        )
        arguments = [cst.SimpleString(write_string(phase)), cst.Integer(str(index)), shown]
        broken = cst.Call(cst.Name("ContractBroken"), [cst.Arg(each) for each in arguments])
        self._expressions.ends[broken] = clause.holds.place.line
        return cst.SimpleStatementLine([cst.Raise(broken, cause=self.write_cause())])

    def _choose_loop_names(self, loop: ir.Expression, kind: str) -> list[str] | None:
        """Choose the names of the items of a loop. None where an expression is written instead.

        Python keeps the names of a loop statement, so they must be unused elsewhere and of one type.
        """
        if (
            not isinstance(loop, ir.For)
            or loop.kind != kind
            or loop.where is not None
            or isinstance(loop.value, ir.Let)
        ):
            return None
        read = {each.number for each in ir.walk(loop.value) if isinstance(each, ir.Local)}
        wanted = [name if number in read else f"_{name}" for number, name in zip(loop.locals, loop.names, strict=True)]
        types = dict(zip(wanted, ir.item_types(loop.over.type), strict=False))
        if any(name in self._names_outside or self._loop_types.get(name, types[name]) != types[name] for name in types):
            return None
        names = [self._naming.name_local(number, name) for number, name in zip(loop.locals, wanted, strict=True)]
        if names != wanted:
            return None
        self._loop_types |= types
        return names

    def _write_item_clause(
        self, holds: ir.For, names: Sequence[str], broken: cst.SimpleStatementLine, heading: list[cst.EmptyLine]
    ) -> Lines:
        """Write a clause about every item as a loop that ends at the first item that breaks it."""
        over = self._expressions.write_items(holds.over, len(names))
        broken_if = self._expressions.write_opposite(self._expressions.write(holds.value)).node
        end = [*self._write_mark(holds, cst.Name("False")), broken]
        target = write_target([cst.Name(name) for name in names], parentheses=False)
        body = cst.IndentedBlock([cst.If(broken_if, cst.IndentedBlock(end))])
        return [cst.For(target, over, body, leading_lines=heading), *self._write_mark(holds, cst.Name("True"))]

    def _write_mark(self, of: ir.Expression, value: cst.BaseExpression) -> list[cst.SimpleStatementLine]:
        """Write a mark as a statement in the traced form, for a value without an expression."""
        if not self._expressions.is_traced:
            return []
        marked = self._expressions.add_mark(of, PythonExpression(value, ATOM)).node
        return [cst.SimpleStatementLine([cst.Expr(marked)])]

    # -- values -----------------------------------------------------------------------------------

    def _write_heading(self, name: str, place: ir.Place) -> list[cst.EmptyLine]:
        shown = name.lstrip("_")
        return [_BLANK, write_comment(f"{'step ' if not name.startswith('_') else ''}{shown}, line {place.line}")]

    def _write_step(self, step: ir.Step) -> Lines:
        heading = self._write_heading(step.name, step.place)
        before: Lines = []
        value = step.value
        while isinstance(value, ir.Let):
            # The outermost LET of a step is a statement; nothing is evaluated before it.
            if not self._expressions.is_atom(value):
                local = self._naming.name_local(value.local, value.name)
                before.append(self.assign(local, value.value, heading))
                heading = []
            value = value.body
        is_counted = self._expressions.metering.is_metered
        if isinstance(value, ir.For) and value.kind == "fold" and _is_infallible_start(value) and not is_counted:
            return [*before, *self._write_fold(step, value, heading)]
        if isinstance(value, ir.For) and value.type == DECIMAL and not is_every_item(value):
            names = self._choose_loop_names(value, "sum")
            if names is not None and not (is_counted and takes_memory(value.value)):
                return [*before, *self._write_sum(step, value, names, heading)]
        target = self._naming.name("step", step.name)
        is_chain = isinstance(value, ir.If) and isinstance(value.otherwise, ir.If)
        # Without it a type checker takes members of an enum for any string, and a record for any dict.
        annotation = self._types.write_annotation(value.type) if is_annotation_needed(value.type) else None
        if is_chain and annotation is not None:
            before.append(self._declare(target, annotation, heading))
            heading = []
        if isinstance(value, ir.If) and isinstance(value.otherwise, ir.If):
            # Two conditions or more read better as statements than as nested conditional expressions.
            return [*before, self._write_chain(target, value, step.value).with_changes(leading_lines=heading)]
        return [*before, self.assign(target, value, heading, mark_as=step.value, annotation=annotation)]

    def _write_fold(self, step: ir.Step, fold: ir.For, heading: Sequence[cst.EmptyLine]) -> Lines:
        """Write a fold that is a whole step as a loop that updates its state."""
        assert fold.with_ is not None
        read = {each.number for each in ir.walk(fold) if isinstance(each, ir.Local)} | {fold.locals[-1]}
        names = [
            self._naming.keep_local(number, name if number in read else f"_{name}")
            for number, name in zip(fold.locals, fold.names, strict=True)
        ]
        state = names.pop()
        annotation = None if isinstance(fold.type, Primitive) else self._types.write_annotation(fold.type)
        start = self.assign(state, fold.with_, heading, annotation=annotation)
        over = self._expressions.write_items(fold.over, len(names))
        change: cst.BaseStatement = self.assign(state, fold.value)
        if fold.where is not None:
            test = self._expressions.write_condition(fold.where).node
            change = cst.If(test=test, body=cst.IndentedBlock([change]))
        targets = write_target([cst.Name(name) for name in names], parentheses=False)
        loop = cst.For(target=targets, iter=over, body=cst.IndentedBlock([change]))
        result = ir.Local(fold.locals[-1], fold.names[-1], fold.type, fold.place)
        declared = self._types.write_annotation(fold.type) if is_annotation_needed(fold.type) else None
        target = self._naming.name("step", step.name)
        return [start, loop, self.assign(target, result, mark_as=step.value, annotation=declared)]

    def _write_sum(self, step: ir.Step, total: ir.For, names: Sequence[str], heading: Sequence[cst.EmptyLine]) -> Lines:
        """Write a sum of decimals that is a whole step as a loop, the fastest form."""
        over = self._expressions.write_items(total.over, len(names))
        target = self._naming.name("step", step.name)
        zero = self._expressions.write_literal(DECIMAL, Decimal(0)).node
        # A sum starts from a zero without sign, and adding to that never gives one with it.
        more = cst.BinaryOperation(cst.Name(target), cst.Add(), self._expressions.write_operand(total.value, PRODUCT))
        self._expressions.sites[more] = total.index
        loop = cst.For(
            write_target([cst.Name(name) for name in names], parentheses=False),
            over,
            cst.IndentedBlock([self._assign_node(target, more)]),
        )
        lines: Lines = [self._assign_node(target, zero, heading), loop]
        if self._expressions.is_traced:
            lines.append(
                self._assign_node(
                    target, self._expressions.add_mark(step.value, PythonExpression(cst.Name(target), ATOM)).node
                )
            )
        return lines

    def _declare(
        self, target: str, annotation: cst.BaseExpression, heading: Sequence[cst.EmptyLine]
    ) -> cst.SimpleStatementLine:
        declared = cst.AnnAssign(cst.Name(target), cst.Annotation(annotation))
        return cst.SimpleStatementLine([declared], leading_lines=heading)

    def _write_chain(self, target: str, chained: ir.If, whole: ir.Expression) -> cst.If:
        """Write a chain of conditions as `if`, `elif`, `else`; each branch assigns the value.

        Neighbours with the same value are one branch: conditions are evaluated in the same order either way.
        """
        test = self._expressions.write_condition(chained.condition)
        while isinstance(chained.otherwise, ir.If) and is_same_path(chained.then, chained.otherwise.then):
            chained = chained.otherwise
            more = add_parentheses(self._expressions.write_condition(chained.condition), NOT)
            test = PythonExpression(cst.BooleanOperation(add_parentheses(test, NOT), cst.Or(), more), OR)
        body = cst.IndentedBlock([self.assign(target, chained.then, mark_as=whole)])
        orelse: cst.If | cst.Else
        if isinstance(chained.otherwise, ir.If):
            orelse = self._write_chain(target, chained.otherwise, whole)
        else:
            orelse = cst.Else(cst.IndentedBlock([self.assign(target, chained.otherwise, mark_as=whole)]))
        return cst.If(test=test.node, body=body, orelse=orelse)

    def assign(
        self, target: str, value: ir.Expression, heading: Sequence[cst.EmptyLine] = (),
        mark_as: ir.Expression | None = None, annotation: cst.BaseExpression | None = None,
    ) -> cst.SimpleStatementLine:  # fmt: skip
        written = self._expressions.write_stored(value)
        if annotation is not None and _has_visible_type(written.node, annotation):
            annotation = None
        if mark_as is not None:
            written = self._expressions.add_mark(mark_as, written)
        return self._assign_node(target, written.node, heading, annotation)

    def _assign_node(
        self, target: str, node: cst.BaseExpression, heading: Sequence[cst.EmptyLine] = (),
        annotation: cst.BaseExpression | None = None,
    ) -> cst.SimpleStatementLine:  # fmt: skip
        assignment: cst.Assign | cst.AnnAssign = cst.Assign([cst.AssignTarget(cst.Name(target))], node)
        if annotation is not None:
            assignment = cst.AnnAssign(cst.Name(target), cst.Annotation(annotation), node)
        return cst.SimpleStatementLine([assignment], leading_lines=heading)

    def choose_annotation(self, type_: Type) -> cst.BaseExpression | None:
        is_composed = isinstance(type_, OptionalOf | ArrayOf | MapOf | SetOf)
        return self._types.write_annotation(type_) if is_composed or is_annotation_needed(type_) else None

    def _choose_state_annotation(self, value: ir.Expression) -> cst.BaseExpression | None:
        """Choose the annotation of a loop's state; of an empty value type checkers infer nothing."""
        is_empty = isinstance(value, ir.Array) and not value.items
        if is_empty or (isinstance(value, ir.Literal) and value.value == {}):
            return self._types.write_annotation(value.type)
        return self.choose_annotation(value.type)

    # -- branches ---------------------------------------------------------------------------------

    def _write_branch(self, branch: ir.Branch) -> Lines:
        heading = self._write_heading(branch.name, branch.place)
        type_ = value_type(branch)
        before: Lines = []
        if type_ is not None and (annotation := self.choose_annotation(type_)) is not None:
            before = [self._declare(self._naming.name("step", branch.name), annotation, heading)]
            heading = []
        if branch.arms:
            return [*before, self._write_arms(branch, 0).with_changes(leading_lines=heading)]
        self._nesting += 1
        lines = [*self.write_block(branch.otherwise), *self._write_branch_value(branch, branch.otherwise_value)]
        self._nesting -= 1
        if heading and lines:
            first = cst.ensure_type(lines[0], cst.SimpleStatementLine)
            lines[0] = first.with_changes(leading_lines=[*heading, *first.leading_lines])
        return [*before, *lines]

    def _write_arms(self, branch: ir.Branch, first: int) -> cst.If:
        arm = branch.arms[first]
        test = self._expressions.write_condition(arm.when).node
        body = self._write_inner(arm.body, lambda: self._write_branch_value(branch, arm.value))
        orelse: cst.If | cst.Else | None = None
        if first + 1 < len(branch.arms):
            self._naming.begin_statement()
            orelse = self._write_arms(branch, first + 1)
        elif branch.otherwise or branch.otherwise_value is not None:
            value = branch.otherwise_value
            orelse = cst.Else(self._write_inner(branch.otherwise, lambda: self._write_branch_value(branch, value)))
        return cst.If(test=test, body=body, orelse=orelse)

    def _write_branch_value(self, branch: ir.Branch, value: ir.Expression | None) -> Lines:
        if value is None:
            return []
        return [self.assign(self._naming.name("step", branch.name), value, mark_as=value)]

    def _write_skippable(self, branch: ir.Branch, inner: ir.Request | ir.CallNode) -> Lines:
        """Write a request that may be skipped: its value is null if the condition does not hold."""
        target = self._naming.name("step", inner.name)
        self._naming.alias("step", branch.name, target)
        type_ = value_type(branch)
        assert type_ is not None
        assert branch.otherwise_value is not None
        arm = branch.arms[0]
        assert arm.value is not None
        heading = self._write_heading(inner.name, branch.place)
        test = self._expressions.write_condition(arm.when).node
        self._skipped_values[inner.name] = arm.value
        null = self._expressions.add_mark(branch.otherwise_value, PythonExpression(cst.Name("None"), ATOM))
        if branch.name not in self._steps_read:
            self._unread_skipped.add(inner.name)
            unread = self._write_mark(branch.otherwise_value, cst.Name("None"))
            otherwise = cst.Else(cst.IndentedBlock(unread)) if unread else None
            return [cst.If(test=test, body=self._write_inner(arm.body), orelse=otherwise, leading_lines=heading)]
        before = self._declare(target, self._types.write_annotation(type_), heading)
        body = self._write_inner(arm.body)
        orelse = cst.Else(cst.IndentedBlock([self._assign_node(target, null.node)]))
        return [before, cst.If(test=test, body=body, orelse=orelse)]

    # -- loops ------------------------------------------------------------------------------------

    def _write_loop(self, loop: ir.Loop) -> Lines:
        lines: Lines = []
        heading = self._write_heading(loop.name, loop.place)
        over = None if loop.over is None else self._expressions.write_items(loop.over, len(loop.names))
        is_first = bool(loop.state) or self._counts_memory(loop)
        if over is not None and is_first and not isinstance(loop.over, ir.Ref | ir.Local):
            # The collection of a loop is evaluated before its state, and no round gives its memory back.
            items = self._naming.create_name("items")
            lines.append(self._assign_node(items, over, heading))
            heading, over = [], cst.Name(items)
        states = {each.local: self._naming.hold(each.local, each.name) for each in loop.state}
        for each in loop.state:
            annotation = self._choose_state_annotation(each.value)
            if annotation is not None:  # mypy lets a name be declared once: none after the loop is called so
                self._naming.keep_local(each.local, each.name)
            lines.append(self.assign(states[each.local], each.value, heading, annotation=annotation))
            heading = []
        collected = self._naming.create_name("collected") if loop.collect is not None else None
        if collected is not None and loop.collect is not None:
            of = cst.Subscript(
                cst.Name("list"), [cst.SubscriptElement(cst.Index(self._types.write_annotation(loop.collect.type)))]
            )
            lines.append(self._assign_node(collected, cst.List([]), heading, of))
            heading = []
        memory = self._write_memory(loop, lines, heading)
        is_counted = loop.max < _NO_BOUND or loop.over is None or _has_requests(loop.body)
        counter = self._naming.create_name("iterations") if is_counted else None
        if counter is not None:
            lines.append(self._assign_node(counter, cst.Integer("0"), heading))
            heading = []
        names = [
            self._naming.hold(number, name if number in self._locals_read else f"_{name}")
            for number, name in zip(loop.locals, loop.names, strict=True)
        ]
        with self._count_iterations(counter):
            body = self._write_iteration(loop, states, collected, counter, memory)
        statement: cst.For | cst.While
        if over is not None:
            target: cst.Name | cst.Tuple = cst.Name(names[0])
            if len(names) > 1:
                target = cst.Tuple([cst.Element(cst.Name(name)) for name in names], lpar=[], rpar=[])
            statement = cst.For(target=target, iter=over, body=indent_block(body), leading_lines=heading)
        else:
            assert loop.condition is not None
            test = self._expressions.write_condition(loop.condition).node
            statement = cst.While(test=test, body=indent_block(body), leading_lines=heading)
        lines.append(statement)
        if memory is not None and not price_states(loop):
            lines.append(_write_statement_call("restore_memory", cst.Name(memory)))
        fields = [(each.name, PythonExpression(cst.Name(states[each.local]), ATOM)) for each in loop.state]
        if collected is not None:
            fields.append(("collected", PythonExpression(cst.Name(collected), ATOM)))
        result = self._expressions.write_record(loop.type, fields).node
        lines.append(self._assign_node(self._naming.name("step", loop.name), result))
        for number, name in (*zip(loop.locals, loop.names, strict=True), *((s.local, s.name) for s in loop.state)):
            self._naming.release(number, name)
        return lines

    def _counts_memory(self, loop: ir.Loop) -> bool:
        takes = loop_takes_memory(loop) or loop.collect is not None or bool(price_states(loop))
        return self._expressions.metering.is_metered and takes

    def _write_memory(self, loop: ir.Loop, lines: Lines, heading: list[cst.EmptyLine]) -> str | None:
        """Start counting the memory of a loop that takes any. Returns the name of the count."""
        if not self._counts_memory(loop):
            return None
        name = self._naming.create_name("memory")
        lines.append(self._assign_node(name, self._expressions.metering.charge("LoopMemory"), heading))
        heading.clear()
        return name

    def _write_iteration(
        self, loop: ir.Loop, states: dict[int, str], collected: str | None, counter: str | None, memory: str | None
    ) -> Lines:
        lines: Lines = []
        if memory is not None and not price_states(loop):
            lines.append(_write_statement_call("restore_memory", cst.Name(memory)))
        for condition, leaving in ((loop.where, cst.Continue()), (loop.condition, cst.Break())):
            if condition is None or (condition is loop.condition and loop.over is None):
                continue
            test = self._expressions.write_opposite(self._expressions.write_condition(condition)).node
            lines.append(cst.If(test, cst.IndentedBlock([cst.SimpleStatementLine([leaving])])))
        if counter is not None:
            count = cst.Call(cst.Name("counted"), [cst.Arg(cst.Name(counter)), cst.Arg(cst.Integer(str(loop.max)))])
            at = loop.condition if loop.condition is not None else loop.over
            assert at is not None
            self._expressions.sites[count] = at.index
            lines.append(self._assign_node(counter, count))
        if loop.over is None:
            lines += self._expressions.metering.meter_round()
        lines += self.write_block(loop.body)
        self._naming.begin_statement()
        if collected is not None and loop.collect is not None:
            value = self._expressions.add_mark(loop.collect, self._expressions.write_stored(loop.collect)).node
            kept = cst.Call(cst.Name("keep"), [cst.Arg(cst.Name(collected)), cst.Arg(value)])
            if memory is not None:
                price = write_price(price_collected(loop))
                arguments = [cst.Name(memory), price, cst.Name(collected), value]
                kept = cst.Call(cst.Name("keep_item"), [cst.Arg(each) for each in arguments])
            self._expressions.sites[kept] = loop.collect.index
            lines.append(cst.SimpleStatementLine([cst.Expr(kept)]))
        lines += self._write_next_state(loop, states)
        if memory is not None and (prices := price_states(loop)):
            lines.append(
                _write_statement_call(
                    "recount_memory",
                    cst.Name(memory),
                    cst.Tuple([cst.Element(write_price(price)) for price in prices]),
                    cst.Tuple([cst.Element(cst.Name(states[each.local])) for each in loop.state]),
                )
            )
        if loop.stop_when is not None:
            stop = self._expressions.write_condition(loop.stop_when).node
            lines.append(cst.If(stop, cst.IndentedBlock([cst.SimpleStatementLine([cst.Break()])])))
        return lines

    def _write_next_state(self, loop: ir.Loop, states: dict[int, str]) -> Lines:
        values = [
            (states[local], self._expressions.add_mark(value, self._expressions.write_stored(value)).node)
            for local, value in loop.next
        ]
        if len(values) < 2:
            return [self._assign_node(name, value) for name, value in values]
        # All of them are computed from the old state.
        targets = cst.Tuple([cst.Element(cst.Name(name)) for name, _ in values], lpar=[], rpar=[])
        together = cst.Tuple([cst.Element(value) for _, value in values], lpar=[], rpar=[])
        return [cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(targets)], together)])]

    @contextmanager
    def _count_iterations(self, counter: str | None) -> Iterator[None]:
        if counter is None:
            yield
            return
        self._counters.append(counter)
        try:
            yield
        finally:
            self._counters.pop()

    # -- requests and calls -----------------------------------------------------------------------

    def _write_path(self, name: str) -> cst.BaseExpression:
        shown = cst.SimpleString(write_string(name))
        if not self._counters:
            return shown
        return cst.Call(cst.Name("path"), [cst.Arg(shown), *(cst.Arg(cst.Name(each)) for each in self._counters)])

    def _write_request(self, request: ir.Request) -> Lines:
        arguments = [
            cst.Arg(self._write_path(request.name)),
            cst.Arg(cst.SimpleString(write_string(request.effect))),
            cst.Arg(cst.SimpleString(write_string(request.effect_class))),
        ]
        key = None if request.key is None else self._expressions.write_stored(request.key).node
        fixed = self._expressions.write_dict(
            [(name, PythonExpression(_write_fixed_text(name, text), ATOM)) for name, text in request.fixed.items()]
        )
        given = self._expressions.write_dict(
            [(name, self._expressions.write_plain(value)) for name, value in request.arguments]
        )
        arguments.append(cst.Arg(fixed))
        if key is None:
            arguments.append(cst.Arg(given))
        else:  # SEMANTICS: the key is evaluated before the arguments
            arguments.append(cst.Arg(key, keyword=cst.Name("key"), equal=EQUAL))
            arguments.append(cst.Arg(given, keyword=cst.Name("arguments"), equal=EQUAL))
        call = cst.Call(cst.Name("Request"), arguments)
        return self._write_answer(request, cst.Yield(call))

    def _write_call(self, call: ir.CallNode) -> Lines:
        given = [
            cst.Arg(self._expressions.write_stored(value).node, keyword=cst.Name(name), equal=EQUAL)
            for name, value in call.inputs
        ]
        asked: cst.BaseExpression
        callee = self._expressions.metering.meter_node(call.node)
        if self._node.type == "function":
            asked = cst.Call(cst.Name("called"), [cst.Arg(callee), *given])
        else:
            arguments = [cst.Arg(self._write_path(call.name)), cst.Arg(callee), cst.Arg(cst.Name("now")), *given]
            asked = cst.Yield(cst.From(cst.Call(cst.Name("call_node"), arguments)))
        return self._write_answer(call, asked)

    def _write_answer(self, statement: ir.Request | ir.CallNode, asked: cst.BaseExpression) -> Lines:
        """Write a request under the name of its step; without a name if nothing reads the answer."""
        self._expressions.sites[asked] = statement.result.index
        skipped = self._skipped_values.get(statement.name)
        heading = self._write_heading(statement.name, statement.place) if skipped is None else []
        if isinstance(statement, ir.Request) and (policies := describe_policies(self._node, statement)):
            heading.append(write_comment(policies))
        if self._expressions.is_traced:
            if isinstance(asked, cst.Yield):
                in_parentheses = asked.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
                self._expressions.move_site(asked, in_parentheses)
                asked = in_parentheses
            asked = self._expressions.add_mark(statement.result, PythonExpression(asked, ATOM)).node
            if skipped is not None:
                asked = self._expressions.add_mark(skipped, PythonExpression(asked, ATOM)).node
        if not self._is_read(statement):
            return [cst.SimpleStatementLine([cst.Expr(asked)], leading_lines=heading)]
        target = self._naming.name("step", statement.name)
        if skipped is not None:
            return [self._assign_node(target, asked, heading)]
        annotation = self._types.write_annotation(statement.result.type)
        line = cst.AnnAssign(cst.Name(target), cst.Annotation(annotation), asked)
        return [cst.SimpleStatementLine([line], leading_lines=heading)]

    def _is_read(self, statement: ir.Request | ir.CallNode) -> bool:
        """Return whether an expression reads the answer."""
        return statement.name in self._steps_read and statement.name not in self._unread_skipped

    # -- handlers ---------------------------------------------------------------------------------

    def _write_with_handlers(
        self, handlers: tuple[ir.Handler, ...], statement: ir.Statement, write: Callable[[], Lines]
    ) -> Lines:
        if not handlers:
            return write()
        lines = write()
        first = lines[0]
        heading = list(getattr(first, "leading_lines", ()))
        # The blank line and the comment of the step stand above `try`, policies beside the request.
        is_headed = bool(heading) and heading[0] is _BLANK
        heading, own = (heading[:2], heading[2:]) if is_headed else ([], heading)
        lines[0] = first.with_changes(leading_lines=own)
        failure = self._choose_failure_name()
        self._failures.append(failure)
        rest = next((handler for handler in handlers if is_default_handler(handler)), None)
        again = cst.IndentedBlock([cst.SimpleStatementLine([cst.Raise()])])
        named = [handler for handler in handlers if handler is not rest]
        # In written order, so that names are given out in the order in which a reader meets them.
        bodies = [self._write_handler(handler, statement) for handler in named]
        orelse: cst.If | cst.Else = cst.Else(again if rest is None else self._write_handler(rest, statement))
        for handler, body in reversed(list(zip(named, bodies, strict=True))):
            orelse = cst.If(test=write_handler_condition(handler, handlers, failure), body=body, orelse=orelse)
        self._failures.pop()
        inside = orelse.body if isinstance(orelse, cst.Else) else cst.IndentedBlock([orelse])
        if rest is None and len(named) == 1:
            # One handler: any other failure goes on at once.
            others = negate(PythonExpression(write_handler_condition(named[0], handlers, failure), OR)).node
            inside = cst.IndentedBlock([cst.If(others, again), *bodies[0].body])
        name = cst.AsName(cst.Name(failure)) if has_name(inside, failure) else None
        caught = cst.ExceptHandler(body=inside, type=cst.Name("FAILURES"), name=name)
        if lines and isinstance(lines[0], cst.FunctionDef):  # a formatter sets it off
            lines = [lines[0].with_changes(leading_lines=[_BLANK, *lines[0].leading_lines]), *lines[1:]]
        return [cst.Try(body=cst.IndentedBlock(lines), handlers=[caught], leading_lines=heading)]

    def _choose_failure_name(self) -> str:
        """Choose the name of a failure. Python deletes it after its handler, so inner ones differ."""
        return "failure" if not self._failures else self._naming.create_name("failure")

    def _write_handler(self, handler: ir.Handler, statement: ir.Statement) -> cst.IndentedBlock:
        return self._write_inner(handler.body, lambda: self._write_handler_value(handler, statement))

    def _write_handler_value(self, handler: ir.Handler, statement: ir.Statement) -> Lines:
        if handler.value is not None:
            assert not isinstance(statement, ir.Return | ir.Raise | ir.Require)
            target = self._naming.name("step", statement.name)
            written = self._expressions.add_mark(handler.value, self._expressions.write_stored(handler.value))
            skipped = self._skipped_values.get(statement.name)
            if skipped is not None:
                written = self._expressions.add_mark(skipped, written)
            if isinstance(statement, ir.Request | ir.CallNode) and not self._is_read(statement):
                target = f"_{target}"  # linters expect nothing to read a name that begins so
            return [self._assign_node(target, written.node)]
        return [] if leaves(handler.body) else [cst.SimpleStatementLine([cst.Raise()])]


def _write_statement_call(function: str, *arguments: cst.BaseExpression) -> cst.SimpleStatementLine:
    return cst.SimpleStatementLine([cst.Expr(cst.Call(cst.Name(function), [cst.Arg(each) for each in arguments]))])


def _write_fixed_text(name: str, text: str) -> cst.BaseExpression:
    """Write an argument that the node fixes. SQL is written in parts, each on its own line if one line is too short."""
    parts: list[cst.SimpleString] = [
        cst.SimpleString(write_string(part)) for part in (sql_lines(text) if name == "sql" else [text])
    ]
    whole: cst.SimpleString | cst.ConcatenatedString = parts.pop() if parts else cst.SimpleString('""')
    while parts:
        whole = cst.ConcatenatedString(parts.pop(), whole)
    return whole


def has_name(node: cst.CSTNode, name: str) -> bool:
    return bool(matchers.findall(node, matchers.Name(name)))


def _find_bound_names(statement: ir.Statement) -> tuple[str, ...]:
    match statement:
        case ir.Loop():
            return statement.name, *statement.names, *(each.name for each in statement.state)
        case ir.Return() | ir.Raise() | ir.Require():
            return ()
        case _:
            return (statement.name,)


def _is_infallible_start(fold: ir.For) -> bool:
    """Return whether the start of a fold cannot fail, and so may be evaluated before the collection."""
    initial = fold.with_
    return isinstance(initial, ir.Literal | ir.Ref | ir.Local) or (isinstance(initial, ir.Array) and not initial.items)


def _has_visible_type(node: cst.BaseExpression, annotation: cst.BaseExpression) -> bool:
    """Return whether the value is a call of the record's class, which type checkers understand."""
    return (
        isinstance(node, cst.Call)
        and isinstance(node.func, cst.Name)
        and isinstance(annotation, cst.Name)
        and node.func.value == annotation.value
    )


def _has_requests(block: ir.Block) -> bool:
    return any(isinstance(each, ir.Request | ir.CallNode) for each in all_statements(block))


def _find_skippable(branch: ir.Branch) -> ir.Request | ir.CallNode | None:
    """Return the one request in a branch that has the form of a step with `when`. None for other branches."""
    if len(branch.arms) != 1 or branch.otherwise or branch.otherwise_value is None or branch.handlers:
        return None
    body = branch.arms[0].body
    if len(body) != 1 or not isinstance(body[0], ir.Request | ir.CallNode) or f"_{body[0].name}" != branch.name:
        return None
    return body[0]
