"""Writer of strands.

A strand is a function: for each member of a `parallel`, or for the rounds of a loop in flight.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial

import libcst as cst

from vesper.codegen.expressions import ExpressionWriter
from vesper.codegen.layout.python_expression import ATOM, EQUAL, OR, PythonExpression, add_parentheses
from vesper.codegen.loops import write_target
from vesper.codegen.metering import write_price
from vesper.codegen.naming import Naming
from vesper.codegen.types import TypeWriter
from vesper.language.ir import nodes as ir
from vesper.language.ir.new_values import price_collected
from vesper.language.ir.statements import expressions_of, value_type, visible_statements
from vesper.values.types import Type

_BLANK = cst.EmptyLine(indent=False)
Lines = list[cst.BaseStatement]


class StrandWriter:
    """The part of the statement writer that writes strands."""

    _naming: Naming
    _expressions: ExpressionWriter
    _types: TypeWriter
    _locals_read: set[int]
    _step_reads: Counter[str]
    """How often the expressions of the node read each step."""

    @abstractmethod
    def write_block(self, block: ir.Block) -> Lines: ...
    @abstractmethod
    def _write_inner(self, block: ir.Block, after: Callable[[], Lines] = list) -> cst.IndentedBlock: ...
    @abstractmethod
    def _write_heading(self, name: str, place: ir.Place) -> list[cst.EmptyLine]: ...
    @abstractmethod
    def _assign_node(
        self, target: str, node: cst.BaseExpression, heading: Sequence[cst.EmptyLine] = (),
        annotation: cst.BaseExpression | None = None,
    ) -> cst.SimpleStatementLine: ...  # fmt: skip
    @abstractmethod
    def _count_iterations(self, counter: str | None) -> AbstractContextManager[None]: ...

    # -- parallel ---------------------------------------------------------------------------------

    def _write_parallel(self, parallel: ir.Parallel) -> Lines:
        heading = self._write_heading(parallel.name, parallel.place)
        lines: Lines = []
        functions, targets = [], []
        for member in parallel.members:
            function = self._naming.create_name(f"{_first_name(member)}_strand")
            shown = list(self._find_shown(member))
            body = self._write_inner(member, partial(self._write_result, shown))
            lines.append(self._write_function(function, [], [type_ for _, type_ in shown], body, heading))
            heading = [_BLANK]
            functions.append(cst.Arg(cst.Name(function)))
            targets.append(self._write_values(shown))
        call = cst.Yield(cst.From(cst.Call(cst.Name("in_parallel"), [*functions, *self._write_form_arguments()])))
        if all(target is None for target in targets):
            return [*lines, cst.SimpleStatementLine([cst.Expr(call)], leading_lines=[_BLANK])]
        assigned = cst.Tuple([cst.Element(each or cst.Name("_")) for each in targets], lpar=[], rpar=[])
        assignment = cst.Assign([cst.AssignTarget(assigned)], call)
        return [*lines, cst.SimpleStatementLine([assignment], leading_lines=[_BLANK])]

    def _find_shown(self, member: ir.Block) -> Iterator[tuple[str, Type]]:
        """Yield the steps of a member that the statements after it read, with their types."""
        inside = Counter(
            each.name
            for value in expressions_of(member)
            for each in ir.walk(value)
            if isinstance(each, ir.Ref) and each.kind == "step"
        )
        for statement in visible_statements(member):
            type_ = value_type(statement)
            if type_ is None or isinstance(statement, ir.Return | ir.Raise | ir.Require):
                continue
            if self._step_reads[statement.name] > inside[statement.name]:
                yield statement.name, type_

    def _write_result(self, shown: Sequence[tuple[str, Type]]) -> Lines:
        return [_write_return(self._write_values(shown))] if shown else []

    def _write_values(self, shown: Sequence[tuple[str, Type]]) -> cst.BaseExpression | None:
        names = [cst.Name(self._naming.name("step", name)) for name, _ in shown]
        return None if not names else names[0] if len(names) == 1 else cst.Tuple([cst.Element(each) for each in names])

    # -- loops ------------------------------------------------------------------------------------

    def _write_rounds_in_flight(self, loop: ir.Loop) -> Lines:
        assert loop.over is not None
        assert loop.in_flight is not None
        assert loop.collect is not None
        collect = loop.collect
        heading = self._write_heading(loop.name, loop.place)
        over = self._expressions.write_items(loop.over, len(loop.names))
        names = [
            self._naming.hold(number, name if number in self._locals_read else f"_{name}")
            for number, name in zip(loop.locals, loop.names, strict=True)
        ]
        lines: Lines = []
        if loop.where is not None:
            over = self._write_selected(loop.where, names, over)
        counter = self._naming.create_name("iterations")
        function = self._naming.create_name(f"{loop.name.lstrip('_')}_round")
        types = ir.item_types(loop.over.type)
        parameters: list[tuple[str, cst.BaseExpression]] = [(counter, cst.Name("int"))]
        unpacked: Lines = []
        if len(names) == 1:
            parameters.append((names[0], self._types.write_annotation(types[0])))
        else:
            entry = self._naming.create_name("entry")
            parameters.append((entry, self._write_tuple_type(types)))
            target = write_target([cst.Name(name) for name in names], parentheses=False)
            unpacked = [cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(target)], cst.Name(entry))])]

        def collected() -> Lines:
            value = self._expressions.add_mark(collect, self._expressions.write_stored(collect))
            return [_write_return(value.node)]

        with self._count_iterations(counter):
            body = self._write_inner(loop.body, collected)
        body = body.with_changes(body=[*unpacked, *body.body])
        lines.append(self._write_function(function, parameters, [collect.type], body, heading))
        arguments = [cst.Integer(str(loop.in_flight)), cst.Integer(str(loop.max)), over, cst.Name(function)]
        form = self._write_form_arguments()
        if self._expressions.metering.is_metered:
            form.append(cst.Arg(write_price(price_collected(loop)), keyword=cst.Name("price"), equal=EQUAL))
        call = cst.Yield(cst.From(cst.Call(cst.Name("in_flight"), [*map(cst.Arg, arguments), *form])))
        self._expressions.sites[call] = loop.over.index
        collected_name = self._naming.create_name("collected")
        annotation = cst.Subscript(
            cst.Name("list"), [cst.SubscriptElement(cst.Index(self._types.write_annotation(collect.type)))]
        )
        lines.append(self._assign_node(collected_name, call, [_BLANK], annotation))
        fields = [("collected", PythonExpression(cst.Name(collected_name), ATOM))]
        result = self._expressions.write_record(loop.type, fields).node
        lines.append(self._assign_node(self._naming.name("step", loop.name), result))
        for number, name in zip(loop.locals, loop.names, strict=True):
            self._naming.release(number, name)
        return lines

    def _write_selected(self, where: ir.Expression, names: Sequence[str], over: cst.BaseExpression) -> cst.GeneratorExp:
        """Write the items for which a condition holds. The metered form keeps `SKIPPED` in place of the others."""
        condition = self._expressions.write_condition(where)
        item = write_target([cst.Name(name) for name in names], parentheses=True)
        target = write_target([cst.Name(name) for name in names], parentheses=False)
        if self._expressions.metering.is_metered:
            chosen = cst.IfExp(test=add_parentheses(condition, OR), body=item, orelse=cst.Name("SKIPPED"))
            return cst.GeneratorExp(chosen, cst.CompFor(target=target, iter=over))
        selected = cst.CompFor(target=target, iter=over, ifs=[cst.CompIf(add_parentheses(condition, OR))])
        return cst.GeneratorExp(item, selected)

    # -- functions --------------------------------------------------------------------------------

    def _write_function(
        self,
        name: str,
        parameters: Sequence[tuple[str, cst.BaseExpression]],
        returns: Sequence[Type],
        body: cst.IndentedBlock,
        heading: Sequence[cst.EmptyLine],
    ) -> cst.FunctionDef:
        given = [*parameters, *([("mark", cst.Name("Mark"))] if self._expressions.is_traced else [])]
        result: cst.BaseExpression = cst.Name("None")
        if len(returns) == 1:
            result = self._types.write_annotation(returns[0])
        elif returns:
            result = self._write_tuple_type(returns)
        asking = cst.Subscript(cst.Name("Asking"), [cst.SubscriptElement(cst.Index(result))])
        return cst.FunctionDef(
            name=cst.Name(name),
            params=cst.Parameters([cst.Param(cst.Name(each), cst.Annotation(type_)) for each, type_ in given]),
            body=body,
            returns=cst.Annotation(asking),
            leading_lines=list(heading),
        )

    def _write_tuple_type(self, types: Sequence[Type]) -> cst.Subscript:
        parts = [cst.SubscriptElement(cst.Index(self._types.write_annotation(each))) for each in types]
        return cst.Subscript(cst.Name("tuple"), parts)

    def _write_form_arguments(self) -> list[cst.Arg]:
        """Write the arguments that the metered and traced forms add."""
        names = ["meter"] if self._expressions.metering.is_metered else []
        names += ["mark"] if self._expressions.is_traced else []
        return [cst.Arg(cst.Name(name), keyword=cst.Name(name), equal=EQUAL) for name in names]


def _first_name(member: ir.Block) -> str:
    names = (each.name.lstrip("_") for each in member if not isinstance(each, ir.Return | ir.Raise | ir.Require))
    return next(names, "parallel")


def _write_return(value: cst.BaseExpression | None) -> cst.SimpleStatementLine:
    return cst.SimpleStatementLine([cst.Return(value)])
